"""What a solver reports: values on success, a reason on failure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .._array import Array


class Status(Enum):
    """How a closed-form solution came out."""

    OK = "solved"
    NO_ROWS_LEFT = "N = n (1 - gamma') is not positive"
    NO_NOISE_LEFT = "the eigenvalues beyond the first d do not sum to a positive noise variance"
    NOT_POSITIVE = "fewer than d eigenvalues of C are positive"


@dataclass(frozen=True)
class Solution:
    """Length of each loading vector and the noise variance; meaningless unless the status is OK.

    Attributes
    ----------
    status : Status
    lengths : ndarray of shape (d,)
        Norms of the columns of W = U diag(lengths).
    sigma2 : float
    """

    status: Status
    lengths: Array
    sigma2: float
