"""The other methods of the field: ratios of variances against their peers, kernels."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA, KernelPCA

from contrapca import PCPCA, KernelCPCA, RatioPCA

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


def kernel() -> Case:
    """KernelCPCA with landmarks, gamma included, and kernel PCA of the same rows, whose exact solver is the peer."""
    X, Y = tables(2000, 2000, 50)
    stacked = np.vstack([X, Y])
    calls = {
        "contrapca KernelCPCA": lambda: KernelCPCA(2).fit(X, background=Y),
        "contrapca KernelCPCA, gamma 2": lambda: KernelCPCA(2, gamma=2.0).fit(X, background=Y),
        "scikit-learn KernelPCA, rbf": lambda: KernelPCA(2, kernel="rbf", eigen_solver="arpack").fit(stacked),
        "scikit-learn PCA, full": lambda: PCA(2, svd_solver="full").fit(stacked),
    }
    return Case("kernels 2,000 + 2,000 rows x 50 (at most 5 s)", calls, ["scikit-learn PCA, full"])


CASES = {"ratio": ratio, "kernel": kernel}
