"""The exact limits over random shapes, ranks and ties."""

import math

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import oracles
from contrapca import CPCA, PCPCA, gamma_limits
from contrapca.exceptions import InfeasibleGammaError, RankError
from strategies import tables

SOLVERS = st.sampled_from(["eigh", "dual", "lanczos"])
pytestmark = pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")


@pytest.mark.slow
@settings(max_examples=300)
@given(case=tables(), solver=SOLVERS)
def test_pcpca_limit_separates_feasible_from_infeasible(case, solver):
    X, Y, d = case.X, case.Y, case.d
    limit = gamma_limits(X, background=Y, n_components=d, solver=solver).pcpca
    if limit == 0:
        event("rank too low")
        values = np.linalg.eigvalsh(oracles.scatter(X))
        assert values[: len(values) - d].sum() <= 1e-10 * values.sum()
        with pytest.raises(RankError):
            PCPCA(d, gamma="auto", solver=solver).fit(X, background=Y)
        return
    event("limit 1" if limit == 1 else "limit below 1")
    assert 0 < limit <= 1
    # A foreground whose tail is within rounding of its trace has no digits to decide by.
    assume(oracles.noise_sum(X, Y, 0.0, d) > 1e-7 * np.trace(oracles.scatter(X)))
    assert limit == pytest.approx(oracles.pcpca_limit(X, Y, d), rel=1e-6)
    model = PCPCA(d, gamma=0.999 * limit, solver=solver).fit(X, background=Y)
    assert model.noise_variance_ > 0
    with pytest.raises(InfeasibleGammaError) as error:
        PCPCA(d, gamma=1.001 * limit, solver=solver).fit(X, background=Y)
    assert error.value.limit == pytest.approx(limit, rel=1e-9)


@settings(max_examples=300)
@given(case=tables(), solver=SOLVERS)
def test_cpca_limit_separates_feasible_from_infeasible(case, solver):
    X, Y, d = case.X, case.Y, case.d
    limits = gamma_limits(X, background=Y, n_components=d, solver=solver)
    limit, limit_of_pcpca = limits.cpca, limits.pcpca
    if limit == 0:
        values = np.linalg.eigvalsh(oracles.scatter(X))[::-1]
        assert values[d - 1] <= 1e-10 * values[0]
        return
    event("infinite" if limit == math.inf else "finite")
    assert limit == pytest.approx(oracles.cpca_limit(X, Y, d), rel=1e-5)
    if limit < 1e4 and limit_of_pcpca > 0:  # 0: the foreground's rank is d, which is refused
        CPCA(d, gamma=0.999 * limit, solver=solver).fit(X, background=Y)
        with pytest.raises(InfeasibleGammaError):
            CPCA(d, gamma=1.001 * limit, solver=solver).fit(X, background=Y)


@settings(max_examples=300)
@given(case=tables(), fraction=st.floats(0, 0.98), solver=SOLVERS)
def test_every_solver_equals_the_dense_oracle(case, fraction, solver):
    X, Y, d = case.X, case.Y, case.d
    limit = oracles.pcpca_limit(X, Y, d)
    assume(limit > 0 and oracles.noise_sum(X, Y, 0.0, d) > 1e-7 * np.trace(oracles.scatter(X)))
    gamma = fraction * limit
    model = PCPCA(d, gamma=gamma, solver=solver).fit(X, background=Y)
    W, sigma2, _, _ = oracles.pcpca(X, Y, gamma, d)
    scale = np.trace(oracles.scatter(X)) / len(X)
    assert model.noise_variance_ == pytest.approx(sigma2, abs=1e-8 * scale / (1 - gamma))
    # W W' is the identified part of W, unless lambda_d and lambda_{d+1} tie.
    values = oracles.pcpca(X, Y, gamma, d)[2]
    assume(values[d - 1] - values[d] > 1e-4 * np.abs(values).max())
    np.testing.assert_allclose(model.loadings_ @ model.loadings_.T, W @ W.T, atol=1e-8 * scale / (1 - gamma))
