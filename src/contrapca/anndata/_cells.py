"""What is analysed of an AnnData: which matrix, which genes, which cells in which group, which donors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, in_memory, is_sparse, library_of
from .._util.text import did_you_mean, listed, plural
from ..data import Groups, Indices, Study, checked_blocks, group_rows, matrix_of, named_backgrounds
from ..data.rows import DaskRows, labelled_moments, row_chunks
from ..exceptions import GroupError
from ..moments import MAX_DENSE, DenseScatter, Moments

LAZY = ("anndata", "dask", "h5py", "zarr")  # libraries of matrices that are not in memory
HIGHLY_VARIABLE = "highly_variable"
MAX_LEVELS = 10  # of columns, shown in messages
KEEP_BYTES = 2**30  # of a lazy matrix; a larger one is not kept in memory, but reduced to moments
FILLED = 0.1  # of a sparse matrix whose values are not counted before they are read


@dataclass(frozen=True)
class Cells:
    """The cells and genes of an AnnData that are analysed."""

    matrix: Any  # X, a layer, or an array of `obsm`, shape (n_obs, n)
    mask: npt.NDArray[np.bool_] | None  # the columns that are used, shape (n,); None means all
    names: list[str]  # of these columns: D genes
    groups: Groups[Indices]  # the cells of each group
    blocks: Groups[npt.NDArray[Any]] | None  # the donor of each cell of each group
    of_genes: bool  # whether columns are genes, which an array of `obsm` has not
    params: dict[str, Any]  # the arguments that chose all this, as they are stored

    def study(self, rows: Groups[Rows], **beside: Any) -> Study:
        """The rows of each group, with their donors and what else is known of them."""
        beside |= {"blocks": None if self.blocks is None else tuple(self.blocks), "features": self.names}
        return Study(rows.foreground, background=background_argument(rows), **beside)

    @property
    def is_large(self) -> bool:
        """Whether the matrix is lazy and too large to be kept in memory, but not for moments of its genes."""
        matrix, D = self.matrix, len(self.names)
        if not self._in_chunks or D > MAX_DENSE:
            return False
        sparse = hasattr(matrix, "format") or is_sparse(getattr(matrix, "_meta", None))
        return bool(8.0 * matrix.shape[0] * D * (FILLED if sparse else 1.0) > KEEP_BYTES)

    def read(self) -> Rows:
        """The chosen columns of all cells in memory, shape (n_obs, D); a lazy table is read once."""
        if self._in_chunks:
            return self.lazy()[:]
        # Rows of CSC matrices in files cannot be read one by one.
        matrix = in_memory(self.matrix.to_memory() if is_lazy(self.matrix) else self.matrix)
        return matrix if self.mask is None else matrix[:, self.mask]

    @property
    def _in_chunks(self) -> bool:
        """Whether the matrix is lazy, and can be read in chunks of rows."""
        return is_lazy(self.matrix) and (hasattr(self.matrix, "dask") or getattr(self.matrix, "format", "") != "csc")

    def lazy(self) -> DaskRows:
        """The same of a lazy table, to be read chunk by chunk; sparse chunks stay sparse."""
        array = self.matrix if hasattr(self.matrix, "dask") else row_chunks(self.matrix)
        return DaskRows(array if self.mask is None else array[:, np.flatnonzero(self.mask)])

    def split(self, table: Rows) -> Groups[Rows]:
        """The rows of each group, from the table of all cells."""
        return self.groups.map(lambda cells: table[cells])

    def moments(self) -> Groups[Moments]:
        """The moments of each group of a lazy table, all in one pass, where its blocks are."""
        group_of = np.full(self.matrix.shape[0], -1)
        for k, cells in enumerate(self.groups):
            group_of[cells] = k
        found = labelled_moments(self.lazy(), group_of, len(self.groups))
        return Groups.from_items((self._checked(*part) for part in found), self.groups.names)

    def _checked(self, weight: float, mean: Array, scatter: Array) -> Moments:
        bad = np.flatnonzero(~np.isfinite(mean) | ~np.isfinite(np.diagonal(scatter)))
        if bad.size:
            raise ValueError(
                f"Input contains NaN, infinity or values too large to be squared in {bad.size} of {mean.size} features "
                f"(the first: {self.names[bad[0]]!r}). A lazy matrix of this size needs complete, finite values."
            )
        return Moments(weight, mean, DenseScatter(scatter), tuple(self.names))


def choose(
    adata: Any,
    *,
    groupby: str,
    background: Any,
    foreground: Any = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
) -> Cells:
    """Check the arguments that choose cells and genes; nothing of the matrix is read yet."""
    if not is_anndata(adata):
        raise TypeError(f"adata is a {type(adata).__name__}: pass an AnnData.")
    groups = _groups(adata.obs, groupby, background, foreground)
    matrix, mask, names = matrix_of(adata, layer, obsm, mask_var)
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        where = "var_names" if obsm is None else f"obsm[{obsm!r}]"
        raise ValueError(
            f"{plural(len(repeated), 'name')} of adata.{where} occur more than once ({listed(repeated, 3)}), so genes "
            "cannot be told apart: call adata.var_names_make_unique() first."
        )
    labels = None if blocks is None else column(adata.obs, blocks, "blocks", "adata.obs")
    of_cells = None if labels is None else groups.map(lambda cells: labels[cells])
    if of_cells is not None:
        checked_blocks(of_cells, groups.map(lambda cells: int(cells.size)))
    given = {"groupby": groupby, "background": background, "foreground": foreground, "layer": layer, "obsm": obsm}
    by_name = isinstance(mask_var, str) and mask is not None
    used = (HIGHLY_VARIABLE if mask_var == "auto" else mask_var) if by_name else mask
    params = given | {"mask_var": used, "blocks": blocks}
    return Cells(matrix, mask, names, groups, of_cells, obsm is None, params)


def _groups(obs: Any, groupby: Any, background: Any, foreground: Any) -> Groups[Indices]:
    """The cells of the foreground and of each background; the labels of a list are one background."""
    named = named_backgrounds(background)
    if any("/" in name for name in named):
        raise GroupError(f"Backgrounds are named {listed(list(named))}: files take '/' for a folder, so leave it out.")
    values = column(obs, groupby, "groupby", "adata.obs")
    groups = group_rows(values, named, foreground, f"adata.obs[{groupby!r}]")
    for name, cells in zip(groups.names, groups, strict=True):
        if cells.size < 2:
            raise GroupError(f"The {name} has {plural(cells.size, 'cell')}: each group needs at least 2.")
    return groups


def column(frame: Any, name: Any, argument: str, where: str) -> npt.NDArray[Any]:
    """The values of a column of `obs` or `var`, one for each cell or gene, also where these are read lazily."""
    columns = list(frame.columns)
    if name not in columns:
        known = f"only {listed(columns, MAX_LEVELS)}" if columns else "which has no columns"
        raise ValueError(f"{argument}={name!r} is not a column of {where}, {known}.{did_you_mean(name, columns)}")
    return np.asarray(frame[name])


def background_argument(values: Groups[Any]) -> Any:
    """The values of the backgrounds as estimators take them: one, or a dict if they have names."""
    named = dict(zip(values.names[1:], values.backgrounds, strict=True))
    return named.get("background", named)


def is_lazy(table: Any) -> bool:
    """Whether the rows of a table are somewhere else than in memory."""
    return not isinstance(table, np.ndarray) and not is_sparse(table) and library_of(type(table)) in LAZY


def is_anndata(value: Any) -> bool:
    """Whether a value is an AnnData, without importing anndata."""
    return any(kind.__module__.startswith("anndata.") and kind.__name__ == "AnnData" for kind in type(value).__mro__)


def check_n_comps(n_comps: Any, n_features: int) -> None:
    """Raise unless there are more features than components."""
    if isinstance(n_comps, bool) or not isinstance(n_comps, int | np.integer) or not 1 <= n_comps < n_features:
        raise GroupError(
            f"n_comps={n_comps!r} must be a whole number from 1 to {n_features - 1}, less than the {n_features} genes "
            "(or columns of obsm) that are used."
        )
