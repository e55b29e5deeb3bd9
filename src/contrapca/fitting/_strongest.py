"""Fits inside few directions, found by products with blocks of vectors, where groups are rows and no matrix (F49)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._util.arrays import Array
from ..groups import Groups
from ..moments import Complete, InnerScatter, Moments, RowScatter, Subspace, mixture
from ..solvers import BLOCK, LOOSE, Directions, noise_edges, random_block

GROWTH = 1.15  # of the searched space between two looks at it, of which each solves a small eigenproblem
ACCURACY = 5e-3  # of what is shown: the residual of its equation, in parts of its largest term
FOUND = 0.1  # residual of a value beyond those that stand out, in parts of it, above which the search goes on
MOST = 1000  # directions to search
LEAST_ORDER = 1500  # of matrices: some 300 directions are searched, and all eigenpairs of smaller ones cost little


@dataclass(frozen=True)
class Equations:
    """A v = s (B + t I) v + l v in some coordinates, for vectors v of unit length.

    Attributes
    ----------
    vectors : ndarray of shape (p, j)
    strengths : ndarray of shape (j,)
        s.
    floor : float
        t.
    values : ndarray of shape (j,)
        l.
    wanted : int
        How many vectors, the first, are wanted; the others only show where to search.
    """

    vectors: Array
    strengths: Array
    floor: float
    values: Array
    wanted: int

    def residuals(self, search: Directions, groups: Groups[Moments]) -> Array:
        """What is left of the equations outside the directions that were searched, in parts of A v, shape (D, j)."""
        foreground, *backgrounds = (
            (image @ self.vectors) / group.weight for image, group in zip(search.images, groups, strict=True)
        )
        V, below = search.basis @ self.vectors, np.tensordot(mixture(groups), backgrounds, 1)
        left = foreground - self.strengths * (below + self.floor * V) - self.values * V
        return left / np.linalg.norm(foreground, axis=0)


def by_products(groups: Groups[Moments]) -> bool:
    """Whether to look for few directions by products: groups are rows, or matrices so large that they are a few."""
    return all(
        isinstance(group.scatter, RowScatter)
        or (group.scatter.size >= LEAST_ORDER and isinstance(group.scatter.dense(), np.ndarray))
        for group in groups
    )


@dataclass(frozen=True)
class Strongest:
    """What stands out from a group's noise, and the directions that were found on the way.

    Attributes
    ----------
    values : ndarray of shape (q,)
        The largest eigenvalues of the scatter that stand out.
    vectors, images : ndarray of shape (D, p)
        Strong directions, the strongest first, orthonormal, and S times these.
    """

    values: Array
    vectors: Array
    images: Array

    def first(self, count: int) -> Strongest:
        """With no more than so many directions."""
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
        above = values[: edges.size] > edges
        q = edges.size if above.all() else int(above.argmin())
        if q == count or looked >= most:
            break
        if q < edges.size:
            own, image = search.lifted(coordinates[:, q : q + 1])
            residual = float(np.linalg.norm(image - values[q] * own))
            # A residual that is large says little of the eigenvalues that were not found.
            if residual <= min(max(edges[q] - values[q], LOOSE * values[q]), FOUND * values[q]):
                break
    return Strongest(values[:q], *search.lifted(coordinates[:, : count + BLOCK]))


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

    Inside what was searched they are solved exactly. What is left of them outside, the residuals, are the directions
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
    return replace(data, groups=inside(search, groups), basis=Subspace(search.basis.copy()), strongest=())
