"""Whether observed values determine the noise variance (F25)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from .._util.arrays import Array
from ..moments import MaskedGroup

LSQR_TOLERANCE, LSQR_STEPS = 1e-10, 2000
MISFIT = 1e-4  # relative residual above which the equations have no solution


def noise_is_determined(group: MaskedGroup, W: Array) -> bool:
    """Whether no change of W makes up for one of sigma2 in the covariance A_o of every row (F25).

    A row with more than d observed values suffices: sigma2 is the smallest eigenvalue of its A_o. Otherwise sigma2 is
    arbitrary if there are changes v_j of the loadings w_j of the features with w_j'v_k + w_k'v_j = -1 for j = k, and 0
    for j != k, for all features j, k that are observed together.

    Parameters
    ----------
    group : MaskedGroup
    W : (D, d) ndarray
    """
    D, d = W.shape
    if np.any(group.by_count[d + 1 :] > 0) or group.rows is None:
        return True
    j, k = np.nonzero(np.triu(group.rows.together()))
    # One equation for each pair, with unknowns v (D, d) row by row; equal features meet twice.
    equation, unknown = np.repeat(np.arange(j.size), d), np.arange(d)
    entries = np.concatenate([W[k].ravel(), W[j].ravel()])
    places = np.concatenate([(j[:, None] * d + unknown).ravel(), (k[:, None] * d + unknown).ravel()])
    equations = sp.csr_array((entries, (np.tile(equation, 2), places)), shape=(j.size, D * d))
    wanted = -(j == k).astype(float) * float(np.mean(W**2))  # of order one, whatever the units
    misfit = lsqr(equations, wanted, atol=LSQR_TOLERANCE, btol=LSQR_TOLERANCE, iter_lim=LSQR_STEPS)[3]
    return bool(misfit > MISFIT * np.linalg.norm(wanted))
