"""Contrast axes and ranks, against slow oracles and by properties."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import scipy.linalg
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from contrapca.contrast import _axes
from contrapca.contrast._axes import CAP, EDGE, contrast_axes, latent_rank, latent_rotation, noise_rank
from experiments._directions_settings import Setting
from oracle_contrapca import fit_contrapca, gamma_limit, top_eigenvectors

seeds = st.integers(0, 2**32 - 1)


@contextlib.contextmanager
def rule(name, value):
    """Another value of one of the rules' constants."""
    before = getattr(_axes, name)
    setattr(_axes, name, value)
    try:
        yield
    finally:
        setattr(_axes, name, before)


def covariance(rng, size, rows=None):
    """Sample covariance of normal rows with a random spread of scales."""
    values = rng.normal(size=(rows or 3 * size, size)) * np.exp(rng.normal(size=size))
    return values.T @ values / len(values)


def rotation(rng, size):
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


def assert_same_axes(found, expected, atol=1e-7):
    """Equal columns up to sign."""
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=atol)


# ---------------------------------------------------------------------------------------------------------- noise_rank


def slow_noise_rank(values, n_rows, D, edge=EDGE):
    """F16 word by word."""
    N, j = n_rows - 1, 0
    while j < min(N, D) - 1 and j < len(values):
        A, B = N - j - 0.5, D - j - 0.5
        s2 = sum(values[j + 1 :]) / ((D - j - 1) * (N - j - 1))
        mu = (A**0.5 + B**0.5) ** 2
        tau = (A**0.5 + B**0.5) * (A**-0.5 + B**-0.5) ** (1 / 3)
        if not values[j] > s2 * (mu + edge * tau):
            return j
        j += 1
    return j


@given(seed=seeds, n=st.integers(3, 60), D=st.integers(2, 40), spikes=st.integers(0, 8))
def test_noise_rank_is_the_rule_word_by_word(seed, n, D, spikes):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X[:, : min(spikes, D)] *= rng.uniform(1, 20)
    X -= X.mean(axis=0)
    values = np.linalg.eigvalsh(X.T @ X)[::-1].clip(min=0)
    assert noise_rank(values, n, D) == slow_noise_rank(values, n, D)


@given(seed=seeds, top=st.integers(1, 12), scale=st.floats(1e-8, 1e8))
def test_noise_rank_of_the_largest_values_and_the_trace_is_that_of_all(seed, top, scale):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 30)) * np.sqrt(scale)
    X[:, :6] *= 5
    X -= X.mean(axis=0)
    values = np.linalg.eigvalsh(X.T @ X)[::-1]
    q = noise_rank(values, 80, 30)
    assert q >= 6  # one table in a hundred has a seventh
    assert noise_rank(values[:top], 80, 30, trace=values.sum()) == min(q, top)


def test_noise_rank_of_noise_is_zero_as_often_as_the_quantile_says():
    tables, n, D = 400, 200, 50
    rng = np.random.default_rng(0)
    above = {EDGE: 0, -3.0: 0}
    for _ in range(tables):
        X = rng.normal(size=(n, D))
        X -= X.mean(axis=0)
        values = np.linalg.eigvalsh(X.T @ X)[::-1]
        for edge in above:
            with rule("EDGE", edge):
                above[edge] += noise_rank(values, n, D) > 0
    # One in a hundred exceeds the edge in large tables, and two in tables of this size, as the noise's variance is that
    # of the eigenvalues below the largest: at most 8 + 4 standard deviations of 2.8. The law's median is -1.27.
    assert above[EDGE] <= 19
    assert above[-3.0] > tables / 2


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_noise_rank_of_a_table_without_noise_is_its_rank(rank):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, rank)) @ rng.normal(size=(rank, 20))
    X -= X.mean(axis=0)
    values = np.linalg.eigvalsh(X.T @ X)[::-1]
    assert noise_rank(values, 50, 20) == rank


@pytest.mark.parametrize(("n", "D"), [(1, 5), (2, 5), (3, 1), (5, 2)])
def test_noise_rank_of_tiny_tables_stays_in_its_bounds(n, D):
    assert 0 <= noise_rank(np.arange(D, 0, -1.0), n, D) <= max(min(n - 1, D) - 1, 0)


# --------------------------------------------------------------------------------------------------------- latent_rank


@given(
    q_x=st.integers(0, 500),
    q_y=st.integers(0, 500),
    k=st.integers(1, 10),
    D=st.integers(2, 600),
    n=st.integers(3, 2000),
    m=st.integers(2, 2000),
)
@example(q_x=76, q_y=48, k=2, D=77, n=270, m=135)
def test_latent_rank_keeps_its_bounds(q_x, q_y, k, D, n, m):
    assume(k < D)
    r = latent_rank(q_x, q_y, k, D, n, m)
    assert k <= r <= max(D - 1, k)
    assert r <= k + CAP
    assert r <= max(k + 1, min(n, m) // 2)
    if k + 1 <= min(D - 1, n - 2):
        assert r >= k + 1
    if max(q_x, q_y) < CAP and max(q_x, q_y) + k + 1 <= min(D - 1, n - 2, min(n, m) // 2):
        assert r == max(q_x, q_y) + k + 1
    assert latent_rank(q_x + 1, q_y, k, D, n, m) >= r


def test_latent_rank_counts_blocks():
    by_rows = latent_rank(21, 22, 1, 50, 400, 400)
    by_blocks = latent_rank(21, 22, 1, 50, 40, 40, foreground_rank=50)
    assert (by_rows, by_blocks) == (24, 20)


# ------------------------------------------------------------------------------------------------------- contrast_axes


def slow_contrast_axes(a, b, nu_x, nu_y, k):
    """The definition, by SciPy's generalised solver."""
    values, vectors = np.linalg.eigh(b)
    rho = nu_y
    while True:
        floored = vectors @ np.diag(np.maximum(values, rho)) @ vectors.T
        theta, w = scipy.linalg.eigh(a, floored)
        if theta[-k] >= 3 or rho <= min(nu_x, nu_y):
            return theta[::-1][:k], w[:, ::-1][:, :k] / np.linalg.norm(w[:, ::-1][:, :k], axis=0)
        rho = max(rho / 2, min(nu_x, nu_y))


@given(seed=seeds, r=st.integers(1, 12), data=st.data())
def test_contrast_axes_solve_their_definition(seed, r, data):
    rng = np.random.default_rng(seed)
    k = data.draw(st.integers(1, r))
    a, b = covariance(rng, r), covariance(rng, r)
    nu_x, nu_y = rng.uniform(0.01, 1.0, size=2)
    theta, w = contrast_axes(a, b, nu_x, nu_y, k)
    expected, axes = slow_contrast_axes(a, b, nu_x, nu_y, k)
    np.testing.assert_allclose(theta, expected, rtol=1e-8)
    gaps = -np.diff(np.append(theta, 0.0))
    assume(r == 1 or (np.abs(gaps) > 1e-4 * theta[0]).all())
    assert_same_axes(w, axes, atol=1e-6)
    assert w.shape == (r, k)
    assert (w[np.abs(w).argmax(axis=0), np.arange(k)] > 0).all()


@given(seed=seeds, scale=st.floats(1e-6, 1e6))
def test_contrast_axes_turn_with_the_basis_and_do_not_depend_on_units(seed, scale):
    rng = np.random.default_rng(seed)
    a, b, Q = covariance(rng, 6), covariance(rng, 6), rotation(rng, 6)
    theta, w = contrast_axes(a, b, 0.3, 0.5, 2)
    assume(theta[0] > 1.001 * theta[1])
    with rule("RATIO", 0.0):
        assume(theta[1] > 1.001 * contrast_axes(a, b, 0.3, 0.5, 6)[0][2])
    turned, axes = contrast_axes(scale * Q @ a @ Q.T, scale * Q @ b @ Q.T, scale * 0.3, scale * 0.5, 2)
    np.testing.assert_allclose(turned, theta, rtol=1e-8)
    assert_same_axes(axes, Q @ w, atol=1e-5)


@given(seed=seeds, r=st.integers(1, 10))
def test_no_axis_of_identical_groups_has_a_ratio_above_one(seed, r):
    rng = np.random.default_rng(seed)
    a = covariance(rng, r)
    largest = np.linalg.eigvalsh(a)[-1]
    theta, _ = contrast_axes(a, a, 0.9 * largest, 0.9 * largest, r)
    assert theta[0] == pytest.approx(1.0, abs=1e-10)
    doubled, _ = contrast_axes(2 * a, a, 0.9 * largest, 0.9 * largest, r)  # the control
    assert doubled[0] == pytest.approx(2.0, abs=1e-10)


def test_ratios_of_equal_populations_are_near_one_and_of_a_planted_direction_are_not():
    rng = np.random.default_rng(3)
    n, r = 4000, 5
    X, Y = rng.normal(size=(2, n, r)) * np.array([5.0, 3.0, 2.0, 1.0, 1.0])
    a, b = np.cov(X.T), np.cov(Y.T)
    # The largest root of an F matrix, c = y = r / n: ((1 + sqrt(c + y - cy)) / (1 - y))^2, and a tenth for its spread.
    y = r / n
    edge = ((1 + np.sqrt(2 * y - y * y)) / (1 - y)) ** 2
    assert contrast_axes(a, b, 1.0, 1.0, 1)[0][0] < 1.1 * edge < 1.3
    X[:, 3] += 2 * rng.normal(size=n)
    assert contrast_axes(np.cov(X.T), b, 1.0, 1.0, 1)[0][0] > 4


def test_contrast_axes_of_an_ill_conditioned_background():
    rng = np.random.default_rng(4)
    Q = rotation(rng, 8)
    spectrum = np.logspace(6, -10, 8)
    b = Q @ np.diag(spectrum) @ Q.T
    plant = Q[:, 4]
    a = b + 3.0 * np.outer(plant, plant)
    theta, w = contrast_axes(a, b, 1e-3, 1e-3, 1)
    assert abs(w[:, 0] @ plant) > 1 - 1e-6
    assert theta[0] == pytest.approx((spectrum[4] + 3) / max(spectrum[4], 1e-3), rel=1e-6)


def test_a_background_without_any_variance_gives_the_foregrounds_principal_axis():
    a = np.diag([1.0, 3.0, 2.0])
    theta, w = contrast_axes(a, np.zeros((3, 3)), 0.0, 0.0, 1)
    np.testing.assert_allclose(w[:, 0], [0, 1, 0], atol=1e-12)
    assert np.isfinite(theta).all()
    theta, w = contrast_axes(np.zeros((3, 3)), np.zeros((3, 3)), 0.0, 0.0, 2)
    assert np.isfinite(theta).all()
    assert np.isfinite(w).all()


def test_the_floor_goes_down_where_the_background_has_directions_of_its_own():
    a, b = np.diag([9.0, 4.0]), np.diag([9.0, 1.0])
    # Outside the subspace the background varies by 10, of which its noise is only 1: that floor hides the second axis.
    theta, w = contrast_axes(a, b, 1.0, 10.0, 1)
    np.testing.assert_allclose(np.abs(w[:, 0]), [0, 1], atol=1e-12)
    assert theta[0] > 2
    with rule("RATIO", 0.0):  # the control
        _, kept = contrast_axes(a, b, 1.0, 10.0, 1)
    np.testing.assert_allclose(np.abs(kept[:, 0]), [1, 0], atol=1e-12)


# ----------------------------------------------------------------------------------------------------- latent_rotation


def slow_rotation(lengths, sigma2, w):
    """Gram-Schmidt, one column after another."""
    columns = []
    for axis in w.T:
        v = (lengths**2 + sigma2) / lengths * axis
        for done in columns:
            v = v - (done @ v) * done
        columns.append(v / np.linalg.norm(v))
    return np.array(columns).T


@given(seed=seeds, r=st.integers(1, 10), sigma2=st.floats(1e-6, 1e3), data=st.data())
def test_the_rotation_is_gram_schmidt_and_shows_the_first_direction(seed, r, sigma2, data):
    rng = np.random.default_rng(seed)
    k = data.draw(st.integers(1, r))
    lengths = rng.uniform(0.3, 4.0, size=r)
    w = rng.normal(size=(r, k))
    assume(np.linalg.cond(w) < 1e3)
    whole = latent_rotation(lengths, sigma2, w)
    np.testing.assert_allclose(whole.T @ whole, np.eye(r), atol=1e-12)
    R = whole[:, :k]
    np.testing.assert_allclose(R, slow_rotation(lengths, sigma2, w), atol=1e-7)
    projections = rng.normal(size=(30, r))  # of rows on the basis
    shown = projections * (lengths / (lengths**2 + sigma2)) @ R
    first = projections @ w[:, 0]
    assert np.corrcoef(shown[:, 0], first)[0, 1] > 1 - 1e-9
    # All shown dimensions together are the projections on all directions: nothing is left of one given the other.
    left = projections @ w - shown @ np.linalg.lstsq(shown, projections @ w, rcond=None)[0]
    assert np.abs(left).max() < 1e-8 * np.abs(projections @ w).max()


@given(
    lengths=st.lists(st.sampled_from([0.0, 1e-300, 1e-12, 1e-5, 1.0, 1e6]), min_size=2, max_size=7),
    sigma2=st.sampled_from([0.0, 1e-12, 1.0, 1e6]),
    seed=seeds,
)
def test_the_rotation_is_orthonormal_however_short_the_lengths(lengths, sigma2, seed):
    w = np.random.default_rng(seed).normal(size=(len(lengths), 2))
    R = latent_rotation(lengths, sigma2, w)
    assert np.isfinite(R).all()
    np.testing.assert_allclose(R.T @ R, np.eye(len(lengths)), atol=1e-12)


@pytest.mark.parametrize("zero", [0.0, 1e-8])
def test_a_latent_of_length_zero_up_to_rounding_is_left_out_and_not_shown_alone(zero):
    R = latent_rotation([2.0, 1.0, zero], 1.0, [[1.0], [1.0], [5.0]])
    expected = np.array([2.5, 2.0, 0.0])
    np.testing.assert_allclose(R[:, 0], expected / np.linalg.norm(expected))


# --------------------------------------------------------------------------------------------------------------- oracle


@given(seed=seeds, d=st.integers(1, 5), strength=st.floats(0.2, 5.0))
def test_the_limit_is_where_nothing_is_left_outside(seed, d, strength):
    rng = np.random.default_rng(seed)
    A, B = covariance(rng, 7), strength * covariance(rng, 7)

    def left(gamma):
        C = A - gamma * B
        return np.trace(C) - top_eigenvectors(C, d)[0].sum()

    limit = gamma_limit(A, B, d)
    if left(1.0) > 0:
        assert limit == 1.0
    else:
        slow = scipy.optimize.brentq(left, 0.0, 1.0, xtol=1e-14)
        assert limit == pytest.approx(slow, rel=1e-7)


def test_no_gamma_is_feasible_without_dimensions_to_spare():
    x = np.ones((4, 1))
    assert gamma_limit(x @ x.T, np.eye(4), 1) == 0.0
    with pytest.raises(ValueError, match="feasible"):
        fit_contrapca(x @ x.T, np.eye(4), 10, 10, 1, n_latent=2)


def drawn(setting, seed=0):
    data = setting.draw(seed)
    X, Y = (rows - rows.mean(axis=0) for rows in (data.foreground, data.background))
    return X, Y, (X.T @ X / len(X), Y.T @ Y / len(Y), len(X), len(Y)), data.population


@given(seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e3))
@settings(max_examples=15)
def test_latents_do_not_depend_on_the_features_basis_or_common_unit(seed, scale):
    X, _, (A, B, n, m), _ = drawn(Setting("small", D=12, n=80, m=70, k=2, signal=(6.0, 3.0), shared=2), seed)
    Q = rotation(np.random.default_rng(seed), 12)
    one = fit_contrapca(A, B, n, m, 2)
    other = fit_contrapca(scale**2 * Q.T @ A @ Q, scale**2 * Q.T @ B @ Q, n, m, 2)
    assert one.n_latent == other.n_latent
    np.testing.assert_allclose(one.theta, other.theta, rtol=1e-6)
    assume(one.theta[0] > 1.01 * one.theta[1])
    assert_same_axes(other.transform(scale * X @ Q), one.transform(X), atol=1e-4)


def test_the_shown_latents_are_those_of_the_model():
    X, _, groups, _ = drawn(Setting("small", D=12, n=80, m=70, k=2, signal=(6.0, 3.0), shared=2))
    fit = fit_contrapca(*groups, 2)
    W = fit.U * fit.lengths
    M = fit.sigma2 * np.eye(fit.n_latent) + W.T @ W
    np.testing.assert_allclose(fit.transform(X), np.linalg.solve(M, W.T @ X.T).T @ fit.rotation, atol=1e-10)
    np.testing.assert_allclose(fit.loadings, W @ fit.rotation)
    # The closed form (F2): the model has the contrast's variances along U, and their mean elsewhere.
    A, B, _, _ = groups
    contrast = (A - fit.gamma * B) / (1 - fit.gamma)
    covariance = W @ W.T + fit.sigma2 * np.eye(12)
    np.testing.assert_allclose(fit.U.T @ covariance @ fit.U, fit.U.T @ contrast @ fit.U, atol=1e-10)
    assert np.trace(covariance) == pytest.approx(np.trace(contrast))
    assert fit.gamma == fit.gamma_max / 2
