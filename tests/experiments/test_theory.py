"""Risk, its minimiser and divergence, for population covariances."""

import numpy as np
import pytest

from contrapca import PCPCA, posterior
from contrapca.exceptions import ContrastWarning, ImproperPosteriorError, InfeasibleGammaError
from experiments._generators import make_toy
from experiments._theory import divergence, risk, risk_minimizer

rng = np.random.default_rng(0)
ROOTS = rng.standard_normal((2, 12, 4))
FOREGROUND, BACKGROUND = (root.T @ root / 12 + 0.2 * np.eye(4) for root in ROOTS)
POPULATION = {"beta": 0.6, "gamma": 0.3}


def test_risk_is_the_expected_loss():
    """-E log N(x; 0, A) over the foreground plus gamma times that of the background, less the constant in 2 pi."""
    W, sigma2 = rng.standard_normal((4, 2)), 0.7
    A = W @ W.T + sigma2 * np.eye(4)
    inverse, log_determinant = np.linalg.inv(A), np.linalg.slogdet(A)[1]
    losses = [0.5 * (log_determinant + np.trace(inverse @ C)) for C in (FOREGROUND, BACKGROUND)]
    expected = 0.6 * losses[0] - 0.4 * 0.3 * losses[1]
    assert risk(W, sigma2, FOREGROUND, BACKGROUND, **POPULATION) == pytest.approx(expected)
    stacked = risk(np.stack([W, 2 * W]), np.array([sigma2, 1.0]), FOREGROUND, BACKGROUND, **POPULATION)
    assert stacked.shape == (2,)
    assert stacked[0] == pytest.approx(expected)


def test_no_parameters_have_less_risk():
    W, sigma2 = risk_minimizer(FOREGROUND, BACKGROUND, 2, **POPULATION)
    assert divergence(W, sigma2, FOREGROUND, BACKGROUND, **POPULATION) == pytest.approx(0, abs=1e-7)
    for size in (1e-3, 1e-1):
        for _ in range(20):
            other = W + size * rng.standard_normal(W.shape), sigma2 * np.exp(size * rng.standard_normal())
            assert divergence(*other, FOREGROUND, BACKGROUND, **POPULATION) > 0
    # The paper's sigma2, not divided by beta - (1 - beta) gamma, has more.
    paper = sigma2 * (0.6 - 0.4 * 0.3)
    assert risk(W, paper, FOREGROUND, BACKGROUND, **POPULATION) > risk(W, sigma2, FOREGROUND, BACKGROUND, **POPULATION)


def test_estimates_converge_to_the_minimizer():
    roots = [np.linalg.cholesky(C) for C in (FOREGROUND, BACKGROUND)]
    X, Y = (rng.standard_normal((200_000, 4)) @ root.T for root in roots)
    model = PCPCA(2, gamma=0.3).fit(X, background=Y)
    W, sigma2 = risk_minimizer(FOREGROUND, BACKGROUND, 2, beta=0.5, gamma=0.3)
    np.testing.assert_allclose(model.loadings_ @ model.loadings_.T, W @ W.T, atol=0.05)
    assert model.noise_variance_ == pytest.approx(sigma2, rel=0.02)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beta": 0.0, "gamma": 0.1}, "beta=0.0"),
        ({"beta": 0.5, "gamma": 1.2}, "below beta"),
        ({"beta": 0.5, "gamma": 0.95}, "no minimum"),
    ],
)
def test_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        risk_minimizer(FOREGROUND, 5 * BACKGROUND, 1, **settings)
    with pytest.raises(ValueError, match="d=4"):
        risk_minimizer(FOREGROUND, BACKGROUND, 4, beta=0.5, gamma=0.1)


@pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
def test_toy_posteriors_concentrate(need):
    """The paper's toy at gamma 0.85: draws gather around the separating axis as n grows; the improper are refused."""
    need("nutpie")
    spread, refused = {}, 0
    for n in (30, 60, 300):
        angles = []
        for seed in range(6):
            data = make_toy(n, n, kind="posterior", random_state=seed)
            try:
                X, Y = data.foreground, data.background
                model = PCPCA(1, gamma=0.85).fit(X, background=Y)
                found = posterior(model, X, background=Y, draws=150, tune=200, chains=2, random_state=seed)
            except (InfeasibleGammaError, ImproperPosteriorError):
                refused += 1
                continue
            angles.append(np.arccos(np.clip(np.abs(found.bases()[..., 0] @ data.plane[:, 0]), 0, 1)))
        spread[n] = np.median(angles)
    assert spread[300] < spread[60] < spread[30]
    assert spread[300] < np.radians(12)
    assert refused > 0


def test_toy_data():
    data = make_toy(5000, 4000, random_state=0)
    np.testing.assert_allclose(np.cov(data.background.T), [[2.7, 2.6], [2.6, 2.7]], atol=0.2)
    means = [data.foreground[data.labels == k].mean(axis=0) for k in (0, 1)]
    np.testing.assert_allclose(means, [[1, -1], [-1, 1]], atol=0.15)


def test_warns_at_the_users_line(need):
    need("nutpie")
    data = make_toy(20, 20, kind="posterior", random_state=1)
    X, Y = data.foreground, data.background
    model = PCPCA(1, gamma=0.6).fit(X, background=Y)
    with pytest.warns(ContrastWarning) as caught:
        posterior(model, X, background=Y, draws=50, tune=100, chains=1, random_state=0)
    assert {warning.filename for warning in caught} == {__file__}
