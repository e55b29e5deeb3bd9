"""Filling holes of new rows from a fitted model."""

import functools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import make_groups
from contrapca import CPCA, PCPCA, PPCA
from contrapca.data import _scaling
from contrapca.data.rows._storage import blocks

X, Y = make_groups(300, 200, 8)


def with_holes(table, fraction=0.3, seed=0):
    holes = np.random.default_rng(seed).random(table.shape) < fraction
    return np.where(holes, np.nan, table), holes


@pytest.mark.parametrize("scale", [None, "group"])
def test_conditional_mean_and_deviation(scale):
    """Against conditioning the model's explicit covariance, row by row."""
    model = PCPCA(2, gamma=0.3, scale=scale).fit(X * np.arange(1, 9), background=Y)
    rows, holes = with_holes(X[:20] * np.arange(1, 9))
    filled, std = model.impute(rows, return_std=True)
    np.testing.assert_array_equal(filled[~holes], rows[~holes])  # to the bit
    np.testing.assert_array_equal(std[~holes], 0)
    A = model.get_covariance()
    for row, hole, values, deviations in zip(rows, holes, filled, std, strict=True):
        gain = A[np.ix_(hole, ~hole)] @ np.linalg.inv(A[np.ix_(~hole, ~hole)])
        np.testing.assert_allclose(values[hole], model.mean_[hole] + gain @ (row - model.mean_)[~hole], rtol=1e-8)
        variance = np.diag(A[np.ix_(hole, hole)] - gain @ A[np.ix_(~hole, hole)])
        np.testing.assert_allclose(deviations[hole], np.sqrt(variance), rtol=1e-8)


def test_rows_without_holes_and_without_values():
    model = PPCA(2).fit(X)
    np.testing.assert_array_equal(model.impute(X), X)
    filled, std = model.impute(np.full((2, 8), np.nan), return_std=True)
    np.testing.assert_allclose(filled, np.broadcast_to(model.mean_, (2, 8)), rtol=1e-12)
    np.testing.assert_allclose(std, np.sqrt(np.broadcast_to(np.diag(model.get_covariance()), (2, 8))), rtol=1e-10)


@pytest.mark.slow
def test_draws_have_the_conditional_moments():
    """Mean and covariance over many draws within 5 standard errors; a covariance 10 % larger must fail."""
    model = PCPCA(2, gamma=0.3).fit(X, background=Y)
    row, hole = with_holes(X[:1], 0.5, seed=3)
    hole = hole[0]
    n = 20_000
    draws = model.impute(row, n_draws=n, random_state=0)
    assert draws.shape == (n, 1, 8)
    np.testing.assert_array_equal(draws[:, 0, ~hole], np.broadcast_to(row[0, ~hole], (n, (~hole).sum())))
    filled, std = model.impute(row, return_std=True)
    values = draws[:, 0, hole]
    assert np.abs((values.mean(axis=0) - filled[0, hole]) / std[0, hole] * np.sqrt(n)).max() < 5
    A = model.get_covariance()
    covariance = A[np.ix_(hole, hole)] - A[np.ix_(hole, ~hole)] @ np.linalg.solve(
        A[np.ix_(~hole, ~hole)], A[np.ix_(~hole, hole)]
    )
    variance = np.diag(covariance)
    standard_error = np.sqrt((np.outer(variance, variance) + covariance**2) / n)
    error = np.cov(values.T) - covariance
    assert (np.abs(error) / standard_error).max() < 5
    assert (np.abs(error - 0.1 * covariance) / standard_error).max() > 5


def with_more_noise(model):
    fit = model.fit_
    return PPCA(2)._with_fit(replace(fit, model=replace(fit.model, sigma2=2 * fit.model.sigma2)))


def test_coverage():
    """90 % intervals cover 90 +- 2 % of hidden cells of rows from the model; with sigma2 doubled they must not."""
    model = PPCA(2).fit(X)
    rows = model.sample(4000, random_state=1)
    hidden, holes = with_holes(rows)

    def covered(fitted):
        filled, std = fitted.impute(hidden, return_std=True)
        return np.mean(np.abs(filled - rows)[holes] < 1.6449 * std[holes])

    assert covered(model) == pytest.approx(0.9, abs=0.02)
    assert covered(with_more_noise(model)) > 0.93


def test_coverage_of_the_holes_of_the_fit():
    """The same for a model fitted to the rows with holes; with sigma2 doubled the intervals must not fit."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3000, 2)) @ rng.standard_normal((2, 8)) + 0.7 * rng.standard_normal((3000, 8)) + 3
    hidden, holes = with_holes(rows)
    model = PPCA(2).fit(hidden)

    def covered(fitted):
        filled, std = fitted.impute(hidden, return_std=True)
        return np.mean(np.abs(filled - rows)[holes] < 1.6449 * std[holes])

    assert covered(model) == pytest.approx(0.9, abs=0.02)
    assert covered(with_more_noise(model)) > 0.93


def test_imputation_beats_the_mean():
    model = PPCA(3).fit(X[:200])
    hidden, holes = with_holes(X[200:])
    error = np.mean((model.impute(hidden) - X[200:])[holes] ** 2)
    assert error < 0.7 * np.mean((model.mean_ - X[200:])[holes] ** 2)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_keep_names_and_index(library, need):
    frames = need(library)
    names = [f"gene{j}" for j in range(8)]
    hidden, _ = with_holes(X)
    columns = dict(zip(names, hidden.T, strict=True))
    table = frames.DataFrame(columns)
    if library == "pandas":
        table.index = [f"row{i}" for i in range(len(X))]
    model = PPCA(2).fit(frames.DataFrame(dict(zip(names, X.T, strict=True))))
    filled, std = model.impute(table, return_std=True)
    for frame in (filled, std, *model.impute(table, n_draws=2, random_state=0)):
        assert isinstance(frame, frames.DataFrame)
        assert list(frame.columns) == names
        assert library == "polars" or list(frame.index) == list(table.index)
    np.testing.assert_allclose(filled.to_numpy(), PPCA(2).fit(X).impute(hidden))


def test_types_seeds_and_blocks(monkeypatch):
    hidden, _ = with_holes(X)
    model = PPCA(2).fit(X.astype(np.float32))
    assert model.impute(hidden.astype(np.float32)).dtype == np.float32
    draws = model.impute(hidden, n_draws=3, random_state=5)
    np.testing.assert_array_equal(draws, model.impute(hidden, n_draws=3, random_state=5))
    assert not np.array_equal(draws, model.impute(hidden, n_draws=3, random_state=6))
    whole = model.impute(hidden)
    monkeypatch.setattr(_scaling, "blocks", functools.partial(blocks, n_bytes=500))
    assert len(list(_scaling.blocks(hidden))) > 30
    np.testing.assert_allclose(model.impute(hidden), whole, rtol=1e-12)


def test_refused():
    model = PPCA(2).fit(X)
    with pytest.raises(ValueError, match="infinity"):
        model.impute(np.full((2, 8), np.inf))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model.impute(sp.csr_array(X))
    with pytest.raises(ValueError, match="n_draws=0"):
        model.impute(X, n_draws=0)
    with pytest.raises(ValueError, match="return_std cannot be combined with n_draws"):
        model.impute(X, n_draws=2, return_std=True)
    with pytest.raises(ValueError, match="7 features"):
        model.impute(X[:, :7])
    assert not hasattr(CPCA(), "impute")
