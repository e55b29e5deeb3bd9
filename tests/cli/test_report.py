"""`contrapca report`: the page, and the summary as JSON."""

import html
import json
import os
import re

import numpy as np
import pytest

from contrapca import CLVM, CPCA, ContraPCA, RatioPCA, SparseCPCA, Study, bootstrap, contrast_path, read, reporting
from contrapca.data.rows import _numpy
from csvfiles import write_csv

TABLES = ["report", "cases.csv", "--background", "controls.csv"]


@pytest.fixture(autouse=True)
def _libraries(need):
    for library in ("jinja2", "matplotlib"):
        need(library)


def test_report(folder, run, pair):
    outcome = run(*TABLES, "--labels", "stage", "--gammas", "5", "--title", "Mine & yours", "-o", "page.html", "--json")
    assert outcome.code == 0
    summary = json.loads(outcome.out)
    X, Y = pair
    model = ContraPCA(2).fit(X, background=Y)
    expected = reporting.summarize(Study(X, background=Y, labels=["mild", "severe"] * 20), model, gammas=5)
    assert summary["data"]["labels"] == expected["data"]["labels"] == {"mild": 20, "severe": 20}
    assert summary["data"]["label_name"] == "stage"
    assert summary["data"]["sources"] == ["cases.csv", "controls.csv"]
    np.testing.assert_allclose(summary["path"]["gammas"], expected["path"]["gammas"])
    assert summary["model"]["gamma"] == pytest.approx(model.gamma_)
    assert summary["code"]["command"].startswith("contrapca report cases.csv --background controls.csv --labels stage")
    page = (folder / "page.html").read_text()
    assert "Mine &amp; yours" in page
    assert "gene3" in page
    assert run(*TABLES, "-o", "page.html").code == 2  # it exists
    assert (folder / "page.html").read_text() == page


@pytest.mark.parametrize("options", [["--labels", "stage"], ["--group", "stage", "--background", "mild"]])
def test_the_code_on_the_page_runs_as_shown(folder, run, options):
    """With the tables of the command, as it reads them."""
    tables = TABLES[:2] if "--group" in options else TABLES
    arguments = [*tables, *options, "--gammas", "3", "--ignore", "gene1", "--title", "A 'title'", "-o", "page.html"]
    summary = json.loads(run(*arguments, "--json").out)
    names = {}
    assert summary["code"]["command"] in html.unescape((folder / "page.html").read_text())
    exec(summary["code"]["python"], names)
    assert (folder / "report_again.html").exists()
    again = reporting.summarize(names["study"], names["model"], gammas=3)
    assert summary["data"]["features"] == 5
    assert again["components"] == summary["components"]


def test_report_of_a_saved_model(folder, run, pair):
    arguments = ["fit", "cases.csv", "--background", "controls.csv", "--gamma", "0.2", "--components", "1", "-o", "r"]
    assert run(*arguments).code == 0
    write_csv(folder / "more.csv", ["new", *(f"gene{j}" for j in range(6))], np.column_stack([pair[1][:, 0], pair[1]]))
    outcome = run("report", "cases.csv", "--background", "more.csv", "--model", "r/model.npz", "-o", "p.html", "--json")
    summary = json.loads(outcome.out)
    assert summary["model"]["gamma"] == 0.2
    assert summary["model"]["n_components"] == 1
    assert summary["data"]["features"] == 6


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--components", "2"], "--components cannot be used with --model: the saved model has its own."),
        (["--gamma", "auto", "--scale", "none"], "--gamma and --scale cannot be used with --model"),
        (["--method", "pcpca"], "--method cannot be used with --model"),
        (["--uncertainty", "posterior"], "--uncertainty posterior cannot be used with --model 'r/model.npz'"),
        (["--uncertainty", "bootstrap"], "'r/model.npz': it was fitted without controls. Fit one with --background"),
    ],
)
def test_what_goes_not_with_a_saved_model(folder, run, arguments, says):
    assert run("fit", "cases.csv", "--method", "ppca", "-o", "r").code == 0
    outcome = run(*TABLES, "--model", "r/model.npz", *arguments, "-o", "p.html")
    assert outcome.code == 2
    assert says in outcome.err
    assert not (folder / "p.html").exists()


def test_report_of_a_saved_ppca(folder, run):
    """It was fitted without controls, which the report adds."""
    assert run("fit", "cases.csv", "--method", "ppca", "-o", "r").code == 0
    outcome = run(*TABLES, "--model", "r/model.npz", "--gammas", "3", "-o", "p.html", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["model"]["estimator"] == "PPCA"


@pytest.mark.parametrize("method", ["cpca", "pcpca"])
def test_posterior_of_a_saved_model(folder, run, method, need):
    if method == "pcpca":
        need("nutpie")
    arguments = ["fit", "cases.csv", "--background", "controls.csv", "--gamma", "0.2", "--components", "1"]
    assert run(*arguments, "--method", method, "-o", "r").code == 0
    settings = ["--model", "r/model.npz", "--gammas", "3", "--uncertainty", "posterior"]
    outcome = run(*TABLES, *settings, "-o", "p.html", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)["uncertainty"]
    assert (found["kind"], found["draws"]) == ("gibbs", 4000)


def test_rows_are_read_once(folder, run, monkeypatch):
    """The model is fitted with the report: each group is reduced to its moments once."""
    calls = []
    scatter = _numpy.scatter
    monkeypatch.setattr(_numpy, "scatter", lambda rows, *rest: calls.append(len(rows)) or scatter(rows, *rest))
    assert run(*TABLES, "--gammas", "5", "--no-test", "-o", "p.html").code == 0
    assert calls[:2] == [40, 30]
    assert sum(calls[2:]) == 70  # once more in folds, for ratios on unseen rows


def test_models_that_no_report_is_about(folder, run, pair):
    CLVM(1, 1).fit(pair[0], background=pair[1]).save(folder / "clvm.npz")
    outcome = run(*TABLES, "--model", "clvm.npz", "-o", "p.html")
    assert outcome.code == 2
    assert "--model 'clvm.npz' holds a CLVM: a report is about a PPCA, ContraPCA, PCPCA, CPCA" in outcome.err


SAVED = {
    "RatioPCA": lambda X, Y: RatioPCA(1).fit(X, background=Y),
    "SparseCPCA": lambda X, Y: SparseCPCA(1, sparsity=3, gamma=0.5).fit(X, background=Y),
    "ContrastPath": lambda X, Y: contrast_path(CPCA(1), X, background=Y, gammas=[0.0, 0.5]),
}


@pytest.mark.parametrize("name", SAVED)
def test_reports_of_what_report_takes(folder, run, pair, name):
    SAVED[name](*pair).save(folder / "saved.npz")
    for file, table in zip(("cases.npy", "controls.npy"), pair, strict=True):  # columns in the same order
        np.save(folder / file, table)
    given = ["report", "cases.npy", "--background", "controls.npy", "--model", "saved.npz", "--no-test", "-o", "p.html"]
    outcome = run(*given, "--json")
    assert outcome.code == 0, outcome.err
    shown = json.loads(outcome.out)["model"]
    assert (shown["estimator"], shown["n_components"]) == ("CPCA" if name == "ContrastPath" else name, 1)
    refused = run(*given, "--force", "--uncertainty", "posterior")
    assert refused.code == 2
    assert f"there is no posterior of a {name}. Leave it out." in refused.err


def test_a_saved_path_has_its_own_gammas(folder, run, pair):
    SAVED["ContrastPath"](*pair).save(folder / "path.npz")
    outcome = run(*TABLES, "--model", "path.npz", "--gammas", "3", "-o", "p.html")
    assert (outcome.code, "a path has its own" in outcome.err) == (2, True)


def test_names_that_are_no_text(folder, run):
    """Bytes of a file's name that are no UTF-8 reach Python as surrogates, which no page can hold."""
    name = os.fsdecode(b"caf\xe9.csv")
    (folder / "cases.csv").rename(folder / name)
    arguments = ["report", name, "--background", "controls.csv", "--gammas", "3", "--title", name, "-o", "p.html"]
    outcome = run(*arguments, "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["data"]["sources"] == ["caf\\udce9.csv", "controls.csv"]


def test_the_same_command_gives_the_same_page(folder, run, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    arguments = [*TABLES, "--labels", "stage", "--gammas", "5", "--uncertainty", "bootstrap", "--gamma", "0.2"]
    pages = []
    for _ in range(2):
        assert run(*arguments, "-o", "p.html", "--force").code == 0
        pages.append((folder / "p.html").read_bytes())
    assert pages[0] == pages[1]


def test_report_with_uncertainty(folder, run):
    arguments = [*TABLES, "--gammas", "3", "--uncertainty", "bootstrap", "--gamma", "0.2", "-o", "p.html"]
    assert json.loads(run(*arguments, "--json").out)["uncertainty"] is not None
    again = (folder / "p.html").read_bytes()
    outcome = run(*arguments, "--force")
    assert outcome.out.splitlines()[-1] == "Report: p.html"
    assert len((folder / "p.html").read_bytes()) > 0.9 * len(again)


@pytest.mark.parametrize("change", ["none", "identifier", "code", "twice", "wide", "outlier"])
def test_fit_prints_what_report_shows(folder, run, pair, change):
    """The same cautions, in the same words, on the terminal, in both summaries and on the page."""
    X, Y = (table.copy() for table in pair)
    names = [f"gene{j}" for j in range(6)]
    if change == "identifier":
        X[:, 0], Y[:, 0] = np.arange(len(X)), np.arange(100, 100 + len(Y))
    if change == "code":
        X[[2, 5], 3] = 999
    if change == "twice":
        Y = X
    if change == "wide":
        X, Y = X[:5], Y[:5]
    if change == "outlier":
        X[7] += 200
    write_csv(folder / "cases.csv", names, X)
    write_csv(folder / "controls.csv", names, Y)
    tables = ["cases.csv", "--background", "controls.csv", "--components", "1", "--no-test", "--json"]
    fitted = run("fit", *tables, "-o", "results")
    reported = run("report", *tables, "--gammas", "5", "-o", "page.html")
    cautions = json.loads(fitted.out)["cautions"]
    assert cautions == json.loads(reported.out)["cautions"]
    said = [f"contrapca: caution: {caution}" for caution in cautions]
    assert fitted.err.splitlines() == reported.err.splitlines() == said
    page = html.unescape((folder / "page.html").read_text())
    assert all(caution in page for caution in cautions)
    assert bool(cautions) is (change != "none")


@pytest.fixture(scope="module")
def by_donor():
    """Cases of 8 donors with 6 rows each that are nearly alike, and controls of 8 others, with 5 features."""
    rng = np.random.default_rng(0)
    donors = np.repeat(np.arange(16), 6)
    rows = (rng.standard_normal((16, 5)) * [3, 1, 1, 1, 1])[donors] + 0.1 * rng.standard_normal((96, 5))
    return rows[:48], rows[48:] / [3, 1, 1, 1, 1], donors[:48], donors[48:]


def test_intervals_of_a_report_by_donor_resample_donors(tmp_path, run, monkeypatch, need, by_donor):
    """As wide as the bootstrap of whole donors, which that of rows is not; the code on the page gives them again."""
    need("polars")
    monkeypatch.chdir(tmp_path)
    X, Y, donors, others = by_donor
    for name, table, own in (("cases", X, donors), ("controls", Y, others)):
        rows = [[f"d{k}", *row] for k, row in zip(own, table.tolist(), strict=True)]
        write_csv(tmp_path / f"{name}.csv", ["donor", *(f"gene{j}" for j in range(5))], rows)
    given = [*TABLES, "--blocks", "donor", "--uncertainty", "bootstrap", "--method", "cpca", "--components", "1"]
    outcome = run(*given, "--gamma", "0.5", "--gammas", "2", "--seed", "7", "-o", "page.html", "--json")
    assert outcome.code == 0, outcome.err
    summary = json.loads(outcome.out)
    model = CPCA(1, gamma=0.5).fit(X, background=Y)
    study = Study(X, background=Y, blocks=(donors, others))
    by_blocks = bootstrap(model, study, random_state=7)
    by_rows = bootstrap(model, X, background=Y, random_state=7)

    def width(refits):
        return np.degrees(np.quantile(refits.angles()[..., 0], 0.9))

    assert summary["uncertainty"]["angle_upper"] == pytest.approx(width(by_blocks))
    assert width(by_blocks) > 1.5 * width(by_rows)  # the control: the difference can be seen
    assert "bootstrap(model, study, random_state=7)" in summary["code"]["python"]
    names = {}
    exec(summary["code"]["python"], names)
    np.testing.assert_allclose(names["draws"].W, by_blocks.W, atol=1e-12)
    assert not [caution for caution in summary["cautions"] if "come in blocks" in caution]
    told = reporting.summarize(study, model, uncertainty=by_rows, test=False, gammas=2)
    assert [caution for caution in told["cautions"] if "come in blocks" in caution]


def test_the_code_for_covariates_runs_as_shown(tmp_path, run, monkeypatch, need):
    need("polars")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("cases", "controls"):
        age = rng.uniform(20, 80, size=40)
        rows = np.column_stack([age, rng.normal(size=(40, 5)) + age[:, None] / 40])
        write_csv(tmp_path / f"{name}.csv", ["age", *(f"gene{j}" for j in range(5))], rows)
    outcome = run(*TABLES, "--covariates", "age", "--gammas", "2", "--no-test", "-o", "page.html", "--json")
    assert outcome.code == 0, outcome.err
    summary, names = json.loads(outcome.out), {}
    exec(summary["code"]["python"], names)
    assert names["study"].covariates is None
    again = reporting.summarize(names["study"], names["model"], gammas=2, test=False)
    assert again["components"] == summary["components"]
    saved = ["--covariates", "age", "--model", "model.npz", "--gammas", "2", "--no-test", "-o", "other.html", "--json"]
    names["model"].save("model.npz")
    other = json.loads(run(*TABLES, *saved).out)
    assert "contrapca.read" not in other["code"]["python"]


def colours(page):
    """What a page can colour points by."""
    points = re.search(r'<script type="application/json" id="points">(.*?)</script>', page)
    return [column["name"] for column in json.loads(points[1])["columns"]]


def test_covariates_are_colours_as_in_python(tmp_path, run, monkeypatch, need):
    need("polars")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("cases", "controls"):
        rows = [[20 + i, "mf"[i % 3 > 0], f"{name}{i // 5}", *rng.normal(size=5).tolist()] for i in range(40)]
        write_csv(tmp_path / f"{name}.csv", ["age", "sex", "donor", *(f"gene{j}" for j in range(5))], rows)
    given = [*TABLES, "--covariates", "age", "sex", "--blocks", "donor", "--gammas", "2", "--no-test"]
    assert run(*given, "-o", "page.html").code == 0
    offered = colours((tmp_path / "page.html").read_text())
    assert [name for name in offered if name in ("age", "sex", "block")] == ["block", "age", "sex"]
    study = read("cases.csv", background="controls.csv", covariates=["age", "sex"], blocks="donor")
    assert offered == colours(reporting.report(study, None, gammas=2, test=False).page)
