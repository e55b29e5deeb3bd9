"""Tools for AnnData, as scanpy names them: each stores its results in the AnnData."""

from .anndata import by_group, clvm, compare, contrapca, cpca, pcpca, project, ratiopca, report, sparse_cpca, test

__all__ = [
    "by_group",
    "clvm",
    "compare",
    "contrapca",
    "cpca",
    "pcpca",
    "project",
    "ratiopca",
    "report",
    "sparse_cpca",
    "test",
]
