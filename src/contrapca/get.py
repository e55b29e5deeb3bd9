"""Results that are stored in an AnnData, as models and data frames."""

from .scverse import loadings, model

__all__ = ["loadings", "model"]
