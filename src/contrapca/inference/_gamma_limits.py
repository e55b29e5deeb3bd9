"""All limits and bounds of gamma as one table: the exact ones (F3), and the sufficient bounds of the paper (F4)."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.linalg

from .._util.arrays import EPS, Array, host, namespace, on_device
from .._util.checks import SCALES, check_n_components, check_option, generator
from .._util.tables import Table, shown_as_html
from .._util.text import format_gamma, plural
from ..contrast import cpca_limit, pcpca_limit
from ..data import adjusted_tables, study_of
from ..exceptions import SolverError, warn
from ..missing import Incomplete, collect, masked_bound
from ..moments import MAX_DENSE, DenseScatter, Moments, RowScatter, check_solver_of, mixed_background, rounding_variance


def gamma_limits(
    X: Any,
    *,
    background: Any = None,
    n_components: int = 2,
    scale: str | None = None,
    solver: str = "auto",
) -> GammaLimits:
    """Limits of gamma for a foreground and its backgrounds: exact limits and the paper's sufficient bounds.

    Parameters
    ----------
    X : Study, or array-like, data frame or sparse matrix of shape (n, D), or Moments
        A `Study`, whose covariates are regressed out, or the foreground.
    background : array-like, data frame or sparse matrix of shape (m, D), or Moments, or a dict of them, optional
        If `X` is not a Study.
    n_components : int, default 2
    scale, solver
        As for PCPCA.

    Returns
    -------
    GammaLimits
        In gamma' units, with `raw` for raw units; prints as a table. `pcpca` and `cpca` are exact: fits succeed below
        them and fail at or above them. The others are the paper's sufficient bounds: `positive_definite`,
        `leading_positive` (safe for CPCA), `noise_positive` and the sharper `noise_positive_sharp` (safe for PCPCA).
        With missing values, `pcpca` is only an upper bound, at or above which fits certainly fail (`is_bound` is True),
        and the others are nan.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import gamma_limits
    >>> rng = np.random.default_rng(0)
    >>> limits = gamma_limits(rng.normal(size=(90, 6)), background=rng.normal(size=(80, 6)), n_components=1)
    >>> limits.noise_positive <= limits.noise_positive_sharp <= limits.pcpca <= 1
    True
    """
    check_option(scale, "scale", SCALES)
    study = study_of(X, background, "gamma_limits", designs=True)
    check_solver_of(study.rows.foreground, solver)
    tables = adjusted_tables(study)
    d = check_n_components(n_components, tables.n_features)
    data = collect(tables, d, scale, solver)
    ratio = sum(own.weight for own in data.scaling.backgrounds) / data.scaling.foreground.weight
    if isinstance(data, Incomplete):
        bound, nan = masked_bound(data.groups, d, generator(0)), math.nan
        return GammaLimits(bound, nan, nan, nan, nan, nan, n_components=d, ratio=ratio, is_bound=True)
    groups = data.groups
    several = len(groups.backgrounds) > 1 and groups.foreground.scatter.size > MAX_DENSE
    background = None if several else _spectrum(mixed_background(groups))
    bounds = _sufficient_bounds(_spectrum(groups.foreground), background, d)
    try:
        of_cpca = cpca_limit(groups, d)
    except SolverError as error:
        warn(str(error))
        of_cpca = math.nan
    return GammaLimits(pcpca_limit(groups, d)[0], of_cpca, *bounds, n_components=d, ratio=ratio)


@dataclass(frozen=True)
class GammaLimits:
    """Limits and bounds of gamma, all in gamma' units; `raw` has them in the paper's raw units.

    If rows and features are both above 8000, the sufficient bounds are nan, as the spectra they need are too large, and
    so is CPCA's limit if the search for it does not converge (with a warning).

    Attributes
    ----------
    pcpca : float
        Exact limit of PCPCA, at most 1.
    cpca : float
        Exact limit of CPCA; may be inf.
    positive_definite : float
        Below it C is positive definite (sufficient): mu_D / rho_1.
    leading_positive : float
        Below it the first d eigenvalues of C are positive (sufficient; the paper's Theorem 2).
    noise_positive : float
        Below it sigma2 > 0 (sufficient; the paper's remark): sum_{i>d} mu_i / ((D - d) rho_1).
    noise_positive_sharp : float
        Likewise and sharper: sum_{i>d} mu_i / sum_{i<=D-d} rho_i.
    n_components : int
    ratio : float
        m / n: gamma_raw = gamma' / ratio.
    is_bound : bool
        Whether `pcpca` is only an upper bound on the limit, and the others are unknown (nan), because values are
        missing.
    """

    pcpca: float
    cpca: float
    positive_definite: float
    leading_positive: float
    noise_positive: float
    noise_positive_sharp: float
    n_components: int
    ratio: float
    is_bound: bool = False

    @property
    def gamma(self) -> dict[str, float]:
        """Every limit by name, in gamma' units."""
        names = [field.name for field in fields(self)]
        return {name: getattr(self, name) for name in names if name not in ("n_components", "ratio", "is_bound")}

    @property
    def raw(self) -> dict[str, float]:
        """Every limit by name, as gamma_raw = gamma' n / m."""
        return {name: value / self.ratio for name, value in self.gamma.items()}

    def table(self) -> Table:
        """One row per limit: its name, and its value in gamma' and in raw units."""
        values = [np.array(list(limits.values())) for limits in (self.gamma, self.raw)]
        return Table({"limit": np.array(list(self.gamma), dtype=object), "gamma": values[0], "raw": values[1]})

    def _repr_html_(self) -> str:
        about = f"Limits of gamma with {plural(self.n_components, 'component')}"
        return shown_as_html(about + ("; pcpca is an upper bound: values are missing" * self.is_bound), self.table())

    def __str__(self) -> str:
        lines = [f"{f'n_components={self.n_components}':<22}{'gamma':>12}{'raw':>12}"]
        for name, value in self.gamma.items():
            mark = " (upper bound: values are missing)" if self.is_bound and name == "pcpca" else ""
            lines.append(f"{name:<22}{format_gamma(value):>12}{format_gamma(self.raw[name]):>12}{mark}")
        return "\n".join(lines)


def _spectrum(group: Moments) -> Array | None:
    """All D eigenvalues of the covariance, descending, with rounding errors set to 0; None if too expensive."""
    scatter, D = group.scatter, group.mean.size
    if isinstance(scatter, DenseScatter):
        matrix = scatter.matrix
    else:
        assert isinstance(scatter, RowScatter)
        if min(scatter.rows.shape) > MAX_DENSE:
            return None
        matrix = scatter.gram if scatter.rows.shape[0] < D else scatter.dense()
    values = np.zeros(D)
    found = host(namespace(matrix).linalg.eigvalsh(matrix)) if on_device(matrix) else scipy.linalg.eigvalsh(matrix)
    found = found[::-1][:D] / group.weight
    values[: found.size] = found
    values[values <= max(4 * EPS * D * values[0], rounding_variance(group))] = 0.0
    return values


def _sufficient_bounds(mu: Array | None, rho: Array | None, d: int) -> tuple[float, float, float, float]:
    """The bounds of F4 from the spectra mu of cov_X and rho of cov_Y."""
    if mu is None or rho is None:
        return (math.nan,) * 4
    D = mu.size
    tail = float(mu[d:].sum())
    weyl = [ratio for j in range(D - d + 1) if (ratio := _ratio(mu[d - 1 + j], rho[j])) is not None]
    return (
        _ratio(mu[-1], rho[0]) or 0.0,
        max(weyl, default=0.0),
        min(1.0, _ratio(tail, (D - d) * rho[0]) or 0.0),
        min(1.0, _ratio(tail, float(rho[: D - d].sum())) or 0.0),
    )


def _ratio(numerator: float, denominator: float) -> float | None:
    """numerator / denominator, with x / 0 = inf; None, to be skipped, for 0 / 0."""
    if denominator > 0:
        return float(numerator / denominator)
    return math.inf if numerator > 0 else None
