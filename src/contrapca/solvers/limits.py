"""How strong a contrast may be: exact limits of gamma (F3) and the sufficient bounds (F4).

Everything here is in gamma' units, that is with covariances S / rows in place of scatters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
import scipy.linalg

from .._array import EPS, Array
from ..exceptions import format_gamma
from ..moments import DenseScatter, Moments, Pair, RowScatter, alone
from ._select import MAX_DENSE
from ._spectral import LOOSE, SECOND_ORDER, top_eigenpairs
from .closed_form import noise_sum

MAX_STEPS = 100  # the iterations take 4-10 steps; a bound only so that nothing can hang
# Relative change of gamma after which an iteration ends (the steps converge quadratically, so that the next
# change would be below rounding), and from which on steps are worth exact eigenvectors.
STANDSTILL, NEAR = 1e-9, 1e-2
CLEARLY = 1e-6  # relative size of a singular value that no rounding can explain


def pcpca_limit(pair: Pair, d: int) -> float:
    """The exact limit of gamma' for PCPCA: feasible below it, infeasible from it on (F3).

    Returns
    -------
    float in [0, 1]
        0 where the foreground's rank is at most d.
    """
    return pcpca_limit_and_vectors(pair, d)[0]


def pcpca_limit_and_vectors(pair: Pair, d: int) -> tuple[float, Array]:
    """`pcpca_limit`, and the top eigenvectors of C near it, shape (size, d).

    f(gamma') = tr C - sum_{i<=d} lambda_i is concave. Newton's step from the right, written as a
    ratio of traces so that nothing cancels, is gamma' <- tr(Q'cov_X Q) / tr(Q'cov_Y Q) with Q the
    D - d bottom eigenvectors of C(gamma'): it decreases to the root, and starting at gamma' = 1,
    where N = 0, it never moves if f is positive there. Any Q gives an upper bound whose error is of
    second order in Q's, so iterative eigensolvers may be loose until the steps become small.
    """
    assert pair.background is not None
    gamma, tol, iterate = 1.0, LOOSE, True
    vectors: Array | None = None
    if not rank_exceeds(pair.foreground, d):
        # f is nowhere positive, but may be 0 up to some gamma', where Newton would stop.
        return 0.0, np.zeros((pair.contrast(gamma).size, d))
    for _ in range(MAX_STEPS):
        contrast = pair.contrast(gamma)
        spectrum = top_eigenpairs(contrast, d, start=vectors, tol=tol, iterate=iterate)
        vectors, iterate = spectrum.vectors, spectrum.n_iter > 1  # given up once is given up for all
        foreground, background = (
            _variance_outside(group, along)
            for group, along in zip(pair.groups, spectrum.variances(contrast), strict=True)
        )
        if foreground <= 0:
            return 0.0, vectors
        proposal = min(gamma, foreground / background if background > 0 else math.inf)
        change = 1 - proposal / gamma
        gamma = proposal
        if change <= STANDSTILL and (contrast.is_dense or tol < LOOSE):
            break
        if change <= NEAR:
            tol = SECOND_ORDER
    assert vectors is not None
    return gamma, vectors


def rank_exceeds(group: Moments, d: int) -> bool:
    """Whether the scatter has more than d eigenvalues beyond rounding."""
    contrast = alone(group)
    # Products with d + 1 random vectors are as independent as the rank allows: a clear yes is cheap.
    (images,) = contrast.images(np.random.default_rng(0).standard_normal((contrast.size, d + 1)))
    strengths = np.linalg.svd(images, compute_uv=False)
    if strengths[-1] > CLEARLY * strengths[0]:
        return True
    return noise_sum(contrast, top_eigenpairs(contrast, d, tol=SECOND_ORDER).values) > 0


def _variance_outside(group: Moments, along: Array) -> float:
    """tr(Q'cov Q) = tr cov - tr(U'cov U), Q orthogonal to U, from u'cov u `along` U; 0 where it is only rounding."""
    outside = group.scatter.trace / group.weight - float(along.sum())
    return outside if outside > alone(group).rounding / group.weight else 0.0


def cpca_limit(pair: Pair, d: int) -> float:
    """The exact limit of gamma' for CPCA: below it C has d positive eigenvalues.

    By Courant and Fischer it is the largest, over d-dimensional subspaces, of the smallest ratio
    v'cov_X v / v'cov_Y v inside the subspace, so every subspace gives a lower bound. From gamma' = 0 on, the
    bound of the top d eigenvectors of C(gamma') is the next gamma': it increases, and near the
    limit it is Newton's step on lambda_d. Directions in which neither group varies never enter, unlike in
    a test of the sign of lambda_d.

    Returns
    -------
    float in [0, inf]
        inf where the background leaves d directions of the foreground free.
    """
    assert pair.background is not None
    gamma = 0.0
    contrast = pair.contrast(gamma)
    spectrum = top_eigenpairs(contrast, d)
    if spectrum.values[-1] <= contrast.rounding:
        return 0.0
    for _ in range(MAX_STEPS):
        U = spectrum.vectors
        within = [U.T @ image / group.weight for image, group in zip(spectrum.images, pair.groups, strict=True)]
        reciprocal = scipy.linalg.eigh(within[1], within[0], eigvals_only=True)[-1]
        proposal = 1 / float(reciprocal) if reciprocal > 0 else math.inf
        weakest = np.linalg.eigvalsh(within[0])[0] * pair.foreground.weight
        if proposal == math.inf or pair.contrast(proposal).rounding >= weakest:
            return math.inf  # so strong a contrast drowns the foreground in rounding errors
        if proposal <= gamma * (1 + STANDSTILL):
            return gamma
        gamma = proposal
        contrast = pair.contrast(gamma)
        spectrum = top_eigenpairs(contrast, d, start=U)
        if spectrum.values[-1] <= contrast.rounding:
            return gamma
    return gamma


@dataclass(frozen=True)
class GammaLimits:
    """Limits and bounds of gamma, all in gamma' units; `raw` has them in the paper's raw units.

    The sufficient bounds are nan where the spectra they need are too large to compute (both rows
    and features above 8000).

    Attributes
    ----------
    pcpca : float
        Exact limit of PCPCA, at most 1.
    cpca : float
        Exact limit of CPCA; may be inf.
    positive_definite : float
        Below it C is positive definite (sufficient): mu_D / rho_1.
    leading_positive : float
        Below it the first d eigenvalues of C are positive (sufficient; the paper's Theorem 2).
    noise_positive : float
        Below it sigma2 > 0 (sufficient; the paper's remark): sum_{i>d} mu_i / ((D - d) rho_1).
    noise_positive_sharp : float
        Likewise and sharper: sum_{i>d} mu_i / sum_{i<=D-d} rho_i.
    n_components : int
    ratio : float
        m / n, so that gamma_raw = gamma' / ratio.
    is_bound : bool
        Whether `pcpca` is only an upper bound of the limit, and the others are unknown (nan), as values are missing.
    """

    pcpca: float
    cpca: float
    positive_definite: float
    leading_positive: float
    noise_positive: float
    noise_positive_sharp: float
    n_components: int
    ratio: float
    is_bound: bool = False

    @property
    def gamma(self) -> dict[str, float]:
        """Every limit by name, in gamma' units."""
        names = [field.name for field in fields(self)]
        return {name: getattr(self, name) for name in names if name not in ("n_components", "ratio", "is_bound")}

    @property
    def raw(self) -> dict[str, float]:
        """Every limit by name, as gamma_raw = gamma' n / m."""
        return {name: value / self.ratio for name, value in self.gamma.items()}

    def __str__(self) -> str:
        lines = [f"{f'n_components={self.n_components}':<22}{'gamma':>12}{'raw':>12}"]
        for name, value in self.gamma.items():
            mark = " (upper bound: values are missing)" if self.is_bound and name == "pcpca" else ""
            lines.append(f"{name:<22}{format_gamma(value):>12}{format_gamma(self.raw[name]):>12}{mark}")
        return "\n".join(lines)


def all_limits(pair: Pair, d: int) -> GammaLimits:
    """Exact limits and sufficient bounds of a pair of groups."""
    assert pair.background is not None
    bounds = _sufficient_bounds(_spectrum(pair.foreground), _spectrum(pair.background), d)
    return GammaLimits(pcpca_limit(pair, d), cpca_limit(pair, d), *bounds, n_components=d, ratio=pair.ratio)


def _spectrum(group: Moments) -> Array | None:
    """All D eigenvalues of the covariance, descending, rounding errors as zeros; None if too dear."""
    scatter, D = group.scatter, group.mean.size
    if isinstance(scatter, DenseScatter):
        matrix = scatter.matrix
    else:
        assert isinstance(scatter, RowScatter)
        if min(scatter.rows.shape) > MAX_DENSE:
            return None
        matrix = scatter.spectrum_matrix()
    values = np.zeros(D)
    found = scipy.linalg.eigvalsh(matrix)[::-1][:D] / group.weight
    values[: found.size] = found
    values[values <= max(4 * EPS * D * values[0], group.rounding_variance())] = 0.0
    return values


def _sufficient_bounds(mu: Array | None, rho: Array | None, d: int) -> tuple[float, float, float, float]:
    """The bounds of F4 from the spectra mu of cov_X and rho of cov_Y."""
    if mu is None or rho is None:
        return (math.nan,) * 4
    D = mu.size
    tail = float(mu[d:].sum())
    weyl = [ratio for j in range(D - d + 1) if (ratio := _ratio(mu[d - 1 + j], rho[j])) is not None]
    return (
        _ratio(mu[-1], rho[0]) or 0.0,
        max(weyl, default=0.0),
        min(1.0, _ratio(tail, (D - d) * rho[0]) or 0.0),
        min(1.0, _ratio(tail, float(rho[: D - d].sum())) or 0.0),
    )


def _ratio(numerator: float, denominator: float) -> float | None:
    """numerator / denominator with x / 0 = inf and None, to be skipped, for 0 / 0."""
    if denominator > 0:
        return float(numerator / denominator)
    return math.inf if numerator > 0 else None
