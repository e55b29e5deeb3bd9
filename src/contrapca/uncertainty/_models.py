"""Uncertainty of a fitted model: `posterior` and `bootstrap`."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

from ..study import Study
from ..units import check_same_tables
from ._bootstrap import resample
from ._draws import ContrastPosterior
from ._gibbs import sample_posterior


def posterior(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    power: float = 1.0,
    sigma2_min: float = 0.0,
    random_state: Any = 0,
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
    model : fitted PPCA, PCPCA, ContraPCA or CPCA
    X : Study, or array-like, data frame or sparse matrix of shape (n, D), or Moments
        The `Study` of the fit, or its foreground. Blocks have no part in a posterior: `calibrate_power` takes them.
    background : array-like, data frame or sparse matrix of shape (m, D), or Moments, or a dict of them, optional
        If `X` is no Study.
    draws, tune, chains : int
        Draws kept and discarded in each chain, and chains.
    power : float, default 1.0
        Weight of the data: intervals shrink with its square root. With gamma > 0 no likelihood determines it, and for
        CPCA its unit is 1 / variance of the features, so that 1 is not a natural choice. `contrapca.calibrate_power`
        finds the value at which intervals have the right coverage.
    sigma2_min : float, default 0.0
        Lower bound of the noise variance, in scaled units. CPCA has no noise, and no such argument.
    random_state : None, int, Generator or RandomState, default 0
        A seed gives the same draws on any number of cores.
    progress : bool, default True
        Show a progress bar on a terminal or in a notebook if it takes longer than two seconds.

    Returns
    -------
    ContrastPosterior

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import CPCA, posterior
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(150, 5))
    >>> model = CPCA(1, gamma=0.5).fit(X, background=Y)
    >>> draws = posterior(model, X, background=Y)
    >>> draws
    ContrastPosterior(gibbs, CPCA: 4 x 1000 draws, D = 5, d = 1)
    >>> draws.angles().shape
    (4, 1000, 1)
    """
    if not getattr(model, "_sampled", False):
        raise TypeError(f"posterior needs a PPCA, PCPCA, ContraPCA or CPCA, not a {type(model).__name__}.")
    data = model._fitted_data(_study_of_fit(model, X, background, "posterior"))
    sampling: dict[str, Any] = {"draws": draws, "tune": tune, "chains": chains, "power": power}
    settings = sampling | {"sigma2_min": sigma2_min, "random_state": random_state, "progress": progress}
    found = sample_posterior(data, model._state, model._as_fitted()._method, **settings)
    return replace(found, method=type(model).__name__, seed=_number(random_state))


def bootstrap(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    n_resamples: int = 200,
    random_state: Any = 0,
    progress: bool = True,
) -> ContrastPosterior:
    """Refit to rows, or whole blocks, resampled with replacement within each group.

    It needs no condition on N and no extra library, and it takes missing values (ContraPCA, PCPCA, PPCA). Scales
    and the number of latent dimensions are those of the fit; with gamma="auto" every refit uses the same fraction
    of its own limit. With missing values no exact limit is known: a refit without a solution is tried again at 0.85 of
    its gamma, up to 25 times, if gamma is "auto", and counts as failed if it was given.

    Parameters
    ----------
    model : fitted estimator
    X : Study, or array-like, data frame or sparse matrix of shape (n, D)
        The `Study` of the fit, or its foreground. Blocks are resampled as a whole. A row is drawn with its weight, and
        adjusted for its covariates as in the fit.
    background : array-like, data frame or sparse matrix of shape (m, D), or a dict of them, optional
        If `X` is no Study.
    n_resamples : int, default 200
    random_state : None, int, Generator or RandomState, default 0
    progress : bool, default True
        Show a progress bar on a terminal or in a notebook if it takes longer than two seconds.

    Returns
    -------
    ContrastPosterior
        One chain; `failures` counts the refits for which gamma was infeasible.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import PCPCA, bootstrap
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(150, 5))
    >>> model = PCPCA(1, gamma=0.5).fit(X, background=Y)
    >>> refits = bootstrap(model, X, background=Y, n_resamples=100)
    >>> refits
    ContrastPosterior(bootstrap, PCPCA: 1 x 100 draws, D = 5, d = 1)
    >>> refits.summary()["excludes_zero"].tolist()
    [True, False, False, False, False]
    """
    if not getattr(model, "_resampled", False):
        raise TypeError(f"bootstrap needs an estimator of contrapca with components, not a {type(model).__name__}.")
    fit, study = model._state, _study_of_fit(model, X, background, "bootstrap")
    study.refuse_moments("bootstrap")
    tables = model._fitted_groups(study)
    if tables.incomplete and fit.model is None:
        raise ValueError(
            "bootstrap of a model without a likelihood needs complete rows, and values are missing here: use "
            "bootstrap of ContraPCA or PCPCA, or drop rows or features."
        )
    weights = None if tables.incomplete else tables.totals
    check_same_tables(tables.means, fit.units, weights=weights, gls=model._parameters.get("mean") == "gls")
    unit_of = study.units(tables, least=2, what="the bootstrap")
    settings: dict[str, Any] = {"n": n_resamples, "random_state": random_state, "progress": progress}
    found = resample(tables, fit, model._as_fitted()._method, unit_of, **settings)
    by_blocks = study.blocks is not None
    return replace(found, method=type(model).__name__, by_blocks=by_blocks, seed=_number(random_state))


def _study_of_fit(model: Any, X: Any, background: Any, name: str) -> Study:
    """The study of a fit, passed again; its foreground for a model that was fitted without a background."""
    study = Study.of(X, background, name, needs_background=False)
    return study.of_foreground() if isinstance(X, Study) and not model._state.units.backgrounds else study


def _number(random_state: Any) -> int | None:
    """A seed that Python code can repeat."""
    return int(random_state) if isinstance(random_state, Integral) else None
