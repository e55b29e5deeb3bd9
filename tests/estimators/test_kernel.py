"""KernelCPCA: equal to CPCA of explicit features and to the whole kernel matrix; landmarks, precomputed kernels."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import contrapca
import oracles
from conftest import make_groups
from contrapca import CPCA, KernelCPCA, Moments, contrast_path, gamma_limits, held_out_contrast, subgroup_ratios
from contrapca.exceptions import GroupError, InfeasibleGammaError, NonFiniteError, RankError
from contrapca.fitting import _kernel as fitting
from contrapca.moments import choose_landmarks, median_bandwidth

X, Y = make_groups(40, 35, 6)
NEW = make_groups(15, 9, 6, seed=5)[0]
SHAPES = {"tall": (60, 50, 8), "wide": (20, 25, 100)}


def rings(n, m, D, seed, share=0.25, nuisance=1.0):
    """Cases near the centre or on a ring, controls without them but of the same covariance; (X, Y, on the ring)."""
    rng = np.random.default_rng(seed)
    inside = np.linalg.qr(rng.standard_normal((D, D)))[0]
    X, Y = rng.standard_normal((n, D)), rng.standard_normal((m, D))
    ring, angle = rng.random(n) < share, rng.uniform(0, 2 * np.pi, n)
    radius = np.where(ring, 4.0, 0.0)[:, None]
    X[:, :2] = radius * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.3 * rng.standard_normal((n, 2))
    Y[:, :2] *= X[:, :2].std()
    for table in (X, Y):
        table[:, 2:] *= nuisance
    return X @ inside, Y @ inside, ring


def same_up_to_sign(left, right, tolerance=1e-8):
    scale = np.abs(right).max()
    signs = np.sign(np.sum(left * right, axis=0))
    np.testing.assert_allclose(left * signs, right, atol=tolerance * scale)


# ---------------------------------------------------------------------- what it equals


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [None, "group", "pooled"])
@pytest.mark.parametrize("n_landmarks", [None, 1000])
def test_a_linear_kernel_is_cpca(shape, scale, n_landmarks):
    X, Y = make_groups(*SHAPES[shape])
    new = make_groups(*SHAPES[shape], seed=1)[0]
    linear = CPCA(3, gamma=0.7, scale=scale).fit(X, background=Y)
    model = KernelCPCA(3, kernel="linear", gamma=0.7, scale=scale, n_landmarks=n_landmarks).fit(X, background=Y)
    np.testing.assert_allclose(model.eigenvalues_, linear.eigenvalues_, rtol=1e-8)
    for rows, center in ((X, "foreground"), (new, "foreground"), (Y, "background")):
        same_up_to_sign(model.transform(rows, center=center), linear.transform(rows, center=center))
    for name in ("explained_variance_", "background_variance_"):
        np.testing.assert_allclose(getattr(model, name), getattr(linear, name), rtol=1e-8)
    for name in ("explained_variance_ratio_", "background_variance_ratio_"):
        np.testing.assert_allclose(getattr(model, name), getattr(linear, name), rtol=1e-8)
    assert np.abs(model.transform(X)).argmax(axis=0).tolist() == model.transform(X).argmax(axis=0).tolist()


def test_gamma_auto():
    """1.5; half the limit where there is no solution at 1.5, so that there is always one."""
    assert KernelCPCA(2).fit(X, background=Y).gamma_ == 1.5
    alike = np.random.default_rng(0).standard_normal((2, 200, 3))
    limit = gamma_limits(alike[0], background=alike[1], n_components=2).cpca
    assert limit < 1.5
    model = KernelCPCA(2, kernel="linear").fit(alike[0], background=alike[1])
    assert model.gamma_ == pytest.approx(limit / 2, rel=1e-6)
    with pytest.raises(InfeasibleGammaError):
        KernelCPCA(2, kernel="linear", gamma=1.5).fit(alike[0], background=alike[1])


def test_several_backgrounds_and_weights_are_those_of_cpca():
    rng = np.random.default_rng(0)
    weights, own = rng.integers(0, 3, len(X)), rng.integers(1, 3, len(Y))
    several = {"a": Y[:20], "b": Y[20:]}
    gamma = {"a": 0.5, "b": 0.2}
    given = {"background": several, "sample_weight": weights, "background_weight": {"a": own[:20], "b": own[20:]}}
    linear = CPCA(2, gamma=gamma).fit(X, **given)
    model = KernelCPCA(2, kernel="linear", gamma=gamma).fit(X, **given)
    np.testing.assert_allclose(model.eigenvalues_, linear.eigenvalues_, rtol=1e-8)
    assert model.gammas_ == pytest.approx(linear.gammas_)
    same_up_to_sign(model.transform(NEW, center="b"), linear.transform(NEW, center="b"))


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_weights_are_repeated_rows(kernel):
    weights, own = np.arange(len(X)) % 3, 1 + np.arange(len(Y)) % 2
    model = KernelCPCA(2, kernel=kernel, gamma=0.5)
    weighted = clone(model).fit(X, background=Y, sample_weight=weights, background_weight=own)
    repeated = clone(model).fit(oracles.repeated(X, weights), background=oracles.repeated(Y, own))
    assert weighted.bandwidth_ == pytest.approx(repeated.bandwidth_, rel=1e-12)
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-8)
    same_up_to_sign(weighted.transform(NEW), repeated.transform(NEW), 1e-7)


def test_a_polynomial_kernel_is_cpca_of_all_products():
    """(x'z / h^2 + c)^2 is the inner product of explicit features."""
    bandwidth, constant = 2.5, 0.8
    model = KernelCPCA(3, kernel="poly", degree=2, coef0=constant, bandwidth=bandwidth, gamma=0.6)
    model.fit(X, background=Y)
    origin = (X.mean(axis=0) + Y.mean(axis=0)) / 2
    mapped = [oracles.quadratic_features((rows - origin) / bandwidth, constant) for rows in (X, Y, NEW)]
    linear = CPCA(3, gamma=0.6).fit(mapped[0], background=mapped[1])
    np.testing.assert_allclose(model.eigenvalues_, linear.eigenvalues_, rtol=1e-8)
    same_up_to_sign(model.transform(NEW), linear.transform(mapped[2]))
    same_up_to_sign(model.transform(Y, center="background"), linear.transform(mapped[1], center="background"))
    assert model.n_landmarks_ == mapped[0].shape[1]  # 28 features, of 75 rows


@pytest.mark.parametrize("gamma", [0.3, 1.5])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_against_the_whole_kernel_matrix(kernel, gamma):
    model = KernelCPCA(2, kernel=kernel, bandwidth=3.0, gamma=gamma).fit(X, background=Y)
    rows = np.vstack([X, Y]) - (X.mean(axis=0) + Y.mean(axis=0)) / 2
    K = rbf_kernel(rows, gamma=1 / 18) if kernel == "rbf" else polynomial_kernel(rows, degree=2, gamma=1 / 9, coef0=1)
    values, latents = oracles.kernel_cpca(K, len(X), gamma, 2)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    same_up_to_sign(model.transform(X), latents[: len(X)], 1e-7)
    same_up_to_sign(model.transform(Y, center="background"), latents[len(X) :], 1e-7)


def test_no_contrast_is_kernel_pca():
    model = KernelCPCA(3, gamma=0, bandwidth=3.0).fit(X)
    reference = KernelPCA(3, kernel="rbf", gamma=1 / 18).fit(X)
    np.testing.assert_allclose(model.explained_variance_, reference.eigenvalues_ / len(X), rtol=1e-8)
    same_up_to_sign(model.transform(NEW), reference.transform(NEW))
    assert model.gammas_ == {}


# ---------------------------------------------------------------------- units


def test_units_and_origin_do_not_matter():
    """With its own bandwidth a kernel is the same in other units, and far from the origin."""
    for kernel in ("rbf", "poly"):
        model = KernelCPCA(2, kernel=kernel, gamma=0.5)
        here = clone(model).fit(X, background=Y)
        there = clone(model).fit(1e5 + 7 * X, background=1e5 + 7 * Y)
        assert there.bandwidth_ == pytest.approx(7 * here.bandwidth_, rel=1e-8)
        same_up_to_sign(there.transform(1e5 + 7 * NEW), here.transform(NEW), 1e-6)


def test_outliers_change_little():
    """A case that is far away is one row of many, and costs the others no digits."""
    far = np.vstack([X, np.full((1, 6), 1e8)])
    model, other = (KernelCPCA(3, gamma=0.5).fit(rows, background=Y) for rows in (far, X))
    assert model.bandwidth_ == pytest.approx(other.bandwidth_, rel=0.05)
    new = model.transform(NEW)
    assert max(abs(np.corrcoef(new[:, k], other.transform(NEW)[:, 0])[0, 1]) for k in range(3)) > 0.99


def test_features_of_other_units_need_a_scale():
    factors = np.geomspace(1, 1e4, X.shape[1])
    model = KernelCPCA(2, gamma=0.5, scale="pooled")
    here, there = (clone(model).fit(X * f, background=Y * f) for f in (1.0, factors))
    same_up_to_sign(there.transform(NEW * factors), here.transform(NEW), 1e-7)
    plain = KernelCPCA(2, gamma=0.5).fit(X * factors, background=Y * factors).transform(NEW * factors)
    assert np.abs(np.corrcoef(plain[:, 0], here.transform(NEW)[:, 0])[0, 1]) < 0.9  # the control


def test_the_median_bandwidth():
    """The median distance of two rows of a group, divided by the root of 2; groups count alike, wherever they are."""
    left, right = np.array([[0.0], [1.0], [4.0]]), np.array([[0.0], [10.0]])  # 1, 9, 16; 100
    assert median_bandwidth([left, right + 1e3], [None, None]) == pytest.approx(np.sqrt((9 + 100) / 2 / 2))
    assert median_bandwidth([left], [np.array([1.0, 1.0, 5.0])]) == pytest.approx(np.sqrt(9 / 2))  # 1, 5 x 9, 5 x 16
    assert median_bandwidth([np.ones((3, 2))], [None]) == 1.0


# ---------------------------------------------------------------------- landmarks


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_all_rows_as_landmarks_are_exact(kernel):
    exact = KernelCPCA(2, kernel=kernel, gamma=0.5, n_landmarks=None).fit(X, background=Y)
    for size in (len(X) + len(Y), 10**6, "auto"):
        model = KernelCPCA(2, kernel=kernel, gamma=0.5, n_landmarks=size, random_state=3).fit(X, background=Y)
        np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-10)
        same_up_to_sign(model.transform(NEW), exact.transform(NEW), 1e-9)


def test_landmarks_are_a_search_in_a_subspace():
    """The best of fewer functions: never a larger contrast, nearly the same from a third of the rows, reproducible."""
    X, Y, _ = rings(150, 150, 4, seed=0)
    make = lambda size, seed=0: KernelCPCA(2, gamma=1.0, bandwidth=2.0, n_landmarks=size, random_state=seed)  # noqa: E731
    exact = make(None).fit(X, background=Y).eigenvalues_
    found = {size: make(size).fit(X, background=Y) for size in (4, 30, 100)}
    for model in found.values():
        assert np.all(model.eigenvalues_ <= exact * (1 + 1e-10))
    assert found[100].eigenvalues_[0] > 0.98 * exact[0] > found[4].eigenvalues_[0]
    assert found[30].n_landmarks_ == 30
    again, other = make(30).fit(X, background=Y), make(30, seed=1).fit(X, background=Y)
    np.testing.assert_array_equal(again.dual_coef_, found[30].dual_coef_)
    assert not np.array_equal(other.eigenvalues_, again.eigenvalues_)


def test_auto_takes_landmarks_of_many_rows(monkeypatch):
    """A thousand, and all of fewer rows; here fifty."""
    assert fitting.LANDMARKS == 1000
    monkeypatch.setattr(fitting, "LANDMARKS", 50)
    many, given, exact = (KernelCPCA(1, n_landmarks=size).fit(X, background=Y) for size in ("auto", 50, None))
    np.testing.assert_array_equal(many.dual_coef_, given.dual_coef_)
    assert many.n_landmarks_ == 50 < exact.n_landmarks_
    few, all_of_few = (KernelCPCA(1, n_landmarks=size).fit(X, background=Y[:9]) for size in ("auto", None))
    np.testing.assert_array_equal(few.dual_coef_, all_of_few.dual_coef_)


def test_blocks_of_rows_do_not_matter(monkeypatch):
    """Coordinates of all rows are never there at once."""
    weights = 1 + np.arange(len(X)) % 3
    found = []
    for size in (fitting.BLOCK_ROWS, 13):  # 40 rows are 3 blocks and one row
        monkeypatch.setattr(fitting, "BLOCK_ROWS", size)
        found.append(KernelCPCA(2, n_landmarks=30).fit(X, background=Y, sample_weight=weights))
    np.testing.assert_allclose(found[1].eigenvalues_, found[0].eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(found[1].transform(NEW), found[0].transform(NEW), atol=1e-9)


@pytest.mark.parametrize(
    ("counts", "size", "shares"),
    [
        ([10, 10], 6, [3, 3]),
        ([10, 2], 6, [4, 2]),
        ([3, 50, 9], 20, [3, 9, 8]),
        ([4, 5], None, [4, 5]),
        ([4, 5], 99, [4, 5]),
    ],
)
def test_every_group_has_its_part_of_the_landmarks(counts, size, shares):
    chosen = choose_landmarks(counts, size, np.random.default_rng(0))
    assert [part.size for part in chosen] == shares
    for part, count in zip(chosen, counts, strict=True):
        assert np.unique(part).size == part.size
        assert part.size == 0 or part.max() < count


# ---------------------------------------------------------------------- precomputed kernels


def stacked_kernel(others=None):
    rows = np.vstack([X, Y])
    return rbf_kernel(rows if others is None else others, rows, gamma=1 / 18)


REFERENCE = KernelCPCA(2, gamma=0.5, bandwidth=3.0)
GIVEN = KernelCPCA(2, kernel="precomputed", gamma=0.5)


def test_kernel_values_in_place_of_rows():
    K, reference = stacked_kernel(), clone(REFERENCE).fit(X, background=Y)
    for table in (K, sp.csr_array(K)):
        model = clone(GIVEN).fit(table[: len(X)], background=table[len(X) :])
        np.testing.assert_allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-8)
        same_up_to_sign(model.transform(stacked_kernel(NEW)), reference.transform(NEW), 1e-7)
    some = clone(GIVEN).set_params(n_landmarks=30).fit(K[: len(X)], background=K[len(X) :])
    fewer = clone(REFERENCE).set_params(n_landmarks=30).fit(X, background=Y)
    same_up_to_sign(some.transform(stacked_kernel(NEW)), fewer.transform(NEW), 1e-7)
    single = clone(GIVEN).fit(K[: len(X)].astype(np.float32), background=K[len(X) :].astype(np.float32))
    same_up_to_sign(single.transform(stacked_kernel(NEW)), reference.transform(NEW), 1e-2)
    assert held_out_contrast(GIVEN, K[: len(X)], background=K[len(X) :]).mean == pytest.approx(
        held_out_contrast(REFERENCE, X, background=Y).mean, rel=1e-6
    )


def test_kernel_values_with_labels_in_any_order():
    """As in cross-validation, which takes rows and columns of a pairwise table together."""
    order = np.random.default_rng(0).permutation(len(X) + len(Y))
    labels = np.array(["case"] * len(X) + ["control"] * len(Y))[order]
    K = stacked_kernel()[np.ix_(order, order)]
    weights = np.ones(len(order))
    weights[::7] = 0
    model = clone(GIVEN).set_params(background_label="control")
    assert model.__sklearn_tags__().input_tags.pairwise
    assert not REFERENCE.__sklearn_tags__().input_tags.pairwise
    rows = np.vstack([X, Y])[order]
    for given in ({}, {"sample_weight": weights}):
        found = clone(model).fit(K, labels, **given)
        reference = clone(REFERENCE).set_params(background_label="control").fit(rows, labels, **given)
        same_up_to_sign(found.transform(K), reference.transform(rows), 1e-7)


def test_impossible_kernels():
    K, n = stacked_kernel(), len(X)

    def refused(K, match, error=ValueError, model=GIVEN):
        with pytest.raises(error, match=match):
            clone(model).fit(K[:n], background=K[n:])

    refused(K[:, :-1], r"75 rows \(40 \+ 35\) and 74 columns", GroupError)
    with pytest.raises(GroupError, match=r"75 rows .* pass fit\(K\[:n\], background=K\[n:\]\)"):
        clone(GIVEN).fit(X @ X.T, background=Y @ X.T)
    distances = np.sqrt(np.maximum(2 - 2 * K, 0)) * (1 - np.eye(len(K)))
    refused(distances, "looks like a matrix of distances")
    refused(K + 1e-3 * np.triu(np.ones_like(K)), r"not symmetric: row 7 has .* pass \(K \+ K.T\) / 2")
    moved = K[:, np.r_[1 : len(K), 0]]
    refused(moved, "not symmetric")
    missing = K.copy()
    missing[3, 5] = np.nan
    refused(missing, "column 5, counting from 0: compute it from complete rows")
    for indefinite in (K - 0.1 * np.eye(len(K)), np.tanh(stacked_kernel() * 5 - 3), 2 * np.eye(len(K)) - K.max()):
        least = np.linalg.eigvalsh(indefinite)[0]
        assert least < -1e-3
        refused(indefinite, "not positive semidefinite")
        mended = indefinite - least * np.eye(len(K))  # what the message says
        assert clone(GIVEN).fit(mended[:n], background=mended[n:]).eigenvalues_.shape == (2,)
        few = clone(GIVEN).set_params(n_landmarks=40)
        refused(indefinite - np.eye(len(K)) * 0.2, "not positive semidefinite", model=few)
    refused(K, "scale='pooled' needs features", model=clone(GIVEN).set_params(scale="pooled"))
    rounded = np.round(K, 12)
    assert clone(GIVEN).fit(rounded[:n], background=rounded[n:]).n_landmarks_ <= len(K)
    model = clone(GIVEN).fit(K[:n], background=K[n:])
    with pytest.raises(ValueError, match="75 features"):
        model.transform(K[:, :-1])


# ---------------------------------------------------------------------- what it sees


def spread(n, m, D, seed):
    """Cases of small or large spread in four directions, controls of the same covariance; clusters that both have."""
    rng = np.random.default_rng(seed)
    wide, centres = rng.random(n) < 0.3, 4 * rng.standard_normal((3, 2))
    X, Y = (0.5 * rng.standard_normal((size, D)) for size in (n, m))
    X[:, :4] = np.where(wide, 2.5, 0.4)[:, None] * rng.standard_normal((n, 4))
    Y[:, :4] = X[:, :4].std() * rng.standard_normal((m, 4))
    X[:, 4:6] += centres[rng.choice(3, n, p=[0.4, 0.3, 0.3])]
    Y[:, 4:6] += centres[rng.choice(3, m, p=[0.3, 0.3, 0.4])]
    return X, Y, wide


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("make", [rings, spread])
def test_what_no_direction_shows(make, seed):
    """On unseen cases; of equal covariance, so that linear methods have nothing to see: they are the control.

    Nothing was chosen on `spread`.
    """
    X, Y, label = make(250, 150, 4 if make is rings else 8, seed)
    fitted = (model.fit(X[:150], background=Y) for model in (KernelCPCA(2), CPCA(2)))
    kernel, linear = (explained(model.transform(X[150:]), label[150:]) for model in fitted)
    assert kernel > 0.4
    assert linear < 0.1


def explained(latents, label):
    """R^2 of a label by all latents."""
    latents = np.column_stack([latents, np.ones(len(latents))])
    return 1 - np.linalg.lstsq(latents, label.astype(float), rcond=None)[1][0] / np.sum((label - label.mean()) ** 2)


def test_held_out_contrast():
    """That of CPCA with a linear kernel; none in noise, and some in rings, where CPCA has none."""
    X, Y = make_groups(60, 50, 8)
    blocks = {"blocks": np.arange(60) // 3, "background_blocks": 100 + np.arange(50) // 5}
    linear, model = CPCA(2, gamma=0.7), KernelCPCA(2, kernel="linear", gamma=0.7)
    for given in ({}, blocks):
        left, right = (held_out_contrast(one, X, background=Y, **given) for one in (linear, model))
        np.testing.assert_allclose(left.log_ratios, right.log_ratios, rtol=1e-6)
        assert left.mean_error == pytest.approx(right.mean_error, rel=1e-6)
    X, Y, _ = rings(200, 200, 3, seed=1)
    found = {type(one): held_out_contrast(one, X, background=Y) for one in (CPCA(1, gamma=1), KernelCPCA(1, gamma=2))}
    assert found[KernelCPCA].mean > 4 * found[KernelCPCA].mean_error
    assert found[CPCA].mean < 3 * found[CPCA].mean_error
    same = np.random.default_rng(0).standard_normal((2, 100, 3))
    nothing = held_out_contrast(KernelCPCA(1, gamma=2), same[0], background=same[1])
    assert abs(nothing.mean) < 3 * nothing.mean_error


def test_subgroup_ratios_are_those_of_cpca():
    models = (CPCA(2, gamma=0.7), KernelCPCA(2, kernel="linear", gamma=0.7))
    tables = [subgroup_ratios(model.fit(X, background=Y), X, np.arange(len(X)) % 3) for model in models]
    for name in ("ratio_1", "ratio_2"):
        np.testing.assert_allclose(tables[1][name], tables[0][name], rtol=1e-8)
    np.testing.assert_allclose(np.abs(tables[1]["shift_1"]), np.abs(tables[0]["shift_1"]), rtol=1e-6)


# ---------------------------------------------------------------------- the interface


def test_files_and_copies(tmp_path):
    K = stacked_kernel()
    models = [
        clone(REFERENCE).fit(X, background=Y),
        KernelCPCA(2, kernel="poly", scale="group").fit(X.astype(np.float32), background={"a": Y[:20], "b": Y[20:]}),
        KernelCPCA(1, gamma=0).fit(X),
        clone(GIVEN).fit(K[: len(X)], background=K[len(X) :]),
    ]
    for model in models:
        rows = stacked_kernel(NEW) if model.kernel == "precomputed" else NEW
        model.save(tmp_path / "model.npz")
        for again in (contrapca.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
            assert vars(again).keys() == vars(model).keys()
            assert again.get_params() == model.get_params()
            np.testing.assert_array_equal(again.transform(rows), model.transform(rows))
            assert str(again.summary()) == str(model.summary())
            assert again.eigenvalues_.dtype == model.eigenvalues_.dtype
    model = models[0].set_params(n_components=1)  # changes nothing that was fitted
    model.save(tmp_path / "model.npz")
    assert contrapca.load(tmp_path / "model.npz").transform(NEW).shape == (15, 2)


def test_frames_and_summary(need):
    pandas = need("pandas")
    names = list("abcdef")
    frames = [pandas.DataFrame(rows, columns=names) for rows in (X, Y, NEW)]
    model = KernelCPCA(2, gamma=0.5).set_output(transform="pandas").fit(frames[0], background=frames[1])
    assert list(model.transform(frames[2])) == list(model.get_feature_names_out()) == ["kernelcpca0", "kernelcpca1"]
    assert list(model.feature_names_in_) == names
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frames[2][names[::-1]])
    text = str(model.summary())
    assert f"kernel 'rbf' of bandwidth {model.bandwidth_:.4g}, 75 landmarks, gamma = 0.5000" in text
    assert "case variance" in text


def test_other_tables():
    """Sparse rows and float32 give the same; pipelines with labels work."""
    sparse = [sp.csr_array(np.where(rows > 0, rows, 0)) for rows in (X, Y, NEW)]
    dense = [rows.toarray() for rows in sparse]
    found = [REFERENCE.fit(a, background=b).transform(c) for a, b, c in (sparse, dense)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)
    single = KernelCPCA(2, gamma=0.5, bandwidth=3.0).fit(X.astype(np.float32), background=Y.astype(np.float32))
    assert single.transform(NEW.astype(np.float32)).dtype == single.eigenvalues_.dtype == np.float32
    same_up_to_sign(single.transform(NEW), clone(REFERENCE).fit(X, background=Y).transform(NEW), 1e-4)
    pipeline = make_pipeline(StandardScaler(), KernelCPCA(2, gamma=0.5, background_label=1))
    rows, labels = np.vstack([X, Y]), [0] * len(X) + [1] * len(Y)
    assert pipeline.fit_transform(rows, labels).shape == (75, 2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rfb"}, "Did you mean 'rbf'"),
        ({"kernel": "sigmoid"}, "Choose one of 'rbf', 'poly', 'linear', 'precomputed'"),
        ({"bandwidth": 0}, "bandwidth=0 must be a finite number above 0"),
        ({"bandwidth": "median"}, "bandwidth='median' must be"),
        ({"degree": 0}, "degree=0 must be a whole number"),
        ({"coef0": -1.0}, "coef0=-1.0 must be a finite number, 0 or more"),
        ({"n_landmarks": 1}, "n_landmarks=1 must be a whole number, 2 or more"),
        ({"n_landmarks": "all"}, "n_landmarks='all' is not valid"),
        ({"n_components": 0}, "n_components=0 is not possible"),
        ({"gamma": -1}, "gamma=-1 must be"),
        ({"scale": "both"}, "scale='both' is not valid"),
        ({"kernel": "linear", "n_components": 6}, "varies in at most 6 directions .*, but n_components=6 needs more"),
        ({"n_landmarks": 2}, "varies in at most 2 directions"),
    ],
)
def test_bad_parameters(parameters, message):
    model = KernelCPCA(**{"gamma": 0.5, **parameters})
    with pytest.raises(ValueError, match=message):
        model.fit(X, background=Y)
    assert not hasattr(model, "eigenvalues_")
    assert not hasattr(model, "n_features_in_")


def test_bad_tables(tmp_path):
    model = KernelCPCA(2, gamma=0.5)
    missing = X.copy()
    missing[3, 2] = np.nan
    with pytest.raises(NonFiniteError, match="NaN"):
        model.fit(missing, background=Y)
    with pytest.raises(GroupError, match=r"contrasts two groups.*For a single group, use PPCA or gamma=0\.$"):
        model.fit(X)
    with pytest.raises(GroupError, match="6 features and the background 5"):
        model.fit(X, background=Y[:, :5])
    with pytest.raises(TypeError, match="needs rows"):
        model.fit(Moments.from_rows(X), background=Moments.from_rows(Y))
    with pytest.raises(RankError):
        model.fit(np.ones_like(X), background=Y)
    with pytest.raises(InfeasibleGammaError, match="limit"):
        KernelCPCA(2, kernel="linear", gamma=1e3).fit(X, background=Y)
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(TypeError, match="needs rows in memory"):
        model.fit(tmp_path / "rows.npy", background=Y)
    model.fit(X, background=Y)
    assert model.objective_ == pytest.approx(len(X) * model.eigenvalues_.sum())
    with pytest.raises(NonFiniteError, match="NaN"):
        model.transform(missing)
    with pytest.raises(TypeError, match="needs rows in memory"):
        model.transform(tmp_path / "rows.npy")
    with pytest.raises(ValueError, match="center='controls'"):
        model.transform(NEW, center="controls")
    with pytest.raises(GroupError, match="with regress_out first"):
        held_out_contrast(model, X, background=Y, covariates=X[:, :1], background_covariates=Y[:, :1])
    with pytest.raises(TypeError, match="contrast_path takes ContraPCA"):
        contrast_path(model, X, background=Y)
