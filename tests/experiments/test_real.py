"""The study of defaults on real tables: its sets, its scores, and that the default is not below PCA."""

import numpy as np
import pytest

from contrapca.exceptions import DatasetError
from experiments import real
from experiments._real_sets import SETS, load_glioblastoma


@pytest.fixture(autouse=True)
def _data(data_folder):
    """The sets are read from the folder of real data."""


@pytest.mark.parametrize(
    ("name", "shape", "n_controls", "n_labels"),
    [
        ("mouse proteins, NaN left in", (270, 77), 135, 2),
        ("wells, 5 mechanisms", (168, 189), 330, 5),
        ("wells, 12 mechanisms", (302, 189), 330, 12),
        ("glioblastoma", None, None, 2),
    ],
)
def test_sets_are_as_described(name, shape, n_controls, n_labels):
    found = SETS[name]()
    assert found.cases.shape == (shape or found.cases.shape)
    assert len(found.controls) == (n_controls or len(found.controls))
    assert len(np.unique(found.labels)) == n_labels
    assert len(found.labels) == len(found.cases) == len(found.blocks)
    assert found.cases.shape[1] == found.controls.shape[1]


def test_cells_of_patients_are_those_of_their_origin(tmp_path, monkeypatch):
    """A missing file names where it comes from, and another one in its place is refused."""
    cells = load_glioblastoma()
    assert cells.X.shape == (5000, len(cells.feature_names))
    pairs, counts = np.unique([cells.patient, cells.condition], axis=1, return_counts=True)
    assert pairs.shape == (2, 10)
    assert set(counts.tolist()) == {500}
    monkeypatch.setenv("CONTRAPCA_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"real_sets/glioblastoma\.npz.* const-ae/lemur"):
        load_glioblastoma()
    (tmp_path / "real_sets").mkdir()
    arrays = {name: cells[name] for name in ("X", "condition", "patient")}
    np.savez(tmp_path / "real_sets" / "glioblastoma.npz", **arrays | {"X": cells.X + 1})
    with pytest.raises(DatasetError, match="the checksum of its content is"):
        load_glioblastoma()


def test_scores_of_labels_that_are_there_and_of_shuffled_ones():
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b"], 60)
    Z = rng.normal(size=(120, 2)) + 8 * (labels == "a")[:, None]
    assert min(real.separation(Z, labels)) > 0.6
    assert max(real.separation(Z, rng.permutation(labels))) < 0.1  # the control


def test_the_default_is_not_below_pca():
    """On raw mouse proteins, by a wide margin; in common units of wells, too."""
    for name in ("mouse proteins, NaN as 0", "wells, 5 mechanisms"):
        found = SETS[name]()
        ours, plain = (real._scores(real.METHODS[method], found, 2) for method in ("ContraPCA", "PCA"))
        assert ours[0] > plain[0] + 0.1
        assert ours[1] > plain[1] + 0.1


def test_a_method_that_refuses_a_table_has_no_score_and_is_named():
    found = SETS["mouse proteins, NaN left in"]()
    refused = real._scores(real.METHODS["CLVM"], found, 1)
    assert refused is None
    results = {"mouse": {"ContraPCA": [0.4, 0.6], "CLVM": refused}}
    [row] = real.rows(results)
    assert row.ours == "ContraPCA 0.40 / 0.60"
    assert row.note == "not fitted: CLVM"


def test_the_figure_has_both_scores(need):
    need("matplotlib")
    results = {"mouse": {"ContraPCA": [0.4, 0.6], "CLVM": None}, "wells": {"ContraPCA": [0.5, 0.7], "CLVM": [0.3, 0.5]}}
    axes = real.figure(results).axes
    assert [ax.get_xlabel() for ax in axes] == ["silhouette", "adjusted Rand index"]
