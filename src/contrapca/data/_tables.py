"""The one door for tables: what users pass becomes `Tables`, the checked rows of all groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array

from .._util.arrays import (
    Array,
    Rows,
    canonical,
    chosen,
    filled_mask,
    float_type,
    host,
    is_sparse,
    namespace,
    on_device,
    place_of,
)
from .._util.text import is_missing, listed, plural
from ..exceptions import GroupError, NonFiniteError
from ._groups import Groups, check_labelled, check_present, label_groups
from ._names import check_same_columns, column_names, distinct, feature_label
from .rows import DaskRows, as_rows, is_kept, storage

COMPLEX = (
    "Complex data not supported: the table's type is {}. Pass real numbers, for example real and imaginary parts as "
    "separate columns."
)


@dataclass(frozen=True)
class Tables:
    """What fits read: the rows of all groups as arrays, with their means and weights.

    A `Study` is what a user said, checked once. Fits change its rows: they leave some out, regress covariates out,
    shorten long rows, fill values in, take folds, or have moments in place of rows. Each of these is other `Tables` of
    the same study, so that what is known of samples need not change with them.

    Attributes
    ----------
    rows : Groups of tables of shape (n_k, D), or of Moments in their place
    means : Groups of ndarray of shape (D,)
        Column means; nan for columns with missing values.
    names : tuple of str, or None
        Feature names.
    text_names : bool
        Whether the table's own column names were strings, as scikit-learn requires.
    weights : Groups of ndarray of shape (n_k,), or of None
        How often each row counts, above 0; None in a group whose rows all count once.
    kept : Groups of ndarray of bool, or of None
        Which rows of the study these are, if rows of weight 0, or without any value, were left out.
    shortened : Groups of ndarray of int, or None
        Which of the rows are so long that they count less (F42); None if that was not asked.
    """

    rows: Groups[Rows]
    means: Groups[Array]
    names: tuple[str, ...] | None
    text_names: bool
    weights: Groups[Array | None]
    kept: Groups[npt.NDArray[np.bool_] | None]
    shortened: Groups[npt.NDArray[np.intp]] | None = None

    @classmethod
    def of_moments(cls, moments: Groups[Any], names: tuple[str, ...] | None, text_names: bool) -> Tables:
        """Moments in place of rows."""
        none: Groups[Any] = moments.map(lambda _: None)
        return cls(moments, moments.map(lambda group: group.mean), names, text_names, none, none)

    @property
    def totals(self) -> Groups[float]:
        """The number of rows of each group, or the sum of their weights."""
        return self.rows.map(lambda rows, w: float(rows.shape[0] if w is None else w.sum()), self.weights)

    @property
    def incomplete(self) -> bool:
        """Whether values are missing: `column_means` has found some, and their means are nan."""
        return not all(np.isfinite(mean).all() for mean in self.means)

    @property
    def are_moments(self) -> bool:
        """Whether moments take the place of rows."""
        return is_moments(self.rows.foreground)

    @property
    def n_features(self) -> int:
        """D."""
        return self.means.foreground.size

    def feature(self, index: int) -> str:
        """A feature's name in quotes, or its column number."""
        return feature_label(self.names, index)

    def foreground_alone(self) -> Tables:
        """The foreground as the only group."""
        return self._regrouped(lambda groups: Groups.of(groups.foreground))

    def exchanged(self) -> Tables:
        """The background as the foreground, and the foreground as the background."""
        return self._regrouped(lambda groups: groups.like(list(groups)[::-1]))

    def _regrouped(self, change: Callable[[Groups[Any]], Groups[Any]]) -> Tables:
        found: dict[str, Any] = {k: change(own) for k, own in vars(self).items() if isinstance(own, Groups)}
        return replace(self, **found)

    def with_one_background(self, name: str) -> Tables:
        """These tables; raise if there are several backgrounds."""
        backgrounds = self.rows.names[1:]
        if len(backgrounds) > 1:
            raise GroupError(
                f"{name} compares two groups, but there are {len(backgrounds)} backgrounds ({listed(backgrounds)}): "
                "pass one of them, or stack those that were measured alike into one table."
            )
        return self


def is_moments(table: Any) -> bool:
    """Whether a table is given as moments, a class of a higher floor; tensors of torch have a method `scatter`."""
    return hasattr(table, "scatter") and hasattr(table, "weight")


# ---------------------------------------------------------------------- one table


def check_table(table: Any, name: str, group: str = "foreground", *, least: int = 2) -> Rows:
    """A 2-D float32 or float64 array (a view where possible), a CSR matrix, or rows that are read in blocks.

    Finiteness is checked later.
    """
    if on_device(table):
        return check_device_table(table, f"{name} ({group})", least_rows=least)
    table = distinct(as_rows(table), f"the {group}")
    if isinstance(table, DaskRows):
        if table.shape[0] < least or table.shape[1] < 1:
            raise ValueError(
                f"Found array with {table.shape[0]} sample(s) and {table.shape[1]} feature(s) for {name} ({group}), "
                f"while at least {least} samples and 1 feature are required."
            )
        return table
    if getattr(getattr(table, "dtype", None), "kind", "") == "c":
        raise ValueError(COMPLEX.format(table.dtype))
    refuse_others(table, name, f"the {group}")
    if is_kept(table):
        return table
    table = without_mask(table)
    try:
        rows = check_array(
            table,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=least,
            estimator=f"{name} ({group})",
        )
    except (TypeError, ValueError) as error:
        if (explained := _explained(error, table, f"The {group} of {name}", group)) is None:
            raise
        raise explained from error
    return canonical(rows)


def _explained(error: TypeError | ValueError, table: Any, what: str, group: str) -> Exception | None:
    """What to do about something that scikit-learn takes for no table; None if it says that itself."""
    if getattr(table, "ndim", 2) == 1:
        return type(error)(
            f"{what} is one column of {len(table)} values; a table of samples x features is needed (Expected 2D array, "
            "got 1D array). Labels of the rows of one table are y, with background_label."
        )
    if isinstance(table, Mapping) or hasattr(table, "fit"):
        kind = "dict" if isinstance(table, Mapping) else f"model, a {type(table).__name__}"
        return TypeError(
            f"{what} is a {kind}; a table of samples x features is needed: an array, a data frame (pandas.DataFrame(X) "
            "makes one of a dict of columns) or a sparse matrix."
        )
    if isinstance(table, list | tuple) and getattr(table[0], "ndim", 0) == 2:
        return GroupError(
            f"{what} is a {type(table).__name__} of {len(table)} tables: stack them to one table (numpy.vstack, "
            "pandas.concat), or name several backgrounds in a dict, background={'first': ..., 'second': ...}."
        )
    bad: list[str] = []  # columns that do not convert to numbers
    if getattr(table, "ndim", 2) == 2 and hasattr(table, "shape") and not is_sparse(table):
        names, values = column_names(table), np.asarray(table)
        for j, column in enumerate(values.T if values.ndim == 2 else []):
            if column.dtype == object:
                column = np.array([np.nan if is_missing(value) else value for value in column], dtype=object)
            try:
                column.astype(np.float64)
            except (TypeError, ValueError):
                bad.append(str(names[j] if names else j))
    if not bad:
        return None
    return type(error)(
        f"{error}. Columns of the {group} that are not numbers: {listed(bad)}. Drop or encode them; only numeric "
        "columns can be used (with pandas: X.select_dtypes('number'))."
    )


def refuse_labels(table: Any, name: str, group: str) -> None:
    """Raise if there is nothing, or one label or a column of labels, in place of a table."""
    if table is None:
        raise ValueError(f"{name} needs a table, but the {group} is None.")
    column = isinstance(table, list | tuple) or getattr(table, "ndim", 2) == 1
    labels = list(table) if column else [table]
    if labels and all(isinstance(label, str) and not any(sign in label for sign in "./\\") for label in labels):
        what = f"{plural(len(labels), 'label')}, such as {str(labels[0])!r}" if column else f"the label {table!r}"
        raise GroupError(
            f"The {group} of {name} is {what}, not a table of samples x features. Where a column tells the groups of "
            "one table apart, use Study.from_frame(frame, groupby=..., background=...), or pass that column as y, with "
            "background_label."
        )


def refuse_others(table: Any, name: str, given: str) -> None:
    """Raise for moments and studies, where rows are needed, and for dates, which would be read as nanoseconds."""
    if is_moments(table):
        raise TypeError(f"{name} needs rows, but {given} was given as moments: pass the table.")
    if hasattr(table, "sample_names"):
        raise TypeError(f"{name} needs a table, but {given} is a Study: pass its rows, such as study.rows.foreground.")
    kinds = getattr(table, "dtypes", None)
    kinds = kinds if isinstance(kinds, Iterable) else [getattr(table, "dtype", None)]  # that of a Series is one
    dates = [
        j
        for j, kind in enumerate(kinds)  # of NumPy and pandas, or of polars
        if getattr(kind, "kind", "") in ("m", "M") or getattr(kind, "is_temporal", bool)()
    ]
    if dates:
        names = column_names(table)
        columns = "values" if names is None else f"columns ({listed([names[j] for j in dates])})"
        raise TypeError(
            f"{name} needs numbers, but {given} has {columns} that are dates or durations: drop them, or convert them, "
            "for example (date - date.min()) / np.timedelta64(1, 'D')."
        )


def check_device_table(table: Any, name: str, least_rows: int = 2) -> Rows:
    """A 2-D array of torch or cupy in float32 or float64, where it is; finiteness is checked later."""
    table = table.detach() if hasattr(table, "detach") else table  # torch would record what is done to its parameters
    xp, kind = namespace(table), float_type(table)
    if str(getattr(table, "layout", "torch.strided")) != "torch.strided":
        raise TypeError(f"{name} takes dense tensors, but the layout of this one is {table.layout}: pass X.to_dense().")
    if table.ndim != 2:
        raise ValueError(f"{name} needs a table, rows by features, but this array has {table.ndim} dimensions.")
    if xp.isdtype(table.dtype, "complex floating"):
        raise ValueError(COMPLEX.format(kind))
    if xp.isdtype(table.dtype, ("bool", "integral")):
        table = xp.astype(table, xp.float64)
    elif kind not in ("float32", "float64"):
        raise TypeError(
            f"{name} needs float32 or float64, but the table is {kind}, which has only two or three digits: convert it "
            "first, for example with X.to(torch.float32) or X.astype('float32')."
        )
    if table.shape[0] < least_rows or table.shape[1] < 1:
        raise ValueError(
            f"Found array with {table.shape[0]} sample(s) and {table.shape[1]} feature(s) while at least {least_rows} "
            f"and 1 are required by {name}."
        )
    return table


def without_mask(table: Any) -> Any:
    """The table with NaN for masked values (NumPy) and missing objects (None, pandas.NA)."""
    if isinstance(table, np.ma.MaskedArray):
        return filled_mask(table)
    if isinstance(table, np.ndarray) and table.dtype == object:
        return np.where(np.vectorize(is_missing, otypes=[bool])(table), np.nan, table)
    return table


# ---------------------------------------------------------------------- the tables of all groups


def stacked_tables(X: Any, y: Any, background_label: Any, sample_weight: Any, *, name: str) -> Tables:
    """The groups of one table: rows whose label in `y` is `background_label`, or in that list, are background."""
    table = check_table(X, name)
    check_labelled(y, background_label)
    group_of, group_names = label_groups(y, background_label, table.shape[0])
    check_present(group_of, y, background_label)
    parts = [group_of == k for k in range(len(group_names))]
    rows = Groups.from_items([chosen(table, part) for part in parts], group_names)
    weights = check_weights(sample_weight, table.shape[0], "sample_weight")
    own = rows.like([None if weights is None else weights[part] for part in parts])
    return _counted_tables(rows, own, column_names(X), "sample_weight")


def checked_tables(
    given: Groups[Any],
    weights: Groups[Any],
    *,
    name: str,
    features: list[str] | None = None,
    weights_are: str = "sample_weight",
) -> Tables:
    """The tables of all groups, of the same features and in the same place, without rows of weight 0.

    `name` is what needs them, and `weights_are` what weights were given as; tables without column names have the names
    `features`, if any.
    """
    for group, table in zip(given.names, given, strict=True):
        refuse_labels(table, name, group)
    rows = given.map_named(lambda group, table: check_table(table, name, group))
    first, *others = map(place_of, rows) if any(map(on_device, rows)) else [""]
    for group, place in zip(rows.names[1:], others, strict=False):
        if place != first:
            raise GroupError(
                f"The foreground is {first}, but the {group} is {place}. Move one of them, so that both use the same "
                "library and device: for torch, background.to(X.device)."
            )
    names = column_names(given.foreground)
    for group, table, own in zip(rows.names[1:], given.backgrounds, rows.backgrounds, strict=True):
        check_same_columns(rows.foreground.shape[1], own.shape[1], names, column_names(table), group)
    return _counted_tables(rows, weights, names or features, weights_are)


def moments_tables(moments: Groups[Any], known: Mapping[str, Groups[Any]]) -> Tables:
    """Moments in place of the tables of all groups; raise if something is `known` of their rows."""
    if not all(is_moments(table) for table in moments):
        raise GroupError("One group is given as Moments and the other as rows: use Moments.from_rows for both groups.")
    for argument, groups in known.items():
        if any(own is not None for own in groups):
            raise GroupError(
                f"Moments have no rows, so nothing can be known of each: leave {argument}= out, or pass tables. "
                "Moments.from_rows takes weights."
            )
    first = moments.foreground
    for group, own in zip(moments.names[1:], moments.backgrounds, strict=True):
        names = [list(one.names) if one.names else None for one in (first, own)]
        check_same_columns(first.mean.size, own.mean.size, names[0], names[1], group)
    for group, own in zip(moments.names, moments, strict=True):
        check_total(own.weight, f"The weight of the moments of the {group}")
    return Tables.of_moments(moments, first.names, True)


def _counted_tables(rows: Groups[Rows], weights: Groups[Any], names: list[Any] | None, weights_are: str) -> Tables:
    """Checked rows that count, and their means."""
    texts = None if names is None else tuple(map(str, names))
    found: list[tuple[Any, ...]] = []
    for group, table, given in zip(rows.names, rows, weights, strict=True):
        called = weights_are if weights_are == "sample_weight" else f"{weights_are} of the {group}"
        left, kept, often = table, None, check_weights(given, table.shape[0], called)
        if often is not None and np.any(often == 0):
            kept = often > 0
            left, often = chosen(table, kept), often[kept]
            if often.size < 2:
                raise GroupError(f"{called} leaves one row of the {group}: each group needs at least 2.")
        if often is not None:
            check_total(often.sum(), called)
            often = None if np.all(often == 1) else often
        try:
            mean = column_means(left, often, allow_missing=True)
        except NonFiniteError as error:
            raise error.within(f"(In the {group}, {feature_label(texts, error.feature)}.)") from error
        found.append((left, mean, often, kept))
    counted, means, times, which = (rows.like(own) for own in zip(*found, strict=True))
    text_names = names is None or all(isinstance(column, str) for column in names)
    return Tables(counted, means, texts, text_names, times, which)


# ---------------------------------------------------------------------- missing values, devices


def column_means(rows: Rows, weights: Array | None = None, *, allow_missing: bool = False) -> Array:
    """Column means in float64, shape (D,), nan for columns with missing values; infinity raises."""
    mean = storage(rows).column_sums(rows, weights) / (rows.shape[0] if weights is None else weights.sum())
    finite: npt.NDArray[np.bool_] = np.isfinite(mean)
    if finite.all():
        return mean
    missing, infinite = storage(rows).non_finite(rows)
    if infinite.any() or np.any(~finite & ~missing):
        bad = np.flatnonzero(infinite | (~finite & ~missing))
        raise NonFiniteError(
            f"Input contains infinity or values too large to be summed {_where(bad, mean.size)}. Remove or rescale "
            "them.",
            int(bad[0]),
        )
    mean = np.where(missing, np.nan, mean)
    if is_sparse(rows) or not allow_missing:
        raise _nan_error(mean)
    if on_device(rows):
        bad = np.flatnonzero(missing)
        raise NonFiniteError(
            f"Input contains NaN {_where(bad, mean.size)}. Missing values are for NumPy arrays: pass X.cpu().numpy() "
            "(torch) or cupy.asnumpy(X), or drop rows or features.",
            int(bad[0]),
        )
    return mean


def refuse_missing(tables: Tables) -> None:
    """Raise if values are missing: if column means are nan."""
    for group, mean in zip(tables.rows.names, tables.means, strict=True):
        if np.isnan(mean).any():
            error = _nan_error(mean)
            raise error.within(f"(In the {group}, {tables.feature(error.feature)}.)")


def _nan_error(mean: Array) -> NonFiniteError:
    bad = np.flatnonzero(np.isnan(mean))
    return NonFiniteError(
        f"Input contains NaN {_where(bad, mean.size)}. These rows must be complete: use ContraPCA, PCPCA or PPCA, "
        "which take missing values in dense tables, or drop rows or features.",
        int(bad[0]),
    )


def _where(columns: npt.NDArray[np.intp], n_features: int) -> str:
    return f"in {columns.size} of {n_features} features (the first is column {columns[0]}, counting from 0)"


def refuse_devices(tables: Tables, name: str) -> None:
    """Raise if rows are on a device, for what computes with NumPy only."""
    for rows in tables.rows:
        refuse_device(rows, name)


def refuse_device(rows: Rows, name: str) -> None:
    if on_device(rows):
        raise TypeError(
            f"{name} computes with NumPy, but rows are {place_of(rows)}: pass them as NumPy arrays, for example "
            "X.cpu().numpy() (torch) or cupy.asnumpy(X)."
        )


# ---------------------------------------------------------------------- weights


def check_weights(weights: Any, n_rows: int, name: str, *, any_counts: bool = True) -> Array | None:
    """One finite weight per row, 0 or more, shape (n,); None if none are given. If `any_counts`, one is above 0."""
    if weights is None:
        return None
    try:
        found = np.asarray(host(weights), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must contain numbers: {error}.") from error
    if found.shape != (n_rows,):
        raise ValueError(f"{name} has shape {found.shape} for {n_rows} rows: pass one weight per row.")
    bad = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
    if bad.size:
        raise ValueError(
            f"{name} must contain finite numbers, 0 or more: row {bad[0]}, counting from 0, has {found[bad[0]]:g}."
        )
    with np.errstate(over="ignore"):
        total = float(found.sum())
    if total == 0 and any_counts:
        raise ValueError(f"All weights in {name} are zero, so no row counts.")
    if total == np.inf:
        raise ValueError(f"{name} sums to {total:g}: use smaller weights.")
    return found


def check_total(total: float, name: str) -> None:
    """Raise if all weights of a group together are less than 2 rows."""
    if total < 2:
        raise GroupError(
            f"{name} sums to {total:g}: weights count rows, and each group needs at least 2. Multiply them, so that "
            "their sum is the number of rows."
        )
