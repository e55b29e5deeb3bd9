"""`contrapca report --save`: what the page saves, as files."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from contrapca import ContraPCA
from csvfiles import write_csv

TABLES = ["report", "cases.csv", "--background", "controls.csv"]
FILES = {"coordinates.csv", "loadings.csv", "figure.png", "figure.svg", "methods.txt"}


@pytest.fixture(autouse=True)
def _libraries(need):
    need("matplotlib")
    need("jinja2")


def rows_of(file):
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def test_saved_files(folder, run, pair, tree, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    outcome = run(*TABLES, "--labels", "stage", "--title", "Mine & <yours>", "--save", "results", "--json")
    assert outcome.code == 0, outcome.err
    summary = json.loads(outcome.out)
    assert summary["written"] == "report.html"
    assert {Path(file).name for file in summary["saved"]} == FILES
    assert {path.name for path in (folder / "results").iterdir()} == FILES
    assert (folder / "report.html").exists()
    X, Y = pair
    model = ContraPCA(2).fit(X, background=Y)
    rows = rows_of(folder / "results" / "coordinates.csv")
    assert [row["row"] for row in rows] == [*(f"s{i}" for i in range(40)), *(str(i + 1) for i in range(30))]
    assert [row["label"] for row in rows] == ["mild", "severe"] * 20 + [""] * 30
    found = np.array([[float(row["component_1"]), float(row["component_2"])] for row in rows])
    np.testing.assert_allclose(found[:40], model.transform(X))
    np.testing.assert_allclose(found[40:], model.transform(Y, center="background"))
    loadings = rows_of(folder / "results" / "loadings.csv")
    assert [row["feature"] for row in loadings] == [f"gene{j}" for j in range(6)]
    np.testing.assert_allclose([float(row["component_2"]) for row in loadings], model.loadings_[:, 1])
    text = (folder / "results" / "methods.txt").read_text(encoding="utf-8")
    assert text.startswith(f"{summary['methods']}\n\nLi, D., Jones, A. and Engelhardt")
    assert "doi = {10.48550/arXiv.2012.07977}" in text
    assert (folder / "results" / "figure.png").read_bytes()[:4] == b"\x89PNG"
    ElementTree.parse(folder / "results" / "figure.svg")
    assert "cases: mild" in (folder / "results" / "figure.svg").read_text(
        encoding="utf-8"
    )  # the legend, as on the page
    first = tree(folder / "results")
    assert run(*TABLES, "--labels", "stage", "--title", "Mine & <yours>", "--save", "results", "--force").code == 0
    assert tree(folder / "results") == first  # to the byte
    again = run(*TABLES, "-o", "other.html", "--save", "results")
    assert again.code == 2
    assert "exists: choose another --output, or add --force" in again.err
    assert not (folder / "other.html").exists()


def test_the_page_is_written_beside_the_cases_unless_told(folder, run):
    (folder / "data").mkdir()
    (folder / "cases.csv").rename(folder / "data" / "cases.csv")
    given = ["report", "data/cases.csv", *TABLES[2:], "--gammas", "3", "--no-test"]
    outcome = run(*given)
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[-1] == f"Report: {Path('data/report.html')}"
    page = (folder / "data" / "report.html").read_bytes()
    assert "exists: choose another --output, or add --force" in run(*given, "--seed", "1").err
    assert (folder / "data" / "report.html").read_bytes() == page


def test_saved_files_of_a_saved_model_without_labels(folder, run):
    fit = ["fit", "cases.csv", "--background", "controls.csv", "--ignore", "stage", "--components", "1", "-o", "r"]
    assert run(*fit, "--gamma", "0.1").code == 0
    outcome = run(*TABLES, "--ignore", "stage", "--model", "r/model.npz", "--no-test", "--save", "out")
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[-1] == f"Saved:  {Path('out/methods.txt')}"
    assert "gamma = 0.1000" in (folder / "out" / "methods.txt").read_text()
    assert "component_2" not in rows_of(folder / "out" / "loadings.csv")[0]
    tables = [rows_of(folder / name) for name in ("r/latents.csv", "out/coordinates.csv")]
    without_numbers = [[{**row, "component_1": None} for row in rows] for rows in tables]
    assert without_numbers[0] == without_numbers[1]


def test_reports_warn_of_what_fit_warns_of(folder, run, pair):
    """In the words of the command line, of the tables first."""
    for name, table, times in zip(("cases", "controls"), pair, (500, 1), strict=True):
        write_csv(folder / f"{name}.csv", [f"gene{j}" for j in range(6)], table * [1, 1, times, 1, 1, 1])
    given = [*TABLES[1:], "--scale", "none", "--no-test"]
    fit, report = run("fit", *given, "-o", "results"), run("report", *given, "--gammas", "2")
    assert "Component 1 is almost only the feature 'gene2'" in report.err
    assert "add --scale pooled" in report.err
    assert report.err == fit.err


def test_nothing_is_written_on_failure(folder, run):
    outcome = run(*TABLES, "--components", "9", "--save", "results")
    assert outcome.code == 2
    assert not (folder / "report.html").exists()
    assert not (folder / "results").exists()
