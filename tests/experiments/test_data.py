"""The paper's cells and digits: its groups, figures known from independent runs, and the formats of the origins."""

import io
import tarfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from sklearn.metrics import silhouette_score

from contrapca import PCPCA, gamma_limits
from contrapca.exceptions import DatasetError
from experiments import _data
from experiments._data import load_corrupted_mnist, load_zheng_bmmc


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
    arrays = _data.load_arrays(_data.DIGITS)
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


def test_grass700_is_not_downloaded(tmp_path, monkeypatch):
    monkeypatch.setenv("CONTRAPCA_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=r"There is no grass700\.npz in .*, and it cannot be downloaded"):
        load_corrupted_mnist(grass="grass700")


# The formats of the origins: files are written as the origins write them, from what lies in CONTRAPCA_DATA, and must
# lead to the checksums in the source.


@pytest.fixture
def from_origin(tmp_path, monkeypatch):
    """A data folder with nothing but the origin's files of a set."""
    monkeypatch.setenv("CONTRAPCA_DATA", str(tmp_path))

    def place(source, *contents):
        (tmp_path / source.folder).mkdir(exist_ok=True)
        for name, content in zip(source.forms[-1].files, contents, strict=True):
            (tmp_path / source.folder / name).write_bytes(content)

    return place


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
    for name in _data.CELL_SAMPLES:
        with np.load(data_folder / "zheng_bmmc" / "zheng500.npz") as file:
            counts = file[name]
        everything = np.hstack([counts, rng.integers(0, 9, (len(counts), 40))])
        contents.append(archive(everything[:, order], [genes[k] for k in order]))
    from_origin(_data.CELLS, *contents)
    data = load_zheng_bmmc()
    np.testing.assert_array_equal(data.foreground, cells.foreground)
    np.testing.assert_array_equal(data.background, cells.background)


def test_an_archive_without_the_genes_is_refused(data_folder, from_origin, cells):
    small = archive(np.ones((3, 2), dtype=int), [("ENSG0", "A"), ("ENSG1", "B")])
    from_origin(_data.CELLS, small, small, small)
    with pytest.raises(DatasetError, match=r"is not the data set 'zheng_bmmc' \(KeyError: 'ENSG00000213934'\)"):
        load_zheng_bmmc()


def digits_arff(images, labels):
    names = [f"@ATTRIBUTE pixel{k} real" for k in range(1, 785)]
    pixels = images.reshape(-1, 784).tolist()
    rows = [",".join(map(str, [*row, label])) for row, label in zip(pixels, labels, strict=True)]
    rows[1:1] = [",".join(["7"] * 784 + ["5"])]  # another digit, to be passed over
    return "\n".join(["@RELATION mnist_784", *names, "@ATTRIBUTE class {0,1,5}", "@DATA", *rows]).encode()


@pytest.mark.slow
def test_digits_from_openml(data_folder, from_origin, need):
    need("PIL")
    with np.load(data_folder / "corrupted_mnist" / "mnist01.npz") as file:
        images = np.concatenate([file["train_images"], file["test_images"]])
        labels = np.concatenate([file["train_labels"], file["test_labels"]])
    from_origin(_data.DIGITS, digits_arff(images, labels))
    from_origin(_data.PHOTOGRAPH, (data_folder / "corrupted_mnist" / "skimage_grass_v0.19.3.png").read_bytes())
    data = load_corrupted_mnist(n=200)
    assert data.grass == "photograph"  # grass700 is not there
    np.testing.assert_array_equal(data.test, images[5000:].reshape(5000, -1))


def test_too_few_digits_are_refused(from_origin):
    from_origin(_data.DIGITS, digits_arff(np.zeros((5, 28, 28), dtype=int), [0, 1, 0, 1, 0]))
    with pytest.raises(DatasetError, match="it has 5 zeros and ones; expected 10000"):
        _data.load_arrays(_data.DIGITS)
