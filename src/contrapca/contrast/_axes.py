"""Contrast axes (F16): how many dimensions stand out from the noise, how many a model needs, and which it shows.

In the order of a fit: the rank rule counts dimensions and gives the model its rank (`automatic_rank` of
`_few_directions`, where dimensions of large tables are counted, applies it to data); `contrast_axes` finds the axes in
the model's subspace, and has the noise floor; `show_axes` turns the latent space so that these come first. At the end,
models whose subspace has to hold axes found elsewhere, such as ratio axes (F41).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .._util.arrays import EPS, Array
from ..data import Groups
from ..moments import Contrast, Moments, alone, mixed, mixture
from ._eigen import Solution, Spectrum, is_iterated, top_eigenpairs, top_eigenvalues
from ._fit import Latents
from ._path import PathSpectrum, outside, symmetric
from ._ratio import Axes
from ._subspaces import canonical_sign_of, canonical_signs, principal_axes

EDGE = 2.02  # .99 quantile of the Tracy-Widom law (beta = 1): noise alone exceeds its edge once in a hundred tables
SPARE = 1  # latent dimensions beyond those that the edges count and those that are shown
CAP = 50  # maximum number beyond those that are shown: noise that is not white exceeds any edge
SEES_NOISE = 0.75  # with this fraction of the possible dimensions above it, or more, the noise cannot be seen

# Eigenvalues that the rank rule considers: more than 50 would not count. If each costs products, the first few are
# tried first: they are enough for most tables.
LOOKS = (12, 51)

# Of all dimensions that may be counted, those that stand out from the noise. From half of them on, features are put in
# common units: where that was so, contrast axes of such features were never worse (F41). From nine tenths on there is
# hardly a dimension left to tell what noise is.
MANY, NEARLY_ALL = 0.5, 0.9

RATIO = 3.0  # the floor of the background's variance is lowered only if the last axis has a smaller ratio
DEAD = 1e-7  # a latent dimension shorter than this, in units of its standard deviation, is the rounding error of zero

# Least length of a loading where ratio axes are shown, in units of the noise's standard deviation: along such an axis
# the foreground may vary less than in the mean of all others, but what is shown must depend on the row.
SHORTEST = 0.5

# ---------------------------------------------------------------------- the rank


def noise_rank(
    values: npt.ArrayLike, n_rows: float, n_features: int, trace: float | None = None, *, more: float = 0.0
) -> int:
    """Number of eigenvalues above the edge of the remaining noise (F16).

    Starting with the largest, each eigenvalue is compared with the Tracy-Widom edge of white noise in the remaining
    dimensions and degrees of freedom, with the mean of the remaining eigenvalues as its variance. The first that does
    not exceed its edge ends the count. If all given values exceed their edges, the count is a lower bound.

    Parameters
    ----------
    values : array_like of shape (p,)
        Eigenvalues of the centred *scatter* matrix of `n_rows` rows, descending: all `n_features` of them, or only the
        largest if the `trace` of the matrix is given.
    more : float, default 0
        Added to every edge: what missing values add to the noise (F24).
    """
    values = np.asarray(values, dtype=np.float64)
    return count_above(values, noise_edges(values, n_rows, n_features, trace, more=more))


def count_above(values: Array, edges: Array) -> int:
    """How many of the first values exceed their edges, which may be fewer."""
    return int(np.append(values[: edges.size] > edges, False).argmin())


def noise_edges(
    values: Array, n_rows: float, n_features: int, trace: float | None = None, *, more: float = 0.0
) -> Array:
    """What each eigenvalue must exceed if those before it stand out, arguments as for `noise_rank`: as many edges as
    may be counted, at most p and at most ``min(n_rows - 1, D) - 1``."""
    degrees = n_rows - 1
    count = max(min(len(values), int(min(degrees, n_features)) - 1), 0)
    if count == 0:
        return np.empty(0)
    unseen = 0.0 if trace is None else max(float(trace) - float(values.sum()), 0.0)
    # Summed from the smallest, so faint noise is not lost in the rounding error of a large total.
    tails = np.append(np.cumsum(values[::-1])[::-1], 0.0)[1 : count + 1] + unseen
    j = np.arange(count)
    rows, columns = np.sqrt(degrees - j - 0.5), np.sqrt(n_features - j - 0.5)
    variance = np.maximum(tails, 0.0) / ((n_features - j - 1) * (degrees - j - 1))
    spread = (rows + columns) * (1 / rows + 1 / columns) ** (1 / 3)
    # In a table of low rank, eigenvalues and the noise they are compared with are both zero up to rounding.
    zero = values[0] * max(n_rows, n_features) * EPS
    return np.maximum(variance * ((rows + columns) ** 2 + EDGE * spread) + more, zero)


def dimensions_above_noise(group: Moments, more: float = 0.0) -> int:
    """Number of dimensions of a group that stand out from its noise, with `more` added to it (F16)."""
    C = alone(group)
    for look in LOOKS if is_iterated(C, LOOKS[0]) else LOOKS[-1:]:
        count = min(look, C.size - 1)
        found = noise_rank(top_eigenvalues(C, count), group.weight, C.n_features, C.trace, more=more)
        if found < count or count < look:
            break
    return found


def noise_is_visible(q: int, n_features: int, n: int, m: int) -> bool:
    """Whether q dimensions above the noise, the larger count of groups of n and m independent rows or blocks, leave
    enough others to know the noise by (F16).

    Noise that is not white exceeds any edge, so the count runs into its maximum; what lies below it is then no noise.
    """
    return q < SEES_NOISE * most_above_noise(n_features, n, m)


def most_above_noise(n_features: int, n: float, m: float) -> float:
    """How many dimensions of groups of n and m rows can be counted as standing out from the noise."""
    return min(n_features - 1, n - 1, m - 1, CAP + 1)


def latent_rank(
    q_x: int, q_y: int, k: int, n_features: int, n: int, m: int, *, foreground_rank: int | None = None
) -> int:
    """Number of latent dimensions r of a model that shows k of them: leaves room for what the groups share (F16).

    It is ``max(q_x, q_y) + SPARE + k``, limited by k + CAP, half the independent rows of the smaller group, D - 1 and
    foreground_rank - 1; at least k + 1 if the last two allow it, never less than k.

    Parameters
    ----------
    q_x, q_y : int
        Dimensions above the noise in the foreground and in the background, see `noise_rank`.
    k, n_features : int
    n, m : int
        Numbers of independent rows of the two groups, or of blocks (donors, animals, plates) if rows come in blocks.
    foreground_rank : int, optional
        Rank of the foreground's scatter matrix. r must stay below it, or no gamma is feasible (F3). None means ``min(n
        - 1, n_features)``; with blocks pass the number of rows minus one.
    """
    rank = min(n - 1, n_features) if foreground_rank is None else foreground_rank
    wanted = min(max(q_x, q_y) + SPARE, CAP) + k
    supported = max(min(wanted, min(n, m) // 2), k + 1)
    return max(min(supported, n_features - 1, rank - 1), k)


def feasible_rank(C: Contrast, r: int) -> int:
    """The largest number of latent dimensions, at most r, for which the contrast has a solution; 0 if there is none."""
    if C.N <= EPS * C.n_foreground:
        return 0
    left = C.trace - np.cumsum(top_eigenpairs(C, r).values)  # f of F3 for 1, ..., r dimensions
    return int(np.max(np.flatnonzero(left > C.rounding) + 1, initial=0))


# ---------------------------------------------------------------------- the axes


def contrast_axes(
    a: npt.ArrayLike, b: npt.ArrayLike, nu_x: float, nu_y: float, k: int, *, earlier: Array | None = None
) -> tuple[Array, Array]:
    """Directions of a subspace with the largest ratio of foreground to background variance (F16).

    Solves ``a w = theta b_rho w`` for the k largest theta. b_rho is b with its eigenvalues below rho, the noise floor,
    raised to rho: with few rows, variances below the background's noise level cannot be trusted. rho starts at that
    noise level, nu_y. This is too high if the background has its own directions outside the subspace, so rho is halved
    while the k-th ratio is below RATIO, down to the smaller of the two groups' noise levels.

    Parameters
    ----------
    a, b : array_like of shape (r, r)
        Covariances of the foreground and of the background in an orthonormal basis of the subspace.
    nu_x, nu_y : float
        Mean variances of the two groups in the dimensions outside the subspace.
    k : int
        Number of axes, at most r.
    earlier : ndarray of shape (r, j), optional
        Axes found before; the new ones are b_rho-orthogonal to them.

    Returns
    -------
    theta : ndarray of shape (k,)
        Ratios of variances, descending. Optimistic on the rows that b and a come from (F17).
    w : ndarray of shape (r, k)
        Axes of unit length with canonical signs, b_rho-orthogonal.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    variances, basis = np.linalg.eigh((b + b.T) / 2)
    inner = basis.T @ a @ basis
    inner = (inner + inner.T) / 2
    # Both groups may be constant outside the subspace; the floor then only keeps the division finite.
    tiny = EPS * max(np.trace(a), np.trace(b)) or 1.0
    rho, least = max(nu_y, tiny), max(min(nu_x, nu_y), tiny)
    while True:
        root = np.sqrt(np.maximum(variances, rho))
        whitened = inner / root[:, None] / root
        if earlier is not None:  # in these coordinates b_rho-orthogonal is orthogonal
            found = np.linalg.qr(root[:, None] * (basis.T @ earlier))[0]
            rest = np.eye(root.size) - found @ found.T
            whitened = rest @ whitened @ rest
        theta, axes = np.linalg.eigh(whitened)
        if theta[-k] >= RATIO or rho <= least:
            break
        rho = max(rho / 2, least)
    w = basis @ (axes[:, : -k - 1 : -1] / root[:, None])
    return theta[: -k - 1 : -1], canonical_signs(w / np.linalg.norm(w, axis=0))


def latent_rotation(lengths: npt.ArrayLike, sigma2: float, w: npt.ArrayLike) -> Array:
    """Rotation R (r, r) of the latent space whose first axes show given directions w (r, k) of the features (F16).

    The latent mean of a row is ``z = diag(l / (l^2 + sigma2)) U'(x - mu)`` for loadings ``U diag(l)`` of these lengths,
    so the projection ``w'U'(x - mu)`` is ``w' diag((l^2 + sigma2) / l) z``. The first axis is that vector for w_1,
    normalised; the others follow by Gram-Schmidt, in order. An orthogonal rotation does not change the model's
    likelihood. The first k columns of ``R'z`` are shown, the others complete the basis.

    Where l is zero the latent does not depend on the row, and the entry of w is omitted. If that makes axes dependent,
    the dependent ones are replaced by any directions orthogonal to the rest.
    """
    lengths = np.asarray(lengths, dtype=np.float64)
    variances = lengths**2 + sigma2
    alive = lengths > DEAD * np.sqrt(variances)
    stretch = np.divide(variances, lengths, out=np.zeros_like(variances), where=alive)
    # Householder QR is Gram-Schmidt up to signs, and stays orthonormal even if lengths are very unequal.
    rotation, triangle = np.linalg.qr(stretch[:, None] * np.asarray(w, dtype=np.float64), mode="complete")
    signs = np.ones(lengths.size)
    signs[: triangle.shape[1]] = np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
    return rotation * signs


@dataclass(frozen=True)
class ShownAxes:
    """The axes of a model that are shown, in the coordinates of its principal directions U (D, r)."""

    directions: Array  # (r, k): unit directions U d that rows are projected onto
    # (r, r): rotation R of the latent space: the first k columns of W = U diag(lengths) R belong to the axes shown
    rotation: Array
    variances: Groups[Array]  # (k,): variance of each group along the directions
    ratios: Array | None  # (k,): variance ratios of contrast axes

    def lift(self, U: Array, lengths: Array) -> tuple[Array, Array]:
        """Components (D, k), and W (D, r) whose first k columns have the same canonical signs, the others their own."""
        k, W = self.directions.shape[1], U * lengths
        components, W = (U[:, :k], W) if self.ratios is None else (U @ self.directions, W @ self.rotation)
        signs = canonical_sign_of(np.hstack([components, W[:, k:]]))
        return components * signs[:k], W * signs


def show_axes(
    latents: Latents,
    lengths: Array,
    sigma2: float,
    covariances: Groups[Array],
    totals: Groups[float],
    mix: Array,
    n_features: int,
    known: Axes | None = None,
) -> ShownAxes:
    """The axes to show of the loadings U diag(lengths).

    Parameters
    ----------
    latents : Latents
    lengths : ndarray of shape (r,)
    sigma2 : float
    covariances : Groups of ndarray of shape (r, r)
        U'cov U of each group.
    totals : Groups of float
        Total variance of each group.
    mix : ndarray of shape (backgrounds,)
        The part of each background in the contrast.
    n_features : int
    known : (ndarray of shape (k,), ndarray of shape (r, k)), optional
        Ratios, and directions U w of unit length, of axes that were found before, such as ratio axes.
    """
    k, r = latents.n_shown, lengths.size
    if not latents.contrast_axes or not covariances.backgrounds:
        identity = np.eye(r)
        return ShownAxes(identity[:, :k], identity, covariances.map(lambda c: np.diagonal(c)[:k].copy()), None)
    if known is None:
        background = np.tensordot(mix, covariances.backgrounds, 1)
        noise = [  # mean variance in the dimensions outside the subspace
            max(total - float(np.trace(inside)), 0.0) / (n_features - r)
            for total, inside in zip(totals, covariances, strict=True)
        ]
        known = contrast_axes(covariances.foreground, background, noise[0], float(mix @ noise[1:]), k)
    ratios, w = known
    rotation = latent_rotation(lengths, sigma2, w)
    # Latent means are along U diag(l / (l^2 + sigma2)) R; where that vanishes, use the direction of the loading itself.
    directions = (lengths / (lengths**2 + sigma2))[:, None] * rotation[:, :k]
    norms = np.linalg.norm(directions, axis=0)
    directions = np.where(norms > 0, directions / np.where(norms > 0, norms, 1.0), rotation[:, :k])
    variances = covariances.map(lambda c: np.einsum("ri,rs,si->i", directions, c, directions))
    return ShownAxes(directions, rotation, variances, ratios)


def show_solution(
    latents: Latents,
    solution: Solution,
    covariances: Groups[Array],
    groups: Groups[Moments],
    known: Axes | None = None,
) -> ShownAxes:
    """`show_axes` of a solution for complete groups, whose covariances along it are given."""
    totals, D = groups.map(Moments.total_variance), groups.foreground.mean.size
    return show_axes(latents, solution.lengths, solution.sigma2, covariances, totals, mixture(groups), D, known)


# ---------------------------------------------------------------------- around axes that were found elsewhere


def strongest_around(C: Array, k: int, r: int) -> tuple[Array, Array]:
    """The r values and vectors (p, r) of C (p, p) in the strongest subspace that holds the first k coordinates.

    Of all such subspaces, it has the largest trace of C: the k coordinates, and the top r - k eigenvectors of C among
    those orthogonal to them.
    """
    frame = np.zeros((len(C), min(r, len(C))))
    frame[:k, :k] = np.eye(k)
    frame[k:, k:] = np.linalg.eigh(C[k:, k:])[1][:, ::-1][:, : frame.shape[1] - k]
    values, turn = np.linalg.eigh(frame.T @ C @ frame)
    return values[::-1], frame @ turn[:, ::-1]


def loadings_around(W: Array, sigma2: float, V: Array) -> tuple[Array, Array]:
    """Directions (D, r) and lengths of loadings whose subspace holds axes V (D, k), as near to W as that allows: their
    covariance is that of W in the new subspace."""
    U, lengths = principal_axes(W)
    basis = np.linalg.qr(np.hstack([V, U]))[0]
    inside = (basis.T @ U) * lengths
    values, small = strongest_around(inside @ inside.T, V.shape[1], lengths.size)
    return basis @ small, np.maximum(np.sqrt(np.maximum(values, 0.0)), SHORTEST * np.sqrt(sigma2))


def around_axes(
    C: Contrast, solution: Solution, found: Axes, complete: Callable[..., Solution]
) -> tuple[Solution, Axes]:
    """The solution in the strongest subspace that holds given axes, and these axes in its coordinates (F41).

    `complete` makes a solution of directions. Their span is sought among the axes and the directions of the solution.
    """
    ratios, V = found
    r, k = solution.lengths.size, V.shape[1]
    basis = np.linalg.qr(np.hstack([V, solution.spectrum.vectors]))[0]
    images = C.images(basis)
    inner = basis.T @ C.combine(images)
    values, small = strongest_around((inner + inner.T) / 2, k, r)
    spectrum = Spectrum(values, basis @ small, [image @ small for image in images], solution.spectrum.n_iter)
    again = at_least_short(complete(C, spectrum))
    return replace(again, eigenvectors=False), (ratios, spectrum.vectors.T @ V)


def at_least_short(solution: Solution) -> Solution:
    """With loadings that are not so short that latents along ratio axes hardly depend on the row."""
    return replace(solution, lengths=np.maximum(solution.lengths, SHORTEST * np.sqrt(solution.sigma2)))


def path_around_axes(found: PathSpectrum, groups: Groups[Moments], gammas: Array, V: Array) -> PathSpectrum:
    """`around_axes` for every gamma of a path, with the same axes V (size, k) at each."""
    new = outside(found.basis, V)
    basis = np.hstack([found.basis, new])
    covariances = groups.map(lambda group: symmetric(basis, group.scatter.matmul(basis)) / group.weight)
    background = mixed(groups, covariances)
    coordinates = np.zeros((len(gammas), basis.shape[1], found.coordinates.shape[2]))
    values = np.empty(found.values.shape)
    for g, gamma in enumerate(gammas):
        own = np.vstack([found.coordinates[g], np.zeros((new.shape[1], found.coordinates.shape[2]))])
        frame = np.linalg.qr(np.hstack([basis.T @ V, own]))[0]
        inner = frame.T @ (covariances.foreground - gamma * background) @ frame
        values[g], small = strongest_around(inner, V.shape[1], own.shape[1])
        coordinates[g] = frame @ small
    return replace(found, basis=basis, coordinates=coordinates, values=values, covariances=covariances)


def variance_inside(solution: Solution, covariance: Array) -> float:
    """Variance in the span of a solution's directions V, from the covariance V'S V: its trace if V is orthonormal."""
    if solution.eigenvectors:
        return float(np.trace(covariance))
    V = solution.spectrum.vectors
    return float(np.trace(np.linalg.lstsq(V.T @ V, covariance, rcond=None)[0]))
