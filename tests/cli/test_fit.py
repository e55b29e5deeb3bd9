"""`contrapca fit` against the library called directly."""

import gzip
import json
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import contrapca
from contrapca import CPCA, PCPCA, PPCA, ContraPCA
from contrapca._util.text import format_gamma
from csvfiles import columns_of, read_csv, write_csv

NAMES = [f"gene{j}" for j in range(6)]
TWO_FILES = ["fit", "cases.csv", "--background", "controls.csv", "-o", "results"]


@pytest.mark.parametrize("method", ["pcpca", "cpca"])
def test_two_files(folder, run, pair, method):
    X, Y = pair
    outcome = run(*TWO_FILES, "--method", method, "--labels", "stage", "--scale", "pooled")
    assert outcome.code == 0
    assert outcome.err == ""
    expected = {"pcpca": PCPCA, "cpca": CPCA}[method](2, scale="pooled").fit(X, background=Y)
    latents = ["row", "group", "label", "component_1", "component_2"]
    table = read_csv(folder / "results" / "latents.csv")
    assert table[0] == latents
    assert table[1][:3] == ["s0", "case", "mild"]
    assert table[41][:3] == ["1", "control", ""]  # controls.csv has no names of rows and no such column
    found = columns_of(folder / "results" / "latents.csv", latents[3:])
    both = np.vstack([expected.transform(X), expected.transform(Y, center="background")])
    np.testing.assert_allclose(found, both, atol=1e-12)
    loadings = read_csv(folder / "results" / "loadings.csv")
    assert [row[0] for row in loadings[1:]] == [
        NAMES[int(name.removeprefix("x"))] for name in expected.feature_table()["feature"]
    ]
    assert [int(row[-1]) for row in loadings[1:]] == list(range(1, 7))
    model = contrapca.load(folder / "results" / "model.npz")
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-12)
    assert f"gamma = {format_gamma(model.gamma_)}" in outcome.out
    assert sorted(path.name for path in (folder / "results").iterdir()) == ["latents.csv", "loadings.csv", "model.npz"]


@pytest.mark.parametrize("numeric", [False, True])
def test_one_file_with_groups(folder, run, pair, numeric):
    X, Y = pair
    values = np.vstack([X, Y])
    order = np.random.default_rng(0).permutation(70)
    group = np.repeat([1, 0] if numeric else ["ill", "well"], [40, 30])
    rows = [[group[i], *values[i]] for i in order]
    write_csv(folder / "all.csv", ["status", *NAMES], rows)
    value = "0" if numeric else "well"
    outcome = run("fit", "all.csv", "--group", "status", "--background", value, "-o", "results", "--gamma", "0.2")
    assert outcome.code == 0
    cases, controls = values[order[order < 40]], values[order[order >= 40]]
    expected = ContraPCA(2, gamma=0.2).fit(cases, background=controls)
    found = columns_of(folder / "results" / "latents.csv", ["row", "component_1", "component_2"])
    np.testing.assert_allclose(found[:40, 1:], expected.transform(cases), atol=1e-12)
    np.testing.assert_allclose(found[40:, 1:], expected.transform(controls, center="background"), atol=1e-12)
    np.testing.assert_array_equal(found[:40, 0], np.flatnonzero(order < 40) + 1)  # rows are numbered as in the file


def test_ppca_and_no_contrast_need_no_controls(folder, run, pair):
    X, _ = pair
    assert run("fit", "cases.csv", "--method", "ppca", "-o", "a").code == 0
    assert run("fit", "cases.csv", "--method", "pcpca", "--gamma", "0", "-o", "b").code == 0
    expected = PPCA(2).fit(X).transform(X)
    np.testing.assert_allclose(
        columns_of(folder / "a" / "latents.csv", ["component_1", "component_2"]), expected, atol=1e-12
    )
    np.testing.assert_allclose(
        columns_of(folder / "b" / "latents.csv", ["component_1", "component_2"]), expected, atol=1e-9
    )
    assert "cases alone" in run(*TWO_FILES, "--method", "ppca").err


@pytest.mark.parametrize(
    "ending", ["tsv", "txt.gz", "zip", "xlsx", "parquet", "npy", "npz", "sparse.npz", "mtx", "h5ad"]
)
def test_formats(tmp_path, monkeypatch, run, need, pair, ending):
    """The same tables in every format give the same latents."""
    if ending in ("tsv", "txt.gz", "zip", "xlsx", "parquet"):
        need("polars")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path
    for name, values in zip(("x", "y"), pair, strict=True):
        write_format(folder / f"{name}.{ending}", values, need)
    assert run("fit", f"x.{ending}", "--background", f"y.{ending}", "-o", "results", "--gamma", "0.3").code == 0
    expected = ContraPCA(2, gamma=0.3).fit(pair[0], background=pair[1]).transform(pair[0])
    found = columns_of(folder / "results" / "latents.csv", ["component_1", "component_2"])[:40]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    model = contrapca.load(folder / "results" / "model.npz")
    assert hasattr(model, "feature_names_in_") == (ending not in ("npy", "npz", "sparse.npz", "mtx"))


def test_sheets_of_one_workbook(tmp_path, monkeypatch, run, need, pair):
    xlsxwriter, polars = need("xlsxwriter"), need("polars")
    need("fastexcel")
    monkeypatch.chdir(tmp_path)
    with xlsxwriter.Workbook("book.xlsx") as book:
        for name, values in zip(("cases", "controls"), pair, strict=True):
            polars.DataFrame(values, schema=NAMES).write_excel(book, name)
    arguments = [
        "fit",
        "book.xlsx",
        "--background",
        "book.xlsx",
        "--sheet",
        "cases",
        "--sheet",
        "controls",
        "-o",
        "results",
    ]
    outcome = run(*arguments, "--gamma", "0.3")
    assert outcome.code == 0
    assert "book.xlsx (sheet cases) and book.xlsx (sheet controls): 40 cases and 30 controls" in outcome.out
    first_sheet_twice = run(*arguments[:4], "-o", "other")
    assert "are the same table" in first_sheet_twice.err
    assert "for two sheets of one workbook, add --sheet CASES --sheet CONTROLS." in first_sheet_twice.err
    polars.DataFrame(pair[1], schema=NAMES).write_csv("plain.csv")
    one_sheet = run("test", "book.xlsx", "--background", "plain.csv", "--sheet", "cases")  # which a CSV file has not
    assert "book.xlsx (sheet cases) and plain.csv: 40 cases and 30 controls" in one_sheet.out
    transform = ["transform", "results/model.npz", "book.xlsx", "-o"]
    assert run(*transform, "cases.csv").code == 0
    assert run(*transform, "controls.csv", "--sheet", "controls", "--center", "background").code == 0
    axes = ["component_1", "component_2"]
    found = np.vstack([columns_of(tmp_path / name, axes) for name in ("cases.csv", "controls.csv")])
    np.testing.assert_allclose(found, columns_of(tmp_path / "results" / "latents.csv", axes), atol=1e-9)
    outcome = run(*arguments, "--sheet", "more", "--force")
    assert (outcome.code, "'book.xlsx' has no sheet 'more', only 'cases', 'controls'" in outcome.err) == (2, True)


def write_format(path, values, need):
    """One table in the format that its name says."""
    match path.name.partition(".")[2]:
        case "tsv":
            write_csv(path, NAMES, values, "\t")
        case "txt.gz":
            plain = write_csv(path.with_suffix(""), NAMES, values, ";")
            path.write_bytes(gzip.compress(plain.read_bytes()))
        case "npy":
            np.save(path, values)
        case "npz":
            np.savez(path, table=values)
        case "sparse.npz":
            sp.save_npz(path, sp.csr_matrix(values))
        case "mtx":
            scipy.io.mmwrite(path, sp.coo_matrix(values), precision=17)
        case "parquet":
            need("polars").DataFrame(values, schema=NAMES).write_parquet(path)
        case "xlsx":
            need("xlsxwriter")
            need("fastexcel")
            need("polars").DataFrame(values, schema=NAMES).write_excel(path)
        case "zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.write(write_csv(path.with_suffix(".csv"), NAMES, values), "folder/table.csv")
        case "h5ad":
            table = need("pandas").DataFrame(values, columns=NAMES, index=[f"r{i}" for i in range(len(values))])
            need("anndata").AnnData(table).write_h5ad(path)


def test_missing_values(folder, run, pair):
    X, Y = pair
    X = X.copy()
    X[::3, 1] = np.nan
    write_csv(folder / "holes.csv", NAMES, X)
    arguments = ["fit", "holes.csv", "--background", "controls.csv", "--components", "1", "-o", "results"]
    outcome = run(*arguments)
    expected = ContraPCA(1, random_state=0).fit(X, background=Y)
    bound = f"gamma = {expected.gamma_:.4f} (upper bound {expected.gamma_max_:.4f} with {expected.n_latent_} dim"
    assert bound in outcome.out
    assert bound in run("info", "results/model.npz").out
    np.testing.assert_allclose(
        columns_of(folder / "results" / "latents.csv", ["component_1"])[:40], expected.transform(X), atol=1e-9
    )


def test_missing_labels_are_empty(folder, run, pair):
    X, Y = pair
    for labels in ([f"{i / 8}" for i in range(38)], ["x", "y"] * 19):
        rows = [[label, *row] for label, row in zip([*labels, "NA", ""], X.tolist(), strict=True)]
        write_csv(folder / "cases.csv", ["label", *NAMES], rows)
        assert run(*TWO_FILES, "--labels", "label", "--force").code == 0
        found = [row[2] for row in read_csv(folder / "results" / "latents.csv")[1:]]
        assert found == [*(label.removesuffix(".0") for label in labels), "", "", *[""] * len(Y)]


def test_several_groups_of_cases_are_named(folder, run, pair):
    X, Y = pair
    groups = ["control"] * len(Y) + ["none", "severe"] * (len(X) // 2)
    rows = [[group, *row] for group, row in zip(groups, np.vstack([Y, X]).tolist(), strict=True)]
    write_csv(folder / "all.csv", ["g", *NAMES], rows)
    outcome = run("fit", "all.csv", "--group", "g", "--background", "control", "-o", "results")
    assert "40 cases and 30 controls" in outcome.out
    assert "; cases are all rows except 'control': 'none', 'severe'\n" in outcome.out


def test_common_columns(folder, run, pair):
    X, Y = pair
    write_csv(folder / "fewer.csv", [*NAMES[:4], "extra"], np.column_stack([Y[:, :4], Y[:, 0]]))
    outcome = run("fit", "cases.csv", "--background", "fewer.csv", "--common", "-o", "results")
    assert outcome.code == 0
    assert "4 features" in outcome.out
    assert "Not used as features: sample, stage, gene4, gene5" in outcome.out
    expected = ContraPCA(2).fit(X[:, :4], background=Y[:, :4])
    found = columns_of(folder / "results" / "latents.csv", ["component_1", "component_2"])[:40]
    np.testing.assert_allclose(found, expected.transform(X[:, :4]), atol=1e-12)


@pytest.mark.parametrize("name", ["patient_id", "MouseID", "plate", "run"])
def test_numbers_of_rows_are_no_features(folder, run, pair, name):
    """Whole numbers under the name of an identifier are left out, and that is said; other numbers are features."""
    X, Y = pair
    arguments = ["fit", "c.csv", "--background", "k.csv", "-o", "results", "--force"]

    def fitted(shift):
        for file, values in (("c.csv", X), ("k.csv", Y)):
            write_csv(folder / file, [name, *NAMES], np.column_stack([np.arange(len(values)) // 4 + shift, values]))
        return run(*arguments)

    outcome = fitted(0)
    assert f"caution: {name!r} is not analysed" in outcome.err
    assert f"Add --blocks {name}." in outcome.err
    assert "6 features" in outcome.out
    assert f"Not used as features: {name}\n" in outcome.out
    assert "is not analysed" not in run(*arguments, "--ignore", name).err
    outcome = fitted(0.5)
    assert "is not analysed" not in outcome.err
    assert "7 features" in outcome.out


def test_labels_are_a_scale_or_classes(folder, pair):
    X, _ = pair
    ages = np.linspace(20, 60.5, 40)
    write_csv(folder / "aged.csv", ["age", "batch", *NAMES], np.column_stack([ages, np.arange(40) % 3, X]))
    study = contrapca.read("aged.csv", background="controls.csv", ignore="batch", labels="age")
    np.testing.assert_allclose(study.labels.foreground, ages)
    study = contrapca.read("aged.csv", background="controls.csv", ignore="age", labels="batch")
    assert study.labels.foreground.tolist()[:4] == ["0", "1", "2", "0"]


def test_nothing_is_overwritten_without_force(folder, run, tree):
    assert run(*TWO_FILES).code == 0
    before = tree(folder)
    outcome = run(*TWO_FILES, "--gamma", "0.1")
    assert outcome.code == 2
    assert "'results/model.npz' exists" in outcome.err
    assert tree(folder) == before
    assert run(*TWO_FILES, "--gamma", "0.1", "--force").code == 0
    after = tree(folder)
    assert after.keys() == before.keys()
    assert after["results/latents.csv"] != before["results/latents.csv"]


def test_a_failure_half_way_leaves_what_was_there(folder, run, tree, monkeypatch):
    from contrapca.cli import _fit

    def full(path, columns):
        path.write_text("half")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(_fit, "write_columns", full)
    before = tree(folder)
    outcome = run(*TWO_FILES)
    assert outcome.code == 2
    assert (
        outcome.err == "contrapca: 'results' cannot be written into (No space left on device): nothing was written.\n"
    )
    assert tree(folder) == before
    (folder / "results").mkdir()
    (folder / "results" / "latents.csv").write_text("mine")
    before = tree(folder)
    assert run(*TWO_FILES, "--force").code == 2
    assert tree(folder) == before


def test_the_seed_and_the_summary(folder, run):
    first = json.loads(run(*TWO_FILES, "--json").out)
    again = json.loads(run(*TWO_FILES, "--json", "--force").out)
    assert first == again
    model = contrapca.load(folder / "results" / "model.npz")
    assert first["model"]["gamma"] == model.gamma_
    assert first["model"]["components"][0]["case_variance"] == model.explained_variance_[0]
    assert len(first["model"]["top_features"]) == 6


def test_names_of_mice_may_be_numbers_and_words(folder, run, pair):
    """3484, J2292: no mistake in a column of numbers, and known as blocks."""
    for file, values in (("c.csv", pair[0]), ("k.csv", pair[1])):
        mice = [f"J{i // 5}" if i < 10 else 300 + i // 5 for i in range(len(values))]
        rows = [[mouse, *row] for mouse, row in zip(mice, values.tolist(), strict=True)]
        write_csv(folder / file, ["MouseID", *NAMES], rows)
    outcome = run("fit", "c.csv", "--background", "k.csv", "-o", "results")
    assert outcome.code == 0, outcome.err
    assert "Add --blocks MouseID." in outcome.err
    assert "Not used as features: MouseID\n" in outcome.out
