"""What a closed-form solver reports."""

from __future__ import annotations

from dataclasses import dataclass

from .._array import Array


@dataclass(frozen=True)
class Solution:
    """Length of each loading vector and the noise variance; meaningless where not feasible.

    Attributes
    ----------
    feasible : bool
        Whether a maximum exists.
    lengths : ndarray of shape (d,)
        Norms of the columns of W = U diag(lengths).
    sigma2 : float
    """

    feasible: bool
    lengths: Array
    sigma2: float
