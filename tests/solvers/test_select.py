"""What "auto" picks."""

import pytest
import scipy.sparse as sp

from contrapca import PCPCA
from contrapca.moments import select_solver


@pytest.mark.parametrize(
    ("rows", "features", "sparse", "name"),
    [
        (40_000, 1000, False, "eigh"),
        (1000, 5000, False, "dual"),
        (120, 50_000, False, "dual"),
        (60_000, 40_000, False, "lanczos"),
        (5918, 32_738, True, "lanczos"),
        (5918, 200, True, "eigh"),
        (100_000, 2000, True, "eigh"),
        (5918, 2000, True, "lanczos"),
        (100, 100, False, "eigh"),
    ],
)
def test_auto(rows, features, sparse, name):
    choice = select_solver(rows, features, sparse)
    assert choice.name == name
    assert str(features) in choice.reason


def test_unknown_and_impossible_solvers(groups):
    X, Y = groups
    with pytest.raises(ValueError, match=r"'svd' is not valid.*'lanczos'"):
        PCPCA(solver="svd").fit(X, background=Y)
    with pytest.raises(ValueError, match="make sparse rows dense"):
        PCPCA(solver="dual").fit(sp.csr_array(X), background=sp.csr_array(Y))
