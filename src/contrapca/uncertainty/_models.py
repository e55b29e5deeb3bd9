"""Uncertainty of a fitted model: what the estimators have as the methods `posterior` and `bootstrap`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any, Protocol

from ..fitting import Fit
from ..groups import Tables
from ..moments import Complete, Incomplete, Moments
from ..units import check_same_tables
from ._bootstrap import resample
from ._draws import ContrastPosterior
from ._gibbs import sample_posterior


class FittedModel(Protocol):
    """What is asked of a model: its fit, its parameters, and its tables, checked, when they are passed again."""

    _state: Fit
    _parameters: Mapping[str, Any]

    def _as_fitted(self) -> Any:
        """The model with the parameters of the fit, whatever `set_params` has changed since."""

    def _fitted_groups(self, X: Any, y: Any, background: Any, *beside: Any) -> Tables:
        """The checked tables of the fit."""

    def _fitted_data(self, X: Any, y: Any, background: Any, *beside: Any) -> Complete | Incomplete:
        """Their data in model units."""


def posterior(
    self: FittedModel,
    X: Any,
    y: Any = None,
    *,
    background: Any = None,
    sample_weight: Any = None,
    background_weight: Any = None,
    covariates: Any = None,
    background_covariates: Any = None,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    power: float = 1.0,
    sigma2_min: float = 0.0,
    random_state: Any = None,
    progress: bool = True,
) -> ContrastPosterior:
    """Draw from the Gibbs posterior, whose density is exp(power * objective) under a flat prior; no missing values.

    PPCA and PCPCA: of (W, sigma2), with NUTS; a true posterior for gamma = 0. It depends on the rows only through N and
    C, so its cost does not grow with their number. It exists if power times N = n (1 - gamma) exceeds D + d - 1;
    otherwise an error says what to do. If N is not much larger than D, the flat prior inflates W: trust directions
    (`angles`, `projector`) more than lengths.

    CPCA: of V, a matrix Bingham distribution with density exp(power tr V'C V) on orthonormal frames, which is always
    proper. For one component, draws are exact and independent (`tune` is not used); for more, they come from
    column-wise Gibbs sampling.

    Parameters
    ----------
    X, y, background, sample_weight, background_weight, covariates, background_covariates
        The rows of the fit, as for `fit`, or their Moments.
    draws, tune, chains : int
        Draws kept and discarded in each chain, and chains.
    power : float, default 1.0
        Weight of the data: intervals shrink with its square root. With gamma > 0 no likelihood determines it, and for
        CPCA its unit is 1 / variance of the features, so that 1 is not a natural choice. `contrapca.calibrate_power`
        finds the value at which intervals have the right coverage.
    sigma2_min : float, default 0.0
        Lower bound of the noise variance, in scaled units. CPCA has no noise, and no such argument.
    random_state : None, int, Generator or RandomState
        A seed gives the same draws on any number of cores.
    progress : bool, default True
        Show a progress bar on a terminal or in a notebook if it takes longer than two seconds.

    Returns
    -------
    ContrastPosterior

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import CPCA
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(150, 5))
    >>> draws = CPCA(1, gamma=0.5).fit(X, background=Y).posterior(X, background=Y, random_state=0)
    >>> draws
    ContrastPosterior(gibbs, CPCA: 4 x 1000 draws, D = 5, d = 1)
    >>> draws.angles().shape
    (4, 1000, 1)
    """
    beside = (sample_weight, background_weight, covariates, background_covariates)
    data = self._fitted_data(X, y, background, *beside)
    sampling: dict[str, Any] = {"draws": draws, "tune": tune, "chains": chains, "power": power}
    settings = sampling | {"sigma2_min": sigma2_min, "random_state": random_state, "progress": progress}
    found = sample_posterior(data, self._state, self._as_fitted()._method, **settings)
    return replace(found, method=type(self).__name__, seed=_number(random_state))


def bootstrap(
    self: FittedModel,
    X: Any,
    y: Any = None,
    *,
    background: Any = None,
    sample_weight: Any = None,
    background_weight: Any = None,
    covariates: Any = None,
    background_covariates: Any = None,
    blocks: Any = None,
    background_blocks: Any = None,
    pairs: Any = None,
    background_pairs: Any = None,
    n_resamples: int = 200,
    random_state: Any = None,
    progress: bool = True,
) -> ContrastPosterior:
    """Refit to rows, or whole blocks, resampled with replacement within each group.

    It needs no condition on N and no extra library, and it takes missing values (ContraPCA, PCPCA, PPCA). Scales
    and the number of latent dimensions are those of the fit; with gamma="auto" every refit uses the same fraction
    of its own limit. With missing values no exact limit is known: a refit without a solution is tried again at 0.85 of
    its gamma, up to 25 times, if gamma is "auto", and counts as failed if it was given.

    Parameters
    ----------
    X, y, background, sample_weight, background_weight, covariates, background_covariates
        The rows of the fit, as for `fit`. A row is drawn with its weight, and adjusted for its covariates as in the
        fit.
    blocks, background_blocks : array-like of shape (n,) and (m,), optional
        The donor, animal or plate of each row, if rows are not independent: whole blocks are resampled. A label in
        both is one block with rows in both groups. `background_blocks` is a dict if there are several backgrounds.
    pairs, background_pairs : array-like of shape (n,) and (m,), optional
        The same for pairs, such as a donor before and after treatment: every label must be in both groups.
    n_resamples : int, default 200
    random_state : None, int, Generator or RandomState
    progress : bool, default True
        Show a progress bar on a terminal or in a notebook if it takes longer than two seconds.

    Returns
    -------
    ContrastPosterior
        One chain; `failures` counts the refits for which gamma was infeasible.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import PCPCA
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(150, 5))
    >>> model = PCPCA(1, gamma=0.5).fit(X, background=Y)
    >>> refits = model.bootstrap(X, background=Y, n_resamples=100, random_state=0)
    >>> refits
    ContrastPosterior(bootstrap, PCPCA: 1 x 100 draws, D = 5, d = 1)
    >>> refits.summary()["excludes_zero"].tolist()
    [True, False, False, False, False]
    """
    beside = (sample_weight, background_weight, covariates, background_covariates)
    fit, tables = self._state, self._fitted_groups(X, y, background, *beside)
    if isinstance(X, Moments):
        raise TypeError("bootstrap() resamples rows, and moments have none: pass the tables of the fit.")
    if tables.incomplete and fit.model is None:
        raise ValueError(
            "bootstrap() of a model without a likelihood needs complete rows, and values are missing here: use "
            "bootstrap() of ContraPCA or PCPCA, or drop rows or features."
        )
    weights = None if tables.incomplete else tables.totals
    check_same_tables(tables.means, fit.units, weights=weights, gls=self._parameters.get("mean") == "gls")
    given = {"blocks": blocks, "background_blocks": background_blocks, "pairs": (pairs, background_pairs)}
    settings: dict[str, Any] = {"n": n_resamples, "random_state": random_state, "progress": progress}
    found = resample(tables, fit, self._as_fitted()._method, **given, **settings)
    by_blocks = any(own is not None for own in (blocks, background_blocks, pairs, background_pairs))
    return replace(found, method=type(self).__name__, by_blocks=by_blocks, seed=_number(random_state))


def _number(random_state: Any) -> int | None:
    """A seed that Python code can repeat."""
    return int(random_state) if isinstance(random_state, Integral) else None
