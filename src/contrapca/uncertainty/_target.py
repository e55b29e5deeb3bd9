"""The Gibbs posterior of PCPCA: its density from (N, C), and when it is one (F12)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import TINY, Array
from ..exceptions import ImproperPosteriorError, warn
from ..solvers import closed_form


@dataclass(frozen=True)
class GibbsTarget:
    """log pi(W, sigma2) = w l(W, sigma2), the prior being flat in (W, sigma2), sigma2 >= sigma2_min.

    l depends on the rows through N and C only (F5), and on C, for V = Q'W, only through its eigenvalues.

    Attributes
    ----------
    N : float
        Effective number of rows, n (1 - gamma).
    values : ndarray of shape (D,)
        Eigenvalues of C, descending.
    d : int
    power : float
        w.
    sigma2_min : float
    n_rows : float or None
        n, to say which gamma would do.
    """

    N: float
    values: Array
    d: int
    power: float = 1.0
    sigma2_min: float = 0.0
    n_rows: float | None = None

    @property
    def noise_sum(self) -> float:
        """S = sum of all but the d largest eigenvalues: N (D - d) times the estimate of sigma2."""
        return float(self.values[self.d :].sum())

    @property
    def surplus(self) -> float:
        """w N - (D + d - 1): positive for a proper posterior, above 2 p for E[A^p] to exist."""
        return self.power * self.N - (self.values.size + self.d - 1)

    def check(self) -> None:
        """Refuse an improper posterior; warn where its moments do not exist (F12).

        Proper if w N > D + d - 1 and (S > 0 or sigma2_min > 0); E[A^p] exists iff w N > D + d - 1 + 2 p.
        """
        D, w = self.values.size, self.power
        if self.surplus <= 0:
            raise ImproperPosteriorError(
                f"The posterior is improper: power * N = {w * self.N:.6g}, with N = n (1 - gamma) = "
                f"{self.N:.6g}, must exceed D + d - 1 = {D + self.d - 1} for {D} features and {self.d} latent "
                f"dimensions, or its total mass is infinite. {self._way_out()}a power above "
                f"{(D + self.d - 1) / self.N:.4g}, fewer features, or bootstrap()."
            )
        if self.noise_sum <= 0 and self.sigma2_min <= 0:
            raise ImproperPosteriorError(
                "The posterior is improper: the noise variance would concentrate at 0, since the smallest eigenvalues "
                f"of C add up to {self.noise_sum:.4g}. Use a smaller gamma or n_components, or sigma2_min above 0."
            )
        missing = [power for power in (1, 2) if self.surplus <= 2 * power]
        if missing:
            what = "means and variances" if 1 in missing else "variances"
            warn(
                f"The posterior is proper, but its {what} of A do not exist: power * N = {w * self.N:.6g} does "
                f"not exceed D + d - 1 + {2 * missing[0]} = {D + self.d - 1 + 2 * missing[0]}. Quantiles still mean "
                "something; a smaller gamma or fewer components help."
            )

    def _way_out(self) -> str:
        """Which gamma, or how many latent dimensions, would make the posterior proper."""
        D, w = self.values.size, self.power
        gamma = -1.0 if self.n_rows is None else 1 - (D + self.d - 1) / (w * self.n_rows)
        most = int(np.ceil(w * self.N - D + 1)) - 1
        text = f"Use gamma below {gamma:.4g}, " if gamma > 0 else "Use "
        return text + (f"n_latent={most} or less, " if most >= 1 else "")

    def mode(self) -> tuple[Array, float]:
        """The maximum of l in the eigenbasis, (V, sigma2), shape (D, d) (F2), sigma2 kept above its minimum."""
        D, d = self.values.size, self.d
        floor = max(1.01 * self.sigma2_min, TINY)
        lengths, sigma2 = closed_form(self.values[:d], self.noise_sum, self.N, D, least_sigma2=floor)
        V = np.zeros((D, d))
        V[np.arange(d), np.arange(d)] = np.maximum(lengths, 1e-3 * np.sqrt(sigma2))
        return V, sigma2
