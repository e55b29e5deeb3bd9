"""ContraPCA: the reference fit, its rank and axes, missing values, paths, uncertainty, and what it refuses."""

import pickle

import numpy as np
import pytest

from contrapca import PCPCA, ContraPCA, Study, bootstrap, contrast_path, load, posterior
from contrapca.contrast._axes import dimensions_above_noise
from contrapca.data._groups import Groups
from contrapca.exceptions import (
    ContrastWarning,
    ImproperPosteriorError,
    InfeasibleGammaError,
    RankError,
    UnboundedError,
)
from contrapca.missing._fit import masked_rank
from contrapca.missing._rows import observe
from oracle_contrapca import fit_contrapca


def planted(n=200, m=150, D=40, signal=2.0, seed=0):
    """Three strong directions that both groups share, a weaker one of the foreground; and the latter."""
    rng = np.random.default_rng(seed)
    L = np.linalg.qr(rng.normal(size=(D, 4)))[0]
    X = rng.normal(size=(n, 4)) * [5, 5, 5, signal] @ L.T + rng.normal(size=(n, D))
    Y = rng.normal(size=(m, 3)) * 5 @ L[:, :3].T + rng.normal(size=(m, D))
    return X, Y, L[:, 3]


@pytest.mark.parametrize(("n", "m", "D", "k"), [(200, 150, 40, 1), (60, 200, 30, 2), (40, 30, 120, 2)])
def test_it_is_the_reference_fit(n, m, D, k):
    X, Y, _ = planted(n, m, D)
    model = ContraPCA(k, shorten=False).fit(X, background=Y)
    expected = fit_contrapca(np.cov(X.T, ddof=0), np.cov(Y.T, ddof=0), n, m, k)
    assert model.n_latent_ == expected.n_latent
    assert model.gamma_ == pytest.approx(expected.gamma, rel=1e-9)
    assert model.noise_variance_ == pytest.approx(expected.sigma2, rel=1e-8)
    np.testing.assert_allclose(model.axis_ratios_, expected.theta, rtol=1e-7)
    latents, theirs = model.transform(X), expected.transform(X - X.mean(axis=0))
    np.testing.assert_allclose(np.abs(latents), np.abs(theirs), atol=1e-7)


def test_it_finds_what_the_papers_axes_miss():
    X, Y, direction = planted()
    with pytest.warns(ContrastWarning, match="ContraPCA"):
        paper = PCPCA(1).fit(X, background=Y)
    assert (ContraPCA(1).fit(X, background=Y).components_ @ direction)[0] ** 2 > 0.8
    assert (paper.components_ @ direction)[0] ** 2 < 0.2


def test_errors_name_the_latent_dimensions_that_are_too_many():
    """They are about 12 latent dimensions, not about the 2 components that are shown."""
    X, Y = np.random.default_rng(0).normal(size=(2, 60, 20))
    flat, holed = X.copy(), np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    flat[:, 8:] = 0.0
    for rows, gamma, error, says in (
        (X, 0.99, InfeasibleGammaError, r"with n_latent=12\. Use a gamma in .*, or a smaller n_latent"),
        (flat, "auto", RankError, r"at most 12 directions .* n_latent=12 needs more.*smaller n_latent"),
        (holed, 0.99, UnboundedError, r"with n_latent=12 and these rows"),
    ):
        with pytest.raises(error, match=says) as caught:
            ContraPCA(2, n_latent=12, gamma=gamma).fit(rows, background=Y)
        assert "n_components" not in str(caught.value)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(InfeasibleGammaError, match="with n_latent=12"):
        contrast_path(ContraPCA(2, n_latent=12), X, background=Y, gammas=[0.0, 0.99])
    with pytest.raises(InfeasibleGammaError, match=r"with n_components=2\. .* smaller n_components"):
        PCPCA(2, gamma=0.99).fit(X, background=Y)
    thin = ContraPCA(2, n_latent=12, gamma=0.01).fit(X, background=flat)
    with pytest.raises(RankError, match=r"The background varies in at most 12 directions .* n_latent=12 needs more"):
        thin.contrast_score(X)


def test_the_rotation_leaves_the_model_as_it_is():
    X, Y, _ = planted()
    model = ContraPCA(2, shorten=False).fit(X, background=Y)
    r = model.n_latent_
    same = PCPCA(r, gamma=model.gamma_).fit(X, background=Y)
    assert model.objective_ == pytest.approx(same.objective_, rel=1e-12)
    np.testing.assert_allclose(model.score_samples(X), same.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(model.get_covariance(), same.get_covariance(), atol=1e-8)
    assert model.reconstruction_error_ == pytest.approx(same.reconstruction_error_, rel=1e-9)
    assert model.components_.shape == (2, 40)
    assert model.loadings_.shape == (40, 2)
    assert model.model_.W.shape == (40, r)
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    Z = (X - X.mean(axis=0)) @ model.components_.T
    np.testing.assert_allclose(Z.var(axis=0), model.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(np.corrcoef(Z.T, model.transform(X).T)[[0, 1], [2, 3]], 1, atol=1e-9)


def test_missing_values():
    X, Y, direction = planted()
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    model = ContraPCA(1).fit(X, background=Y)
    assert (model.components_ @ direction)[0] ** 2 > 0.7
    assert 1 < model.n_latent_ <= 11
    assert model.gamma_max_is_bound_
    assert not np.isnan(model.impute(X)).any()
    assert model.transform(X).shape == (200, 1)


@pytest.mark.parametrize(("strong", "looked_at"), [(60, [120]), (5, [120, 150])])
def test_spectra_that_do_not_matter_are_not_computed(strong, looked_at, monkeypatch):
    """The smaller group comes first: with 60 dimensions above its noise, the number is at its maximum."""
    rng = np.random.default_rng(0)
    X, Y = (rng.standard_normal((n, 200)) for n in (150, 120))
    Y[:, :strong] *= 20
    sizes = []
    counted = "contrapca.contrast._few_directions.dimensions_above_noise"
    monkeypatch.setattr(counted, lambda one: sizes.append(one.weight) or dimensions_above_noise(one))
    model = ContraPCA(2, scale=None).fit(X, background=Y)
    assert sizes == looked_at
    assert model.n_latent_ == (52 if strong == 60 else 8)


def test_repeated_features_leave_fewer_dimensions():
    rng = np.random.default_rng(0)
    X, Y = (np.hstack([table, table[:, :4]]) for table in rng.normal(size=(2, 100, 8)))
    assert 2 <= ContraPCA(2).fit(X, background=Y).n_latent_ <= 7


def test_the_rank_gives_way_to_a_strong_gamma_and_says_so():
    X, Y, _ = planted()
    with pytest.warns(ContrastWarning, match="latent dimensions that these tables suggest"):
        model = ContraPCA(1, gamma=0.9).fit(X, background=Y)
    assert model.n_latent_ < ContraPCA(1).fit(X, background=Y).n_latent_


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_latent": 1}, "n_latent=1 must be a whole number, 2 or more"),
        ({"n_latent": 40}, "n_latent=40 is not possible with n_features=40"),
        ({"n_latent": "many"}, "n_latent='many' is not valid"),
        ({"axes": "other"}, "axes='other' is not valid"),
        ({"n_latent": 6, "gamma": 0.99}, "gamma=0.99 is too large"),
    ],
)
def test_refused(settings, message):
    X, Y, _ = planted()
    model = ContraPCA(2, **settings)
    with pytest.raises(ValueError, match=message):
        model.fit(X, background=Y)
    assert not hasattr(model, "components_")


def test_a_path_has_the_same_models_and_is_saved(tmp_path):
    X, Y, _ = planted()
    path = contrast_path(ContraPCA(2), X, background=Y, gammas=8)
    model = path.model(path.gammas[4])
    again = ContraPCA(2, gamma=path.gammas[4], n_latent=model.n_latent_).fit(X, background=Y)
    np.testing.assert_allclose(model.transform(X), again.transform(X), atol=1e-8)
    np.testing.assert_allclose(path.latents(X)[4], again.transform(X), atol=1e-8)
    np.testing.assert_allclose(model.axis_ratios_, again.axis_ratios_, rtol=1e-8)
    path.save(tmp_path / "path.npz")
    np.testing.assert_array_equal(load(tmp_path / "path.npz").latents(X), path.latents(X))


@pytest.mark.parametrize(("n", "D"), [(40, 500), (60, 40), (30, 8)])
def test_the_bootstrap_works_at_the_default(n, D):
    X, Y = np.random.default_rng(0).normal(size=(2, n, D))
    refits = bootstrap(ContraPCA(2).fit(X, background=Y), X, background=Y, n_resamples=40, random_state=0)
    assert refits.failures <= 2
    assert refits.loadings.shape == (1, 40 - refits.failures, D, 2)


def test_blocks_make_the_bootstrap_wider():
    rng = np.random.default_rng(0)
    X, Y = ((rng.normal(size=(20, 1, 6)) + 0.3 * rng.normal(size=(20, 10, 6))).reshape(200, 6) for _ in range(2))
    animals = np.repeat(np.arange(20), 10)
    model = ContraPCA(1).fit(X, background=Y)
    given = {"n_resamples": 60, "random_state": 0}
    rows = bootstrap(model, X, background=Y, **given)
    blocks = bootstrap(model, Study(X, background=Y, blocks=(animals, animals + 20)), **given)
    assert blocks.angles().mean() > 1.3 * rows.angles().mean()


def test_other_rows_are_refused_by_the_bootstrap():
    X, Y, _ = planted()
    model = ContraPCA(1).fit(X, background=Y)
    with pytest.raises(ValueError, match="X is not the table of the fit: it has 199 rows"):
        bootstrap(model, np.vstack([X[1:-1], X[[0]] + X[[-1]] - X.mean(axis=0)]), background=Y)


def test_an_improper_posterior_names_what_would_do():
    X, Y, _ = planted(n=60)
    with pytest.raises(ImproperPosteriorError, match="n_latent="):
        posterior(ContraPCA(2, gamma=0.25).fit(X, background=Y), X, background=Y)


# ---------------------------------------------------------------------- missing values


def incomplete(n, D, shared, own, holes, seed):
    """Rows with planted dimensions, and holes."""
    rng = np.random.default_rng(seed)
    planted = np.random.default_rng(7).standard_normal((shared, D)), rng.standard_normal((own, D))
    rows = rng.standard_normal((n, D)) + 1.5 * sum(rng.standard_normal((n, len(part))) @ part for part in planted)
    return np.where(rng.random(rows.shape) < holes, np.nan, rows)


@pytest.mark.parametrize(("n", "D", "holes"), [(60, 10, 0.3), (80, 20, 0.2), (200, 40, 0.3), (500, 60, 0.1)])
def test_the_rank_of_incomplete_rows_is_that_of_complete_ones(n, D, holes):
    """What missing values add to the noise is no dimension: without its edge 4 to 57 are found."""
    for planted in (0, 1, 2):
        found = [
            masked_rank(Groups.of(*(observe(incomplete(n, D, 0, planted, holes, seed + k))[0] for k in (0, 9))), 2)
            for seed in range(3)
        ]
        assert np.median(found) == planted + 3  # those shown, and one to spare


def test_values_missing_in_both_groups():
    """Of ten features with 30 % missing, nine dimensions were taken, for which there is no maximum."""
    X, Y = incomplete(60, 10, 1, 2, 0.3, 1), incomplete(60, 10, 1, 0, 0.3, 2)
    model = ContraPCA(2).fit(X, background=Y)
    assert model.n_latent_ <= 6
    assert model.gamma_ > 0.05


@pytest.mark.slow
def test_refits_with_values_missing_in_both_groups_succeed():
    """At least 95 %: 11 of 60 before."""
    X, Y = incomplete(80, 20, 1, 2, 0.2, 1), incomplete(50, 20, 1, 0, 0.2, 2)
    model = ContraPCA(2).fit(X, background=Y)
    found = bootstrap(model, X, background=Y, n_resamples=40, random_state=0, progress=False)
    assert found.failures <= 2
