"""What users give, checked: tables, groups, labels, numbers, seeds."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array

from ._array import Rows, is_sparse
from .exceptions import GroupError, warn

# Groups whose means are further apart than this many pooled sd have hardly had the same treatment.
MAX_MEAN_DISTANCE = 10.0


@dataclass(frozen=True)
class Groups:
    """Checked rows of both groups; `background` is None where there is none."""

    foreground: Rows
    background: Rows | None
    names: list[str] | None = None  # of the features
    text_names: bool = True  # whether the table itself had them as text

    @property
    def tables(self) -> list[Rows]:
        """The foreground and, if there is one, the background."""
        return [self.foreground] + ([] if self.background is None else [self.background])

    def name(self, feature: int) -> str:
        """A feature's name in quotes, or its column number."""
        return repr(self.names[feature]) if self.names else f"column {feature}"


def check_rows(table: Any, name: str, group: str = "foreground") -> Rows:
    """A 2-D float32 or float64 ndarray (a view where possible) or CSR matrix; finiteness is checked later."""
    if getattr(getattr(table, "dtype", None), "kind", "") == "c":
        raise ValueError(
            f"Complex data not supported: the table's type is {table.dtype}. Pass real numbers, for example real and "
            "imaginary parts as columns of their own."
        )
    table = without_mask(table)
    try:
        rows = check_array(
            table,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=2,
            estimator=f"{name} ({group})",
        )
    except (TypeError, ValueError) as error:
        columns = _unconvertible_columns(table)
        if not columns:
            raise
        raise type(error)(
            f"{error}. Columns of the {group} that are not numbers: {columns}. Drop or encode them; only numeric "
            "columns can be used (of a pandas table: X.select_dtypes('number'))."
        ) from error
    return canonical(rows)


def without_mask(table: Any) -> Any:
    """NumPy's masked arrays, and objects that may be missing (None, pandas' NA), with NaN in their place."""
    if isinstance(table, np.ma.MaskedArray):
        kind = np.promote_types(table.dtype, np.float32)
        return np.where(np.ma.getmaskarray(table), kind.type(np.nan), table.data.astype(kind))
    if isinstance(table, np.ndarray) and table.dtype == object:
        return np.where(np.vectorize(is_missing, otypes=[bool])(table), np.nan, table)
    return table


def canonical(rows: Rows) -> Rows:
    """The rows with every stored entry of a sparse matrix stored once; scipy also allows sums of several."""
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
    return ", ".join(bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")


def column_names(table: Any) -> list[Any] | None:
    """Column names of a data frame, text or not; None for other tables."""
    columns = getattr(table, "columns", None)
    return None if columns is None else list(columns)


def default_names(n_features: int) -> list[str]:
    """x0, x1, ...: what features without names are called."""
    return [f"x{j}" for j in range(n_features)]


def check_names(table: Any, names: list[str]) -> None:
    """Refuse a data frame whose columns are not the features that were fitted, in their order."""
    found = _text(column_names(table))
    if found is not None and found != names and names != default_names(len(names)):
        raise ValueError(
            f"The columns are not the {len(names)} features of the fit in their order ("
            f"{', '.join(map(repr, names[:3]))}, ...): select them by name."
        )


def split_groups(
    X: Any, y: Any, background: Any, background_label: Any, *, name: str, needs_background: bool
) -> Groups:
    """Foreground and background rows from what `fit` was given.

    Either `background` is a table of its own, or `background_label` says which rows of `X` it is,
    by `y`. A `y` without `background_label` is ignored, as scikit-learn's transformers do.
    """
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    if len(shape) > 1:
        if shape[1:] == (1,):
            raise GroupError(f"y has shape {shape}: pass the labels as one column, y['name'] or y.ravel().")
        raise GroupError(
            f"y has shape {shape}, but y holds one group label for each row. To pass the background "
            "table, write fit(X, background=Y)."
        )
    if background is not None:
        if background_label is not None and y is not None:
            raise GroupError(
                "Both background= and y with background_label= were given: use one of them to say what the "
                "background is."
            )
        return _two_tables(X, background, name)
    rows = check_rows(X, name)
    if background_label is not None:
        if y is None:
            raise GroupError(
                f"background_label={background_label!r} needs y: one label for each row of X. "
                "Or pass the background table as background=."
            )
        is_background = label_mask(y, background_label, rows.shape[0])
        _check_both_present(is_background, y, background_label)
        return Groups(rows[~is_background], rows[is_background], _text(column_names(X)), _are_text(X))
    if needs_background:
        raise GroupError(
            f"{name} contrasts two groups and was given one. Pass the background table as fit(X, background=Y), "
            "or construct with background_label= and pass the group of each row as y. "
            "Without a background use PPCA or gamma=0."
        )
    return Groups(rows, None, _text(column_names(X)), _are_text(X))


def _text(names: list[Any] | None) -> list[str] | None:
    return None if names is None else list(map(str, names))


def _are_text(table: Any) -> bool:
    """Whether a data frame's column names are all text, as scikit-learn wants feature names."""
    return all(isinstance(name, str) for name in column_names(table) or [])


def _two_tables(X: Any, background: Any, name: str) -> Groups:
    left, right = column_names(X), column_names(background)
    foreground, rows = check_rows(X, name), check_rows(background, name, "background")
    same_width = foreground.shape[1] == rows.shape[1]  # repeated names can differ in their number alone
    if left is not None and right is not None and left != right and (same_width or set(left) != set(right)):
        raise GroupError(_how_names_differ(left, right))
    if not same_width:
        raise GroupError(
            f"The foreground has {foreground.shape[1]} features and the background {rows.shape[1]}: both need "
            "the same columns. (Rows are samples; transpose tables that have samples as columns.)"
        )
    return Groups(foreground, rows, _text(left), _are_text(X))


def _how_names_differ(left: list[Any], right: list[Any]) -> str:
    """What sets the column names of foreground and background apart, and the way out."""
    sets = set(left), set(right)
    alone = [
        f"{len(names)} only in the {group} (the first: {', '.join(map(repr, names[:3]))})"
        for group, names in (
            ("foreground", [name for name in left if name not in sets[1]]),
            ("background", [name for name in right if name not in sets[0]]),
        )
        if names
    ]
    if alone:
        return (
            f"The feature names of foreground and background differ: {' and '.join(alone)}. Keep those that both have, "
            "for example common = X.columns.intersection(background.columns)."
        )
    first = next(j for j, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
    return (
        f"The feature names of foreground and background are the same in another order, first in column {first}: "
        f"{left[first]!r} and {right[first]!r}. Use background[X.columns]."
    )


def label_mask(y: Any, label: Any, n_rows: int) -> npt.NDArray[np.bool_]:
    """Which rows carry the background label, shape (n,)."""
    if np.ndim(label) != 0:
        raise GroupError(f"background_label={label!r} must be one label, as it stands in y.")
    labels = np.ravel(np.asarray(y))
    if labels.size != n_rows:
        raise GroupError(f"y has {labels.size} labels for {n_rows} rows: it needs one for each row.")
    missing = sum(map(is_missing, labels.tolist()))
    if missing:
        raise GroupError(f"{missing} of {n_rows} labels in y are missing: drop those rows, or say what group they are.")
    return np.broadcast_to(np.asarray(labels == label, dtype=bool), labels.shape)


def is_missing(label: Any) -> bool:
    """None, NaN, NaT and the like: what does not equal itself, or will not say whether it does."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def _check_both_present(is_background: npt.NDArray[np.bool_], y: Any, label: Any) -> None:
    count = int(is_background.sum())
    if count == 0:
        found = ", ".join(map(repr, list(dict.fromkeys(np.ravel(np.asarray(y)).tolist()))[:10]))
        raise GroupError(f"No row has the background label {label!r}. Labels in y: {found}.")
    if count == is_background.size:
        raise GroupError(f"All {count} rows have the background label {label!r}: no foreground is left.")
    if count == 1 or count == is_background.size - 1:
        raise GroupError(
            f"The background has {count} and the foreground {is_background.size - count} rows: "
            "each group needs 2 or more."
        )


def check_n_components(n_components: Any, n_features: int) -> int:
    """d as an int with 1 <= d < D."""
    if not isinstance(n_components, numbers.Integral) or isinstance(n_components, bool):
        raise TypeError(f"n_components={n_components!r} must be a whole number, 1 or more.")
    if not 1 <= int(n_components) < n_features:
        raise ValueError(
            f"n_components={n_components} is not possible with n_features={n_features}: it must be at least 1 and "
            "less than the number of features."
        )
    return int(n_components)


def check_count(value: Any, name: str, *, least: int = 1) -> None:
    """Refuse what is not a whole number, `least` or more."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number, {least} or more.")


def check_positive(value: Any, name: str) -> None:
    """Refuse what is not a finite number above 0."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name}={value!r} must be a finite number above 0.")


def check_gamma(gamma: Any) -> float | None:
    """gamma' as a float, or None for "auto"."""
    if isinstance(gamma, str) and gamma == "auto":
        return None
    if not isinstance(gamma, numbers.Real) or isinstance(gamma, bool):
        raise TypeError(f"gamma={gamma!r} must be 'auto' or a number, 0 or more.")
    if not 0 <= float(gamma) < np.inf:
        raise ValueError(f"gamma={gamma} must be 'auto' or a finite number, 0 or more (0: no contrast).")
    return float(gamma)


def check_option(value: Any, name: str, allowed: tuple[Any, ...]) -> None:
    """Refuse a value that is not one of `allowed`."""
    if not any(value is option or (isinstance(option, str) and value == option) for option in allowed):
        raise ValueError(f"{name}={value!r} is not known. Use one of {', '.join(map(repr, allowed))}.")


def warn_distant_means(distance: npt.NDArray[np.floating[Any]], groups: Groups) -> None:
    """Warn where the groups' means differ by very many pooled sd, as after a step that saw one group only."""
    far = np.flatnonzero(distance > MAX_MEAN_DISTANCE)
    if far.size:
        warn(
            f"In {far.size} of {distance.size} features (the first: {', '.join(map(groups.name, far[:3]))}) the means "
            f"of foreground and background differ by more than {MAX_MEAN_DISTANCE:.0f} pooled standard deviations. "
            "Were both groups prepared in the same way, and is none of these an identifier? In a Pipeline a "
            "background= table does not pass through the earlier steps: use background_label= and y there."
        )


def generator(random_state: Any) -> np.random.Generator:
    """A NumPy Generator from None, a seed, a Generator or scikit-learn's RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def like_table(values: npt.NDArray[Any], table: Any) -> Any:
    """`values` as a data frame with the names (and index) of `table`, if that is one; else as they are."""
    names = column_names(table)
    if names is None:
        return values
    if hasattr(table, "index"):  # pandas
        return type(table)(values, index=table.index, columns=names)
    return type(table)(values, schema=names)  # polars
