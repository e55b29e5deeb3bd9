"""Names of features and samples: where tables have them, whether they agree, and what they tell of donors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from .._util.arrays import library_of
from .._util.text import default_names, listed, plural
from ..exceptions import GroupError
from ._groups import MAX_LISTED

# The last part of a name such as 309_1, s7-b or patient3.rep2: a short number, one letter, or rep with a number.
REPLICATE = re.compile(r"(?P<stem>.*\w)[_.\- ](?P<last>\d{1,3}|[A-Za-z]|(?:r|rep|replicate|run)[_.\- ]?\d{1,3})")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")  # names of rows that are numbers, such as -0.713

# What a column is called that says whom rows come from, and the ends of such names: donor, patient_id, Mouse.number.
PEOPLE = (
    "donor",
    "patient",
    "subject",
    "individual",
    "ind",
    "participant",
    "person",
    "animal",
    "mouse",
    "litter",
    "family",
)
SUFFIX = r"s?(?:[ _.-]?(?:id|nr|no|number|name))?"

# Whom or what several rows of any table come from; and where rows are cells, the most likely donors first.
SOURCES = (*PEOPLE, "biosample", "plate", "hto", "pool", "run")
SOURCES_OF_CELLS = (
    *PEOPLE,
    *("sample", "biosample", "specimen", "replicate", r"orig[._]?ident", "library", "batch", "plate", "channel"),
    *("lane", "hto", "pool", "run"),
)
MIN_STEMS = 3  # one or two common beginnings are the names of groups (case_1, ..., control_1, ...)
MIN_REPEATED = 0.5  # fraction of the rows that share their beginning with another row


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
    if columns is not None:
        check_features(list(map(str, columns)), names)


def check_features(found: list[str], names: list[str]) -> None:
    """Raise if these are not the fitted features in the same order."""
    if found != names and (len(found) != len(names) or names != default_names(len(names))):
        raise ValueError(
            f"The columns are not the {len(names)} fitted features in the same order ("
            f"{', '.join(map(repr, names[:3]))}, ...): select them by name."
        )


def check_same_columns(n_left: int, n_right: int, left: list[Any] | None, right: list[Any] | None, group: str) -> None:
    """Raise unless foreground and background have the same columns: how their names differ, and what to do about it."""
    if left is not None and right is not None and left != right:
        known_left, known_right = set(left), set(right)
        only = {
            "foreground": [name for name in left if name not in known_right],
            group: [name for name in right if name not in known_left],
        }
        if alone := [
            f"{len(names)} only in the {which} (the first: {', '.join(map(repr, names[:3]))})"
            for which, names in only.items()
            if names
        ]:
            raise GroupError(
                f"The feature names of foreground and {group} differ: {' and '.join(alone)}. Keep the common columns, "
                "for example common = X.columns.intersection(background.columns)."
            )
        first = next(j for j, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
        raise GroupError(
            f"The feature names of foreground and {group} are the same but in a different order, starting at column "
            f"{first}: {left[first]!r} and {right[first]!r}. Use background[X.columns]."
        )
    if n_left != n_right:
        raise GroupError(
            f"The foreground has {n_left} features and the {group} {n_right}: both need "
            "the same columns. (Rows are samples; transpose tables that have samples as columns.)"
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
    too: then it is unclear which row is meant.
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
    first, found, instead = next(
        (i, a, b) for i, (a, b) in enumerate(zip(own.tolist(), wanted.tolist(), strict=True)) if a != b
    )
    raise GroupError(
        f"{what} has other row names than its table, or in another order: row {first}, counting from 0, is "
        f"{found!r} instead of {instead!r}. Select and reorder its rows with .loc[X.index], or, if they are "
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


def feature_label(names: Sequence[str] | None, index: int) -> str:
    """A feature's name in quotes, or its column number."""
    return repr(names[index]) if names else f"column {index}"


def checked_features(features: Sequence[str], table: Any) -> list[str]:
    """The names of the columns of a table that has none."""
    names, n_features = list(map(str, features)), table.shape[1]
    if column_names(table) not in (None, names):
        raise GroupError("features= is for arrays, but these tables have column names: leave it out.")
    if len(names) != n_features:
        raise GroupError(f"features has {plural(len(names), 'name')} for {plural(n_features, 'feature')}.")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise GroupError(
            f"Names of features occur more than once ({listed(twice, MAX_LISTED)}), so they cannot be told apart: name "
            "each feature once (of an AnnData, call adata.var_names_make_unique() first)."
        )
    return names


def names_source(column: str, sources: Sequence[str] = SOURCES) -> bool:
    """Whether a column says whom or what its rows come from, by its name: donor, plate, mouse_id."""
    return re.fullmatch(f"(?:{'|'.join(sources)}){SUFFIX}", column, re.IGNORECASE) is not None


def looks_like_replicates(names: Sequence[str]) -> list[str] | None:
    """The block of each row as suggested by the row names; None if they suggest none.

    Names such as 309_1, 309_2, 311_1 suggest blocks: several rows share a beginning, followed by a separator and a
    short number or letter. Names with only one or two beginnings do not (case_1, case_2, ..., control_1, ...).
    """
    matches = [REPLICATE.fullmatch(name) for name in names]
    if all(map(NUMBER.fullmatch, names)):
        # 309.1, 309.2, ..., counted from 0 or 1 after each beginning, are replicates; decimals of measurements are not.
        last: dict[str, list[int]] = {}
        for match in filter(None, matches):
            last.setdefault(match["stem"], []).append(int(match["last"]))
        if any(sorted(own) != list(range(min(own), min(own) + len(own))) or min(own) > 1 for own in last.values()):
            return None
    if not matches or sum(match is not None for match in matches) < MIN_REPEATED * len(matches):
        return None
    stems = [name if match is None else match["stem"] for name, match in zip(names, matches, strict=True)]
    counts = Counter(stems)
    repeated = sum(count for count in counts.values() if count > 1)
    distinct = len(set(names)) == len(names)
    return stems if distinct and len(counts) >= MIN_STEMS and repeated >= MIN_REPEATED * len(names) else None


def replicate_example(names: Sequence[str], stems: Sequence[str]) -> str:
    """Three example names, two with the same beginning."""
    first = next(stem for stem, count in Counter(stems).items() if count > 1)
    same = [name for name, stem in zip(names, stems, strict=True) if stem == first][:2]
    other = next(name for name, stem in zip(names, stems, strict=True) if stem != first)
    return f"{listed([*same, other])}, ..."
