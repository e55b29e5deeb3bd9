"""Plots of results that are stored in an AnnData (matplotlib, extra "plot")."""

from .scverse import embedding, gamma_path, variance, verdict
from .scverse import plot_loadings as loadings

__all__ = ["embedding", "gamma_path", "loadings", "variance", "verdict"]
