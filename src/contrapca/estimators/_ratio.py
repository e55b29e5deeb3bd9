"""The ratio family: rhoPCA, cPCA++ and gcPCA in one estimator (F26)."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from .._util.arrays import Array, Rows
from .._util.checks import check_flag, check_n_components, one_of
from .._util.text import format_gamma
from ..contrast import (
    ENDS,
    TOLERANCE,
    Fit,
    Halves,
    PathSpectrum,
    Solution,
    Training,
    path_of_solutions,
    ratio_grid,
    ratio_limit,
    ratio_refusal,
    ratios,
    ridge_of_strength,
    shrunk_strength,
    solve_ratio,
    strength_of_ridge,
    sum_of_theta,
)
from ..data import Groups, Tables
from ..missing import Incomplete, collect
from ..moments import Complete, Contrast, Moments, contrast, has_few_rows, sum_of_fourth_powers
from ._base import Choice, ContrastSolver, check_rank, unfitted

AUTOMATIC = ("auto", "oas")  # ridges that the rows choose


class RatioPCA(ContrastSolver):
    """Directions along which the foreground varies most, relative to the background.

    Maximises the ratio rho = v'cov_X v / v'(cov_Y + mu I) v. Known as rhoPCA, cPCA++, and gcPCA in its versions v2, v3
    and v4, which all have the same directions. The ridge mu keeps the ratio from favouring directions in which the
    background happens to vary little: without it, tables with few controls are
    overfitted, and with more features than controls ratios are infinite.

    Parameters
    ----------
    n_components : int, default 2
        Number of directions d, 1 <= d < D.
    ridge : float, "auto" or "oas", default "auto"
        mu in units of the background's mean variance per feature, tr cov_Y / D. 0 is the pure ratio; infinity is PCA of
        the foreground. "auto" shrinks cov_Y by as much as its rows are too few for its features, as Ledoit and Wolf do;
        "oas" by the oracle-approximating rule, which supposes Gaussian rows. "auto" means "oas" where only moments are
        known: for `Moments`, batches and missing values.
    end : {"foreground", "background", "both"}, default "foreground"
        Which end of the spectrum: directions enriched in the foreground (largest rho), in the background (smallest
        rho), or half of each, the foreground's first. At the background's end the ridge is added to cov_X instead, so
        that the result is the same as with the two groups exchanged.
    orthogonal : bool, default False
        Find one direction after the other, each the best of those orthogonal to all before (with both ends, in turn):
        gcPCA's versions v2.1, v3.1 and v4.1. Otherwise directions are not orthogonal.
    background_label : optional
        As for `PCPCA`. Several backgrounds count by their rows.
    scale : {None, "group", "pooled"}, default None
        As for `PCPCA`. Without a ridge, "pooled" changes nothing.
    solver : {"auto", "eigh", "dual", "lanczos"}, default "auto"
        How the moments are stored; `solver_` says what "auto" chose and why.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Unit vectors whose entry of largest magnitude is positive.
    ratios_ : ndarray of shape (d,)
        rho, of variances with ddof 0. Computed on the rows of the fit, so it is optimistic;
        `contrapca.held_out_contrast` is not.
    v3_, v4_ : ndarray of shape (d,)
        gcPCA's values: rho - 1, and (rho - 1) / (rho + 1), which is between -1 and 1.
    ridge_ : float
        The ridge that was used.
    explained_variance_, background_variance_, explained_variance_ratio_, background_variance_ratio_, mean_, scale_
        As for `PCPCA`, as are `background_mean_`, `background_scale_`, `feature_variance_`, `solver_` and `n_iter_`.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import RatioPCA
    >>> rng = np.random.default_rng(0)
    >>> controls = rng.normal(size=(200, 4)) * [5, 1, 1, 1]
    >>> cases = rng.normal(size=(200, 4)) * [5, 3, 1, 1]
    >>> model = RatioPCA(n_components=1, ridge=0).fit(cases, background=controls)
    >>> model.components_.argmax(), model.ratios_.round(1)
    (np.int64(1), array([9.2]))
    """

    ratios_: Array
    v3_: Array
    v4_: Array
    ridge_: float

    _decisive = "ridge"
    _holds_rows_out = False  # "auto" is due to the moments
    _parameter_checks: ClassVar = ContrastSolver._parameter_checks | {"end": one_of(*ENDS), "orthogonal": check_flag}
    _known_as, _source = "the directions of largest variance ratio (RatioPCA)", "Salloum 2022"

    def __init__(
        self,
        n_components: int = 2,
        *,
        ridge: float | str = "auto",
        end: str = "foreground",
        orthogonal: bool = False,
        background_label: Any = None,
        scale: str | None = None,
        solver: str = "auto",
    ):
        self.n_components = n_components
        self.ridge = ridge
        self.end = end
        self.orthogonal = orthogonal
        self.background_label = background_label
        self.scale = scale
        self.solver = solver

    def _maximum(self, C: Contrast, r: int, start: Array | None = None) -> Solution:
        return solve_ratio(C, r, self.end, orthogonal=self.orthogonal, start=start)

    def _limit(self, groups: Groups[Moments], r: int, near: float = 1.0) -> tuple[float, Array | None]:
        return ratio_limit(groups, r, self.end, orthogonal=self.orthogonal)

    def _path(self, groups: Groups[Moments], gammas: Array, r: int, tolerance: float = TOLERANCE) -> PathSpectrum:
        return path_of_solutions(groups, gammas, lambda C, start: self._maximum(C, r, start))  # nan where infinite

    def _objective(self, C: Contrast, solution: Solution) -> float:
        return sum_of_theta(C, solution.spectrum.values)

    _grid = staticmethod(ratio_grid)

    def _refusal(
        self, gamma: float, limit: float, r: int, parameter: str = "n_components", hint: str = ""
    ) -> ValueError:
        return ratio_refusal(gamma, self.end, hint)

    def _strength(self) -> float | None:
        ridge = self.ridge
        if isinstance(ridge, str) and ridge in AUTOMATIC:
            return None
        if not isinstance(ridge, numbers.Real) or isinstance(ridge, bool):
            raise TypeError(f"ridge={ridge!r} must be 'auto', 'oas' or a number, 0 or more.")
        if not float(ridge) >= 0:
            raise ValueError(
                f"ridge={ridge} must be 'auto', 'oas' or a number, 0 or more (0: the pure ratio; infinity: PCA)."
            )
        return strength_of_ridge(float(ridge))

    def _with_strength(self, gamma: float) -> Self:
        self.ridge = ridge_of_strength(gamma)
        return self

    @staticmethod
    def _strength_in_words(gamma: float, limit: str) -> str:
        return f" and a ridge of {format_gamma(ridge_of_strength(gamma))} times the controls' mean variance"

    @staticmethod
    def _short_strength(gamma: float) -> str:
        return f"ridge = {ridge_of_strength(gamma):.4g}"

    def _fit_to(self, data: Complete | Incomplete, halves: Callable[[], Halves]) -> Fit:
        assert isinstance(data, Complete)
        check_rank(data, self.n_components)
        return self._solve(data, self._latents(), Choice(self._chosen_gamma(data)))

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        if tables.incomplete:
            return super()._collected(tables)
        d = check_n_components(self.n_components, tables.n_features)
        data = collect(tables, d, self.scale, self.solver, reduced=False)  # few rows by their inner products
        assert isinstance(data, Complete)
        if self.ridge != "auto" or tables.are_moments:
            return data
        return _with_fourths(data, tables.rows, tables.means, tables.weights)

    def _chosen_gamma(self, data: Complete) -> float:
        """The gamma of the ridge, which "auto" and "oas" take from how much the background is to be shrunk."""
        gamma = self._strength()
        return shrunk_strength(contrast(data.groups, 1.0), self.end, data.fourths) if gamma is None else gamma

    def _settled(self, data: Complete | Incomplete, halves: Halves | None = None) -> Self:
        alike = unfitted(self)
        if halves is None or self._strength() is not None:
            return alike
        assert isinstance(data, Complete)
        if self.ridge == "auto" and data.fourths is None and data.filling is None:  # moments of the parts
            parts = halves.parts(np.ones(halves.splits.shape[1], dtype=bool))
            data = _with_fourths(data, parts.rows, parts.means, parts.weights)
        return alike._with_strength(self._chosen_gamma(data))

    def _axes_of(self, training: Training) -> Groups[Array]:
        axes = super()._axes_of(training)
        if not np.abs(axes.foreground).max(axis=0).min() > 0:  # nan or 0: no such axis
            hint = " With all rows it does vary there, but not when some are held out."
            raise ratio_refusal(self._strength() or 0.0, self.end, hint)
        return axes

    def _attributes(self, fit: Fit) -> dict[str, Any]:
        if fit.eigenvalues is None or fit.variances.background is None:  # in a file
            raise ValueError("its ratios are missing")
        rho = ratios(fit.eigenvalues, fit.gamma, self.end)
        ridge = ridge_of_strength(fit.gamma) if self.ridge in AUTOMATIC else float(self.ridge)
        found = {"ratios_": rho, "v3_": rho - 1, "v4_": (rho - 1) / (rho + 1), "ridge_": ridge}
        return super()._attributes(fit) | found


def _with_fourths(data: Complete, rows: Groups[Rows], means: Groups[Array], weights: Groups[Array | None]) -> Complete:
    """The data with the sums of |y|^4 of their rows, each group's in units of its total variance."""
    if has_few_rows(data.groups) and all(own is None for own in weights):  # inner products of rows have their lengths
        lengths = data.groups.map(lambda own: np.diagonal(own.scatter.gram) / (own.total_variance() or 1.0))  # type: ignore[attr-defined]
        return replace(data, fourths=lengths.map(lambda own: float(own @ own)))
    every = zip(data.groups, data.scaling, rows, means, weights, strict=True)
    return replace(
        data,
        fourths=data.groups.like(
            sum_of_fourth_powers(table, mean, scaling.scale, w, own.total_variance() or 1.0)
            for own, scaling, table, mean, w in every
        ),
    )
