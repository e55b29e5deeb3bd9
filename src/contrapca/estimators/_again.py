"""The tables of a fit, passed again: checked, brought into the units of the fit, resampled.

`fitted_groups`, `fitted_data` and `bootstrap` are methods of all estimators.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.utils.validation import check_is_fitted, validate_data

from .._util.suggest import suggesting
from .._util.text import listed
from ..covariates import design_of, without_covariates
from ..exceptions import GroupError
from ..groups import Groups, Tables, check_names, distinct
from ..moments import Complete, Incomplete, Moments, collect, read
from ..rows import Blocked, opened
from ..uncertainty import ContrastPosterior
from ..uncertainty import bootstrap as resample
from ..units import Units, check_same_tables


def fitted_groups(
    self: Any,
    X: Any,
    y: Any,
    background: Any,
    sample_weight: Any = None,
    background_weight: Any = None,
    covariates: Any = None,
    background_covariates: Any = None,
) -> Tables:
    """Check the tables of the fit when they are passed again."""
    check_is_fitted(self)
    X = opened(X)
    contrasted = self._state.units.background is not None
    if not contrasted and background is not None:
        raise ValueError("This model was fitted without a background: do not pass one.")
    if not isinstance(X, Moments | Blocked):
        validate_data(self, distinct(X), reset=False, skip_check_array=True)  # names and number of features
    elif isinstance(X, Blocked):
        check_names(X, self._state.units.foreground.labels)
    elif X.mean.size != self.n_features_in_:
        raise ValueError(f"X has {X.mean.size} features, but the fit had {self.n_features_in_}.")
    label = self._parameters.get("background_label") if contrasted else None
    weights = {"sample_weight": sample_weight, "background_weight": background_weight}
    asked = {"needs_background": contrasted, "allow_missing": self._takes_missing}
    tables = read(X, y, background, label, name=type(self).__name__, **asked, **weights)
    known = self._state.units
    if tables.rows.names != known.names:
        raise ValueError(f"The groups are {listed(tables.rows.names)}, but the fit had {listed(known.names)}.")
    tables = replace(tables, rows=replace(tables.rows, mix=known.mix))
    design = design_of(tables, X, background, covariates, background_covariates, y, label)
    found = self._state.covariates
    if design is None or found is None:
        self._check_covariates(covariates)
        return tables
    if design.columns != found.columns:
        raise GroupError(f"covariates are {listed(design.names)}, but those of the fit were {listed(found.names)}.")
    return without_covariates(tables, design, found)[0]


def fitted_data(self: Any, *given: Any) -> Complete | Incomplete:
    """The data of the fit in model units, from the arguments of `fit` passed again; other tables raise."""
    tables, units = self._fitted_groups(*given), self._state.units
    data = collect(tables, self._state.n_latent, units.map(lambda known: known.scale), reduced=self._reduced)
    check_same_data(data, units, gls=self._parameters.get("mean") == "gls")
    return data


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


def check_same_data(data: Complete | Incomplete, fitted: Groups[Units], *, gls: bool = False) -> None:
    """Raise if the data are not those of a fit."""
    means, weights = data.units.map(lambda units: units.mean), data.units.map(lambda units: units.weight)
    check_same_tables(means, fitted, weights=weights, gls=gls)
