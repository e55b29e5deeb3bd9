"""Binary and sparse formats: the same table out of each."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from contrapca.exceptions import TableFileError
from contrapca.tables import read_table

X = np.random.default_rng(0).poisson(1.0, (5, 3)).astype(float)
GENES = ["ENSG1\tTP53", "ENSG2\tMYC", "ENSG3\tMYC"]


def test_npy_keeps_float32(tmp_path):
    for kind in (np.float32, np.float64, np.int16, bool):
        np.save(tmp_path / "x.npy", X.astype(kind))
        found = read_table(tmp_path / "x.npy")
        assert found.values.dtype == (np.float32 if kind is np.float32 else np.float64)
        np.testing.assert_array_equal(found.values, X.astype(kind))
        assert (found.names, found.named) == (["x0", "x1", "x2"], False)


def test_npz(tmp_path):
    np.savez(tmp_path / "x.npz", values=X, status=np.array(list("aabbb")), genes=np.array(list("pqr")))
    found = read_table(tmp_path / "x.npz")
    np.testing.assert_array_equal(found.values, X)
    assert {name: column.tolist() for name, column in found.texts.items()} == {"status": list("aabbb")}
    for matrix in (sp.csr_matrix(X), sp.csc_array(X), sp.coo_matrix(X)):
        sp.save_npz(tmp_path / "sparse.npz", matrix)
        found = read_table(tmp_path / "sparse.npz")
        assert found.values.format == "csr"
        np.testing.assert_array_equal(found.values.toarray(), X)


def write_mtx(path, values):
    scipy.io.mmwrite(path.with_suffix("") if path.suffix == ".gz" else path, sp.coo_matrix(values))
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))
        path.with_suffix("").unlink()


@pytest.mark.parametrize("name", ["matrix.mtx", "matrix.mtx.gz", "s1_matrix.mtx"])
def test_mtx_of_genes_by_cells_is_turned_round(tmp_path, name):
    write_mtx(tmp_path / name, X.T)
    prefix = "s1_" if name.startswith("s1") else ""
    (tmp_path / f"{prefix}barcodes.tsv").write_text("".join(f"cell{i}\n" for i in range(5)))
    (tmp_path / f"{prefix}features.tsv.gz").write_bytes(gzip.compress("\n".join(GENES).encode()))
    found = read_table(tmp_path / name)
    np.testing.assert_array_equal(found.values.toarray(), X)
    assert found.values.format == "csr"
    assert found.names == ["TP53", "MYC (ENSG2)", "MYC (ENSG3)"]
    assert found.row_names == [f"cell{i}" for i in range(5)]
    assert "turned round" in found.notes[0]


def test_mtx_of_samples_by_features(tmp_path):
    write_mtx(tmp_path / "x.mtx", X)
    found = read_table(tmp_path / "x.mtx")
    np.testing.assert_array_equal(found.values.toarray(), X)
    assert (found.named, found.notes) == (False, [])
    (tmp_path / "genes.tsv").write_text("\n".join(GENES))
    assert read_table(tmp_path / "x.mtx").names[0] == "TP53"
    (tmp_path / "genes.tsv").write_text("ENSG1\tTP53\n")
    with pytest.raises(TableFileError, match="5 rows and 3 columns, which does not fit the 1 genes"):
        read_table(tmp_path / "x.mtx")


def test_parquet(tmp_path, need):
    need("pyarrow")
    pandas = need("pandas")
    frame = pandas.DataFrame(X, columns=list("abc"), index=pandas.Index([f"s{i}" for i in range(5)], name="sample"))
    frame.loc["s1", "b"] = np.nan
    frame["count"] = pandas.array([1, None, 3, 4, 5], dtype="Int64")
    frame["status"] = pandas.Categorical(["x", "y", None, "x", "y"])
    frame["flag"] = pandas.array([True, False, None, True, False], dtype="boolean")
    frame["never"] = np.full(5, np.nan)
    frame.to_parquet(tmp_path / "x.parquet")
    found = read_table(tmp_path / "x.parquet")
    assert found.names == ["a", "b", "c", "count"]
    np.testing.assert_array_equal(found.values, frame[found.names].to_numpy(dtype=float, na_value=np.nan))
    assert found.texts["status"].tolist() == ["x", "y", "", "x", "y"]
    assert found.texts["flag"].tolist()[:3] == ["True", "False", ""]
    assert found.row_names == [f"s{i}" for i in range(5)]
    assert found.empty == ["never"]


@pytest.mark.parametrize("sparse", [True, False])
def test_h5ad(tmp_path, need, sparse):
    anndata, pandas = need("anndata"), need("pandas")
    obs = pandas.DataFrame({"status": pandas.Categorical(["x", "y", None, "x", "y"]), "age": [1.5, 2, 3, 4, np.nan]})
    obs["count"] = pandas.array([1, None, 3, 4, 5], dtype="Int64")
    obs["flag"] = pandas.array([True, None, False, True, True], dtype="boolean")
    obs.index = [f"cell{i}" for i in range(5)]
    data = anndata.AnnData(sp.csr_matrix(X) if sparse else X, obs, pandas.DataFrame(index=list("pqr")))
    data.write_h5ad(tmp_path / "x.h5ad")
    found = read_table(tmp_path / "x.h5ad")
    assert sp.issparse(found.values) == sparse
    np.testing.assert_array_equal(found.values.toarray() if sparse else found.values, X)
    assert found.names == list("pqr")
    assert found.row_names == obs.index.tolist()
    assert found.texts["status"].tolist() == ["x", "y", "", "x", "y"]
    assert found.texts["age"].tolist() == ["1.5", "2.0", "3.0", "4.0", ""]
    assert found.texts["count"].tolist() == ["1", "", "3", "4", "5"]
    assert found.texts["flag"].tolist() == ["True", "", "False", "True", "True"]
