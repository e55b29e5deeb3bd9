"""The latent-variable model of PPCA, PCPCA and ContraPCA: what all three share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .._util.arrays import Array
from .._util.checks import auto_or, check_flag, check_n_components, check_positive, count, one_of
from .._util.text import Option, Said
from ..contrast import (
    Latents,
    Settings,
    Solution,
    Training,
    automatic_rank,
    feasible_rank,
    in_original_units,
    pcpca_grid,
    pcpca_limit,
    ratio_axes,
    relative_log_likelihood,
    settled,
    solve_path,
    solve_pcpca,
    top_eigenpairs,
)
from ..data import Groups, Tables, refuse_devices
from ..exceptions import InfeasibleGammaError, RankError, warn
from ..missing import Incomplete, collect, collect_incomplete, masked_rank
from ..moments import SPECTRAL, Complete, Contrast, check_solver_of, contrast
from ._contrast_solver import Choice, ContrastSolver, lifted
from ._likelihood import Likelihood
from ._method import Method


class LatentModel(Likelihood, ContrastSolver):
    """Base of PPCA, PCPCA and ContraPCA, which maximise the relative likelihood; not public.

    In closed form for complete rows (F2), by gradients if values are missing.
    """

    mean: str
    n_init: int | str
    max_iter: int
    tol: float
    random_state: Any
    progress: bool

    _parameter_checks: ClassVar = Method._parameter_checks | {
        "solver": one_of("auto", *SPECTRAL, "lbfgs"),
        "mean": one_of("observed", "gls"),
        "n_init": auto_or(count()),
        "max_iter": count(),
        "tol": check_positive,
        "progress": check_flag,
    }

    # ------------------------------------------------------------------ the mathematics

    _limit = staticmethod(pcpca_limit)
    _path = staticmethod(solve_path)
    _solution = staticmethod(solve_pcpca)
    _grid = staticmethod(pcpca_grid)

    def _maximum(self, C: Contrast, r: int, start: Array | None = None) -> Solution:
        return solve_pcpca(C, top_eigenpairs(C, r, start=start))

    def _refusal(
        self, gamma: float, limit: float, r: int, parameter: str = "n_components", hint: str = ""
    ) -> ValueError:
        reason = (
            "the background outweighs all foreground rows (N = n (1 - gamma) is not positive)"
            if limit >= 1
            else "the relative likelihood has no maximum (the noise variance would not be positive)"
        )
        advice = f", or CPCA, which allows stronger contrasts.{hint}"
        return InfeasibleGammaError(gamma, limit, r, reason, advice, parameter)

    def _objective(self, C: Contrast, solution: Solution) -> float:
        W = solution.spectrum.vectors * solution.lengths
        return relative_log_likelihood(C, W, W * solution.spectrum.values, solution.sigma2)

    # ------------------------------------------------------------------ steps of a fit

    def _settings(self) -> Settings:
        """Those of gradient solvers."""
        n_init = None if isinstance(self.n_init, str) else int(self.n_init)
        return Settings(self.mean, n_init, self.max_iter, self.tol, self.random_state, self.progress)

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        self._latents(tables.n_features)  # raises for what so many features do not allow
        solver = self.solver
        if solver != "lbfgs":
            if solver != "auto" and tables.incomplete:
                raise ValueError(f"solver={solver!r} is for complete rows, but values are missing. Use solver='auto'.")
            return collect(tables, check_n_components(self.n_components, tables.n_features), self._scaling, solver)
        # By gradients, also of complete rows.
        check_solver_of(tables.rows.foreground, solver)
        refuse_devices(tables, f"solver={solver!r}")
        if not all(isinstance(rows, np.ndarray) for rows in tables.rows):
            raise ValueError(f"solver={solver!r} is for dense tables: pass X.toarray(), or use solver='auto'.")
        check_n_components(self.n_components, tables.n_features)
        return collect_incomplete(tables, self._scaling)

    def _ranked(self, data: Complete | Incomplete, gamma: float | None) -> Latents:
        """How many latent dimensions there are, and which are shown; counted where that is left to the data (F24).

        A given gamma may leave room for fewer than the groups suggest.
        """
        latents = settled(data.plateau, self._latents())
        if latents.n_latent is not None:
            return latents
        k = latents.n_shown
        rank = counted_rank(data, k, gamma) if isinstance(data, Complete) else masked_rank(data.groups, k)
        return replace(latents, n_latent=rank)

    def _gamma_by_limit(self, data: Complete, latents: Latents) -> Choice:
        """The gamma that was given, or else a part of its exact limit (F3)."""
        if (gamma := self._strength()) is not None:
            return Choice(gamma)
        limit, near = self._limit(data.groups, latents.rank)
        if limit == 0:
            raise RankError(latents.rank, parameter=latents.parameter)
        return Choice(latents.auto_fraction * limit, limit, near)

    # ------------------------------------------------------------------ subsets of the rows

    def _axes_of(self, training: Training) -> Groups[Array]:
        data, gamma, latents = self._trained(training), self._strength(), self._latents()
        if gamma is not None and not latents.contrast_axes:
            return super()._axes_of(data)
        if gamma is None or latents.axes == "ratio":  # ratio axes do not depend on gamma
            axes = self._automatic_axes(data, latents)
            if axes is not None:
                return axes

        def fitted(latents: Latents) -> Groups[Array]:
            choice = self._gamma_by_limit(data, latents)
            return in_original_units(self._solve(data, latents, choice.gamma, choice.near).components, data)

        try:
            return fitted(latents.within(data.groups.foreground.weight, data.groups.foreground.mean.size))
        except InfeasibleGammaError:  # the rank gives way
            return fitted(replace(latents, n_latent=counted_rank(data, latents.n_shown, gamma)))

    def _automatic_axes(self, data: Complete, latents: Latents) -> Groups[Array] | None:
        """The axes that are shown at the gamma of "auto", in each group's original units; None where rounding hides the
        foreground."""
        groups = data.groups
        if latents.axes == "ratio" and (known := ratio_axes(groups, latents.n_shown)) is not None:
            return in_original_units(data.vectors(known[1]), data)
        latents = latents.within(groups.foreground.weight, groups.foreground.mean.size)
        limit, start = self._limit(groups, latents.rank)
        while limit == 0 and latents.rank > latents.n_shown:  # few rows that count more than once: the rank gives way
            latents = replace(latents, n_latent=latents.rank - 1)
            limit, start = self._limit(groups, latents.rank)
        if limit == 0:
            raise RankError(latents.rank, parameter=latents.parameter)
        found = self._shown(groups, latents, latents.auto_fraction * limit, start)
        if found is None:
            return None
        C, solution, _, shown = found
        return in_original_units(lifted(data, C, solution) @ shown.directions, data)


def counted_rank(data: Complete, k: int, gamma: float | None) -> int:
    """The number of latent dimensions that the groups suggest, or fewer, with a warning, if gamma allows no more."""
    wanted = automatic_rank(data, k)
    if gamma is None or (r := feasible_rank(contrast(data.groups, gamma), wanted)) == wanted:
        return wanted
    if r >= k:
        warn(
            (
                Said(f"gamma={gamma:.6g}", f"--gamma {gamma:.6g}"),
                f" is above the limit for the {wanted} latent dimensions that these tables suggest, so the model has "
                f"only {r}. For all {wanted}, use ",
                Option("gamma", "auto"),
                " or a smaller gamma.",
            )
        )
    return max(r, k)
