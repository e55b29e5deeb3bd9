"""Large tables, by few strong directions, which products with blocks of vectors find (F49): dimensions above the noise
are counted among them, which gives models their rank, and fits look nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._util.arrays import Array
from ..data import Groups
from ..moments import Complete, InnerScatter, Moments, RowScatter, Scatter, Subspace, alone, contrast, mixed
from ._axes import CAP, SPARE, count_above, dimensions_above_noise, feasible_rank, latent_rank, noise_edges
from ._eigen import LOOSE, top_eigenpairs
from ._fit import Latents, settled
from ._limits import pcpca_limit, rank_exceeds
from ._path import outside
from ._ratio import floor_share, ratio_axes

BLOCK = 16  # vectors at a time
CANCELLED = 1e-3  # if a unit vector is nearer to a basis than this, rounding errors need a second step
GROWTH = 1.15  # of the searched space between two looks at it, since each look solves a small eigenproblem
ACCURACY = 5e-3  # of the axes shown: the residual of their equation, in parts of its largest term
FOUND = 0.1  # residual of a value beyond those that stand out, in parts of it, above which the search goes on
MOST = 1000  # directions to search
FLOOR_VALUES = 32  # eigenvalues of the background that may be so large that the floor depends on them
LEAST_ORDER = 1500  # of matrices: some 300 directions are searched, and all eigenpairs of smaller ones cost little


class Directions:
    """An orthonormal basis that grows, and what scatter matrices make of it.

    Sparse float32 rows are multiplied in float32, so images are right to some six digits.
    """

    def __init__(self, scatters: Sequence[Scatter]):
        self.scatters, self.size = scatters, 0
        self._arrays = np.empty((1 + len(scatters), 8 * BLOCK, scatters[0].size))  # transposed: the basis, and images
        self.inner = [np.empty((0, 0)) for _ in scatters]  # Q'S Q of each scatter

    @property
    def basis(self) -> Array:
        """Q, shape (D, p)."""
        return self._arrays[0, : self.size].T

    @property
    def images(self) -> list[Array]:
        """S Q of each scatter, shape (D, p)."""
        return [own[: self.size].T for own in self._arrays[1:]]

    def add(self, vectors: Array, images: Array | None = None) -> bool:
        """Add what of the vectors is new; whether anything was. `images` are those of the first scatter, if they are
        known of orthonormal vectors from which the search starts."""
        new = _outside(self.basis, vectors) if images is None else vectors
        before, self.size = self.size, self.size + new.shape[1]
        while self.size > self._arrays.shape[1]:
            self._arrays = np.concatenate([self._arrays, np.empty_like(self._arrays)], axis=1)
        self._arrays[0, before : self.size] = new.T
        known = [] if images is None else [images]
        for scatter in self.scatters[len(known) :]:
            known.append(scatter.coarse_matmul(new) if isinstance(scatter, RowScatter) else scatter.matmul(new))
        # The basis is read once for all: blocks are so narrow that this takes nearly as long as their products.
        columns = self.basis.T @ np.hstack(known)
        for k, image in enumerate(known):
            self._arrays[1 + k, before : self.size] = image.T
            own, inner = columns[:, k * new.shape[1] : (k + 1) * new.shape[1]], np.empty((self.size, self.size))
            inner[:before, :before] = self.inner[k]
            inner[:, before:], inner[before:] = own, own.T
            self.inner[k] = inner
        return bool(new.size)

    def lifted(self, coordinates: Array) -> tuple[Array, Array]:
        """Vectors Q z, and their images under the first scatter, shape (D, k) each."""
        return self.basis @ coordinates, self.images[0] @ coordinates


def _outside(basis: Array, vectors: Array) -> Array:
    """Orthonormal directions of vectors of any lengths outside the basis."""
    lengths = np.linalg.norm(vectors, axis=0)
    rest = vectors[:, lengths > 0] / lengths[lengths > 0]
    rest -= basis @ (basis.T @ rest)
    if basis.shape[1] and np.min(np.linalg.norm(rest, axis=0), initial=1.0) < CANCELLED:
        rest -= basis @ (basis.T @ rest)
    Q, triangle = np.linalg.qr(rest)
    if np.min(np.abs(np.diagonal(triangle)), initial=1.0) > CANCELLED:
        return Q
    return outside(basis, rest)


def random_block(size: int) -> Array:
    """Any vectors to start from, always the same."""
    return np.random.default_rng(0).standard_normal((size, min(BLOCK, size)))


@dataclass(frozen=True)
class Equations:
    """A v = s (B + t I) v + l v in some coordinates, for vectors v of unit length."""

    vectors: Array  # (p, j)
    strengths: Array  # (j,): s
    floor: float  # t
    values: Array  # (j,): l
    wanted: int  # how many vectors, the first, are wanted; the others only show where to search

    def residuals(self, search: Directions, groups: Groups[Moments]) -> Array:
        """The residuals of the equations outside the directions searched, in parts of A v, shape (D, j)."""
        images = groups.like(search.images).map(lambda image, group: (image @ self.vectors) / group.weight, groups)
        V, above = search.basis @ self.vectors, images.foreground
        left = above - self.strengths * (mixed(groups, images) + self.floor * V) - self.values * V
        return left / np.linalg.norm(above, axis=0)


def by_products(groups: Groups[Moments]) -> bool:
    """Whether to look for few directions by products: groups are rows, or matrices so large that they are a few."""
    return all(
        isinstance(group.scatter, RowScatter)
        or (group.scatter.size >= LEAST_ORDER and isinstance(group.scatter.dense(), np.ndarray))
        for group in groups
    )


@dataclass(frozen=True)
class Strongest:
    """What stands out from a group's noise, and the directions that were found on the way."""

    values: Array  # (q,): the largest eigenvalues of the scatter that stand out
    vectors: Array  # (D, p): strong directions, the strongest first, orthonormal
    images: Array  # (D, p): S times these

    def first(self, count: int) -> Strongest:
        """With at most this many directions."""
        return replace(self, vectors=self.vectors[:, :count], images=self.images[:, :count])


def strongest(group: Moments, count: int, most: int = MOST) -> Strongest:
    """The largest eigenvalues of the scatter that stand out from the noise, of at most `count`.

    Ritz values are lower bounds, and so is their number: it ends the search if it is `count`. Otherwise the next value
    must be below its edge by more than its residual, or `most` directions be searched.
    """
    search, looked, block = Directions([group.scatter]), 0, random_block(group.scatter.size)
    grown = True
    while grown:
        grown = search.add(block)  # if not, the space of the rows is exhausted
        block = search.images[0][:, -BLOCK:]
        if grown and search.size < min(GROWTH * looked, most):
            continue
        looked = search.size
        values, coordinates = (found[..., ::-1] for found in np.linalg.eigh(search.inner[0]))
        edges = noise_edges(values[:count], group.weight, group.mean.size, group.scatter.trace)
        q = count_above(values, edges)
        if q == count or looked >= most:
            break
        if q < edges.size:
            own, image = search.lifted(coordinates[:, q : q + 1])
            residual = float(np.linalg.norm(image - values[q] * own))
            # A residual that is large says little of the eigenvalues that were not found.
            if residual <= min(max(edges[q] - values[q], LOOSE * values[q]), FOUND * values[q]):
                break
    return Strongest(values[:q], *search.lifted(coordinates[:, : count + BLOCK]))


def count_above_noise(groups: Groups[Moments], enough: float = CAP - SPARE) -> tuple[int, tuple[Strongest, ...]]:
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


def automatic_rank(data: Complete, k: int) -> int:
    """Number of latent dimensions of a model that shows k of them, from the spectra of the groups (F16)."""
    groups = data.groups
    if data.plateau is not None and data.plateau.axes == "ratio":
        q = CAP  # the noise has no end, and the count is only a lower bound
    else:
        q = count_above_noise(groups)[0] if data.plateau is None else data.plateau.counts[-1]
    D, rows = groups.foreground.mean.size, [int(group.weight) for group in groups]
    rank = latent_rank(q, q, k, D, rows[0], min(rows))
    if rank > k and not rank_exceeds(groups.foreground, rank):  # repeated features, or repeated rows
        rank = max(feasible_rank(alone(groups.foreground), rank), k)
    return rank


def few_directions(data: Complete, latents: Latents, gamma: float | None) -> Complete:
    """Data whose groups are rows and no matrix in the coordinates of few directions: those that are shown, and strong
    ones for the model (F49)."""
    latents = settled(data.plateau, latents)
    varies = any(group.total_variance() > 0 for group in data.groups.backgrounds)
    if not varies or not latents.contrast_axes or not by_products(data.groups):
        return data
    k, D = latents.n_shown, data.groups.foreground.mean.size
    found = list(data.strongest or count_above_noise(data.groups)[1])
    q = max(own.values.size for own in found)
    most = [k + CAP] * len(found) + [FLOOR_VALUES] * (len(data.groups) - len(found))
    for group in list(data.groups)[len(found) :]:  # the floor, too, depends on strong directions of the background
        found.append(strongest(group, FLOOR_VALUES, 5 * BLOCK))

    def ratios(groups: Groups[Moments]) -> Equations:
        share = floor_share(groups)
        axes = ratio_axes(groups, max(k, BLOCK), share)
        assert axes is not None
        floor = share * float(mixed(groups, groups.map(Moments.total_variance))) / D
        return Equations(axes[1], axes[0], floor, np.zeros(axes[0].size), k)

    def eigenvectors(groups: Groups[Moments]) -> Equations:
        r = latents.n_latent or max(q + SPARE + k, BLOCK)
        strength = latents.auto_fraction * pcpca_limit(groups, r)[0] if gamma is None else gamma
        top = top_eigenpairs(contrast(groups, strength), r)
        return Equations(top.vectors, np.full(r, strength), 0.0, top.values / groups.foreground.weight, max(q, 1))

    equations = ratios if latents.axes == "ratio" else eigenvectors
    return in_strongest(data, [own.first(count) for own, count in zip(found, most, strict=True)], equations)


def inside(search: Directions, groups: Groups[Moments]) -> Groups[Moments]:
    """The groups in the coordinates of the directions that were searched."""
    matrices = groups.like(search.inner)
    return groups.map(
        lambda group, own: replace(group, scatter=InnerScatter((own + own.T) / 2, group.scatter.trace)), matrices
    )


def in_strongest(
    data: Complete, found: Sequence[Strongest], equations: Callable[[Groups[Moments]], Equations]
) -> Complete:
    """The data in the coordinates of few directions: the strongest of the groups, the foreground's first, and those
    that solve some equations.

    Inside the directions searched they are solved exactly. The residuals, which are outside, are the directions
    to search next, as in the methods of Lanczos and Davidson.
    """
    groups = data.groups
    search = Directions([group.scatter for group in groups])
    foreground, *others = found
    search.add(foreground.vectors, foreground.images)
    search.add(np.hstack([other.vectors for other in others]))
    while search.size < MOST:
        asked = equations(inside(search, groups))
        residuals = asked.residuals(search, groups)
        left = np.linalg.norm(residuals, axis=0) > ACCURACY
        if not left[: asked.wanted].any() or not search.add(residuals[:, np.argsort(~left, kind="stable")[:BLOCK]]):
            break
    # Few rows are in coordinates of their span already.
    basis = search.basis.copy() if data.basis is None else data.vectors(search.basis)
    return replace(data, groups=inside(search, groups), basis=Subspace(basis), strongest=())
