"""The Gibbs posterior of PCPCA: density, propriety, draws against quadrature."""

import threading
import time

import numpy as np
import pytest

import oracles
from conftest import make_groups
from contrapca import PCPCA, PPCA, Moments, Study, posterior
from contrapca.exceptions import ContrastWarning, ImproperPosteriorError
from contrapca.inference import _draws as diagnostics
from contrapca.inference import _nuts
from contrapca.inference._nuts import GibbsTarget, compiled_log_density, sample_nuts
from contrapca.inference._posterior import eigenbasis

C2 = np.array([[40.0, 12.0], [12.0, 15.0]])


@pytest.fixture(autouse=True, scope="module")
def _engine(need):
    for library in ("numba", "nutpie", "arviz"):
        need(library)


def target_of(C, N, d, **options):
    return GibbsTarget(N, np.linalg.eigvalsh(C)[::-1].copy(), d, **options)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("sigma2_min", [0.0, 0.3])
def test_density_and_gradient(d, sigma2_min):
    """The compiled kernel against explicit matrices, the rotation into the eigenbasis included."""
    rng = np.random.default_rng(d)
    R = rng.standard_normal((30, 5))
    C, N, w = R.T @ R, 17.3, 0.7
    values, Q = np.linalg.eigh(C)
    V, theta = rng.standard_normal((5, d)), 0.4
    x = np.append(V.ravel(), theta)

    def expected(x):
        sigma2 = sigma2_min + np.exp(x[-1])
        return oracles.gibbs_log_density(Q @ x[:-1].reshape(5, d), sigma2, N, C, w) + x[-1]  # with the Jacobian

    value, gradient = compiled_log_density()(x, values, N, w, sigma2_min, d)
    assert value == pytest.approx(expected(x), rel=1e-10)
    np.testing.assert_allclose(gradient, oracles.finite_differences(expected, x), rtol=1e-6, atol=1e-6)


@pytest.fixture(scope="module")
def long_run(_engine):
    return sample_nuts(target_of(C2, 30.0, 1), 10_000, 1000, 4, seed=1)


def standard_scores(found, expected):
    """(mean of draws - expected) / Monte-Carlo standard error, for draws (chains, draws, k)."""
    error = found.std(axis=(0, 1)) / np.sqrt(diagnostics.effective_size(diagnostics.split_chains(found)))
    return (found.mean(axis=(0, 1)) - expected) / error


def entries(found, Q):
    W = Q @ found.V
    A = W @ np.swapaxes(W, -1, -2) + found.sigma2[..., None, None] * np.eye(2)
    return np.stack([found.sigma2, A[..., 0, 0], A[..., 0, 1], A[..., 1, 1]], axis=-1)


@pytest.mark.slow
def test_moments_against_quadrature(long_run):
    """D = 2, d = 1: E[sigma2] and E[A] within 4 Monte-Carlo standard errors; a target 5 % off is told apart."""
    Q = np.linalg.eigh(C2)[1][:, ::-1]
    draws = entries(long_run, Q)
    assert np.abs(standard_scores(draws, oracles.gibbs_moments_2d(30.0, C2))).max() < 4
    assert np.abs(standard_scores(draws, oracles.gibbs_moments_2d(30.0 * 1.05, C2))).max() > 6
    assert long_run.divergences == 0


@pytest.mark.slow
def test_the_power_scales_the_objective():
    found = sample_nuts(target_of(C2, 30.0, 1, power=3.0), 5000, 1000, 4, seed=2)
    draws = entries(found, np.linalg.eigh(C2)[1][:, ::-1])
    assert np.abs(standard_scores(draws, oracles.gibbs_moments_2d(30.0, C2, w=3.0))).max() < 4
    assert np.abs(standard_scores(draws, oracles.gibbs_moments_2d(30.0, C2, w=2.0))).max() > 6


def test_reproducible_on_any_number_of_cores():
    target = target_of(np.diag([9.0, 4, 2, 1, 1]) * 40, 40.0, 2)
    one, two, other = (sample_nuts(target, 50, 100, 3, seed, cores=c) for seed, c in ((5, 1), (5, 2), (6, 1)))
    np.testing.assert_array_equal(one.V, two.V)
    np.testing.assert_array_equal(one.sigma2, two.sigma2)
    assert not np.array_equal(one.V, other.V)


def test_sigma2_min():
    found = sample_nuts(target_of(C2, 30.0, 1, sigma2_min=0.6), 500, 500, 2, seed=0)
    assert found.sigma2.min() >= 0.6
    assert np.median(found.sigma2) < 1.5


# ---------------------------------------------------------------------- propriety


def test_improper_is_refused(groups):
    X, Y = groups
    fitted = PCPCA(2, gamma=0.3).fit(X, background=Y)
    few = PCPCA(2, gamma=0.3).fit(X[:18], background=Y)
    message = r"improper.*12\.6.*D \+ d - 1 = 13.*gamma below 0\.2778.*power above 1\.032.*bootstrap"
    with pytest.raises(ImproperPosteriorError, match=message):
        posterior(few, X[:18], background=Y)
    with pytest.raises(ImproperPosteriorError, match="power above"):
        posterior(fitted, X, background=Y, power=0.1)
    with pytest.warns(ContrastWarning, match="DO NOT TRUST"):  # so few draws
        found = posterior(few, X[:18], background=Y, power=3.0, draws=50, tune=100, chains=1)
    assert found.loadings.shape == (1, 50, 12, 2)


@pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
def test_the_way_out_of_an_improper_posterior_is_one(groups):
    """On one side of each number that the refusal names there are draws, on the other there are none."""
    X, Y = groups[0][:18], groups[1]
    options = {"background": Y, "draws": 10, "tune": 20, "chains": 1, "progress": False}
    for gamma, rate, proper in ((0.277, 1.0, True), (0.279, 1.0, False), (0.3, 1.033, True), (0.3, 1.031, False)):
        model = PCPCA(2, gamma=gamma).fit(X, background=Y)
        if proper:
            assert posterior(model, X, power=rate, **options).loadings.shape == (1, 10, 12, 2)
        else:
            with pytest.raises(ImproperPosteriorError, match="gamma below"):
                posterior(model, X, power=rate, **options)


@pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
def test_conditions_of_propriety():
    target_of(np.diag([3.0, 2, 1]), 3.1, 1).check()
    with pytest.raises(ImproperPosteriorError, match="infinite"):
        target_of(np.diag([3.0, 2, 1]), 3.0, 1).check()  # w N = D + d - 1
    for left in (-1.0, 0.0):  # S < 0 and S = 0
        indefinite = target_of(np.diag([3.0, 1, left - 1]), 50.0, 1)
        with pytest.raises(ImproperPosteriorError, match="sigma2_min"):
            indefinite.check()
        target_of(np.diag([3.0, 1, left - 1]), 50.0, 1, sigma2_min=0.1).check()


def test_nuts_itself_would_not_notice():
    """Why we check: on an improper target (w N < D + d - 1) NUTS returns draws, without an error."""
    improper = target_of(np.diag([3.0, 2, 1]), 2.0, 1)
    found = sample_nuts(improper, 50, 50, 2, seed=0)
    assert np.isfinite(found.V).all()
    assert found.V.shape == (2, 50, 3, 1)
    with pytest.raises(ImproperPosteriorError):
        improper.check()


def test_moments_that_do_not_exist():
    with pytest.warns(ContrastWarning, match="means and variances of A do not exist"):
        target_of(np.diag([3.0, 2, 1]), 4.5, 1).check()
    with pytest.warns(ContrastWarning, match="its variances of A do not exist"):
        target_of(np.diag([3.0, 2, 1]), 6.5, 1).check()


# ---------------------------------------------------------------------- a true posterior


@pytest.mark.slow
def test_coverage_of_the_truth():
    """gamma = 0 is a true posterior (of a flat prior): intervals for sigma2 and the projector cover, at 50 and 90 %."""
    D, d, n, repeats = 5, 2, 60, 40
    rng = np.random.default_rng(0)
    hits = {0.5: [], 0.9: []}
    for seed in range(repeats):
        W = rng.standard_normal((D, d)) * 2
        X = rng.standard_normal((n, d)) @ W.T + rng.standard_normal((n, D))
        target = GibbsTarget(n, np.linalg.eigvalsh(oracles.scatter(X))[::-1].copy(), d)
        Q = np.linalg.eigh(oracles.scatter(X))[1][:, ::-1]
        found = sample_nuts(target, 250, 250, 2, seed=seed)
        bases = np.linalg.svd(Q @ found.V, full_matrices=False)[0].reshape(-1, D, d)
        truth = np.linalg.qr(W)[0]
        projector = np.einsum("nid,nid->ni", bases, bases)
        for level, seen in hits.items():
            low, high = np.quantile(projector, [(1 - level) / 2, (1 + level) / 2], axis=0)
            inside = np.sum(truth**2, axis=1)
            covered = list((low <= inside) & (inside <= high))
            low, high = np.quantile(found.sigma2, [(1 - level) / 2, (1 + level) / 2])
            seen.append(np.mean([*covered, low <= 1.0 <= high]))
    for level, seen in hits.items():  # the share of six intervals a repeat; repeats are independent
        tolerance = 3.5 * np.std(seen, ddof=1) / np.sqrt(repeats)
        assert abs(np.mean(seen) - level) < tolerance
        assert tolerance < 0.2  # the control: the other level would be told apart


# ---------------------------------------------------------------------- manners


def test_interrupt(monkeypatch):
    """Ctrl-C while sampling raises, and nothing is returned."""
    target = target_of(np.diag(np.linspace(9, 1, 60)) * 400, 400.0, 2)
    real, polls = time.sleep, []

    def interrupted(seconds):
        polls.append(seconds)
        if len(polls) == 3:
            raise KeyboardInterrupt
        real(seconds)

    monkeypatch.setattr(_nuts.time, "sleep", interrupted)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        sample_nuts(target, 20_000, 1000, 4, seed=0)
    assert threading.active_count() <= before + 1


def test_progress_changes_nothing(groups, capsys, watched):
    X, Y = groups
    model = PCPCA(2, gamma=0.3).fit(X, background=Y)
    options = {"background": Y, "draws": 60, "tune": 100, "chains": 2, "random_state": 3}
    with pytest.warns(ContrastWarning, match="DO NOT TRUST"):
        quiet = posterior(model, X, **options, progress=False)
    assert capsys.readouterr().err == ""
    with pytest.warns(ContrastWarning):
        loud = posterior(model, X, **options)
    assert "sampling" in capsys.readouterr().err
    np.testing.assert_array_equal(loud.loadings, quiet.loadings)


def test_cost_does_not_depend_on_rows():
    """The posterior of repeated rows is that of the same (N, C), which moments hold as well."""
    X, _ = make_groups(40, 10, 4)
    model = PPCA(1).fit(X)
    for given in (X, Moments.from_rows(X)):
        N, values, _ = eigenbasis(model._data_again(model._tables_again(Study(given))), 0.0)
        assert N == 40
        np.testing.assert_allclose(values, np.linalg.eigvalsh(oracles.scatter(X))[::-1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 0}, "draws=0"),
        ({"draws": 3}, "draws=3 must be 4 or more"),
        ({"chains": 0}, "chains=0"),
        ({"tune": 0}, "tune=0"),
        ({"power": -1}, "power=-1"),
        ({"sigma2_min": -1}, "sigma2_min=-1"),
    ],
)
def test_refused(groups, options, message):
    X, Y = groups
    with pytest.raises(ValueError, match=message):
        posterior(PCPCA(2, gamma=0.3).fit(X, background=Y), X, background=Y, **options)
