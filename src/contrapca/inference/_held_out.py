"""How much more the foreground varies along the axes that an estimator finds, on rows it has not seen (F17)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.checks import check_count, check_n_components, generator
from .._util.tables import Result, Table
from ..contrast import (
    FOUND_AGAIN,
    Halves,
    UnitSquares,
    half_latents,
    halves_of,
    largest_shares,
    matched,
    mean_ratio,
    ratio_intervals,
)
from ..data import (
    Design,
    Encoded,
    Groups,
    Study,
    Tables,
    encoded_of,
    refuse,
    refuse_moments,
    regression,
    study_of,
    units_of,
    without_covariates,
)
from ..estimators import Decomposition, unfitted
from ..exceptions import GroupError
from ..missing import Incomplete, filled_draws, usable
from ..moments import Complete, Parts, make_parts, mixture
from ._axes import Flags
from ._conditions import CellRatios, cell_ratios


@dataclass(frozen=True)
class HeldOutContrast(Result):
    """The outcome of `held_out_contrast`, for each component that is shown.

    Attributes
    ----------
    log_ratios : ndarray of shape (k,)
        Logarithm of the ratio of the foreground's to the background's variance along each axis, on unseen rows: 0 is no
        contrast. Infinite where a group does not vary along an axis at all.
    standard_errors : ndarray of shape (k,)
        Of the log ratios; nan where these are infinite.
    intervals : ndarray of shape (k, 2)
        95 % intervals of the ratios, which hold for few rows, heavy tails and few blocks, too.
    agreement : ndarray of shape (k,)
        Whether a component is found again: the correlation of the ranks of all cases' latents along it from fits to two
        halves of the rows, mean over splits. Below 0.3 it is not.
    largest_share : ndarray of shape (k,)
        The largest part of the cases' variance along each axis that is from one block; without blocks, from one row.
    mean, mean_error : float
        Mean of the log ratios over the axes and its standard error: by it methods, gammas, ranks and scalings compare.
    n_splits : int
        Splits into halves.
    gamma : float or None
        That of the fit to all rows, where the estimator has one; 1 / (1 + ridge) for RatioPCA.
    p_values : ndarray of shape (k,)
        Of "the foreground does not vary more along this component" (one-sided): below .025 exactly where the interval
        lies above 1. Each is for one component: of several, correct them.
    cells : CellRatios or None
        Variances of each condition, cell or dose, which `variance_table` shows; None for two groups.
    """

    log_ratios: Array
    standard_errors: Array
    intervals: Array
    agreement: Array
    largest_share: Array
    mean: float
    mean_error: float
    n_splits: int
    gamma: float | None = None
    p_values: Array = field(default_factory=lambda: np.empty(0))
    cells: CellRatios | None = None

    @property
    def ratios(self) -> Array:
        """Ratios of variances (k,): 2 means that unseen cases vary twice as much as unseen controls."""
        return np.exp(self.log_ratios)

    @property
    def found_again(self) -> Flags:
        """Which components are found again in other halves of the rows, shape (k,)."""
        return self.agreement >= FOUND_AGAIN

    def table(self) -> Table:
        """One row for each component."""
        low, high = self.intervals.T
        columns = {"component": np.arange(1, self.log_ratios.size + 1), "ratio": self.ratios, "from": low, "to": high}
        columns |= {"agreement": self.agreement, "largest_share": self.largest_share}
        return Table(columns | {"log_ratio": self.log_ratios, "standard_error": self.standard_errors})

    def variance_table(self) -> Table:
        """How much each condition varies along each component, relative to the background, with 95 % intervals.

        All ratios are of variances on unseen rows. Of an interaction, the cells are relative to that of neither factor,
        and the last rows have the double ratio, which is 1 where the factors act independently. Of a dose, doses (or
        thirds of the doses, where these have few rows or are compared within strata) are relative to the lowest, and
        the last rows have the growth from the lowest to the highest.
        """
        if self.cells is None:
            raise GroupError(
                "variance_table is for studies of several conditions, an interaction or a dose: table() has the ratios "
                "of two groups."
            )
        return self.cells.table()

    def _parts(self) -> list[str | Table]:
        about = f"ratio of variances on unseen rows, foreground to background, {self.n_splits} splits into halves"
        if self.cells is None:
            return [about, self.table()]
        return [about, self.table(), f"the same of each, relative to {self.cells.reference}", self.variance_table()]


def held_out_contrast(
    estimator: Any, X: Any, *, background: Any = None, n_splits: int = 5, random_state: Any = 0
) -> HeldOutContrast:
    """How much more the foreground varies than the background along an estimator's axes, on rows it has not seen.

    Ratios of variances on the rows of the fit are far too large: axes are chosen for them. Here the rows are split into
    halves, several times; axes are found in each half, matched with those of all rows, and judged by the rows of the
    other half. It also says whether both halves find the same component, and whether it is that of a single block.
    Half of the rows find less than all, so the ratios are rather too small. What is chosen from all rows stays: the
    latent dimensions of ContraPCA, the gamma of CPCA and the ridge of RatioPCA where they are not given. So do units:
    scaled features are divided by the standard deviations of all rows, in both halves.

    Parameters
    ----------
    estimator : PPCA, PCPCA, ContraPCA, CPCA, SparseCPCA, RatioPCA or CLVM
        Fitted or not: it is cloned.
    X : Study, or array-like, data frame or sparse matrix of shape (n, D)
        A `Study`, or the foreground. Blocks are in one half as a whole; ratios are far too large otherwise. The effect
        of covariates is estimated from the half that axes are fitted to. Where values are missing (NaN), in either
        group, moments are expected ones under one model of both groups, fitted without the half; axes are found from
        them, too. Ratios are then right where there is no contrast, and too small where there is one, the more so the
        more is missing.
    background : array-like, data frame or sparse matrix of shape (m, D), or a dict of them, optional
        If `X` is not a Study. The variance of several backgrounds is their mean, each with its part of gamma.
    n_splits : int, default 5
        How often the rows are split into halves.
    random_state : None, int, Generator or RandomState, default 0
        Which rows or blocks share a half.

    Returns
    -------
    HeldOutContrast

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import PCPCA, held_out_contrast
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 100, 60))  # the same noise twice
    >>> model = PCPCA(n_components=1).fit(X, background=Y)
    >>> ratio = model.explained_variance_ / model.background_variance_
    >>> found = held_out_contrast(model, X, background=Y)
    >>> bool(ratio[0] > 3), bool(abs(found.mean) < 2 * found.mean_error)
    (True, True)
    """
    if not isinstance(estimator, Decomposition):
        given = f"the class {estimator.__name__}" if isinstance(estimator, type) else f"a {type(estimator).__name__}"
        raise TypeError(
            f"held_out_contrast takes an estimator of contrapca, such as ContraPCA(n_components=2), not {given}."
        )
    name, model = "held_out_contrast", prepared(estimator)
    study = study_of(X, background, name, designs=True)
    tables = measured_tables(study, name)
    unit_of = units_of(study, tables, least=2, what="holding rows out")
    asked = {"n_splits": n_splits, "random_state": random_state, "design": study.design}
    return held_out_of(model, tables, unit_of, encoded_of(study, tables), **asked)


def held_out_of(
    model: Any,
    tables: Tables,
    unit_of: Groups[Any],
    encoded: Encoded | None = None,
    n_splits: int = 5,
    random_state: Any = 0,
    shown: Any = None,
    design: Design | None = None,
) -> HeldOutContrast:
    """`held_out_contrast` of a prepared estimator, given the independent unit of each row.

    Missing values are thinned to equal rates and filled by one model of both groups (F45), as for the test.

    `shown` are the cases' latents (n, k) along the components to judge, if they are not those of a fit to these tables.
    """
    # Other coordinates of the same rows give the same axes, unless features are scaled or, in CLVM, told apart.
    rng = generator(random_state)
    [tables] = filled_draws(tables, 1, rng)
    weighted = model._prepared(tables if encoded is None else without_covariates(tables, encoded)[0])
    rotates = model._rotates and not model.scale and not model._holds_rows_out  # by what features are like
    unscaled = check_n_components(model.n_components, tables.n_features) if rotates else None
    sections = None if design is None else design.sections
    halves = study_halves(
        tables if encoded else weighted, unit_of, n_splits, rng, unscaled, encoded, weighted, sections
    )
    training, left = halves.whole
    data, mix = model._trained(training), mixture(left)
    settled = measured_once(model._settled(data, halves), data)
    gamma = settled._strength()
    if gamma is not None:
        settled._fit_to(data, lambda: halves)  # raises where there is no solution with all rows
    latents = half_latents(halves, settled._axes_of)
    whole = latents[-1].every.foreground if shown is None else np.asarray(shown, dtype=float)
    found, agreement = matched(latents[:-1], whole)
    units = UnitSquares.of(found, unit_of, weighted.weights, sections)
    ratios, errors, logs, p_values = ratio_intervals(units, mix, rng)
    shares = largest_shares(whole - whole.mean(axis=0), unit_of.foreground, weighted.weights.foreground)
    with np.errstate(over="ignore"):
        intervals = np.exp(logs)
    mean, mean_error = mean_ratio(units, mix)
    cells = None if design is None else cell_ratios(design, found, unit_of, weighted.weights, rng)
    return HeldOutContrast(
        log_ratios=ratios,
        standard_errors=errors,
        intervals=intervals,
        agreement=agreement,
        largest_share=shares,
        mean=mean,
        mean_error=mean_error,
        n_splits=len(halves.splits),
        gamma=gamma,
        p_values=p_values,
        cells=cells,
    )


def study_halves(
    tables: Tables,
    unit_of: Groups[Any],
    n_splits: int,
    rng: np.random.Generator,
    unscaled: int | None = None,
    encoded: Encoded | None = None,
    weighted: Tables | None = None,
    sections: Groups[Any] | None = None,
) -> Halves:
    """Random halves of some tables, given the independent unit of each row; `unscaled`, `sections` as for `halves_of`.

    With covariates the rows of each half are others; they then have the weights of `weighted` tables.
    """
    check_count(n_splits, "n_splits")
    if encoded is None:
        return halves_of(tables, unit_of, n_splits, rng, unscaled=unscaled, sections=sections)

    def parts(part_of: Groups[Any]) -> Callable[[Any], Parts]:
        def of_half(inside: Any) -> Parts:
            known = regression(tables, encoded, part_of.map(lambda own: inside[own]))
            rows, _ = without_covariates(tables, encoded, known)
            if weighted is not None:
                rows = replace(rows, weights=weighted.weights, shortened=weighted.shortened)
            return make_parts(rows, part_of, unscaled=unscaled)

        return of_half

    return halves_of(tables, unit_of, n_splits, rng, parts, sections=sections)


def measured_once(estimator: Any, data: Complete | Incomplete) -> Any:
    """A copy for subsets of the rows that measures features in the units of all rows, whose data are given.

    In units of a half that lacks a donor, a gene that varies in this donor alone would be blown up, and the donor would
    then be the whole ratio.
    """
    return unfitted(estimator, scale=data.scaling.map(lambda own: own.scale)) if estimator.scale else estimator


def prepared(estimator: Any) -> Any:
    """A copy that solves eigenproblems: for complete rows gradient solvers find the same, more slowly."""
    estimator._check_parameters()
    return unfitted(estimator, solver="auto") if estimator.solver == "lbfgs" else unfitted(estimator)


def measured_tables(study: Study, name: str) -> Tables:
    """The tables of a study; values may be missing, but in no whole row, and no whole feature of a group (F45)."""
    refuse_moments(study, name)
    if study.tables.incomplete:
        refuse(study, name, weights="where values are missing, repeat rows instead")
    return usable(study.tables, name)
