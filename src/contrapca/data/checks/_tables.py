"""All checks of a study, and those of its rows: names, labels, rows in both groups, samples as columns, batches.

To add a check, write a function from `Given` to its findings, and add it to `CHECKS` below.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._util.arrays import Array, Rows
from ..._util.text import as_command, default_names, listed, plural, spelling
from ...exceptions import TableWarning, warn
from .._groups import Groups
from .._names import PEOPLE, feature_label, looks_like_replicates, replicate_example
from .._study import refuse_moments, study_of
from ._columns import constant_columns, duplicate_columns, far_cells, identifiers, information, missing_codes
from ._finding import Finding, Findings, Given, every_few
from ._values import IMPUTED, advice_on_values, imputed_values, unequal_depth

SUMMARIES = re.compile(r"(?:grand )?(?:mean|average|avg|total|sum|median|sd|std|stdev|se|sem|min|max|count)s?", re.I)
CASES = re.compile(r"(?:^|[^a-z])(?:cases?|patients?|diseased?|ill|tumou?rs?|treated|affected|positive)(?![a-z])", re.I)
CONTROLS = re.compile(
    r"(?:^|[^a-z])(?:controls?|ctrls?|healthy|normals?|background|untreated|unaffected|wild[ _-]?types?|wt)(?![a-z])",
    re.I,
)
SURE_BITS = 10.0  # equal rows are chance with a probability below 2 ** -10, by a careful estimate
HASHED = 16  # columns that rows are compared by first
ROW_EFFECT, COLUMN_EFFECT = 0.5, 0.05  # fractions of the variance between rows, and between columns, if transposed
SAME_NAMES = 0.8  # fraction of row names in both tables
MIN_NAMES = 5

# Column names that number samples.
NUMBERED_SAMPLES = re.compile(
    rf"(?:{'|'.join(PEOPLE)}|sample|control|ctrl|case|tumou?r|normal|healthy|gsm|srr|tcga|cell)s?[ _.-]?\w*\d+",
    re.IGNORECASE,
)
STANDARDISED, OTHER = 1e-6, 3.0  # error of means and variances; ratio of standard deviations, or distance of means
NEARLY = 0.25  # error of means, and of the median variance, where long rows count less
FAR_APART = 10.0  # pooled sd between the means of a feature: prepared in different ways
APART, MOST = 2.0, 0.5  # pooled sd, in this fraction of the features: measured in different batches
FEW_ROWS = 2_000  # rows whose means are compared, evenly spread
SAME_TABLE = Finding(
    "same table",
    "Cases and controls are the same table, so nothing can vary more in the cases.",
    "Pass two different tables.",
    "Name two different files; for two sheets of one workbook, add --sheet CASES --sheet CONTROLS.",
)
OTHER_UNITS = Finding(
    "other units",
    "The cases are standardised (every feature has mean 0 and standard deviation 1), but the controls are in other "
    "units: earlier steps of a Pipeline do not reach background=.",
    "Leave the step out and use scale='pooled', or stack both tables and name the controls by background_label=.",
)

# ---------------------------------------------------------------------- names and labels


def alike_labels(labels: Iterable[str], what: str) -> list[Finding]:
    """Labels that differ only in upper and lower case or in blanks; `what` they are: "Values of 'stage'"."""
    groups: dict[str, Counter[str]] = {}
    for label in labels:
        groups.setdefault(spelling(label), Counter())[label] += 1
    found = [counts for counts in groups.values() if len(counts) > 1]
    if not found:
        return []
    shown = "; ".join(
        ", ".join(f"{label!r} ({plural(count, 'row')})" for label, count in sorted(counts.items()))
        for counts in found[:3]
    )
    return [
        Finding(
            "spelling",
            f"{what} differ only in case or blanks: {shown}{'; ...' * (len(found) > 3)}.",
            "If they mean the same, spell them alike.",
        )
    ]


def names_and_labels(given: Given) -> Iterator[Finding]:
    """Labels spelt alike; names of rows that occur twice, are those of summaries, or look like replicates."""
    labels = [] if given.labels is None else np.asarray(given.labels).tolist()
    yield from alike_labels([label for label in labels if isinstance(label, str)], "Labels")
    every = zip(given.people, given.names, strict=True)
    repeated = [finding for group, names in every for finding in repeated_names(names, group)]
    yield from repeated
    for names in given.names:
        # Spreadsheets add rows such as "mean" and "total" below the samples.
        if found := [name for name in names or [] if SUMMARIES.fullmatch(name.strip())]:
            one = len(found) == 1
            yield Finding(
                "summary row",
                f"{'The row' if one else 'Rows'} named {listed(found)} {'looks' if one else 'look'} like a summary of "
                f"the table, not like {'a sample' if one else 'samples'}.",
                f"Remove {'it' if one else 'them'}.",
            )
    if not given.has_blocks and not repeated:
        yield from replicates([name for names in given.names for name in names or []])


def repeated_names(names: Sequence[str] | None, group: str) -> list[Finding]:
    """Row names that occur more than once in one table."""
    repeated = [name for name, count in Counter(names or []).items() if count > 1]
    if not repeated:
        return []
    occur = "occurs" if len(repeated) == 1 else "occur"
    return [
        Finding(
            "repeated names",
            f"{plural(len(repeated), 'row name')} of the {group} {occur} more than once ({listed(repeated, 3)}).",
            "If a row was entered twice, drop one; if they are replicates, pass a Study with blocks=.",
            "If a row was entered twice, delete one; for replicates, add --blocks with a column that names them.",
        )
    ]


def replicates(names: Sequence[str], what: str = "The row names", column: str | None = None) -> list[Finding]:
    """Names such as 309_1, 309_2 that say that several rows belong together; `column` is where a file has them."""
    stems = looks_like_replicates(names)
    if stems is None:
        return []
    return [
        Finding(
            "replicates",
            f"{what} look like replicates ({replicate_example(names, stems)}). Rows of one donor, animal or plate are "
            "not independent, and p-values that ignore this are far too small.",
            "Pass a Study with blocks=.",
            f"Add --blocks {as_command([column])}."
            if column
            else "Give the column that they are in a name in both files, such as donor, and add --blocks donor.",
        )
    ]


def swapped_names(cases: str, controls: str) -> list[Finding]:
    """Names of tables or groups that say the opposite of what they are used for."""
    if CONTROLS.search(cases) and CASES.search(controls) and not CASES.search(cases) and not CONTROLS.search(controls):
        return [
            Finding(
                "swapped",
                f"{cases!r} is used as the cases and {controls!r} as the controls: by their names it should be the "
                "other way round.",
                "If so, swap them.",
            )
        ]
    return []


# ---------------------------------------------------------------------- rows of two groups


def shared_rows(given: Given) -> Iterator[Finding]:
    """Rows that are in both tables, too long, or too many, to be equal by chance."""
    for X, Y in given.pairs:
        first = slice(0, MIN_NAMES)  # rows tell most tables apart
        alike = X.shape == Y.shape and len(X) >= MIN_NAMES and np.array_equal(X[first], Y[first], equal_nan=True)
        if alike and np.array_equal(X, Y, equal_nan=True):
            yield SAME_TABLE
            continue
        columns = np.unique(np.linspace(0, X.shape[1] - 1, HASHED).astype(int))
        keys = [[row.tobytes() for row in np.ascontiguousarray(table[:, columns])] for table in (X, Y)]
        places = {key: i for i, key in enumerate(keys[0])}
        pairs = [(places[key], j) for j, key in enumerate(keys[1]) if key in places]
        pairs = [(i, j) for i, j in pairs if np.array_equal(X[i], Y[j], equal_nan=True)]
        # Rows of a few common values, such as zeros, are equal by chance: as often within a table as between the two.
        once = len(places) == len(X) and len(set(keys[1])) == len(Y)
        if pairs and not (once and len(pairs) > SURE_BITS):
            bits = sum(information(X[:, k])[[i for i, _ in pairs]] for k in range(X.shape[1]))
            sure = bits > SURE_BITS + np.log2(len(X)) + np.log2(len(Y))
            pairs = [pair for pair, rare in zip(pairs, sure, strict=True) if rare]
        if pairs:
            yield Finding(
                "shared rows",
                f"{plural(len(pairs), 'row')} of the controls {'is' if len(pairs) == 1 else 'are'} also among the "
                "cases, with the same values throughout: a sample belongs to one group only.",
                "Remove them from one of the tables.",
            )


def transposed(given: Given) -> Iterator[Finding]:
    """Tables with samples as columns: they are named like samples, or rows named alike differ like features."""
    columns, names = list(given.columns or []), given.names.foreground
    columns = [] if columns == default_names(len(columns)) else columns
    numbered = _numbered(columns) >= SAME_NAMES and names is not None and _numbered(names) <= 1 - SAME_NAMES
    for (X, _), others in zip(given.pairs, given.names.backgrounds if given.pairs else (), strict=True):
        if numbered:
            why = f"The columns are named like samples ({listed(columns, 3)})"
        elif same_row_names(names, others) and _varies_by_row(X):
            why = f"The rows of both tables have the same names ({listed(names or [], 3)}) and differ like features"
        else:
            continue
        yield Finding(
            "transposed",
            f"{why}: rows should be samples and columns features.",
            "If they are not, transpose both tables (X.T).",
            "If they are not, add --transpose.",
        )


def _numbered(names: Sequence[str]) -> float:
    """The fraction of names that number samples; 0 of few names."""
    return sum(map(bool, map(NUMBERED_SAMPLES.fullmatch, names))) / len(names) if len(names) >= MIN_NAMES else 0.0


def same_row_names(names: Sequence[str] | None, others: Sequence[str] | None) -> bool:
    """Whether two tables name most of their rows alike, in words."""
    if names is None or others is None or min(len(names), len(others)) < MIN_NAMES:
        return False
    words = {name for name in names if not name.strip().lstrip("-+").replace(".", "", 1).isdigit()}
    return len(words & set(others)) >= SAME_NAMES * max(len(set(names)), len(set(others)))


def _varies_by_row(X: Array) -> bool:
    """Whether rows have means of their own, as features have, and columns have not."""
    if not np.isfinite(X).all():
        X = np.where(np.isfinite(X), X, np.nanmean(np.where(np.isfinite(X), X, np.nan)))
    total = X.var()
    by_row, by_column = X.mean(axis=1).var(), X.mean(axis=0).var()
    return bool(total > 0 and by_row > ROW_EFFECT * total and by_column < COLUMN_EFFECT * total)


def batches(given: Given) -> Iterator[Finding]:
    """Means of the observed values that are many pooled standard deviations apart."""
    for pair in given.pairs:
        means, squares, counts = [], 0.0, 0.0
        for table in (every_few(own, FEW_ROWS) for own in pair):
            observed = np.isfinite(table)
            count = np.maximum(observed.sum(axis=0), 1)
            filled = np.where(observed, table, 0.0) if not observed.all() else table
            mean = filled.sum(axis=0, dtype=np.float64) / count
            centred = (filled - mean) * observed
            means.append(mean)
            squares = squares + np.einsum("ij,ij->j", centred, centred)
            counts = counts + count
        pooled, gap = np.sqrt(squares / counts), np.abs(means[0] - means[1])
        varies = pooled > 1e-12 * (np.abs(means[0]) + np.abs(means[1]))
        yield from distant_means(np.divide(gap, pooled, out=np.zeros_like(gap), where=varies), given.columns)


def distant_means(distance: Array, names: Sequence[str] | None) -> list[Finding]:
    """A finding if means are far apart in one feature, or apart in most; in pooled standard deviations, shape (D,)."""
    limit, found = FAR_APART, np.flatnonzero(distance > FAR_APART)
    if not found.size:
        limit, found = APART, np.flatnonzero(distance > APART)
        if found.size <= max(1.0, MOST * distance.size):
            return []
    first = ", ".join(feature_label(names, int(j)) for j in found[:3])
    check = "Check that both groups were measured and preprocessed in the same way"
    if limit == FAR_APART:
        check += " and that none of these columns is an identifier"
    return [
        Finding(
            "batch",
            f"In {found.size} of {distance.size} features (the first: {first}) the means of cases and controls differ "
            f"by more than {limit:.0f} pooled standard deviations, as after different preprocessing or in different "
            "batches.",
            f"{check}. In a Pipeline, a background= table bypasses the earlier steps: use background_label= and y "
            "there.",
            f"{check}.",
        )
    ]


# ---------------------------------------------------------------------- all checks


CHECKS: list[Callable[[Given], Iterable[Finding]]] = [
    names_and_labels,
    lambda given: advice_on_values(given.rows),
    lambda given: unequal_depth(given.rows),
    identifiers,
    lambda given: list(missing_codes(given)) or far_cells(given),  # codes are far from all others, too
    constant_columns,
    duplicate_columns,
    shared_rows,
    transposed,
    batches,
]


def check_tables(X: Any, *, background: Any = None) -> Findings:
    """Look for mistakes in two tables before they are analysed; the command line and reports use the same checks.

    They find identifiers used as features, single values far from all others, codes for missing values (999, -999,
    -1), constant and duplicate columns, labels that differ only in case or blanks, repeated row names, rows of totals,
    replicates, the same rows in both tables, tables with samples as columns, raw counts or intensities, counts of
    unequal depth (fewer molecules in one group), and means that are far apart, as in different batches.

    Parameters
    ----------
    X : Study, or array-like, data frame or sparse matrix of shape (n, D)
        A `Study`, whose names, labels and blocks are looked at, too, or the foreground (cases). Columns of sparse
        matrices are not checked.
    background : array-like, data frame or sparse matrix of shape (m, D), or dict of them, optional
        The background (controls), if `X` is not a Study.

    Returns
    -------
    Findings
        A list of Finding, empty if nothing was found. Printed, a finding is a sentence and what to do.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import check_tables
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 50, 4))
    >>> X[[3, 8], 2] = 999
    >>> for finding in check_tables(X, background=Y):
    ...     print(finding.check, "-", finding.sentence)
    missing code - 999 occurs in 2 cells of 'x2', far from all other values or below them: it looks like a code for \
missing values.
    """
    study = study_of(X, background, "check_tables", designs=True)
    refuse_moments(study, "check_tables")
    given = Given(
        rows=study.tables.rows,
        columns=study.features,
        names=study.sample_names,
        labels=study.labels.foreground,
        has_blocks=study.blocks is not None,
    )
    return Findings(check_groups(given))


def check_groups(given: Given) -> list[Finding]:
    """`check_tables` for rows that are already validated."""
    return [finding for check in CHECKS for finding in check(given)]


def warn_of_moments(X: Any, Y: Any, pooled: Array, names: Sequence[str] | None, *, shortened: bool = False) -> None:
    """Warn if two groups are one table, in other units, or very far apart: all that their moments show.

    `X` and `Y` have `weight`, `mean` and `variance`; `pooled` standard deviations are those within groups, shape (D,).
    If some rows are `shortened`, the moments of a standardised table are not quite 0 and 1.
    """
    distance = np.abs(X.mean - Y.mean) / pooled
    found: list[Finding] = []
    if X.weight == Y.weight and np.array_equal(X.mean, Y.mean) and np.array_equal(X.variance, Y.variance):
        found = [SAME_TABLE]
    elif _in_other_units(X, Y, shortened):
        found = [OTHER_UNITS]
    elif np.any(distance > FAR_APART):
        found = distant_means(distance, names)
    _warn_of(found)


def _in_other_units(X: Any, Y: Any, shortened: bool) -> bool:
    """Whether all features of X that vary, of two or more, have mean 0 and variance 1, and those of Y are far off."""
    variances = X.variance[X.variance > 0]
    if variances.size < 2 or np.abs(X.mean).max() > (NEARLY if shortened else STANDARDISED):
        return False
    divisors = (1.0, (X.weight - 1) / X.weight)  # by n or by n - 1
    exact = any(np.abs(variances - one).max() < STANDARDISED for one in divisors)
    if not exact and not (shortened and np.median(np.abs(variances - 1)) < NEARLY):
        return False
    deviations = np.sqrt(Y.variance[Y.variance > 0])
    times_off = np.median(np.maximum(deviations, 1 / deviations)) if deviations.size else 1.0
    return bool(times_off > OTHER or np.median(np.abs(Y.mean)) > OTHER)


def shows_replicates(findings: Iterable[Finding]) -> bool:
    """Whether rows look like replicates, and no blocks say which belong together."""
    return any(finding.check == "replicates" for finding in findings)


def warn_of_replicates(names: Groups[list[str] | None]) -> bool:
    """Warn if the row names of the groups look like replicates, and say so; None where rows have no names."""
    return _warn_of(replicates([name for own in names for name in own or []]))


def warn_of_depth(tables: Groups[Rows]) -> None:
    """Warn of unequal depth."""
    _warn_of(unequal_depth(tables))


def warn_of_far_cells(rows: Groups[Rows], columns: Sequence[str] | None, names: Groups[list[str] | None]) -> None:
    """Warn of single values far from all others, in tables that are arrays."""
    _warn_of(far_cells(Given(rows, columns, names)))


def warn_of_imputed(tables: Iterable[Any]) -> None:
    """Warn of data frames that `impute` has filled."""
    counts = [getattr(table, "attrs", {}).get(IMPUTED) for table in tables]
    _warn_of(imputed_values(count, "a table") for count in counts if count)


def _warn_of(findings: Iterable[Finding]) -> bool:
    """Warn of each, and say whether there was one."""
    found = list(findings)
    for finding in found:
        warn(finding.text(), TableWarning)
    return bool(found)
