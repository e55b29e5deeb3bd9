"""Plots of results that are stored in an AnnData (matplotlib, extra "plot")."""

from .anndata import embedding, gamma_path, held_out, variance, verdict
from .anndata import plot_by_group as by_group
from .anndata import plot_loadings as loadings

__all__ = ["by_group", "embedding", "gamma_path", "held_out", "loadings", "variance", "verdict"]
