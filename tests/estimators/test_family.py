"""How PPCA, CPCA and PCPCA relate, to each other, to scikit-learn's PCA and to the dense oracle."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

import oracles
from conftest import make_groups
from contrapca import CPCA, PCPCA, PPCA, gamma_limits
from contrapca._util.tables import Table
from contrapca.contrast._fit import AUTO_FRACTION
from contrapca.datasets import make_hidden_clusters

SHAPES = {"tall": (150, 120, 12), "wide": (15, 12, 60), "n < D < n + m": (15, 40, 30)}


@pytest.fixture(params=list(SHAPES))
def any_groups(request):
    return make_groups(*SHAPES[request.param])


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
@pytest.mark.parametrize("gamma", [0.0, 0.3])
def test_every_solver_equals_the_oracle(any_groups, solver, gamma):
    X, Y = any_groups
    model = PCPCA(n_components=2, gamma=gamma, solver=solver).fit(X, background=Y)
    W, sigma2, values, U = oracles.pcpca(X, Y, gamma, 2)
    assert model.noise_variance_ == pytest.approx(sigma2, rel=1e-8)
    np.testing.assert_allclose(model.eigenvalues_, values[:2] / len(X), rtol=1e-8)
    np.testing.assert_allclose(np.abs(model.loadings_), np.abs(W), atol=1e-8)
    oracles.same_subspace(model.components_.T, U[:, :2], 1e-8)
    assert model.objective_ == pytest.approx(
        oracles.relative_log_likelihood(X, Y, gamma, model.loadings_, sigma2), rel=1e-9
    )
    limit = gamma_limits(X, background=Y, n_components=2, solver=solver).pcpca
    assert limit == pytest.approx(oracles.pcpca_limit(X, Y, 2), rel=1e-9)


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
def test_auto_keeps_the_limit(any_groups, solver):
    X, Y = any_groups
    model = PCPCA(n_components=2, solver=solver).fit(X, background=Y)
    assert model.gamma_max_ == pytest.approx(oracles.pcpca_limit(X, Y, 2), rel=1e-9)
    assert model.gamma_max_ == gamma_limits(X, background=Y, n_components=2, solver=solver).pcpca
    assert model.gamma_max_is_bound_ is False


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
def test_pcpca_without_contrast_is_ppca(any_groups, solver):
    X, Y = any_groups
    left = PCPCA(n_components=2, gamma=0, solver=solver).fit(X, background=Y)
    right = PPCA(n_components=2, solver=solver).fit(X)
    alone = PCPCA(n_components=2, gamma=0, solver=solver).fit(X)
    for other in (right, alone):
        np.testing.assert_allclose(left.loadings_, other.loadings_, atol=1e-8)
        assert left.noise_variance_ == pytest.approx(other.noise_variance_, rel=1e-9)
        np.testing.assert_allclose(left.transform(X), other.transform(X), atol=1e-8)
        np.testing.assert_allclose(left.score_samples(Y), other.score_samples(Y), rtol=1e-8)
        assert left.objective_ == pytest.approx(other.objective_, rel=1e-9)


def test_cpca_without_contrast_is_pca(any_groups):
    X, Y = any_groups
    model = CPCA(n_components=2, gamma=0).fit(X, background=Y)
    pca = PCA(2, svd_solver="full").fit(X)
    oracles.same_subspace(model.components_.T, pca.components_.T, 1e-8)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(pca.transform(X)), atol=1e-8)
    np.testing.assert_allclose(model.explained_variance_, pca.explained_variance_ * (len(X) - 1) / len(X), rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-9)


def test_pcpca_tends_to_cpca_as_noise_vanishes(groups):
    """At the limit sigma2 -> 0: the spans agree at every gamma, and the latents become CPCA's, rescaled."""
    X, Y = groups[0], 1.3 * groups[1]
    limit = gamma_limits(X, background=Y, n_components=2).pcpca
    assert limit < 1  # otherwise N vanishes first
    for fraction in (0.5, 0.9, 1 - 1e-9):
        left = PCPCA(n_components=2, gamma=fraction * limit).fit(X, background=Y)
        right = CPCA(n_components=2, gamma=fraction * limit).fit(X, background=Y)
        oracles.same_subspace(left.components_.T, right.components_.T, 1e-8)
    assert left.noise_variance_ < 1e-7
    length = np.sqrt(left.eigenvalues_ / (1 - left.gamma_))
    np.testing.assert_allclose(left.transform(X), right.transform(X) / length, atol=1e-6)


def test_ppca_likelihood_is_scikit_learns(groups):
    X, _ = groups
    model = PPCA(n_components=3).fit(X)
    W, sigma2, _, _ = oracles.pcpca(X, None, 0.0, 3)
    A = W @ W.T + sigma2 * np.eye(X.shape[1])
    np.testing.assert_allclose(model.score_samples(X), oracles.gaussian_log_density(X - X.mean(axis=0), A), rtol=1e-10)
    # scikit-learn divides by n - 1; with its covariance rescaled the two densities are one.
    pca = PCA(3, svd_solver="full").fit(X)
    np.testing.assert_allclose(model.get_covariance(), pca.get_covariance() * (len(X) - 1) / len(X), rtol=1e-9)
    assert model.objective_ == pytest.approx(model.score_samples(X).sum(), rel=1e-10)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())


@pytest.mark.parametrize("scale", ["group", "pooled"])
def test_one_group_is_scaled_as_several_are(scale):
    X = make_groups(80, 70, 6)[0] * [1, 2, 3, 4, 5, 60]
    scaled = PPCA(2, scale=scale).fit(X)
    np.testing.assert_allclose(scaled.scale_, X.std(axis=0))
    np.testing.assert_allclose(scaled.components_, PPCA(2).fit(X / X.std(axis=0)).components_, atol=1e-9)
    plain = PPCA(2, scale=None).fit(X)
    np.testing.assert_array_equal(plain.components_, PPCA(2).fit(X).components_)
    assert (plain.scale_ == 1).all()


def test_attributes(groups):
    X, Y = groups
    model = PCPCA(n_components=3, gamma=0.2).fit(X, background=Y)
    V = model.components_.T
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(model.explained_variance_, np.var(X @ V, axis=0), rtol=1e-10)
    np.testing.assert_allclose(model.background_variance_, np.var(Y @ V, axis=0), rtol=1e-10)
    np.testing.assert_allclose(
        model.eigenvalues_, model.explained_variance_ - model.gamma_ * model.background_variance_, rtol=1e-9
    )
    np.testing.assert_allclose(
        model.background_variance_ratio_.sum(), np.var(Y @ V, axis=0).sum() / Y.var(axis=0).sum()
    )
    np.testing.assert_allclose(model.mean_, X.mean(axis=0))
    np.testing.assert_allclose(model.background_mean_, Y.mean(axis=0))
    np.testing.assert_allclose(model.feature_variance_, X.var(axis=0))
    np.testing.assert_allclose(model.scale_, 1)
    assert model.n_effective_ == pytest.approx(0.8 * len(X))
    assert model.n_iter_ == 1
    np.testing.assert_allclose(model.reconstruction_error_, oracles.reconstruction_loss(X, Y, 0.2, V), rtol=1e-10)


def test_methods_against_oracles(groups):
    X, Y = groups
    model = PCPCA(n_components=2, gamma=0.3).fit(X, background=Y)
    W, sigma2 = model.loadings_, model.noise_variance_
    A = W @ W.T + sigma2 * np.eye(X.shape[1])
    np.testing.assert_allclose(model.get_covariance(), A, atol=1e-12)
    np.testing.assert_allclose(model.get_precision() @ A, np.eye(X.shape[1]), atol=1e-10)
    mean, covariance = oracles.latent_posterior(Y, model.mean_, W, sigma2)
    found_mean, found_covariance = model.latent_posterior(Y)
    np.testing.assert_allclose(found_mean, mean, atol=1e-10)
    np.testing.assert_allclose(found_covariance, np.broadcast_to(covariance, (len(Y), 2, 2)), atol=1e-12)
    np.testing.assert_allclose(model.transform(Y), mean, atol=1e-10)
    np.testing.assert_allclose(
        model.transform(Y, center="background"), oracles.latent_posterior(Y, Y.mean(axis=0), W, sigma2)[0], atol=1e-10
    )
    np.testing.assert_allclose(model.inverse_transform(mean), model.mean_ + mean @ W.T, atol=1e-10)
    np.testing.assert_allclose(model.score_samples(Y), oracles.gaussian_log_density(Y - X.mean(axis=0), A), rtol=1e-10)


def test_contrast_score_is_the_ratio_to_a_background_ppca(groups):
    X, Y = groups
    model = PCPCA(n_components=2, gamma=0.3).fit(X, background=Y)
    background = PPCA(n_components=2).fit(Y)
    assert model.background_model_.sigma2 == pytest.approx(background.noise_variance_, rel=1e-10)
    for rows in (X, Y):
        expected = model.score_samples(rows) - background.score_samples(rows)
        np.testing.assert_allclose(model.contrast_score(rows), expected, atol=1e-8)
    assert model.contrast_score(X).mean() > model.contrast_score(Y).mean()


def test_sample_follows_the_model(groups):
    X, Y = groups
    model = PCPCA(n_components=2, gamma=0.3).fit(X, background=Y)
    draws = model.sample(200_000, random_state=0)
    np.testing.assert_array_equal(draws[:5], model.sample(200_000, random_state=0)[:5])
    A = model.get_covariance()
    variance = np.diag(A)
    standard_error = np.sqrt((np.outer(variance, variance) + A**2) / len(draws))
    assert (np.abs(np.cov(draws.T) - A) / standard_error).max() < 5
    assert (np.abs(draws.mean(axis=0) - X.mean(axis=0)) / np.sqrt(variance / len(draws))).max() < 5


def test_cpca_has_no_likelihood(groups):
    X, Y = groups
    model = CPCA(n_components=2, gamma=0.5).fit(X, background=Y)
    absent = "score score_samples sample get_covariance get_precision latent_posterior noise_variance_ model_ loadings_"
    for name in absent.split():
        assert not hasattr(model, name), name
    V = model.components_.T
    assert model.objective_ == pytest.approx(np.trace(V.T @ oracles.contrast_matrix(X, Y, 0.5) @ V), rel=1e-10)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X.mean(0) + (X - X.mean(0)) @ V @ V.T)


def test_auto_takes_a_fraction_of_the_pcpca_limit(groups):
    X, Y = groups
    model = PCPCA(n_components=2).fit(X, background=Y)
    assert model.gamma_ == pytest.approx(AUTO_FRACTION * oracles.pcpca_limit(X, Y, 2), rel=1e-9)


def test_auto_of_cpca_is_chosen_on_held_out_rows(groups):
    """The same on every run, within the range that CPCA allows, and beyond what PCPCA does where that pays."""
    X, Y = groups
    model = CPCA(n_components=2).fit(X, background=Y)
    assert model.gamma_ == CPCA(n_components=2).fit(X, background=Y).gamma_
    assert 0 <= model.gamma_ < gamma_limits(X, background=Y, n_components=2).cpca


@pytest.mark.parametrize("seed", range(3))
def test_planted_plane_is_found(seed):
    """PCA shows the stronger shared variation, PCPCA the plane that only the foreground varies in."""
    data = make_hidden_clusters(random_state=seed)
    before = PCPCA(n_components=2, gamma=0).fit(data.foreground, background=data.background)
    after = PCPCA(n_components=2).fit(data.foreground, background=data.background)
    assert np.sum((before.components_ @ data.plane) ** 2) / 2 < 0.1
    assert np.sum((after.components_ @ data.plane) ** 2) / 2 > 0.8


def test_one_component_has_the_same_types(groups):
    X, Y = groups
    model = PCPCA(n_components=1, gamma=0.3).fit(X, background=Y)
    assert model.transform(X).shape == (len(X), 1)
    assert model.latent_posterior(X)[1].shape == (len(X), 1, 1)
    assert model.components_.shape == (1, X.shape[1])
    assert model.loadings_.shape == (X.shape[1], 1)
    assert model.inverse_transform(model.transform(X)).shape == X.shape


def test_feature_table(groups, need):
    X, Y = groups
    model = PCPCA(n_components=2, gamma=0.3).fit(X, background=Y)
    table = model.feature_table()
    assert list(table) == [
        "feature", "component_1", "component_2", "foreground_variance", "background_variance", "rank"
    ]  # fmt: skip
    order = np.argsort(-np.sum(model.loadings_**2, axis=1))
    assert table["feature"].tolist() == [f"x{j}" for j in order]  # the strongest first
    assert table["rank"].tolist() == list(range(1, 13))
    np.testing.assert_array_equal(table["component_2"], model.loadings_[order, 1])
    np.testing.assert_allclose(table["background_variance"], Y.var(axis=0)[order])
    assert "background_variance" not in PPCA(n_components=2).fit(X).feature_table()
    with pytest.raises(KeyError, match=r"'loading'.*'component_1', 'component_2'"):
        table["loading"]
    for library in ("pandas", "polars"):
        frame = need(library).DataFrame(table)
        assert list(frame.columns) == list(table)
        assert len(frame) == table.n_rows == 12


def test_tables_are_printed_in_short():
    table = Table({"<b>": np.arange(25), "value": np.linspace(0, 1, 25)})
    assert len(str(table).splitlines()) == 12
    assert str(table).splitlines()[-1] == "... 15 more rows"
    assert "&lt;b&gt;" in table._repr_html_()
    assert table._repr_html_().count("<tr>") == 11
    assert "15 more rows" in table._repr_html_()
    assert str(table.first(3)).count("\n") == 3
    assert table.to_csv().count("\n") == 26
    assert Table({}).n_rows == 0
