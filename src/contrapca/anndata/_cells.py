"""What is analysed of an AnnData: which matrix, which genes, which cells in which group, which donors."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, available_memory, in_memory, is_sparse, library_of
from .._util.optional import require
from .._util.text import as_list, did_you_mean, is_missing, listed, plural
from ..data import Groups, Indices, Study, checked_blocks, group_rows, is_anndata, matrix_of, named_backgrounds, take
from ..data.rows import DaskRows, labelled_moments, row_chunks
from ..exceptions import GroupError, warn
from ..moments import MAX_DENSE, DenseScatter, Moments

LAZY = ("anndata", "dask", "h5py", "zarr")  # libraries of matrices that are not in memory
HIGHLY_VARIABLE = "highly_variable"
MAX_LEVELS = 10  # of columns, shown in messages
KEEP_BYTES = 2**30  # of a lazy matrix; a larger one is not kept in memory, but reduced to moments
FILLED = 0.1  # of sparse chunks of dask, whose values are not counted before they are read


@dataclass(frozen=True)
class Cells:
    """The cells and genes of an AnnData that are analysed, and what is known of each cell."""

    matrix: Any  # X, a layer, or an array of `obsm`, shape (n_obs, n)
    mask: npt.NDArray[np.bool_] | None  # the columns that are used, shape (n,); None means all
    names: list[str]  # of these columns: D genes
    groups: Groups[Indices]  # the cells of each group
    blocks: Groups[npt.NDArray[Any]] | None  # the donor of each cell of each group
    paired: bool  # whether every donor has cells in both groups
    covariates: Any  # a pandas frame of what is taken out, shape (n_obs, q), the column of `within` last; or None
    weights: Groups[Array] | None  # how often each cell of each group counts, from 0 to 1; None: once
    of_genes: bool  # whether columns are genes, which an array of `obsm` has not
    params: dict[str, Any]  # the arguments that chose all this, as they are stored
    conditions: tuple[str, ...] = ()  # if there are several: their names, and
    condition_of: Indices | None = None  # that of each cell of the foreground, those of one condition together

    def study(self, rows: Groups[Rows], *, labels: Any = None, names: Any = None, label_name: Any = None) -> Study:
        """The rows of each group, with what is known of them."""
        covariates = None
        if self.covariates is not None:
            covariates = tuple(self.covariates.iloc[cells].reset_index(drop=True) for cells in self.groups)
        known: dict[str, Any] = {
            "blocks": None if self.blocks is None else tuple(self.blocks),
            "covariates": covariates,
            "weights": None if self.weights is None else tuple(self.weights),
            "labels": labels,
            "names": names,
        }
        about: dict[str, Any] = {"features": self.names, "label_name": label_name}
        background = background_argument(rows)
        if self.condition_of is None:
            return Study(rows.foreground, background=background, paired=self.paired, **known, **about)
        tables = self._by_condition((rows.foreground, background))
        groups = dict(zip(self.conditions, tables, strict=False))
        of_conditions: dict[str, Any] = {
            name: None if own is None else self._by_condition(own) for name, own in known.items()
        }
        return Study(groups=groups, background=background, **of_conditions, **about)

    def _by_condition(self, groups: tuple[Any, ...]) -> tuple[Any, ...]:
        """What belongs to the cells of the foreground, for each condition, and to those of the background."""
        own, controls = groups
        parts = [np.flatnonzero(self.condition_of == c) for c in range(len(self.conditions))]
        return (*(None if own is None else take(own, part) for part in parts), controls)

    def some(self, kept: Groups[Indices], **changed: Any) -> Cells:
        """Some cells of each group, by their places in it."""
        blocks, weights = (None if own is None else own.map(_take, kept) for own in (self.blocks, self.weights))
        found = replace(self, groups=self.groups.map(_take, kept), blocks=blocks, weights=weights)
        if self.condition_of is not None:
            found = replace(found, condition_of=self.condition_of[kept.foreground])
        return replace(found, **changed)

    def alike(self, random_state: int | None) -> Cells:
        """Of the cells that count less than once, as large a share at random: tests take no weights."""
        if self.weights is None:
            return self
        rng, kept = np.random.default_rng(random_state), []
        for weights in self.weights:
            own = []
            for weight in np.unique(weights):
                cells = np.flatnonzero(weights == weight)
                own.append(rng.permutation(cells)[: max(2, round(weight * cells.size))])
            kept.append(np.sort(np.concatenate(own)))
        return self.some(self.groups.like(kept), weights=None)

    @property
    def _fills(self) -> bool:
        """Whether means are taken out of values, zeros included, so that sparse rows become dense."""
        return self.covariates is not None or self.condition_of is not None

    @property
    def is_large(self) -> bool:
        """Whether the matrix is lazy and too large to be kept in memory, but not for moments of its genes."""
        streams = self._in_chunks and not self._fills and len(self.names) <= MAX_DENSE
        return streams and self.bytes_in_memory > KEEP_BYTES

    @property
    def bytes_in_memory(self) -> float:
        """What the genes that are used take in memory; sparse values are counted where that is possible."""
        n, D = self.matrix.shape[0], len(self.names)
        sparse = hasattr(self.matrix, "format") or is_sparse(getattr(self.matrix, "_meta", None))
        if not sparse or self._fills:
            return (4.0 if self.matrix.dtype == np.float32 else 8.0) * n * D
        if not hasattr(self.matrix, "group"):  # dask
            return 12.0 * n * D * FILLED
        values = self.matrix.group["data"]
        return float(values.shape[0] * (values.dtype.itemsize + 4.0) * D / self.matrix.shape[1])

    def read(self) -> Rows:
        """The chosen columns of all cells in memory, shape (n_obs, D); a lazy table is read once.

        Covariates are taken out of all values, zeros included, so sparse tables are then filled in.
        """
        fills = self._fills and (is_sparse(self.matrix) or is_lazy(self.matrix))
        why = "within= and regress_out=" if self.covariates is not None else "several conditions"
        if (is_lazy(self.matrix) or fills) and (needed := 2 * self.bytes_in_memory) > (free := available_memory()):
            raise MemoryError(
                f"Reading {plural(len(self.names), 'gene')} of {plural(self.matrix.shape[0], 'cell')}"
                f"{f' without gaps, as {why} need them,' if fills else ''} takes about "
                f"{needed / 1e9:.3g} GB, and {free / 1e9:.3g} GB are free: use fewer genes (mask_var=) or fewer cells."
            )
        if self._in_chunks:
            table = self.lazy()[:]
        elif is_lazy(self.matrix):  # CSC in a file: rows cannot be read one by one, but columns can
            table = in_memory(self.matrix[:] if self.mask is None else self.matrix[:, np.flatnonzero(self.mask)])
        else:
            table = in_memory(self.matrix)
            table = table if self.mask is None else table[:, self.mask]
        table = table.toarray() if fills and is_sparse(table) else table
        if self.of_genes and not np.any(table.data if is_sparse(table) else table):
            raise GroupError(
                f"All values of the {plural(len(self.names), 'gene')} that are used are 0, so nothing varies: was a "
                "layer meant (layer=), or other genes (mask_var=)?"
            )
        return table

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
    groupby: Any,
    background: Any,
    foreground: Any = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    pairs: str | None = None,
    regress_out: Any = None,
    within: str | None = None,
) -> Cells:
    """Check the arguments that choose cells and genes; nothing of the matrix is read yet."""
    if not is_anndata(adata):
        raise TypeError(f"adata is a {type(adata).__name__}: pass an AnnData.")
    background, foreground = _as_labels(background), _as_labels(foreground)
    groups = _groups(adata.obs, groupby, background, foreground)
    _check_mask_values(adata.var, mask_var)
    matrix, mask, names = matrix_of(adata, layer, obsm, mask_var)
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        where = "var_names" if obsm is None else f"obsm[{obsm!r}]"
        raise ValueError(
            f"{plural(len(repeated), 'name')} of adata.{where} occur more than once ({listed(repeated, 3)}), so genes "
            "cannot be told apart: call adata.var_names_make_unique() first."
        )
    if blocks is not None and pairs is not None:
        raise ValueError(
            f"Both blocks={blocks!r} and pairs={pairs!r} were given: pairs are blocks, so leave blocks= out."
        )
    given = {"groupby": groupby, "background": background, "foreground": foreground, "layer": layer, "obsm": obsm}
    by_name = isinstance(mask_var, str) and mask is not None
    used = (HIGHLY_VARIABLE if mask_var == "auto" else mask_var) if by_name else mask
    taken_out = [] if regress_out is None else _as_labels(regress_out)
    taken_out = taken_out if isinstance(taken_out, list) else [taken_out]
    params = given | {"mask_var": used, "blocks": blocks, "pairs": pairs}
    params |= {"regress_out": taken_out or None, "within": within}
    weights, types = None, 0
    codes = None
    if isinstance(foreground, Mapping):
        if within is not None or pairs is not None:
            raise GroupError(
                f"With several conditions, {'within=' if within is not None else 'pairs='} is not possible: cells of "
                "each count by their number. Compare one condition, or pass blocks= and regress_out=."
            )
        groups, codes = _by_conditions(group_values(adata.obs, groupby), groups, foreground)
    if within is not None:
        groups, weights, types = _alike_in_types(adata.obs, groups, within)
    covariates = covariates_of(adata.obs, taken_out, within if types > 1 else None)
    if covariates is not None:
        _check_covariates(covariates, groups, within)
    whose, argument = (blocks, "blocks") if pairs is None else (pairs, "pairs")
    labels = None if whose is None else column(adata.obs, whose, argument, "adata.obs")
    of_cells = None if labels is None else groups.map(lambda cells: labels[cells])
    if of_cells is not None:
        checked_blocks(of_cells, groups.map(lambda cells: int(cells.size)), paired=pairs is not None)
    return Cells(
        matrix=matrix,
        mask=mask,
        names=names,
        groups=groups,
        blocks=of_cells,
        paired=pairs is not None,
        covariates=covariates,
        weights=weights,
        of_genes=obsm is None,
        params=params,
        conditions=() if codes is None else tuple(foreground),
        condition_of=codes,
    )


def _as_labels(given: Any) -> Any:
    """Labels as a value, a list or a dict of them, from any kind of sequence; dates as text."""
    if isinstance(given, Mapping):
        return {name: _as_labels(own) for name, own in given.items()}
    if isinstance(given, list | tuple | set | np.ndarray) or (hasattr(given, "tolist") and np.ndim(given) > 0):
        return [_as_labels(own) for own in list(given)]
    return as_date(given) if hasattr(given, "isoformat") or isinstance(given, np.datetime64) else given


def as_date(value: Any) -> Any:
    """A date as text, without the time if that is midnight."""
    return None if is_missing(value) else str(np.datetime64(value, "s")).removesuffix("T00:00:00")


def group_values(obs: Any, groupby: Any) -> npt.NDArray[Any]:
    """The values of a column that tells groups apart; dates as text."""
    values = column(obs, groupby, "groupby", "adata.obs")
    return np.array([as_date(own) for own in values], dtype=object) if values.dtype.kind == "M" else values


def _groups(obs: Any, groupby: Any, background: Any, foreground: Any) -> Groups[Indices]:
    """The cells of the foreground and of each background; the labels of a list are one background."""
    values = group_values(obs, groupby)
    if background is None:
        have = list(dict.fromkeys(own for own in values.tolist() if not is_missing(own)))
        raise GroupError(
            f"background=None names no controls: pass the value of adata.obs[{groupby!r}] that marks them, which has "
            f"{listed(have, MAX_LEVELS)}."
        )
    named = named_backgrounds(background)
    if any("/" in name for name in named):
        raise GroupError(f"Backgrounds are named {listed(list(named))}: files take '/' for a folder, so leave it out.")
    cases = foreground
    if isinstance(foreground, Mapping):
        if len(named) > 1:
            raise GroupError("Several conditions share one background: pass a list of values as background=.")
        cases = [label for own in foreground.values() for label in as_list(own)]
    groups = group_rows(values, named, cases, f"adata.obs[{groupby!r}]")
    for name, cells in zip(groups.names, groups, strict=True):
        if cells.size < 2:
            raise GroupError(f"The {name} has {plural(cells.size, 'cell')}: each group needs at least 2.")
    return groups


def _by_conditions(
    values: npt.NDArray[Any], groups: Groups[Indices], foreground: Mapping[str, Any]
) -> tuple[Groups[Indices], Indices]:
    """The groups with the cells of a condition together, and the condition of each cell of the foreground."""
    if any("/" in name for name in foreground):
        raise GroupError(f"Conditions are named {listed(list(foreground))}: files take '/' for a folder.")
    own = values[groups.foreground].tolist()
    parts = [groups.foreground[[value in as_list(labels) for value in own]] for labels in foreground.values()]
    codes = np.repeat(np.arange(len(parts)), [part.size for part in parts])
    return groups.like([np.concatenate(parts), *groups.backgrounds]), codes


def _check_mask_values(var: Any, mask_var: Any) -> None:
    """Raise if a column of `var` has no value for some genes, as after a join."""
    name = HIGHLY_VARIABLE if isinstance(mask_var, str) and mask_var == "auto" else mask_var
    if not isinstance(name, str) or name not in list(var.columns):
        return
    if gone := sum(map(is_missing, np.asarray(var[name], dtype=object).tolist())):
        raise GroupError(
            f"adata.var[{name!r}] has no value for {gone} of the {len(var)} genes: say whether these are used, for "
            f"example adata.var[{name!r}] = adata.var[{name!r}].fillna(False).astype(bool), or use all genes with "
            "mask_var=None."
        )


def _alike_in_types(
    obs: Any, groups: Groups[Indices], within: str
) -> tuple[Groups[Indices], Groups[Array] | None, int]:
    """The cells of types that all groups have, their weights, and how many types these are.

    By the weights all groups have the same shares of types: in each a type counts as much as in the group where its
    share is smallest, so a weight is at most 1.
    """
    values = column(obs, within, "within", "adata.obs")
    texts = np.array(["" if is_missing(own) else str(own) for own in values.tolist()], dtype=object)
    types = groups.map(lambda cells: texts[cells])
    for group, own in zip(types.names, types, strict=True):
        if gone := int(np.sum(own == "")):
            raise GroupError(
                f"{gone} of {plural(own.size, 'cell')} of the {group} have no value in adata.obs[{within!r}], so "
                "within= cannot compare them with others of their type: leave these cells out."
            )
    counts = types.map(lambda own: Counter(own.tolist()))
    known = [name for name in counts.foreground if all(count[name] >= 2 for count in counts)]
    if not known:
        raise GroupError(f"No value of adata.obs[{within!r}] has 2 cells in every group, so nothing can be compared.")
    if alone := sorted(set().union(*counts) - set(known)):
        warn(
            f"Cells with {listed(alone)} in adata.obs[{within!r}] do not take part: one of the groups has fewer than 2 "
            "of them, so there is nothing to compare them with."
        )
    kept = types.map(lambda own: np.flatnonzero(np.isin(own, known)))
    shares = counts.map(lambda count: {name: count[name] / sum(count[one] for one in known) for name in known})
    least = {name: min(share[name] for share in shares) for name in known}
    weights = types.map(
        lambda own, share, keep: np.array([least[name] / share[name] for name in own[keep].tolist()]), shares, kept
    )
    chosen = groups.map(_take, kept)
    return chosen, None if all(np.all(own == 1) for own in weights) else weights, len(known)


def covariates_of(obs: Any, regress_out: list[str], within: str | None) -> Any:
    """A frame of the columns that are taken out of the genes, shape (n_obs, q); None if there are none."""
    columns = {name: column(obs, name, "regress_out", "adata.obs") for name in regress_out}
    if within is not None:  # a category, also if it is a number
        values = column(obs, within, "within", "adata.obs").tolist()
        columns[within] = np.array([None if is_missing(own) else str(own) for own in values], dtype=object)
    return frame(columns) if columns else None


def _check_covariates(covariates: Any, groups: Groups[Indices], within: str | None) -> None:
    cells = np.concatenate(list(groups))
    for name in covariates.columns:
        if name != within and (gone := sum(map(is_missing, covariates[name].iloc[cells].tolist()))):
            raise GroupError(
                f"{gone} of {plural(cells.size, 'cell')} have no value in adata.obs[{name!r}], so its effect cannot be "
                "taken out of them: fill it in, or leave these cells out."
            )


def frame(columns: Mapping[str, Any]) -> Any:
    """A pandas data frame, which `uns` and files can hold."""
    return require("pandas", extra="anndata").DataFrame(dict(columns))


def _take(values: npt.NDArray[Any], kept: Indices) -> npt.NDArray[Any]:
    return values[kept]


def column(frame: Any, name: Any, argument: str, where: str) -> npt.NDArray[Any]:
    """The values of a column of `obs` or `var`, one for each cell or gene, also where these are read lazily."""
    columns = list(frame.columns)
    if getattr(name, "ndim", 0) or isinstance(name, list | tuple):
        raise TypeError(f"{argument} is a {type(name).__name__}: pass the name of a column of {where}, not its values.")
    if name not in columns:
        known = f"only {listed(columns, MAX_LEVELS)}" if columns else "which has no columns"
        raise ValueError(f"{argument}={name!r} is not a column of {where}, {known}.{did_you_mean(name, columns)}")
    return np.asarray(frame[name])


def background_argument(values: Groups[Any]) -> Any:
    """The values of the backgrounds as estimators take them: one, or a dict if they have names."""
    named = dict(zip(values.names[1:], values.backgrounds, strict=True))
    return named.get("background", named)


def loaded(table: Any) -> Rows:
    """A whole table in memory, wherever it is."""
    if hasattr(table, "dask"):
        return DaskRows(table)[:]
    return in_memory(table[:] if is_lazy(table) else table)


def is_lazy(table: Any) -> bool:
    """Whether the rows of a table are somewhere else than in memory."""
    return not isinstance(table, np.ndarray) and not is_sparse(table) and library_of(type(table)) in LAZY


def check_n_comps(n_comps: Any, n_features: int) -> None:
    """Raise unless there are more features than components."""
    if isinstance(n_comps, bool) or not isinstance(n_comps, int | np.integer) or not 1 <= n_comps < n_features:
        raise GroupError(
            f"n_comps={n_comps!r} must be a whole number from 1 to {n_features - 1}, less than the {n_features} genes "
            "(or columns of obsm) that are used."
        )


def choice_of(
    groupby: Any,
    background: Any,
    foreground: Any,
    layer: Any,
    obsm: Any,
    mask_var: Any,
    blocks: Any,
    pairs: Any,
    regress_out: Any,
    within: Any,
) -> dict[str, Any]:
    """The arguments of `choose`."""
    groups = {"groupby": groupby, "background": background, "foreground": foreground, "blocks": blocks, "pairs": pairs}
    matrix = {"layer": layer, "obsm": obsm, "mask_var": mask_var}
    return groups | matrix | {"regress_out": regress_out, "within": within}


def stored_seed(random_state: Any) -> int | None:
    """A random seed that can be stored."""
    if random_state is None or (isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)):
        return None if random_state is None else int(random_state)
    raise TypeError(f"random_state={random_state!r} must be a whole number or None: it is stored with the results.")
