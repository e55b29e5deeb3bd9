"""Figures of results (matplotlib, extra "plot")."""

from ._biplot import biplot, biplot_data
from ._compare import comparison, comparison_data
from ._explore import (
    ellipse_data,
    gamma_panel,
    gamma_panel_data,
    latent_scatter,
    latent_scatter_data,
    loadings,
    loadings_data,
    path_curves,
    path_curves_data,
    samples,
    samples_data,
    scree,
    scree_data,
)
from ._latents import axes_or_current, latents, save_figure, shown, side_by_side
from ._posterior import (
    loading_intervals,
    loading_intervals_data,
    subspace_draws,
    subspace_draws_data,
    trace,
    trace_data,
)

__all__ = [
    "biplot",
    "biplot_data",
    "comparison",
    "comparison_data",
    "ellipse_data",
    "gamma_panel",
    "gamma_panel_data",
    "latent_scatter",
    "latent_scatter_data",
    "latents",
    "loading_intervals",
    "loading_intervals_data",
    "loadings",
    "loadings_data",
    "path_curves",
    "path_curves_data",
    "samples",
    "samples_data",
    "save_figure",
    "scree",
    "scree_data",
    "side_by_side",
    "subspace_draws",
    "subspace_draws_data",
    "trace",
    "trace_data",
]
