"""Tools for AnnData, as scanpy names them: each stores its results in the AnnData."""

from .anndata import clvm, compare, contrapca, cpca, pcpca, report, test

__all__ = ["clvm", "compare", "contrapca", "cpca", "pcpca", "report", "test"]
