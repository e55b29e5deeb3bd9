"""How many latent dimensions a contrast needs: those that stand out from the noise (F16)."""

from __future__ import annotations

import math

import numpy as np

from .._util.arrays import EPS, Array
from ..data import Groups
from ..moments import Complete, Contrast, Moments, alone
from ._eigen import is_iterated, top_eigenpairs, top_eigenvalues
from ._limits import rank_exceeds
from ._noise import CAP, SPARE, latent_rank, noise_rank
from ._strongest import Strongest, by_products, strongest

# Eigenvalues that the rank rule considers: more than 50 would not count. If each costs products, the first few are
# tried first: they are enough for most tables.
LOOKS = (12, 51)


# Of all dimensions that may be counted, those that stand out from the noise. From half of them on, features are put in
# common units: where that was so, contrast axes of such features were never worse (F41). From nine tenths on there is
# hardly a dimension left to tell what noise is.
MANY, NEARLY_ALL = 0.5, 0.9


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


def feasible_rank(C: Contrast, r: int) -> int:
    """The largest number of latent dimensions, at most r, for which the contrast has a solution; 0 if there is none."""
    if C.N <= EPS * C.n_foreground:
        return 0
    left = C.trace - np.cumsum(top_eigenpairs(C, r).values)  # f of F3 for 1, ..., r dimensions
    return int(np.max(np.flatnonzero(left > C.rounding) + 1, initial=0))


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
