"""RatioPCA: golden numbers, the names that mean the same, every storage, both ends, the ridge."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA

import oracles
from conftest import make_groups
from contrapca import (
    CPCA,
    GammaSearch,
    Moments,
    RatioPCA,
    Study,
    bootstrap,
    contrast_path,
    gamma_limits,
    held_out_contrast,
    load,
)
from contrapca.contrast import _eigen as _spectral
from contrapca.contrast import _ratio
from contrapca.exceptions import GroupError, InfeasibleGammaError, RankError, SingularGroupError

SHAPES = {"tall": (150, 120, 12), "wide": (15, 12, 60), "n < D < n + m": (15, 40, 30)}


@pytest.fixture(params=list(SHAPES))
def any_groups(request):
    return make_groups(*SHAPES[request.param])


def same_directions(left, right, atol=1e-8):
    """Columns are the same up to sign."""
    signs = np.sign(np.sum(left * right, axis=0))
    np.testing.assert_allclose(left, right * signs, atol=atol)


# ---------------------------------------------------------------------- golden numbers

# Mouse proteins, standardised, covariances with ddof 1: of independent runs.
RHO = [622.62241458, 370.56870522, 307.30037173, 256.93712020, 211.41212908]
TOP, BOTTOM = [0.99679293, 0.99461742, 0.99351282], [-0.99538343, -0.98980557]
RIDGES = {1e-2: 184.2644, 0.1: 39.3482, 1.0: 6.12356}


def ddof_1(X, Y):
    """By how much a ratio of variances with ddof 1 is larger than with ddof 0."""
    n, m = len(X), len(Y)
    return n / (n - 1) * (m - 1) / m


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
def test_golden_ratios(mouse, solver):
    """Two columns are identical, so both covariances are singular; only their common range counts."""
    X, Y, _, _ = mouse
    model = RatioPCA(5, ridge=0, solver=solver).fit(X, background=Y)
    rho = model.ratios_ * ddof_1(X, Y)
    np.testing.assert_allclose(rho, RHO, rtol=1e-9)
    np.testing.assert_allclose(((rho - 1) / (rho + 1))[:3], TOP, atol=5e-9)
    bottom = RatioPCA(2, ridge=0, end="background", solver=solver).fit(X, background=Y)
    rho = bottom.ratios_ * ddof_1(X, Y)
    np.testing.assert_allclose((rho - 1) / (rho + 1), BOTTOM, atol=5e-9)


@pytest.mark.parametrize("mu", RIDGES)
def test_golden_ridges(mouse, mu):
    """mu is in absolute units there, added to a covariance with ddof 1; the mean variance is 1 with ddof 0."""
    X, Y, _, _ = mouse
    model = RatioPCA(1, ridge=mu * (len(Y) - 1) / len(Y)).fit(X, background=Y)
    assert model.ratios_[0] * ddof_1(X, Y) == pytest.approx(RIDGES[mu], abs=5e-5)


def test_the_limit_of_cpca_is_a_ratio(mouse):
    X, Y, _, _ = mouse
    model = RatioPCA(2, ridge=0).fit(X, background=Y)
    assert model.ratios_[1] == pytest.approx(gamma_limits(X, background=Y, n_components=2).cpca, rel=1e-8)


# ---------------------------------------------------------------------- one estimator, many names


def generalised(numerator, denominator, d):
    values, V = scipy.linalg.eigh(numerator, denominator)
    V = V[:, : -d - 1 : -1]
    return values[: -d - 1 : -1], V / np.linalg.norm(V, axis=0)


def test_all_names_mean_the_same_directions(groups):
    """rhoPCA and gcPCA v2: A v = rho B v. cPCA++: of B^-1 A. v3: (A - B) v = v3 B v. v4: (A - B) v = v4 (A + B) v."""
    X, Y = groups
    A, B = oracles.scatter(X) / len(X), oracles.scatter(Y) / len(Y)
    model = RatioPCA(3, ridge=0).fit(X, background=Y)
    V = model.components_.T
    plus = np.linalg.eig(np.linalg.solve(B, A))
    order = np.argsort(-plus.eigenvalues.real)[:3]
    for values, name, vectors in (
        (*generalised(A, B, 3)[:1], "ratios_", generalised(A, B, 3)[1]),
        (plus.eigenvalues.real[order], "ratios_", plus.eigenvectors.real[:, order]),
        (*generalised(A - B, B, 3)[:1], "v3_", generalised(A - B, B, 3)[1]),
        (*generalised(A - B, A + B, 3)[:1], "v4_", generalised(A - B, A + B, 3)[1]),
    ):
        np.testing.assert_allclose(getattr(model, name), values, rtol=1e-9)
        same_directions(V, vectors)
    np.testing.assert_allclose(model.ratios_, model.explained_variance_ / model.background_variance_, rtol=1e-10)


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
@pytest.mark.parametrize("ridge", [0.05, 2.0])
def test_every_storage_equals_the_oracle(any_groups, solver, ridge):
    X, Y = any_groups
    model = RatioPCA(3, ridge=ridge, solver=solver).fit(X, background=Y)
    rho, V = oracles.ratio(X, Y, ridge)
    np.testing.assert_allclose(model.ratios_, rho[:3], rtol=1e-8)
    same_directions(model.components_.T, V[:, :3], 1e-7)
    np.testing.assert_allclose(model.explained_variance_, np.var(X @ model.components_.T, axis=0), rtol=1e-8)
    np.testing.assert_allclose(model.background_variance_, np.var(Y @ model.components_.T, axis=0), rtol=1e-7)


@pytest.mark.parametrize("ridge", ["auto", "oas", 0.3])
def test_sparse_tables(ridge):
    unequal = sp.diags(np.where(np.arange(600) < 20, 5.0, 1.0))  # or nothing but the identity would be left of cov_Y
    X, Y = ((sp.random(80, 600, density=0.05, random_state=seed, format="csr") @ unequal).tocsr() for seed in (0, 1))
    model = RatioPCA(2, ridge=ridge).fit(X, background=Y)
    assert model.solver_.name == "lanczos"
    rho, V = oracles.ratio(X.toarray(), Y.toarray(), model.ridge_)
    np.testing.assert_allclose(model.ratios_, rho[:2], rtol=1e-8)
    same_directions(model.components_.T, V[:, :2], 1e-6)
    np.testing.assert_allclose(model.transform(X), model.transform(X.toarray()), atol=1e-10)


def test_large_matrices_are_iterated(groups):
    """From order 500 on, by Lanczos; the direct solution is the oracle."""
    X, Y = make_groups(700, 650, 520)
    model = RatioPCA(2, ridge=0.2).fit(X, background=Y)
    assert model.n_iter_ > 1
    rho, V = oracles.ratio(X, Y, 0.2)
    np.testing.assert_allclose(model.ratios_, rho[:2], rtol=1e-9)
    same_directions(model.components_.T, V[:, :2])


@pytest.mark.parametrize("failure", ["unconverged", "missed"])
def test_when_the_iteration_fails_matrices_are_solved_directly(monkeypatch, failure):
    X, Y = make_groups(700, 650, 520)
    expected = RatioPCA(2, ridge=0.2).fit(X, background=Y)

    def unconverged(*_):
        raise _spectral.Unconverged("no")

    fails = {"unconverged": ("largest", unconverged), "missed": ("missed_direction", lambda *_: np.ones(3))}
    monkeypatch.setattr(_spectral, *fails[failure])
    found = RatioPCA(2, ridge=0.2).fit(X, background=Y)
    assert found.n_iter_ == 1
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-9)


# ---------------------------------------------------------------------- both ends


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
@pytest.mark.parametrize("ridge", [0, 0.2])
def test_the_other_end_is_that_of_the_exchanged_groups(groups, ridge, solver):
    X, Y = groups
    left = RatioPCA(2, ridge=ridge, end="background", solver=solver).fit(X, background=Y)
    right = RatioPCA(2, ridge=ridge).fit(Y, background=X)
    np.testing.assert_allclose(left.ratios_, 1 / right.ratios_, rtol=1e-8)
    same_directions(left.components_.T, right.components_.T)
    np.testing.assert_allclose(left.v4_, -right.v4_, atol=1e-9)  # theta and 1 - theta


def test_both_ends(groups):
    X, Y = groups
    both = RatioPCA(5, ridge=0.1, end="both").fit(X, background=Y)
    top = RatioPCA(3, ridge=0.1).fit(X, background=Y)
    bottom = RatioPCA(2, ridge=0.1, end="background").fit(X, background=Y)
    np.testing.assert_allclose(both.ratios_, [*top.ratios_, *bottom.ratios_])
    np.testing.assert_allclose(both.components_, np.vstack([top.components_, bottom.components_]), atol=1e-12)
    assert both.transform(X).shape == (len(X), 5)


@pytest.mark.parametrize("solver", ["eigh", "lanczos"])
@pytest.mark.parametrize(("end", "ends"), [("foreground", [1, 1, 1]), ("background", [-1] * 3), ("both", [1, -1, 1])])
def test_orthogonal_directions(groups, solver, end, ends):
    X, Y = groups
    for ridge in (0.0, 0.3):
        model = RatioPCA(3, ridge=ridge, end=end, orthogonal=True, solver=solver).fit(X, background=Y)
        V = model.components_.T
        np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-10)
        expected = oracles.orthogonal_ratio(X, Y, ends, ridge)
        same_directions(V, expected[:, [0, 2, 1]] if end == "both" else expected, 1e-7)
    # The first is the best of all; the others are not those of the plain variant.
    plain = RatioPCA(3, ridge=0.3, end=end, solver=solver).fit(X, background=Y).components_.T
    same_directions(V[:, :1], plain[:, :1], 1e-7)
    assert np.abs(V[:, 1:] - plain[:, 1:]).max() > 1e-3


# ---------------------------------------------------------------------- the ridge


def test_the_ridge_leads_from_pca_to_the_pure_ratio(groups):
    X, Y = groups
    path = contrast_path(RatioPCA(2), X, background=Y)
    assert path.gammas[0] == 0
    assert path.gammas[-1] == 1
    oracles.same_subspace(path.components(0).T, PCA(2).fit(X).components_.T, 1e-8)
    same_directions(path.components(1).T, oracles.ratio(X, Y)[1][:, :2])
    for gamma in path.gammas[[0, 10, 25, -1]]:
        model, ridge = path.model(gamma), np.inf if gamma == 0 else (1 - gamma) / gamma
        again = RatioPCA(2, ridge=ridge).fit(X, background=Y)
        assert model.ridge_ == pytest.approx(ridge)
        np.testing.assert_allclose(model.components_, again.components_, atol=1e-9)
        np.testing.assert_allclose(model.ratios_, again.ratios_, rtol=1e-9)
        np.testing.assert_allclose(model.transform(X), again.transform(X), atol=1e-8)
        assert model.fit_.inside.foreground == pytest.approx(again.fit_.inside.foreground)


def test_paths_of_wide_tables_stay_below_the_pure_ratio(tmp_path):
    X, Y = make_groups(15, 12, 60)
    path = contrast_path(RatioPCA(2), X, background=Y, gammas=6)
    assert path.gammas[-1] < 1
    again = RatioPCA(2, ridge=(1 - path.gammas[-1]) / path.gammas[-1]).fit(X, background=Y)
    np.testing.assert_allclose(path.components(path.gammas[-1]), again.components_, atol=1e-7)
    with pytest.raises(SingularGroupError, match="ridge"):
        contrast_path(RatioPCA(2), X, background=Y, gammas=[0.5, 1.0])
    path.save(tmp_path / "path.npz")
    np.testing.assert_array_equal(load(tmp_path / "path.npz").components(0), path.components(0))


def test_the_automatic_ridge_is_the_shrinkage_of_ledoit_and_wolf(groups):
    """scikit-learn's; from sparse rows, in halves and at the other end it is the same."""
    X, Y = groups
    part = ledoit_wolf(Y - Y.mean(axis=0), assume_centered=True)[1]
    model = RatioPCA(2).fit(X, background=Y)
    assert model.ridge_ == pytest.approx(part / (1 - part))
    # tr B^2 is estimated by random vectors where the matrix is never formed.
    assert RatioPCA(2, solver="lanczos").fit(X, background=Y).ridge_ == pytest.approx(model.ridge_, rel=0.18)
    swapped = RatioPCA(2, end="background").fit(Y, background=X)
    assert swapped.ridge_ == pytest.approx(model.ridge_)
    assert RatioPCA(2, end="both").fit(X, background=Y).ridge_ >= model.ridge_
    assert held_out_contrast(RatioPCA(2), X, background=Y).gamma == pytest.approx(1 / (1 + model.ridge_))


@pytest.mark.parametrize("scale", [None, "group", "pooled"])
@pytest.mark.parametrize("shape", [(40, 30, 8), (14, 20, 50)], ids=["tall", "wide"])
def test_the_automatic_ridge_is_that_of_the_scaled_controls(shape, scale):
    """Of several backgrounds too, each about its own mean."""
    X, Y = make_groups(*shape)
    others = {"a": Y, "b": 2 * Y[:9] + 1}
    model = RatioPCA(2, scale=scale).fit(X, background=others)
    divisors = [model.scale_] * 2
    if scale == "group":
        divisors = [model.fit_.scaling[name].scale for name in others]
    rows = np.vstack(
        [(own - own.mean(axis=0)) / divisor for own, divisor in zip(others.values(), divisors, strict=True)]
    )
    part = ledoit_wolf(rows, assume_centered=True)[1]
    assert model.ridge_ == pytest.approx(part / (1 - part), rel=1e-9)
    assert held_out_contrast(RatioPCA(2, scale=scale), X, background=Y).gamma == pytest.approx(
        1 / (1 + RatioPCA(2, scale=scale).fit(X, background=Y).ridge_), rel=1e-6
    )


def test_the_oracle_approximating_ridge_needs_moments_only(groups):
    """Written out, from the covariance itself."""
    X, Y = groups
    B, (m, D) = oracles.scatter(Y) / len(Y), Y.shape
    square, trace = np.trace(B @ B), np.trace(B)
    part = ((1 - 2 / D) * square + trace**2) / ((m + 1 - 2 / D) * (square - trace**2 / D))
    model = RatioPCA(2, ridge="oas").fit(X, background=Y)
    assert model.ridge_ == pytest.approx(part / (1 - part))
    of_moments = RatioPCA(2).fit(Moments.from_rows(X), background=Moments.from_rows(Y))
    assert of_moments.ridge_ == pytest.approx(model.ridge_)
    assert held_out_contrast(RatioPCA(2, ridge="oas"), X, background=Y).gamma == pytest.approx(1 / (1 + model.ridge_))


def test_both_automatic_ridges_agree_on_gaussian_rows():
    X, Y = make_groups(300, 2000, 30)
    auto, oas = (RatioPCA(2, ridge=ridge).fit(X, background=Y).ridge_ for ridge in ("auto", "oas"))
    assert auto == pytest.approx(oas, rel=0.05)
    long = np.random.default_rng(0).standard_t(3, size=(2000, 1))  # a few rows decide the covariance
    auto, oas = (RatioPCA(2, ridge=ridge).fit(X, background=long * Y).ridge_ for ridge in ("auto", "oas"))
    assert auto > 2 * oas


def test_fewer_controls_need_a_larger_ridge():
    ridges = []
    for m in (20, 60, 2000):
        X, Y = make_groups(200, m, 30)
        ridges.append(RatioPCA(1).fit(X, background=Y).ridge_)
    assert ridges[0] > ridges[1] > ridges[2] > 0


def test_units_of_the_features_do_not_matter_without_a_ridge(groups):
    """The pure ratio is equivariant; judging which directions vary must be, too."""
    X, Y = groups
    units = np.geomspace(1e-9, 1e9, X.shape[1])
    left, right = (RatioPCA(2, ridge=0).fit(X * u, background=Y * u) for u in (1.0, units))
    np.testing.assert_allclose(left.ratios_, right.ratios_, rtol=1e-8)
    found = right.components_ * units
    same_directions(left.components_.T, (found / np.linalg.norm(found, axis=1, keepdims=True)).T, 1e-7)


@pytest.mark.parametrize("unit", [1e-100, 1e-12, 1e80])
def test_the_unit_of_the_table_does_not_matter(groups, unit):
    X, Y = groups
    left, right = (RatioPCA(2).fit(X * c, background=Y * c) for c in (1.0, unit))
    np.testing.assert_allclose([*right.ratios_, right.ridge_], [*left.ratios_, left.ridge_], rtol=1e-8)
    np.testing.assert_allclose(right.components_, left.components_, atol=1e-8)


# ---------------------------------------------------------------------- what every estimator has


def test_transform_and_back(groups):
    X, Y = groups
    model = RatioPCA(3, ridge=0.1).fit(X, background=Y)
    V, mean = model.components_.T, X.mean(axis=0)
    Z = model.transform(X)
    np.testing.assert_allclose(Z, (X - mean) @ V, atol=1e-10)
    np.testing.assert_allclose(model.transform(Y, center="background"), (Y - Y.mean(axis=0)) @ V, atol=1e-10)
    back = model.inverse_transform(Z)
    np.testing.assert_allclose(model.transform(back), Z, atol=1e-10)
    np.testing.assert_allclose(back, mean + (X - mean) @ V @ np.linalg.pinv(V), atol=1e-10)  # the nearest such rows
    assert not any(hasattr(model, name) for name in ("score", "sample", "gamma_", "n_effective_", "loadings_"))
    table = model.feature_table()
    assert list(table)[:3] == ["feature", "component_1", "component_2"]


def test_an_infinite_ridge_is_pca(groups):
    X, Y = groups
    model = RatioPCA(2, ridge=np.inf).fit(X, background=Y)
    np.testing.assert_allclose(model.components_, CPCA(2, gamma=0).fit(X, background=Y).components_, atol=1e-9)
    np.testing.assert_array_equal(model.ratios_, 0)


def test_bootstrap_refits_with_the_same_ridge(groups):
    X, Y = groups
    for wide in (False, True):
        left, right = make_groups(30, 25, 80, signal=12) if wide else (X, Y)
        model = RatioPCA(2).fit(left, background=right)
        draws = bootstrap(model, left, background=right, n_resamples=30, random_state=0, progress=False)
        assert draws.failures == 0
        frames = np.linalg.qr(draws.loadings[0])[0], np.linalg.qr(model.components_.T)[0]
        cosines = np.linalg.svd(np.swapaxes(frames[0], 1, 2) @ frames[1], compute_uv=False)[:, -1]
        assert 0.5 < np.median(cosines) < cosines.max() < 0.9999


def test_held_out_contrast_and_search(groups):
    X, Y = groups
    model = RatioPCA(2)
    found = held_out_contrast(model, X, background=Y)
    fitted = model.fit(X, background=Y)
    assert found.gamma == pytest.approx(1 / (1 + fitted.ridge_))
    assert 0 < found.mean < np.log(fitted.explained_variance_ / fitted.background_variance_).mean()
    search = GammaSearch(RatioPCA(2), gammas=8).fit(X, background=Y)
    assert isinstance(search.best_estimator_, RatioPCA)
    assert search.best_estimator_.ridge_ == pytest.approx((1 - search.best_gamma_) / search.best_gamma_)
    assert search.best_score_ > 1


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
@pytest.mark.parametrize("end", ["foreground", "background", "both"])
def test_a_singular_background_without_ridge(end, solver):
    X, Y = make_groups(15, 12, 60)
    model = RatioPCA(2, ridge=0, end=end, solver=solver)
    with pytest.raises(SingularGroupError, match=r"ridge='auto' or a number above 0"):
        model.fit(X, background=Y)
    assert not hasattr(model, "components_")
    assert issubclass(SingularGroupError, InfeasibleGammaError)


def test_folds_without_a_pure_ratio():
    """A feature in which one row of the background varies: without that row there is no ratio."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 40, 4))
    Y[1:, 0] = 0.0
    assert np.isfinite(RatioPCA(1, ridge=0).fit(X, background=Y).ratios_).all()
    with pytest.raises(SingularGroupError, match="not when some are held out"):
        held_out_contrast(RatioPCA(1, ridge=0), X, background=Y)
    assert np.isfinite(held_out_contrast(RatioPCA(1, ridge=0.1), X, background=Y).mean)


def test_a_feature_that_only_the_background_lacks(groups):
    """One constant feature is enough; constant in both groups, it is harmless."""
    X, Y = (table.copy() for table in groups)
    Y[:, 3] = 7.1
    with pytest.raises(SingularGroupError, match="background does not vary"):
        RatioPCA(2, ridge=0).fit(X, background=Y)
    X[:, 3] = 0.1 + 0.2
    model = RatioPCA(2, ridge=0).fit(X, background=Y)
    np.testing.assert_allclose(model.components_[:, 3], 0, atol=1e-9)
    without = RatioPCA(2, ridge=0).fit(np.delete(X, 3, 1), background=np.delete(Y, 3, 1))
    np.testing.assert_allclose(model.ratios_, without.ratios_, rtol=1e-9)


def test_without_ridge_too_many_features(monkeypatch):
    monkeypatch.setattr(_ratio, "MAX_DENSE", 100)
    X, Y = (sp.random(60, 150, density=0.3, random_state=seed, format="csr") for seed in (0, 1))
    with pytest.raises(ValueError, match=r"150 are too many .*ridge='auto'"):
        RatioPCA(2, ridge=0, solver="lanczos").fit(X, background=Y)
    with pytest.raises(ValueError, match=r"orthogonal=True needs matrices of all features, and 150 are too many"):
        RatioPCA(2, orthogonal=True, solver="lanczos").fit(X, background=Y)
    RatioPCA(2, ridge=0.1, solver="lanczos").fit(X, background=Y)


rng = np.random.default_rng(0)
CASES, CONTROLS = rng.standard_normal((30, 6)), rng.standard_normal((25, 6))
BAD = {
    "negative ridge": ({"ridge": -1}, CONTROLS, ValueError, "ridge=-1 must be 'auto', 'oas' or a number"),
    "nan ridge": ({"ridge": np.nan}, CONTROLS, ValueError, "ridge=nan"),
    "ridge of another type": ({"ridge": "Auto"}, CONTROLS, TypeError, "ridge='Auto'"),
    "end": ({"end": "top"}, CONTROLS, ValueError, "end='top' is not valid"),
    "no background": ({}, None, GroupError, r"background=.*For a single group, use PPCA\.$"),  # there is no gamma
    "infinity": ({}, np.where(CONTROLS > 2, np.inf, CONTROLS), ValueError, "infinity"),
    "too many components": ({"n_components": 6}, CONTROLS, ValueError, "n_components=6"),
    "other features": ({}, CONTROLS[:, :5], GroupError, "6 features"),
    "solver": ({"solver": "lbfgs"}, CONTROLS, ValueError, "solver='lbfgs'"),
    "scale": ({"scale": "both"}, CONTROLS, ValueError, "scale='both'"),
    "constant background": ({}, np.full((5, 6), 0.1), GroupError, "background does not vary at all"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    settings, background, error, says = BAD[name]
    model = RatioPCA(**settings)
    with pytest.raises(error, match=says):
        model.fit(CASES, background=background)
    assert not model.__sklearn_is_fitted__()


def test_a_foreground_of_low_rank():
    with pytest.raises(RankError):
        RatioPCA(2).fit(CASES[:, :1] @ CASES[:1], background=CONTROLS)


# ---------------------------------------------------------------------- few rows


@pytest.mark.parametrize("end", ["foreground", "both"])
@pytest.mark.parametrize("scale", [None, "pooled"])
@pytest.mark.parametrize("solver", ["dual", "lanczos"])
def test_few_rows_with_weights_and_several_backgrounds(end, scale, solver):
    """More features than rows: the result is that of matrices of all features."""
    X, Y = make_groups(25, 30, 90)
    weights = np.linspace(0.5, 2, 25), np.linspace(2, 0.5, 30)
    several = Study(X, background={"a": Y[:12], "b": Y[12:]})
    for ridge in (0.3, "auto"):
        for given in (Study(X, background=Y), Study(X, background=Y, weights=weights), several):
            estimator = RatioPCA(2, ridge=ridge, end=end, scale=scale)
            expected = clone(estimator).set_params(solver="eigh").fit(given)
            found = estimator.set_params(solver=solver).fit(given)
            assert found.solver_.name == solver
            assert found.ridge_ == pytest.approx(expected.ridge_, rel=1e-10)
            np.testing.assert_allclose(found.components_, expected.components_, atol=1e-8)
            np.testing.assert_allclose(found.ratios_, expected.ratios_, rtol=1e-9)


@pytest.mark.parametrize("solver", ["dual", "lanczos"])
def test_a_tiny_ridge_in_the_span_of_few_rows(solver):
    X, Y = make_groups(25, 30, 90)
    model = RatioPCA(2, ridge=1e-8, solver=solver).fit(X, background=Y)
    rho, V = oracles.ratio(X, Y, 1e-8)
    np.testing.assert_allclose(model.ratios_, rho[:2], rtol=1e-5)
    same_directions(model.components_.T, V[:, :2], 1e-4)
