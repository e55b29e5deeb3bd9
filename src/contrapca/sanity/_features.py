"""Columns that are probably no measurements: identifiers, codes for missing values, constants, copies."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array
from .._util.text import listed, plural
from ._finding import Finding

# Names of columns that say which row it is, whatever whole numbers they hold ...
NAMES_ROWS = re.compile(
    r"(?:.*[ _.-])?(?:id|ids|idx|barcode)|unnamed.*"
    r"|(?:donor|patient|subject|animal|mouse|participant|sample|case|row)s?(?:[ _.-]?(?:id|nr|no|number))?",
    re.IGNORECASE,
)
CAMEL_ID = re.compile(r".*[a-z](?:ID|Id)")
# ... and those that may also be measured, such as a number of cells.
MAY_NAME_ROWS = re.compile(r"(?:.*[ _.-])?(?:index|nr|no|num|number)", re.IGNORECASE)
MOSTLY_DISTINCT = 0.9  # fraction of different values, for names that may also be measured
MIN_COUNTED = 5  # rows in order; fewer may be so by chance
MIN_DISTINCT = 20  # rows without a repeated whole number; fewer may be so by chance
FEW_WHOLE = 0.1  # fraction of columns of whole numbers above which they are the kind of data
CODES = (-99999.0, -9999.0, -999.0, -99.0, 999.0, 9999.0, 99999.0)  # far outside of all other values
MIN_SPREAD = 5.0  # what the values above 0 must span for -1 to be a code, not a step of a scale
MIN_CODED = 2  # cells; one may be chance
SURE_BITS = 20.0  # equal columns or rows are chance with a probability below 2 ** -20
SAMPLE = 500  # rows that are compared first

Mask = npt.NDArray[np.bool_]


def identifiers(names: Sequence[str], X: Array, Y: Array | None = None) -> list[Finding]:
    """Columns of whole numbers that name or count the rows.

    By their name (id, patient), because they go up or down row by row, or because no value occurs twice, unless such
    columns are common, as in tables of counts.
    """
    tables = [X] if Y is None else [X, Y]
    some = X[:SAMPLE]
    maybe = np.flatnonzero(np.all(some == np.floor(some), axis=0)).tolist()  # NaN is not equal to itself
    whole = [j for j in maybe if all(_is_whole(table[:, j]) for table in tables)]
    rare = len(whole) <= max(1.0, FEW_WHOLE * X.shape[1])
    found = [j for j in whole if _names_rows(names[j], [table[:, j] for table in tables], rare=rare)]
    if not found:
        return []
    suspects = [names[j] for j in found]
    many = len(suspects) > 1
    return [
        Finding(
            "identifier",
            f"{listed(suspects)} {'look like identifiers' if many else 'looks like an identifier'} but "
            f"{'are' if many else 'is'} used as {'features' if many else 'a feature'}.",
            f"If so, drop {'them' if many else 'it'} from both tables.",
            f"If so, add --ignore {shlex.join(suspects)}.",
        )
    ]


def _is_whole(column: Array) -> bool:
    """Whether a column holds whole numbers only, none missing and not all equal."""
    return bool(np.all(column == np.floor(column)) and column.min() < column.max())


def _names_rows(name: str, columns: list[Array], *, rare: bool) -> bool:
    if NAMES_ROWS.fullmatch(name) or CAMEL_ID.fullmatch(name):
        return True
    if all(_is_counted(column) for column in columns):
        return True
    distinct = [np.unique(column).size / column.size for column in columns]
    if MAY_NAME_ROWS.fullmatch(name) and min(distinct) >= MOSTLY_DISTINCT:
        return True
    size = sum(column.size for column in columns)
    return rare and size >= MIN_DISTINCT and np.unique(np.concatenate(columns)).size == size


def _is_counted(column: Array) -> bool:
    steps = np.diff(column)
    return column.size >= MIN_COUNTED and bool(np.all(steps > 0) or np.all(steps < 0))


def missing_codes(names: Sequence[str], X: Array, Y: Array | None = None) -> list[Finding]:
    """Numbers such as 999, -999 and -1 that stand for a missing value: far from, or below, all other values."""
    tables = [X] if Y is None else [X, Y]
    found: dict[float, list[tuple[int, int]]] = {}  # code to columns and cells
    for j in _columns_with_codes(tables):
        column = np.concatenate([table[:, j] for table in tables])
        column = column[np.isfinite(column)]
        for code in (column.min(), column.max()):
            others = column[column != code]
            if others.size and _is_code(code, others):
                found.setdefault(float(code), []).append((j, column.size - others.size))
    findings = []
    for code, places in sorted(found.items()):
        cells = sum(count for _, count in places)
        if cells >= MIN_CODED:
            shown, columns = f"{code:.0f}", [names[j] for j, _ in places]
            findings.append(
                Finding(
                    "missing code",
                    f"{shown} occurs in {plural(cells, 'cell')} of {listed(columns)}, far from all other values or "
                    "below them: it looks like a code for missing values.",
                    f"If so, replace it by NaN in both tables: np.where(X == {shown}, np.nan, X).",
                    f"If so, add --missing {shown}.",
                )
            )
    return findings


def _columns_with_codes(tables: list[Array]) -> list[int]:
    """Columns whose smallest or largest value is one of the codes; quick where there are none."""
    codes = np.array([*CODES, -1.0])
    low = np.min([np.fmin.reduce(table, axis=0) for table in tables], axis=0)
    high = np.max([np.fmax.reduce(table, axis=0) for table in tables], axis=0)
    return [int(j) for j in np.flatnonzero(np.isin(low, codes) | np.isin(high, codes[:-1]))]


def _is_code(code: float, others: Array) -> bool:
    low, high = float(others.min()), float(others.max())
    if code == -1:
        return low >= 0 and high - low >= MIN_SPREAD and others.size > 1
    gap = low - code if code < low else code - high
    return code in CODES and high > low and gap > high - low


def constant_columns(names: Sequence[str], X: Array, Y: Array | None = None) -> list[Finding]:
    """Columns with one value in all rows of both tables."""
    constant = _constant(X, Y)
    if not constant.any():
        return []
    found = [names[j] for j in np.flatnonzero(constant).tolist()]
    one = len(found) == 1
    return [
        Finding(
            "constant",
            f"{listed(found)} {'has' if one else 'each have'} the same value in every row and so no influence.",
            f"If {'it' if one else 'they'} should vary, check how {'it was' if one else 'they were'} exported.",
            f"If {'it' if one else 'they'} should vary, check the file; --ignore leaves columns out.",
        )
    ]


def _constant(X: Array, Y: Array | None) -> Mask:
    same: Mask = np.all((X[:SAMPLE] == X[0]), axis=0)
    for table in [X] if Y is None else [X, Y]:
        columns = np.flatnonzero(same)
        same[columns] = np.all(table[:, columns] == X[0, columns], axis=0)
    return same


def duplicate_columns(names: Sequence[str], X: Array, Y: Array | None = None) -> list[Finding]:
    """Copies of other columns, unless they hold so little information that they may be equal by chance."""
    tables = [X] if Y is None else [X, Y]
    D = X.shape[1]
    groups: dict[bytes, list[int]] = {}
    some = np.ascontiguousarray(np.vstack([table[:SAMPLE] for table in tables]).T)
    for j in range(D):
        groups.setdefault(some[j].tobytes(), []).append(j)
    pairs = [
        (members[0], j)
        for members in groups.values()
        for j in members[1:]
        if all(np.array_equal(table[:, members[0]], table[:, j], equal_nan=True) for table in tables)
    ]
    sure = SURE_BITS + 2 * np.log2(D) if pairs else 0.0
    found = [(names[i], names[j]) for i, j in pairs if sum(information(table[:, i]).sum() for table in tables) > sure]
    if not found:
        return []
    first, second = found[0]
    more = f", and so do {len(found) - 1} other pairs" if len(found) > 2 else ""
    more = ", and so does another pair" if len(found) == 2 else more
    copies = sorted({copy for _, copy in found}, key=list(names).index)
    return [
        Finding(
            "duplicate columns",
            f"{first!r} and {second!r} hold the same values in every row{more}: what is measured twice counts twice.",
            f"Keep one of each: drop {listed(copies)}.",
            f"Keep one of each: --ignore {shlex.join(copies[:5])}{' ...' * (len(copies) > 5)}",
        )
    ]


def information(column: Array) -> Array:
    """Bits that each value of a column tells, from how often it occurs there: rare values tell more. Shape (n,)."""
    _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
    return -np.log2(counts / column.size)[place.reshape(column.shape)]


def check_features(names: Sequence[str], X: Array, Y: Array | None = None) -> Iterator[Finding]:
    """All checks of columns, one after the other."""
    for check in (identifiers, missing_codes, constant_columns, duplicate_columns):
        yield from check(names, X, Y)
