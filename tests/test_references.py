"""References in 50 digits, at arguments where float64 has little room: likelihoods, intervals, edges, p-values."""

import numpy as np
import pytest

from contrapca.contrast._gaussian import LatentGaussian
from contrapca.contrast._pcpca import closed_form
from contrapca.missing._likelihood import masked_log_likelihood
from contrapca.missing._rows import observe
from contrapca.moments._moments import Moments

DIGITS = 50


@pytest.fixture
def mp(need):
    library = need("mpmath")
    with library.workdps(DIGITS):
        yield library


def matrix(mp, array):
    return mp.matrix(np.atleast_2d(array).tolist())


def covariance(mp, W, sigma2):
    W = matrix(mp, W)
    return W * W.T + mp.mpf(sigma2) * mp.eye(W.rows)


def log_density(mp, x, A):
    """log N(x; 0, A)."""
    x = mp.matrix(x.tolist())
    quadratic = (x.T * mp.lu_solve(A, x))[0]
    return -(len(x) * mp.log(2 * mp.pi) + mp.log(mp.det(A)) + quadratic) / 2


# Loadings, noise variance and unit of the rows: tiny noise, huge and tiny units, features far apart.
EXTREMES = {
    "ordinary": (1.0, 1.0, np.ones(5)),
    "little noise": (1.0, 1e-12, np.ones(5)),
    "no signal": (1e-9, 1.0, np.ones(5)),
    "large units": (1e100, 1e200, np.ones(5)),
    "small units": (1e-100, 1e-200, np.ones(5)),
    "features far apart": (1.0, 1.0, np.array([1e6, 1.0, 1.0, 1.0, 1e-6])),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_densities(name, mp):
    size, sigma2, units = EXTREMES[name]
    rng = np.random.default_rng(0)
    W = size * rng.standard_normal((5, 2)) * units[:, None]
    rows = rng.standard_normal((4, 2)) @ W.T + np.sqrt(sigma2) * rng.standard_normal((4, 5))
    found = LatentGaussian(np.zeros(5), W, sigma2).log_prob(rows)
    A = covariance(mp, W, sigma2)
    expected = np.array([float(log_density(mp, row, A)) for row in rows])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", EXTREMES)
def test_observed_values(name, mp):
    """Value and gradient of the likelihood of incomplete rows; the gradient by differences in 50 digits."""
    size, sigma2, units = EXTREMES[name]
    rng = np.random.default_rng(1)
    W = size * rng.standard_normal((5, 2)) * units[:, None]
    rows = rng.standard_normal((6, 2)) @ W.T + np.sqrt(sigma2) * rng.standard_normal((6, 5))
    rows[rng.random(rows.shape) < 0.3] = np.nan
    rows[:, 0] = np.where(np.isnan(rows[:, 0]), W[0, 0], rows[:, 0])
    group, _ = observe(rows)
    found = masked_log_likelihood([(1.0, group)], W, sigma2)
    deviations = rows - group.mean

    def value(loadings, noise):
        A, total = loadings * loadings.T + noise * mp.eye(5), mp.mpf(0)
        for row in deviations:
            seen = np.flatnonzero(~np.isnan(row)).tolist()
            part = mp.matrix([[A[i, j] for j in seen] for i in seen])
            total += log_density(mp, row[seen], part)
        return total

    loadings, noise = matrix(mp, W), mp.mpf(sigma2)
    assert found.value == pytest.approx(float(value(loadings, noise)), rel=1e-8)
    tiny = mp.mpf(10) ** -20
    slope = (value(loadings, noise * (1 + tiny)) - value(loadings, noise * (1 - tiny))) / (2 * tiny)
    assert found.gradient_sigma2 * sigma2 == pytest.approx(float(slope), rel=1e-5, abs=1e-5)
    for i, k in ((0, 0), (2, 1), (4, 0)):
        step = mp.zeros(5, 2)
        step[i, k] = loadings[i, k] * tiny
        slope = (value(loadings + step, noise) - value(loadings - step, noise)) / (2 * tiny)
        assert found.gradient_W[i, k] * W[i, k] == pytest.approx(float(slope), rel=1e-4, abs=1e-4), (i, k)


@pytest.mark.parametrize("ratio", [1.0, 1e-6, 1e-12])
def test_the_maximum_in_closed_form(ratio, mp):
    """F2, for a noise variance that is a small part of the whole."""
    values = np.array([3.0, 2.0, *(ratio * np.array([1.5, 1.0, 0.5]))])
    lengths, sigma2 = closed_form(values[:2], float(values[2:].sum()), 10.0, 5)
    noise = mp.fsum(map(mp.mpf, values[2:].tolist())) / 30
    assert sigma2 == pytest.approx(float(noise), rel=1e-14)
    for length, value in zip(lengths, values[:2], strict=True):
        assert length == pytest.approx(float(mp.sqrt(mp.mpf(value) / 10 - noise)), rel=1e-12)


@pytest.mark.parametrize("mean", [0.0, 1e6, 1e9])
def test_moments_of_rows_far_from_zero(mean, mp):
    """A sum of squares of deviations, of values whose own squares would hide it."""
    rows = mean + np.random.default_rng(0).standard_normal((50, 2))
    found = Moments.from_rows(rows).scatter.dense()
    columns = [[mp.mpf(value) for value in column] for column in rows.T.tolist()]
    centred = [[value - mp.fsum(column) / 50 for value in column] for column in columns]
    expected = [[float(mp.fdot(a, b)) for b in centred] for a in centred]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 if mean > 1e6 else 1e-9)
