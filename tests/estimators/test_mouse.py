"""The paper's mouse proteins: limits and silhouettes known from independent runs."""

import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from contrapca import CPCA, PCPCA, gamma_limits


@pytest.mark.parametrize(("d", "limit"), [(1, 0.7534), (2, 0.6291), (5, 0.4317), (10, 0.2461)])
def test_pcpca_limit(mouse, d, limit):
    X, Y, _, _ = mouse
    assert gamma_limits(X, background=Y, n_components=d).pcpca == pytest.approx(limit, abs=5e-5)


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
def test_cpca_limit_despite_identical_columns(mouse, solver):
    """ARC_N and pS6_N are equal, so C has an eigenvalue 0 at every gamma: a sign test finds a wrong root."""
    X, Y, _, names = mouse
    np.testing.assert_array_equal(X[:, names.index("ARC_N")], X[:, names.index("pS6_N")])
    limits = gamma_limits(X, background=Y, n_components=2, solver=solver)
    assert limits.cpca == pytest.approx(371.95, abs=0.005)
    CPCA(n_components=2, gamma=371.9, solver=solver).fit(X, background=Y)
    with pytest.raises(ValueError, match=r"371\.95"):
        CPCA(n_components=2, gamma=372.0, solver=solver).fit(X, background=Y)


def test_sufficient_bounds(mouse):
    X, Y, _, _ = mouse
    limits = gamma_limits(X, background=Y, n_components=2)
    assert limits.noise_positive == pytest.approx(0.024, abs=5e-4)
    assert limits.noise_positive_sharp == pytest.approx(0.484, abs=5e-4)
    assert limits.raw["pcpca"] == pytest.approx(2 * limits.pcpca)


@pytest.mark.parametrize(("gamma", "expected"), [(0, 0.072), (0.4, 0.433), (0.6092, 0.445)])
def test_silhouette_of_the_genotypes(mouse, gamma, expected):
    X, Y, genotype, _ = mouse
    Z = PCPCA(n_components=2, gamma=gamma).fit(X, background=Y).transform(X)
    assert silhouette_score(Z / Z.std(axis=0), genotype) == pytest.approx(expected, abs=0.003)
