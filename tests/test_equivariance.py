"""The same tables in other units, from 1e-100 to 1e100: every result changes as its unit does, and not otherwise."""

import warnings

import numpy as np
import pytest

from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    GammaSearch,
    bootstrap,
    contrast_path,
    contrast_test,
    gamma_limits,
    held_out_contrast,
    posterior,
)
from contrapca.exceptions import ContrastWarning

N, M, D = 60, 50, 8
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(N, D)) * np.linspace(1, 3, D) + 1, RNG.normal(size=(M, D)) + 0.5
HOLES = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
UNITS = [1e-100, 1e-30, 1e-12, 1e30, 1e80, 1e100]
MODELS = {
    "PCPCA": (PCPCA(2, gamma=0.3), N * 0.7),  # and how many rows its objective counts
    "ContraPCA": (ContraPCA(2, gamma=0.2, shorten=False), N * 0.8),
    "PPCA": (PPCA(2), N),
    "CLVM": (CLVM(1, 2), N + M),
}


def fitted(model, c, rows=X):
    return model.fit(rows * c) if isinstance(model, PPCA) else model.fit(rows * c, background=Y * c)


def close(found, expected, size=1.0):
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * size)


@pytest.mark.parametrize("c", UNITS)
@pytest.mark.parametrize("name", MODELS)
def test_models(name, c):
    model, rows = MODELS[name]
    expected = fitted(model, 1.0)
    numbers = expected.objective_, expected.noise_variance_, expected.score_samples(X)
    drawn = expected.sample(3, random_state=0)
    arrays = expected.components_, expected.transform(X), expected.get_covariance()
    found = fitted(model, c)
    close(found.objective_ + rows * D * np.log(c), numbers[0])
    close(found.noise_variance_ / c / c, numbers[1])
    close(found.score_samples(X * c) + D * np.log(c), numbers[2])
    close(found.sample(3, random_state=0) / c, drawn)
    close(found.components_, arrays[0])
    close(found.transform(X * c), arrays[1])
    close(found.get_covariance() / c / c, arrays[2])


@pytest.mark.parametrize("c", UNITS)
def test_cpca(c):
    expected, found = fitted(CPCA(2, gamma=1.0), 1.0), fitted(CPCA(2, gamma=1.0), c)
    close(found.objective_ / c / c, expected.objective_)
    close(found.reconstruction_error_ / c / c, expected.reconstruction_error_)
    close(found.transform(X * c) / c, expected.transform(X))


UNITLESS = {
    "limits": lambda x, y: list(gamma_limits(x, background=y, n_components=2).gamma.values()),
    "path": lambda x, y: contrast_path(PCPCA(2), x, background=y, gammas=5).latents(x),
    "held-out contrast": lambda x, y: held_out_contrast(ContraPCA(2), x, background=y).log_ratios,
    "test": lambda x, y: contrast_test(x, background=y, random_state=0).p_values,
    "search": lambda x, y: GammaSearch(CPCA(2), gammas=[0, 0.5, 1]).fit(x, background=y).scores_,
    "contrast score": lambda x, y: PCPCA(2, gamma=0.3).fit(x, background=y).contrast_score(x),
    "bootstrap": lambda x, y: bootstrap(
        PCPCA(2, gamma=0.3).fit(x, background=y), x, background=y, n_resamples=10, random_state=0
    ).angles(),
    "missing values": lambda x, y: (
        PCPCA(2, gamma=0.2, tol=1e-9).fit(x * HOLES / X, background=y).transform(x * HOLES / X)
    ),
    "imputed": lambda x, y: (
        PCPCA(2, gamma=0.2, tol=1e-9).fit(x * HOLES / X, background=y).impute(x * HOLES / X) / np.std(x)
    ),
}


@pytest.mark.parametrize("c", UNITS)
@pytest.mark.parametrize("name", UNITLESS)
def test_results_without_a_unit(name, c):
    expected = np.asarray(UNITLESS[name](X, Y))
    close(UNITLESS[name](X * c, Y * c), expected, size=np.abs(expected).max())


@pytest.mark.parametrize("exponent", [-332, -40, 266, 332])  # of 2: about 1e-100, 1e-12, 1e80, 1e100
def test_posteriors(exponent, need):
    """The sampler works in units of the noise: as many effective draws, and the same law."""
    need("nutpie")
    c, options = 2.0**exponent, {"draws": 200, "tune": 200, "chains": 2, "random_state": 0}
    found = []
    for unit in (1.0, c):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ContrastWarning)  # so few draws
            draws = posterior(fitted(PCPCA(1, gamma=0.2), unit), X * unit, background=Y * unit, **options)
        found.append((draws.diagnostics()["least ESS"].min(), np.mean(draws.loadings / unit, axis=(0, 1)), draws))
    (expected_ess, mean, draws), (ess, other, _) = found
    assert ess > 0.4 * expected_ess
    error = draws.loadings.std(axis=(0, 1)) / np.sqrt(expected_ess)
    assert np.all(np.abs(other - mean) < 6 * error)
