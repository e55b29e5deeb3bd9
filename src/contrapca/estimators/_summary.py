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


def facts(model: Any) -> dict[str, Any]:
    """What `summary` says of a fitted model, as values and tables, for programs."""
    fit: Fit = model.fit_
    found: dict[str, Any] = {"method": type(model).__name__.lower(), "n_features": fit.scaling.foreground.mean.size}
    if hasattr(model, "shared_loadings_"):  # CLVM
        found |= {"n_shared": n_shared(model), "n_components": fit.n_shown}
        return found | {"noise_variance": model.noise_variance_}
    found |= {"n_components": fit.n_shown, "solver": str(fit.solver), "objective": fit.objective}
    if hasattr(model, "gamma_"):
        found["gamma"] = fit.gamma
        if fit.limit is not None:
            found |= {"gamma_max": fit.limit, "gamma_max_is_bound": fit.limit_is_bound}
    if fit.model is not None:
        found["noise_variance"] = fit.model.sigma2
    if fit.plateau is not None:
        found["axes"] = str(fit.plateau)
    return found | {"components": component_table(fit), "top_features": top_features(fit)}


def n_shared(model: Any) -> int:
    """Shared dimensions, which only CLVM has."""
    return int(model.shared_loadings_.shape[1]) if hasattr(model, "shared_loadings_") else 0


def summary(model: Any) -> Display:
    """What a fitted model found: a sentence, its components, and their strongest features."""
    fit: Fit = model.fit_
    line = (
        f"{type(model).__name__} with {plural(fit.n_shown, 'component')} of {fit.scaling.foreground.mean.size} features"
    )
    if hasattr(model, "gamma_"):
        line += f", gamma = {format_gamma(fit.gamma)}"
        if fit.limit is not None and np.isfinite(fit.limit):
            line += f" (limit {'at most ' * fit.limit_is_bound}{format_gamma(fit.limit)}"
            if fit.n_latent > fit.n_shown:  # models of fewer dimensions have larger limits
                line += f" with {fit.n_latent} latent dimensions"
                line += "" if fit.limit_is_bound or fit.limit >= 1 else ", higher with fewer"
            line += ")"
    if shared := n_shared(model):
        line += f", and {plural(shared, 'shared component')}"
    if fit.covariates is not None:
        line += f", without the effect of {listed(fit.covariates.names)}"
    if fit.plateau is not None:
        line += f"\n{fit.plateau}"
    long = [] if fit.shortened is None else [own.size for own in fit.shortened]
    if any(long):
        rows = plural(sum(long), "row")
        line += f"\n{rows} far from most {'counts' if sum(long) == 1 else 'count'} less (shorten=False: in full)."
    # Where there are two groups, their variances say nothing of unseen rows.
    note = [IN_SAMPLE] if fit.variances.backgrounds else []
    return Display(line, component_table(fit), *note, "Features with the largest loadings:", top_features(fit))
