"""Plots of results that are stored in an AnnData (matplotlib, extra "plot")."""

from .anndata import embedding, gamma_path, variance, verdict
from .anndata import plot_loadings as loadings

__all__ = ["embedding", "gamma_path", "loadings", "variance", "verdict"]
