"""Binary and sparse formats: the same table out of each."""

import datetime
import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from contrapca.exceptions import TableFileError
from contrapca.reading._formats import read_table

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
    assert "transposed" in found.notes[0]


ARRAY, COORDINATE = (f"%%MatrixMarket matrix {kind} real general\n%é\n".encode() for kind in ("array", "coordinate"))
BAD_MTX = {
    "no text": (ARRAY + b"2 2\n1.5\n2.\x005\n3.5\n4.5\n", "it is not text"),
    "no text in a comment": (ARRAY + b"%\x00\n2 2\n1.5\n2.5\n3.5\n4.5\n", "it is not text"),
    "no rows": (ARRAY + b"0 2\n1.5\n2.5\n", "rows and columns, both above 0"),
    "no sizes": (ARRAY + b"two 2\n1.5\n2.5\n", "rows and columns, both above 0"),
    "cut off in an exponent": (COORDINATE + b"2 2 3\n1 1 1.5\n1 2 2.5\n2 2 3.5E-", "could not convert"),
    "far too few values": (ARRAY + b"600000 400000\n1.5\n", "it has fewer values than it says"),
    "too few values": (COORDINATE + b"2 2 3\n1 1 1.5\n1 2 2.5\n", "Matrix Market"),
    "only comments": (ARRAY, "rows and columns, both above 0"),
    "empty": (b"", "it has 0 bytes"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", BAD_MTX)
def test_damaged_mtx_is_refused_before_it_kills_the_reader(name, packed, tmp_path):
    content, message = BAD_MTX[name]
    path = tmp_path / ("x.mtx.gz" if packed else "x.mtx")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(TableFileError, match=message if content or not packed else "both above 0"):
        read_table(path)


def test_mtx_with_an_array(tmp_path):
    (tmp_path / "x.mtx").write_bytes(ARRAY + b"2 3\n" + b"\n".join(b"%d.5" % k for k in range(6)) + b"\n")
    np.testing.assert_array_equal(read_table(tmp_path / "x.mtx").values, [[0.5, 2.5, 4.5], [1.5, 3.5, 5.5]])


def test_mtx_of_samples_by_features(tmp_path):
    write_mtx(tmp_path / "x.mtx", X)
    found = read_table(tmp_path / "x.mtx")
    np.testing.assert_array_equal(found.values.toarray(), X)
    assert (found.named, found.notes) == (False, [])
    (tmp_path / "genes.tsv").write_text("\n".join(GENES))
    assert read_table(tmp_path / "x.mtx").names[0] == "TP53"
    (tmp_path / "genes.tsv").write_text("ENSG1\tTP53\n")
    with pytest.raises(TableFileError, match="5 rows and 3 columns, which does not match the 1 genes"):
        read_table(tmp_path / "x.mtx")


def test_parquet_of_pandas(tmp_path, need):
    need("pyarrow")  # pandas writes with it
    need("polars")
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


def test_parquet(tmp_path, need):
    polars = need("polars")
    frame = polars.DataFrame({"id": ["a", None], "x": [1, None], "y": [0.5, float("nan")], "small": [1.5, 2]})
    frame = frame.with_columns(polars.col("small").cast(polars.Float32), x=polars.col("x").cast(polars.Decimal(9, 2)))
    frame.write_parquet(tmp_path / "x.parquet")
    found = read_table(tmp_path / "x.parquet")
    assert found.names == ["x", "y", "small"]
    np.testing.assert_array_equal(found.values, [[1, 0.5, 1.5], [np.nan, np.nan, 2]])
    assert found.values.flags.c_contiguous
    assert found.texts["id"].tolist() == ["a", ""]
    assert found.row_names is None
    frame.select("id").write_parquet(tmp_path / "x.parquet")
    assert read_table(tmp_path / "x.parquet").values.shape == (2, 0)


@pytest.fixture
def workbook(tmp_path, need):
    """A writer of Excel files: rows of each sheet by its name."""
    need("fastexcel")
    need("polars")
    xlsxwriter = need("xlsxwriter")

    def write(name="x.xlsx", **sheets):
        with xlsxwriter.Workbook(tmp_path / name, {"default_date_format": "yyyy-mm-dd"}) as book:
            for sheet, rows in sheets.items():
                page = book.add_worksheet(sheet)
                for i, row in enumerate(rows):
                    for j, cell in enumerate(row):
                        page.write(i, j, cell)
        return tmp_path / name

    return write


def test_excel(workbook):
    values = [[1.5, 1e-20], [-3, 1 / 3], [2e300, 12345678.125]]
    days = [datetime.datetime(2024, 1, day) for day in (1, 2, 3)]
    head = ["sample", "a", "b", "day", "flag", "two\nlines"]
    rows = [[f"s{i}", *row, days[i], i > 0, f"x, {i}"] for i, row in enumerate(values)]
    found = read_table(workbook(first=[head, *rows], second=[["p", "q"], [1, 2]]))
    assert found.names == ["a", "b"]
    np.testing.assert_allclose(found.values, values, rtol=1e-15)  # the tests' writer keeps 16 digits
    assert found.row_names == ["s0", "s1", "s2"]
    assert found.texts["flag"].tolist() == ["false", "true", "true"]
    assert found.texts["two lines"].tolist() == ["x, 0", "x, 1", "x, 2"]
    assert found.texts["day"].tolist()[0].startswith("2024-01-01")
    assert found.notes == []


def test_cells_of_excel(workbook):
    """Row numbers are those of the sheet; texts stay as they are."""
    rows = [
        [],
        ["", "code", "v", "w"],
        [],
        ["", "007", 1, "NA"],
        ["", "1.50", "n.d.", 4],
        ["", "x", 3, ""],
        ["", "y", 4, 5],
    ]
    found = read_table(workbook(data=rows))
    assert found.texts["code"].tolist() == ["007", "1.50", "x", "y"]
    assert found.mixed == {"v": "'n.d.' on line 5"}
    np.testing.assert_array_equal(found.values, [[np.nan], [4], [np.nan], [5]])
    assert found.notes == ["2 empty rows left out"]


def test_sheets(workbook):
    path = workbook(cases=[["a", "b"], [1, 2]], controls=[["a", "b"], [3, 4]], none=[])
    np.testing.assert_array_equal(read_table(path).values, [[1, 2]])
    np.testing.assert_array_equal(read_table(path, sheet="controls").values, [[3, 4]])
    assert len(read_table(path, header=False)) == 2
    with pytest.raises(TableFileError, match=r"x.xlsx' has no sheet 'more', only 'cases', 'controls', 'none'"):
        read_table(path, sheet="more")
    with pytest.raises(TableFileError, match=r"x.xlsx \(sheet none\)' is empty"):
        read_table(path, sheet="none")
    path.with_suffix(".csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableFileError, match=r"x.csv' has no sheet 'cases': only Excel files"):
        read_table(path.with_suffix(".csv"), sheet="cases")


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
