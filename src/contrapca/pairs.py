"""Paired samples: rows relative to the controls of the same donor (F34)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._util.arrays import Array
from ._util.text import listed, plural
from .blocks import Indices, check_labels, unit_numbers
from .covariates import check_dense
from .exceptions import GroupError
from .groups import like_table, split_groups


def within_pairs(X: Any, *, background: Any, pairs: Any, background_pairs: Any) -> Any:
    """Rows relative to the controls of their own pair: what donors differ in anyway is taken out of both tables.

    From each row, case or control, the mean of its donor's control rows is subtracted. What is left of the cases is
    the donor's response and noise, and what is left of the controls is noise, scaled so that the noise of both has the
    variance of single rows. Both tables keep their means. It helps where cases respond along directions in which donors
    differ already, and needs several control rows of each donor. Pass the result to `fit`, and the same pairs to
    `held_out_contrast` and `contrast_test`.

    With one control row per donor there is nothing left of the controls. Then fit the tables as they are: their
    contrast is the response's already, whether rows are paired or not, and pairs only make tests more precise.

    Parameters
    ----------
    X : array-like or data frame of shape (n, D)
        The foreground, complete rows.
    background : array-like or data frame of shape (m, D)
    pairs, background_pairs : array-like of shape (n,), (m,)
        The donor of each row. Every donor has cases, and at least two controls.

    Returns
    -------
    X : ndarray or data frame of shape (n, D)
    background : ndarray or data frame of shape (m, D)

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import within_pairs
    >>> rng = np.random.default_rng(0)
    >>> donors = np.arange(50)
    >>> level = 5 * rng.normal(size=(50, 4))  # donors differ a lot
    >>> cases, controls = level + rng.normal(size=(50, 4)), np.vstack([level, level]) + rng.normal(size=(100, 4))
    >>> given = {"pairs": donors, "background_pairs": np.concatenate([donors, donors])}
    >>> cases, controls = within_pairs(cases, background=controls, **given)
    >>> bool(cases.var() < 2), bool(controls.var() < 2)
    (True, True)
    """
    name = "within_pairs"
    tables = split_groups(X, None, background, None, name=name, needs_background=True, allow_missing=True)
    cases, controls = tables.with_one_background(name).rows
    for group, rows in zip(tables.rows.names, tables.rows, strict=True):
        check_dense(rows, group)
    if tables.incomplete:
        raise GroupError("within_pairs needs complete rows, but values are missing: drop rows or features.")
    counts = tables.rows.map(lambda rows: int(rows.shape[0]))
    own, of_controls = unit_numbers(counts, None, None, (pairs, background_pairs), least=1, what=name)
    times = np.bincount(of_controls)
    if np.any(single := times[of_controls] < 2):
        labels = check_labels(background_pairs, counts["background"], "background_pairs")
        few = sorted({str(label) for label, alone in zip(labels, single, strict=True) if alone})
        raise GroupError(
            f"{plural(len(few), 'pair')} ({listed(few)}) {'has' if len(few) == 1 else 'have'} one control row, of "
            "which nothing would be left: leave these out. If most are like that, fit the tables as they are, and pass "
            "pairs= to contrast_test and held_out_contrast only."
        )
    baseline = _means(np.asarray(controls, dtype=np.float64), of_controls)
    shrunk, grown = 1 / np.sqrt(1 + 1 / times[own]), np.sqrt(times / (times - 1.0))[of_controls]
    return (
        like_table(_about(cases - baseline[own], shrunk, tables.means.foreground).astype(cases.dtype), X),
        like_table(
            _about(controls - baseline[of_controls], grown, tables.means["background"]).astype(cases.dtype), background
        ),
    )


def _means(rows: Array, unit_of: Indices) -> Array:
    """Mean of the rows of each unit, shape (units, D)."""
    sums = np.zeros((int(unit_of.max()) + 1, rows.shape[1]))
    np.add.at(sums, unit_of, rows)
    return sums / np.bincount(unit_of)[:, None]


def _about(rows: Array, factors: Array, mean: Array) -> Array:
    """Rows times a factor each, about another mean."""
    scaled = rows * factors[:, None]
    found: Array = scaled - scaled.mean(axis=0) + mean
    return found
