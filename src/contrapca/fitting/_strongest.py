"""Fits inside few directions, found by products with blocks of vectors, where groups are rows and no matrix (F49)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .._util.arrays import Array
from ..groups import Groups
from ..moments import Complete, InnerScatter, Moments, RowScatter, Subspace, mixture
from ..solvers import BLOCK, LOOSE, Directions, noise_edges, random_block

GROWTH = 1.2  # of the searched space between two looks at it, of which each solves a small eigenproblem
ACCURACY = 3e-3  # of what is shown: the residual of its equation, in parts of its largest term
MOST = 1000  # directions to search


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
    """Whether groups are rows, of which there are only products."""
    return all(isinstance(group.scatter, RowScatter) for group in groups)


def strongest(group: Moments, count: int, more: float, enough: float) -> tuple[Array, Array]:
    """The largest eigenvalues of the scatter that stand out from the noise (q,), and strong directions (D, p).

    Ritz values are lower bounds, and so is their count: it ends the search once there are `enough`, or all `count`.
    Otherwise the next value must be below its edge by more than its residual.
    """
    search, block, looked = Directions([group.scatter]), random_block(group.scatter.size), 0
    values, q = np.empty(0), 0
    vectors = np.empty((group.scatter.size, 0))
    while search.add(block):
        block = search.images[0][:, -BLOCK:]
        if search.size < GROWTH * looked:
            continue
        looked = search.size
        values, coordinates = (found[..., ::-1] for found in np.linalg.eigh(search.inner[0]))
        edges = noise_edges(values[:count], group.weight, group.mean.size, group.scatter.trace, more=more)
        above = values[: edges.size] > edges
        q = edges.size if above.all() else int(above.argmin())
        vectors = search.basis @ coordinates[:, : count + BLOCK]
        if q >= min(enough, count) or looked >= MOST:
            break
        if q < edges.size and looked > count:
            own, image = search.lifted(coordinates[:, q : q + 1], [1.0])
            residual = float(np.linalg.norm(image - values[q] * own))
            if values[q] + residual < edges[q] or residual <= LOOSE * values[q]:
                break
    return values[:q], vectors


def inside(search: Directions, groups: Groups[Moments]) -> Groups[Moments]:
    """The groups in the coordinates of the directions that were searched."""
    matrices = groups.like(search.inner)
    return groups.map(
        lambda group, own: replace(group, scatter=InnerScatter((own + own.T) / 2, group.scatter.trace)), matrices
    )


def in_strongest(data: Complete, equations: Callable[[Groups[Moments]], Equations]) -> Complete:
    """The data in the coordinates of few directions, among them those that solve some equations.

    Inside what was searched they are solved exactly. What is left of them outside, the residuals, are the directions
    to search next, as in the methods of Lanczos and Davidson.
    """
    groups = data.groups
    search = Directions([group.scatter for group in groups])
    block = random_block(groups.foreground.scatter.size) if data.strongest is None else data.strongest
    while search.add(block) and search.size < MOST:
        found = equations(inside(search, groups))
        residuals = found.residuals(search, groups)
        left = np.linalg.norm(residuals, axis=0) > ACCURACY
        if not left[: found.wanted].any():
            break
        block = residuals[:, np.argsort(~left, kind="stable")[:BLOCK]]
    return replace(data, groups=inside(search, groups), basis=Subspace(search.basis.copy()), strongest=None)
