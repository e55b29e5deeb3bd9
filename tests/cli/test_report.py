"""`contrapca report`: the page, and the summary as JSON."""

import json

import numpy as np
import pytest

from contrapca import PCPCA, reporting
from csvfiles import write_csv

TABLES = ["report", "cases.csv", "--background", "controls.csv"]


@pytest.fixture(autouse=True)
def _libraries(need):
    for library in ("jinja2", "plotly", "matplotlib"):
        need(library)


def test_report(folder, run, pair):
    outcome = run(*TABLES, "--labels", "stage", "--gammas", "5", "--title", "Mine & yours", "-o", "page.html", "--json")
    assert outcome.code == 0
    summary = json.loads(outcome.out)
    X, Y = pair
    model = PCPCA(2).fit(X, background=Y)
    expected = reporting.summarize(model, X, Y, ["mild", "severe"] * 20, gammas=5)
    assert summary["data"]["labels"] == expected["data"]["labels"] == {"mild": 20, "severe": 20}
    assert summary["data"]["sources"] == ["cases.csv", "controls.csv"]
    np.testing.assert_allclose(summary["path"]["gammas"], expected["path"]["gammas"])
    assert summary["model"]["gamma"] == pytest.approx(model.gamma_)
    assert summary["code"]["command"].startswith("contrapca report cases.csv --background controls.csv --labels stage")
    page = (folder / "page.html").read_text()
    assert "Mine &amp; yours" in page
    assert "gene3" in page
    assert run(*TABLES, "-o", "page.html").code == 2  # it exists
    assert (folder / "page.html").read_text() == page


def test_report_of_a_saved_model(folder, run, pair):
    arguments = ["fit", "cases.csv", "--background", "controls.csv", "--gamma", "0.2", "--components", "1", "-o", "r"]
    assert run(*arguments).code == 0
    write_csv(folder / "more.csv", ["new", *(f"gene{j}" for j in range(6))], np.column_stack([pair[1][:, 0], pair[1]]))
    outcome = run("report", "cases.csv", "--background", "more.csv", "--model", "r/model.npz", "-o", "p.html", "--json")
    summary = json.loads(outcome.out)
    assert summary["model"]["gamma"] == 0.2
    assert summary["model"]["n_components"] == 1
    assert summary["data"]["features"] == 6


def test_report_with_uncertainty(folder, run):
    arguments = [*TABLES, "--gammas", "3", "--uncertainty", "bootstrap", "--gamma", "0.2", "-o", "p.html"]
    assert json.loads(run(*arguments, "--json").out)["uncertainty"] is not None
    again = (folder / "p.html").read_bytes()
    outcome = run(*arguments, "--force")
    assert outcome.out.splitlines()[-1] == "Report: p.html"
    assert len((folder / "p.html").read_bytes()) > 0.9 * len(again)
