"""The objective against the sum over rows, and the solution as its maximum."""

import numpy as np
import pytest

import oracles
from conftest import implicit_moments
from contrapca import CPCA, PCPCA, Moments
from contrapca.contrast._pcpca import relative_log_likelihood
from contrapca.data._groups import Groups
from contrapca.moments._contrast import contrast
from contrapca.moments._span import reduce_rows


@pytest.mark.parametrize("gamma", [0.0, 0.4, 1.7])
def test_from_moments_equals_from_rows(groups, gamma):
    X, Y = groups
    W = np.random.default_rng(0).standard_normal((X.shape[1], 2))
    C = contrast(Groups.of(Moments.from_rows(X), Moments.from_rows(Y)), gamma)
    value = relative_log_likelihood(C, W, C.matmul(W), 0.8)
    assert value == pytest.approx(oracles.relative_log_likelihood(X, Y, gamma, W, 0.8), rel=1e-11)


def test_in_reduced_coordinates():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((6, 30)), rng.standard_normal((5, 30))
    reduced, basis = reduce_rows(Groups.of(implicit_moments(X), implicit_moments(Y)), 1)
    C = contrast(reduced, 0.3)
    W = rng.standard_normal((basis.R.shape[1], 1))
    W[-1] = 0  # the coordinate that stands for directions outside the rows' span
    Q = basis.rows.T @ np.linalg.pinv(basis.R).T
    value = relative_log_likelihood(C, W, C.matmul(W), 0.5)
    assert value == pytest.approx(oracles.relative_log_likelihood(X, Y, 0.3, Q @ W, 0.5), rel=1e-11)


@pytest.mark.parametrize("gamma", [0.0, 0.3, "auto"])
def test_the_fit_is_the_maximum(groups, gamma):
    """No random perturbation of (W, sigma2), large or small, improves the objective."""
    X, Y = groups
    model = PCPCA(n_components=2, gamma=gamma).fit(X, background=Y)
    W, sigma2 = model.loadings_, model.noise_variance_
    best = oracles.relative_log_likelihood(X, Y, model.gamma_, W, sigma2)
    assert model.objective_ == pytest.approx(best, rel=1e-10)
    rng = np.random.default_rng(1)
    for size in np.repeat([1e-4, 1e-2, 0.3], 40):
        V = W + size * np.abs(W).max() * rng.standard_normal(W.shape)
        s = sigma2 * np.exp(size * rng.standard_normal())
        assert oracles.relative_log_likelihood(X, Y, model.gamma_, V, s) < best


def test_theorem_1_the_components_have_the_least_loss(groups):
    X, Y = groups
    model = CPCA(3, gamma=0.7).fit(X, background=Y)
    best = oracles.reconstruction_loss(X, Y, 0.7, model.components_.T)
    assert model.reconstruction_error_ == pytest.approx(best, rel=1e-11)
    rng = np.random.default_rng(0)
    for size in np.repeat([1e-4, 1e-2, 1.0], 20):
        V = np.linalg.qr(model.components_.T + size * rng.standard_normal((X.shape[1], 3)))[0]
        assert oracles.reconstruction_loss(X, Y, 0.7, V) > best


@pytest.mark.parametrize("gamma", [0.2, 1.5])
def test_the_corollary(groups, gamma):
    """A larger gamma lowers the least loss, and so does each further component with a positive eigenvalue."""
    X, Y = groups
    positive = int(np.sum(np.linalg.eigvalsh(oracles.contrast_matrix(X, Y, 1.1 * gamma)) > 0))

    def losses(gamma):
        models = [CPCA(d, gamma=gamma).fit(X, background=Y) for d in range(1, min(positive, 11) + 1)]
        return np.array([model.reconstruction_error_ for model in models])

    loss = losses(gamma)
    assert loss.size >= 3
    np.testing.assert_allclose(loss, oracles.least_losses(X, Y, gamma, loss.size)[1:], rtol=1e-9, atol=1e-9)
    assert np.all(np.diff(loss) < 0)
    assert np.all(losses(gamma * 1.1) < loss)
