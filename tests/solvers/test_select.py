"""What "auto" picks, and that it can be asked."""

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca import PCPCA, which_solver
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
        (100, 100, False, "eigh"),
    ],
)
def test_auto(rows, features, sparse, name):
    choice = select_solver(rows, features, sparse)
    assert choice.name == name
    assert str(features) in choice.reason


def test_asking_tells_what_fit_does(groups):
    X, Y = groups
    assert which_solver(X, background=Y) == PCPCA().fit(X, background=Y).solver_
    wide = np.random.default_rng(0).standard_normal((8, 40))
    assert which_solver(wide) == PCPCA(gamma=0).fit(wide).solver_
    assert which_solver(wide).name == "dual"


def test_unknown_and_impossible_solvers(groups):
    X, Y = groups
    with pytest.raises(ValueError, match=r"'svd' is not known.*'lanczos'"):
        PCPCA(solver="svd").fit(X, background=Y)
    with pytest.raises(ValueError, match="sparse rows into dense"):
        PCPCA(solver="dual").fit(sp.csr_array(X), background=sp.csr_array(Y))
