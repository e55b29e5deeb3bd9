"""Column and row names of tables: reading, comparing and restoring them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import is_sparse
from .._util.devices import library_of
from .._util.text import default_names, is_missing, listed
from ..exceptions import GroupError


def unconvertible_columns(table: Any) -> str:
    """The names (or numbers) of columns that do not convert to float; empty for numeric tables."""
    if getattr(table, "ndim", 2) != 2 or not hasattr(table, "shape") or is_sparse(table):
        return ""
    names, values = column_names(table), np.asarray(table)
    bad = []
    for j, column in enumerate(values.T if values.ndim == 2 else []):
        if column.dtype == object:
            column = np.array([np.nan if is_missing(value) else value for value in column], dtype=object)
        try:
            column.astype(np.float64)
        except (TypeError, ValueError):
            bad.append(str(names[j] if names else j))
    return listed(bad)


def column_names(table: Any) -> list[Any] | None:
    """Column names of a data frame, of any type; None for other tables."""
    columns = getattr(table, "column_names", getattr(table, "columns", None))  # pyarrow's `columns` are the values
    return None if columns is None else list(columns)


def distinct(table: Any, what: str = "X") -> Any:
    """The table itself; raise if several of its columns have the same name, for features are told apart by name."""
    names = column_names(table)
    if names is not None and len(set(names)) < len(names):
        repeated = [name for name, count in Counter(names).items() if count > 1]
        raise ValueError(
            f"Several columns of {what} have the same name: {listed(repeated)}. Rename them, or keep the first of each "
            "(with pandas: X.loc[:, ~X.columns.duplicated()])."
        )
    return table


def text_names(table: Any) -> tuple[str, ...] | None:
    """Column names of a data frame if all are strings; None for others, and for other tables."""
    columns = column_names(table)
    return tuple(columns) if columns and all(isinstance(column, str) for column in columns) else None


def check_names(table: Any, names: list[str]) -> None:
    """Raise if the columns of a data frame are not the fitted features in the same order."""
    columns = column_names(table)
    found = None if columns is None else list(map(str, columns))
    if found is not None and found != names and names != default_names(len(names)):
        raise ValueError(
            f"The columns are not the {len(names)} fitted features in the same order ("
            f"{', '.join(map(repr, names[:3]))}, ...): select them by name."
        )


def check_same_columns(n_left: int, n_right: int, left: list[Any] | None, right: list[Any] | None, group: str) -> None:
    if left is not None and right is not None and left != right:
        raise GroupError(_how_names_differ(left, right, group))
    if n_left != n_right:
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


def index_names(table: Any) -> list[str] | None:
    """The row names of a pandas table; None for other tables, and if rows are only numbered."""
    index = getattr(table, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    return list(map(str, index))


def aligned(values: Any, table: Any, what: str) -> Any:
    """What stands beside a table (a Series or frame of pandas), in the order of the table's rows.

    Where both have row names, these decide. A default index (0, 1, ...) has no names, unless the other one has numbers
    too: then nobody knows which row is meant.
    """
    own, wanted = getattr(values, "index", None), getattr(table, "index", None)
    if own is None or callable(own) or wanted is None or callable(wanted) or len(own) != len(wanted):
        return values
    if own.equals(wanted):
        return values
    numbered = [type(index).__name__ == "RangeIndex" for index in (own, wanted)]
    numbers = [index.dtype.kind in "iu" for index in (own, wanted)]
    if any(numbered) and not all(numbers):
        return values
    if not any(numbered) and own.is_unique and wanted.is_unique and set(own) == set(wanted):
        return values.loc[wanted]
    first = next(i for i, (a, b) in enumerate(zip(own, wanted, strict=True)) if a != b)
    raise GroupError(
        f"{what} has other row names than its table, or in another order: row {first}, counting from 0, is "
        f"{own[first]!r} instead of {wanted[first]!r}. Select and reorder its rows with .loc[X.index], or, if they are "
        "in the right order, pass .to_numpy()."
    )


def like_table(values: npt.NDArray[Any], table: Any) -> Any:
    """`values` as a data frame with the names (and index) of `table` if that is one; otherwise unchanged."""
    names = column_names(table)
    if names is None:
        return values
    if library_of(type(table)) == "pyarrow":
        return type(table).from_arrays(list(values.T), names=names)
    if hasattr(table, "index"):  # pandas
        return type(table)(values, index=table.index, columns=names)
    return type(table)(values, schema=names)  # polars
