"""F45: a verdict with missing values, against slow oracles, its level, and what would not hold it."""

import numpy as np
import pytest
import scipy.stats
from sklearn.base import clone

import oracles
from contrapca import (
    CLVM,
    CPCA,
    PPCA,
    ContraPCA,
    GammaSearch,
    RatioPCA,
    SparseCPCA,
    Study,
    bootstrap,
    compare,
    contrast_path,
    contrast_test,
    held_out_contrast,
    load,
    posterior,
    report,
)
from contrapca.data import Groups, study_of
from contrapca.exceptions import ContrastWarning, GroupError, NonFiniteError, TableWarning
from contrapca.inference._test import missing_of
from contrapca.missing._estimates import estimated_moments
from contrapca.missing._filled import Factors, filled_draws, fit_common, fit_factors, thinned, usable
from contrapca.missing._rows import observe


def noise(rng, n, m, D=10, factors=1):
    """Two groups of one population with `factors` shared dimensions."""
    W = rng.normal(size=(D, factors))
    return [rng.normal(size=(rows, factors)) @ W.T + rng.normal(size=(rows, D)) for rows in (n, m)]


def without(rng, X, rate):
    """Values missing completely at random."""
    return np.where(rng.random(X.shape) < rate, np.nan, X)


def incomplete(seed, rates=(0.05, 0.3), n=60, m=60, **options):
    rng = np.random.default_rng(seed)
    return [without(rng, X, rate) for X, rate in zip(noise(rng, n, m, **options), rates, strict=True)]


def tables_of(X, Y):
    return study_of(X, Y, "it").tables


# ---------------------------------------------------------------------- the model


def start(rng, X, D, r):
    return Factors(0.1 * rng.normal(size=(2, D)), rng.normal(size=(D, r)), rng.uniform(0.5, 1.5, D))


@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.1, 0.4)])
def test_a_step_is_that_of_the_oracle(rates):
    rng = np.random.default_rng(1)
    X, group_of = np.vstack(incomplete(0, rates, 20, 15, D=6)), np.repeat([0, 1], [20, 15])
    model, least = start(rng, X, 6, 2), np.full(6, 0.7)
    found = model.stepped(X, group_of, least)
    means, W, noise = oracles.factor_step(X, group_of, model.means, model.W, model.noise, least)
    np.testing.assert_allclose(found.means, means, atol=1e-10)
    np.testing.assert_allclose(found.W @ found.W.T, W @ W.T, atol=1e-10)
    np.testing.assert_allclose(found.noise, noise, atol=1e-10)
    assert 0 < np.sum(found.noise == 0.7) < 6  # the floor was needed, and not everywhere


def test_steps_raise_the_likelihood():
    rng = np.random.default_rng(2)
    X, group_of = np.vstack(incomplete(3, (0.2, 0.3), 80, 70, D=8)), np.repeat([0, 1], [80, 70])
    X[group_of == 1] += 2.0

    def likelihood(model):
        A, total = model.W @ model.W.T + np.diag(model.noise), 0.0
        for x, g in zip(X, group_of, strict=True):
            o = ~np.isnan(x)
            total += scipy.stats.multivariate_normal(model.means[g][o], A[np.ix_(o, o)]).logpdf(x[o])
        return total - 0.5 * float(np.sum(model.W**2 / model.noise[:, None]))  # the row that holds loadings

    models = [start(rng, X, 8, 1)]
    for _ in range(12):
        models.append(models[-1].stepped(X, group_of, np.full(8, 1e-3)))
    values = list(map(likelihood, models))
    assert np.all(np.diff(values) > -0.05)
    assert values[-1] > values[0] + 10
    # The means are soon those of the likelihood: without expanded parameters these take hundreds of steps.
    later = fit_factors(X, group_of, models[-1], 200)
    np.testing.assert_allclose(models[-1].means, later.means, atol=0.02)


def test_rows_and_moments_are_those_given_what_is_observed():
    X, Y = incomplete(4, (0.1, 0.4), 30, 25, D=5, factors=2)
    X, Y = 3 * X + 1, 3 * Y
    Y[0] = np.nan
    groups = Groups.of(X, Y)
    model = fit_common(groups)
    filled, moments = model.filled(groups), model.moments(groups)
    A = (model.factors.W @ model.factors.W.T + np.diag(model.factors.noise)) * np.outer(model.divisor, model.divisor)
    for g, (Z, centre) in enumerate(zip(groups, model.centre, strict=True)):
        mean = centre + model.factors.means[g] * model.divisor
        rows, covariances = zip(*(oracles.given_observed(z, mean, A) for z in Z), strict=True)
        own = list(filled)[g]
        np.testing.assert_allclose(own, rows, atol=1e-9)
        assert np.array_equal(own[~np.isnan(Z)], Z[~np.isnan(Z)])  # to the last digit
        scatter = oracles.scatter(np.array(rows)) + np.sum(covariances, axis=0)
        found = list(moments)[g]
        np.testing.assert_allclose(found.scatter.dense(), scatter, atol=1e-8)
        np.testing.assert_allclose(found.mean, np.mean(rows, axis=0), atol=1e-10)
        assert np.linalg.eigvalsh(found.scatter.dense())[0] > 0


# ---------------------------------------------------------------------- thinning


def test_thinned_groups_miss_alike():
    rng = np.random.default_rng(5)
    rates = [np.array([0.0, 0.1, 0.5, 0.3]), np.array([0.2, 0.1, 0.0, 0.6])]
    groups = Groups.of(*(np.where(rng.random((20000, 4)) < own, np.nan, 1.0) for own in rates))
    found = thinned(groups, rng)
    x, y = found.map(lambda X: np.isnan(X).mean(axis=0))
    error = np.sqrt(0.25 * 2 / 20000)
    np.testing.assert_allclose(x, y, atol=5 * error)
    np.testing.assert_allclose(x, np.maximum(*rates), atol=5 * error)  # no more than needed
    before = groups.map(lambda X: np.isnan(X).mean(axis=0))
    assert np.abs(before.foreground - before.background).max() > 50 * error  # the tolerance would not hide it
    assert all(np.isnan(after[np.isnan(given)]).all() for after, given in zip(found, groups, strict=True))


def test_draws_are_complete_and_complete_tables_stay():
    X, Y = incomplete(6)
    tables = tables_of(X, Y)
    first, second = filled_draws(tables, 2, np.random.default_rng(0))
    assert not first.incomplete
    assert not np.array_equal(first.rows.foreground, second.rows.foreground)
    for draw in (first, second):
        same = draw.rows.background == Y
        assert same[~np.isnan(Y)].all()  # the group with fewer values keeps all
        assert (draw.rows.foreground == X).mean() < 0.8
    whole = tables_of(*noise(np.random.default_rng(0), 20, 20))
    assert all(draw is whole for draw in filled_draws(whole, 3, np.random.default_rng(0)))


# ---------------------------------------------------------------------- the test


def rejected(p_values, level=0.05):
    return sum(p <= level for p in p_values)


@pytest.mark.slow
def test_level_at_unequal_rates():
    """At 5 and 30 % missing, and with each group imputed by its own model, as users were told before."""
    runs = 40
    most = scipy.stats.binom.ppf(0.999, runs, 0.065)
    thinly, naively = [], []
    for seed in range(runs):
        X, Y = incomplete(seed)
        thinly.append(contrast_test(X, background=Y, max_components=1, random_state=seed).p_values[0])
        own = [PPCA(2).fit(Z).impute(Z) for Z in (X, Y)]
        naively.append(contrast_test(own[0], background=own[1], max_components=1, random_state=seed).p_values[0])
    assert rejected(thinly) <= most
    assert rejected(naively) > most


@pytest.mark.slow
def test_power_is_kept():
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, Y = noise(rng, 200, 60, D=30, factors=2)
        X += 3 * rng.normal(size=(200, 1)) @ np.linalg.qr(rng.normal(size=(30, 1)))[0].T
        found.append(contrast_test(without(rng, X, 0.05), background=without(rng, Y, 0.3), random_state=0))
    assert sum(test.n_components == 1 for test in found) >= 8
    assert all(test.missing.differ for test in found)


@pytest.mark.slow
@pytest.mark.parametrize("rates", [(0.05, 0.05), (0.3, 0.3), (0.05, 0.3), (0.3, 0.05), (0.0, 0.2)])
@pytest.mark.parametrize("blocks", [False, True])
def test_level(rates, blocks):
    runs, p_values = 150, []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X, Y = noise(rng, 80, 64)
        donors = [np.arange(len(Z)) // 4 for Z in (X, Y)]
        given = None
        if blocks:
            X, Y = (Z + rng.normal(size=(20, 10))[own] for Z, own in zip((X, Y), donors, strict=True))
            given = donors[0], donors[1] + 100
        X, Y = (without(rng, Z, rate) for Z, rate in zip((X, Y), rates, strict=True))
        p_values.append(
            contrast_test(Study(X, background=Y, blocks=given), max_components=1, random_state=seed).p_values[0]
        )
    assert rejected(p_values) <= scipy.stats.binom.ppf(0.999, runs, 0.065)


def test_rates_are_said():
    X, Y = incomplete(7)
    found = contrast_test(X, background=Y, random_state=0)
    rates = (found.missing.foreground, found.missing.background)
    np.testing.assert_allclose(rates, (np.isnan(X).mean(), np.isnan(Y).mean()))
    assert "holds only if whether a value is missing does not depend on the value itself" in found.remarks()[0]
    X, Y = incomplete(7, (0.3, 0.3))
    alike = contrast_test(X, background=Y, random_state=0)
    assert not alike.missing.differ
    assert "depend" not in alike.remarks()[0]
    X, Y = noise(np.random.default_rng(0), 30, 30)
    assert contrast_test(X, background=Y, random_state=0).missing is None
    # Equal rates of all values, but not of each feature.
    X, Y = noise(np.random.default_rng(0), 60, 60)
    X[:30, :5], Y[:30, 5:] = np.nan, np.nan
    assert missing_of(Groups.of(X, Y)).differ


def test_rows_without_values_and_features_that_a_group_lacks():
    X, Y = incomplete(9)
    X[[3, 5]], X[:, 2], Y[:, 4] = np.nan, np.nan, np.nan
    blocks = np.arange(60) // 3
    with pytest.warns(ContrastWarning) as said:
        found = contrast_test(Study(X, background=Y, blocks=(blocks, blocks + 50)))
    texts = [str(warning.message) for warning in said]
    assert any(
        "2 of 10 features have no value in one of the groups and are left out: column 2, column 4." in t for t in texts
    )
    assert any("2 of the 60 foreground rows have no observed value; they are ignored." in text for text in texts)
    rows, features = np.delete(np.arange(60), [3, 5]), np.delete(np.arange(10), [2, 4])
    study = Study(X[rows][:, features], background=Y[:, features], blocks=(blocks[rows], blocks + 50))
    by_hand = contrast_test(study)
    np.testing.assert_allclose(found.p_values, by_hand.p_values, rtol=1e-6)  # columns of another layout
    with pytest.warns(ContrastWarning, match=r"2 of (10 features|the 60)"):
        assert held_out_contrast(CPCA(1, gamma=1.0), X, background=Y).ratios.size == 1


def test_too_many_features_are_refused():
    X = np.ones((5, 3001))
    X[0, 0] = np.nan
    with pytest.raises(GroupError, match="at most 3000 features where values are missing, not 3001"):
        usable(tables_of(X, np.ones((5, 3001))), "it")


# ---------------------------------------------------------------------- rows held out


@pytest.mark.slow
def test_held_out_ratio_of_noise_is_one():
    """Filling with means is the control: values that are missing do not vary."""
    runs, found, filled = 16, [], []
    for seed in range(runs):
        X, Y = incomplete(seed, n=100, m=100, D=20, factors=2)
        found.append(held_out_contrast(ContraPCA(1), X, background=Y).mean)
        X, Y = (np.where(np.isnan(Z), np.nanmean(Z, axis=0), Z) for Z in (X, Y))
        filled.append(held_out_contrast(ContraPCA(1), X, background=Y).mean)
    error = np.std(found, ddof=1) / np.sqrt(runs)
    assert abs(np.mean(found)) < 3.5 * error
    assert np.mean(filled) > 3.5 * error


@pytest.mark.parametrize(
    "estimator", [ContraPCA(1), PPCA(1), CPCA(1), RatioPCA(1), CLVM(1, 1), ContraPCA(1, scale="group")]
)
def test_held_out_contrast_of_every_method(estimator):
    rng = np.random.default_rng(0)
    X, Y = noise(rng, 120, 120)
    X[:, 0] += 3 * rng.normal(size=120)
    complete = held_out_contrast(estimator, X, background=Y)
    found = held_out_contrast(estimator, without(rng, X, 0.05), background=without(rng, Y, 0.1))
    assert abs(found.mean - complete.mean) < 0.4  # ratios are understated, by little here


def test_held_out_with_blocks_and_covariates():
    rng = np.random.default_rng(1)
    X, Y = noise(rng, 60, 60)
    age = rng.normal(size=(120, 1))
    X, Y = X + 5 * age[:60], Y + 5 * age[60:]
    X[:, 0] += 3 * rng.normal(size=60)
    X, Y = without(rng, X, 0.1), without(rng, Y, 0.1)
    donors = np.arange(60) // 6
    study = Study(X, background=Y, blocks=(donors, donors + 20), covariates=(age[:60], age[60:]))
    assert held_out_contrast(ContraPCA(1), study).ratios[0] > 2
    assert contrast_test(study).p_values[0] <= 1


def test_compare_with_labels():
    rng = np.random.default_rng(2)
    X, Y = noise(rng, 90, 80)
    labels = np.arange(90) % 2
    X[:, :2] += 3.0 * labels[:, None]
    X, Y = without(rng, X, 0.05), without(rng, Y, 0.3)
    X[4] = np.nan
    with pytest.warns(ContrastWarning, match="1 of the 90 foreground rows"):
        found = compare(Study(X, background=Y, labels=labels), n_components=1, progress=False)
    assert found.recommended is not None
    assert not any(entry.failure for entry in found.entries)
    assert max(entry.silhouette for entry in found.entries) > 0.3


def test_a_frame_that_was_imputed_is_not_taken_for_measured(need):
    pandas = need("pandas")
    X, Y = incomplete(10)
    frames = [pandas.DataFrame(Z) for Z in (X, Y)]
    filled = PPCA(1).fit(frames[0]).impute(frames[0])
    assert filled.attrs == {"imputed": np.isnan(X).sum()}
    with pytest.warns(TableWarning, match=f"{np.isnan(X).sum()} values of a table were imputed"):
        contrast_test(filled, background=frames[1], random_state=0)
    assert contrast_test(frames[0], background=frames[1], random_state=0).missing.differ  # and no warning


# ---------------------------------------------------------------------- fits


def planted(seed, rates, n=100, m=100, D=20):
    """Two groups that share three factors, an axis (D,) along which the foreground varies more, and both with holes."""
    rng = np.random.default_rng(seed)
    X, Y = noise(rng, n, m, D=D, factors=3)
    axis = rng.normal(size=D)
    axis /= np.linalg.norm(axis)
    X += 2.5 * rng.normal(size=(n, 1)) * axis
    return axis, (X, Y), [without(rng, Z, rate) for Z, rate in zip((X, Y), rates, strict=True)]


def searched(model):
    """The model that a search found, or the model itself."""
    return getattr(model, "best_estimator_", model)


def square_cosine(estimator, axis, X, Y):
    return float(searched(clone(estimator).fit(X, background=Y)).components_[0] @ axis) ** 2


FITS = {
    "CPCA": CPCA(2),
    "pooled": CPCA(2, gamma=1.5, scale="pooled"),
    "group": CPCA(2, gamma=1.5, scale="group"),
    "RatioPCA": RatioPCA(2),
    "both ends": RatioPCA(2, end="both"),
    "search": GammaSearch(CPCA(2), n_folds=3),
}


def with_means(X, Y):
    return [np.where(np.isnan(Z), np.nanmean(Z, axis=0), Z) for Z in (X, Y)]


def of_pairs(X, Y):
    """Moments of the rows in which both values of a pair were observed."""
    return [estimated_moments(observe(Z)[0]) for Z in (X, Y)]


@pytest.mark.slow
@pytest.mark.parametrize("rates", [(0.05, 0.3), (0.3, 0.3)])
@pytest.mark.parametrize(
    ("estimator", "control"),
    [(CPCA(1, gamma=2.0), of_pairs), (RatioPCA(1), of_pairs), (CPCA(1), with_means)],
    ids=["CPCA, gamma 2", "RatioPCA", "CPCA, auto"],
)
def test_axes_are_found_where_values_are_missing(estimator, control, rates):
    """Of the squared cosine with complete rows no more than .1 is lost, but for chance; the controls lose more."""
    lost = []
    for seed in range(24):
        axis, complete, (X, Y) = planted(seed, rates)
        best, found = (square_cosine(estimator, axis, *both) for both in (complete, (X, Y)))
        try:
            other = square_cosine(estimator, axis, *control(X, Y))
        except ValueError:  # moments of pairs need not be positive semidefinite, and have no solution then
            other = 0.0
        lost.append([best - found, best - other])
    mine, others = np.transpose(lost)
    error, error_apart = (np.std(own, ddof=1) / np.sqrt(len(lost)) for own in (mine, others - mine))
    assert mine.mean() < 0.1 + 3 * error
    assert (others - mine).mean() > 3 * error_apart


@pytest.mark.parametrize("name", FITS)
def test_fits_take_expected_moments(name):
    """Components of the moments, and latents of rows filled as Gaussian conditioning by dense matrices fills them."""
    estimator = FITS[name]
    _, _, (X, Y) = planted(3, (0.05, 0.3), 90, 70, 10)
    X, Y = 3 * X + 1, 3 * Y  # in no particular units
    X[4] = np.nan
    with pytest.warns(ContrastWarning, match="1 of the 90 foreground rows") as caught:
        model = clone(estimator).fit(X, background=Y)
    assert len(caught) == 1
    groups = Groups.of(np.delete(X, 4, axis=0), Y)
    common = fit_common(groups)
    moments, best = common.moments(groups), searched(model)
    gamma = {"gamma": best.gamma_} if isinstance(best, CPCA) else {}
    again = clone(best).set_params(**gamma).fit(moments.foreground, background=moments.background)
    np.testing.assert_allclose(best.components_, again.components_, atol=1e-8)
    A = (common.factors.W @ common.factors.W.T + np.diag(common.factors.noise)) * np.outer(
        common.divisor, common.divisor
    )
    for rows, center, mean in ((X, "foreground", best.mean_), (Y, "background", best.background_mean_)):
        filled = np.array([oracles.given_observed(row, mean, A)[0] for row in rows])
        expected = again.transform(filled, center=center)
        np.testing.assert_allclose(best.transform(rows, center=center), expected, atol=1e-8)
    np.testing.assert_allclose(model.transform(X)[4], 0, atol=1e-12)  # a row without values is the mean
    complete = np.delete(X, 4, axis=0)[~np.isnan(np.delete(X, 4, axis=0)).any(axis=1)]
    np.testing.assert_allclose(model.transform(complete), again.transform(complete), atol=1e-8)


@pytest.mark.parametrize("estimator", [CPCA(2, gamma=1.0, scale="group"), RatioPCA(2)])
def test_such_models_are_saved_and_keep_the_float_type(estimator, tmp_path):
    _, (whole, _), (X, Y) = planted(5, (0.1, 0.2))
    model = clone(estimator).fit(X, background=Y)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    for center, rows in (("foreground", X), ("background", Y)):
        np.testing.assert_array_equal(again.transform(rows, center=center), model.transform(rows, center=center))
    small = clone(estimator).fit(X.astype(np.float32), background=Y.astype(np.float32))
    latents = small.transform(X.astype(np.float32))
    assert small.components_.dtype == latents.dtype == small.inverse_transform(latents).dtype == np.float32
    np.testing.assert_allclose(latents, model.transform(X), atol=1e-3)
    # The filled values tell what is missing: latents are nearer to those of complete rows than with means.
    true, means = model.transform(whole), np.where(np.isnan(X), model.mean_, X)
    assert np.sum((model.transform(X) - true) ** 2) < 0.8 * np.sum((model.transform(means) - true) ** 2)


def test_paths_and_reports_of_such_models(tmp_path, need):
    need("jinja2")
    _, _, (X, Y) = planted(6, (0.05, 0.2), D=8)
    model = CPCA(2, gamma=0.8).fit(X, background=Y)
    path = contrast_path(CPCA(2), X, background=Y, gammas=[0.0, 0.8])
    path.save(tmp_path / "path.npz")
    for found in (path, load(tmp_path / "path.npz")):
        np.testing.assert_allclose(found.latents(X)[1], model.transform(X), atol=1e-8)
        np.testing.assert_allclose(found.model(0.8).transform(X), model.transform(X), atol=1e-8)
    for subject in (model, path):
        report(X, subject, background=Y, output=tmp_path / "page.html", progress=False)
        assert f"{np.isnan(X).sum()}</td>" in (tmp_path / "page.html").read_text()
    covariate = np.random.default_rng(0).normal(size=(200, 1))
    beside = covariate[:100], covariate[100:]
    adjusted = CPCA(2, gamma=0.8).fit(Study(X, background=Y, covariates=beside))
    assert np.isfinite(adjusted.transform(X, covariates=covariate[:100])).all()
    several = CPCA(2, gamma=0.8).fit(X, background={"a": Y[:50], "b": Y[50:]})
    np.testing.assert_allclose(several.transform(np.full((1, 8), np.nan), center="b"), 0, atol=1e-12)


def test_what_such_models_do_not_do():
    _, (whole, controls), (X, Y) = planted(7, (0.05, 0.2), D=8)
    model, hollow = CPCA(2, gamma=0.8).fit(X, background=Y), X.copy()
    hollow[:, 3] = np.nan
    with pytest.raises(NonFiniteError, match="CPCA was fitted to complete rows and has no model of what is missing"):
        CPCA(2, gamma=0.8).fit(whole, background=controls).transform(X)
    with pytest.raises(ValueError, match=r"bootstrap of a model without a likelihood needs complete rows"):
        bootstrap(model, X, background=Y)
    with pytest.raises(ValueError, match=r"bootstrap\(X, background=Y\) of ContraPCA, PCPCA and PPCA takes them"):
        posterior(model, X, background=Y)
    with pytest.raises(ValueError, match="no weights where values are missing"):
        CPCA(2).fit(X, background=Y, sample_weight=np.arange(100) + 1)
    with pytest.raises(GroupError, match=r"1 of 8 features have no observed value in one of the groups \(column 3\)"):
        CPCA(2).fit(hollow, background=Y)
    with pytest.raises(ValueError, match=r"too large to be squared: rescale them. \(In the background"):
        CPCA(2).fit(X, background=1e160 * Y)
    with pytest.raises(ValueError, match="solver='dual' is for complete rows"):
        CPCA(2, solver="dual").fit(X, background=Y)
    with pytest.raises(NonFiniteError, match="infinity"):
        model.transform(np.where(np.isnan(X), np.inf, X))
    for refused in (SparseCPCA(2), CLVM(1, 1)):
        with pytest.raises(ValueError, match="NaN"):
            refused.fit(X, background=Y)


def test_expected_moments_are_nearer_than_those_of_pairs():
    rng = np.random.default_rng(4)
    errors = []
    for _ in range(10):
        X, Y = noise(rng, 80, 80, D=20, factors=3)
        groups = Groups.of(without(rng, X, 0.3), without(rng, Y, 0.3))
        found = fit_common(groups).moments(groups).map(lambda own: own.scatter.dense() / own.weight)
        pairs = groups.map(lambda Z: estimated_moments(observe(Z)[0])).map(lambda own: own.scatter.dense() / own.weight)
        whole = Groups.of(X, Y).map(lambda Z: np.cov(Z.T, ddof=0))
        errors.append(
            [[np.linalg.norm(own - true) for own, true in zip(g, whole, strict=True)] for g in (found, pairs)]
        )
        assert min(np.linalg.eigvalsh(own)[0] for own in found) > 0
    mine, theirs = np.mean(errors, axis=(0, 2))
    assert mine < 0.8 * theirs


@pytest.mark.filterwarnings("ignore::contrapca.exceptions.TableWarning")
def test_the_same_table_twice_is_no_finding():
    """In paired blocks the differences are rounding, whose sign is the same in every split."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((100, 10)) < 0.05, np.nan, rng.standard_normal((100, 10)))
        block = np.arange(100) // 5
        found = contrast_test(Study(X, background=X.copy(), blocks=(block, block)), progress=False)
        assert found.p_values.min() > 0.3
