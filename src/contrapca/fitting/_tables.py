"""What a fit found, as tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.table import Table
from .._util.text import component_names
from ._fit import Fit
from ._kernel import KernelFit

TOP_FEATURES = 8
WORDS = {"foreground_variance": "case variance", "background_variance": "control variance"}


def component_table(fit: Fit | KernelFit) -> Table:
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
    units, dtype = fit.units, fit.units.foreground.dtype
    loadings = fit.loadings.astype(dtype)
    order = np.argsort(-np.sum(loadings**2, axis=1), kind="stable")
    columns: dict[str, Any] = {"feature": np.array(units.foreground.labels, dtype=object)}
    columns |= dict(zip(component_names(loadings.shape[1]), loadings.T, strict=True))
    columns |= dict(units.map_named(lambda name, own: (f"{name}_variance", own.variance.astype(dtype, copy=False))))
    ranked = {name: column[order] for name, column in columns.items()}
    return Table(ranked | {"rank": np.arange(1, order.size + 1)})


def top_features(fit: Fit) -> Table:
    """The features with the largest loadings."""
    table = feature_table(fit).first(TOP_FEATURES)
    return Table({WORDS.get(name, name): column for name, column in table.items() if name != "rank"})
