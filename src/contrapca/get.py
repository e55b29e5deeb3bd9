"""Results that are stored in an AnnData, as models and data frames."""

from .anndata import components, loadings, model

__all__ = ["components", "loadings", "model"]
