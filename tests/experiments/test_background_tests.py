"""Tests of the background beside each other: published statistics against NumPy's, and the study in quick mode."""

import numpy as np
import pytest
import scipy.linalg
import scipy.stats


def tables(rng, own):
    """Three shared directions; the foreground has one more of this variance."""
    X, Y = rng.standard_normal((2, 80, 10)) * np.repeat([5.0, 1.0], [3, 7])
    X[:, 5] *= np.sqrt(1 + own)
    return X, Y


def moments(X, Y):
    from experiments._other_tests import UnitMoments

    return [UnitMoments.of(T, np.arange(80) // 2) for T in (X, Y)]  # two rows each


def test_covariances_of_resamples():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 4)) + 3
    from experiments._other_tests import UnitMoments

    units = np.repeat([7, 3, 5], [8, 10, 2])
    found = UnitMoments.of(X, units).covariances(np.array([[1, 1, 1], [0, 2, 1]]))  # of units 3, 5, 7
    np.testing.assert_allclose(found[0], np.cov(X.T, ddof=0))
    drawn = np.vstack([X[units == 5], X[units == 5], X[units == 7]])
    np.testing.assert_allclose(found[1], np.cov(drawn.T, ddof=0))


def test_contrastive_dimension():
    from experiments._other_tests import contrastive_dimension

    rng = np.random.default_rng(0)
    X, Y = tables(rng, own=30.0)
    found = contrastive_dimension(*moments(X, Y), 4, 3, 39, rng)
    U, V = (np.linalg.svd(T - T.mean(axis=0))[2][:d].T for T, d in ((X, 4), (Y, 3)))
    np.testing.assert_allclose(found.cosines, np.sort(np.cos(scipy.linalg.subspace_angles(U, V)))[::-1], atol=1e-6)
    assert found.n_dimensions == 1  # three are shared
    assert contrastive_dimension(*moments(X, X), 4, 4, 39, rng).n_dimensions == 0
    # As many dimensions in the background: its fourth is noise, and the cosine says so.
    fourth = contrastive_dimension(*moments(X, Y), 4, 4, 39, rng)
    assert fourth.n_dimensions == 1
    assert fourth.p_value == 1 / 40
    assert contrastive_dimension(*moments(*tables(rng, own=0.0)), 3, 3, 39, rng).p_value > 0.05


def test_ract():
    from experiments._other_tests import MOST_NORMS, ky_fan_norms, ract_p_value

    rng = np.random.default_rng(0)
    X, Y = tables(rng, own=40.0)
    difference = np.cov(X.T) - np.cov(Y.T)
    norms = ky_fan_norms(difference[None])[0]
    assert norms[0] == pytest.approx(np.linalg.norm(difference, 2))
    assert norms[MOST_NORMS - 1] == pytest.approx(np.linalg.norm(difference, "nuc"))
    assert ract_p_value(*moments(X, Y), 39, rng) == 1 / 40
    assert ract_p_value(*moments(*tables(rng, own=0.0)), 39, rng) > 1 / 40


def test_bascod(mouse):
    """Ten and seven loadings of the mouse proteins, from an independent run."""
    from experiments._other_tests import bascod_statistic

    X, Y, _, _ = mouse
    V, U = (np.linalg.eigh(np.cov(T.T))[1][:, : -d - 1 : -1] for T, d in ((X, 10), (Y, 7)))
    statistic, p, r = bascod_statistic(V, U)
    np.testing.assert_allclose(r, [0.8771, 0.8709, 0.6752, 0.5524, 0.6810, 0.5823, 0.7544], atol=5e-5)
    assert statistic == pytest.approx(18.8991, abs=5e-5)
    assert p == pytest.approx(0.1688, abs=5e-5)


# ---------------------------------------------------------------------- the study


@pytest.fixture(scope="module")
def results(tmp_path_factory, need):
    need("matplotlib")
    from experiments._stages import experiment, figure_stage, read_results, run_stage

    folder = tmp_path_factory.mktemp("background_tests")
    run_stage("background_tests", folder, quick=True, tick=lambda text: None)
    found = read_results(folder)
    assert figure_stage("background_tests", folder).stat().st_size > 10_000
    assert all(row.ours for row in experiment("background_tests").rows(found))
    return found


@pytest.mark.slow
def test_the_level_of_ours_holds(results):
    count, sizes = results["datasets"]["size"], results["size"].values()
    rejected = round(sum(shares["split"] for shares in sizes) * count)
    assert rejected <= scipy.stats.binom.isf(1e-4, count * len(sizes), 0.05)


@pytest.mark.slow
def test_own_directions_are_found(results):
    assert np.mean([shares["split"] for shares in results["power"].values()]) > 0.5
    assert all(shares["problem"] < 0.2 for shares in results["stronger"].values())
    assert all(shares["split"] > 0.7 for shares in results["number"].values())
