"""The objective against the sum over rows, and the solution as its maximum."""

import numpy as np
import pytest

import oracles
from conftest import implicit_moments
from contrapca import PCPCA, Moments
from contrapca.groups import Groups
from contrapca.moments import contrast, reduce_rows
from contrapca.objectives import relative_log_likelihood
from contrapca.theory import loss_by_components, reconstruction_loss


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


def test_reconstruction_loss_is_theorem_1(groups):
    X, Y = groups
    V = np.linalg.qr(np.random.default_rng(0).standard_normal((X.shape[1], 3)))[0]
    value = reconstruction_loss(X, V.T, background=Y, gamma=0.7)
    assert value == pytest.approx(oracles.reconstruction_loss(X, Y, 0.7, V), rel=1e-11)


def test_theorem_1_least_loss_is_largest_variance(groups):
    """Loss and variance differ by a constant, tr C / n, whatever the components."""
    X, Y = groups
    C = oracles.contrast_matrix(X, Y, 0.7) / len(X)
    for seed in range(5):
        V = np.linalg.qr(np.random.default_rng(seed).standard_normal((X.shape[1], 2)))[0]
        loss = reconstruction_loss(X, V.T, background=Y, gamma=0.7)
        assert loss + np.trace(V.T @ C @ V) == pytest.approx(np.trace(C), rel=1e-11)


@pytest.mark.parametrize("gamma", [0.2, 2.0, 30.0])
def test_loss_by_components(groups, gamma):
    """The Corollary: a larger gamma lowers the loss; a further component does while its eigenvalue is positive."""
    X, Y = groups
    loss = loss_by_components(X, background=Y, gamma=gamma, max_components=10)
    np.testing.assert_allclose(loss, oracles.least_losses(X, Y, gamma, 10), rtol=1e-9, atol=1e-9)
    values = np.linalg.eigvalsh(oracles.contrast_matrix(X, Y, gamma))[::-1]
    np.testing.assert_array_equal(np.diff(loss) < 0, values[:10] > 0)
    assert (loss_by_components(X, background=Y, gamma=gamma * 1.1, max_components=10) < loss).all()


@pytest.mark.parametrize(
    ("components", "gamma", "message"),
    [(np.ones((2, 12)), 0.5, "orthonormal"), (np.eye(11)[:2], 0.5, "11 features"), (np.eye(12)[:2], "auto", "number")],
)
def test_reconstruction_loss_refuses(groups, components, gamma, message):
    X, Y = groups
    with pytest.raises(ValueError, match=message):
        reconstruction_loss(X, components, background=Y, gamma=gamma)
