"""The real data sets: the paper's groups, figures known from independent runs, and the formats of the origins."""

import csv
import dataclasses
import gzip
import importlib.resources
import io
import re
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from sklearn.metrics import silhouette_score

from conftest import skip
from contrapca import PCPCA, datasets, gamma_limits
from contrapca.datasets import _loaders, _parsers, load_corrupted_mnist, load_mouse_protein, load_zheng_bmmc
from contrapca.datasets._fetch import locate
from contrapca.exceptions import DatasetError, MissingExtraError

PAGE = Path(__file__).parents[2] / "docs" / "datasets.md"


def limit(data, d):
    return gamma_limits(data.foreground, background=data.background, n_components=d, scale="group").pcpca


def separation(data, d, gamma, shown=slice(None)):
    """Silhouette of the labels on unit-variance latents."""
    model = PCPCA(d, gamma=gamma, scale="group").fit(data.foreground, background=data.background)
    Z = model.transform(data.foreground)[:, shown]
    return silhouette_score(Z / Z.std(axis=0), data.labels)


@pytest.fixture(scope="module")
def cells(data_folder):
    return load_zheng_bmmc()


@pytest.fixture(scope="module")
def digits_on_grass(data_folder):
    return load_corrupted_mnist(grass="grass700")


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
    assert limit(data, d) == pytest.approx(expected, abs=5e-5)


def test_cell_groups(cells):
    assert cells.foreground.shape == (4842, 500)
    assert cells.background.shape == (1985, 500)
    assert np.sum(cells.labels == "pre") == 3933
    assert np.sum(cells.labels == "post") == 909
    assert cells.feature_names[:2] == ["HBG1", "HBG2"]
    assert cells.gene_ids[0] == "ENSG00000213934"
    assert cells.description.startswith("STAND-IN FOREGROUND")
    counts = load_zheng_bmmc(log=False)
    np.testing.assert_array_equal(counts.background, np.round(counts.background))
    np.testing.assert_allclose(np.expm1(cells.foreground), counts.foreground, atol=1e-9)


@pytest.mark.parametrize(("d", "expected"), [(10, 0.7396), (2, 0.8460)])
def test_cell_limits(cells, d, expected):
    assert limit(cells, d) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("gamma", "expected", "within"), [(0, 0.213, 0.003), (0.70, 0.30, 0.015)])
def test_cell_silhouettes(cells, gamma, expected, within):
    """Components 3 and 4 of 10; the reference is rounded and from another implementation."""
    assert separation(cells, 10, gamma, slice(2, 4)) == pytest.approx(expected, abs=within)


def test_digit_groups(digits_on_grass):
    data = digits_on_grass
    assert data.foreground.shape == data.background.shape == data.test.shape == (5000, 784)
    assert set(data.labels) == set(data.test_labels) == {0, 1}
    assert data.test.max() == 255
    assert data.image_shape == (28, 28)
    assert len(data.feature_names) == 784
    assert (data.grass, "700 photographs" in data.description) == ("grass700", True)
    # The digit itself is a quarter as bright as in the file, and whole numbers of grass are left without it.
    arrays = _loaders.load_arrays(_loaders.DIGITS)
    grass = data.foreground - 0.25 * arrays["train_images"].reshape(5000, -1)
    np.testing.assert_array_equal(grass, np.round(grass))
    assert 0 <= grass.min() < grass.max() <= 255


@pytest.mark.slow
def test_digit_figures(digits_on_grass):
    """Known from one draw of patches; tolerances are 3 sd over draws (0.012, 0.03 and 0.004)."""
    assert limit(digits_on_grass, 2) == pytest.approx(0.957, abs=0.036)
    assert separation(digits_on_grass, 2, 0) == pytest.approx(0.032, abs=0.09)
    assert separation(digits_on_grass, 2, 0.8) == pytest.approx(0.348, abs=0.012)


def test_digits_on_the_free_photograph(data_folder, need):
    need("PIL")
    data = load_corrupted_mnist(n=300, grass="photograph", random_state=1)
    again = load_corrupted_mnist(n=300, grass="photograph", random_state=1)
    other = load_corrupted_mnist(n=300, grass="photograph", random_state=2)
    assert data.foreground.shape == data.background.shape == (300, 784)
    assert data.test.shape == (5000, 784)
    np.testing.assert_array_equal(data.foreground, again.foreground)
    assert not np.array_equal(data.background, other.background)
    assert (data.grass, "CC0" in data.description) == ("photograph", True)


def test_bad_values_are_named():
    with pytest.raises(ValueError, match=r"grass='lawn' is not valid\. Choose one of 'auto', 'photograph', 'grass700'"):
        load_corrupted_mnist(grass="lawn")
    with pytest.raises(ValueError, match="n=5001 must be at least 1 and at most 5000"):
        load_corrupted_mnist(n=5001)


def test_grass700_is_not_downloaded(cache):
    with pytest.raises(DatasetError, match=r"it cannot be downloaded: put grass700\.npz into a folder"):
        load_corrupted_mnist(grass="grass700")


# The formats of the origins: files are written as the origins write them, from what lies in CONTRAPCA_DATA, served
# by a server on this machine, and must lead to the checksums in the source.


@pytest.fixture
def from_origin(server, cache, monkeypatch):
    """Serve files in place of a source's addresses."""

    def serve(name, *contents):
        source = getattr(_loaders, name)
        urls = tuple(server.answer(f"/{name}/{k}", content) for k, content in enumerate(contents))
        monkeypatch.setattr(_loaders, name, dataclasses.replace(source, urls=urls))

    return serve


def mouse_arff(data_folder):
    with (data_folder / "mouse_protein" / "Data_Cortex_Nuclear.csv").open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    lines = ["% a comment", "@relation mice_protein", ""]
    lines += [f"@attribute {name} " + ("numeric" if 1 <= k <= 77 else "{'a','b'}") for k, name in enumerate(header)]
    lines.append("@data")
    for row in rows:
        cells = [cell or "?" if 1 <= k <= 77 else f"'{cell}'" for k, cell in enumerate(row)]
        lines.append(",".join(cells))
    return "\n".join([*lines, "% the end"]).encode()


def test_mouse_from_openml(data_folder, from_origin, cache, server):
    from_origin("MOUSE", mouse_arff(data_folder))
    data = load_mouse_protein()
    server.close()
    assert locate(_loaders.MOUSE)[1] == [cache / "mouse_protein" / "mouse_protein.npz"]
    np.testing.assert_array_equal(load_mouse_protein().foreground, data.foreground)
    assert data.background.shape == (135, 77)


def test_one_changed_number_is_found(data_folder, from_origin):
    """The control of the checksums."""
    content = mouse_arff(data_folder)
    assert content.count(b"0.503643884") == 1
    from_origin("MOUSE", content.replace(b"0.503643884", b"0.503643885"))
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
    excerpt = _parsers.read_mouse_arff([path])
    whole = _parsers.read_mouse_csv([data_folder / "mouse_protein" / "Data_Cortex_Nuclear.csv"])
    assert len(excerpt["values"]) == 7
    np.testing.assert_array_equal(excerpt.pop("proteins"), whole["proteins"])
    for name, values in excerpt.items():
        np.testing.assert_array_equal(values, whole[name][:7])


def archive(counts, genes):
    """A 10x archive: genes in rows, cells in columns."""
    matrix, file = io.BytesIO(), io.BytesIO()
    scipy.io.mmwrite(matrix, scipy.sparse.coo_array(counts.T))
    barcodes = "\n".join(f"CELL{k}-1" for k in range(len(counts)))
    members = {
        "barcodes.tsv": barcodes.encode(),
        "genes.tsv": "\n".join("\t".join(gene) for gene in genes).encode(),
        "matrix.mtx": matrix.getvalue(),
    }
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(f"filtered_matrices_mex/hg19/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def test_cells_from_10x(data_folder, from_origin, cells):
    """The 500 genes are picked from the others and brought into the paper's order."""
    rng = np.random.default_rng(0)
    order = rng.permutation(540)
    genes = [*zip(cells.gene_ids, cells.feature_names, strict=True), *((f"OTHER{k}", "X") for k in range(40))]
    contents = []
    for name in _parsers.CELL_SAMPLES:
        with np.load(data_folder / "zheng_bmmc" / "zheng500.npz") as file:
            counts = file[name]
        everything = np.hstack([counts, rng.integers(0, 9, (len(counts), 40))])
        contents.append(archive(everything[:, order], [genes[k] for k in order]))
    from_origin("CELLS", *contents)
    data = load_zheng_bmmc()
    np.testing.assert_array_equal(data.foreground, cells.foreground)
    np.testing.assert_array_equal(data.background, cells.background)


def test_an_archive_without_the_genes_is_refused(data_folder, from_origin, cells):
    small = archive(np.ones((3, 2), dtype=int), [("ENSG0", "A"), ("ENSG1", "B")])
    from_origin("CELLS", small, small, small)
    with pytest.raises(DatasetError, match=r"cannot be read \(KeyError: 'ENSG00000213934'\)"):
        load_zheng_bmmc()


def digits_arff(images, labels):
    names = [f"@ATTRIBUTE pixel{k} real" for k in range(1, 785)]
    pixels = images.reshape(-1, 784).tolist()
    rows = [",".join(map(str, [*row, label])) for row, label in zip(pixels, labels, strict=True)]
    rows[1:1] = [",".join(["7"] * 784 + ["5"])]  # another digit, to be passed over
    return "\n".join(["@RELATION mnist_784", *names, "@ATTRIBUTE class {0,1,5}", "@DATA", *rows]).encode()


@pytest.mark.slow
def test_digits_from_openml(data_folder, from_origin, cache, server, need):
    need("PIL")
    with np.load(data_folder / "corrupted_mnist" / "mnist01.npz") as file:
        images = np.concatenate([file["train_images"], file["test_images"]])
        labels = np.concatenate([file["train_labels"], file["test_labels"]])
    from_origin("DIGITS", digits_arff(images, labels))
    from_origin("PHOTOGRAPH", (data_folder / "corrupted_mnist" / "skimage_grass_v0.19.3.png").read_bytes())
    data = load_corrupted_mnist(n=200)
    assert data.grass == "photograph"  # grass700 is not there
    np.testing.assert_array_equal(data.test, images[5000:].reshape(5000, -1))
    assert sorted(path.name for path in (cache / "corrupted_mnist").iterdir()) == ["grass.npz", "mnist01.npz"]
    server.close()
    np.testing.assert_array_equal(load_corrupted_mnist(n=200).foreground, data.foreground)


def test_without_pillow_the_extra_is_named(data_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingExtraError, match=r'This needs PIL. Install it with: pip install "contrapca\[plot\]"'):
        load_corrupted_mnist(n=10, grass="photograph")


def test_too_few_digits_are_refused(from_origin, cache):
    from_origin("DIGITS", digits_arff(np.zeros((5, 28, 28), dtype=int), [0, 1, 0, 1, 0]))
    with pytest.raises(DatasetError, match="it has 5 zeros and ones; expected 10000"):
        _loaders.load_arrays(_loaders.DIGITS)


def test_the_page_for_users_says_what_the_source_does():
    page = PAGE.read_text()
    for name in datasets.__all__:
        assert f"`{name}`" in page
    for source in (_loaders.MOUSE, _loaders.CELLS, _loaders.DIGITS, _loaders.PHOTOGRAPH, _loaders.GRASS700):
        assert f"| `{source.folder}` |" in page
        for url in source.urls:
            address, sample = (_loaders._10X, url.split("/")[-2]) if source is _loaders.CELLS else (url, "")
            assert f"<{address}>" in page
            assert sample in page


def test_the_page_s_example_runs(need):
    need("PIL")
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    names: dict = {}
    exec(compile(block, "docs/datasets.md", "exec"), names)
    latents = names["latents"] / names["latents"].std(axis=0)
    assert silhouette_score(latents, names["data"].labels) > 0.3
