"""All checks of two tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._util.arrays import Array, Rows
from .._util.text import default_names, is_missing
from ..groups import Groups
from ..study import Study
from ._depth import unequal_depth
from ._features import check_features, every_few, far_cells, people_of
from ._finding import Finding, Findings
from ._names import alike_labels, repeated_names, replicates, summary_rows
from ._raw_values import advice_on_values
from ._tables import distant_means, shared_rows, transposed

MAX_ROWS, FEW_ROWS = 100_000, 2_000  # rows that are checked, and rows whose means are compared, evenly spread


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
