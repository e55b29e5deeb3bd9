"""The paper's made-up data: what is planted is there, and can be found."""

import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from contrapca import PCPCA
from experiments._generators import make_contraction_mixture, make_corrupted_digits, make_toy, make_two_ppca
from experiments._theory import risk_minimizer

MAKERS = [make_contraction_mixture, make_corrupted_digits, make_toy, make_two_ppca]


def covariance_error(rows, covariance):
    """Largest deviation of the empirical from the true covariance, in standard errors of a Gaussian's."""
    variances = np.diag(covariance)
    error = np.sqrt((np.outer(variances, variances) + covariance**2) / len(rows))
    return np.max(np.abs(np.cov(rows.T, ddof=0) - covariance) / error)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_same_seed_same_data(make, need):
    if make is make_corrupted_digits:
        need("PIL")
    first, again, other = make(random_state=3), make(random_state=3), make(random_state=4)
    for group in ("foreground", "background"):
        np.testing.assert_array_equal(first[group], again[group])
        assert not np.array_equal(first[group], other[group])
        assert first[group].dtype == np.float64
        assert first[group].shape[1] == len(first.feature_names) == len(set(first.feature_names))
    if "labels" in first:
        assert len(first.labels) == len(first.foreground)
    assert first.description.endswith(".")


def test_two_ppca_follows_its_models():
    data = make_two_ppca(20000, 15000, 6, 2, noise_variance=0.5, random_state=0)
    assert data.foreground.shape == (20000, 6)
    assert data.background.shape == (15000, 6)
    models = data.foreground_model, data.background_model
    for rows, model, other in zip((data.foreground, data.background), models, models[::-1], strict=True):
        truth = model.W @ model.W.T + 0.5 * np.eye(6)
        assert covariance_error(rows, truth) < 4.5  # 36 entries
        further = model.sample(20000, np.random.default_rng(1))
        assert covariance_error(further, truth) < 4.5
        assert covariance_error(further, other.covariance()) > 20  # the control: the groups differ


def test_two_ppca_has_the_papers_sizes():
    data = make_two_ppca(random_state=0)
    assert data.foreground.shape == data.background.shape == (100, 10)
    assert data.foreground_model.W.shape == data.background_model.W.shape == (10, 2)
    assert data.foreground_model.sigma2 == 1.0


def test_contraction_mixture_follows_its_covariances():
    data = make_contraction_mixture(40000, beta=0.25, random_state=0)
    assert len(data.foreground) == 10000
    assert len(data.background) == 30000
    np.testing.assert_allclose(data.foreground_covariance, [[6.25, 0.35], [0.35, 6.25]])
    np.testing.assert_allclose(data.background_covariance, [[4.0, 2.6], [2.6, 4.0]])
    assert covariance_error(data.foreground, data.foreground_covariance) < 4
    assert covariance_error(data.background, data.background_covariance) < 4
    assert covariance_error(data.foreground, data.background_covariance) > 20


def test_contraction_mixture_leads_to_the_minimiser():
    """PCPCA of many rows is the risk's minimiser; raw gamma 0.5 at beta 0.5 is gamma' 0.5."""
    data = make_contraction_mixture(200000, random_state=0)
    W, sigma2 = risk_minimizer(data.foreground_covariance, data.background_covariance, 1, beta=data.beta, gamma=0.5)
    model = PCPCA(1, gamma=0.5).fit(data.foreground, background=data.background)
    np.testing.assert_allclose(np.abs(model.loadings_), np.abs(W), rtol=0.03)
    assert model.noise_variance_ == pytest.approx(sigma2, rel=0.03)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_pcpca_sees_the_digits_and_pca_does_not(seed, need):
    need("PIL")
    data = make_corrupted_digits(random_state=seed)
    found = {}
    for gamma in (0, 0.8):
        model = PCPCA(2, gamma=gamma, scale="group").fit(data.foreground, background=data.background)
        Z = model.transform(data.foreground)
        found[gamma] = Z / Z.std(axis=0)
    assert silhouette_score(found[0], data.labels) < 0.1
    assert silhouette_score(found[0.8], data.labels) > silhouette_score(found[0], data.labels) + 0.2
    permuted = np.random.default_rng(0).permutation(data.labels)
    assert abs(silhouette_score(found[0.8], permuted)) < 0.02  # the control


def test_digits_repeat_and_tiles_do_not(need):
    need("PIL")
    data = make_corrupted_digits(1000, 3240, brightness=0.0, random_state=0)
    tiles = np.vstack([data.foreground, data.background])
    everything = make_corrupted_digits(1, 4239, brightness=0.0, random_state=1)
    other = np.vstack([everything.foreground, everything.background])
    np.testing.assert_array_equal(tiles[np.lexsort(tiles.T)], other[np.lexsort(other.T)])  # all, in another order
    assert set(data.labels) == {0, 1}
    assert set(make_corrupted_digits(50, 50, digits=(3, 8, 9), random_state=0).labels) == {3, 8, 9}


@pytest.mark.parametrize(
    ("make", "arguments", "said"),
    [
        (make_two_ppca, {"n_components": 10}, "n_components=10 must be at least 1 and less than n_features=10"),
        (make_two_ppca, {"noise_variance": 0.0}, "noise_variance=0.0 must be positive"),
        (make_contraction_mixture, {"beta": 1.0}, "beta=1.0 must be between 0 and 1"),
        (make_contraction_mixture, {"n": 1}, "leave both groups some of the n=1 rows"),
        (make_corrupted_digits, {"digits": (0, 10)}, "must be one or more of 0, 1, ..., 9"),
        (make_corrupted_digits, {"digits": ()}, "must be one or more of 0, 1, ..., 9"),
        (make_corrupted_digits, {"n_background": 4000}, "together at most 4240"),
    ],
)
def test_bad_values_are_named(make, arguments, said, need):
    if make is make_corrupted_digits:
        need("PIL")
    with pytest.raises(ValueError, match=said):
        make(**arguments)
