"""`contrapca test`, the verdict of fit and report, and blocks."""

import html
import json

import numpy as np
import pytest

from contrapca import Study, contrast_test
from csvfiles import write_csv

NAMES = [f"gene{j}" for j in range(6)]
TEST = ["test", "cases.csv", "--background", "controls.csv"]
FIT = ["fit", "cases.csv", "--background", "controls.csv", "-o", "results"]


@pytest.fixture
def donors(tmp_path, monkeypatch, need):
    """Tables of 12 rows for each of 8 donors a group, without contrast; names of rows in a column of their own."""
    need("polars")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    tables = []
    for file, first in (("cases.csv", 0), ("controls.csv", 8)):
        donor = np.repeat(np.arange(first, first + 8), 12)
        X = 2 * rng.standard_normal((16, 6))[donor] + rng.standard_normal((96, 6))
        rows = [[f"d{k}", f"d{k}_{i % 12}", *row] for i, (k, row) in enumerate(zip(donor, X.tolist(), strict=True))]
        write_csv(tmp_path / file, ["donor", "sample", *NAMES], rows)
        tables.append((X, [f"d{k}" for k in donor]))
    return tables


def test_the_command(folder, run, pair):
    X, Y = pair
    outcome = run(*TEST)
    assert outcome.code == 0
    assert outcome.err == ""
    expected = contrast_test(X, background=Y, random_state=0)
    assert outcome.out.startswith(f"{expected}\n")
    assert "cases.csv and controls.csv: 40 cases and 30 controls, 6 features" in outcome.out
    found = json.loads(run(*TEST, "--json").out)
    assert found["verdict"] == expected.verdict()
    assert found["test"]["n_components"] == expected.n_components
    assert [row["p"] for row in found["test"]["dimensions"]] == pytest.approx(expected.p_values.tolist())
    two = json.loads(run(*TEST, "--components", "2", "--scale", "pooled", "--seed", "5", "--json").out)
    other = contrast_test(X, background=Y, max_components=2, scale="pooled", random_state=5)
    assert [row["p"] for row in two["test"]["dimensions"]] == pytest.approx(other.p_values.tolist())
    assert (folder / "cases.csv").exists()
    assert len(list(folder.iterdir())) == 2  # nothing is written


def test_blocks(donors, run):
    (X, x), (Y, y) = donors
    outcome = run(*TEST, "--blocks", "donor")
    assert outcome.code == 0
    assert outcome.err == ""
    expected = contrast_test(Study(X, background=Y, blocks=(x, y)))
    assert outcome.out.startswith(f"{expected}\n")
    assert "8 + 8 blocks" in outcome.out
    assert "6 features; blocks are the 16 values of 'donor'" in outcome.out
    outcome = run(*TEST, "--blocks", "sample")
    assert outcome.out.startswith(f"{expected}\n")
    assert "blocks are the 16 beginnings of 'sample', such as 'd0' of 'd0_0'" in outcome.out


def test_blocks_of_one_file(donors, run, tmp_path):
    (X, x), (Y, y) = donors
    order = np.random.default_rng(1).permutation(192)
    rows = [
        [*pair, *values]
        for pair, values in zip(zip(["a"] * 96 + ["b"] * 96, x + y, strict=True), np.vstack([X, Y]), strict=True)
    ]
    write_csv(tmp_path / "all.csv", ["group", "donor", *NAMES], [rows[i] for i in order])
    outcome = run("test", "all.csv", "--group", "group", "--background", "b", "--blocks", "donor")
    assert outcome.code == 0
    left, right = order[order < 96], order[order >= 96]
    every = np.array(x + y)
    both = np.vstack([X, Y])
    expected = contrast_test(Study(both[left], background=both[right], blocks=(every[left], every[right])))
    assert outcome.out.startswith(f"{expected}\n")


def test_replicates_are_noticed(donors, run, tmp_path):
    assert "caution: The values of 'sample' look like replicates ('d0_0', 'd0_1', 'd1_0', ...)" in run(*TEST).err
    assert "Add --blocks sample." in run(*FIT).err
    assert run(*FIT, "--force").out.startswith("Without regard to replicates, which makes p-values too small, ")
    assert run(*TEST).out.startswith("Without regard to replicates, which makes p-values too small, ")
    assert "regard" not in run(*TEST, "--blocks", "sample").out
    (X, x), (Y, y) = donors
    for file, values, own in (("a.csv", X, x), ("b.csv", Y, y)):
        write_csv(tmp_path / file, ["mouse", *NAMES], [[name, *row] for name, row in zip(own, values, strict=True)])
    assert "The column 'mouse' may name whom" in run("test", "a.csv", "--background", "b.csv").err


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ("plate", "contrapca: --blocks: 'cases.csv' has no column 'plate', only "),
        ("stage", "contrapca: --blocks: 'controls.csv' has no column 'stage', only "),
    ],
)
def test_no_such_column(folder, run, column, says):
    for command in (TEST, FIT):
        outcome = run(*command, "--blocks", column)
        assert outcome.code == 2
        assert says in outcome.err
    assert not (folder / "results").exists()


def test_bad_blocks(donors, run, tmp_path):
    lines = (tmp_path / "cases.csv").read_text().splitlines()
    (tmp_path / "cases.csv").write_text("\n".join([*lines[:3], "," + lines[3].partition(",")[2], *lines[4:]]))
    outcome = run(*TEST, "--blocks", "donor")
    assert outcome.code == 2
    assert "1 of 96 rows of 'cases.csv' have nothing in the column 'donor'" in outcome.err
    (tmp_path / "cases.csv").write_text("\n".join([lines[0], *("d0," + line.partition(",")[2] for line in lines[1:])]))
    outcome = run(*FIT, "--blocks", "donor")
    assert outcome.code == 2
    assert outcome.err.endswith(
        "'cases.csv' has 1 block of cases: ratios on rows that the fit has not seen need at least 2 in each group.\n"
    )
    assert not (tmp_path / "results").exists()


def test_fit_begins_with_the_verdict(folder, run, pair):
    X, Y = pair
    outcome = run(*FIT)
    expected = contrast_test(X, background=Y, random_state=0)
    verdict = outcome.out.splitlines()[0]
    assert verdict.startswith("The cases vary more than chance allows in ")
    assert "component 1 (gene" in verdict.lower()
    assert "Variance of cases over that of controls, on rows that the fit has not seen:" in outcome.out
    found = json.loads(run(*FIT, "--json", "--force").out)
    assert found["verdict"] == verdict
    assert len(found["components"]) == 2
    assert all(entry["held_out_ratio"] > 0 for entry in found["components"])
    assert found["test"]["p_values"] == pytest.approx(expected.p_values.tolist())
    without = run(*FIT, "--no-test", "--force")
    assert without.out.startswith("cases.csv and controls.csv")
    assert json.loads(run(*FIT, "--no-test", "--force", "--json").out)["verdict"] is None
    alone = run("fit", "cases.csv", "--method", "ppca", "-o", "alone")
    assert alone.out.startswith("cases.csv: 40 cases")


def test_noise_is_called_noise(tmp_path, monkeypatch, run, need):
    need("polars")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    for file in ("cases.csv", "controls.csv"):
        write_csv(tmp_path / file, NAMES, rng.standard_normal((60, 6)))
    outcome = run(*FIT)
    assert outcome.code == 0
    assert outcome.out.startswith("Nothing found: the cases do not vary more than chance allows in any direction (p = ")


def test_missing_values(folder, run, pair):
    X = pair[0].copy()
    X[::3, 1] = np.nan
    write_csv(folder / "holes.csv", NAMES, X)
    arguments = ["holes.csv", "--background", "controls.csv"]
    outcome = run("fit", *arguments, "-o", "results", "--components", "1", "--gamma", "0.2")
    assert outcome.code == 0
    found = contrast_test(X, background=pair[1], max_components=10, random_state=0)
    rates = "5.8% of the cases' and 0.0% of the controls' values are missing. The groups miss different shares"
    assert outcome.out.splitlines()[0].startswith(found.verdict())
    assert outcome.out.splitlines()[1].startswith(rates)
    outcome = run("test", *arguments, "--json")
    assert json.loads(outcome.out)["test"]["missing"]["differ"]


def test_report_begins_with_the_verdict(donors, run, need, tmp_path):
    need("jinja2")
    (X, x), (Y, y) = donors
    arguments = ["report", "cases.csv", "--background", "controls.csv", "--gammas", "3", "-o", "page.html"]
    outcome = run(*arguments, "--blocks", "donor")
    assert outcome.code == 0, outcome.err
    expected = contrast_test(Study(X, background=Y, blocks=(x, y))).verdict()
    assert outcome.out.splitlines()[0] == expected
    page = (tmp_path / "page.html").read_text()
    assert 0 < page.index(html.escape(expected)) < page.index('class="card"')
    assert "blocks='donor'" in html.unescape(page)
    summary = json.loads(run(*arguments, "--no-test", "--force", "--json").out)
    assert summary["verdict"] is None
    assert 'id="verdict"' not in (tmp_path / "page.html").read_text()


@pytest.fixture
def cells(tmp_path, monkeypatch, need):
    """Log-normalised counts of one kind of cells, of the cases with 30 % of the molecules."""
    need("polars")
    monkeypatch.chdir(tmp_path)
    rng, names = np.random.default_rng(0), [f"gene{j}" for j in range(30)]
    tables = []
    for file, share in (("cases.csv", 0.3), ("controls.csv", 1.0)):
        counts = rng.binomial(rng.poisson(rng.gamma(2, 3, size=(120, 30))), share)
        tables.append(np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True)))
        write_csv(tmp_path / file, names, tables[-1].tolist())
    return tables


def test_cells_of_unequal_depth(cells, run, need):
    X, Y = cells
    warned, matched, ignored = (run(*TEST, "--depth", how) for how in ("warn", "match", "ignore"))
    assert "unequal depth alone can look like a contrast" in warned.err
    assert "Test with --depth match." in warned.err
    assert warned.err.count("unequal depth") == 1
    assert "depth" not in matched.err + ignored.err
    expected = contrast_test(X, background=Y, depth="match", random_state=0)
    assert matched.out.startswith(f"{expected}\n")
    assert "rows of equal depth" in matched.out
    assert ignored.out == warned.out
    assert "Nothing found" not in warned.out
    need("jinja2")
    report = ["report", "cases.csv", "--background", "controls.csv", "--gammas", "3", "-o", "page.html"]
    page = json.loads(run(*report, "--depth", "match", "--json").out)
    assert page["test"]["units"].endswith("of equal depth")
    assert not any("unequal depth" in caution for caution in page["cautions"])
    plain = json.loads(run(*report, "--force", "--json").out)
    assert sum("unequal depth" in caution for caution in plain["cautions"]) == 1


def test_tables_without_counts_have_no_equal_depth(folder, run):
    outcome = run(*TEST, "--depth", "match")
    assert outcome.code == 2
    assert "No counts can be recovered from the cases: --depth match takes counts" in outcome.err
