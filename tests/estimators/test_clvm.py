"""The contrastive latent variable model."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score

import oracles
from contrapca import CLVM, PPCA, load
from contrapca.datasets import make_hidden_clusters
from contrapca.exceptions import GroupError, ModelFileError
from contrapca.io import read_archive, write_archive
from contrapca.moments import accumulate
from contrapca.solvers import clvm_log_likelihood


def planted(n=2000, m=1500, D=8, seed=0):
    rng = np.random.default_rng(seed)
    S, W = rng.standard_normal((D, 2)) * 2, rng.standard_normal((D, 1)) * 1.5
    X = rng.standard_normal((n, 2)) @ S.T + rng.standard_normal((n, 1)) @ W.T + 0.7 * rng.standard_normal((n, D)) + 3
    Y = rng.standard_normal((m, 2)) @ S.T + 0.7 * rng.standard_normal((m, D)) - 1
    return X, Y, S, W


X, Y, S, W = planted()


@pytest.fixture(scope="module")
def model():
    return CLVM(2, 1).fit(X, background=Y)


def test_value_and_gradient():
    rng = np.random.default_rng(0)
    left, right = X[:40], Y[:30]
    point = rng.standard_normal((8, 2)), rng.standard_normal((8, 1)), 0.8
    value, in_S, in_W, in_noise = clvm_log_likelihood(accumulate(left), accumulate(right), *point)
    assert value == pytest.approx(oracles.clvm_log_likelihood(left, right, *point))
    at = oracles.clvm_log_likelihood
    np.testing.assert_allclose(
        in_S, oracles.finite_differences(lambda S: at(left, right, S, *point[1:]), point[0]), rtol=1e-5, atol=1e-4
    )
    np.testing.assert_allclose(
        in_W, oracles.finite_differences(lambda W: at(left, right, point[0], W, 0.8), point[1]), rtol=1e-5, atol=1e-4
    )
    noise = oracles.finite_differences(lambda s: at(left, right, *point[:2], s[0]), np.array([0.8]))[0]
    assert in_noise == pytest.approx(noise, rel=1e-5)


def test_the_truth_is_found(model):
    """Covariances of both parts and the noise, within what 2000 rows allow; no point nearby is better."""
    np.testing.assert_allclose(
        model.shared_loadings_ @ model.shared_loadings_.T, S @ S.T, atol=0.12 * np.abs(S @ S.T).max()
    )
    np.testing.assert_allclose(model.loadings_ @ model.loadings_.T, W @ W.T, atol=0.15 * np.abs(W @ W.T).max())
    assert model.noise_variance_ == pytest.approx(0.49, rel=0.05)
    best = oracles.clvm_log_likelihood(X, Y, model.shared_loadings_, model.loadings_, model.noise_variance_)
    assert model.objective() == pytest.approx(best, rel=1e-9)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2):
        for _ in range(10):
            other = (
                model.shared_loadings_ + size * rng.standard_normal(S.shape),
                model.loadings_ + size * rng.standard_normal(W.shape),
                model.noise_variance_ * np.exp(size * rng.standard_normal()),
            )
            assert oracles.clvm_log_likelihood(X, Y, *other) < best
    assert np.all(np.diff(model.objective_history_) >= -1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_planted_subspaces_are_found(seed):
    """Principal angles below 5 degrees with 2000 rows in each group; the other group's subspace is far away."""
    rng = np.random.default_rng(seed)
    S, W = rng.standard_normal((10, 2)) * 2, rng.standard_normal((10, 2)) * 1.5
    left = rng.standard_normal((2000, 2)) @ S.T + rng.standard_normal((2000, 2)) @ W.T + rng.standard_normal((2000, 10))
    right = rng.standard_normal((2000, 2)) @ S.T + rng.standard_normal((2000, 10))
    model = CLVM(2, 2).fit(left, background=right)

    def largest_angle(found, true):
        return np.degrees(scipy.linalg.subspace_angles(found, true)[0])

    assert largest_angle(model.shared_loadings_, S) < 5
    assert largest_angle(model.loadings_, W) < 5
    assert largest_angle(model.loadings_, S) > 20  # control
    assert np.all(np.diff(model.objective_history_) >= 0)


def test_without_dimensions_of_the_foreground_it_is_ppca_of_both():
    model = CLVM(2, 0).fit(X, background=Y)
    pooled = PPCA(2).fit(np.vstack([X - X.mean(axis=0), Y - Y.mean(axis=0)]))
    assert model.objective() == pytest.approx(pooled.objective(), rel=1e-9)
    assert model.noise_variance_ == pytest.approx(pooled.noise_variance_, rel=1e-4)
    np.testing.assert_allclose(
        model.shared_loadings_ @ model.shared_loadings_.T, pooled.loadings_ @ pooled.loadings_.T, atol=1e-2
    )
    assert model.transform(X).shape == (2000, 0)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X[:3])), np.tile(model.mean_, (3, 1)))
    assert CLVM(2, 1).fit(X, background=Y).objective() > model.objective() + 100  # control: W was there


def test_no_maximum_is_said():
    rng = np.random.default_rng(0)
    few, others = rng.standard_normal((5, 20)), rng.standard_normal((5, 20))
    with pytest.raises(ValueError, match="no maximum: n_shared=4 and n_foreground=4"):
        CLVM(4, 4).fit(few, background=others)


def test_sparse_tables(model):
    sparse = CLVM(2, 1, scale="pooled").fit(sp.csr_array(X), background=sp.csr_array(Y))
    dense = CLVM(2, 1, scale="pooled").fit(X, background=Y)
    np.testing.assert_allclose(sparse.transform(sp.csr_array(X)), dense.transform(X), atol=1e-6)
    np.testing.assert_allclose(sparse.score_samples(sp.csr_array(X)), dense.score_samples(X), rtol=1e-6)


def test_both_groups_have_shared_latents(model):
    expected, _ = oracles.latent_posterior(Y, Y.mean(axis=0), model.shared_loadings_, model.noise_variance_)
    np.testing.assert_allclose(model.transform_shared(Y, center="background"), expected, atol=1e-8)
    with pytest.raises(ValueError, match="center='both'"):
        model.transform_shared(Y, center="both")


def test_latents_scores_and_samples(model):
    both = np.hstack([model.shared_loadings_, model.loadings_])
    mean, _ = oracles.latent_posterior(X, X.mean(axis=0), both, model.noise_variance_)
    np.testing.assert_allclose(model.transform(X), mean[:, 2:], atol=1e-8)
    np.testing.assert_allclose(model.transform_shared(X), mean[:, :2], atol=1e-8)
    A = both @ both.T + model.noise_variance_ * np.eye(8)
    np.testing.assert_allclose(model.score_samples(X), oracles.gaussian_log_density(X - X.mean(axis=0), A))
    assert model.score(X) == pytest.approx(np.mean(model.score_samples(X)))
    assert model.score(X) > PPCA(1).fit(X).score(X)
    rows = model.sample(50_000, random_state=0)
    np.testing.assert_allclose(np.cov(rows.T), A, atol=0.05 * np.abs(A).max())
    np.testing.assert_allclose(model.get_covariance(), A)
    back = model.inverse_transform(model.transform(X))
    np.testing.assert_allclose(back, X.mean(axis=0) + mean[:, 2:] @ model.loadings_.T)
    with pytest.raises(ValueError, match="Z has 2 columns"):
        model.inverse_transform(np.zeros((3, 2)))
    np.testing.assert_array_equal(model.sample(3, random_state=1), model.sample(3, random_state=1))


def test_hidden_clusters():
    data = make_hidden_clusters(300, 300, 15, random_state=0)
    model = CLVM(3, 2).fit(data.foreground, background=data.background)
    assert silhouette_score(model.transform(data.foreground), data.labels) > 0.4
    assert np.sum((np.linalg.qr(model.loadings_)[0].T @ data.plane) ** 2) / 2 > 0.9


def test_scale_labels_and_manners(need):
    units = np.linspace(1, 50, 8)
    scaled = CLVM(2, 1, scale="pooled").fit(X * units, background=Y * units)
    by_hand = CLVM(2, 1).fit(X * units / scaled.scale_, background=Y * units / scaled.scale_)
    np.testing.assert_allclose(
        scaled.loadings_ @ scaled.loadings_.T, by_hand.loadings_ @ by_hand.loadings_.T, atol=1e-3
    )
    jacobian = -np.log(scaled.scale_).sum()
    np.testing.assert_allclose(
        scaled.score_samples(X * units), by_hand.score_samples(X * units / scaled.scale_) + jacobian, atol=1e-3
    )
    stacked = CLVM(2, 1, background_label=1).fit(np.vstack([X, Y]), np.repeat([0, 1], [2000, 1500]))
    plain = CLVM(2, 1).fit(X, background=Y)
    np.testing.assert_allclose(stacked.loadings_, plain.loadings_)
    assert not hasattr(clone(plain), "loadings_")
    assert list(plain.get_feature_names_out()) == ["clvm0"]
    pd = need("pandas")
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(8)])
    named = CLVM(2, 1).fit(frame, background=pd.DataFrame(Y, columns=frame.columns)).set_output(transform="pandas")
    assert list(named.transform(frame).columns) == ["clvm0"]


def test_refused():
    with pytest.raises(ValueError, match=r"n_shared \+ n_foreground = 8"):
        CLVM(4, 4).fit(X, background=Y)
    with pytest.raises(ValueError, match="n_shared=0"):
        CLVM(0, 1).fit(X, background=Y)
    with pytest.raises(GroupError, match="background"):
        CLVM().fit(X)
    with pytest.raises(ValueError, match="NaN"):
        CLVM(2, 1).fit(np.where(X > 8, np.nan, X), background=Y)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        CLVM(2, 1, max_iter=2).fit(X, background=Y)


def test_files(model, tmp_path):
    model.save(tmp_path / "clvm.npz")
    twin = load(tmp_path / "clvm.npz")
    assert twin.get_params() == model.get_params()
    assert twin.n_iter_ == model.n_iter_
    np.testing.assert_array_equal(twin.transform(X), model.transform(X))
    np.testing.assert_array_equal(twin.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(twin.sample(3, random_state=0), model.sample(3, random_state=0))
    header, arrays = read_archive(tmp_path / "clvm.npz")
    for change, message in (
        ({"version": 9}, "version 9"),
        ({"noise_variance": -1}, "impossible"),
        ({"parameters": {"x": 1}}, "does not describe"),
    ):
        write_archive(tmp_path / "bad.npz", header | change, arrays)
        with pytest.raises(ModelFileError, match=message):
            load(tmp_path / "bad.npz")
    write_archive(tmp_path / "bad.npz", header, arrays | {"mean_": arrays["mean_"][:3]})
    with pytest.raises(ModelFileError, match="mean_ is not a finite array"):
        load(tmp_path / "bad.npz")
