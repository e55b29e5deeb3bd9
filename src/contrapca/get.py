"""Results that are stored in an AnnData, as models and data frames."""

from .anndata import loadings, model

__all__ = ["loadings", "model"]
