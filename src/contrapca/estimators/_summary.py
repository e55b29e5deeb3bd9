"""What a fit found, in words and tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.tables import Display, Table
from .._util.text import component_names, format_gamma, listed, plural
from ..contrast import Fit

TOP_FEATURES = 8


IN_SAMPLE = (
    "The axes were chosen for these rows, so ratios of these variances are too large, far above 1 even where there is "
    "nothing: held_out_contrast(model, X, background=Y) judges the components by unseen rows."
)


WORDS = {"foreground_variance": "case variance", "background_variance": "control variance"}


def component_table(fit: Fit) -> Table:
    """One row for each component: how much each group varies along it."""
    columns: dict[str, Any] = {
        "component": np.arange(1, fit.variances.foreground.size + 1),
        "case variance": fit.variances.foreground,
        "share of cases": fit.shares.foreground,
    }
    for name, variance, share in list(zip(fit.variances.names, fit.variances, fit.shares, strict=True))[1:]:
        who = "control" if len(fit.variances) == 2 else name
        columns |= {f"{who} variance": variance, f"share of {'controls' if who == 'control' else who}": share}
    return Table(columns)


def feature_table(fit: Fit) -> Table:
    """Loadings and variances of every feature, strongest features first, in the float type of the foreground."""
    scaling, dtype = fit.scaling, fit.scaling.foreground.dtype
    loadings = fit.loadings.astype(dtype)
    order = np.argsort(-np.sum(loadings**2, axis=1), kind="stable")
    columns: dict[str, Any] = {"feature": np.array(scaling.foreground.labels, dtype=object)}
    columns |= dict(zip(component_names(loadings.shape[1]), loadings.T, strict=True))
    columns |= dict(scaling.map_named(lambda name, own: (f"{name}_variance", own.variance.astype(dtype, copy=False))))
    ranked = {name: column[order] for name, column in columns.items()}
    return Table(ranked | {"rank": np.arange(1, order.size + 1)})


def top_features(fit: Fit) -> Table:
    """The features with the largest loadings."""
    table = feature_table(fit).first(TOP_FEATURES)
    return Table({WORDS.get(name, name): column for name, column in table.items() if name != "rank"})


def facts(fit: Fit, name: str, *, has_gamma: bool, n_shared: int) -> dict[str, Any]:
    """What a fit found, as values and tables, for programs; arguments as for `summary`."""
    found: dict[str, Any] = {"method": name.lower(), "n_features": fit.scaling.foreground.mean.size}
    found |= ({"n_shared": n_shared} if n_shared else {}) | {"n_components": fit.n_shown}
    if n_shared:
        assert fit.model is not None
        return found | {"noise_variance": fit.model.sigma2}
    found |= {"solver": str(fit.solver), "objective": fit.objective}
    if has_gamma:
        found["gamma"] = fit.gamma
        if fit.limit is not None:
            found |= {"gamma_max": fit.limit, "gamma_max_is_bound": fit.limit_is_bound}
    if fit.model is not None:
        found["noise_variance"] = fit.model.sigma2
    if fit.plateau is not None:
        found["axes"] = str(fit.plateau)
    return found | {"components": component_table(fit), "top_features": top_features(fit)}


def unseen_note(fit: Fit) -> list[str]:
    """What the variances of both groups do not say, where there are two."""
    return [IN_SAMPLE] if fit.variances.backgrounds else []


def limit_in_words(limit: float, is_bound: bool, n_components: int, n_latent: int) -> str:
    """The limit of gamma, for the number of dimensions that it belongs to: models of fewer have larger ones."""
    words = f"limit {'at most ' * is_bound}{format_gamma(limit)}"
    if n_latent == n_components:
        return words
    words += f" with {n_latent} latent dimensions"
    return words if is_bound or limit >= 1 else f"{words}, higher with fewer"


def summary(fit: Fit, name: str, *, has_gamma: bool, n_shared: int) -> Display:
    """What a fit found.

    Parameters
    ----------
    fit : Fit
    name : str
        The class of the estimator.
    has_gamma : bool
        Whether it has a gamma.
    n_shared : int
        Shared dimensions of CLVM.
    """
    line = f"{name} with {plural(fit.n_shown, 'component')} of {fit.scaling.foreground.mean.size} features"
    if has_gamma:
        line += f", gamma = {format_gamma(fit.gamma)}"
        if fit.limit is not None and np.isfinite(fit.limit):
            line += f" ({limit_in_words(fit.limit, fit.limit_is_bound, fit.n_shown, fit.n_latent)})"
    if n_shared:
        line += f", and {plural(n_shared, 'shared component')}"
    if fit.covariates is not None:
        line += f", without the effect of {listed(fit.covariates.names)}"
    if fit.plateau is not None:
        line += f"\n{fit.plateau}"
    long = [] if fit.shortened is None else [own.size for own in fit.shortened]
    if any(long):
        rows = plural(sum(long), "row")
        line += f"\n{rows} far from most {'counts' if sum(long) == 1 else 'count'} less (shorten=False: in full)."
    return Display(
        line, component_table(fit), *unseen_note(fit), "Features with the largest loadings:", top_features(fit)
    )
