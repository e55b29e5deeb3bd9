"""`contrapca transform`, `sample` and `info`: what is done with saved files."""

import json

import numpy as np
import pytest

from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    BackgroundWhitener,
    ContraPCA,
    Moments,
    RatioPCA,
    SparseCPCA,
    _files,
    bootstrap,
    contrast_path,
    load,
)
from csvfiles import columns_of, read_csv, write_csv

NAMES = [f"gene{j}" for j in range(6)]


@pytest.fixture
def saved(folder, run):
    """A working folder with results/model.npz."""
    assert run("fit", "cases.csv", "--background", "controls.csv", "-o", "results").code == 0
    return folder


@pytest.mark.parametrize("center", ["foreground", "background"])
def test_transform_finds_columns_by_name(saved, run, pair, center):
    rows = pair[1]
    shuffled = [3, 0, 5, 1, 4, 2]
    table = [[f"r{i}", 9.0, *row[shuffled]] for i, row in enumerate(rows)]
    write_csv(saved / "new.csv", ["name", "further", *(NAMES[j] for j in shuffled)], table)
    outcome = run("transform", "results/model.npz", "new.csv", "--center", center, "-o", "z.tsv")
    assert outcome.err == ""
    assert outcome.code == 0
    header, *cells = read_csv(saved / "z.tsv", "\t")
    assert header == ["row", "component_1", "component_2"]
    assert [row[0] for row in cells] == [f"r{i}" for i in range(30)]
    expected = ContraPCA(2).fit(pair[0], background=pair[1]).transform(rows, center=center)
    np.testing.assert_allclose(np.array([row[1:] for row in cells], dtype=float), expected, atol=1e-12)


def test_transform_without_names(saved, run, pair):
    np.save(saved / "new.npy", pair[0])
    outcome = run("transform", "results/model.npz", "new.npy", "-o", "z.csv")
    by_place = "; columns matched by position, because one file has no column names\n"
    assert outcome.out == f"new.npy: 40 rows, 2 latents each, written to z.csv{by_place}"
    expected = load(saved / "results" / "model.npz")
    del expected.feature_names_in_
    np.testing.assert_allclose(columns_of(saved / "z.csv", ["component_1", "component_2"]), expected.transform(pair[0]))


def test_transform_says_what_it_decided(saved, run, pair):
    (saved / "bare.csv").write_text("\n".join(",".join(map(str, row)) for row in pair[0].tolist()) + "\n,,,,,\n")
    shown = run("transform", "results/model.npz", "bare.csv", "-o", "z.csv").out
    assert "40 rows" in shown
    assert "; no header; 1 empty row left out; columns matched by position" in shown


def test_transform_takes_missing_values(saved, run, pair):
    rows = pair[0].copy()
    rows[::2, 3] = np.nan
    write_csv(saved / "holes.csv", NAMES, rows)
    assert run("transform", "results/model.npz", "holes.csv", "-o", "z.csv").code == 0
    expected = ContraPCA(2).fit(pair[0], background=pair[1]).transform(rows)
    np.testing.assert_allclose(columns_of(saved / "z.csv", ["component_1", "component_2"]), expected, atol=1e-12)


def test_sample(saved, run, tree):
    assert run("sample", "results/model.npz", "-n", "7", "--seed", "3", "-o", "new.csv").code == 0
    expected = load(saved / "results" / "model.npz").sample(7, random_state=3)
    np.testing.assert_array_equal(columns_of(saved / "new.csv", NAMES), expected)
    assert run("fit", "cases.csv", "--background", "controls.csv", "--method", "cpca", "-o", "directions").code == 0
    before = tree(saved)
    outcome = run("sample", "directions/model.npz", "-o", "other.csv")
    assert outcome.code == 2
    assert "CPCA has no probability model" in outcome.err
    assert tree(saved) == before


def test_info_of_models(saved, run, pair):
    shown = run("info", "results/model.npz").out
    model = load(saved / "results" / "model.npz")
    assert f"ContraPCA with 2 components of 6 features, gamma = {model.gamma_:.4f}" in shown
    summary = json.loads(run("info", "results/model.npz", "--json").out)
    assert summary["holds"] == "ContraPCA"
    assert summary["features"] == NAMES
    assert summary["gamma_max"] == model.gamma_max_
    clvm = CLVM(1, 1).fit(pair[0], background=pair[1])
    clvm.save(saved / "clvm.npz")
    assert "CLVM with 1 component of 6 features, and 1 shared component" in run("info", "clvm.npz").out
    assert json.loads(run("info", "clvm.npz", "--json").out)["n_shared"] == 1
    assert run("transform", "clvm.npz", "controls.csv", "-o", "z.csv").code == 0
    np.save(saved / "controls.npy", pair[1])
    assert run("transform", "clvm.npz", "controls.npy", "--center", "background", "-o", "z2.csv").code == 0
    expected = clvm.transform(pair[1], center="background")
    np.testing.assert_allclose(columns_of(saved / "z2.csv", ["component_1"]), expected, atol=1e-12)


KINDS = {  # what is saved, and what `contrapca info` says of it
    "PPCA": (lambda X, Y: PPCA(2).fit(X), "PPCA with 2 components of 6 features"),
    "PCPCA": (lambda X, Y: PCPCA(2, gamma=0.2).partial_fit(X, background=Y), "PCPCA with 2 components"),
    "ContraPCA": (lambda X, Y: ContraPCA(1).fit(X, background=Y), "ContraPCA with 1 component"),
    "CPCA": (lambda X, Y: CPCA(1, gamma=0.5).fit(X, background={"a": Y[:15], "b": Y[15:]}), "CPCA with 1 component"),
    "SparseCPCA": (lambda X, Y: SparseCPCA(1, sparsity=3, gamma=0.5).fit(X, background=Y), "SparseCPCA with 1"),
    "RatioPCA": (lambda X, Y: RatioPCA(1).fit(X, background=Y), "RatioPCA with 1 component"),
    "CLVM": (lambda X, Y: CLVM(1, 1).fit(X, background=Y), "CLVM with 1 component of 6 features, and 1 shared"),
    "BackgroundWhitener": (lambda X, Y: BackgroundWhitener().fit(X, background=Y), "BackgroundWhitener of 6 features"),
    "path": (lambda X, Y: contrast_path(CPCA(1), X, background=Y, gammas=[0.0, 0.5]), "CPCA with 1 component of 6"),
    "moments": (lambda X, Y: Moments.from_rows(X), "Moments (mean and scatter matrix) of 40 rows, or rows of that"),
    "posterior": (
        lambda X, Y: bootstrap(CPCA(1, gamma=0.2).fit(X, background=Y), X, background=Y, n_resamples=20),
        "Bootstrap(CPCA: 20 refits",
    ),
}


@pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_info_of_every_kind_of_file(folder, run, pair, kind):
    make, says = KINDS[kind]
    make(*pair).save(folder / "saved.npz")
    outcome = run("info", "saved.npz")
    assert (outcome.code, outcome.err) == (0, "")
    assert says in outcome.out
    summary = json.loads(run("info", "saved.npz", "--json").out)
    assert summary["holds"] == {"path": "ContrastPath", "moments": "Moments", "posterior": "ContrastPosterior"}.get(
        kind, kind
    )
    assert summary["n_features"] == 6


def test_no_kind_of_file_is_left_out():
    shown = {"ContrastPath": "path", "ContrastPosterior": "posterior", "Moments": "moments"}
    assert {shown[name] for name in _files.KINDS if name not in ("FittedModel", "FittedWhitener", "Stream")} | set(
        _files.ESTIMATORS
    ) == {*KINDS}


def test_rows_are_whitened_by_a_saved_whitener(folder, run, pair):
    model = BackgroundWhitener().fit(pair[0], background=pair[1])
    model.save(folder / "whitener.npz")
    assert "6 whitened features each" in run("transform", "whitener.npz", "cases.csv", "-o", "white.csv").out
    written = np.loadtxt(folder / "white.csv", delimiter=",", skiprows=1, usecols=range(1, 7))
    np.testing.assert_allclose(written, model.transform(pair[0]), rtol=1e-6, atol=1e-9)


def test_info_of_a_checkpoint(folder, run, pair):
    PPCA(2).fit_batches([pair[0]], checkpoint=folder / "half.npz")
    outcome = run("info", "half.npz")
    assert outcome.code == 2
    assert "'half.npz' is a checkpoint of fit_batches, not a model" in outcome.err


def test_info_of_draws(saved, run, pair):
    model = PCPCA(2, gamma=0.2).fit(pair[0], background=pair[1])
    bootstrap(model, pair[0], background=pair[1], n_resamples=40).save(saved / "draws.npz")
    assert "Bootstrap(PCPCA" in run("info", "draws.npz").out
    summary = json.loads(run("info", "draws.npz", "--json").out)
    assert (summary["kind"], summary["n_features"]) == ("bootstrap", 6)
    outcome = run("transform", "draws.npz", "cases.csv", "-o", "z.csv")
    assert outcome.code == 2
    assert "holds a ContrastPosterior, and not a model" in outcome.err
