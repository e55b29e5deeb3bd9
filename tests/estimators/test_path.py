"""Many gammas at once, against independent fits."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from conftest import make_groups
from contrapca import CPCA, PCPCA, ContrastPath, contrast_path, gamma_limits, load
from contrapca.exceptions import InfeasibleGammaError, ModelFileError, NonFiniteError, RankError, RowsChangedError
from contrapca.moments import Pair, accumulate
from contrapca.solvers import solve_path

X, Y = make_groups(150, 120, 12)
WIDE = make_groups(20, 15, 60, seed=1)


@pytest.mark.parametrize("method", ["pcpca", "cpca"])
@pytest.mark.parametrize("scale", [False, "group"])
@pytest.mark.parametrize("solver", ["eigh", "lanczos", "dual"])
def test_equals_independent_fits(method, scale, solver):
    left, right = WIDE if solver == "dual" else (X, Y)
    path = contrast_path(left, background=right, n_components=2, method=method, scale=scale, solver=solver)
    estimator = PCPCA if method == "pcpca" else CPCA
    assert np.all(np.diff(path.gammas) > 0)
    assert path.gammas[0] == 0
    plain = estimator(2, gamma=path.gammas[3], scale=scale).fit(left, background=right)
    assert path.limit == pytest.approx(plain.gamma_max_, rel=1e-9)
    latents = path.latents(left)
    for g in range(0, len(path), 6):
        fit = estimator(2, gamma=path.gammas[g], scale=scale).fit(left, background=right)
        np.testing.assert_allclose(path.eigenvalues[g], fit.eigenvalues_, rtol=1e-8)
        np.testing.assert_allclose(path.explained_variance[g], fit.explained_variance_, rtol=1e-6)
        np.testing.assert_allclose(path.background_variance[g], fit.background_variance_, rtol=1e-6, atol=1e-9)
        gap = (fit.eigenvalues_[0] - fit.eigenvalues_[1]) / fit.eigenvalues_[0]
        np.testing.assert_allclose(path.components(g), fit.components_, atol=1e-7 / max(gap, 1e-3))
        assert path.objective[g] == pytest.approx(fit.objective(), rel=1e-8)
        np.testing.assert_allclose(latents[g], fit.transform(left), atol=1e-6)
        if method == "pcpca":
            assert path.sigma2[g] == pytest.approx(fit.noise_variance_, rel=1e-6)
        model = path.model(path.gammas[g])
        np.testing.assert_allclose(model.transform(left), fit.transform(left), atol=1e-8)
        assert model.gamma_max_ == path.limit
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
    pair = Pair(accumulate(left), accumulate(right))
    gammas = np.linspace(0, 0.9, 60)
    found = solve_path(pair, gammas, 3)
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
        path = contrast_path(X, background=Y, gammas=gammas)
        np.testing.assert_array_equal(path.gammas, gammas)
    path = contrast_path(X, background=Y, n_components=11, gammas=[0.0, 0.05, 0.1])
    np.testing.assert_allclose(path.eigenvalues[2], PCPCA(11, gamma=0.1).fit(X, background=Y).eigenvalues_, rtol=1e-8)


def test_numbers_along_the_path():
    path = contrast_path(X, background=Y, n_components=2)
    previous, first = path.angles()
    assert previous.shape == first.shape == (40, 2)
    np.testing.assert_allclose(previous[0], 0, atol=1e-6)
    assert first[-1, 0] > 0.2
    U, V = path.components(0), path.components(39)
    np.testing.assert_allclose(np.cos(first[-1]), np.linalg.svd(U @ V.T, compute_uv=False)[::-1], atol=1e-7)
    table = path.table()
    np.testing.assert_array_equal(table["gamma"], path.gammas)
    assert np.all(np.diff(table["background_share"]) <= 1e-12)  # a stronger contrast holds less of the background
    affinity = path.affinity()
    np.testing.assert_allclose(np.diag(affinity), 1)
    assert affinity[0, -1] == pytest.approx(np.sum((U @ V.T) ** 2) / 2)


def test_to_frame(need):
    need("pandas")
    assert list(contrast_path(X, background=Y).to_frame().columns)[:3] == ["gamma", "sigma2", "objective"]


def test_representatives():
    path = contrast_path(X, background=Y)
    chosen = path.representatives(3)
    assert chosen.size == 3
    assert chosen[0] == 0
    assert set(chosen) <= set(path.gammas)
    assert path.representatives(1).tolist() == [0]
    flat = contrast_path(X, background=np.eye(12)[np.r_[0:12, 0:12]] * np.r_[[1.0] * 12, [-1.0] * 12][:, None])
    assert flat.representatives(4).size == 1  # an isotropic background turns nothing


def test_mouse_representatives(mouse):
    """One near 0, one within 10 % of the limit."""
    path = contrast_path(mouse[0], background=mouse[1])
    chosen = path.representatives(4)
    assert chosen[0] < 0.05 * path.limit
    assert chosen[-1] > 0.9 * path.limit


def test_aligned_latents_move_little():
    path = contrast_path(X, background=Y, n_components=2)
    plain, aligned = path.latents(X), path.aligned(X)
    for g in range(1, len(path)):
        steps = [np.linalg.norm(Z[g] - Z[g - 1]) for Z in (aligned, plain)]
        assert steps[0] <= 1.5 * steps[1] + 1e-9
        np.testing.assert_allclose(
            np.linalg.svd(aligned[g], compute_uv=False), np.linalg.svd(plain[g], compute_uv=False), rtol=1e-6
        )


def test_files(tmp_path):
    for method in ("pcpca", "cpca"):
        path = contrast_path(*WIDE[:1], background=WIDE[1], n_components=1, method=method)
        path.save(tmp_path / "path.npz")
        twin = load(tmp_path / "path.npz")
        assert isinstance(twin, ContrastPath)
        assert twin.limit == path.limit
        np.testing.assert_array_equal(twin.latents(WIDE[0]), path.latents(WIDE[0]))
        with pytest.raises(ValueError, match="loaded from a file"):
            twin.model(0.1)
    from contrapca.io import read_archive, write_archive

    header, arrays = read_archive(tmp_path / "path.npz")
    write_archive(tmp_path / "bad.npz", header, arrays | {"gammas": arrays["gammas"][:3]})
    with pytest.raises(ModelFileError, match="gammas is not an array"):
        load(tmp_path / "bad.npz")
    write_archive(tmp_path / "new.npz", header | {"version": 9}, arrays)
    with pytest.raises(ModelFileError, match="version 9"):
        load(tmp_path / "new.npz")


def test_missing_values():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    path = contrast_path(holes, background=Y, gammas=[0.0, 0.2, 0.4])
    fit = PCPCA(2, gamma=0.2).fit(holes, background=Y)
    assert path.objective[1] == pytest.approx(fit.objective(), rel=1e-6)
    np.testing.assert_allclose(path.model(0.2).transform(holes), fit.transform(holes), atol=1e-4)
    np.testing.assert_allclose(path.latents(X)[1], fit.transform(X), atol=1e-4)
    np.testing.assert_allclose(path.latents(holes)[1], fit.transform(holes), atol=1e-4)
    assert len(contrast_path(holes, background=Y)) == 20
    with pytest.raises(ValueError, match="not one of this path's"):
        path.model(0.3)
    with pytest.raises(NonFiniteError):
        contrast_path(holes, background=Y, method="cpca")


def test_sparse_rows():
    left, right = sp.csr_array(np.maximum(X, 1) - 1), sp.csr_array(np.maximum(Y, 1) - 1)
    path = contrast_path(left, background=right, solver="lanczos")
    dense = contrast_path(left.toarray(), background=right.toarray())
    np.testing.assert_allclose(path.eigenvalues, dense.eigenvalues, rtol=1e-6)
    np.testing.assert_allclose(path.latents(left)[5], dense.latents(left.toarray())[5], atol=1e-6)


def test_names_are_kept(need):
    pd = need("pandas")
    names = [f"g{j}" for j in range(12)]
    left, right = pd.DataFrame(X, columns=names), pd.DataFrame(Y, columns=names)
    path = contrast_path(left, background=right)
    assert path.feature_names == names
    assert list(path.model(0.2).feature_names_in_) == names


def test_refused():
    limit = gamma_limits(X, Y).pcpca
    with pytest.raises(InfeasibleGammaError, match=f"{limit:.4f}"):
        contrast_path(X, background=Y, gammas=[0.1, 1.01 * limit])
    with pytest.raises(ValueError, match="finite numbers"):
        contrast_path(X, background=Y, gammas=[-1])
    with pytest.raises(ValueError, match="method='pca'"):
        contrast_path(X, background=Y, method="pca")
    with pytest.raises(RankError):
        contrast_path(X[:, :2] @ np.ones((2, 12)), background=Y)
    with pytest.raises(ValueError, match="12 columns"):
        contrast_path(X, background=Y).latents(X[:, :5])


def test_models_are_what_the_path_was_made_of():
    path = contrast_path(X.astype(np.float32), background=Y.astype(np.float32), scale="group")
    model = path.model(0.2)
    assert model.scale == "group"
    assert model.components_.dtype == np.float32
    assert not hasattr(model, "feature_names_in_")
    refit = PCPCA(2, gamma=0.2, scale="group").fit(X, background=Y)
    np.testing.assert_allclose(model.components_, refit.components_, atol=1e-5)
    for bad in (-1.0, np.nan):
        with pytest.raises(ValueError, match="gamma="):
            path.model(bad)
    assert "40 gammas" in repr(path)
    assert path != contrast_path(X, background=Y)


def test_changed_rows_are_noticed():
    left = X.copy()
    path = contrast_path(left, background=Y, solver="lanczos")
    left[:, 3] *= 2
    with pytest.raises(RowsChangedError):
        path.model(0.2)


def test_columns_in_another_order(need):
    pd = need("pandas")
    names = [f"g{j}" for j in range(12)]
    left, right = pd.DataFrame(X, columns=names), pd.DataFrame(Y, columns=names)
    path = contrast_path(left, background=right)
    with pytest.raises(ValueError, match="in their order"):
        path.latents(left[names[::-1]])
    model = path.model(0.2)
    with pytest.raises(ValueError, match="order"):
        model.bootstrap(left[names[::-1]], background=right[names[::-1]], n=3, progress=False)
    draws = model.bootstrap(left, background=right, n=3, random_state=0, progress=False)
    with pytest.raises(ValueError, match="in their order"):
        draws.latent_posterior(left[names[::-1]])
    numbered = contrast_path(pd.DataFrame(X), background=pd.DataFrame(Y))
    assert not hasattr(numbered.model(0.2), "feature_names_in_")
