"""A contrast of moments at one gamma: what all methods that solve one have in common, and where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from .._util.arrays import Array
from ..contrast import (
    TOLERANCE,
    Fit,
    Halves,
    LatentGaussian,
    Latents,
    PathSpectrum,
    ShownAxes,
    Solution,
    Spectrum,
    Training,
    around_axes,
    cpca_grid,
    cpca_limit,
    in_original_units,
    most_reproducible,
    path_of_solutions,
    rank_exceeds,
    ratio_axes,
    show_solution,
    variance_inside,
)
from ..data import Groups
from ..exceptions import InfeasibleGammaError, RankError
from ..missing import Incomplete
from ..moments import Complete, Contrast, Moments, contrast
from ._base import Decomposition
from ._likelihood import Likelihood
from ._method import unfitted

TINY_LIMIT = 0.1  # with more variance in the background, the groups were then probably swapped


POINTS = 25  # gammas that halves of the rows choose from


COARSE = 1e-2  # residuals of axes that are only compared: they are then right to some 1e-4


class Choice(NamedTuple):
    """A gamma, and what choosing it found on the way."""

    gamma: float
    limit: float | None = None
    near: Array | None = None  # vectors near the solution


class ContrastSolver(Decomposition):
    """Base of the methods that solve a contrast C of moments at one gamma: all but CLVM; not public.

    A method is its `_maximum`. The other methods of the first part are those of a contrast of variances, such as CPCA,
    and are overridden where a method differs; the second part serves all. `contrast_path`, `GammaSearch`, `bootstrap`
    and `stability_selection` ask for them beside what `Method` declares.
    """

    # ------------------------------------------------------------------ what methods differ in

    def _maximum(self, C: Contrast, r: int, start: Array | None = None) -> Solution:
        """The solution with r directions; `start` holds vectors near it."""
        raise NotImplementedError(f"{type(self).__name__} needs a method _maximum(C, r, start).")

    def _limit(self, groups: Groups[Moments], r: int, near: float = 1.0, /) -> tuple[float, Array | None]:
        """The exact limit of gamma (0 if the foreground's rank is at most r), and vectors near the solution there.

        `near` is a guess of the limit, if one is known.
        """
        return cpca_limit(groups, r), None

    def _path(self, groups: Groups[Moments], gammas: Array, r: int, tolerance: float = TOLERANCE, /) -> PathSpectrum:
        """Directions at increasing gammas, with relative residuals of at most `tolerance`.

        They exist at every gamma, also where a fit refuses them because their contrast is not positive.
        """
        return path_of_solutions(groups, gammas, lambda C, start: replace(self._maximum(C, r, start), feasible=True))

    def _solution(self, C: Contrast, spectrum: Spectrum, /) -> Solution:
        """The solution with the directions that a path found."""
        return Solution(spectrum, np.ones(spectrum.values.size), 0.0, feasible=True, eigenvectors=False)

    def _objective(self, C: Contrast, solution: Solution) -> float:
        """The objective at a solution: tr C in the span of its directions."""
        return float(solution.spectrum.values.sum())

    def _grid(self, limit: float, points: int, /) -> Array:
        """`points` gammas below the limit, starting at 0, shape (points,)."""
        return cpca_grid(limit, points)

    def _refusal(
        self, gamma: float, limit: float, r: int, parameter: str = "n_components", hint: str = ""
    ) -> ValueError:
        """The error for a gamma at or above the limit for r dimensions, the value of `parameter`; `hint` is a sentence
        to add."""
        reason = f"cov(foreground) - gamma cov(background) has fewer than {r} positive eigenvalues"
        return InfeasibleGammaError(gamma, limit, r, reason, f".{hint}", parameter)

    def _latents(self, n_features: int | None = None) -> Latents:
        """Which latent dimensions the parameters ask for; raises if they are too many for so many features."""
        return Latents.plain(self.n_components)

    # ------------------------------------------------------------------ the fit at one gamma

    def _fit_to(self, data: Complete | Incomplete, halves: Callable[[], Halves]) -> Fit:
        assert isinstance(data, Complete)
        gamma = self._strength()
        if gamma is None:
            raise TypeError(
                f"{type(self).__name__} must choose its gamma in a method _fit_to(data, halves) of its own."
            )
        check_rank(data, self.n_components)
        return self._solve(data, self._latents(), gamma)

    def _solve(self, data: Complete, latents: Latents, gamma: float, start: Array | None = None) -> Fit:
        """The fit at gamma; raises where there is no solution. `start` holds vectors near it, if some are known."""
        fit = self._attempt(data, latents, gamma, start)
        if fit is None:
            raise self._infeasible(data.groups, latents, gamma)
        return fit

    def _attempt(self, data: Complete, latents: Latents, gamma: float, start: Array | None = None) -> Fit | None:
        """The fit at gamma, or None if there is no solution."""
        found = self._shown(data.groups, latents, gamma, start)
        if found is None:
            return None
        C, solution, covariances, shown = found
        groups, spectrum, choice = data.groups, solution.spectrum, data.choice
        U = lifted(data, C, solution)
        components, W = shown.lift(U, solution.lengths)
        objective, values = self._objective(C, solution), spectrum.values[: latents.n_shown] / groups.foreground.weight
        return Fit(
            scaling=data.scaling,
            components=components,
            variances=shown.variances,
            totals=groups.map(Moments.total_variance),
            gamma=gamma,
            objective=objective,
            n_iter=spectrum.n_iter,
            solver=replace(choice, reason=f"{choice.reason}; {spectrum.note}") if spectrum.note else choice,
            model=LatentGaussian(groups.foreground.mean, W, solution.sigma2) if isinstance(self, Likelihood) else None,
            inside=covariances.map(lambda c: variance_inside(solution, c)),
            axis_ratios=shown.ratios,
            eigenvalues=values if shown.ratios is None else None,
            history=np.array([objective]),
            axes="variance" if shown.ratios is None else latents.axes,
            plateau=data.plateau,
            filling=data.filling,
        )

    def _shown(
        self, groups: Groups[Moments], latents: Latents, gamma: float, start: Array | None = None
    ) -> tuple[Contrast, Solution, Groups[Array], ShownAxes] | None:
        """The contrast at gamma, its solution, the groups' covariances along that, and the axes to show."""
        C = contrast(groups, gamma)
        solution = self._maximum(C, latents.rank, start)
        if not solution.feasible:
            return None
        known = ratio_axes(groups, latents.n_shown) if latents.axes == "ratio" and groups.backgrounds else None
        if known is not None:
            solution, known = around_axes(C, solution, known, self._solution)
        covariances = groups.like(solution.spectrum.covariances(C))
        return C, solution, covariances, show_solution(latents, solution, covariances, groups, known)

    def _infeasible(self, groups: Groups[Moments], latents: Latents, gamma: float) -> ValueError:
        """Why there is no solution at gamma: the foreground's rank, or the exact limit."""
        limit = 0.0 if groups.background is None else self._limit(groups, latents.rank)[0]
        if limit == 0:
            return RankError(latents.rank, parameter=latents.parameter)
        if gamma < limit * (1 - 1e-9):  # feasible in exact arithmetic, but not in floating point, or with few features
            return ValueError(
                f"gamma={gamma:.6g} is below its limit ({limit:.6g}), but so large that rounding errors hide the "
                "foreground, or that so few features show nothing of it. Use a smaller gamma, or allow more features."
            )
        totals, hint = groups.map(Moments.total_variance), ""
        if limit < TINY_LIMIT and any(total > totals.foreground for total in totals.backgrounds):
            hint = " In total the background varies more than the foreground: were the two groups swapped?"
        return self._refusal(gamma, limit, latents.rank, latents.parameter, hint)

    # ------------------------------------------------------------------ many gammas

    def _along(
        self, found: PathSpectrum, groups: Groups[Moments], gammas: Array
    ) -> Iterator[tuple[Contrast, Solution, Groups[Array]]]:
        """Contrast, solution and the groups' covariances at each gamma, in the coordinates of a path's basis."""
        for gamma, values, V in zip(gammas, found.values, found.coordinates, strict=True):
            C = contrast(groups, float(gamma))
            solution = self._solution(C, Spectrum(values * groups.foreground.weight, V, images=[]))
            yield C, solution, found.covariances.map(lambda c, V=V: V.T @ c @ V)  # type: ignore[misc]

    def _axes_at(self, training: Training, gammas: Array) -> Groups[Array]:
        """The axes that a subset shows at every gamma, in each group's original units, shape (G, D, k).

        Principal axes exist at every gamma, also where the method itself has no solution with these rows; contrast axes
        do not, and are nan there.
        """
        data, latents = self._trained(training), self._latents()
        groups = data.groups
        if latents.axes == "ratio" and (axes := ratio_axes(groups, latents.n_shown)) is not None:
            V = data.vectors(axes[1])
            return in_original_units(np.broadcast_to(V, (gammas.size, *V.shape)), data)
        latents = latents.within(groups.foreground.weight, groups.foreground.mean.size)
        found = self._path(groups, gammas, latents.rank, COARSE)
        basis = data.vectors(found.basis)
        shown = found.coordinates[:, :, : latents.n_shown]
        if latents.contrast_axes:
            shown = np.full(shown.shape, np.nan)
            for g, (_, solution, covariances) in enumerate(self._along(found, groups, gammas)):
                if solution.feasible:
                    own = show_solution(latents, solution, covariances, groups)
                    shown[g] = found.coordinates[g] @ own.directions
        return in_original_units(np.einsum("Dk,gkd->gDd", basis, shown), data)

    # ------------------------------------------------------------------ subsets of the rows

    def _axes_of(self, training: Training) -> Groups[Array]:
        # Not by a fit: principal axes exist also where so few rows have no solution.
        gamma = self._strength()
        assert gamma is not None
        return self._axes_at(training, np.array([gamma])).map(lambda own: own[0])

    def _settled(self, data: Complete | Incomplete) -> Self:
        """A copy with what all rows decide whatever gamma is: of the estimator of a path."""
        return unfitted(self)

    def _gamma_by_halves(self, data: Complete, halves: Halves) -> Choice:
        """The gamma of the method's own range whose contrast is most reproducible (F43), and its limit for all rows."""
        latents = self._latents()
        limit, _ = self._limit(data.groups, latents.rank)
        if limit == 0:
            raise RankError(latents.rank, parameter=latents.parameter)
        gammas = self._grid(limit, POINTS)
        return Choice(float(gammas[most_reproducible(halves, lambda half: self._axes_at(half, gammas))]), limit)

    def _with_reproducible_gamma(self, data: Complete, halves: Halves) -> Self:
        """A copy that has this gamma, if its own was left open."""
        if self._strength() is not None:
            return unfitted(self)
        return unfitted(self)._with_strength(self._gamma_by_halves(data, halves).gamma)

    # ------------------------------------------------------------------ paths

    def _with_strength(self, gamma: float) -> Self:
        """Set the parameter that stands for this gamma."""
        raise TypeError(f"{type(self).__name__} must say which of its parameters is its strength: _with_strength.")

    def _path_estimator(self) -> Self:
        """The estimator of the path through this fit, with what the fit decided."""
        return unfitted(self)


def check_rank(data: Complete, d: int) -> None:
    """Raise unless the foreground varies in more than d directions."""
    if not rank_exceeds(data.groups.foreground, d):
        raise RankError(d)


def lifted(data: Complete, C: Contrast, solution: Solution) -> Array:
    """The directions of a solution in R^D."""
    V = solution.spectrum.vectors
    return data.lift(C, V, solution.spectrum.values) if solution.eigenvectors else data.vectors(V)
