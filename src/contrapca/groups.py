"""`Groups`, the container for a foreground and its backgrounds, and checks of the tables that users pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array

from ._util.arrays import Array, Rows, is_sparse
from ._util.devices import chosen, float_type, namespace, on_device, place_of
from ._util.text import default_names, is_missing, listed, spelling
from .backgrounds import (
    background_weights,
    check_all_present,
    check_weights,
    counted_rows,
    label_groups,
    mix_of,
    named_backgrounds,
)
from .exceptions import GroupError, NonFiniteError, TableWarning, warn
from .rows import Blocked, is_storage, opened, storage

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Groups(Generic[T]):
    """One value for the foreground and one for each background, the foreground first.

    Attributes
    ----------
    foreground
        The foreground's value.
    backgrounds : tuple
        The value of each background; empty if there is none.
    names : tuple of str
        "foreground", then the names of the backgrounds.
    mix : tuple of float, or None
        The part of gamma that each background has in a contrast, adding up to 1; None: its part of the rows (F20).
    """

    foreground: T
    backgrounds: tuple[T, ...] = ()
    names: tuple[str, ...] = ("foreground",)
    mix: tuple[float, ...] | None = None

    @classmethod
    def of(cls, foreground: T, background: T | None = None) -> Groups[T]:
        """One foreground and at most one background."""
        return cls(foreground) if background is None else cls(foreground, (background,), ("foreground", "background"))

    @classmethod
    def from_items(cls, items: Iterable[T], names: tuple[str, ...], mix: tuple[float, ...] | None = None) -> Groups[T]:
        """One value for each name, the foreground's first."""
        foreground, *backgrounds = items
        return cls(foreground, tuple(backgrounds), names, mix)

    def like(self, items: Iterable[R]) -> Groups[R]:
        """Other values for the same groups, the foreground's first."""
        return Groups.from_items(items, self.names, self.mix)

    @property
    def background(self) -> T | None:
        """The first background's value; None if there is none."""
        return self.backgrounds[0] if self.backgrounds else None

    def __iter__(self) -> Iterator[T]:
        yield self.foreground
        yield from self.backgrounds

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> T:
        if name not in self.names:
            raise ValueError(f"There is no group {name!r} in this fit, only {listed(self.names)}.")
        return list(self)[self.names.index(name)]

    def map(self, function: Callable[..., R], *others: Groups[Any]) -> Groups[R]:
        """Apply a function to each group's value, and to the values of `others` for the same group."""
        return self.like(map(function, self, *others))

    def map_named(self, function: Callable[[str, T], R]) -> Groups[R]:
        """Apply a function to each group's name and value."""
        return self.like(map(function, self.names, self))


@dataclass(frozen=True)
class Tables:
    """Checked rows of all groups.

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
        Which rows of the tables as given these are, if rows of weight 0 were left out.
    """

    rows: Groups[Rows]
    means: Groups[Array]
    names: tuple[str, ...] | None
    text_names: bool
    weights: Groups[Array | None]
    kept: Groups[npt.NDArray[np.bool_] | None]

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
        """Whether values are missing."""
        return not all(np.isfinite(mean).all() for mean in self.means)

    @property
    def n_features(self) -> int:
        """D."""
        return self.means.foreground.size

    def feature(self, index: int) -> str:
        """A feature's name in quotes, or its column number."""
        return feature_label(self.names, index)

    def foreground_alone(self) -> Tables:
        """The foreground as the only group."""
        every: tuple[Groups[Any], ...] = (self.rows, self.means, self.weights, self.kept)
        rows, means, weights, kept = (Groups.of(one.foreground) for one in every)
        return replace(self, rows=rows, means=means, weights=weights, kept=kept)

    def with_one_background(self, name: str) -> Tables:
        """These tables; raise if there are several backgrounds."""
        backgrounds = self.rows.names[1:]
        if len(backgrounds) > 1:
            raise GroupError(
                f"{name} compares two groups, but there are {len(backgrounds)} backgrounds ({listed(backgrounds)}): "
                "pass one of them, or stack those that were measured alike into one table."
            )
        return self


def feature_label(names: Sequence[str] | None, index: int) -> str:
    """A feature's name in quotes, or its column number."""
    return repr(names[index]) if names else f"column {index}"


def check_table(table: Any, name: str, group: str = "foreground", memory_limit: Any = None, *, least: int = 2) -> Rows:
    """A 2-D float32 or float64 array (a view where possible), a CSR matrix, or rows that are read in blocks.

    Finiteness is checked later.
    """
    if on_device(table):
        return check_device_table(table, f"{name} ({group})", least_rows=least)
    table = opened(table, memory_limit)
    if isinstance(table, Blocked):
        return _check_size(table, name, group, least)
    if getattr(getattr(table, "dtype", None), "kind", "") == "c":
        raise ValueError(
            f"Complex data not supported: the table's type is {table.dtype}. Pass real numbers, for example real and "
            "imaginary parts as separate columns."
        )
    if hasattr(table, "scatter"):
        raise TypeError(f"{name} needs rows, but the {group} was given as moments: pass the table.")
    if is_storage(table) and not isinstance(table, np.ndarray) and not is_sparse(table):
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
        columns = _unconvertible_columns(table)
        if not columns:
            raise
        raise type(error)(
            f"{error}. Columns of the {group} that are not numbers: {columns}. Drop or encode them; only numeric "
            "columns can be used (with pandas: X.select_dtypes('number'))."
        ) from error
    return canonical(rows)


def check_device_table(table: Any, name: str, least_rows: int = 2) -> Rows:
    """A 2-D array of torch or cupy in float32 or float64, where it is; finiteness is checked later."""
    table = table.detach() if hasattr(table, "detach") else table  # torch would record what is done to its parameters
    xp, kind = namespace(table), float_type(table)
    if str(getattr(table, "layout", "torch.strided")) != "torch.strided":
        raise TypeError(f"{name} takes dense tensors, but the layout of this one is {table.layout}: pass X.to_dense().")
    if table.ndim != 2:
        raise ValueError(f"{name} needs a table, rows by features, but this array has {table.ndim} dimensions.")
    if xp.isdtype(table.dtype, "complex floating"):
        raise ValueError(
            f"Complex data not supported: the table's type is {kind}. Pass real numbers, for example real and "
            "imaginary parts as separate columns."
        )
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


def _check_size(rows: Blocked, name: str, group: str, least: int) -> Blocked:
    if rows.shape[0] < least or rows.shape[1] < 1:
        raise ValueError(
            f"Found array with {rows.shape[0]} sample(s) and {rows.shape[1]} feature(s) for {name} ({group}), while at "
            f"least {least} samples and 1 feature are required."
        )
    return rows


def without_mask(table: Any) -> Any:
    """The table with NaN for masked values (NumPy) and missing objects (None, pandas.NA)."""
    if isinstance(table, np.ma.MaskedArray):
        kind = np.promote_types(table.dtype, np.float32)
        return np.where(np.ma.getmaskarray(table), kind.type(np.nan), table.data.astype(kind))
    if isinstance(table, np.ndarray) and table.dtype == object:
        return np.where(np.vectorize(is_missing, otypes=[bool])(table), np.nan, table)
    return table


def canonical(rows: Rows) -> Rows:
    """The rows with duplicate entries of a sparse matrix added up; SciPy allows duplicates."""
    if is_sparse(rows) and not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _unconvertible_columns(table: Any) -> str:
    """The names (or numbers) of columns that do not convert to float; empty for numeric tables."""
    if getattr(table, "ndim", 2) != 2 or not hasattr(table, "shape") or is_sparse(table):
        return ""
    names = column_names(table)
    bad = []
    for j, column in enumerate(np.asarray(table).T):
        if column.dtype == object:
            column = np.array([np.nan if is_missing(value) else value for value in column], dtype=object)
        try:
            column.astype(np.float64)
        except (TypeError, ValueError):
            bad.append(str(names[j] if names else j))
    return listed(bad)


def column_names(table: Any) -> list[Any] | None:
    """Column names of a data frame, of any type; None for other tables."""
    # The columns of a pyarrow table are the values themselves.
    columns = table.column_names if _is_pyarrow(table) else getattr(table, "columns", None)
    return None if columns is None else list(columns)


def _is_pyarrow(table: Any) -> bool:
    return type(table).__module__.partition(".")[0] == "pyarrow"


def check_names(table: Any, names: list[str]) -> None:
    """Raise if the columns of a data frame are not the fitted features in the same order."""
    columns = column_names(table)
    found = None if columns is None else list(map(str, columns))
    if found is not None and found != names and names != default_names(len(names)):
        raise ValueError(
            f"The columns are not the {len(names)} fitted features in the same order ("
            f"{', '.join(map(repr, names[:3]))}, ...): select them by name."
        )


def split_groups(
    X: Any,
    y: Any,
    background: Any,
    background_label: Any,
    *,
    name: str,
    needs_background: bool,
    allow_missing: bool = False,
    sample_weight: Any = None,
    background_weight: Any = None,
    gamma: Any = None,
    memory_limit: Any = None,
) -> Tables:
    """Foreground and background rows from the arguments of `fit`.

    The background is either a separate table (`background`), a dict of several, or the rows of `X` whose label in `y`
    is `background_label`, or in that list. Without `background_label`, `y` is ignored, as in scikit-learn's
    transformers. `gamma` is a dict where each background has its own.
    """
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    if len(shape) > 1:
        if shape[1:] == (1,):
            raise GroupError(f"y has shape {shape}: pass the labels as one column, y['name'] or y.ravel().")
        raise GroupError(
            f"y has shape {shape}, but it must contain one group label per row. To pass the background "
            "table, write fit(X, background=Y)."
        )
    X = opened(X, memory_limit)
    names = column_names(X)
    if background is not None:
        if background_label is not None and y is not None:
            raise GroupError(
                "Both background= and y with background_label= were given: use only one of them to specify the "
                "background."
            )
        given = {group: opened(table, memory_limit) for group, table in named_backgrounds(background).items()}
        rows = Groups.from_items(
            [check_table(X, name), *(check_table(table, name, group) for group, table in given.items())],
            ("foreground", *given),
        )
        _check_same_place(rows)
        for group, table in given.items():
            _check_same_columns(rows.foreground.shape[1], rows[group].shape[1], names, column_names(table), group)
        weights = rows.like([sample_weight, *background_weights(background_weight, given)])
    elif background_label is not None:
        table = check_table(X, name)
        if y is None:
            raise GroupError(
                f"background_label={background_label!r} needs y: one label per row of X. "
                "Or pass the background table as background=."
            )
        if background_weight is not None:
            raise GroupError("background_weight= is for a background= table: sample_weight= has one for each row of X.")
        group_of, group_names = label_groups(y, background_label, table.shape[0])
        check_all_present(group_of, y, background_label)
        _warn_of_spelling(y, background_label)
        parts = [group_of == k for k in range(len(group_names))]
        rows = Groups.from_items([chosen(table, part) for part in parts], group_names)
        stacked = check_weights(sample_weight, table.shape[0], "sample_weight")
        weights = rows.like([None if stacked is None else stacked[part] for part in parts])
    elif needs_background:
        raise GroupError(
            f"{name} contrasts two groups but was given one. Pass the background table as fit(X, background=Y), "
            "or construct with background_label= and pass the group of each row as y. "
            "For a single group, use PPCA or gamma=0."
        )
    else:
        rows = Groups.of(check_table(X, name))
        if background_weight is not None:
            raise GroupError("background_weight= is given, but no background: pass background= too.")
        weights = rows.like([sample_weight])
    rows = replace(rows, mix=mix_of(gamma, rows.names[1:]))
    counted = rows.map(counted_rows, rows.like(weights), rows.like(rows.names))
    rows, weights, kept = (counted.map(lambda found, k=k: found[k]) for k in range(3))  # type: ignore[misc]
    texts = None if names is None else tuple(map(str, names))

    def mean(group: str, table: Rows, own: Array | None) -> Array:
        try:
            return column_means(table, own, allow_missing=allow_missing)
        except NonFiniteError as error:
            raise error.within(f"(In the {group}, {feature_label(texts, error.feature)}.)") from error

    means = rows.like(map(mean, rows.names, rows, weights))
    return Tables(rows, means, texts, all(isinstance(column, str) for column in names or []), weights, kept)


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
    if is_sparse(rows) or not allow_missing:
        bad = np.flatnonzero(missing)
        raise NonFiniteError(
            f"Input contains NaN {_where(bad, mean.size)}. Only PPCA and PCPCA take missing values, and only in dense "
            "tables: use one of them, or impute the values first, for example with their impute().",
            int(bad[0]),
        )
    return np.where(missing, np.nan, mean)


def _where(columns: npt.NDArray[np.intp], n_features: int) -> str:
    return f"in {columns.size} of {n_features} features (the first is column {columns[0]}, counting from 0)"


def refuse_devices(tables: Tables, name: str) -> None:
    """Raise if rows are on a device, for what computes with NumPy only."""
    for rows in tables.rows:
        if on_device(rows):
            raise TypeError(
                f"{name} computes with NumPy, but rows are {place_of(rows)}: pass them as NumPy arrays, for example "
                "X.cpu().numpy() (torch) or cupy.asnumpy(X)."
            )


def _check_same_place(rows: Groups[Rows]) -> None:
    """Raise if some group is on another device, or of another library, than the foreground."""
    first, *others = map(place_of, rows)
    for name, place in zip(rows.names[1:], others, strict=True):
        if place != first:
            raise GroupError(
                f"The foreground is {first}, but the {name} is {place}. Move one of them, so that both are of one "
                "library and on one device: for torch, background.to(X.device)."
            )


def _check_same_columns(n_left: int, n_right: int, left: list[Any] | None, right: list[Any] | None, group: str) -> None:
    same_width = n_left == n_right  # repeated names can differ in their number alone
    if left is not None and right is not None and left != right and (same_width or set(left) != set(right)):
        raise GroupError(_how_names_differ(left, right, group))
    if not same_width:
        raise GroupError(
            f"The foreground has {n_left} features and the {group} {n_right}: both need "
            "the same columns. (Rows are samples; transpose tables that have samples as columns.)"
        )


def _how_names_differ(left: list[Any], right: list[Any], group: str) -> str:
    """How the column names of foreground and background differ, and what to do about it."""
    sets = set(left), set(right)
    alone = [
        f"{len(names)} only in the {which} (the first: {', '.join(map(repr, names[:3]))})"
        for which, names in (
            ("foreground", [name for name in left if name not in sets[1]]),
            (group, [name for name in right if name not in sets[0]]),
        )
        if names
    ]
    if alone:
        return (
            f"The feature names of foreground and {group} differ: {' and '.join(alone)}. Keep the common columns, "
            "for example common = X.columns.intersection(background.columns)."
        )
    first = next(j for j, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
    return (
        f"The feature names of foreground and {group} are the same but in a different order, starting at column "
        f"{first}: {left[first]!r} and {right[first]!r}. Use background[X.columns]."
    )


def _warn_of_spelling(y: Any, label: Any) -> None:
    """Warn of labels that differ from the background's only in case or blanks, whose rows are foreground."""
    if isinstance(label, str):
        labels = {text for text in np.ravel(np.asarray(y)).tolist() if isinstance(text, str) and text != label}
        if alike := sorted(text for text in labels if spelling(text) == spelling(label)):
            warn(
                f"Rows labelled {listed(alike)} count as foreground: the label differs from background_label={label!r} "
                "only in case or blanks. If they are background too, spell the labels alike.",
                TableWarning,
            )


def index_names(table: Any) -> list[str] | None:
    """The row names of a pandas table; None for other tables, and if rows are only numbered."""
    index = getattr(table, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    return list(map(str, index))


def like_table(values: npt.NDArray[Any], table: Any) -> Any:
    """`values` as a data frame with the names (and index) of `table` if that is one; otherwise unchanged."""
    names = column_names(table)
    if names is None:
        return values
    if _is_pyarrow(table):
        return type(table).from_arrays(list(values.T), names=names)
    if hasattr(table, "index"):  # pandas
        return type(table)(values, index=table.index, columns=names)
    return type(table)(values, schema=names)  # polars
