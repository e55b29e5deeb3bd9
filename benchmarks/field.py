"""The other methods of the field: ratios of variances against their peers."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from contrapca import PCPCA, RatioPCA

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


CASES = {"ratio": ratio}
