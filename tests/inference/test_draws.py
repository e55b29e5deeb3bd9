"""What draws tell: alignment, summaries, diagnostics, predictions, files; and the bootstrap."""

import pickle
import warnings

import numpy as np
import pytest

import oracles
from conftest import make_groups
from contrapca import CPCA, PCPCA, PPCA, ContraPCA, Moments, Study, bootstrap, calibrate_power, load, posterior
from contrapca.contrast._subspaces import align
from contrapca.data._scaling import Scaling
from contrapca.exceptions import ContrastWarning, ImproperPosteriorError, ModelFileError
from contrapca.inference import _draws as diagnostics
from contrapca.inference._draws import ContrastPosterior

X, Y = make_groups(150, 120, 6)


def synthetic(chains=2, draws=300, D=5, d=2, spread=0.1, seed=0):
    """Draws around an estimate, rotated at random."""
    rng = np.random.default_rng(seed)
    estimate = np.linalg.qr(rng.standard_normal((D, d)))[0] * [3.0, 2.0][:d]
    W = estimate + spread * rng.standard_normal((chains, draws, D, d))
    turned = W @ np.linalg.qr(rng.standard_normal((chains, draws, d, d)))[0]
    sigma2 = 1 + 0.05 * rng.standard_normal((chains, draws))
    names = tuple(f"g{j}" for j in range(D))
    scaling = Scaling(50.0, np.arange(D) * 1.0, np.full(D, 9.0), np.full(D, 2.0), names, "float64")
    posterior = ContrastPosterior(align(turned, estimate), sigma2, estimate, d, scaling, "gibbs", "pcpca")
    return posterior, W, turned


def test_alignment_undoes_rotations():
    posterior, W, turned = synthetic(spread=1e-3)
    np.testing.assert_allclose(posterior.loadings, W, atol=0.02)
    np.testing.assert_allclose(
        posterior.loadings @ np.swapaxes(posterior.loadings, -1, -2), turned @ np.swapaxes(turned, -1, -2), atol=1e-10
    )
    before = np.linalg.norm(turned - posterior.estimate, axis=(-2, -1))
    assert np.all(np.linalg.norm(posterior.loadings - posterior.estimate, axis=(-2, -1)) <= before + 1e-12)


def test_identified_quantities():
    posterior, _, turned = synthetic()
    A = posterior.covariance_draws()
    np.testing.assert_allclose(A[1, 7], turned[1, 7] @ turned[1, 7].T + posterior.noise_variance[1, 7] * np.eye(5))
    bases = np.linalg.qr(turned)[0]
    np.testing.assert_allclose(posterior.projector(), np.mean(bases @ np.swapaxes(bases, -1, -2), axis=(0, 1)))
    angles = posterior.angles()
    assert angles.shape == (2, 300, 2)
    assert np.all(np.diff(angles, axis=-1) <= 1e-9)  # the largest first
    reference = np.linalg.qr(posterior.estimate)[0]
    smallest = np.linalg.svd(bases[0, 0].T @ reference, compute_uv=False)
    np.testing.assert_allclose(np.cos(angles[0, 0]), smallest[::-1], atol=1e-7)


def test_summary():
    posterior, _, _ = synthetic()
    table = posterior.summary(0.8)
    assert table["feature"].tolist() == [f"g{j}" for j in range(5) for _ in range(2)]
    flat = posterior.loadings.reshape(-1, 10)
    np.testing.assert_allclose(table["mean"], flat.mean(axis=0))
    np.testing.assert_allclose(table["lower"], np.quantile(flat, 0.1, axis=0))
    np.testing.assert_allclose(table["upper"], np.quantile(flat, 0.9, axis=0))
    assert table["excludes_zero"].tolist() == ((table["lower"] > 0) | (table["upper"] < 0)).tolist()
    with pytest.raises(ValueError, match=r"probability=1\.5"):
        posterior.summary(1.5)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_diagnostics_against_arviz(rho, need):
    arviz = need("arviz")
    rng = np.random.default_rng(0)
    x = np.zeros((4, 500, 3))
    for k in range(1, 500):
        x[:, k] = rho * x[:, k - 1] + rng.standard_normal((4, 3))
    x[0, :, 2] += 0.5
    theirs = arviz.convert_to_dataset({"x": x})
    np.testing.assert_allclose(diagnostics.r_hat(x), arviz.rhat(theirs)["x"].values, rtol=1e-8)
    np.testing.assert_allclose(diagnostics.ess_bulk(x), arviz.ess(theirs)["x"].values, rtol=0.02)
    np.testing.assert_allclose(
        diagnostics.effective_size(diagnostics.split_chains(x)), arviz.ess(theirs, method="mean")["x"].values, rtol=0.02
    )


def test_diagnostics_of_constants():
    constant = np.ones((2, 50, 1))
    assert diagnostics.r_hat(constant) == 1
    assert diagnostics.ess_bulk(constant) == 100


@pytest.mark.parametrize("D", [5, 40])
def test_warns_where_chains_disagree(D):
    posterior, _, _ = synthetic(D=D, draws=600)
    posterior.check()
    shifted = posterior.W.copy()
    shifted[0] *= 1.1
    bad = ContrastPosterior(**{**vars(posterior), "W": shifted})
    with pytest.warns(ContrastWarning, match="DO NOT TRUST THESE DRAWS YET: largest R-hat"):
        bad.check()
    with pytest.warns(ContrastWarning, match="3 divergences"):
        ContrastPosterior(**{**vars(posterior), "divergences": 3}).check()
    assert posterior.diagnostics()["quantity"].tolist() == ["projector", "noise_variance", "A"]


def test_latents_carry_the_parameters_uncertainty():
    """Against averaging over draws by hand; a posterior without spread gives the plug-in answer."""
    posterior, _, _ = synthetic(draws=100)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((7, 5)) * 2 + posterior.mean
    mean, covariance = posterior.latent_posterior(rows)
    moments = [
        oracles.latent_posterior((rows - posterior.mean) / 2, np.zeros(5), W, s)
        for W, s in zip(posterior.loadings.reshape(-1, 5, 2), posterior.noise_variance.ravel(), strict=True)
    ]
    means = np.array([m for m, _ in moments])
    np.testing.assert_allclose(mean, means.mean(axis=0))
    within = np.mean([c for _, c in moments], axis=0)
    between = np.einsum("kni,knj->nij", means - means.mean(axis=0), means - means.mean(axis=0)) / len(means)
    np.testing.assert_allclose(covariance, between + within)
    assert np.all(np.trace(covariance, axis1=1, axis2=2) > np.trace(within))
    with pytest.raises(ValueError, match="X has 4 features, but 5 were fitted"):
        posterior.latent_posterior(rows[:, :4])


def test_latents_of_a_data_frame(need):
    """Names of the fit are no reason to warn; other names are refused."""
    pandas = need("pandas")
    posterior, _, _ = synthetic(draws=50)
    rows = np.random.default_rng(0).standard_normal((7, 5))
    frame = pandas.DataFrame(rows, columns=posterior.feature_names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean, _ = posterior.latent_posterior(frame)
    np.testing.assert_array_equal(mean, posterior.latent_posterior(rows)[0])
    with pytest.raises(ValueError, match="select them by name"):
        posterior.latent_posterior(frame[frame.columns[::-1]])


def test_predictive_rows():
    posterior, _, _ = synthetic()
    rows = posterior.sample(40_000, random_state=0)
    np.testing.assert_array_equal(rows, posterior.sample(40_000, random_state=0))
    expected = 4 * posterior.covariance_draws().mean(axis=(0, 1))  # scale 2
    np.testing.assert_allclose(rows.mean(axis=0), posterior.mean, atol=0.15)
    np.testing.assert_allclose(np.cov(rows.T), expected, atol=0.05 * np.abs(expected).max())


def test_files(tmp_path):
    posterior, _, _ = synthetic()
    path = tmp_path / "draws.npz"
    posterior.save(path)
    twin = load(path)
    assert isinstance(twin, ContrastPosterior)
    for name, value in vars(posterior).items():
        if name != "scaling":
            np.testing.assert_array_equal(getattr(twin, name), value)
    for name, value in vars(posterior.scaling).items():
        np.testing.assert_array_equal(getattr(twin.scaling, name), value)
    without = ContrastPosterior(**{**vars(posterior), "noise_variance": None, "method": "cpca"})
    without.save(path)
    assert load(path).noise_variance is None
    for change, message in (
        ({"W_estimate": posterior.W_estimate[:3]}, r"W_estimate has the shape \(3, 2\), which does not fit the others"),
        ({"W_estimate": np.full((5, 2), np.nan)}, "W_estimate is not finite"),
        ({"noise_variance": -posterior.noise_variance}, "noise_variance is not positive"),
        ({"n_shown": 3}, "it shows 3 of 2 dimensions"),
        ({"n_shown": 0}, "it shows 0 of 2 dimensions"),
    ):
        ContrastPosterior(**{**vars(posterior), **change}).save(path)
        with pytest.raises(ModelFileError, match=message):
            load(path)


def test_to_arviz(need):
    need("arviz")
    posterior, _, _ = synthetic()
    found = posterior.to_arviz()
    np.testing.assert_array_equal(np.asarray(found["posterior"]["loadings"]), posterior.loadings)
    assert list(found["posterior"]["feature"].values) == posterior.feature_names
    assert list(found["posterior"]["component"].values) == list(range(1, posterior.n_shown + 1))


# ---------------------------------------------------------------------- the data of the fit, given again


def test_a_copied_or_loaded_model_draws_the_same(tmp_path):
    """No model holds its data: a file, a pickle and the model itself are given them, as rows or as moments."""
    model = CPCA(2, gamma=0.5, scale="pooled").fit(X, background=Y)
    model.save(tmp_path / "model.npz")
    options = {"draws": 30, "tune": 5, "chains": 2, "random_state": 0, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContrastWarning)
        expected = posterior(model, X, background=Y, **options).loadings
        for twin in (load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(posterior(twin, X, background=Y, **options).loadings, expected)
        moments = [Moments.from_rows(table) for table in (X, Y)]
        found = posterior(model, moments[0], background=moments[1], **options).loadings
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_other_data_than_those_of_the_fit_are_refused():
    model = CPCA(2, gamma=0.5).fit(X, background=Y)
    for left, right, message in (
        (X + 1, Y, "X is not the table of the fit: the means of 6 columns differ"),
        (X, Y + 1, "background is not the table of the fit: the means of 6 columns differ"),
        (np.vstack([X, X]), Y, "X is not the table of the fit: it has 300 rows, but the fit had 150"),
        (Moments.from_rows(X) + Moments.from_rows(X), Moments.from_rows(Y), "it has 300 rows"),
        (X[:, :5], Y[:, :5], "5 features"),
    ):
        with pytest.raises(ValueError, match=message):
            posterior(model, left, background=right)
    with pytest.raises(TypeError, match="needs rows"):
        bootstrap(model, Moments.from_rows(X), background=Moments.from_rows(Y))
    with pytest.raises(ValueError, match="The groups are 'foreground'"):
        posterior(model, X)


# ---------------------------------------------------------------------- bootstrap


@pytest.mark.parametrize("estimator", [PPCA, PCPCA, CPCA])
def test_bootstrap_against_refits(estimator):
    """The same resamples, fitted the slow way."""
    settings = {} if estimator is PPCA else {"gamma": 0.3}
    given = {} if estimator is PPCA else {"background": Y}
    model = estimator(2, **settings).fit(X, **given)
    found = bootstrap(model, X, **given, n_resamples=5, random_state=4)
    rng = np.random.default_rng(4)
    for k in range(5):
        left = X[rng.integers(0, 150, 150)]
        right = {} if estimator is PPCA else {"background": Y[rng.integers(0, 120, 120)]}
        refit = estimator(2, **settings).fit(left, **right)
        expected = align(refit.fit_.loadings, model.fit_.loadings)
        np.testing.assert_allclose(found.loadings[0, k], expected, atol=1e-7)
        if estimator is not CPCA:
            assert found.noise_variance[0, k] == pytest.approx(refit.noise_variance_)
    assert found.kind == "bootstrap"
    assert found.failures == 0


def test_bootstrap_of_wide_tables():
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((14, 40)), rng.standard_normal((12, 40))
    left[:, 0] += 4 * rng.standard_normal(14)
    model = PCPCA(1, gamma=0.2).fit(left, background=right)
    found = bootstrap(model, left, background=right, n_resamples=4, random_state=1)
    rng = np.random.default_rng(1)
    refit = PCPCA(1, gamma=0.2).fit(left[rng.integers(0, 14, 14)], background=right[rng.integers(0, 12, 12)])
    np.testing.assert_allclose(found.loadings[0, 0], align(refit.loadings_, model.loadings_), atol=1e-7)


def test_bootstrap_with_holes():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    model = PCPCA(2, gamma=0.3).fit(holes, background=Y)
    found = bootstrap(model, holes, background=Y, n_resamples=3, random_state=2)
    rng = np.random.default_rng(2)
    refit = PCPCA(2, gamma=0.3).fit(holes[rng.integers(0, 150, 150)], background=Y[rng.integers(0, 120, 120)])
    np.testing.assert_allclose(found.loadings[0, 0], align(refit.loadings_, model.loadings_), atol=1e-3)
    with pytest.raises(ValueError, match=r"complete rows.*bootstrap"):
        posterior(model, holes, background=Y)
    with pytest.raises(ValueError, match="These rows must be complete: use ContraPCA"):
        bootstrap(CPCA(2, gamma=0.3).fit(X, background=Y), holes, background=Y)


def test_bootstrap_near_the_limit():
    left, right = make_groups(60, 50, 6, seed=3)
    limit = PCPCA(2).fit(left, background=right).gamma_max_
    model = PCPCA(2, gamma=0.93 * limit).fit(left, background=right)
    found = bootstrap(model, left, background=right, n_resamples=100, random_state=0)
    assert 0 < found.failures < 80
    assert found.loadings.shape[1] == 100 - found.failures
    few = PCPCA(2, gamma=0.3).fit(left[:4], background=right[:4] * 0.3)
    with pytest.raises(ValueError, match="too few rows"):
        bootstrap(few, left[:4], background=right[:4] * 0.3, n_resamples=100, random_state=0)


def test_bootstrap_inputs(tmp_path):
    model = PCPCA(2, gamma=0.3, background_label=1).fit(np.vstack([X, Y]), np.repeat([0, 1], [150, 120]))
    found = bootstrap(model, X, background=Y, n_resamples=3, random_state=0)
    assert found.loadings.shape == (1, 3, 6, 2)
    for n in (0, 1):
        with pytest.raises(ValueError, match=f"n_resamples={n}"):
            bootstrap(model, X, background=Y, n_resamples=n)
    with pytest.raises(ValueError, match="without a background"):
        bootstrap(PPCA(2).fit(X), X, background=Y)
    with pytest.raises(ValueError, match="5 features"):
        bootstrap(PPCA(2).fit(X), X[:, :5])
    model.save(tmp_path / "m.npz")
    loaded = load(tmp_path / "m.npz")
    loaded.background_label = None
    assert bootstrap(loaded, X, background=Y, n_resamples=2, random_state=0).loadings.shape == (
        1,
        2,
        6,
        2,
    )
    scaled = PCPCA(2, gamma=0.3, scale="group").fit(X * 10, background=Y)
    assert bootstrap(scaled, X * 10, background=Y, n_resamples=3, random_state=0).angles().max() < 0.7


# ---------------------------------------------------------------------- the learning rate


@pytest.mark.slow
def test_calibrated_regions_cover():
    """CPCA, d = 1: a 90 % region (angle to the estimate below the draws' quantile) covers the truth that often."""
    D, n, repeats = 4, 120, 60
    rng = np.random.default_rng(0)
    deviations = np.array([2.0, 1.3, 1.0, 1.0])
    truth, hits, naive = np.eye(D)[0], [], []
    for seed in range(repeats):
        left, right = rng.standard_normal((n, D)) * deviations, rng.standard_normal((n, D)) * [1, 1.2, 1, 1]
        model = CPCA(1, gamma=0.5).fit(left, background=right)
        options = {"random_state": seed, "progress": False}
        rate = calibrate_power(model, left, background=right, n_resamples=100, draws=200, **options)
        angle = np.arccos(min(1.0, abs(model.components_[0] @ truth)))
        for seen, w in ((hits, rate), (naive, 10 * rate)):
            draws = posterior(model, left, background=right, draws=1000, power=w, **options).angles()
            seen.append(angle <= np.quantile(draws, 0.9))
    tolerance = 3 * np.sqrt(0.9 * 0.1 / repeats)
    assert abs(np.mean(hits) - 0.9) < tolerance
    assert np.mean(naive) < 0.9 - tolerance  # the control: ten times the rate is told apart


def test_the_least_power_counts_all_latent_dimensions(need):
    """Variances exist only if power * N exceeds D + r + 3 with all r latent dimensions, of which k are shown (F12)."""
    need("nutpie")
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 20)) * np.r_[4, 3, np.ones(18)], 0.5 * rng.standard_normal((100, 20))
    model = ContraPCA(2, gamma=0.1, n_latent=8).fit(X, background=Y)
    given = {"background": Y, "random_state": 0, "progress": False}
    with pytest.raises(ImproperPosteriorError):  # N = 27 is too few for D + r = 28
        posterior(model, X, power=1.0, draws=20, **given)
    with pytest.warns(ContrastWarning, match="exist from"):
        rate = calibrate_power(model, X, n_resamples=20, draws=60, **given)
    assert rate * 27 >= 20 + 8 + 4


def test_power_by_blocks_is_as_small_as_blocks_are_few():
    """Six copies of each row as a block: intervals must be as wide as those of the blocks alone."""
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((40, 4)) * [2, 1, 1, 1], rng.standard_normal((40, 4))
    whole, rows = [np.repeat(table, 6, axis=0) for table in (X, Y)], np.repeat(np.arange(40), 6)
    options = {"n_resamples": 60, "draws": 100, "random_state": 0, "progress": False}
    model = CPCA(1, gamma=0.5).fit(whole[0], background=whole[1])
    naive = calibrate_power(model, whole[0], background=whole[1], **options)
    study = Study(whole[0], background=whole[1], blocks=(rows, rows + 40))
    assert calibrate_power(model, study, **options) == pytest.approx(naive / 6, rel=0.5)


def test_calibrated_with_covariates():
    rng = np.random.default_rng(2)
    X, Y, ages = (
        rng.standard_normal((60, 4)) * [2, 1, 1, 1],
        rng.standard_normal((50, 4)),
        rng.standard_normal((110, 1)),
    )
    study = Study(X, background=Y, covariates=(ages[:60], ages[60:]))
    model = CPCA(1, gamma=0.5).fit(study)
    assert calibrate_power(model, study, n_resamples=20, draws=100, random_state=0, progress=False) > 0
