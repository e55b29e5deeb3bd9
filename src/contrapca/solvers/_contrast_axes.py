"""Contrast axes: how many latent dimensions a contrast needs, and which of them to show (F16).

Everything here works on eigenvalues and r x r matrices; nothing depends on the number of rows, and only the spectrum on
the number of features. The constants follow from the study of directions (docs/math.md), in which neighbouring values
do as well.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._util.arrays import EPS, Array
from ..subspaces import canonical_signs

EDGE = 2.02  # .99 quantile of the Tracy-Widom law (beta = 1): noise alone exceeds its edge once in a hundred tables
SPARE = 1  # latent dimensions beyond those that the edges count and those that are shown
CAP = 50  # maximum number beyond those that are shown: noise that is not white exceeds any edge
RATIO = 3.0  # the floor of the background's variance is lowered only if the last axis has a smaller ratio
PLATEAU = 0.75  # fraction of the possible dimensions above the noise from which there is no noise to be seen
DEAD = 1e-7  # a latent dimension shorter than this, in units of its standard deviation, is the rounding error of zero


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


def noise_outside(total: float, inside: Array, n_features: int) -> float:
    """Mean variance in the dimensions outside a subspace, from the total and the covariance (r, r) inside."""
    return max(total - float(np.trace(inside)), 0.0) / (n_features - inside.shape[0])


def contrast_axes(
    a: npt.ArrayLike, b: npt.ArrayLike, nu_x: float, nu_y: float, k: int, *, earlier: Array | None = None
) -> tuple[Array, Array]:
    """Directions of a subspace with the largest ratio of foreground to background variance (F16).

    Solves ``a w = theta b_rho w`` for the k largest theta. b_rho is b with its eigenvalues below rho raised to rho:
    with few rows, variances below the background's noise level cannot be trusted. rho starts at that noise level, nu_y.
    This is too high if the background has its own directions outside the subspace, so rho is halved while the k-th
    ratio is below RATIO, down to the smaller of the two groups' noise levels.

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
        Axes of unit length, b_rho-orthogonal. The entry of largest magnitude of each (the first of several) is
        positive.
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
    """Rotation of the latent space whose first axes show given directions of the features (F16).

    The latent mean of a row is ``z = diag(l / (l^2 + sigma2)) U'(x - mu)``, so the projection ``w'U'(x - mu)`` is ``w'
    diag((l^2 + sigma2) / l) z``. The first axis is that vector for w_1, normalised; the others follow by Gram-Schmidt,
    in order. An orthogonal rotation does not change the model's likelihood.

    Parameters
    ----------
    lengths : array_like of shape (r,)
        l, the lengths of the columns of the loadings ``U diag(l)``. If l is zero, the latent does not depend on the
        row, and the entry of w is omitted.
    sigma2 : float
        Noise variance.
    w : array_like of shape (r, k)
        Axes of `contrast_axes`.

    Returns
    -------
    ndarray of shape (r, r)
        R, with ``R'R = I``: the first k columns of ``R'z`` are shown, the others complete the basis. If omitted entries
        make the axes dependent, the dependent ones are replaced by any directions orthogonal to the rest.
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
