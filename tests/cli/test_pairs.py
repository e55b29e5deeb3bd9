"""`--pairs` and `--covariates`: the same numbers as in Python, and clear errors."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca import ContraPCA, Study, contrast_test, load
from csvfiles import write_csv

NAMES = [f"gene{j}" for j in range(6)]
TABLES = ["cases.csv", "--background", "controls.csv"]


@pytest.fixture
def visits(tmp_path, monkeypatch, need):
    """24 donors with age and sex, cases and controls in another order, in two files and in one."""
    need("polars")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    level, found, both = 2 * rng.standard_normal((24, 6)), {}, []
    for name in ("cases", "controls"):
        order = rng.permutation(24)
        age, sex = rng.uniform(20, 80, 24).round(1), rng.choice(["F", "M"], 24)
        X = (level[order] + rng.standard_normal((24, 6)) + np.outer(age, np.arange(6) / 10)).round(6)
        donors = [f"donor {chr(97 + k)}" for k in order]
        rows = [[d, a, s, *row] for d, a, s, row in zip(donors, age, sex, X.tolist(), strict=True)]
        write_csv(tmp_path / f"{name}.csv", ["donor", "age", "sex", *NAMES], rows)
        both += [[name, *row] for row in rows]
        found[name] = X, donors, np.column_stack([age, sex == "M"]).astype(float)
    write_csv(tmp_path / "both.csv", ["visit", "donor", "age", "sex", *NAMES], both)
    return found["cases"], found["controls"]


def test_the_test(visits, run):
    (X, x, zx), (Y, y, zy) = visits
    expected = contrast_test(Study(X, background=Y, blocks=(x, y), paired=True, covariates=(zx, zy)))
    expected = np.median(expected.statistics, axis=0).tolist()
    for options in (
        [*TABLES, "--covariates", "age,sex"],
        [*TABLES, "--covariates", "age, sex"],
        ["both.csv", "--group", "visit", "--background", "controls", "--covariates", "age", "--covariates", "sex"],
    ):
        outcome = run("test", *options, "--pairs", "donor", "--json")
        assert outcome.err == ""
        found = json.loads(outcome.out)["test"]["dimensions"]
        assert [row["statistic"] for row in found] == pytest.approx(expected, rel=1e-6)
    plain = json.loads(run("test", *TABLES, "--pairs", "donor", "--ignore", "age", "--json").out)
    assert plain["test"]["dimensions"][0]["statistic"] != pytest.approx(expected[0], rel=1e-3)  # the control
    said = run("test", *TABLES, "--pairs", "donor", "--covariates", "age").out
    assert "pairs are the 24 values of 'donor'; without the effect of 'age'" in said


def test_a_saved_model_adjusts_new_rows(visits, run, tmp_path):
    (X, _, zx), (Y, _, zy) = visits
    assert run("fit", *TABLES, "--pairs", "donor", "--covariates", "age", "sex", "-o", "results").code == 0
    model, expected = (
        load("results/model.npz"),
        ContraPCA().fit(Study(X, background=Y, covariates=(zx, zy))),
    )
    assert model.covariate_names_.tolist() == ["age", "sex=M"]
    np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-8)
    assert run("transform", "results/model.npz", "cases.csv", "-o", "new.csv").code == 0
    new = np.genfromtxt("new.csv", delimiter=",", skip_header=1)[:, 1:]
    np.testing.assert_allclose(new, expected.transform(X, covariates=zx), rtol=1e-6)
    latents = np.genfromtxt("results/latents.csv", delimiter=",", skip_header=1)[:, 2:]
    np.testing.assert_allclose(latents[:24], new, rtol=1e-6)
    write_csv(tmp_path / "no_age.csv", ["sex", *NAMES], [["F", *row] for row in X.tolist()])
    failed = run("transform", "results/model.npz", "no_age.csv", "-o", "other.csv")
    assert failed.code != 0
    assert "'no_age.csv' has no column 'age': add it" in failed.err
    failed = run("report", *TABLES, "--model", "results/model.npz", "-o", "report.html")
    assert "was fitted with covariates: leave --model out" in failed.err


@pytest.mark.slow  # anndata
def test_annotations_of_cells(tmp_path, monkeypatch, run, need):
    """Numbers of `obs`, which are read as text, are numbers; sparse genes are refused."""
    anndata, pd = need("anndata"), need("pandas")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age, group = rng.uniform(20, 80, 40), np.repeat(["case", "control"], 20)
    obs = pd.DataFrame({"age": age, "group": group}, index=[f"c{i}" for i in range(40)])
    X = rng.normal(size=(40, 5)) + age[:, None]
    anndata.AnnData(X, obs=obs).write_h5ad("cells.h5ad")
    anndata.AnnData(sp.csr_matrix(X), obs=obs).write_h5ad("sparse.h5ad")
    options = ["--group", "group", "--background", "control", "--covariates", "age", "--json"]
    found = json.loads(run("test", "cells.h5ad", *options).out)["test"]["dimensions"]
    study = Study(X[:20], background=X[20:], covariates=(age[:20], age[20:]))
    expected = np.median(contrast_test(study).statistics, axis=0).tolist()
    assert [row["statistic"] for row in found] == pytest.approx(expected, rel=1e-6)
    assert "--covariates: 'sparse.h5ad' is sparse" in run("test", "sparse.h5ad", *options).err


def test_one_group(visits, run):
    assert (
        run("fit", "cases.csv", "--method", "ppca", "--covariates", "age", "--ignore", "sex", "-o", "alone").code == 0
    )
    assert load("alone/model.npz").covariate_names_.tolist() == ["age"]


@pytest.mark.slow
def test_a_report(visits, run, need):
    need("jinja2")
    need("jinja2")
    outcome = run("report", *TABLES, "--pairs", "donor", "--covariates", "age", "sex", "-o", "report.html", "--json")
    assert json.loads(outcome.out)["test"]["units"] == "24 pairs"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pairs", "nobody"], "--pairs: 'cases.csv' has no column 'nobody'"),
        (
            ["--pairs", "age"],
            "are only among the cases, and a pair has rows in both groups. Spell them alike, leave these rows out, or "
            "use --blocks age, which may be in one group only.",
        ),
        (["--pairs", "donor", "--blocks", "donor"], "--pairs and --blocks cannot be used together"),
        (["--covariates", "age,weight"], "--covariates: 'cases.csv' has no column 'weight'"),
        (["--covariates", "donor"], "The covariates explain the cases entirely"),
    ],
)
def test_errors(visits, run, options, message):
    outcome = run("test", *TABLES, *options)
    assert outcome.code != 0
    assert message in outcome.err
