"""All checks of a study, and those of its rows and groups: names, labels, shared rows, samples as columns, batches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._util.arrays import Array, Rows
from ..._util.text import as_command, default_names, is_missing, listed, plural, spelling
from ...exceptions import TableWarning, warn
from .._groups import Groups, feature_label
from .._replicates import PEOPLE, looks_like_replicates, replicate_example
from .._study import (
    refuse_moments,
    study_of,
)
from ._columns import (
    advice_on_values,
    constant_columns,
    duplicate_columns,
    every_few,
    far_cells,
    identifiers,
    information,
    missing_codes,
    people_of,
    unequal_depth,
)
from ._finding import Finding, Findings

SUMMARIES = re.compile(r"(?:grand )?(?:mean|average|avg|total|sum|median|sd|std|stdev|se|sem|min|max|count)s?", re.I)
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
CASES = re.compile(r"(?:^|[^a-z])(?:cases?|patients?|diseased?|ill|tumou?rs?|treated|affected|positive)(?![a-z])", re.I)
CONTROLS = re.compile(
    r"(?:^|[^a-z])(?:controls?|ctrls?|healthy|normals?|background|untreated|unaffected|wild[ _-]?types?|wt)(?![a-z])",
    re.I,
)
STANDARDISED, OTHER = 1e-6, 3.0  # error of means and variances; ratio of standard deviations, or distance of means
FAR_APART = 10.0  # pooled sd between the means of a feature: prepared in different ways
APART, MOST = 2.0, 0.5  # pooled sd, in this fraction of the features: measured in different batches
MAX_ROWS, FEW_ROWS = 100_000, 2_000  # rows that are checked, and rows whose means are compared, evenly spread
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


def alike_labels(labels: Iterable[str], what: str) -> list[Finding]:
    """Labels that differ only in upper and lower case or in blanks.

    Parameters
    ----------
    labels : iterable of str
    what : str
        What the labels are, for the sentence: "Labels", "Values of 'stage'".
    """
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


def summary_rows(names: Sequence[str] | None) -> list[Finding]:
    """Rows such as "mean" and "total" that spreadsheets add below the samples."""
    found = [name for name in names or [] if SUMMARIES.fullmatch(name.strip())]
    if not found:
        return []
    one = len(found) == 1
    return [
        Finding(
            "summary row",
            f"{'The row' if one else 'Rows'} named {listed(found)} {'looks' if one else 'look'} like a summary of the "
            f"table, not like {'a sample' if one else 'samples'}.",
            f"Remove {'it' if one else 'them'}.",
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


def shared_rows(X: Array, Y: Array) -> list[Finding]:
    """Rows that are in both tables, too long, or too many, to be equal by chance."""
    same = X.shape == Y.shape and len(X) >= MIN_NAMES and np.array_equal(X[:MIN_NAMES], Y[:MIN_NAMES], equal_nan=True)
    if same and np.array_equal(X, Y, equal_nan=True):
        return [SAME_TABLE]
    columns = np.unique(np.linspace(0, X.shape[1] - 1, HASHED).astype(int))
    keys = [np.ascontiguousarray(table[:, columns]) for table in (X, Y)]
    places = {key.tobytes(): i for i, key in enumerate(keys[0])}
    pairs = [(places[key.tobytes()], j) for j, key in enumerate(keys[1]) if key.tobytes() in places]
    pairs = [(i, j) for i, j in pairs if np.array_equal(X[i], Y[j], equal_nan=True)]
    if not pairs:
        return []
    # Rows of a few common values, such as zeros, are equal by chance: as often within a table as between the two.
    once = len(places) == len(X) and len({key.tobytes() for key in keys[1]}) == len(Y)
    count = len(pairs)
    if not once or count <= SURE_BITS:
        bits = sum(information(X[:, k])[[i for i, _ in pairs]] for k in range(X.shape[1]))
        count = int(np.sum(bits > SURE_BITS + np.log2(len(X)) + np.log2(len(Y))))
    if not count:
        return []
    return [
        Finding(
            "shared rows",
            f"{plural(count, 'row')} of the controls {'is' if count == 1 else 'are'} also among the cases, with the "
            "same values throughout: a sample belongs to one group only.",
            "Remove them from one of the tables.",
        )
    ]


def transposed(
    X: Array, columns: Sequence[str] | None, names: Sequence[str] | None, other_names: Sequence[str] | None
) -> list[Finding]:
    """Find tables with samples as columns: they are named like samples, or rows named alike differ like features.

    Parameters
    ----------
    X : ndarray of shape (n, D)
    columns : sequence of str, or None
    names, other_names : sequence of str, or None
        Row names of the cases and of the controls.
    """
    if columns is None or list(columns) == default_names(len(columns)):
        columns = []
    numbered = _fraction(columns, NUMBERED_SAMPLES)
    rows_are_samples = names is not None and _fraction(names, NUMBERED_SAMPLES) > 1 - SAME_NAMES
    alike = same_row_names(names, other_names)
    if numbered >= SAME_NAMES and not rows_are_samples and names is not None:
        why = f"The columns are named like samples ({listed(list(columns), 3)})"
    elif alike and _varies_by_row(X):
        why = f"The rows of both tables have the same names ({listed(list(names or []), 3)}) and differ like features"
    else:
        return []
    return [
        Finding(
            "transposed",
            f"{why}: rows should be samples and columns features.",
            "If they are not, transpose both tables (X.T).",
            "If they are not, add --transpose.",
        )
    ]


def _fraction(names: Sequence[str], pattern: re.Pattern[str]) -> float:
    return sum(pattern.fullmatch(name) is not None for name in names) / len(names) if len(names) >= MIN_NAMES else 0.0


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


def distant_means(distance: Array, names: Sequence[str] | None) -> list[Finding]:
    """Means of the groups that are many pooled standard deviations apart.

    Parameters
    ----------
    distance : ndarray of shape (D,)
        Of the means of each feature, in pooled standard deviations.
    names : sequence of str, or None
    """
    far, apart = np.flatnonzero(distance > FAR_APART), np.flatnonzero(distance > APART)
    if far.size:
        return [_apart(far, FAR_APART, distance.size, names)]
    if apart.size > max(1.0, MOST * distance.size):
        return [_apart(apart, APART, distance.size, names)]
    return []


def _apart(found: npt.NDArray[np.intp], limit: float, n_features: int, names: Sequence[str] | None) -> Finding:
    first = ", ".join(feature_label(names, int(j)) for j in found[:3])
    check = "Check that both groups were measured and preprocessed in the same way"
    if limit == FAR_APART:
        check += " and that none of these columns is an identifier"
    return Finding(
        "batch",
        f"In {found.size} of {n_features} features (the first: {first}) the means of cases and controls differ by more "
        f"than {limit:.0f} pooled standard deviations, as after different preprocessing or in different batches.",
        f"{check}. In a Pipeline, a background= table bypasses the earlier steps: use background_label= and y there.",
        f"{check}.",
    )


def _distance(X: Array, Y: Array) -> Array:
    """Distance of the means of each feature in pooled standard deviations, of the observed values; 0 if constant."""
    means, squares, counts = [], 0.0, 0.0
    for table in (every_few(X, FEW_ROWS), every_few(Y, FEW_ROWS)):
        observed = np.isfinite(table)
        count = np.maximum(observed.sum(axis=0), 1)
        filled = np.where(observed, table, 0.0) if not observed.all() else table
        mean = filled.sum(axis=0, dtype=np.float64) / count
        centred = (filled - mean) * observed
        means.append(mean)
        squares = squares + np.einsum("ij,ij->j", centred, centred)
        counts = counts + count
    pooled = np.sqrt(squares / counts)
    gap = np.abs(means[0] - means[1])
    return np.divide(gap, pooled, out=np.zeros_like(gap), where=pooled > 1e-12 * (np.abs(means[0]) + np.abs(means[1])))


@dataclass(frozen=True)
class Given:
    """What the checks look at.

    Attributes
    ----------
    rows : Groups of tables of shape (n_k, D)
    columns : sequence of str, or None
        Names of the features.
    names : Groups of list of str, or of None
        Names of the rows.
    labels : array-like, or None
        Labels of the cases.
    has_blocks : bool
        Whether it is known which rows belong together.
    """

    rows: Groups[Rows]
    columns: Sequence[str] | None
    names: Groups[list[str] | None]
    labels: Any = None
    has_blocks: bool = False

    @property
    def people(self) -> list[str]:
        """What the rows of each group are called."""
        return people_of(self.names)

    @property
    def features(self) -> Sequence[str]:
        """Names of the features; x0, x1, ... if there are none."""
        return default_names(self.rows.foreground.shape[1]) if self.columns is None else self.columns

    @cached_property
    def arrays(self) -> list[Array]:
        """The rows of all groups; empty if some group is sparse or not in memory."""
        known = all(isinstance(table, np.ndarray) for table in self.rows)
        return [np.asarray(table) for table in self.rows] if known else []

    @cached_property
    def parts(self) -> list[Array]:
        """At most 100,000 rows of each group, evenly spread."""
        return [every_few(table, MAX_ROWS) for table in self.arrays]

    @cached_property
    def two(self) -> list[Array]:
        """The same, the backgrounds in one."""
        return [*self.parts[:1], np.vstack(self.parts[1:])] if len(self.parts) > 2 else self.parts

    @property
    def pairs(self) -> list[tuple[Array, Array, list[str] | None]]:
        """The cases, and each background with its names of rows."""
        backgrounds = zip(self.parts[1:], self.names.backgrounds, strict=bool(self.parts))
        return [(self.parts[0], *own) for own in backgrounds]


def labels_alike(given: Given) -> list[Finding]:
    """Labels of the cases that differ only in upper and lower case or in blanks."""
    labels = [] if given.labels is None else np.asarray(given.labels).tolist()
    return alike_labels([label for label in labels if not is_missing(label) and isinstance(label, str)], "Labels")


def names_of_rows(given: Given) -> list[Finding]:
    """Names that occur twice, that are those of summaries, or that look like replicates without blocks."""
    found = [
        own for group, names in zip(given.people, given.names, strict=True) for own in repeated_names(names, group)
    ]
    alone = not given.has_blocks and not found
    found += [own for names in given.names for own in summary_rows(names)]
    return found + (replicates([name for names in given.names for name in names or []]) if alone else [])


def codes_or_far_cells(given: Given) -> list[Finding]:
    """Codes for missing values; where there are none, for they are far from all others, too, single far values."""
    codes = missing_codes(given.features, given.two) if given.two else []
    return codes or (far_cells(given.features, given.arrays, list(given.names), given.people) if given.two else [])


# To add a check, write a function from `Given` to its findings, and add it here.
CHECKS: list[Callable[[Given], list[Finding]]] = [
    labels_alike,
    names_of_rows,
    lambda given: advice_on_values(given.rows),
    lambda given: unequal_depth(given.rows),
    lambda given: identifiers(given.features, given.two) if given.two else [],
    codes_or_far_cells,
    lambda given: constant_columns(given.features, given.two) if given.two else [],
    lambda given: duplicate_columns(given.features, given.two) if given.two else [],
    lambda given: [found for X, Y, _ in given.pairs for found in shared_rows(X, Y)],
    lambda given: [
        found for X, _, own in given.pairs for found in transposed(X, given.columns, given.names.foreground, own)
    ],
    lambda given: [found for X, Y, _ in given.pairs for found in distant_means(_distance(X, Y), given.columns)],
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
    study = study_of(X, background, "check_tables")
    refuse_moments(study, "check_tables")
    about = study.sample_names, study.labels.foreground, study.blocks is not None
    return Findings(check_groups(Given(study.tables.rows, study.features, *about)))


def check_groups(given: Given) -> list[Finding]:
    """`check_tables` for rows that are already validated."""
    return [finding for check in CHECKS for finding in check(given)]


def warn_of_moments(X: Any, Y: Any, pooled: Array, names: Sequence[str] | None) -> None:
    """Warn if two groups are one table, in other units, or very far apart: all that their moments show.

    Parameters
    ----------
    X, Y : moments
        Anything with `weight`, `mean` and `variance`.
    pooled : ndarray of shape (D,)
        Standard deviations within groups.
    names : sequence of str, or None
    """
    distance = np.abs(X.mean - Y.mean) / pooled
    found: list[Finding] = []
    if X.weight == Y.weight and np.array_equal(X.mean, Y.mean) and np.array_equal(X.variance, Y.variance):
        found = [SAME_TABLE]
    elif _standardised(X) and (np.median(_times_off(Y)) > OTHER or np.median(np.abs(Y.mean)) > OTHER):
        found = [OTHER_UNITS]
    elif np.any(distance > FAR_APART):
        found = distant_means(distance, names)
    for finding in found:
        warn(finding.text(), TableWarning)


def _standardised(group: Any) -> bool:
    """Whether all features, of two or more, have mean 0 and variance 1, dividing by n or by n - 1."""
    varies = group.variance > 0
    if np.sum(varies) < 2 or np.abs(group.mean).max() > STANDARDISED:
        return False
    wanted = (1.0, (group.weight - 1) / group.weight)
    return any(np.abs(group.variance[varies] - variance).max() < STANDARDISED for variance in wanted)


def _times_off(group: Any) -> Array:
    """How many times larger or smaller than 1 standard deviations are; 1 if all are constant."""
    deviations = np.sqrt(group.variance[group.variance > 0])
    return np.maximum(deviations, 1 / deviations) if deviations.size else np.ones(1)


def shows_replicates(findings: Iterable[Finding]) -> bool:
    """Whether rows look like replicates, and no blocks say which belong together."""
    return any(finding.check == "replicates" for finding in findings)


def warn_of_replicates(names: Groups[list[str] | None]) -> bool:
    """Warn if the row names of the groups look like replicates, and say so; None where rows have no names."""
    found = replicates([name for own in names if own is not None for name in own])
    for finding in found:
        warn(finding.text(), TableWarning)
    return bool(found)
