"""The other methods of the field: ratios of variances against their peers, and sparse components."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from contrapca import PCPCA, RatioPCA, SparseCPCA, sparsity_path

from .closed_form import tables
from .timing import Bound, Case


def ratio() -> Case:
    """RatioPCA, PCPCA and gcPCA on a wide table."""
    from generalized_contrastive_PCA import gcPCA

    X, Y = tables(500, 500, 2000)
    centred = [table - table.mean(axis=0) for table in (X, Y)]
    stacked = np.vstack(centred)
    calls = {
        "contrapca RatioPCA": lambda: RatioPCA(2).fit(X, background=Y),
        "contrapca PCPCA, gamma auto": lambda: PCPCA(2).fit(X, background=Y),
        "scikit-learn PCA, full": lambda: PCA(2, svd_solver="full").fit(stacked),
        "generalized-contrastive-pca (v4)": lambda: gcPCA(method="v4", normalize_flag=False).fit(*centred),
    }
    bounds = [
        Bound("contrapca RatioPCA", "contrapca PCPCA, gamma auto", 1.5),
        Bound("contrapca RatioPCA", "generalized-contrastive-pca (v4)", 1 / 20),
    ]
    return Case("ratios 500 + 500 x 2,000", calls, ["scikit-learn PCA, full"], bounds)


def sparse() -> Case:
    """A path over 20 sizes; there is no peer, so the bound is in units of a full PCA."""
    X, Y = tables(500, 500, 5000)
    stacked = np.vstack([X, Y])
    calls = {
        "contrapca sparsity_path, 20 sizes": lambda: sparsity_path(SparseCPCA(2, gamma=1.0), X, background=Y),
        "scikit-learn PCA, full": lambda: PCA(2, svd_solver="full").fit(stacked),
    }
    return Case("sparse components 500 + 500 x 5,000 (at most 20 s)", calls, ["scikit-learn PCA, full"])


CASES = {"ratio": ratio, "sparse-path": sparse}
