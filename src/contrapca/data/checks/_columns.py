"""Columns and values that are probably no measurements, or not what they should be.

Identifiers, codes for missing values, constants, copies, single values far from all others, raw counts, counts of
unequal depth (F46), imputed values.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..._util.arrays import Array, Rows, is_sparse
from ..._util.text import as_command, default_names, listed, plural
from ...exceptions import TableWarning, warn
from .._depth import counts_in, depth_gap, kind_of, smallest_counts, typical_ratio
from .._groups import Groups
from .._replicates import PEOPLE, names_source
from ._finding import Finding

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
MAX_ROWS = 1000  # rows that are checked, evenly spread
TOP = 99  # percentile that is compared with the median, of the values above 0

# Multiples of the median: for whole numbers over the whole table, for others in a typical feature. Small counts, rating
# scales and pixels stay below 4; exponential values reach 6.6, normal ones of any mean less than 4.
MANY_COUNTS, MANY_TIMES = 4.0, 6.0
MIN_POSITIVE = 10  # minimum number of values above 0 for a feature to count
ADVICE = {
    "counts": "The values look like raw counts (whole numbers, few of them very large)",
    "intensities": "The values look like raw intensities (none negative, few of them very large)",
    "normalised": "The values look like counts divided by the total of their row, without logarithms",
}
UNEQUAL, SURE = 1.2, 1e-3  # ratio of median totals, either way, and p-value of equal totals
IMPUTED = "imputed"  # the column of a file, and the entry of a data frame's `attrs`, that say so


def identifiers(names: Sequence[str], tables: list[Array]) -> list[Finding]:
    """Columns that name or count the rows.

    They are found by their names (id, patient), or by whole numbers that go up or down row by row or never repeat,
    unless such columns are common, as in tables of counts. Missing values are left out.
    """
    some = tables[0][:SAMPLE]
    maybe = np.flatnonzero(np.all((some == np.floor(some)) | np.isnan(some), axis=0)).tolist()
    named = {j for j, name in enumerate(names) if names_rows(name)}
    named = {j for j in named if all(_varies(column) for column in _observed(tables, j))}
    whole = [j for j in maybe if all(is_whole(table[:, j]) for table in tables)]
    rare = len(whole) <= max(1.0, FEW_WHOLE * len(names))
    found = sorted(named | {j for j in whole if _tells_rows_apart(names[j], _observed(tables, j), rare=rare)})
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
            f"If so, add --ignore {as_command(suspects)}.",
        )
    ]


def names_rows(name: str) -> bool:
    """Whether a column says which row it is, by its name: id, patient, SampleID."""
    of_rows = names_source(name, (*PEOPLE, "sample", "case", "row"))
    return of_rows or bool(NAMES_ROWS.fullmatch(name) or CAMEL_ID.fullmatch(name))


def _observed(tables: list[Array], j: int) -> list[Array]:
    """A column of each table, without missing values."""
    return [table[~np.isnan(table[:, j]), j] for table in tables]


def _varies(column: Array) -> bool:
    return column.size > 1 and bool(column.min() < column.max())


def is_whole(column: Array) -> bool:
    """Whether a column holds whole numbers in most rows, missing values in the others, and not all are equal."""
    observed = column[~np.isnan(column)]
    return (
        observed.size >= MOSTLY_KNOWN * column.size
        and _varies(observed)
        and bool(np.all(observed == np.floor(observed)))
    )


def _tells_rows_apart(name: str, columns: list[Array], *, rare: bool) -> bool:
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


def missing_codes(names: Sequence[str], tables: list[Array]) -> list[Finding]:
    """Numbers such as 999, -999 and -1 that stand for a missing value: far from, or below, all other values."""
    found: dict[float, list[tuple[int, int]]] = {}  # code to columns and cells
    for j in _columns_with_codes(tables):
        column = np.concatenate([table[:, j] for table in tables])
        column = column[np.isfinite(column)]
        for code in (column.min(), column.max()):
            others = column[column != code]
            if others.size and _is_code(code, others) and (code not in MIN_REPEATED or _is_beside(column, others)):
                found.setdefault(float(code), []).append((j, column.size - others.size))
    findings = []
    for code, places in sorted(found.items()):
        counts = [count for _, count in places]
        least = MIN_REPEATED[code] + int(np.log10(len(names)) / 2) if code in MIN_REPEATED else 1
        repeated = max(counts) >= least or len(places) >= MANY_COLUMNS * len(names)
        if repeated and sum(counts) >= MIN_CODED:
            shown, columns = f"{code:.0f}", [names[j] for j, _ in places]
            findings.append(
                Finding(
                    "missing code",
                    f"{shown} occurs in {plural(sum(counts), 'cell')} of {listed(columns)}, far from all other values "
                    "or below them: it looks like a code for missing values.",
                    f"If so, replace it by NaN in both tables: np.where(X == {shown}, np.nan, X).",
                    f"If so, add --missing {shown}.",
                )
            )
    return findings


def _columns_with_codes(tables: list[Array]) -> list[int]:
    """Columns whose smallest or largest value is one of the codes; quick where there are none."""
    codes = np.array([*BELOW_ZERO, *FAR])
    low = np.min([np.fmin.reduce(table, axis=0) for table in tables], axis=0)
    high = np.max([np.fmax.reduce(table, axis=0) for table in tables], axis=0)
    return [int(j) for j in np.flatnonzero(np.isin(low, codes) | np.isin(high, codes))]


def _is_code(code: float, others: Array) -> bool:
    """Whether a value below or above all others of a column is one of the codes, and stands apart from them."""
    low, high = float(others.min()), float(others.max())
    if low == high:
        return False
    gap = low - code if code < low else code - high
    if not (code in BELOW_ZERO and low >= 0) and not (code in FAR and gap >= high - low):
        return False
    return code not in MIN_REPEATED or not _is_measured(code, others, high)


def _is_measured(code: float, others: Array, high: float) -> bool:
    """Whether a value such as -1 or 9 belongs to a scale, to the tail of counts, or to logarithms of counts."""
    if np.all(others == np.floor(others)):
        return bool(np.sum(others == high) == 1) if code == 9 else code == -1 and high <= LARGEST_SYMMETRIC
    uneven = others[np.round(others, 3) != others]
    return np.unique(uneven).size < uneven.size  # such as log(x + 0.1) of counts x, with -1 for 0


def _is_beside(column: Array, others: Array) -> bool:
    """Whether most cells are others than the code, in a column that is not standardised."""
    return others.size >= (1 - MAX_CODED) * column.size and abs(column.mean()) > MIN_MEAN * column.std()


def constant_columns(names: Sequence[str], tables: list[Array]) -> list[Finding]:
    """Columns with one value in all rows of both tables."""
    first = tables[0][0]
    columns = np.flatnonzero(np.all(tables[0][:SAMPLE] == first, axis=0))
    for table in tables:
        columns = columns[np.all(table[:, columns] == first[columns], axis=0)]
    if not columns.size:
        return []
    found = [names[j] for j in columns.tolist()]
    one = len(found) == 1
    return [
        Finding(
            "constant",
            f"{listed(found)} {'has' if one else 'each have'} the same value in every row and so no influence.",
            f"If {'it' if one else 'they'} should vary, check how {'it was' if one else 'they were'} exported.",
        )
    ]


def duplicate_columns(names: Sequence[str], tables: list[Array]) -> list[Finding]:
    """Copies of other columns, unless they hold so little information that they may be equal by chance."""
    groups: dict[bytes, list[int]] = {}
    some = np.ascontiguousarray(np.vstack([table[:SAMPLE] for table in tables]).T)
    for j in range(len(names)):
        groups.setdefault(some[j].tobytes(), []).append(j)
    pairs = [
        (members[0], j)
        for members in groups.values()
        for j in members[1:]
        if all(np.array_equal(table[:, members[0]], table[:, j], equal_nan=True) for table in tables)
    ]
    sure = SURE_BITS + 2 * np.log2(len(names)) if pairs else 0.0
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
            f"{first!r} and {second!r} hold the same values in every row{more}: a copied measurement counts twice.",
            f"Keep one of each: drop {listed(copies)}.",
            f"Keep one of each: --ignore {as_command(copies[:5])}{' ...' * (len(copies) > 5)}",
        )
    ]


def information(column: Array) -> Array:
    """Bits that each value of a column tells, from how often it occurs there: rare values tell more. Shape (n,)."""
    _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
    return -np.log2(counts / column.size)[place.reshape(column.shape)]


def far_cells(
    names: Sequence[str], tables: list[Array], rows: Sequence[Sequence[str] | None], people: Sequence[str]
) -> list[Finding]:
    """Cells that are a hundred times as far from the median of their column and table as those of all other rows.

    At most 3 of a column, and none if fewer than 10 rows differ from the median, as in sparse columns. Chance is unlike
    that: with the tails of Student's t of 3 degrees of freedom, it takes a million columns.

    Parameters
    ----------
    names : sequence of str
    tables : list of ndarray of shape (n, D), (m, D)
    rows : sequence of sequence of str, or None
        Names of the rows of each table.
    people : sequence of str
        What the rows of each table are, for the sentence: "cases", "controls".
    """
    found = []
    for j in _columns_with_far_cells(tables):
        columns = [table[:, j] for table in tables]
        away = np.concatenate([np.nan_to_num(np.abs(column - np.nanmedian(column))) for column in columns])
        if np.count_nonzero(away) < MIN_ROWS_BESIDE:
            continue
        few = np.argpartition(-away, MOST_FAR)[: MOST_FAR + 1]
        order = few[np.argsort(-away[few], kind="stable")]
        with np.errstate(over="ignore"):  # of a ratio, which is then infinite
            gaps = [high / low if low > 0 else 0.0 for high, low in pairwise(away[order].tolist())]
        if max(gaps) > FAR_CELL:
            count = 1 + int(np.argmax(gaps))
            found += [(max(gaps), j, place) for place in order[:count].tolist()]
    if not found:
        return []
    times, j, place = max(found)
    k = int(place >= len(tables[0])) if len(tables) > 1 else 0
    i = place - k * len(tables[0])
    own = rows[k]
    who = f"row {i}" if own is None else f"row {own[i]}" if own[i].isdigit() else repr(own[i])
    more = (
        f" So {'is' if len(found) == 2 else 'are'} {plural(len(found) - 1, 'other value')}." if len(found) > 1 else ""
    )
    return [
        Finding(
            "far cell",
            f"{tables[k][i, j]:.4g} in {names[j]!r} of {who} ({people[k]}) is "
            f"{times:.2g} times as far from the median as any other row.{more} Such a value can hide a contrast, or "
            "look like one.",
            "If it is a mistake, correct it, or leave the cell empty (NaN).",
        )
    ]


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


def people_of(groups: Groups[Any]) -> list[str]:
    """What the rows of each group are called in sentences."""
    return ["cases", "controls"] if len(groups) == 2 else ["cases", *groups.names[1:]]


def every_few(table: Array, most: int) -> Array:
    """At most this many rows of a table, evenly spread; a view."""
    return table[:: -(-len(table) // most)]


def warn_of_far_cells(rows: Groups[Rows], columns: Sequence[str] | None, names: Groups[list[str] | None]) -> None:
    """Warn of single values far from all others, in tables that are arrays."""
    tables = [np.asarray(table) for table in rows if isinstance(table, np.ndarray)]
    if len(tables) == len(rows):
        shown = default_names(tables[0].shape[1]) if columns is None else columns
        for finding in far_cells(shown, tables, list(names), people_of(names)):
            warn(finding.text(), TableWarning)


def are_counts(rows: Rows) -> bool:
    """Whether values are whole numbers, none negative and some above 1; up to 1000 rows, evenly spread, are checked."""
    some = _some(rows)
    values = np.ravel(some.data if is_sparse(some) else some)
    return bool(values.size and values.min() >= 0 and values.max() > 1 and np.all(values == np.rint(values)))


def looks_like_counts(rows: Rows) -> str | None:
    """Whether a table looks like counts, counts over totals or intensities, whose few large values would dominate.

    All are non-negative. For counts (whole numbers), the 99th percentile of the values above 0 is at least 4 times
    their median; for intensities (other numbers), at least 6 times in a typical feature; counts over totals are
    multiples of one value in each row, another in each.

    Parameters
    ----------
    rows : array or sparse matrix of shape (n, D)
        Up to 1000 rows, evenly spread, are checked; NaN is ignored.

    Returns
    -------
    "counts", "normalised", "intensities" or None
    """
    some = _some(rows)
    dense: Array = np.asarray(some.toarray() if is_sparse(some) else some, dtype=np.float64)
    values = dense[np.isfinite(dense)]
    positive = values[values > 0]
    if positive.size < MIN_POSITIVE or values.min() < 0:
        return None
    if np.all(positive == np.rint(positive)):
        return "counts" if _top_over_median(positive) >= MANY_COUNTS else None
    if kind_of(rows) == "normalised":
        return "normalised"
    columns = [column[np.isfinite(column) & (column > 0)] for column in dense.T]
    ratios = [_top_over_median(column) for column in columns if column.size >= MIN_POSITIVE]
    return "intensities" if ratios and np.median(ratios) >= MANY_TIMES else None


def _some(rows: Rows) -> Rows:
    n = rows.shape[0]
    return rows[np.unique(np.linspace(0, n - 1, min(n, MAX_ROWS)).astype(int))]


def _top_over_median(values: Array) -> float:
    median, top = np.percentile(values, [50, TOP])
    return float(top / median)


def advice_on_values(tables: Groups[Rows]) -> list[Finding]:
    """Advice about raw values; none unless all tables hold the same kind of values."""
    kinds = {looks_like_counts(rows) for rows in tables}
    if len(kinds) > 1 or None in kinds:
        return []
    return [
        Finding(
            "raw values",
            f"{ADVICE[kind]}.",
            "Take logarithms first, log(1 + x), in both tables.",
        )
        for kind in kinds
        if kind
    ]


def unequal_depth(tables: Groups[Rows]) -> list[Finding]:
    """A finding where the counts of the cases add up to more, or less, than those of a background.

    Counts are taken as they are, or recovered from log-normalised rows; nothing is said of other tables, nor of rows
    that are not in memory.
    """
    found = []
    for rows in tables:
        counts = _counts(rows)
        if counts is None:
            return []
        found.append(counts)
    totals = [np.asarray(counts.sum(axis=1), dtype=np.float64).ravel() for counts in found]
    typical = [typical_ratio(found[0], other) for other in found[1:]]
    every = zip(totals[1:], typical, strict=True)
    return [finding for other, ratio in every for finding in depth_finding(totals[0], other, ratio)][:1]


def depth_finding(own: Array, other: Array, typical: float = np.nan) -> list[Finding]:
    """A finding if the totals of cases (n,) and controls (m,) differ much, and not by chance or in few genes.

    `typical` is the ratio of a typical gene (`typical_ratio`), nan if it is not known.
    """
    own, other = own[own > 0], other[other > 0]
    if not (own.size and other.size):
        return []
    ratio, p = depth_gap(own, other)
    few_genes = np.log(typical) * np.sign(np.log(ratio)) < np.log(UNEQUAL) / 2
    if max(ratio, 1 / ratio) < UNEQUAL or p >= SURE or few_genes:
        return []
    return [
        Finding(
            "depth",
            f"Counts add up to {ratio:.2g} times as much in the cases as in the controls (medians "
            f"{np.median(own):,.0f} and {np.median(other):,.0f}): unequal depth alone can look like a contrast, also "
            "after normalisation.",
            'Test with depth="match", or thin both tables with match_depth.',
            "Test with --depth match.",
        )
    ]


def _counts(rows: Rows) -> Any:
    """Counts of some rows as a CSR matrix; None if there are none, or whole numbers unlike counts of molecules."""
    if not (isinstance(rows, np.ndarray) or is_sparse(rows)):
        return None
    some = rows[:: -(-rows.shape[0] // MAX_ROWS)]
    kind = kind_of(some)
    if kind is None or (kind == "counts" and looks_like_counts(some) != "counts"):
        return None
    counts = counts_in(some, kind)
    # Of molecules, some gene has a single one; sums of money have none.
    if kind == "counts" and np.median(smallest_counts(counts)) > 1:
        return None
    return counts


def warn_of_depth(tables: Groups[Rows]) -> None:
    """Warn of unequal depth."""
    for finding in unequal_depth(tables):
        warn(finding.text(), TableWarning)


def imputed_values(count: int, where: str) -> Finding:
    """A finding for a table with `count` imputed values."""
    return Finding(
        "imputed values",
        f"{count} values of {where} were imputed. Imputed values vary less than measured ones, which can look like a "
        "contrast.",
        "Use the table as it was: values can be missing in both groups.",
    )


def warn_of_imputed(tables: Iterable[Any]) -> None:
    """Warn of data frames that `impute` has filled."""
    for table in tables:
        count = getattr(table, "attrs", {}).get(IMPUTED)
        if count:
            warn(str(imputed_values(count, "a table")), TableWarning)
