"""How many dimensions stand out from the noise, and how many a model needs for them (F16)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._util.arrays import EPS, Array
from ..moments import Contrast, Moments, alone
from ._eigen import is_iterated, top_eigenpairs, top_eigenvalues

EDGE = 2.02  # .99 quantile of the Tracy-Widom law (beta = 1): noise alone exceeds its edge once in a hundred tables
SPARE = 1  # latent dimensions beyond those that the edges count and those that are shown
CAP = 50  # maximum number beyond those that are shown: noise that is not white exceeds any edge
PLATEAU = 0.75  # with this fraction of the possible dimensions above it, or more, the noise cannot be seen

# Eigenvalues that the rank rule considers: more than 50 would not count. If each costs products, the first few are
# tried first: they are enough for most tables.
LOOKS = (12, 51)

# Of all dimensions that may be counted, those that stand out from the noise. From half of them on, features are put in
# common units: where that was so, contrast axes of such features were never worse (F41). From nine tenths on there is
# hardly a dimension left to tell what noise is.
MANY, NEARLY_ALL = 0.5, 0.9


def noise_rank(
    values: npt.ArrayLike, n_rows: float, n_features: int, trace: float | None = None, *, more: float = 0.0
) -> int:
    """Number of eigenvalues above the edge of the remaining noise (F16).

    Starting with the largest, each eigenvalue is compared with the Tracy-Widom edge of white noise in the remaining
    dimensions and degrees of freedom, with the mean of the remaining eigenvalues as its variance. The first that does
    not exceed its edge ends the count.

    Parameters
    ----------
    values : array_like of shape (p,)
        Eigenvalues of the centred *scatter* matrix, descending: all `n_features` of them, or only the largest if
        `trace` is given.
    n_rows : float
        Rows of the group.
    n_features : int
        D.
    trace : float, optional
        Trace of the scatter matrix; None means the sum of `values`, which must then be the full spectrum.
    more : float, default 0
        Added to every edge: what missing values add to the noise (F24).

    Returns
    -------
    int
        At most p, and at most ``min(n_rows - 1, D) - 1``. If all given values exceed their edges, the count is a lower
        bound.
    """
    values = np.asarray(values, dtype=np.float64)
    edges = noise_edges(values, n_rows, n_features, trace, more=more)
    above = values[: edges.size] > edges
    return edges.size if above.all() else int(above.argmin())


def noise_edges(
    values: Array, n_rows: float, n_features: int, trace: float | None = None, *, more: float = 0.0
) -> Array:
    """What each eigenvalue must exceed if those before it stand out; arguments as for `noise_rank`.

    Returns
    -------
    ndarray of shape (q,)
        As many as may be counted, at most p.
    """
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
    """Number of dimensions of a group that stand out from its noise, and from what is `more` than that (F16)."""
    C = alone(group)
    for look in LOOKS if is_iterated(C, LOOKS[0]) else LOOKS[-1:]:
        count = min(look, C.size - 1)
        found = noise_rank(top_eigenvalues(C, count), group.weight, C.n_features, C.trace, more=more)
        if found < count or count < look:
            break
    return found


def has_plateau(q: int, n_features: int, n: int, m: int) -> bool:
    """Whether q dimensions above the noise leave enough others to know the noise by (F16).

    Noise that is not white exceeds any edge, so the count runs into its maximum; what lies below it is then no noise.

    Parameters
    ----------
    q : int
        The larger count of the two groups, see `noise_rank`.
    n_features, n, m : int
        D, and the independent rows or blocks of the groups.
    """
    return q < PLATEAU * most_above_noise(n_features, n, m)


def most_above_noise(n_features: int, n: float, m: float) -> float:
    """How many dimensions of groups of n and m rows can be counted as standing out from the noise."""
    return min(n_features - 1, n - 1, m - 1, CAP + 1)


def latent_rank(
    q_x: int,
    q_y: int,
    k: int,
    n_features: int,
    n: int,
    m: int,
    *,
    foreground_rank: int | None = None,
) -> int:
    """Number of latent dimensions r of a model that shows k of them: leaves room for what the groups share (F16).

    Parameters
    ----------
    q_x, q_y : int
        Dimensions above the noise in the foreground and in the background, see `noise_rank`.
    k : int
        Dimensions to show, less than `n_features`.
    n_features : int
        D.
    n, m : int
        Numbers of independent rows of the two groups, or of blocks (donors, animals, plates) if rows come in blocks.
    foreground_rank : int, optional
        Rank of the foreground's scatter matrix. r must stay below it, or no gamma is feasible (F3). None means ``min(n
        - 1, n_features)``; with blocks pass the number of rows minus one.

    Returns
    -------
    int
        ``max(q_x, q_y) + SPARE + k``, limited by k + CAP, half the independent rows of the smaller group, D - 1 and
        foreground_rank - 1; at least k + 1 if the last two allow it, never less than k.
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
