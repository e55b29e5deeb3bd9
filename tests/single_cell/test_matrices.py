"""Every kind of matrix that an AnnData can hold gives the results of a dense one, read once, with nothing filled in."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca import PCPCA, tl
from contrapca.anndata import _cells
from contrapca.data.rows._dask import DaskRows, row_chunks
from single_cell.conftest import PLAIN, by_hand, dense

pytestmark = pytest.mark.filterwarnings("ignore:The cases are all cells with")  # in "arm"

IN_MEMORY = {
    "dense": np.asarray,
    "column by column": np.asfortranarray,
    "csr matrix": sp.csr_matrix,
    "csc matrix": sp.csc_matrix,
    "csr array": sp.csr_array,
    "csc array": sp.csc_array,
}
IN_FILES = {
    "dense": np.asarray,
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
}


def check(adata, expected):
    """The stored results are those of dense tables that were split by hand."""
    model, Z = expected
    assert np.allclose(adata.obsm["X_contrapca"], Z, rtol=1e-7, atol=1e-7)
    assert np.allclose(adata.varm["ContraPCs"], model.loadings_, rtol=1e-7, atol=1e-7)
    assert np.allclose(adata.uns["contrapca"]["variance"], model.explained_variance_, rtol=1e-9)


@pytest.fixture
def expected(unnamed):
    return by_hand(unnamed, case=None)


@pytest.fixture(params=["kept", "moments"])
def kept(request, monkeypatch):
    """Lazy matrices are small enough to be kept, or too large."""
    if request.param == "moments":
        monkeypatch.setattr(_cells, "KEEP_BYTES", 0)
        monkeypatch.setattr(_cells, "MOMENTS_AT_ONCE", 0)
    return request.param


@pytest.mark.parametrize("kind", IN_MEMORY)
def test_in_memory(unnamed, expected, kind):
    unnamed.X = IN_MEMORY[kind](dense(unnamed))
    tl.contrapca(unnamed, **PLAIN)
    check(unnamed, expected)


@pytest.mark.parametrize("kind", ["dense", "csr matrix", "csc array"])
def test_float32_and_whole_numbers(unnamed, expected, kind):
    counts = dense(unnamed, "counts")
    unnamed.X = IN_MEMORY[kind](dense(unnamed)).astype(np.float32)
    tl.contrapca(unnamed, **PLAIN)
    assert np.allclose(unnamed.obsm["X_contrapca"], expected[1], atol=1e-4)
    for dtype in (np.int32, np.float64):
        unnamed.X = IN_MEMORY[kind](counts).astype(dtype)
        with pytest.warns(UserWarning, match="log1p"):
            tl.contrapca(unnamed, **PLAIN, key_added=np.dtype(dtype).name)
    assert np.array_equal(unnamed.obsm["int32"], unnamed.obsm["float64"])


def test_views(unnamed, need):
    """A view gives the results of its copy, and becomes one, as scanpy's functions make it."""
    part = unnamed[10:, ::2]
    copy = part.copy()
    tl.contrapca(copy, **PLAIN)
    with pytest.warns(need("anndata").ImplicitModificationWarning):
        tl.contrapca(part, **PLAIN)
    assert not part.is_view
    assert "X_contrapca" not in unnamed.obsm
    assert np.array_equal(part.obsm["X_contrapca"], copy.obsm["X_contrapca"])


@pytest.mark.parametrize("kind", IN_FILES)
def test_backed_files(unnamed, expected, kind, kept, tmp_path, need):
    unnamed.X = IN_FILES[kind](dense(unnamed))
    unnamed.write_h5ad(tmp_path / "cells.h5ad")
    content = (tmp_path / "cells.h5ad").read_bytes()
    backed = need("anndata").read_h5ad(tmp_path / "cells.h5ad", backed="r")
    tl.contrapca(backed, **PLAIN)
    check(backed, expected)
    backed.file.close()
    assert (tmp_path / "cells.h5ad").read_bytes() == content


@pytest.mark.parametrize("form", ["h5ad", pytest.param("zarr", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_lazy_files(unnamed, expected, kind, form, kept, tmp_path, need):
    need("dask")
    experimental = need("anndata.experimental")
    if not hasattr(experimental, "read_lazy"):
        assert need("anndata").__version__.startswith("0.11")  # it is new in 0.12
        return
    unnamed.X = IN_FILES[kind](dense(unnamed))
    unnamed.obs["arm"] = unnamed.obs["arm"].astype("category")
    getattr(unnamed, f"write_{form}")(tmp_path / "cells")
    lazy = experimental.read_lazy(_opened(tmp_path / "cells", form, need))
    tl.contrapca(lazy, **PLAIN)
    check(lazy, expected)


def _opened(path, form, need):
    return need("h5py").File(path) if form == "h5ad" else path


@pytest.mark.parametrize("kind", ["dense", "csr matrix", "csc matrix", "csr array"])
def test_dask(unnamed, expected, kind, kept, need):
    unnamed.X = chunked(IN_MEMORY[kind](dense(unnamed)), [50, 1, 69], need)
    tl.contrapca(unnamed, **PLAIN)
    check(unnamed, expected)


def chunked(table, sizes, need, read=None):
    """A dask array of chunks of rows; `read` is called with the number of each chunk that is computed."""
    edges = np.cumsum([0, *sizes])

    def chunk(number):
        k = int(number[0])
        if read is not None:
            read(k)
        rows = slice(edges[k], edges[k + 1])
        return sp.csr_array(table)[rows].asformat(table.format) if sp.issparse(table) else table[rows]

    numbers = need("dask.array").arange(len(sizes), chunks=1)
    chunks = (tuple(sizes), (table.shape[1],))
    return numbers.map_blocks(chunk, new_axis=1, chunks=chunks, dtype=table.dtype, meta=table[:0])


def test_every_chunk_is_read_once_for_the_fit(unnamed, kept, need):
    """And once more for the latents and once for cells that judge the components, if it cannot be kept."""
    seen = []
    lazy = chunked(unnamed.X, [30, 30, 60], need, seen.append)
    unnamed.layers["lazy"] = lazy
    tl.contrapca(unnamed, **PLAIN, layer="lazy")
    assert sorted(seen) == sorted([0, 1, 2] * {"kept": 1, "moments": 3}[kept])
    seen.clear()
    tl.test(unnamed, groupby="arm", background="ctrl", layer="lazy", mask_var="few", max_comps=1)
    assert sorted(seen) == [0, 1, 2]


def test_rows_stay_sparse(unnamed, kept, need, monkeypatch):
    """Whatever becomes dense is of the size of the genes, not of the cells."""
    unnamed.X = chunked(sp.csr_matrix(dense(unnamed)), [60, 60], need)
    filled = []
    for kind in (sp.csr_matrix, sp.csr_array, sp.csc_array, sp.csc_matrix):
        original = kind.toarray
        monkeypatch.setattr(
            kind, "toarray", lambda self, original=original: filled.append(self.shape) or original(self)
        )
    tl.contrapca(unnamed, **PLAIN)
    assert all(max(shape) <= unnamed.n_vars for shape in filled)
    DaskRows(unnamed.X)[:].toarray()
    assert max(map(max, filled)) > unnamed.n_vars  # the control: it would have been noticed


def test_mask_of_lazy_genes(unnamed, kept, need):
    mask = unnamed.var["highly"].to_numpy()
    model, Z = by_hand(unnamed, genes=mask, case=None)
    unnamed.X = chunked(unnamed.X, [100, 20], need)
    tl.contrapca(unnamed, **PLAIN, mask_var="highly")
    assert np.allclose(unnamed.obsm["X_contrapca"], Z, rtol=1e-7, atol=1e-7)
    assert np.allclose(unnamed.varm["ContraPCs"][mask], model.loadings_, rtol=1e-7, atol=1e-7)


def test_chunked_genes_are_refused_with_advice(unnamed, need):
    unnamed.X = need("dask.array").from_array(dense(unnamed), chunks=(60, 10))
    with pytest.raises(ValueError, match=r"in 4 chunks.*Use X\.rechunk"):
        tl.contrapca(unnamed, **PLAIN)
    assert not unnamed.uns
    unnamed.X = unnamed.X.rechunk((unnamed.X.chunks[0], -1))
    tl.contrapca(unnamed, **PLAIN)


def test_missing_values_of_lazy_rows_are_named(unnamed, kept, need):
    table = dense(unnamed)
    table[70, 4] = np.nan
    unnamed.X = chunked(table, [60, 60], need)
    if kept == "kept":
        tl.pcpca(unnamed, **PLAIN, gamma=0.1)
        assert np.isfinite(unnamed.obsm["X_pcpca"]).all()
    else:
        with pytest.raises(ValueError, match=r"Input contains NaN.*the first: 'gene4'"):
            tl.pcpca(unnamed, **PLAIN, gamma=0.1)


def test_rows_of_a_file_come_in_chunks(tmp_path, need, monkeypatch):
    need("dask")
    monkeypatch.setattr("contrapca.data.rows._dask.READ_BYTES", 8 * 5 * 7)
    table = np.arange(100.0).reshape(20, 5)
    with need("h5py").File(tmp_path / "table.h5", "w") as file:
        file["x"] = table
        file.create_dataset("in chunks", data=table, chunks=(2, 5))
        for name, sizes in (("x", (7, 7, 6)), ("in chunks", (6, 6, 6, 2))):  # no chunk of the file is read twice
            rows = row_chunks(file[name])
            assert rows.chunks[0] == sizes
            assert np.array_equal(DaskRows(rows[:, [0, 2]])[:], table[:, [0, 2]])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["in memory", "backed"])
def test_the_full_counts(kind, data_folder, tmp_path, need):
    """5918 cells of bone marrow x 32,738 genes, log(1 + count): the plain sparse fit, with nothing filled in."""
    files = [data_folder / "zheng_bmmc" / f"{name}_counts.npz" for name in ("aml027_pre", "healthy1")]
    cases, controls = (sp.csr_matrix(sp.load_npz(file), dtype=np.float32).log1p() for file in files)
    condition = np.repeat(["case", "ctrl"], [cases.shape[0], controls.shape[0]])
    adata = need("anndata").AnnData(sp.vstack([cases, controls], format="csr"), obs={"condition": condition})
    assert adata.shape == (5918, 32738)
    model = PCPCA(10, gamma=0.3).fit(cases, background=controls)
    if kind == "backed":
        adata.write_h5ad(tmp_path / "cells.h5ad")
        adata = need("anndata").read_h5ad(tmp_path / "cells.h5ad", backed="r")
    tl.pcpca(adata, groupby="condition", background="ctrl", n_comps=10, gamma=0.3)
    assert np.allclose(adata.obsm["X_pcpca"][: cases.shape[0]], model.transform(cases), atol=1e-3)
    assert np.allclose(adata.varm["PCPCs"], model.loadings_, atol=1e-4)
    if kind == "backed":
        adata.file.close()


# ---------------------------------------------------------------- memory


@pytest.fixture(scope="module")
def wide_file(need, tmp_path_factory):
    """Files of 2000 cells x 3000 genes with 30 % of the values, CSR and CSC: 22 MB each in memory."""
    anndata = need("anndata")
    table = sp.random(2000, 3000, 0.3, format="csr", random_state=0)
    adata = anndata.AnnData(table, obs={"arm": np.where(np.arange(2000) % 2, "case", "ctrl")})
    adata.obs_names, adata.var_names = ([f"{kind}{k}" for k in range(n)] for kind, n in (("c", 2000), ("g", 3000)))
    adata.var["few"] = np.arange(3000) % 30 == 0
    folder = tmp_path_factory.mktemp("wide")
    for kind in ("csr", "csc"):
        adata.X = table.asformat(kind)
        adata.write_h5ad(folder / f"{kind}.h5ad")
    return folder, 12.0 * table.nnz


def peak_of(call):
    """Bytes that a call takes at its peak."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_only_the_genes_that_are_used_are_in_memory(kind, wide_file, need, monkeypatch):
    folder, whole = wide_file
    monkeypatch.setattr("contrapca.data.rows._dask.READ_BYTES", 2**20)
    backed = need("anndata").read_h5ad(folder / f"{kind}.h5ad", backed="r")
    cells = _cells.choose(backed, _cells.Choice("arm", "ctrl", mask_var="few"))
    assert cells.bytes_in_memory == pytest.approx(whole / 30, rel=0.01)
    table = cells.read()  # now libraries are loaded, which take memory, too
    assert peak_of(cells.read) < whole / 4
    assert (
        peak_of(lambda: _cells.choose(backed, _cells.Choice("arm", "ctrl", mask_var=None)).read()) > whole
    )  # the control
    assert np.array_equal(table.toarray(), backed.to_memory().X[:, backed.var["few"].to_numpy()].toarray())
    backed.file.close()


def test_a_large_csr_file_is_never_whole_in_memory(wide_file, need, monkeypatch):
    """Its values are counted: 30 % are no 10 %, and what would fit by a guess is reduced to moments."""
    folder, whole = wide_file
    monkeypatch.setattr("contrapca.data.rows._dask.READ_BYTES", 2**20)
    monkeypatch.setattr(_cells, "KEEP_BYTES", 0.8 * whole)
    monkeypatch.setattr(_cells, "MOMENTS_AT_ONCE", 0)
    backed = need("anndata").read_h5ad(folder / "csr.h5ad", backed="r")
    assert _cells.choose(backed, _cells.Choice("arm", "ctrl")).is_large
    assert not _cells.choose(backed, _cells.Choice("arm", "ctrl", mask_var="few")).is_large
    csc = need("anndata").read_h5ad(folder / "csc.h5ad", backed="r")
    assert not _cells.choose(csc, _cells.Choice("arm", "ctrl")).is_large
    monkeypatch.setattr(_cells, "MOMENTS_AT_ONCE", 16)
    assert not _cells.choose(backed, _cells.Choice("arm", "ctrl")).is_large  # moments would take more than the matrix
    for file in (backed, csc):
        file.file.close()


def test_values_of_the_used_genes_of_a_csc_file_are_counted(tmp_path, need):
    """Variable genes are often filled more than others."""
    table = np.zeros((60, 20))
    table[:, :4] = 1.0
    table[:6, 4:] = 1.0
    adata = need("anndata").AnnData(sp.csc_matrix(table))
    adata.obs["arm"] = np.where(np.arange(60) % 2, "case", "ctrl")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = need("anndata").read_h5ad(tmp_path / "cells.h5ad", backed="r")
    for mask, count in ((np.arange(20) < 4, 240), (np.arange(20) >= 4, 96), (None, 336)):
        assert _cells.choose(backed, _cells.Choice("arm", "ctrl", mask_var=mask)).bytes_in_memory == 12 * count
    backed.file.close()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "density"), [("csr", 0.6), ("csc", 0.3), ("dense", 1.0)])
def test_memory_at_any_density(kind, density, tmp_path, need, monkeypatch):
    """A fit takes what is said before it is read, and where moments will do, less than the matrix."""
    table = sp.random(20_000, 300, density, format="csr", random_state=0, dtype=np.float32)
    adata = need("anndata").AnnData(IN_FILES[kind](table.toarray() if kind == "dense" else table))
    adata.obs_names, adata.var_names = ([f"{name}{k}" for k in range(n)] for name, n in (("c", 20_000), ("g", 300)))
    adata.obs["arm"] = np.where(np.arange(20_000) % 2, "case", "ctrl")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = need("anndata").read_h5ad(tmp_path / "cells.h5ad", backed="r")
    size = _cells.choose(backed, _cells.Choice("arm", "ctrl")).bytes_in_memory
    monkeypatch.setattr("contrapca.data.rows._dask.READ_BYTES", 2**19)
    monkeypatch.setattr("contrapca.anndata._fit.MOST_CELLS", 200)
    fixed = 25e6  # latents, labels, and rows that are handled at a time
    fit = lambda: tl.contrapca(backed, "arm", "ctrl", n_comps=1, gamma=0.3)  # noqa: E731
    fit()  # loads libraries
    assert size < peak_of(fit) < _cells.FIT_COPIES * size + fixed
    if kind != "csc":
        monkeypatch.setattr(_cells, "KEEP_BYTES", 0)
        assert peak_of(fit) < fixed  # also of twice as many cells
    backed.file.close()
