"""Many gammas at once, against independent fits."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import oracles
from conftest import make_groups
from contrapca import CPCA, PCPCA, PPCA, ContraPCA, Moments, SparseCPCA, bootstrap, contrast_path, gamma_limits, load
from contrapca.contrast._path import has_no_more, solve_path
from contrapca.data._groups import Groups
from contrapca.exceptions import InfeasibleGammaError, ModelFileError, NonFiniteError, RankError
from contrapca.inference._path import ContrastPath
from contrapca.moments._contrast import contrast
from contrapca.moments._scatter import DenseScatter
from saved import rewrite

X, Y = make_groups(150, 120, 12)
WIDE = make_groups(20, 15, 60, seed=1)


def test_sparse_components_are_those_of_fits_with_the_same_features():
    estimator = SparseCPCA(2, sparsity=3)
    path = contrast_path(estimator, X, background=Y, gammas=6)
    for gamma in path.gammas[:-1]:
        fit = clone(estimator).set_params(gamma=gamma).fit(X, background=Y)
        for found in (path.components(gamma), path.model(gamma).components_):
            np.testing.assert_array_equal(found != 0, fit.components_ != 0)
            np.testing.assert_allclose(found, fit.components_, atol=1e-10)


@pytest.mark.parametrize("estimator", [PCPCA, CPCA])
@pytest.mark.parametrize("scale", [None, "group"])
@pytest.mark.parametrize("solver", ["eigh", "lanczos", "dual"])
def test_equals_independent_fits(estimator, scale, solver):
    left, right = WIDE if solver == "dual" else (X, Y)
    path = contrast_path(estimator(2, scale=scale, solver=solver), left, background=right)
    assert np.all(np.diff(path.gammas) > 0)
    assert path.gammas[0] == 0
    limits = gamma_limits(left, background=right, n_components=2, scale=scale)
    assert path.gamma_max == pytest.approx(getattr(limits, estimator.__name__.lower()), rel=1e-9)
    assert not path.gamma_max_is_bound
    latents = path.latents(left)
    for g in range(0, len(path), 6):
        fit = estimator(2, gamma=path.gammas[g], scale=scale).fit(left, background=right)
        np.testing.assert_allclose(path.eigenvalues[g], fit.eigenvalues_, rtol=1e-8)
        np.testing.assert_allclose(path.explained_variance[g], fit.explained_variance_, rtol=1e-6)
        np.testing.assert_allclose(path.background_variance[g], fit.background_variance_, rtol=1e-6, atol=1e-9)
        gap = (fit.eigenvalues_[0] - fit.eigenvalues_[1]) / fit.eigenvalues_[0]
        np.testing.assert_allclose(path.components(path.gammas[g]), fit.components_, atol=1e-7 / max(gap, 1e-3))
        assert path.objective[g] == pytest.approx(fit.objective_, rel=1e-8)
        np.testing.assert_allclose(latents[g], fit.transform(left), atol=1e-6)
        if estimator is PCPCA:
            assert path.noise_variance[g] == pytest.approx(fit.noise_variance_, rel=1e-6)
        model = path.model(path.gammas[g])
        np.testing.assert_allclose(model.transform(left), fit.transform(left), atol=1e-8)
        assert model.gamma_max_ == path.gamma_max
        assert model.gamma_max_is_bound_ is False
    np.testing.assert_allclose(
        path.latents(right, center="background")[3],
        estimator(2, gamma=path.gammas[3], scale=scale)
        .fit(left, background=right)
        .transform(right, center="background"),
        atol=1e-6,
    )


def test_clustered_spectra_and_crossings():
    """Eigenvalues that meet and cross along the path: projectors still agree, and nothing is missed."""
    rng = np.random.default_rng(0)
    left = rng.standard_normal((400, 30)) * np.repeat([3.0, 2.9, 1.0], [3, 3, 24])
    right = rng.standard_normal((300, 30)) * np.repeat([2.9, 1.0, 1.0], [3, 3, 24])
    groups = Groups.of(Moments.from_rows(left), Moments.from_rows(right))
    gammas = np.linspace(0, 0.9, 60)
    found = solve_path(groups, gammas, 3)
    assert found.solved.sum() < 60
    assert found.residuals.max() <= 1e-9
    for g, gamma in enumerate(gammas):
        values, U = np.linalg.eigh(oracles.contrast_matrix(left, right, gamma) / 400)
        np.testing.assert_allclose(found.values[g], values[:-4:-1], rtol=1e-8)
        gap = (values[-3] - values[-4]) / values[-1]
        vectors = found.basis @ found.coordinates[g]
        np.testing.assert_allclose(vectors @ vectors.T, U[:, -3:] @ U[:, -3:].T, atol=1e-8 / gap)


def test_few_gammas_and_many_components():
    for gammas in ([0.2], [0.0, 0.3], [0.1, 0.2, 0.3]):
        path = contrast_path(PCPCA(2), X, background=Y, gammas=gammas)
        np.testing.assert_array_equal(path.gammas, gammas)
    path = contrast_path(PCPCA(11), X, background=Y, gammas=[0.0, 0.05, 0.1])
    np.testing.assert_allclose(path.eigenvalues[2], PCPCA(11, gamma=0.1).fit(X, background=Y).eigenvalues_, rtol=1e-8)


def test_numbers_along_the_path():
    path = contrast_path(PCPCA(2), X, background=Y)
    previous, first = path.angles()
    assert previous.shape == first.shape == (40, 2)
    np.testing.assert_allclose(previous[0], 0, atol=1e-6)
    assert first[-1, 0] > 0.2
    U, V = (path.components(path.gammas[g]) for g in (0, 39))
    np.testing.assert_allclose(np.cos(first[-1]), np.linalg.svd(U @ V.T, compute_uv=False)[::-1], atol=1e-7)
    table = path.table()
    np.testing.assert_array_equal(table["gamma"], path.gammas)
    assert np.all(np.diff(table["background_share"]) <= 1e-12)  # a stronger contrast holds less of the background
    affinity = path.affinity()
    np.testing.assert_allclose(np.diag(affinity), 1)
    assert affinity[0, -1] == pytest.approx(np.sum((U @ V.T) ** 2) / 2)


def test_table():
    table = contrast_path(PCPCA(2), X, background=Y).table()
    assert list(table)[:5] == ["gamma", "noise_variance", "objective", "eigenvalue_1", "eigenvalue_2"]
    assert table.n_rows == 40


def test_representatives():
    path = contrast_path(PCPCA(2), X, background=Y)
    chosen = path.representatives(3)
    assert chosen.size == 3
    assert chosen[0] == 0
    assert set(chosen) <= set(path.gammas)
    assert path.representatives(1).tolist() == [0]
    flat = contrast_path(
        PCPCA(2), X, background=np.eye(12)[np.r_[0:12, 0:12]] * np.r_[[1.0] * 12, [-1.0] * 12][:, None]
    )
    assert flat.representatives(4).size == 1  # an isotropic background turns nothing


def test_mouse_representatives(mouse):
    """One near 0, one within 10 % of the limit."""
    path = contrast_path(PCPCA(2), mouse[0], background=mouse[1])
    chosen = path.representatives(4)
    assert chosen[0] < 0.05 * path.gamma_max
    assert chosen[-1] > 0.9 * path.gamma_max


def test_aligned_latents_move_little():
    path = contrast_path(PCPCA(2), X, background=Y)
    plain, aligned = path.latents(X), path.aligned(X)
    for g in range(1, len(path)):
        steps = [np.linalg.norm(Z[g] - Z[g - 1]) for Z in (aligned, plain)]
        assert steps[0] <= 1.5 * steps[1] + 1e-9
        np.testing.assert_allclose(
            np.linalg.svd(aligned[g], compute_uv=False), np.linalg.svd(plain[g], compute_uv=False), rtol=1e-6
        )


@pytest.mark.parametrize("estimator", [PCPCA(1), ContraPCA(1), CPCA(1)])
@pytest.mark.parametrize("scale", [None, "group", "pooled"])
def test_files(estimator, scale, tmp_path):
    path = contrast_path(clone(estimator).set_params(scale=scale), WIDE[0], background=WIDE[1])
    path.save(tmp_path / "path.npz")
    twin = load(tmp_path / "path.npz")
    assert isinstance(twin, ContrastPath)
    assert (twin.gamma_max, twin.gamma_max_is_bound) == (path.gamma_max, False)
    np.testing.assert_equal(twin.auto_gamma, path.auto_gamma)
    assert type(twin.estimator) is type(estimator)
    assert twin.estimator.get_params() == path.estimator.get_params()
    assert (twin.solver, twin.solved) == (path.solver, path.solved)
    assert twin.totals == path.totals
    assert repr(twin) == repr(path)
    np.testing.assert_array_equal(twin.latents(WIDE[0]), path.latents(WIDE[0]))
    np.testing.assert_array_equal(twin.background_variance, path.background_variance)
    assert str(twin.table()) == str(path.table())


@pytest.mark.parametrize("kind", [PCPCA, CPCA])
def test_models_of_a_loaded_path(kind, tmp_path):
    """They need no rows: the same as those of the path itself, at its own gammas only."""
    path = contrast_path(kind(2, scale="group"), X, background=Y)
    path.save(tmp_path / "path.npz")
    twin = load(tmp_path / "path.npz")
    for gamma in path.gammas[[0, 7, -1]]:
        left, right = path.model(gamma), twin.model(gamma)
        assert type(left) is type(right) is kind
        assert left.get_params() == right.get_params()
        assert (left.gamma_, left.gamma_max_) == (right.gamma_, right.gamma_max_) == (gamma, path.gamma_max)
        for name in ("transform", "score_samples", "contrast_score"):
            if hasattr(left, name):
                np.testing.assert_array_equal(getattr(left, name)(X), getattr(right, name)(X))
        assert left.objective_ == right.objective_
        assert left.reconstruction_error_ == right.reconstruction_error_
    for other in (0.123, path.gamma_max, 2 * path.gamma_max):
        for found in (path, twin):
            with pytest.raises(ValueError, match=r"not one of this path's gammas; the nearest is .*gammas="):
                found.model(other)


# name: facts, arrays, what the message says
DAMAGED = {
    "gammas too short": ({}, {"gammas": np.arange(3.0)}, "does not fit the others"),
    "gammas decreasing": ({}, {"gammas": np.arange(40.0)[::-1]}, "its gammas .*impossible"),
    "gammas in a table": ({}, {"gammas": np.arange(40.0)[None]}, "gammas is not a 1-dimensional array"),
    "noise variance": ({}, {"noise_variance": -np.ones(40)}, "noise_variance is not positive"),
    "no noise variance": ({}, {"noise_variance": ...}, "'noise_variance' is missing"),
    "NaN": ({}, {"basis": np.full((60, 2), np.nan)}, "basis is not finite"),
    "scale": ({}, {"scaling.foreground.scale": np.zeros(60)}, "scale is not positive"),
    "scaling of other features": (
        {},
        {f"scaling.foreground.{name}": np.ones(3) for name in ("mean", "variance", "scale")},
        "its sizes are impossible",
    ),
    "background's noise": ({"background_model.sigma2": -1.0}, {}, "sigma2 is not positive"),
    "unknown method": ({"estimator.name": "PCA"}, {}, "this version knows no 'PCA'"),
    "without a path": ({"estimator": {"name": "PPCA", "parameters": {}}}, {}, "estimator is impossible"),
    "no groups": ({"scaling": 3}, {}, "scaling is impossible"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files(name, tmp_path):
    path = tmp_path / "path.npz"
    contrast_path(PCPCA(1), WIDE[0], background=WIDE[1]).save(path)
    rewrite(path)
    assert len(load(path)) == 40  # the control
    facts, arrays, message = DAMAGED[name]
    rewrite(path, facts, arrays)
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_missing_values():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    path = contrast_path(PCPCA(2), holes, background=Y, gammas=[0.0, 0.2, 0.4])
    fit = PCPCA(2, gamma=0.2).fit(holes, background=Y)
    assert path.objective[1] == pytest.approx(fit.objective_, rel=1e-6)
    np.testing.assert_allclose(path.model(0.2).transform(holes), fit.transform(holes), atol=1e-4)
    np.testing.assert_allclose(path.latents(X)[1], fit.transform(X), atol=1e-4)
    np.testing.assert_allclose(path.latents(holes)[1], fit.transform(holes), atol=1e-4)
    assert len(contrast_path(PCPCA(2), holes, background=Y)) == 20
    with pytest.raises(ValueError, match="not one of this path's"):
        path.model(0.3)
    with pytest.raises(NonFiniteError):
        contrast_path(SparseCPCA(2), holes, background=Y)


def test_sparse_rows():
    left, right = sp.csr_array(np.maximum(X, 1) - 1), sp.csr_array(np.maximum(Y, 1) - 1)
    path = contrast_path(PCPCA(2, solver="lanczos"), left, background=right)
    dense = contrast_path(PCPCA(2), left.toarray(), background=right.toarray())
    np.testing.assert_allclose(path.eigenvalues, dense.eigenvalues, rtol=1e-6)
    np.testing.assert_allclose(path.latents(left)[5], dense.latents(left.toarray())[5], atol=1e-6)


def test_names_are_kept(need):
    pd = need("pandas")
    names = [f"g{j}" for j in range(12)]
    left, right = pd.DataFrame(X, columns=names), pd.DataFrame(Y, columns=names)
    path = contrast_path(PCPCA(2), left, background=right)
    assert path.feature_names == names
    assert path.scaling.foreground.names == tuple(names)
    assert list(path.model(path.gammas[9]).feature_names_in_) == names


def test_refused():
    limit = gamma_limits(X, background=Y).pcpca
    with pytest.raises(InfeasibleGammaError, match=f"{limit:.4f}"):
        contrast_path(PCPCA(2), X, background=Y, gammas=[0.1, 1.01 * limit])
    with pytest.raises(ValueError, match="all finite and 0 or more"):
        contrast_path(PCPCA(2), X, background=Y, gammas=[-1])
    for other in (PPCA(2), "pcpca", X):
        with pytest.raises(TypeError, match=r"contrast_path takes ContraPCA.*as its first argument"):
            contrast_path(other, X, background=Y)
    with pytest.raises(RankError):
        contrast_path(PCPCA(2), X[:, :2] @ np.ones((2, 12)), background=Y)
    with pytest.raises(ValueError, match="5 features, but 12 were fitted"):
        contrast_path(PCPCA(2), X, background=Y).latents(X[:, :5])


def test_models_are_what_the_path_was_made_of():
    tables = X.astype(np.float32), Y.astype(np.float32)
    path = contrast_path(PCPCA(2, scale="group"), tables[0], background=tables[1], gammas=[0.0, 0.2])
    assert path.estimator.scale == "group"
    np.testing.assert_allclose(path.scaling.foreground.scale, X.std(axis=0), rtol=1e-6)  # the divisors
    np.testing.assert_allclose(path.scaling.background.scale, Y.std(axis=0), rtol=1e-6)
    model = path.model(0.2)
    assert model.scale == "group"
    assert model.components_.dtype == np.float32
    assert not hasattr(model, "feature_names_in_")
    refit = PCPCA(2, gamma=0.2, scale="group").fit(X, background=Y)
    np.testing.assert_allclose(model.components_, refit.components_, atol=1e-5)
    np.testing.assert_allclose(model.contrast_score(X), refit.contrast_score(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bad", [-1.0, np.nan])
def test_models_at_impossible_gammas(bad):
    with pytest.raises(ValueError, match="gamma="):
        contrast_path(PCPCA(2), X, background=Y).model(bad)


def test_groups_of_numbers():
    """Variances, totals and units are Groups; the shares come from them."""
    path = contrast_path(PCPCA(2), X, background=Y)
    for found in (path.variances, path.totals, path.scaling, path.shares()):
        assert isinstance(found, Groups)
        assert found.names == ("foreground", "background")
    for table, along, total, scaling in zip((X, Y), path.variances, path.totals, path.scaling, strict=True):
        assert total == pytest.approx(table.var(axis=0).sum(), rel=1e-10)
        np.testing.assert_allclose(along[9], np.var(table @ path.components(path.gammas[9]).T, axis=0), rtol=1e-8)
        np.testing.assert_allclose(scaling.mean, table.mean(axis=0), atol=1e-12)
        np.testing.assert_array_equal(scaling.scale, 1)
        assert scaling.weight == len(table)
    np.testing.assert_array_equal(path.shares().foreground, path.explained_variance / path.totals.foreground)
    np.testing.assert_array_equal(path.table()["background_share"], path.shares().background.sum(axis=1))


def test_names_and_identity():
    path = contrast_path(PCPCA(2), X, background=Y)
    assert "40 gammas" in repr(path)
    assert path != contrast_path(PCPCA(2), X, background=Y)


@pytest.mark.parametrize("solver", ["eigh", "lanczos", "dual"])
def test_rows_that_change_later_change_nothing(solver):
    """A path keeps no rows: its models are the same after the tables were changed in place."""
    left, right = (table.copy() for table in (WIDE if solver == "dual" else (X, Y)))
    new = left.copy()
    path = contrast_path(PCPCA(2, solver=solver), left, background=right)
    before = path.model(path.gammas[20]), path.latents(new)
    left[:, 3] *= 2
    right[:] = right[::-1].copy() + 1
    after = path.model(path.gammas[20]), path.latents(new)
    for name in ("transform", "score_samples", "contrast_score"):
        np.testing.assert_array_equal(getattr(after[0], name)(new), getattr(before[0], name)(new))
    np.testing.assert_array_equal(after[1], before[1])


@pytest.mark.parametrize("solver", ["eigh", "lanczos"])
def test_a_path_is_as_large_for_ten_times_the_rows(solver):
    sizes = [
        len(pickle.dumps(contrast_path(PCPCA(2, solver=solver), left, background=right)))
        for left, right in (make_groups(n, n, 12) for n in (100, 1000))
    ]
    assert sizes[1] < 1.2 * sizes[0]  # the basis may have a few more columns


def test_columns_in_another_order(need):
    pd = need("pandas")
    names = [f"g{j}" for j in range(12)]
    left, right = pd.DataFrame(X, columns=names), pd.DataFrame(Y, columns=names)
    path = contrast_path(PCPCA(2), left, background=right)
    with pytest.raises(ValueError, match="in the same order"):
        path.latents(left[names[::-1]])
    model = path.model(path.gammas[9])
    with pytest.raises(ValueError, match="order"):
        bootstrap(model, left[names[::-1]], background=right[names[::-1]], n_resamples=3)
    draws = bootstrap(model, left, background=right, n_resamples=3, random_state=0)
    with pytest.raises(ValueError, match="in the same order"):
        draws.latent_posterior(left[names[::-1]])
    numbered = contrast_path(PCPCA(2), pd.DataFrame(X), background=pd.DataFrame(Y))
    assert not hasattr(numbered.model(numbered.gammas[9]), "feature_names_in_")


@pytest.mark.parametrize("shift", [0.0, -50.0], ids=["some positive", "all negative"])
def test_a_factor_tells_whether_an_eigenvalue_was_missed(shift):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    values = np.sort(rng.uniform(1, 40, 30))[::-1] + shift
    values[4] = values[3] - 1e-11  # a tie of the fourth and the fifth
    C = contrast(Groups.of(Moments(10.0, np.zeros(30), DenseScatter(10 * (Q * values) @ Q.T))), 0.0)
    for d in (1, 3, 4, 8):
        assert has_no_more(C, values[:d], Q[:, :d], 1e-9)
        missed = [k for k in range(d + 1) if k != max(d - 2, 0)]  # one of the first was not found
        assert not has_no_more(C, values[missed], Q[:, missed], 1e-9)
    assert has_no_more(C, values[[0, 1, 2, 4]], Q[:, [0, 1, 2, 4]], 1e-9)  # either of the tie will do
    assert not has_no_more(C, values[[0, 1, 2, 4]], Q[:, [0, 1, 2, 4]], 1e-13)
