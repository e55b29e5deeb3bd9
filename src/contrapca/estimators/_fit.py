"""From checked rows to everything an estimator reports, as plain values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from .._array import Array, Rows, is_sparse
from .._validation import Groups, warn_distant_means
from ..exceptions import InfeasibleGammaError, NonFiniteError, RankError
from ..gaussian import LatentGaussian
from ..moments import Moments, Pair, RowScatter, accumulate, alone, pooled_deviation, reduce_rows, row_moments
from ..objective import contrastive_variance, reconstruction_loss, relative_log_likelihood
from ..solvers import (
    MAX_DENSE,
    SolverChoice,
    canonical_signs,
    cpca_limit,
    pcpca_limit,
    pcpca_limit_and_vectors,
    rank_exceeds,
    select_solver,
    solve_cpca,
    solve_pcpca,
    top_eigenpairs,
)

GROUPS = ("foreground", "background")
Method = Literal["pcpca", "cpca"]

# Part of the exact PCPCA limit that gamma="auto" takes; evidence in docs/math.md, "How strong a contrast".
AUTO_FRACTION = 0.97
# Below this limit, with more variance in the background, the groups were probably exchanged.
TINY_LIMIT = 0.1


@dataclass(frozen=True)
class Source(ABC):
    """What a fit was made of, kept for results that are computed when first asked for."""

    means: tuple[Array, Array | None]  # (D,) of foreground and background, in original units
    variances: tuple[Array, Array | None]  # (D,) likewise
    scales: tuple[Array, Array | None]  # (D,) what the rows were divided by

    @property
    @abstractmethod
    def ratio(self) -> float:
        """m / n."""

    @property
    @abstractmethod
    def model_mean(self) -> Array:
        """The foreground's mean in model units, shape (D,)."""

    @abstractmethod
    def total_variance(self, group: int) -> float:
        """Sum of the features' variances of the foreground (0) or the background (1), in model units."""

    @abstractmethod
    def watched_rows(self) -> list[RowScatter]:
        """The groups whose rows are kept by reference and must not change."""

    @abstractmethod
    def limit(self, method: Method, d: int) -> float:
        """The exact limit of gamma', or an upper bound of it where values are missing."""

    @abstractmethod
    def feature_contrast(self, gamma: float) -> tuple[float, Array]:
        """(N, C) at gamma', C of shape (D, D), in model units; refused where values are missing or D is too large."""

    @abstractmethod
    def background_model(self, d: int) -> LatentGaussian:
        """PPCA of the background alone with d components, in the background's scaled units."""


@dataclass(frozen=True)
class Collected(Source):
    """Both groups' moments in model units, and the solver they are stored for."""

    pair: Pair
    choice: SolverChoice

    @property
    def ratio(self) -> float:
        return self.pair.ratio

    @property
    def model_mean(self) -> Array:
        return self.pair.foreground.mean

    def total_variance(self, group: int) -> float:
        return self.pair.groups[group].total_variance()

    def watched_rows(self) -> list[RowScatter]:
        return [group.scatter for group in self.pair.groups if isinstance(group.scatter, RowScatter)]

    def limit(self, method: Method, d: int) -> float:
        return pcpca_limit(self.pair, d) if method == "pcpca" else cpca_limit(self.pair, d)

    def feature_contrast(self, gamma: float) -> tuple[float, Array]:
        if self.pair.n_features > MAX_DENSE:
            raise ValueError(
                f"With {self.pair.n_features} features C is too large (at most {MAX_DENSE}). Use bootstrap(), or fewer "
                "features."
            )
        contrast = self.pair.contrast(gamma)
        return contrast.N, self.pair.feature_matrix(contrast)

    def background_model(self, d: int) -> LatentGaussian:
        assert self.pair.background is not None
        contrast = alone(self.pair.background)
        spectrum = top_eigenpairs(contrast, d)
        solution = solve_pcpca(contrast, spectrum.values)
        if not solution.feasible:
            raise RankError(d, "background")
        U = self.pair.lift(contrast, spectrum.vectors, spectrum.values)
        return LatentGaussian(self.pair.background.mean, U * solution.lengths, solution.sigma2)


@dataclass(frozen=True)
class Fit:
    """A solved contrast; arrays in model (scaled) units and float64."""

    source: Source
    gamma: float
    components: Array  # (D, d), orthonormal columns
    lengths: Array  # (d,)
    sigma2: float
    eigenvalues: Array  # of C / n
    objective: float
    reconstruction_loss: float
    variances: tuple[Array, Array | None]  # (d,) along each component, ddof 0
    n_effective: float
    n_iter: int
    solver: SolverChoice
    # Of gradient solvers only:
    history: Array | None = None  # (n_iter + 1,) the objective after each iteration
    init_objectives: Array | None = None  # (n_init,) the objective that each start reached
    limit: float | None = None  # of gamma, where it was computed on the way
    gamma_search: list[dict[str, float | str]] = field(default_factory=list)  # how "auto" found gamma

    def shares(self, group: int) -> Array:
        """Of the foreground's (0) or the background's (1) variance, along each component; 0 of no variance."""
        along, total = self.variances[group], self.source.total_variance(group)
        assert along is not None
        return along / total if total > 0 else np.zeros_like(along)


def choose_solver(groups: Groups, requested: str) -> SolverChoice:
    """The solver for these tables."""
    tables = groups.tables
    n_rows, n_features = sum(table.shape[0] for table in tables), tables[0].shape[1]
    return select_solver(n_rows, n_features, any(map(is_sparse, tables)), requested)


def collect(groups: Groups, d: int, scale: bool | str, solver: str) -> Collected:
    """Read the rows once, scale the moments, and bring them into the solver's coordinates."""
    choice = choose_solver(groups, solver)
    read = accumulate if choice.name == "eigh" else row_moments
    moments = [_read(read, k, groups) for k in range(len(groups.tables))]
    means = [group.mean for group in moments]
    variances = [group.scatter.diagonal() / group.weight for group in moments]
    pooled = pooled_deviation(moments)
    if len(moments) == 2:
        warn_distant_means(np.abs(means[0] - means[1]) / pooled, groups)
    scales = divisors(scale, [group.standard_deviation() for group in moments], pooled)
    if scale:
        moments = [group.scaled(divisor) for group, divisor in zip(moments, scales, strict=True)]
    basis = None
    if choice.name == "dual":
        moments, basis = reduce_rows(moments, d)
    pair = Pair(moments[0], moments[1] if len(moments) == 2 else None, basis)
    return Collected(two(means), two(variances), two(scales), pair, choice)


def divisors(scale: bool | str, own: list[Array], pooled: Array) -> list[Array]:
    """What the rows of each group are divided by, from the groups' own and the pooled standard deviations."""
    if scale == "group":
        return own
    return [pooled if scale == "pooled" else np.ones(pooled.size)] * len(own)


def _read(read: Callable[[Rows], Moments], k: int, groups: Groups) -> Moments:
    """Moments of one group; errors say which, and name the feature."""
    try:
        moments = read(groups.tables[k])
    except NonFiniteError as error:
        raise in_group(error, k, groups) from error
    if not np.isfinite(moments.scatter.trace):
        raise ValueError(f"Input contains values too large to be squared: rescale them. (In the {GROUPS[k]}.)")
    return moments


def in_group(error: NonFiniteError, k: int, groups: Groups) -> NonFiniteError:
    """The same error, saying in which group, and naming the feature."""
    message = f"{error} (In the {GROUPS[k]}, {groups.name(error.feature)}.)"
    return NonFiniteError(message, error.feature, error.missing)


def two(arrays: list[Array]) -> tuple[Array, Array | None]:
    """The foreground's and the background's, None without a background."""
    return arrays[0], arrays[1] if len(arrays) == 2 else None


def fit_contrast(collected: Collected, method: Method, d: int, gamma: float | None) -> Fit:
    """Solve the contrast at `gamma` (None: choose it), or raise with the exact limit."""
    pair, start = collected.pair, None
    if method == "cpca" and not rank_exceeds(pair.foreground, d):  # PCPCA's feasibility includes it
        raise RankError(d)
    if gamma is None:
        limit, start = pcpca_limit_and_vectors(pair, d)
        if limit == 0:
            raise RankError(d)
        gamma = AUTO_FRACTION * limit
    contrast = pair.contrast(gamma)
    spectrum = top_eigenpairs(contrast, d, start=start)
    values, U = spectrum.values, spectrum.vectors
    solution = solve_pcpca(contrast, values) if method == "pcpca" else solve_cpca(contrast, values)
    if not solution.feasible:
        raise infeasible(pair, method, d, gamma)
    if method == "pcpca":
        W = U * solution.lengths
        objective = relative_log_likelihood(contrast, W, W * values, solution.sigma2)
    else:
        objective = contrastive_variance(U, U * values)
    choice = collected.choice
    return Fit(
        source=collected,
        gamma=gamma,
        components=canonical_signs(pair.lift(contrast, U, values)),
        lengths=solution.lengths,
        sigma2=solution.sigma2,
        eigenvalues=values / pair.foreground.weight,
        objective=objective,
        reconstruction_loss=reconstruction_loss(contrast, U, U * values),
        variances=two(spectrum.variances(contrast)),
        n_effective=contrast.N,
        n_iter=spectrum.n_iter,
        solver=replace(choice, reason=f"{choice.reason}; {spectrum.note}") if spectrum.note else choice,
    )


def infeasible(pair: Pair, method: Method, d: int, gamma: float) -> ValueError:
    """Why there is no solution at `gamma`: the foreground's rank, or the exact limit."""
    if pair.background is None:
        return RankError(d)
    limit = pcpca_limit(pair, d) if method == "pcpca" else cpca_limit(pair, d)
    if limit == 0:
        return RankError(d)
    if gamma < limit * (1 - 1e-9):  # feasible in exact arithmetic, but not in this one
        return ValueError(
            f"gamma={gamma:.6g} is below its limit ({limit:.6g}), but so strong a contrast that rounding errors hide "
            "the foreground. Use a smaller gamma."
        )
    exchanged = pair.background.total_variance() > pair.foreground.total_variance() and limit < TINY_LIMIT
    return InfeasibleGammaError(method, gamma, limit, d, exchanged)
