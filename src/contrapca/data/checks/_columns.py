"""Columns that are probably no measurements: identifiers, codes for missing values, constants, copies; far cells."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ..._util.arrays import Array
from ..._util.text import as_command, listed, plural
from .._names import PEOPLE, names_source
from ._finding import Finding, Given, every_few

# Names of columns that say which row it is, whatever numbers they hold ...
NAMES_ROWS = re.compile(r"(?:.*[ _.-])?(?:id|ids|idx|barcode)|unnamed.*", re.IGNORECASE)
CAMEL_ID = re.compile(r".*[a-z](?:ID|Id)")

# ... and those that may also be measured, such as a number of cells.
MAY_NAME_ROWS = re.compile(r"(?:.*[ _.-])?(?:index|nr|no|num|number)", re.IGNORECASE)
MOSTLY_DISTINCT = 0.9  # fraction of different values, for names that may also be measured
MOSTLY_KNOWN = 0.5  # fraction of rows that have a value, for identifiers that only their values show
MIN_COUNTED = 5  # rows in order; fewer may be so by chance
MIN_DISTINCT = 20  # rows without a repeated whole number; fewer may be so by chance
FEW_WHOLE = 0.1  # fraction of columns of whole numbers above which they are the kind of data
BELOW_ZERO = (-99999.0, -9999.0, -999.0, -99.0, -9.0, -1.0)  # codes below all other values, none of them negative ...
FAR = (-99999.0, -9999.0, -999.0, -99.0, -9.0, 9.0, 99.0, 999.0, 9999.0, 99999.0)  # ... or far from all of them
MIN_CODED = 2  # cells; one may be chance

# For codes that may be measured: cells of one column (one more in wide tables, where chance has more columns); the
# fraction of the columns in which even one cell each is not chance; the largest fraction of cells, more being zeros
# after a logarithm; and the mean in standard deviations, less being a standardised column.
MIN_REPEATED = {-9.0: 2, -1.0: 2, 9.0: 3, 99.0: 2}
MANY_COLUMNS, MAX_CODED, MIN_MEAN = 0.1, 0.5, 0.1
LARGEST_SYMMETRIC = 2.0  # -1, 0, 1, 2 is a scale; -1, 0, 1, 2, 3 is not
FAR_CELL, MOST_FAR, MIN_ROWS_BESIDE = 100.0, 3, 10  # how far, how many of a column, of how many that vary
SURE_BITS = 20.0  # equal columns or rows are chance with a probability below 2 ** -20
SAMPLE = 500  # rows that are compared first
LOOK = 200  # rows that show which columns may have a far cell


def identifiers(given: Given) -> Iterator[Finding]:
    """Columns that name or count the rows.

    They are found by their names (id, patient), or by whole numbers that go up or down row by row or never repeat,
    unless such columns are common, as in tables of counts. Missing values are left out.
    """
    names, tables = given.features, given.two
    if not tables:
        return

    def observed(j: int) -> list[Array]:
        return [table[~np.isnan(table[:, j]), j] for table in tables]

    some = tables[0][:SAMPLE]
    maybe = np.flatnonzero(np.all((some == np.floor(some)) | np.isnan(some), axis=0)).tolist()
    named = {j for j, name in enumerate(names) if names_rows(name) and all(map(_varies, observed(j)))}
    whole = [j for j in maybe if all(is_whole(table[:, j]) for table in tables)]
    rare = len(whole) <= max(1.0, FEW_WHOLE * len(names))
    told_apart = {j for j in whole if _tells_rows_apart(names[j], observed(j), rare=rare)}
    if found := [names[j] for j in sorted(named | told_apart)]:
        one = len(found) == 1
        look = "looks like an identifier but is used as a feature"
        yield Finding(
            "identifier",
            f"{listed(found)} {look if one else 'look like identifiers but are used as features'}.",
            f"If so, drop {'it' if one else 'them'} from both tables.",
            f"If so, add --ignore {as_command(found)}.",
        )


def names_rows(name: str) -> bool:
    """Whether a column says which row it is, by its name: id, patient, SampleID."""
    of_rows = names_source(name, (*PEOPLE, "sample", "case", "row"))
    return of_rows or bool(NAMES_ROWS.fullmatch(name) or CAMEL_ID.fullmatch(name))


def is_whole(column: Array) -> bool:
    """Whether a column holds whole numbers in most rows, missing values in the others, and not all are equal."""
    observed = column[~np.isnan(column)]
    mostly = observed.size >= MOSTLY_KNOWN * column.size
    return mostly and _varies(observed) and bool(np.all(observed == np.floor(observed)))


def _varies(column: Array) -> bool:
    return column.size > 1 and bool(column.min() < column.max())


def _tells_rows_apart(name: str, columns: list[Array], *, rare: bool) -> bool:
    steps = [np.diff(column) for column in columns]
    if all(own.size + 1 >= MIN_COUNTED and (np.all(own > 0) or np.all(own < 0)) for own in steps):
        return True
    distinct = [np.unique(column).size / column.size for column in columns]
    if MAY_NAME_ROWS.fullmatch(name) and min(distinct) >= MOSTLY_DISTINCT:
        return True
    size = sum(column.size for column in columns)
    return rare and size >= MIN_DISTINCT and np.unique(np.concatenate(columns)).size == size


def missing_codes(given: Given) -> Iterator[Finding]:
    """Numbers such as 999, -999 and -1 that stand for a missing value: far from, or below, all other values."""
    names, tables = given.features, given.two
    if not tables:
        return
    # Few columns have a code as their smallest or largest value.
    low = np.min([np.fmin.reduce(table, axis=0) for table in tables], axis=0)
    high = np.max([np.fmax.reduce(table, axis=0) for table in tables], axis=0)
    codes = [*BELOW_ZERO, *FAR]
    found: dict[float, list[tuple[int, int]]] = {}  # code to columns and cells
    for j in np.flatnonzero(np.isin(low, codes) | np.isin(high, codes)).tolist():
        column = np.concatenate([table[:, j] for table in tables])
        column = column[np.isfinite(column)]
        for code in (column.min(), column.max()):
            others = column[column != code]
            if others.size and _is_code(code, column, others):
                found.setdefault(float(code), []).append((j, column.size - others.size))
    for code, places in sorted(found.items()):
        counts = [count for _, count in places]
        least = MIN_REPEATED[code] + int(np.log10(len(names)) / 2) if code in MIN_REPEATED else 1
        repeated = max(counts) >= least or len(places) >= MANY_COLUMNS * len(names)
        if repeated and sum(counts) >= MIN_CODED:
            yield Finding(
                "missing code",
                f"{code:.0f} occurs in {plural(sum(counts), 'cell')} of {listed([names[j] for j, _ in places])}, far "
                "from all other values or below them: it looks like a code for missing values.",
                f"If so, replace it by NaN in both tables: np.where(X == {code:.0f}, np.nan, X).",
                f"If so, add --missing {code:.0f}.",
            )


def _is_code(code: float, column: Array, others: Array) -> bool:
    """Whether the smallest or largest value of a column is one of the codes, and stands apart from the others."""
    low, high = float(others.min()), float(others.max())
    gap = low - code if code < low else code - high
    if low == high or (not (code in BELOW_ZERO and low >= 0) and not (code in FAR and gap >= high - low)):
        return False
    if code not in MIN_REPEATED:
        return True
    # Values such as -1 and 9 may belong to a scale, to the tail of counts, or to logarithms of counts.
    if np.all(others == np.floor(others)):
        measured = np.sum(others == high) == 1 if code == 9 else code == -1 and high <= LARGEST_SYMMETRIC
    else:
        uneven = others[np.round(others, 3) != others]
        measured = np.unique(uneven).size < uneven.size  # such as log(x + 0.1) of counts x, with -1 for 0
    mostly_others = others.size >= (1 - MAX_CODED) * column.size
    standardised = abs(column.mean()) <= MIN_MEAN * column.std()
    return bool(mostly_others and not measured and not standardised)


def constant_columns(given: Given) -> Iterator[Finding]:
    """Columns with one value in all rows of both tables."""
    if not given.two:
        return
    first = given.two[0][0]
    columns = np.flatnonzero(np.all(given.two[0][:SAMPLE] == first, axis=0))
    for table in given.two:
        columns = columns[np.all(table[:, columns] == first[columns], axis=0)]
    if columns.size:
        have, they, were = ("has", "it", "it was") if columns.size == 1 else ("each have", "they", "they were")
        yield Finding(
            "constant",
            f"{listed([given.features[j] for j in columns.tolist()])} {have} the same value in every row and so no "
            "influence.",
            f"If {they} should vary, check how {were} exported.",
        )


def duplicate_columns(given: Given) -> Iterator[Finding]:
    """Copies of other columns, unless they hold so little information that they may be equal by chance."""
    names, tables = given.features, given.two
    if not tables:
        return
    alike: dict[bytes, list[int]] = {}
    some = np.ascontiguousarray(np.vstack([table[:SAMPLE] for table in tables]).T)
    for j in range(len(names)):
        alike.setdefault(some[j].tobytes(), []).append(j)
    pairs = [
        (first, j)
        for first, *others in alike.values()
        for j in others
        if all(np.array_equal(table[:, first], table[:, j], equal_nan=True) for table in tables)
    ]
    sure = SURE_BITS + 2 * np.log2(len(names)) if pairs else 0.0
    found = [(i, j) for i, j in pairs if sum(information(table[:, i]).sum() for table in tables) > sure]
    if found:
        first, second = (names[j] for j in found[0])
        n_more = len(found) - 1
        more = f", and so do {n_more} other pairs" if n_more > 1 else ", and so does another pair" if n_more else ""
        copies = [names[j] for j in sorted({j for _, j in found})]
        yield Finding(
            "duplicate columns",
            f"{first!r} and {second!r} hold the same values in every row{more}: a copied measurement counts twice.",
            f"Keep one of each: drop {listed(copies)}.",
            f"Keep one of each: --ignore {as_command(copies[:5])}{' ...' * (len(copies) > 5)}",
        )


def information(column: Array) -> Array:
    """Bits that each value of a column tells, from how often it occurs there: rare values tell more. Shape (n,)."""
    _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
    return -np.log2(counts / column.size)[place.reshape(column.shape)]


def far_cells(given: Given) -> Iterator[Finding]:
    """Cells that are a hundred times as far from the median of their column and table as those of all other rows.

    At most 3 of a column, and none if fewer than 10 rows differ from the median, as in sparse columns. Chance is unlike
    that: with the tails of Student's t of 3 degrees of freedom, it takes a million columns.
    """
    tables, found = given.arrays, []
    for j in _columns_with_far_cells(tables) if tables else []:
        columns = [table[:, j] for table in tables]
        away = np.concatenate([np.nan_to_num(np.abs(column - np.nanmedian(column))) for column in columns])
        if np.count_nonzero(away) < MIN_ROWS_BESIDE:
            continue
        few = np.argpartition(-away, MOST_FAR)[: MOST_FAR + 1]
        order = few[np.argsort(-away[few], kind="stable")]
        with np.errstate(over="ignore"):  # of a ratio, which is then infinite
            gaps = [high / low if low > 0 else 0.0 for high, low in pairwise(away[order].tolist())]
        if max(gaps) > FAR_CELL:
            found += [(max(gaps), j, place) for place in order[: 1 + int(np.argmax(gaps))].tolist()]
    if not found:
        return
    times, j, place = max(found)
    k = int(place >= len(tables[0])) if len(tables) > 1 else 0
    i = place - k * len(tables[0])
    names = list(given.names)[k]
    who = f"row {i}" if names is None else f"row {names[i]}" if names[i].isdigit() else repr(names[i])
    others = len(found) - 1
    more = f" So {'is' if others == 1 else 'are'} {plural(others, 'other value')}." if others else ""
    yield Finding(
        "far cell",
        f"{tables[k][i, j]:.4g} in {given.features[j]!r} of {who} ({given.people[k]}) is {times:.2g} times as far from "
        f"the median as any other row.{more} Such a value can hide a contrast, or look like one.",
        "If it is a mistake, correct it, or leave the cell empty (NaN).",
    )


def _columns_with_far_cells(tables: list[Array]) -> list[int]:
    """Columns that may have far cells: their extremes are far beyond all but a few values of some rows."""
    found = np.zeros(tables[0].shape[1], dtype=bool)
    differ = np.zeros(found.size, dtype=int)
    for table in tables:
        some = every_few(table, LOOK)
        last = max(len(some) - 1 - MOST_FAR, 0)
        with np.errstate(over="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns without any value
            middle = np.nanmedian(some, axis=0)
            away = np.partition(np.nan_to_num(np.abs(some - middle)), last, axis=0)[last]
            most = np.fmax(np.fmax.reduce(table, axis=0) - middle, middle - np.fmin.reduce(table, axis=0))
            found |= most > FAR_CELL / 2 * away  # half, as the median of all rows is another
            differ += np.count_nonzero(table != middle, axis=0)
    return np.flatnonzero(found & (differ >= MIN_ROWS_BESIDE)).tolist()
