"""All checks of two tables, and those of both together: shared rows, samples as columns, other units or batches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._util.arrays import Array, Rows
from ..._util.text import default_names, is_missing, listed, plural
from ...exceptions import TableWarning, warn
from .._blocks import PEOPLE
from .._groups import Groups, feature_label
from .._study import Study
from ._features import check_features, every_few, far_cells, information, people_of
from ._finding import Finding, Findings, both
from ._texts import alike_labels, repeated_names, replicates, summary_rows
from ._values import advice_on_values, unequal_depth

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


SAME_TABLE = Finding(
    "same table",
    "Cases and controls are the same table, so nothing can vary more in the cases.",
    "Pass two different tables.",
    "Name two different files; for two sheets of one workbook, add --sheet CASES --sheet CONTROLS.",
)


OTHER_UNITS = both(
    "other units",
    "The cases are standardised (every feature has mean 0 and standard deviation 1), but the controls are in other "
    "units: earlier steps of a Pipeline do not reach background=.",
    "Leave the step out and use scale='pooled', or stack both tables and name the controls by background_label=.",
)


STANDARDISED, OTHER = 1e-6, 3.0  # error of means and variances; ratio of standard deviations, or distance of means


FAR_APART = 10.0  # pooled sd between the means of a feature: prepared in different ways


APART, MOST = 2.0, 0.5  # pooled sd, in this fraction of the features: measured in different batches


MAX_ROWS, FEW_ROWS = 100_000, 2_000  # rows that are checked, and rows whose means are compared, evenly spread


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
        both(
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
            both(
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


def check_tables(
    X: Any,
    *,
    background: Any = None,
) -> Findings:
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
        The background (controls), if `X` is no Study.

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
    study = Study.of(X, background, "check_tables")
    study.refuse_moments("check_tables")
    known: dict[str, Any] = {"labels": study.labels.foreground, "has_blocks": study.blocks is not None}
    return Findings(check_groups(study.tables.rows, study.features, study.sample_names, **known))


def check_groups(
    rows: Groups[Rows],
    columns: Sequence[str] | None,
    names: Groups[list[str] | None],
    *,
    labels: Any = None,
    has_blocks: bool = False,
) -> list[Finding]:
    """`check_tables` for rows that are already validated, with row names where there are any."""
    found = []
    if labels is not None:
        texts = [label for label in np.asarray(labels).tolist() if not is_missing(label) and isinstance(label, str)]
        found += alike_labels(texts, "Labels")
    people = people_of(names)
    repeated = [finding for group, own in zip(people, names, strict=True) for finding in repeated_names(own, group)]
    found += repeated
    found += [finding for own in names for finding in summary_rows(own)]
    if not has_blocks and not repeated:
        found += replicates([name for own in names if own is not None for name in own])
    found += advice_on_values(rows)
    found += unequal_depth(rows)
    if not all(isinstance(table, np.ndarray) for table in rows):
        return found
    whole = [np.asarray(table) for table in rows]
    X, *others = (every_few(table, MAX_ROWS) for table in whole)
    labels_of = default_names(X.shape[1]) if columns is None else list(columns)
    about = list(check_features(labels_of, X, np.vstack(others) if len(others) > 1 else others[0] if others else None))
    if not any(finding.check == "missing code" for finding in about):  # which are far from all others, too
        about += far_cells(labels_of, whole, list(names), people)
    found += about
    for Y, own in zip(others, names.backgrounds, strict=True):
        found += shared_rows(X, Y)
        found += transposed(X, columns, names.foreground, own)
        found += distant_means(_distance(X, Y), columns)
    return found


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
