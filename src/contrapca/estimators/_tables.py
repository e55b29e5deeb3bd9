"""Rows for a fitted model: new ones, and those of the fit again, for its uncertainty.

All functions but `check_place` are methods of the estimators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import validate_data

from .._util.arrays import Array, Rows
from .._util.devices import host, on_device, place_of
from .._util.suggest import suggesting
from ..fitting import check_covariates, check_same_data, tables_again
from ..groups import Tables, canonical, check_device_table, column_means, distinct, refuse_moments, without_mask
from ..moments import Complete, Incomplete, Moments, collect
from ..rows import Blocked, is_kept, opened
from ..uncertainty import ContrastPosterior, sample_posterior
from ..uncertainty import bootstrap as resample
from ..units import check_same_tables


def rows(self: Any, X: Any, covariates: Any = None) -> tuple[Rows, bool]:
    """Check new rows, adjust them for their covariates; return them and whether values are missing."""
    found, missing = self._checked_rows(X)
    return self._adjusted(X, found, covariates), missing


def adjusted(self: Any, X: Any, rows: Rows, covariates: Any) -> Rows:
    """Checked rows of X without the effect of their covariates, if the fit had some."""
    known = self._state.covariates
    check_covariates(known, covariates)
    return rows if known is None else known.adjusted(rows, known.design(covariates, X, rows.shape[0]))


def checked_rows(self: Any, X: Any) -> tuple[Rows, bool]:
    """Check new rows against the fitted features; return them and whether values are missing."""
    allow_missing = self._state.model is not None
    check_place(self, X)
    if on_device(X):
        rows = check_device_table(X, type(self).__name__, least_rows=1)
        validate_data(self, rows, reset=False, skip_check_array=True)
    else:
        refuse_moments(X, f"This method of {type(self).__name__}", "X")
        X = opened(X)
        if isinstance(X, Blocked):
            return self._state.units.foreground.check(X, allow_missing=allow_missing)
        checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
        checks = {"skip_check_array": True} if is_kept(X) else checks
        rows = canonical(validate_data(self, without_mask(distinct(X)), reset=False, **checks))
    return rows, bool(np.isnan(column_means(rows, allow_missing=allow_missing)).any())


def along_components(self: Any, rows: Rows) -> Array:
    """Complete rows along the components, unit vectors in model units, as are the variances along them."""
    return host(self._state.units.foreground.project(rows, self._state.components))


def check_place(self: Any, X: Any) -> None:
    """Refuse rows that are elsewhere than those of the fit, where scikit-learn's own estimators do.

    Otherwise a model serves rows anywhere, and the result follows them.
    """
    if get_config()["array_api_dispatch"] and (found := place_of(X)) != (fitted := place_of(self._place)):
        raise ValueError(
            f"Rows passed to {type(self).__name__}.transform() and other methods must use the same namespace and "
            f"device as those passed to fit(): these are {found}, and those of the fit were {fitted}. Move them, "
            "or set array_api_dispatch=False: contrapca does not need it."
        )


def fitted_groups(self: Any, X: Any, y: Any, background: Any, *beside: Any) -> Tables:
    """Check the tables of the fit when they are passed again; `beside` has weights, then covariates, of both groups."""
    fit, X = self._state, opened(X)
    if not isinstance(X, Moments | Blocked):  # whose features are checked below
        validate_data(self, distinct(X), reset=False, skip_check_array=True)  # names and number of features
    label, given = self._parameters.get("background_label"), {"allow_missing": self._takes_missing}
    return tables_again(fit, X, y, background, label, *beside, name=type(self).__name__, **given)


def fitted_data(self: Any, *given: Any) -> Complete | Incomplete:
    """The data of the fit in model units, from the arguments of `fit` passed again; other tables raise."""
    tables, units = self._fitted_groups(*given), self._state.units
    data = collect(tables, self._state.n_latent, units.map(lambda known: known.scale), reduced=self._reduced)
    check_same_data(data, units, gls=self._parameters.get("mean") == "gls")
    return data


@suggesting
def posterior(
    self: Any,
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
        Lower bound of the noise variance, in scaled units; CPCA has none.
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
    ContrastPosterior(gibbs, cpca: 4 x 1000 draws, D = 5, d = 1)
    >>> draws.angles().shape
    (4, 1000, 1)
    """
    beside = (sample_weight, background_weight, covariates, background_covariates)
    data = self._fitted_data(X, y, background, *beside)
    sampling: dict[str, Any] = {"draws": draws, "tune": tune, "chains": chains, "power": power}
    settings = sampling | {"sigma2_min": sigma2_min, "random_state": random_state, "progress": progress}
    return sample_posterior(data, self._state, self._method, **settings)


@suggesting
def bootstrap(
    self: Any,
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

    It needs no condition on N and no extra library, and it takes missing values (PPCA, PCPCA). Scales and the
    number of latent dimensions are those of the fit; with gamma="auto" every refit uses the same fraction of its
    own limit. With missing values no exact limit is known: a refit without a solution is tried again at 0.85 of
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
    ContrastPosterior(bootstrap, pcpca: 1 x 100 draws, D = 5, d = 1)
    >>> refits.summary()["excludes_zero"].tolist()
    [True, False, False, False, False]
    """
    beside = (sample_weight, background_weight, covariates, background_covariates)
    tables = self._fitted_groups(X, y, background, *beside)
    if isinstance(X, Moments):
        raise TypeError("bootstrap() resamples rows, and moments have none: pass the tables of the fit.")
    weights = None if tables.incomplete else tables.totals
    check_same_tables(tables.means, self._state.units, weights=weights, gls=self._parameters.get("mean") == "gls")
    method = type(self)(**self._parameters)._method  # set_params may have changed it since
    given = {"blocks": blocks, "background_blocks": background_blocks, "pairs": (pairs, background_pairs)}
    settings: dict[str, Any] = {"n": n_resamples, "random_state": random_state, "progress": progress}
    return resample(tables, self._state, method, **given, **settings)
