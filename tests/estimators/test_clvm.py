"""The contrastive latent variable model."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score

import oracles
from contrapca import CLVM, PPCA, Moments, bootstrap, load
from contrapca.contrast._clvm import clvm_log_likelihood
from contrapca.data._groups import Groups
from contrapca.datasets import make_hidden_clusters
from contrapca.exceptions import ContrastWarning, GroupError, ModelFileError
from saved import rewrite


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
    groups = Groups.of(Moments.from_rows(left), Moments.from_rows(right))
    found = clvm_log_likelihood(groups, *point)
    in_S, in_W = np.split(found.gradient_W, [2], axis=1)
    assert found.value == pytest.approx(oracles.clvm_log_likelihood(left, right, *point))
    at = oracles.clvm_log_likelihood
    np.testing.assert_allclose(
        in_S, oracles.finite_differences(lambda S: at(left, right, S, *point[1:]), point[0]), rtol=1e-5, atol=1e-4
    )
    np.testing.assert_allclose(
        in_W, oracles.finite_differences(lambda W: at(left, right, point[0], W, 0.8), point[1]), rtol=1e-5, atol=1e-4
    )
    noise = oracles.finite_differences(lambda s: at(left, right, *point[:2], s[0]), np.array([0.8]))[0]
    assert found.gradient_sigma2 == pytest.approx(noise, rel=1e-5)


def test_the_truth_is_found(model):
    """Covariances of both parts and the noise, within what 2000 rows allow; no point nearby is better."""
    np.testing.assert_allclose(
        model.shared_loadings_ @ model.shared_loadings_.T, S @ S.T, atol=0.12 * np.abs(S @ S.T).max()
    )
    np.testing.assert_allclose(model.loadings_ @ model.loadings_.T, W @ W.T, atol=0.15 * np.abs(W @ W.T).max())
    assert model.noise_variance_ == pytest.approx(0.49, rel=0.05)
    best = oracles.clvm_log_likelihood(X, Y, model.shared_loadings_, model.loadings_, model.noise_variance_)
    assert model.objective_ == pytest.approx(best, rel=1e-9)
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
    assert model.objective_ == pytest.approx(pooled.objective_, rel=1e-9)
    assert model.noise_variance_ == pytest.approx(pooled.noise_variance_, rel=1e-4)
    np.testing.assert_allclose(
        model.shared_loadings_ @ model.shared_loadings_.T, pooled.loadings_ @ pooled.loadings_.T, atol=1e-2
    )
    assert model.transform(X).shape == (2000, 0)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X[:3])), np.tile(model.mean_, (3, 1)))
    assert CLVM(2, 1).fit(X, background=Y).objective_ > model.objective_ + 100  # control: W was there


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
    for center, rows in (("foreground", X), ("background", Y)):
        np.testing.assert_allclose(
            sparse.transform_shared(sp.csr_array(rows), center=center),
            dense.transform_shared(rows, center=center),
            atol=1e-6,
        )
        np.testing.assert_allclose(
            model.transform(sp.csr_array(rows), center=center), model.transform(rows, center=center), atol=1e-10
        )
    np.testing.assert_allclose(model.latent_posterior(sp.csr_array(X))[0], model.transform(X), atol=1e-10)
    np.testing.assert_allclose(model.score(sp.csr_array(X)), model.score(X), rtol=1e-10)


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


def test_scale():
    scaling = np.linspace(1, 50, 8)
    scaled = CLVM(2, 1, scale="pooled").fit(X * scaling, background=Y * scaling)
    by_hand = CLVM(2, 1).fit(X * scaling / scaled.scale_, background=Y * scaling / scaled.scale_)
    np.testing.assert_allclose(
        scaled.loadings_ @ scaled.loadings_.T, by_hand.loadings_ @ by_hand.loadings_.T, atol=1e-3
    )
    jacobian = -np.log(scaled.scale_).sum()
    np.testing.assert_allclose(
        scaled.score_samples(X * scaling), by_hand.score_samples(X * scaling / scaled.scale_) + jacobian, atol=1e-3
    )


STACKED, GROUP = np.vstack([X, Y]), np.repeat(["case", "control"], [2000, 1500])


@pytest.fixture(scope="module")
def labelled():
    return CLVM(2, 1, background_label="control").fit(STACKED, GROUP)


def test_stacked_rows(model, labelled):
    np.testing.assert_allclose(labelled.loadings_, model.loadings_)
    np.testing.assert_allclose(labelled.background_mean_, Y.mean(axis=0))


def test_score_leaves_background_rows_out(model, labelled):
    """As for PCPCA: score(rows, groups) is that of the cases alone."""
    assert labelled.score(STACKED, GROUP) == pytest.approx(labelled.score(X), rel=1e-12)
    assert labelled.score(STACKED) == pytest.approx(labelled.score_samples(STACKED).mean(), rel=1e-12)
    assert labelled.score(STACKED) < labelled.score(X) - 1  # the control: the label makes a difference
    assert model.score(X, GROUP[:2000]) == model.score(X)  # without background_label y is ignored
    with pytest.warns(ContrastWarning, match="nothing to score"):
        assert np.isnan(labelled.score(Y, GROUP[2000:]))


def test_clone_and_names(model, need):
    assert not hasattr(clone(model), "loadings_")
    assert list(model.get_feature_names_out()) == ["clvm0"]
    pd = need("pandas")
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(8)])
    named = CLVM(2, 1).fit(frame, background=pd.DataFrame(Y, columns=frame.columns)).set_output(transform="pandas")
    assert list(named.transform(frame).columns) == ["clvm0"]


def test_rows_as_background_rows(model):
    """center="background" takes the background's mean and scale, as fit did."""
    both = np.hstack([model.shared_loadings_, model.loadings_])
    expected, _ = oracles.latent_posterior(Y, Y.mean(axis=0), both, model.noise_variance_)
    np.testing.assert_allclose(model.transform(Y, center="background"), expected[:, 2:], atol=1e-8)
    np.testing.assert_array_equal(model.transform(Y, center="foreground"), model.transform(Y))
    assert np.abs(model.transform(Y) - expected[:, 2:]).max() > 0.1  # the means differ
    scaled = CLVM(2, 1, scale="group").fit(X, background=Y)
    as_cases = (Y - Y.mean(axis=0)) / Y.std(axis=0) * X.std(axis=0) + X.mean(axis=0)
    np.testing.assert_allclose(scaled.transform(Y, center="background"), scaled.transform(as_cases), atol=1e-8)
    with pytest.raises(ValueError, match="center='both'"):
        model.transform(Y, center="both")


def test_float32_in_float32_out(model):
    left, right = X.astype(np.float32), Y.astype(np.float32)
    single = CLVM(2, 1).fit(left, background=right)
    arrays = {name: value for name, value in vars(single).items() if isinstance(value, np.ndarray)}
    diagnostics = {"objective_history_"}  # as precise as objective()
    assert {value.dtype for name, value in arrays.items() if name not in diagnostics} == {np.dtype(np.float32)}
    np.testing.assert_allclose(np.abs(single.loadings_), np.abs(model.loadings_), atol=1e-3)
    Z = single.transform(left)
    for found in (
        Z,
        single.transform(left, center="background"),
        single.transform_shared(left),
        single.score_samples(left),
        single.inverse_transform(Z),
        single.sample(3, random_state=0),
        single.impute(left),
        single.latent_posterior(left)[1],
    ):
        assert found.dtype == np.float32
    np.testing.assert_allclose(single.score_samples(left), model.score_samples(X), rtol=1e-3)
    assert model.transform(left).dtype == np.float32  # of the rows, not of the fit
    assert model.transform(X).dtype == np.float64


def test_precision_is_the_inverse_of_the_covariance(model):
    scaled = CLVM(2, 1, scale="pooled").fit(X * np.linspace(1, 50, 8), background=Y * np.linspace(1, 50, 8))
    for fitted in (model, scaled):
        np.testing.assert_allclose(fitted.get_precision() @ fitted.get_covariance(), np.eye(8), atol=1e-10)


def test_components_are_unit_directions_of_the_latents(model):
    """Rows are projected on them: latents, and the variance that is reported along them."""
    V = model.components_.T
    np.testing.assert_allclose(np.linalg.norm(V, axis=0), 1)
    along = (X - X.mean(axis=0)) @ V
    assert abs(np.corrcoef(along[:, 0], model.transform(X)[:, 0])[0, 1]) == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(model.explained_variance_, along.var(axis=0))
    np.testing.assert_allclose(model.explained_variance_ratio_, along.var(axis=0) / X.var(axis=0).sum())


def test_posterior_of_the_latents(model):
    both = np.hstack([model.shared_loadings_, model.loadings_])
    expected, covariance = oracles.latent_posterior(X, X.mean(axis=0), both, model.noise_variance_)
    mean, found = model.latent_posterior(X)
    np.testing.assert_allclose(mean, expected[:, 2:], atol=1e-8)
    np.testing.assert_allclose(found, np.broadcast_to(covariance[2:, 2:], (2000, 1, 1)), atol=1e-12)


@pytest.mark.parametrize("scale", [None, "group"])
def test_missing_values_of_new_rows(scale):
    """impute, transform, transform_shared and score_samples against conditioning the explicit covariance."""
    scaling = np.linspace(1, 9, 8)
    model = CLVM(2, 1, scale=scale).fit(X * scaling, background=Y * scaling)
    rows = np.where(np.random.default_rng(0).random((20, 8)) < 0.3, np.nan, X[:20] * scaling)
    filled, std = model.impute(rows, return_std=True)
    A, both = model.get_covariance(), np.hstack([model.shared_loadings_, model.loadings_]) * model.scale_[:, None]
    latents = np.hstack([model.transform_shared(rows), model.transform(rows)])
    for row, values, deviations, z, density in zip(rows, filled, std, latents, model.score_samples(rows), strict=True):
        o = ~np.isnan(row)
        inverse = np.linalg.inv(A[np.ix_(o, o)])
        gain = A[:, o] @ inverse
        np.testing.assert_array_equal(values[o], row[o])
        np.testing.assert_allclose(values[~o], (model.mean_ + gain @ (row - model.mean_)[o])[~o], rtol=1e-8)
        variance = np.diag(A - gain @ A[o])[~o]
        np.testing.assert_allclose(deviations[~o], np.sqrt(variance), rtol=1e-7)
        np.testing.assert_allclose(z, both[o].T @ inverse @ (row - model.mean_)[o], rtol=1e-8, atol=1e-10)
        expected = oracles.gaussian_log_density((row - model.mean_)[o][None], A[np.ix_(o, o)])[0]
        assert density == pytest.approx(expected, rel=1e-9)


def test_missing_values_of_background_rows(model):
    rows = np.where(np.random.default_rng(0).random((20, 8)) < 0.3, np.nan, Y[:20])
    found = model.transform_shared(rows, center="background")
    S = model.shared_loadings_
    A = S @ S.T + model.noise_variance_ * np.eye(8)
    for row, t in zip(rows, found, strict=True):
        o = ~np.isnan(row)
        expected = S[o].T @ np.linalg.solve(A[np.ix_(o, o)], (row - Y.mean(axis=0))[o])
        np.testing.assert_allclose(t, expected, rtol=1e-8, atol=1e-10)


def test_it_has_no_posterior_of_parameters(model):
    assert not hasattr(model, "posterior")
    with pytest.raises(TypeError, match="bootstrap needs an estimator"):
        bootstrap(model, X, background=Y)


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


def test_sparse_rows_are_no_missing_values(model):
    with pytest.raises(TypeError, match="sparse tables are zeros"):
        model.impute(sp.csr_array(X))
    with pytest.raises(ValueError, match="NaN"):
        model.transform(sp.csr_array(np.where(X > 8, np.nan, X)))


GROUPS = ("foreground", "backgrounds.0")
# name: facts, arrays, what the message says
DAMAGED = {
    "noise variance": ({"fit.model.sigma2": -1}, {}, "sigma2 is not positive"),
    "noise of the background": ({"fit.background_model.sigma2": 0.0}, {}, "sigma2 is not positive"),
    "unknown parameter": ({"estimator.parameters.x": 1}, {}, "unexpected keyword argument 'x'"),
    "mean too short": ({}, {"fit.scaling.foreground.mean": np.zeros(3)}, "shape .*which does not fit the others"),
    "units of other features": (
        {},
        {f"fit.scaling.foreground.{name}": np.ones(3) for name in ("mean", "variance", "scale")},
        "its sizes are impossible",
    ),
    "mean infinite": ({}, {"fit.scaling.foreground.mean": np.full(8, np.inf)}, "mean is not finite"),
    "no background": ({}, {"fit.background_model.W": ...}, r"fit\.background_model\.W' is missing"),
    "components too long": ({}, {"fit.components": np.zeros((9, 1))}, "its sizes are impossible"),
    "too many components": (
        {},
        {"fit.components": np.zeros((8, 8)), **{f"fit.variances.{g}": np.zeros(8) for g in GROUPS}},
        "its sizes are impossible",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files(name, model, tmp_path):
    facts, arrays, message = DAMAGED[name]
    model.save(tmp_path / "clvm.npz")
    rewrite(tmp_path / "clvm.npz", facts, arrays)
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "clvm.npz")
