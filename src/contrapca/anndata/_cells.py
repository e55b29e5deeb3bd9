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
FIT_COPIES, TEST_COPIES = 3, 5  # of the genes that are used, in memory at the peak of a fit, of a test: about
MOMENTS_AT_ONCE = 16  # D x D matrices of each group that wait to be merged at the peak of a pass: about
FILLED = 0.1  # of sparse chunks of dask, whose values are not counted before they are read


@dataclass(frozen=True)
class Choice:
    """The arguments of `tl` that choose cells and genes. They are stored with the results."""

    groupby: Any = None
    background: Any = None
    foreground: Any = None
    layer: str | None = None
    obsm: str | None = None
    mask_var: Any = "auto"
    blocks: str | None = None
    pairs: str | None = None
    regress_out: Any = None
    within: str | None = None


@dataclass(frozen=True)
class Cells:
    """The cells and genes of an AnnData that are analysed, and what is known of each cell.

    What is known is that of all cells, shape (n_obs, ...), whichever group they are in.
    """

    choice: Choice  # with labels as lists, and the name of the mask that was used
    matrix: Any  # X, a layer, or an array of `obsm`, shape (n_obs, n)
    mask: npt.NDArray[np.bool_] | None  # the columns that are used, shape (n,); None means all
    names: list[str]  # of these columns: D genes
    groups: Groups[Indices]  # the cells of each group; of several conditions one after the other
    condition_of: npt.NDArray[Any] | None  # the name of each cell's condition, if there are several
    blocks: npt.NDArray[Any] | None  # the donor of each cell
    covariates: Any  # a pandas frame of what is taken out, the column of `within` last; or None
    weights: Array | None  # how often each cell counts, from 0 to 1; None: once

    @property
    def of_genes(self) -> bool:
        """Whether columns are genes, unlike those of an array of `obsm`."""
        return self.choice.obsm is None

    def study(self, rows: Groups[Rows], *, labels: Any = None, names: Any = None, label_name: Any = None) -> Study:
        """The rows of each group, with what is known of them; `labels` and `names` are of all cells."""
        parts, tables = list(self.groups), list(rows)
        conditions: list[str] = []
        if self.condition_of is not None:
            conditions, of_cases = list(self.choice.foreground), self.condition_of[self.groups.foreground]
            places = [np.flatnonzero(of_cases == name) for name in conditions]
            parts = [*(parts[0][own] for own in places), parts[1]]
            tables = [*(tables[0][own] for own in places), tables[1]]
        blocks, covariates, weights, labels, names = (
            None if own is None else tuple(take(own, cells) for cells in parts)
            for own in (self.blocks, self.covariates, self.weights, labels, names)
        )
        about: dict[str, Any] = {"blocks": blocks, "weights": weights, "labels": labels, "names": names}
        if covariates is not None:  # in their order, not by the names of cells
            about["covariates"] = tuple(own.reset_index(drop=True) for own in covariates)
        about |= {"features": self.names, "label_name": label_name, "background": background_argument(rows)}
        if conditions:
            return Study(groups=dict(zip(conditions, tables, strict=False)), **about)
        return Study(tables[0], paired=self.choice.pairs is not None, **about)

    def alike(self, random_state: int | None) -> Cells:
        """Of the cells that count less than once, as large a share at random: tests take no weights."""
        if self.weights is None:
            return self
        rng, kept = np.random.default_rng(random_state), []
        for cells in self.groups:
            weights = self.weights[cells]
            shares = [(weight, cells[weights == weight]) for weight in np.unique(weights)]
            drawn = [rng.permutation(own)[: max(2, round(weight * own.size))] for weight, own in shares]
            kept.append(np.sort(np.concatenate(drawn)))
        return replace(self, groups=self.groups.like(kept), weights=None)

    @property
    def _fills(self) -> bool:
        """Whether means are taken out of values, zeros included, so that sparse rows become dense."""
        return self.covariates is not None or self.condition_of is not None

    @property
    def is_large(self) -> bool:
        """Whether the matrix is lazy and too large to be kept in memory, but not for moments of its genes."""
        streams = self._in_chunks and not self._fills and len(self.names) <= MAX_DENSE
        size = self.bytes_in_memory
        return streams and size > KEEP_BYTES and self._bytes_of_moments < FIT_COPIES * size

    @property
    def _bytes_of_moments(self) -> float:
        return 8.0 * MOMENTS_AT_ONCE * len(self.groups) * len(self.names) ** 2

    @property
    def bytes_in_memory(self) -> float:
        """What the genes that are used take in memory; sparse values are counted where that is possible."""
        n, D = self.matrix.shape[0], len(self.names)
        sparse = hasattr(self.matrix, "format") or is_sparse(getattr(self.matrix, "_meta", None))
        if not sparse or self._fills:
            return (4.0 if self.matrix.dtype == np.float32 else 8.0) * n * D
        if not hasattr(self.matrix, "group"):  # dask
            return 12.0 * n * D * FILLED
        values, share = self.matrix.group["data"], D / self.matrix.shape[1]
        if self.mask is not None and self.matrix.format == "csc":  # the values of each gene are known
            counts = np.diff(np.asarray(self.matrix.group["indptr"]))
            share = counts[self.mask].sum() / max(counts.sum(), 1)
        return float(values.shape[0] * (values.dtype.itemsize + 4.0) * share)

    def read(self, copies: int = FIT_COPIES) -> Rows:
        """The chosen columns of all cells in memory, shape (n_obs, D); a lazy table is read once.

        It is refused if what follows, with so many copies of it, would not fit. Covariates are taken out of all values,
        zeros included, so sparse tables are then filled in.
        """
        fills = self._fills and (is_sparse(self.matrix) or is_lazy(self.matrix))
        why = "within= and regress_out=" if self.covariates is not None else "several conditions"
        if (is_lazy(self.matrix) or fills) and (needed := copies * self.bytes_in_memory) > (free := available_memory()):
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
        """The chosen columns of a lazy table, to be read chunk by chunk; sparse chunks stay sparse."""
        array = self.matrix if hasattr(self.matrix, "dask") else row_chunks(self.matrix)
        return DaskRows(array if self.mask is None else array[:, np.flatnonzero(self.mask)])

    def split(self, table: Rows) -> Groups[Rows]:
        """The rows of each group, from the table of all cells."""
        return self.groups.map(lambda cells: table[cells])

    def moments(self) -> Groups[Moments]:
        """The moments of each group of a lazy table, all in one pass, where its blocks are."""
        if (needed := self._bytes_of_moments) > (free := available_memory()):
            raise MemoryError(
                f"Reducing {plural(len(self.names), 'gene')} to moments takes about {needed / 1e9:.3g} GB, and "
                f"{free / 1e9:.3g} GB are free: use fewer genes (mask_var=)."
            )
        group_of = np.full(self.matrix.shape[0], -1)
        for k, cells in enumerate(self.groups):
            group_of[cells] = k
        found = []
        for weight, mean, scatter in labelled_moments(self.lazy(), group_of, len(self.groups)):
            bad = np.flatnonzero(~np.isfinite(mean) | ~np.isfinite(np.diagonal(scatter)))
            if bad.size:
                raise ValueError(
                    f"Input contains NaN, infinity or values too large to be squared in {bad.size} of {mean.size} "
                    f"features (the first: {self.names[bad[0]]!r}). A lazy matrix of this size needs complete, finite "
                    "values."
                )
            found.append(Moments(weight, mean, DenseScatter(scatter), tuple(self.names)))
        return self.groups.like(found)


def choose(adata: Any, choice: Choice) -> Cells:
    """Check the arguments that choose cells and genes; nothing of the matrix is read yet."""
    if not is_anndata(adata):
        raise TypeError(f"adata is a {type(adata).__name__}: pass an AnnData.")
    obs, mask_var, within = adata.obs, choice.mask_var, choice.within
    taken_out = [] if choice.regress_out is None else _as_labels(choice.regress_out)
    taken_out = taken_out if isinstance(taken_out, list) else [taken_out]
    labels = {"background": _as_labels(choice.background), "foreground": _as_labels(choice.foreground)}
    choice = replace(choice, **labels, regress_out=taken_out or None)
    groups = _groups(obs, choice)
    # Genes.
    _check_mask_values(adata.var, mask_var)
    matrix, mask, names = matrix_of(adata, choice.layer, choice.obsm, mask_var)
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        where = "var_names" if choice.obsm is None else f"obsm[{choice.obsm!r}]"
        raise ValueError(
            f"{plural(len(repeated), 'name')} of adata.{where} occur more than once ({listed(repeated, 3)}), so genes "
            "cannot be told apart: call adata.var_names_make_unique() first."
        )
    if not isinstance(mask_var, str):
        mask_var = mask
    elif mask_var == "auto":
        mask_var = None if mask is None else HIGHLY_VARIABLE
    # What is known of cells.
    if choice.blocks is not None and choice.pairs is not None:
        raise ValueError(
            f"Both blocks={choice.blocks!r} and pairs={choice.pairs!r} were given: pairs are blocks, so leave blocks= "
            "out."
        )
    condition_of, weights, n_types = None, None, 0
    if isinstance(choice.foreground, Mapping):
        groups, condition_of = _by_conditions(obs, groups, choice)
    if within is not None:
        groups, weights, n_types = _alike_in_types(obs, groups, within)
    covariates = covariates_of(obs, taken_out, within if n_types > 1 else None)
    for name in taken_out:
        values = take(covariates[name], np.concatenate(list(groups))).tolist()
        if gone := sum(map(is_missing, values)):
            raise GroupError(
                f"{gone} of {plural(len(values), 'cell')} have no value in adata.obs[{name!r}], so its effect cannot "
                "be taken out of them: fill it in, or leave these cells out."
            )
    whose, argument = (choice.blocks, "blocks") if choice.pairs is None else (choice.pairs, "pairs")
    blocks = None if whose is None else column(obs, whose, argument, "adata.obs")
    if blocks is not None:
        of_cells, sizes = groups.map(lambda cells: blocks[cells]), groups.map(lambda cells: int(cells.size))
        checked_blocks(of_cells, sizes, paired=choice.pairs is not None)
    return Cells(
        choice=replace(choice, mask_var=mask_var),
        matrix=matrix,
        mask=mask,
        names=names,
        groups=groups,
        condition_of=condition_of,
        blocks=blocks,
        covariates=covariates,
        weights=weights,
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


def labels_of(obs: Any, groupby: Any, cells: Indices) -> list[Any]:
    """The different values of a column that some cells have, in the order of the cells."""
    return list(dict.fromkeys(group_values(obs, groupby)[cells].tolist()))


def _groups(obs: Any, choice: Choice) -> Groups[Indices]:
    """The cells of the foreground and of each background; the labels of a list are one background."""
    values = group_values(obs, choice.groupby)
    if choice.background is None:
        have = list(dict.fromkeys(own for own in values.tolist() if not is_missing(own)))
        raise GroupError(
            f"background=None names no controls: pass the value of adata.obs[{choice.groupby!r}] that marks them, "
            f"which has {listed(have, MAX_LEVELS)}."
        )
    named = named_backgrounds(choice.background)
    if any("/" in name for name in named):
        raise GroupError(f"Backgrounds are named {listed(list(named))}: files take '/' for a folder, so leave it out.")
    if isinstance(choice.foreground, Mapping) and len(named) > 1:
        raise GroupError("Several conditions share one background: pass a list of values as background=.")
    if choice.foreground is not None and not labels_in(choice.foreground):
        raise GroupError("foreground= names no value: leave it out if all cells that are not background are cases.")
    groups = group_rows(values, named, choice.foreground, f"adata.obs[{choice.groupby!r}]")
    for name, cells in zip(groups.names, groups, strict=True):
        if cells.size < 2:
            raise GroupError(f"The {name} has {plural(cells.size, 'cell')}: each group needs at least 2.")
    return groups


def labels_in(given: Any) -> list[Any]:
    """All labels in a value, a list, an array or a dict of these."""
    parts = given.values() if isinstance(given, Mapping) else [given]
    return [label for part in parts for label in as_list(part.tolist() if hasattr(part, "tolist") else part)]


def _by_conditions(obs: Any, groups: Groups[Indices], choice: Choice) -> tuple[Groups[Indices], npt.NDArray[Any]]:
    """The groups with the cells of a condition together, and the name of each cell's condition."""
    if choice.within is not None or choice.pairs is not None:
        raise GroupError(
            f"With several conditions, {'within=' if choice.within is not None else 'pairs='} is not possible: cells "
            "of each count by their number. Compare one condition, or pass blocks= and regress_out=."
        )
    if any("/" in name for name in choice.foreground):
        raise GroupError(f"Conditions are named {listed(list(choice.foreground))}: files take '/' for a folder.")
    values = group_values(obs, choice.groupby).tolist()
    name_of = {label: name for name, labels in choice.foreground.items() for label in labels_in(labels)}
    condition_of = np.array([name_of.get(value) for value in values], dtype=object)
    parts = [groups.foreground[condition_of[groups.foreground] == name] for name in choice.foreground]
    return groups.like([np.concatenate(parts), *groups.backgrounds]), condition_of


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


def _alike_in_types(obs: Any, groups: Groups[Indices], within: str) -> tuple[Groups[Indices], Array | None, int]:
    """The cells of types that all groups have, the weights of all cells, and how many types these are.

    By the weights all groups have the same shares of types: in each a type counts as much as in the group where its
    share is smallest, so a weight is at most 1.
    """
    values = column(obs, within, "within", "adata.obs")
    type_of = np.array(["" if is_missing(own) else str(own) for own in values.tolist()], dtype=object)
    counts = groups.map(lambda cells: Counter(type_of[cells].tolist()))
    for group, own in zip(counts.names, counts, strict=True):
        if gone := own[""]:
            raise GroupError(
                f"{gone} of {plural(own.total(), 'cell')} of the {group} have no value in adata.obs[{within!r}], so "
                "within= cannot compare them with others of their type: leave these cells out."
            )
    known = [name for name in counts.foreground if all(count[name] >= 2 for count in counts)]
    if not known:
        raise GroupError(f"No value of adata.obs[{within!r}] has 2 cells in every group, so nothing can be compared.")
    if alone := sorted(set().union(*counts) - set(known)):
        warn(
            f"Cells with {listed(alone)} in adata.obs[{within!r}] do not take part: one of the groups has fewer than 2 "
            "of them, so there is nothing to compare them with."
        )
    groups = groups.map(lambda cells: cells[np.isin(type_of[cells], known)])
    shares = counts.map(lambda count: {name: count[name] / sum(count[one] for one in known) for name in known})
    weights = np.ones(type_of.size)
    for cells, share in zip(groups, shares, strict=True):
        least = {name: min(other[name] for other in shares) / share[name] for name in known}
        weights[cells] = [least[name] for name in type_of[cells].tolist()]
    return groups, None if np.all(weights == 1) else weights, len(known)


def covariates_of(obs: Any, regress_out: list[str], within: str | None) -> Any:
    """A frame of the columns that are taken out of the genes, shape (n_obs, q); None if there are none."""
    columns = {name: column(obs, name, "regress_out", "adata.obs") for name in regress_out}
    if within is not None:  # a category, also if it is a number
        values = column(obs, within, "within", "adata.obs").tolist()
        columns[within] = np.array([None if is_missing(own) else str(own) for own in values], dtype=object)
    return frame(columns) if columns else None


def frame(columns: Mapping[str, Any]) -> Any:
    """A pandas data frame, which `uns` and files can hold."""
    return require("pandas", extra="anndata").DataFrame(dict(columns))


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


def stored_seed(random_state: Any) -> int | None:
    """A random seed that can be stored."""
    if random_state is None or (isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)):
        return None if random_state is None else int(random_state)
    raise TypeError(f"random_state={random_state!r} must be a whole number or None: it is stored with the results.")
