"""Draws from Bingham distributions against quadrature."""

import numpy as np
import pytest

import oracles
from contrapca import CPCA, Study, posterior
from contrapca.exceptions import ContrastWarning
from contrapca.inference import _draws as diagnostics
from contrapca.inference._bingham import _column, _smallest_inside, sample_frames, sample_vectors
from contrapca.inference._posterior import eigenbasis


def scores(squares, expected, effective):
    return (squares.mean(axis=0) - expected) / (squares.std(axis=0) / np.sqrt(effective))


@pytest.mark.parametrize("values", [[2.0, 0.0], [30.0, 0.0], [3.0, 1.0, 0.0], [60.0, 58.0, 0.0], [0.0, 0.0, 0.0]])
def test_vectors(values):
    """E[x_i^2] within 4.5 standard errors; values 5 % off (the control) are told apart unless they mean the same."""
    x = sample_vectors(np.array(values), 200_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1)
    expected = oracles.bingham_second_moments(values)
    assert np.abs(scores(x**2, expected, len(x))).max() < 4.5
    if max(values) in (2.0, 3.0):
        assert np.abs(scores(x**2, oracles.bingham_second_moments(np.array(values) * 1.05), len(x))).max() > 6
    assert np.abs(x.mean(axis=0)).max() < 4.5 / np.sqrt(len(x))  # x and -x are alike


def test_vectors_far_from_the_top_are_rare():
    x = sample_vectors(np.linspace(4000, 0, 77), 1000, np.random.default_rng(0))
    assert (x[:, 0] ** 2).min() > 0.2
    assert np.mean(x[:, 0] ** 2) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("values", [[3.0, 1.0, 0.0], [40.0, 20.0, 0.0]])
def test_frames(values):
    """D = 3, d = 2: the projector is I - x x' with x a Bingham vector of the negative values."""
    sweeps = 6000
    V = sample_frames(np.array(values), 2, sweeps, 100, np.random.default_rng(0))
    np.testing.assert_allclose(np.swapaxes(V, 1, 2) @ V, np.broadcast_to(np.eye(2), (sweeps, 2, 2)), atol=1e-10)
    projector = np.sum(V**2, axis=2)
    effective = diagnostics.effective_size(diagnostics.split_chains(projector[None]))
    expected = 1 - oracles.bingham_second_moments(values, sign=-1)
    assert np.abs(scores(projector, expected, effective)).max() < 4.5
    off = 1 - oracles.bingham_second_moments(np.array(values) * 1.4, sign=-1)
    assert np.abs(scores(projector, off, effective)).max() > 6


@pytest.mark.slow
@pytest.mark.parametrize(("D", "k"), [(4, 1), (8, 3), (30, 2)])
def test_a_column_given_the_others(D, k):
    """Against vectors drawn in an explicit basis of the space orthogonal to the others, with its own eigenvalues."""
    rng = np.random.default_rng(0)
    values = np.sort(rng.gamma(1.0, 6.0, D))[::-1]
    frame = np.linalg.qr(rng.standard_normal((D, k + 1)) + 3 * np.eye(D, k + 1))[0]
    others, current = frame[:, :k], frame[:, k]
    found = np.array([_column(values, others, current, rng) for _ in range(4000)])
    assert np.abs(found @ others).max() < 1e-10
    basis = np.linalg.svd(others.T)[2][k:].T
    inside, R = np.linalg.eigh(basis.T @ (values[:, None] * basis))
    expected = sample_vectors(inside, 40_000, rng) @ (basis @ R).T
    error = np.sqrt((found**2).var(axis=0) / 4000 + (expected**2).var(axis=0) / 40_000)
    assert np.abs(((found**2).mean(axis=0) - (expected**2).mean(axis=0)) / error).max() < 4.5
    smallest = np.linalg.eigvalsh(basis.T @ ((values.max() - values)[:, None] * basis))[0]
    shift = _smallest_inside(values.max() - values, others, float(current**2 @ (values.max() - values)))
    assert smallest - 0.011 < shift <= smallest + 1e-12


@pytest.mark.slow
def test_posterior_of_cpca(groups):
    X, Y = groups
    for d in (1, 2):
        model = CPCA(d, gamma=0.5).fit(X, background=Y)
        options = {"background": Y, "random_state": 0, "progress": False}
        found = posterior(model, X, draws=500, tune=50, power=0.05, **options)
        assert found.loadings.shape == (4, 500, 12, d)
        assert found.noise_variance is None
        np.testing.assert_allclose(
            np.swapaxes(found.loadings, -1, -2) @ found.loadings, np.broadcast_to(np.eye(d), (4, 500, d, d)), atol=1e-9
        )
        assert found.diagnostics()["largest R-hat"].max() < 1.02
        again = posterior(model, X, draws=500, tune=50, power=0.05, **options)
        np.testing.assert_array_equal(again.loadings, found.loadings)
        tight = posterior(model, X, draws=500, tune=50, power=0.5, **options)
        assert tight.angles().mean() < 0.5 * found.angles().mean()
    with pytest.raises(ValueError, match="CPCA has no noise variance"):
        found.sample(3)
    mean, covariance = found.latent_posterior(X)
    assert mean.shape == (150, 2)
    assert covariance.shape == (150, 2, 2)
    with pytest.warns(ContrastWarning, match="DO NOT TRUST"):
        posterior(model, X, draws=20, tune=1, power=0.05, **options)


@pytest.mark.parametrize("unit", [1e-3, 1e3, 1e5])
@pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
def test_any_units(groups, unit):
    """The learning rate has a unit: draws are concentrated or spread, never wrong or endless."""
    X, Y = groups
    X, Y = X * unit, Y * unit
    model = CPCA(2, gamma=0.5).fit(X, background=Y)
    found = posterior(model, X, background=Y, draws=20, tune=5, chains=1, random_state=0)
    gram = np.swapaxes(found.loadings, -1, -2) @ found.loadings
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(2), gram.shape), atol=1e-9)
    assert (found.angles().max() < 0.01) == (unit > 1)
    for tune in (-5, 1.5):
        with pytest.raises(ValueError, match="tune="):
            posterior(model, X, background=Y, tune=tune)


def test_wide_tables():
    """More features than rows: C from the rows, its null space included."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((12, 40)), rng.standard_normal((10, 40))
    X[:, 0] += 4 * rng.standard_normal(12)
    wide = CPCA(1, gamma=0.5).fit(X, background=Y)
    assert wide.solver_.name == "dual"
    N, values, Q = eigenbasis(wide._data_again(wide._tables_again(Study(X, background=Y))), 0.5)
    assert N == 6
    np.testing.assert_allclose(Q @ (values[:, None] * Q.T), oracles.contrast_matrix(X, Y, 0.5), atol=1e-9)
    assert posterior(wide, X, background=Y, random_state=0).loadings.shape == (4, 1000, 40, 1)


def test_there_is_no_noise_to_bound(groups):
    X, Y = groups
    model = CPCA(1, gamma=0.5).fit(X, background=Y)
    with pytest.raises(TypeError, match="bounds a noise variance, and this model has none"):
        posterior(model, X, background=Y, sigma2_min=0.1)
