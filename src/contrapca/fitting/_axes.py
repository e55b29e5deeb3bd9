"""Which axes of a solution are shown: the first principal ones, or contrast axes (F16)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from .._util.arrays import EPS, Array
from ..exceptions import ContrastWarning
from ..groups import Groups, Tables
from ..limits import pcpca_limit, rank_exceeds
from ..methods import Method
from ..moments import (
    Complete,
    Contrast,
    Incomplete,
    MaskedGroup,
    Moments,
    Plateau,
    alone,
    collect_incomplete,
    contrast,
    mixture,
    pooled,
)
from ..solvers import (
    BLOCK,
    CAP,
    SPARE,
    PathSpectrum,
    Solution,
    Spectrum,
    contrast_axes,
    estimated_moments,
    is_iterated,
    latent_rank,
    latent_rotation,
    missing_edge,
    most_above_noise,
    noise_outside,
    noise_rank,
    outside,
    solve_ratio,
    symmetric,
    top_eigenpairs,
    top_eigenvalues,
)
from ..subspaces import canonical_sign_of
from ._fit import Latents
from ._strongest import Equations, Strongest, by_products, in_strongest, strongest

# Eigenvalues that the rank rule considers: more than 50 would not count. If each costs products, the first few are
# tried first: they are enough for most tables.
LOOKS = (12, 51)
# Of all dimensions that may be counted, those that stand out from the noise. From half of them on, features are put in
# common units: where that was so, contrast axes of such features were never worse (F41). From nine tenths on there is
# hardly a dimension left to tell what noise is.
MANY, NEARLY_ALL = 0.5, 0.9
FLOOR_VALUES = 32  # eigenvalues of the background that may be so large that the floor depends on them
HIGHEST, MAX_CLIPS = 8.0, 200  # times the floor that an eigenvalue may add to it, and steps that this takes at most
# Least length of a loading where ratio axes are shown, in units of the noise's standard deviation: along such an axis
# the foreground may vary less than in the mean of all others, but what is shown must depend on the row.
SHORTEST = 0.5
MASKED_SPARE = 10  # latent dimensions of a model of incomplete rows beyond those that are shown


Axes = tuple[Array, Array]  # ratios of variances (k,), and directions of unit length


@contextmanager
def unwarned() -> Iterator[None]:
    """Without our warnings: what is to be said about the tables was said, or will be, of all rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContrastWarning)
        yield


@dataclass(frozen=True)
class ShownAxes:
    """The axes of a model that are shown, in the coordinates of its principal directions U (D, r).

    Attributes
    ----------
    directions : ndarray of shape (r, k)
        Unit directions U d that rows are projected onto.
    rotation : ndarray of shape (r, r)
        Rotation R of the latent space: the first k columns of W = U diag(lengths) R belong to the axes that are shown.
    variances : Groups of ndarray of shape (k,)
        Variance of each group along the directions.
    ratios : ndarray of shape (k,) or None
        Variance ratios of contrast axes.
    """

    directions: Array
    rotation: Array
    variances: Groups[Array]
    ratios: Array | None

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
        noise = [noise_outside(total, inside, n_features) for total, inside in zip(totals, covariances, strict=True)]
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


def solve_and_show(
    groups: Groups[Moments], gamma: float, method: Method, latents: Latents, start: Array | None = None
) -> tuple[Contrast, Solution, Groups[Array], ShownAxes] | None:
    """The contrast at gamma, its solution, the groups' covariances along that, and the axes to show; None if it has no
    solution. `start` holds vectors near it."""
    C = contrast(groups, gamma)
    solution = method.solve(C, latents.rank, start)
    if not solution.feasible:
        return None
    known = ratio_axes(groups, latents.n_shown) if latents.axes == "ratio" and groups.backgrounds else None
    if known is not None:
        solution, known = around_axes(C, solution, known, method.complete)
    covariances = groups.like(solution.spectrum.covariances(C))
    return C, solution, covariances, show_solution(latents, solution, covariances, groups, known)


def along_path(
    found: PathSpectrum, groups: Groups[Moments], gammas: Array, method: Method
) -> Iterator[tuple[Contrast, Solution, Groups[Array]]]:
    """The same at each gamma of a path, in the coordinates of its basis, but for the axes."""
    for gamma, values, V in zip(gammas, found.values, found.coordinates, strict=True):
        C = contrast(groups, float(gamma))
        solution = method.complete(C, Spectrum(values * groups.foreground.weight, V, images=[]))
        yield C, solution, found.covariances.map(lambda c, V=V: V.T @ c @ V)  # type: ignore[misc]


def settled(plateau: Plateau | None, latents: Latents) -> Latents:
    """`latents` with the kind of axes that the data ask for, if that was left to them."""
    if latents.axes != "auto":
        return latents
    return replace(latents, axes="contrast" if plateau is None else plateau.axes)


def ratio_axes(groups: Groups[Moments], k: int, share: float | None = None) -> Axes | None:
    """The k largest ratios of A v = theta (B + t I) v and their directions of unit length, shape (size, k) (F41); None
    if the background does not vary, so that there is no ratio. `share` is that of `floor_share`, if it is known."""
    if mixture(groups) @ [group.total_variance() for group in groups.backgrounds] <= 0:
        return None
    strength = 1 / (1 + (floor_share(groups) if share is None else share))  # the metric is strength (B + t I)
    found = solve_ratio(contrast(groups, strength), k)
    return strength * found.spectrum.values / groups.foreground.weight, found.spectrum.vectors


def floor_share(groups: Groups[Moments]) -> float:
    """t, in units of the background's mean variance: the mean of its eigenvalues, of which none counts as more than
    `HIGHEST` times t itself.

    So a few strong directions that both groups share do not raise the floor above all that is weaker. Beyond the
    largest eigenvalues all are taken as they are.
    """
    parts = zip(mixture(groups), groups.backgrounds, strict=True)
    B = Contrast.of(*((float(part) / group.weight, group) for part, group in parts if part > 0))
    values = top_eigenvalues(B, min(LOOKS[-1], B.size - 1)) * B.n_features / B.trace
    t, rest = 1.0, max(B.n_features - float(values.sum()), 0.0)
    for _ in range(MAX_CLIPS):
        t, before = (float(np.minimum(values, HIGHEST * t).sum()) + rest) / B.n_features, t
        if before - t <= EPS:
            break
    return t


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
    """The same for the solutions of a path, with the same axes V (size, k) at every gamma."""
    new = outside(found.basis, V)
    basis = np.hstack([found.basis, new])
    covariances = groups.map(lambda group: symmetric(basis, group.scatter.matmul(basis)) / group.weight)
    background = np.tensordot(mixture(groups), covariances.backgrounds, 1)
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


def automatic_rank(data: Complete, k: int) -> int:
    """Number of latent dimensions of a model that shows k of them, from the spectra of the groups (F16)."""
    groups = data.groups
    if data.plateau is not None and data.plateau.axes == "ratio":
        q = CAP  # the noise has no end, and the count is only a lower bound
    else:
        q = _most_above_noise(groups)[0] if data.plateau is None else data.plateau.counts[-1]
    D, rows = groups.foreground.mean.size, [int(group.weight) for group in groups]
    rank = latent_rank(q, q, k, D, rows[0], min(rows))
    if rank > k and not rank_exceeds(groups.foreground, rank):  # repeated features, or repeated rows
        rank = max(feasible_rank(alone(groups.foreground), rank), k)
    return rank


def _most_above_noise(groups: Groups[Moments], enough: float = CAP - SPARE) -> tuple[int, tuple[Strongest, ...]]:
    """The larger count of the groups, from `enough` on a lower bound; and what products found on the way.

    The fewer rows, the less a spectrum costs; but products of the foreground serve the fit.
    """
    q, found, products = 0, [], by_products(groups)
    for group in groups if products else sorted(groups, key=lambda group: group.weight):
        if q >= enough:  # then the others do not matter any more
            break
        if products:
            found.append(strongest(group, min(math.ceil(enough), group.scatter.size - 1)))
            q = max(q, found[-1].values.size)
        else:
            q = max(q, dimensions_above_noise(group))
    return q, tuple(found)


def in_best_units(data: Complete | Incomplete, tables: Tables, d: int, solver: str) -> Complete | Incomplete:
    """Data in the units given, in those in which their noise has a plateau, and with the reason (F41)."""
    rows = min(group.weight for group in data.groups)
    most = most_above_noise(data.groups.foreground.mean.size, rows, rows)
    many, bound = MANY * most, NEARLY_ALL * most
    if isinstance(data, Complete):
        q, found = _most_above_noise(data.groups, many)
        counts: tuple[int, ...] = (q,)
        if q >= many:
            with unwarned():
                data = pooled(data, tables, d, solver)
            q, found = _most_above_noise(data.groups, bound)
            counts += (q,)
        data = replace(data, strongest=found)
    else:
        counts = (_most_above_wider_noise(data.groups),)
        if counts[0] >= many:
            with unwarned():
                data = collect_incomplete(tables, "pooled")
            counts += (_most_above_wider_noise(data.groups),)
    return replace(data, plateau=Plateau(counts, bound))


def few_directions(data: Complete, latents: Latents, gamma: float | None) -> Complete:
    """Data whose groups are rows and no matrix in the coordinates of few directions: those that are shown, and strong
    ones for the model (F49)."""
    latents = settled(data.plateau, latents)
    varies = any(group.total_variance() > 0 for group in data.groups.backgrounds)
    if not varies or not latents.contrast_axes or not by_products(data.groups):
        return data
    k, D = latents.n_shown, data.groups.foreground.mean.size
    found = list(data.strongest or _most_above_noise(data.groups)[1])
    q = max(own.values.size for own in found)
    most = [k + CAP] * len(found) + [FLOOR_VALUES] * (len(data.groups) - len(found))
    for group in list(data.groups)[len(found) :]:  # the floor, too, depends on what is strong in the background
        found.append(strongest(group, FLOOR_VALUES, 5 * BLOCK))

    def ratios(groups: Groups[Moments]) -> Equations:
        share = floor_share(groups)
        axes = ratio_axes(groups, max(k, BLOCK), share)
        assert axes is not None
        floor = share * float(mixture(groups) @ [group.total_variance() for group in groups.backgrounds]) / D
        return Equations(axes[1], axes[0], floor, np.zeros(axes[0].size), k)

    def eigenvectors(groups: Groups[Moments]) -> Equations:
        r = latents.n_latent or max(q + SPARE + k, BLOCK)
        strength = latents.auto_fraction * pcpca_limit(groups, r)[0] if gamma is None else gamma
        top = top_eigenpairs(contrast(groups, strength), r)
        return Equations(top.vectors, np.full(r, strength), 0.0, top.values / groups.foreground.weight, max(q, 1))

    equations = ratios if latents.axes == "ratio" else eigenvectors
    return in_strongest(data, [own.first(count) for own, count in zip(found, most, strict=True)], equations)


def feasible_rank(C: Contrast, r: int) -> int:
    """The largest number of latent dimensions, at most r, for which the contrast has a solution; 0 if there is none."""
    if C.N <= EPS * C.n_foreground:
        return 0
    left = C.trace - np.cumsum(top_eigenpairs(C, r).values)  # f of F3 for 1, ..., r dimensions
    return int(np.max(np.flatnonzero(left > C.rounding) + 1, initial=0))


def masked_rank(groups: Groups[MaskedGroup], k: int) -> int:
    """The same for incomplete rows, from estimated moments (F24), and at most k + 10: every fit is iterative.

    Rows count as often as they have both of two features, and a row can hold only fewer dimensions than values.
    """
    q = max(dimensions_above_noise(estimated_moments(group), missing_edge(group)) for group in groups)
    values = min(int(group.cells / group.weight) for group in groups)
    rows = [int(group.pairs_per_entry) for group in groups]
    rank = latent_rank(q, q, k, values, rows[0], min(rows))
    return min(rank, k + MASKED_SPARE)


def _most_above_wider_noise(groups: Groups[MaskedGroup]) -> int:
    """The larger count of incomplete groups whose noise is as wide as that of the rows in which two features are seen.

    Unlike the count of F24 it does not allow for what missing values make of the signal, which would hide all but the
    largest of many dimensions.
    """
    moments = groups.map(lambda group: replace(estimated_moments(group), weight=float(group.pairs_per_entry)))
    return max(map(dimensions_above_noise, moments))


def dimensions_above_noise(group: Moments, more: float = 0.0) -> int:
    """Number of dimensions of a group that stand out from its noise, and from what is `more` than that (F16)."""
    return _values_above_noise(group, more).size


def _values_above_noise(group: Moments, more: float = 0.0) -> Array:
    """The largest eigenvalues of the scatter that stand out from the noise, and from what is `more` than that."""
    C = alone(group)
    for look in LOOKS if is_iterated(C, LOOKS[0]) else LOOKS[-1:]:
        count = min(look, C.size - 1)
        values = top_eigenvalues(C, count)
        found = noise_rank(values, group.weight, C.n_features, C.trace, more=more)
        if found < count or count < look:
            break
    return values[:found]
