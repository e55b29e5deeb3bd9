"""Studies without the effect of covariates (F35), or of the donor (F34)."""

from __future__ import annotations

import numpy as np

from .._util.arrays import Array
from .._util.text import listed, plural
from ..exceptions import GroupError
from ._covariates import check_dense
from ._names import like_table
from ._study import Study, adjusted_tables, changed, refuse, units_of, with_rows


def regress_out(study: Study) -> Study:
    """The study without the linear effect of its covariates, which it no longer has.

    One effect for all groups is estimated from the differences within each group, and rows are adjusted to the average
    covariates: what `fit` does with the same study. Use it for what takes no covariates, such as `contrast_path`.

    Parameters
    ----------
    study : Study
        Missing values (NaN) stay missing.

    Returns
    -------
    Study
        Its `rows` are the adjusted tables.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import Study, regress_out
    >>> rng = np.random.default_rng(0)
    >>> age, control_age = rng.uniform(20, 80, size=(2, 100))
    >>> cases, controls = (rng.normal(size=(100, 3)) + 0.1 * years[:, None] for years in (age, control_age))
    >>> study = Study(cases, background=controls, covariates=(age, control_age))
    >>> adjusted = regress_out(study).rows.foreground
    >>> [bool(abs(np.corrcoef(table[:, 0], age)[0, 1]) > 0.2) for table in (cases, adjusted)]
    [True, False]
    """
    if not isinstance(study, Study) or study.covariates is None:
        raise GroupError("regress_out needs a Study with covariates: Study(X, background=Y, covariates=(...)).")
    return with_rows(changed(study, covariates=None), adjusted_tables(study).rows.map(like_table, study.rows))


def within_pairs(study: Study) -> Study:
    """Samples relative to the controls of their own pair: differences between donors are removed from both tables.

    From each row, case or control, the mean of its donor's control rows is subtracted. What is left of the cases is
    the donor's response and noise, and what is left of the controls is noise, scaled so that the noise of both has the
    variance of single rows. Both tables keep their means (F34). It helps where cases respond along directions in which
    donors differ already, and needs several control rows of each donor.

    With a single control row per donor, the controls become zero. Then fit the tables as they are: their contrast is
    the response's already, whether rows are paired or not, and pairs only make tests more precise.

    Parameters
    ----------
    study : Study
        With `paired=True`: complete rows without weights or covariates, and at least two controls of every donor.

    Returns
    -------
    Study

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import Study, within_pairs
    >>> rng = np.random.default_rng(0)
    >>> donors = np.arange(50)
    >>> level = 5 * rng.normal(size=(50, 4))  # donors differ a lot
    >>> cases, controls = level + rng.normal(size=(50, 4)), np.vstack([level, level]) + rng.normal(size=(100, 4))
    >>> study = Study(cases, background=controls, blocks=(donors, np.tile(donors, 2)), paired=True)
    >>> inside = within_pairs(study)
    >>> bool(inside.rows.foreground.var() < 2), bool(inside.rows["background"].var() < 2)
    (True, True)
    """
    name = "within_pairs"
    if not isinstance(study, Study) or not study.paired or study.blocks is None:
        raise GroupError(f"{name} needs a Study with pairs: Study(X, background=Y, blocks=(...), paired=True).")
    refuse(study, name, weights="leave them out", covariates="pass regress_out(study)", missing=True)
    tables = study.tables.with_one_background(name)
    for group, rows in zip(tables.rows.names, tables.rows, strict=True):
        check_dense(rows, group)
    cases, controls = tables.rows
    own, of_controls = units_of(study, least=1, what=name)
    times = np.bincount(of_controls)
    if np.any(single := times[of_controls] < 2):
        labels = study.blocks.backgrounds[0]
        few = sorted({str(label) for label, alone in zip(labels, single, strict=True) if alone})
        raise GroupError(
            f"{plural(len(few), 'pair')} ({listed(few)}) {'has' if len(few) == 1 else 'have'} one control row, and "
            "nothing of it would be left: leave these out, study.without(blocks=[...]). If most are like that, fit the "
            "study as it is."
        )
    sums = np.zeros((times.size, controls.shape[1]))
    np.add.at(sums, of_controls, np.asarray(controls, dtype=np.float64))
    baseline = sums / times[:, None]
    shrunk, grown = 1 / np.sqrt(1 + 1 / times[own]), np.sqrt(times / (times - 1.0))[of_controls]
    found = tables.rows.like(
        [
            _about(cases - baseline[own], shrunk, tables.means.foreground).astype(cases.dtype),
            _about(controls - baseline[of_controls], grown, tables.means["background"]).astype(controls.dtype),
        ]
    )
    return with_rows(study, found.map(like_table, study.rows))


def _about(rows: Array, factors: Array, mean: Array) -> Array:
    """Rows times a factor each, about another mean."""
    scaled = rows * factors[:, None]
    found: Array = scaled - scaled.mean(axis=0) + mean
    return found
