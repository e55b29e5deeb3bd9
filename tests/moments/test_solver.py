"""What "auto" picks."""

import pytest
import scipy.sparse as sp

from contrapca import PCPCA
from contrapca.moments._solver import select_solver


@pytest.mark.parametrize(
    ("rows", "features", "density", "name"),
    [
        (40_000, 1000, None, "eigh"),
        (1000, 5000, None, "dual"),
        (120, 50_000, None, "dual"),
        (60_000, 40_000, None, "lanczos"),
        (5918, 32_738, 0.02, "lanczos"),
        (5918, 200, 0.2, "eigh"),
        (25_000, 500, 0.07, "eigh"),
        (100_000, 2000, 0.07, "eigh"),
        (100_000, 2500, 0.07, "eigh"),  # there is no number of features from which on a matrix is never formed
        (5918, 2000, 0.2, "lanczos"),
        (100, 100, None, "eigh"),
    ],
)
def test_auto(rows, features, density, name):
    choice = select_solver(rows, features, None if density is None else int(density * rows * features))
    assert choice.name == name
    assert str(features) in choice.reason


def test_unknown_and_impossible_solvers(groups):
    X, Y = groups
    with pytest.raises(ValueError, match=r"'svd' is not valid.*'lanczos'"):
        PCPCA(solver="svd").fit(X, background=Y)
    with pytest.raises(ValueError, match="make sparse rows dense"):
        PCPCA(solver="dual").fit(sp.csr_array(X), background=sp.csr_array(Y))
