"""Figures of results (matplotlib, extra "plot")."""

from ._explore import biplot, comparison, gamma_panel, heatmap, latent_scatter, loadings, path_curves, scree
from ._labels import BACKGROUND_COLOUR, COLOURS, NO_LABEL, as_classes, for_legend, on_a_scale
from ._latents import axes_or_current, latents, legend_of_figure, tidy
from ._posterior import loading_intervals, subspace_draws, trace

__all__ = [
    "biplot",
    "comparison",
    "gamma_panel",
    "heatmap",
    "latent_scatter",
    "latents",
    "loading_intervals",
    "loadings",
    "path_curves",
    "scree",
    "subspace_draws",
    "trace",
]
