"""Two generators and a real table: what is planted is there, the paper's groups, and what is refused."""

import csv
import gzip
import importlib.resources
from urllib.error import URLError

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import skip
from contrapca import datasets, gamma_limits
from contrapca.datasets import load_mouse_protein, make_cells, make_hidden_clusters
from contrapca.exceptions import DatasetError

# ---------------------------------------------------------------------- hidden clusters


def test_hidden_clusters():
    """Clusters lie in the plane, at their distance from the mean; the nuisance lies outside it, in both groups."""
    data, again = (make_hidden_clusters(4000, 3000, 10, separation=5.0, nuisance=3.0, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(data.foreground, again.foreground)
    assert (data.foreground.shape, data.background.shape) == ((4000, 10), (3000, 10))
    centres = np.array([data.foreground[data.labels == k].mean(axis=0) for k in range(4)])
    np.testing.assert_allclose(np.linalg.norm(centres, axis=1), 5, atol=0.2)
    np.testing.assert_allclose(np.linalg.norm(centres @ data.plane, axis=1), 5, atol=0.2)
    values = np.linalg.eigvalsh(np.cov(data.background.T))[::-1]
    assert values[:3].mean() == pytest.approx(10, abs=0.6)  # four standard errors
    np.testing.assert_allclose(values[3:], 1, rtol=0.15)
    assert np.var(data.background @ data.plane, axis=0).max() < 1.1
    with pytest.raises(ValueError, match="n_features=5 must be at least 6"):
        make_hidden_clusters(n_features=5)


# ---------------------------------------------------------------------- cells


@pytest.fixture(scope="module")
def cells(need):
    need("anndata")
    return make_cells(20, 60, 50, effect=1.5, donor_effect=0.3, random_state=1)


def test_sizes_and_columns(cells):
    assert cells.shape == (1200, 50)
    assert sp.issparse(cells.X)
    assert cells.obs.groupby("donor", observed=True).size().tolist() == [60] * 20
    assert cells.obs.groupby("donor", observed=True)["condition"].nunique().max() == 1
    assert set(cells.obs["cell_type"]) == {"B", "Mono", "T"}
    assert cells.var["programme"].sum() == 15


def test_values_are_those_of_the_counts(cells):
    counts = cells.layers["counts"].toarray()
    assert np.array_equal(counts, np.rint(counts))
    totals = counts.sum(axis=1, keepdims=True)
    assert np.allclose(cells.X.toarray(), np.log1p(counts * np.median(totals) / totals), rtol=1e-5)


def test_the_programme_is_in_cases_only_and_has_its_effect(cells):
    on, genes = cells.obs["programme"].to_numpy(), cells.var["programme"].to_numpy()
    case = (cells.obs["condition"] == "case").to_numpy()
    assert not on[~case].any()
    # 600 cells of the cases, each with probability 0.4: within 4 standard deviations.
    assert abs(on[case].mean() - 0.4) < 4 * np.sqrt(0.4 * 0.6 / 600)
    counts = cells.layers["counts"].toarray()
    ratio = counts[case & on].mean(axis=0) / counts[case & ~on].mean(axis=0)
    assert abs(np.log(ratio[genes]).mean() - 1.5) < 0.15
    assert abs(np.log(ratio[~genes]).mean()) < 0.15


def test_donors_differ_by_as_much_as_they_should(need):
    need("anndata")
    spread = {}
    for effect in (0.0, 0.6):
        cells = make_cells(30, 60, 40, effect=0.0, donor_effect=effect, random_state=0)
        donors = cells.X.toarray().reshape(30, 60, 40)
        spread[effect] = donors.mean(axis=1).std(axis=0).mean()
    assert spread[0.6] > 2 * spread[0.0]


def test_seeds(cells):
    same, other = (make_cells(20, 60, 50, effect=1.5, donor_effect=0.3, random_state=seed) for seed in (1, 2))
    assert np.array_equal(cells.X.toarray(), same.X.toarray())
    assert not np.array_equal(cells.X.toarray(), other.X.toarray())


@pytest.mark.parametrize(("name", "value"), [("n_donors", 3), ("n_cells", 0), ("n_genes", 39), ("n_cells", 2.5)])
def test_refused(name, value):
    with pytest.raises(ValueError, match=f"{name}={value} must be a whole number"):
        make_cells(**{name: value})


# ---------------------------------------------------------------------- mouse proteins


def test_mouse_groups(data_folder):
    data = load_mouse_protein()
    assert data.foreground.shape == (270, 77)
    assert data.background.shape == (135, 77)
    assert [np.isnan(group).sum() for group in (data.foreground, data.background)] == [324, 199]
    assert [np.isnan(group).any(axis=1).sum() for group in (data.foreground, data.background)] == [123, 60]
    names, counts = np.unique(data.labels, return_counts=True)
    assert dict(zip(names, counts, strict=True)) == {"Control": 135, "Ts65Dn": 135}
    assert (data.feature_names[0], data.feature_names[-1], len(data.feature_names)) == ("DYRK1A_N", "CaNA_N", 77)
    assert "CC BY 4.0" in data.description


@pytest.mark.parametrize(("d", "expected"), [(1, 0.7534), (2, 0.6291), (5, 0.4317), (10, 0.2461)])
def test_mouse_limits(data_folder, d, expected):
    data = load_mouse_protein()
    data.foreground, data.background = np.nan_to_num(data.foreground), np.nan_to_num(data.background)
    limits = gamma_limits(data.foreground, background=data.background, n_components=d, scale="group")
    assert limits.pcpca == pytest.approx(expected, abs=5e-5)


def mouse_arff(data_folder):
    with (data_folder / "mouse_protein" / "Data_Cortex_Nuclear.csv").open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    lines = ["% a comment", "@relation mice_protein", ""]
    for k, name in enumerate(header):
        classes = ",".join(f"'{value}'" for value in sorted({row[k] for row in rows}))
        lines.append(f"@attribute {name} " + ("numeric" if 1 <= k <= 77 else f"{{{classes}}}"))
    lines.append("@data")
    for row in rows:
        cells = [cell or "?" if 1 <= k <= 77 else f"'{cell}'" for k, cell in enumerate(row)]
        lines.append(",".join(cells))
    return "\n".join([*lines, "% the end"]).encode()


@pytest.fixture
def downloads(data_folder, tmp_path, monkeypatch):
    """The table as OpenML has it in a file; downloads go there, and data to an empty folder."""
    origin, home = tmp_path / "origin.arff", tmp_path / "home"
    origin.write_bytes(mouse_arff(data_folder))
    monkeypatch.setenv("CONTRAPCA_DATA", str(home))
    monkeypatch.setattr(datasets, "MOUSE_URL", f"file://localhost{origin}")
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between tries
    return origin, home


def test_downloaded_once_then_from_the_folder(downloads, data_folder):
    origin, home = downloads
    data = load_mouse_protein()
    origin.unlink()  # no network from here on
    np.testing.assert_array_equal(load_mouse_protein().foreground, data.foreground)
    np.testing.assert_array_equal(load_mouse_protein(data_home=data_folder).foreground, data.foreground)
    assert [path.name for path in (home / "mouse_protein").iterdir()] == ["MiceProtein.arff"]


def test_the_folder_of_scikit_learn_is_the_default(downloads, tmp_path, monkeypatch):
    monkeypatch.delenv("CONTRAPCA_DATA")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "sklearn"))
    assert load_mouse_protein().background.shape == (135, 77)
    assert (tmp_path / "sklearn" / "contrapca" / "mouse_protein" / "MiceProtein.arff").exists()


@pytest.mark.filterwarnings("ignore:Retry downloading")
def test_offline_one_sentence_says_what_to_do(downloads):
    origin, home = downloads
    origin.unlink()
    with pytest.raises(DatasetError) as error:
        load_mouse_protein()
    assert isinstance(error.value.__cause__, URLError)
    text = str(error.value)
    assert text.startswith(f"There is no {str(home / 'mouse_protein' / 'MiceProtein.arff')!r}, and file://localhost")
    assert "put it into a folder 'mouse_protein' and set CONTRAPCA_DATA to the folder that contains it." in text
    assert list((home / "mouse_protein").iterdir()) == []


def test_a_folder_that_cannot_be_made(downloads):
    _, home = downloads
    home.write_text("a file")
    with pytest.raises(DatasetError, match=r"could not be downloaded .* set CONTRAPCA_DATA"):
        load_mouse_protein()


@pytest.mark.parametrize("content", [b"", b"<!DOCTYPE html><html>Please log in to the network of this hotel.</html>"])
def test_a_wrong_file_is_named(downloads, content):
    origin, _ = downloads
    origin.write_bytes(content)
    with pytest.raises(DatasetError, match=r"MiceProtein\.arff' is not the table of mouse proteins .*: delete it"):
        load_mouse_protein()


def test_one_changed_number_is_found(downloads):
    """The control of the checksum."""
    origin, _ = downloads
    content = origin.read_bytes()
    assert content.count(b"0.503643884") == 1
    origin.write_bytes(content.replace(b"0.503643884", b"0.503643885"))
    with pytest.raises(DatasetError, match="the checksum of its content"):
        load_mouse_protein()


def test_openml_itself(data_folder, tmp_path):
    """scikit-learn's tests come with the first rows of the very file that OpenML serves."""
    folder = importlib.resources.files("sklearn.datasets.tests.data.openml.id_40966")
    found = folder / "data-v1-dl-17928620.arff.gz"
    if not found.is_file():
        skip("scikit-learn is installed without the data of its tests")
    path = tmp_path / "MiceProtein.arff"
    path.write_bytes(gzip.decompress(found.read_bytes()))
    excerpt, whole = datasets._mouse_table(path), datasets.mouse_arrays()
    assert len(excerpt["values"]) == 7
    np.testing.assert_array_equal(excerpt.pop("proteins"), whole["proteins"])
    for name, values in excerpt.items():
        np.testing.assert_array_equal(values, whole[name][:7])


def test_checksum_is_of_the_content():
    arrays = {"a": np.arange(6.0).reshape(2, 3), "names": np.array(["x", "yy"])}
    known = datasets.content_checksum(arrays)
    stored = np.asfortranarray(arrays["a"]).astype(">f8")
    assert datasets.content_checksum({"names": arrays["names"].astype("U9"), "a": stored}) == known
    changes = [
        {"a": arrays["a"].reshape(3, 2)},
        {"a": arrays["a"].astype(np.float32)},
        {"a": arrays["a"] + np.eye(2, 3) * 1e-15},
        {"names": np.array(["xy", "y"])},
        {"b": arrays["a"]},
    ]
    for change in changes:
        assert datasets.content_checksum(arrays | change) != known
