"""LatentGaussian against explicit inverses, determinants and scipy."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

import oracles
from contrapca.contrast._gaussian import LatentGaussian

rng = np.random.default_rng(0)
MODEL = LatentGaussian(rng.standard_normal(7), rng.standard_normal((7, 2)) * 2, 0.3)
A = MODEL.W @ MODEL.W.T + MODEL.sigma2 * np.eye(7)
X = rng.standard_normal((20, 7)) * 3


def test_covariance_precision_determinant():
    np.testing.assert_allclose(MODEL.covariance(), A, atol=1e-13)
    np.testing.assert_allclose(MODEL.precision(), np.linalg.inv(A), atol=1e-11)
    log_determinant = -2 * MODEL.log_normaliser() - 7 * np.log(2 * np.pi)
    assert log_determinant == pytest.approx(np.linalg.slogdet(A)[1], rel=1e-12)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_log_prob(convert):
    expected = scipy.stats.multivariate_normal(MODEL.mean, A).logpdf(X)
    np.testing.assert_allclose(MODEL.log_prob(convert(X)), expected, rtol=1e-10)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_latent_posterior(convert):
    mean, covariance = oracles.latent_posterior(X, MODEL.mean, MODEL.W, MODEL.sigma2)
    np.testing.assert_allclose(MODEL.latent_mean(convert(X)), mean, atol=1e-11)
    np.testing.assert_allclose(MODEL.latent_covariance(), covariance, atol=1e-12)


def test_log_prob_with_tiny_noise():
    """Near the limit of gamma sigma2 is tiny: the quadratic form must not cancel."""
    model = LatentGaussian(np.zeros(7), MODEL.W, 1e-12)
    row = (MODEL.W @ [1.0, -2.0])[None]
    z = model.latent_mean(row)
    log_determinant = 5 * np.log(1e-12) + np.linalg.slogdet(model.M)[1]
    exact = -0.5 * (7 * np.log(2 * np.pi) + log_determinant + np.sum(z**2))  # the residual is ~ sigma2^2
    assert model.log_prob(row)[0] == pytest.approx(exact, abs=1e-3)


def test_sample_moments():
    """Mean and covariance of many draws, each entry within 5 standard errors; a wrong model must fail."""
    n = 100_000
    draws = MODEL.sample(n, np.random.default_rng(1))
    variance = np.diag(A)
    z_mean = (draws.mean(axis=0) - MODEL.mean) / np.sqrt(variance / n)
    standard_error = np.sqrt((np.outer(variance, variance) + A**2) / n)

    def z_covariance(target):
        return np.abs(np.cov(draws.T, ddof=0) - target) / standard_error

    assert np.abs(z_mean).max() < 5
    assert z_covariance(A).max() < 5
    assert z_covariance(1.05 * A).max() > 5
