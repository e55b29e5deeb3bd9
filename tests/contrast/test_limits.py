"""Exact limits and sufficient bounds of gamma on ordinary data."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from conftest import implicit_moments
from contrapca import CPCA, PCPCA, gamma_limits
from contrapca.contrast import _limits as _exact
from contrapca.contrast._limits import Span, pcpca_limit
from contrapca.data._groups import Groups
from contrapca.data.rows import _scipy as sparse_rows
from contrapca.exceptions import ContrastWarning, InfeasibleGammaError, RankError, SolverError
from contrapca.inference import _gamma_limits


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_exact_limits_equal_the_oracles(groups, solver, d):
    X, Y = groups
    found = gamma_limits(X, background=Y, n_components=d, solver=solver)
    assert found.pcpca == pytest.approx(oracles.pcpca_limit(X, Y, d), rel=1e-9)
    assert found.cpca == pytest.approx(oracles.cpca_limit(X, Y, d), rel=1e-8)


@pytest.mark.parametrize("shape", [(6, 5, 40), (30, 4, 40), (4, 30, 40)])
@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
def test_exact_limits_of_wide_tables(shape, solver):
    n, m, D = shape
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((n, D)), rng.standard_normal((m, D))
    found = gamma_limits(X, background=Y, n_components=2, solver=solver)
    assert found.pcpca == pytest.approx(oracles.pcpca_limit(X, Y, 2), rel=1e-9)
    assert found.cpca == math.inf


def test_sparse_tables_give_the_same():
    X, Y = (sp.random(60, 700, density=0.05, random_state=seed, format="csr") for seed in (0, 1))
    found = gamma_limits(X, background=Y, n_components=3)
    dense = gamma_limits(X.toarray(), background=Y.toarray(), n_components=3)
    for name, value in dense.gamma.items():
        assert found.gamma[name] == pytest.approx(value, rel=1e-8, abs=1e-9), name


@pytest.mark.slow
@pytest.mark.parametrize("near", [1.0, 0.1, 0.5])
def test_few_solutions_where_each_is_dear(near, monkeypatch):
    """From any start, also to the left of the limit; a matrix takes one or two more, which are cheap."""
    rng = np.random.default_rng(0)
    shared, own = rng.standard_normal((12, 250)), rng.standard_normal((6, 250))
    X, Y = (rng.standard_normal((rows, 250)) + 2 * rng.standard_normal((rows, 12)) @ shared for rows in (90, 80))
    X += rng.standard_normal((90, 6)) @ own
    solutions = []
    original = _exact.top_eigenpairs
    monkeypatch.setattr(_exact, "top_eigenpairs", lambda *a, **k: solutions.append(a) or original(*a, **k))
    limit, _ = pcpca_limit(Groups.of(implicit_moments(X), implicit_moments(1.5 * Y)), 8, near)
    assert limit == pytest.approx(oracles.pcpca_limit(X, 1.5 * Y, 8), rel=1e-9)
    assert len(solutions) <= (3 if near < limit else 2)
    span = Span.strong(Groups.of(implicit_moments(X), implicit_moments(1.5 * Y)), 8)
    assert limit < span.limit(Groups.of(implicit_moments(X), implicit_moments(1.5 * Y)), 8, 1.0) < 1.2 * limit


def sparse_groups(n, m, D, seed=0):
    return [sp.random(rows, D, density=0.05, random_state=seed + k, format="csr") for k, rows in enumerate((n, m))]


@pytest.fixture
def nothing_square(monkeypatch):
    """Sparse rows are not made a D x D matrix."""

    def scatter(rows, *others):
        raise AssertionError(f"a matrix of order {rows.shape[1]} was formed")

    monkeypatch.setattr(sparse_rows, "scatter", scatter)


@pytest.mark.parametrize("d", [1, 4])
def test_the_limit_of_cpca_for_sparse_rows_fewer_than_features(d, nothing_square):
    """Each group varies in directions of its own; a foreground inside the span of the background does not."""
    X, Y = sparse_groups(50, 60, 900)
    assert gamma_limits(X, background=Y, n_components=d).cpca == math.inf
    mixed = sp.csr_array(np.random.default_rng(0).standard_normal((50, 60)) @ Y)
    found = gamma_limits(mixed, background=Y, n_components=d).cpca
    assert found == pytest.approx(oracles.cpca_limit(mixed.toarray(), Y.toarray(), d), rel=1e-8)


def test_a_few_own_directions_are_not_enough(nothing_square):
    X, Y = sparse_groups(50, 60, 900)
    mixed = sp.vstack([np.random.default_rng(0).standard_normal((40, 60)) @ Y, X[:3]], format="csr")
    limits = [gamma_limits(mixed, background=Y, n_components=d).cpca for d in (3, 4)]
    assert limits[0] == math.inf
    assert limits[1] == pytest.approx(oracles.cpca_limit(mixed.toarray(), Y.toarray(), 4), rel=1e-8)


@pytest.mark.parametrize("d", [1, 3])
def test_the_limit_of_cpca_where_no_matrix_fits(d, nothing_square, monkeypatch):
    monkeypatch.setattr(_exact, "MAX_DENSE", 100)
    monkeypatch.setattr(_gamma_limits, "MAX_DENSE", 100)
    X, Y = sparse_groups(600, 700, 510)
    found = gamma_limits(X, background=Y, n_components=d).cpca
    assert found == pytest.approx(oracles.cpca_limit(X.toarray(), Y.toarray(), d), rel=1e-6)
    constant = sp.csr_array(Y.toarray() * (np.arange(510) >= 2))  # so that only the foreground varies in two features
    found = gamma_limits(X, background=constant, n_components=d).cpca
    assert found == pytest.approx(oracles.cpca_limit(X.toarray(), constant.toarray(), d), rel=1e-6)
    assert (found == math.inf) == (d <= 2)


def test_a_limit_that_is_not_found_is_not_made_up(monkeypatch):
    monkeypatch.setattr(_exact, "MAX_DENSE", 100)
    monkeypatch.setattr(_exact, "MAX_ITERATIONS", 2)
    X, Y = sparse_groups(600, 700, 510)
    with pytest.warns(ContrastWarning, match="limit of gamma for CPCA was not found: it is at least"):
        found = gamma_limits(X, background=Y, n_components=2)
    assert math.isnan(found.cpca)
    assert 0 < found.pcpca < 1
    with pytest.raises(SolverError, match="it is at least"):
        CPCA(2, gamma=1e9).fit(X, background=Y)


@pytest.mark.parametrize("d", [1, 3, 10])
def test_sufficient_bounds_are_the_formulas_and_suffice(groups, d):
    X, Y = groups
    found = gamma_limits(X, background=Y, n_components=d)
    for name, value in oracles.sufficient_bounds(X, Y, d).items():
        assert found.gamma[name] == pytest.approx(value), name
    assert found.noise_positive <= found.noise_positive_sharp <= found.pcpca
    assert found.leading_positive <= found.cpca
    assert np.linalg.eigvalsh(oracles.contrast_matrix(X, Y, 0.999 * found.positive_definite))[0] > 0


def test_raw_values_and_printing(groups):
    X, Y = groups
    found = gamma_limits(X, background=Y, n_components=2)
    assert found.raw["pcpca"] == pytest.approx(found.pcpca * len(X) / len(Y))
    text = str(found)
    assert f"{found.pcpca:.4f}" in text
    assert f"{found.raw['pcpca']:.4f}" in text
    assert len(text.splitlines()) == 7


def test_bounds_too_dear_are_nan(groups, monkeypatch):
    X, Y = groups
    monkeypatch.setattr(_gamma_limits, "MAX_DENSE", 5)
    found = gamma_limits(X, background=Y, n_components=2, solver="lanczos")
    assert math.isnan(found.noise_positive)
    assert found.pcpca == pytest.approx(oracles.pcpca_limit(X, Y, 2), rel=1e-9)


def test_background_without_variance_beyond_the_components():
    """tr(Q'S_Y Q) = 0: nothing bounds gamma but N > 0."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    Y = np.zeros((30, 5))
    Y[:, 0] = rng.standard_normal(30) * 0.1
    limit, vectors = pcpca_limit(Groups.of(implicit_moments(X), implicit_moments(Y)), 2)
    assert limit == 1.0
    assert vectors.shape == (5, 2)
    assert gamma_limits(X, background=np.ones((4, 5)), n_components=1).cpca == math.inf


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
@pytest.mark.parametrize("size", [0.3, 3.0])
def test_foreground_and_background_of_one_direction(solver, size):
    """f is 0 up to the ratio of the variances and negative beyond: no gamma is feasible, wherever Newton stops."""
    line = np.random.default_rng(0).standard_normal(20)[:, None] * [1.0, 1.0, 0.5]
    assert gamma_limits(line, background=size * line[:15], n_components=1, solver=solver).pcpca == 0
    with pytest.raises(RankError):
        PCPCA(n_components=1, solver=solver).fit(line, background=size * line[:15])


def test_lanczos_is_reproducible(groups):
    """Also where it meets an invariant subspace and goes on from a random vector."""
    rows = np.vstack([np.diag([3.0, 3, 3, 1, 1, 1]), -np.diag([3.0, 3, 3, 1, 1, 1])])
    fits = [PCPCA(n_components=2, gamma=0, solver="lanczos").fit(rows) for _ in range(3)]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.components_, fits[0].components_)


@pytest.mark.parametrize("estimator", [PCPCA, CPCA])
def test_both_sides_of_the_limit(groups, estimator):
    X, Y = groups
    limit = getattr(gamma_limits(X, background=Y, n_components=2), estimator.__name__.lower())
    estimator(n_components=2, gamma=0.999 * limit).fit(X, background=Y)
    with pytest.raises(InfeasibleGammaError, match=f"{limit:.4f}") as error:
        estimator(n_components=2, gamma=1.001 * limit).fit(X, background=Y)
    assert error.value.limit == pytest.approx(limit)
    assert error.value.gamma == pytest.approx(1.001 * limit)


def test_exchanged_groups_are_suspected():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((50, 6)), rng.standard_normal((60, 6)) * 5
    with pytest.raises(InfeasibleGammaError, match="swapped"):
        PCPCA(n_components=2, gamma=0.5).fit(X, background=Y)
    with pytest.raises(InfeasibleGammaError) as error:
        PCPCA(n_components=2, gamma=1.5).fit(Y, background=X)
    assert "swapped" not in str(error.value)


def test_cpca_beyond_rounding():
    """An infinite limit does not make every finite gamma computable; the error says so."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((20, 8)), rng.standard_normal((3, 8))
    CPCA(n_components=2, gamma=100.0).fit(X, background=Y)
    assert gamma_limits(X, background=Y, n_components=2).cpca == math.inf
    with pytest.raises(ValueError, match="rounding"):
        CPCA(n_components=2, gamma=1e17).fit(X, background=Y)
