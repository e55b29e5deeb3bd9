"""What ContraPCA lets the data decide: units and axes by the noise (F41), and which rows are too long (F42)."""

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca import ContraPCA, Study, contrast_path, held_out_contrast, load
from contrapca.contrast._ratio import floor_share
from contrapca.data import study_of
from contrapca.moments._long_rows import shortened
from oracle_contrapca import kind_of_noise, ratio_axes, row_factors

D = 60


def tables(noise="plateau", n=400, m=380, seed=0, planted=3.0):
    """Cases, controls, and latents that only the cases have.

    With a plateau, in common units or not, three directions are shared and one is planted. Without one, variances fall
    all the way, and the third direction of the population varies `planted` times as widely in the cases.
    """
    rng = np.random.default_rng(seed)
    X, Y = (rng.normal(size=(rows, D)) for rows in (n, m))
    if noise == "none":
        X[:, 2] *= planted
        falling = np.linalg.qr(rng.normal(size=(D, D)))[0] * 10 / np.arange(1, D + 1)
        return X @ falling.T, Y @ falling.T, X[:, 2]
    L = np.linalg.qr(rng.normal(size=(D, 4)))[0]
    latents = rng.normal(size=(n, 4)) * [5, 5, 5, planted]
    scaling = np.geomspace(1, 1000, D)[rng.permutation(D)] if noise == "units" else np.ones(D)
    return (X + latents @ L.T) * scaling, (Y + rng.normal(size=(m, 3)) * 5 @ L[:, :3].T) * scaling, latents[:, 3]


def covariances(*groups):
    return [np.cov(rows.T, ddof=0) for rows in groups]


def agreement(model, X, truth):
    """Squared correlation of the first latents with the planted ones."""
    return np.corrcoef(model.transform(X)[:, 0], truth)[0, 1] ** 2


# ---------------------------------------------------------------------- the plateau


@pytest.mark.parametrize(
    ("noise", "scale", "axes", "says"),
    [
        ("plateau", None, "contrast", "The noise has a plateau ("),
        ("units", "pooled", "contrast", "The noise has a plateau once features are divided by"),
        ("none", "pooled", "ratio", "The noise has no plateau, as in most real tables: components maximise the ratio"),
    ],
)
def test_the_three_cases(noise, scale, axes, says):
    for seed in range(3):
        X, Y, _ = tables(noise, seed=seed)
        model = ContraPCA(1, shorten=False).fit(X, background=Y)
        assert kind_of_noise(*covariances(X, Y), len(X), len(Y)) == (scale, axes)
        assert (model.plateau_.scale, model.plateau_.axes) == (scale, axes)
        assert str(model.plateau_).startswith(says)
        assert says in str(model.summary())
        same = ContraPCA(1, shorten=False, scale=scale, axes=axes).fit(X, background=Y)
        np.testing.assert_allclose(model.components_, same.components_, atol=1e-9)
        assert same.plateau_ is None


def test_common_units_find_what_unequal_units_hide():
    found, missed = [], []
    for seed in range(6):
        X, Y, truth = tables("units", 200, 180, seed=seed, planted=1.5)
        found.append(agreement(ContraPCA(1).fit(X, background=Y), X, truth))
        missed.append(agreement(ContraPCA(1, scale=None).fit(X, background=Y), X, truth))
    assert np.mean(found) > 0.5 > 0.4 > np.mean(missed)  # the second is the control


def test_ratio_axes_find_what_contrast_axes_miss_without_a_plateau():
    found, missed = [], []
    for seed in range(5):
        X, Y, truth = tables("none", seed=seed, planted=2.0)
        found.append(1 - agreement(ContraPCA(1).fit(X, background=Y), X, truth))
        missed.append(1 - agreement(ContraPCA(1, scale=None).fit(X, background=Y), X, truth))
    assert np.mean(found) < 0.03
    assert np.mean(missed) > 2 * np.mean(found)  # the control


@pytest.mark.parametrize(("n", "m"), [(400, 380), (40, 30)])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_ratio_axes_are_those_of_the_whole_space(n, m, convert):
    X, Y, _ = tables("none", n, m)
    model = ContraPCA(2, axes="ratio", scale=None, shorten=False).fit(convert(X), background=convert(Y))
    theta, V = ratio_axes(*covariances(X, Y), 2)
    np.testing.assert_allclose(model.axis_ratios_, theta, rtol=1e-7)
    np.testing.assert_allclose(np.abs(np.sum(model.components_.T * V, axis=0)), 1, atol=1e-4)
    Z = (X - X.mean(axis=0)) @ V
    latents = model.transform(X)
    np.testing.assert_allclose(np.abs(np.corrcoef(Z.T, latents.T)[[0, 1], [2, 3]]), 1, atol=1e-4)
    np.testing.assert_allclose(model.transform(model.inverse_transform(latents)), latents, atol=1e-8)


def test_the_model_holds_the_ratio_axes_and_otherwise_the_most_variance():
    """No random subspace that holds the axes has a larger trace of C, and the model has the axes in its span."""
    X, Y, _ = tables("none")
    model = ContraPCA(2, axes="ratio", scale=None, n_latent=6, shorten=False).fit(X, background=Y)
    A, B = covariances(X, Y)
    C, V, W = A - model.gamma_ * B, model.components_.T, model.model_.W
    span = np.linalg.qr(W)[0]
    np.testing.assert_allclose(span @ (span.T @ V), V, atol=1e-8)
    best = np.trace(span.T @ C @ span)
    top = np.linalg.eigh(C)[1][:, -6:]
    rng = np.random.default_rng(0)
    for _ in range(50):  # among the candidates of F41: the axes and the top eigenvectors
        other = np.linalg.qr(np.hstack([V, top @ rng.normal(size=(6, 4))]))[0]
        assert np.trace(other.T @ C @ other) <= best * (1 + 1e-9)
    assert np.trace(top.T @ C @ top) > best  # the control: without the axes there is more


def test_what_is_given_is_left_as_it_is():
    X, Y, _ = tables("none")
    for given in ({"gamma": 0.1}, {"n_latent": 5}, {"axes": "contrast"}, {"scale": None}, {"scale": "group"}):
        model = ContraPCA(1, **given).fit(X, background=Y)
        assert model.plateau_ is None
        wanted = {"scale": None, "axes": "contrast"} | given
        same = ContraPCA(1, **wanted).fit(X, background=Y)
        np.testing.assert_array_equal(model.components_, same.components_)


def test_with_missing_values():
    rng = np.random.default_rng(5)
    for noise, scale in (("plateau", None), ("none", "pooled")):
        X, Y, truth = tables(noise, 300, 300)
        left, right = (np.where(rng.random(rows.shape) < 0.1, np.nan, rows) for rows in (X, Y))
        model = ContraPCA(1).fit(left, background=right)
        assert model.plateau_.scale == scale
        assert agreement(model, X, truth) > 0.7
    model = ContraPCA(2, axes="ratio").fit(left, background=right)
    assert model.axis_ratios_[0] > 1
    latents = model.transform(left)
    assert np.isfinite(latents).all()
    np.testing.assert_allclose(model.transform(model.inverse_transform(latents)), latents, atol=1e-6)


def test_held_out_rows_do_not_decide_again():
    """Units and axes of all rows are kept where some are held out."""
    X, Y, _ = tables("none")
    found = held_out_contrast(ContraPCA(2, shorten=False), X, background=Y)
    divisor = ContraPCA(2, shorten=False).fit(X, background=Y).scale_
    fixed = ContraPCA(2, scale=None, axes="ratio", shorten=False)
    same = held_out_contrast(fixed, X / divisor, background=Y / divisor)
    np.testing.assert_allclose(found.log_ratios, same.log_ratios, atol=1e-8)


def test_one_donor_is_not_the_whole_ratio(monkeypatch):
    """Features that vary in one donor alone, where cases and controls are alike but for this donor's own chance.

    Measured in units of the donors without it, these features would be blown up, and the ratio of that donor (9) would
    be printed with a narrow interval.
    """
    rng = np.random.default_rng(0)
    donor, case = np.repeat(np.arange(5), 200), np.tile([True, False], 500)
    rows = rng.standard_t(5, size=(1000, 60)) + rng.normal(size=(1000, 30)) @ rng.normal(size=(30, 60))
    own = np.where(donor == 0, np.where(case, 3.0, 1.0), 0.01)
    rows[:, :3] = own[:, None] * rng.normal(size=(1000, 1)) + 0.01 * rng.normal(size=(1000, 3))
    study = Study(rows[case], background=rows[~case], blocks=(donor[case], donor[~case]))
    model = ContraPCA(1).fit(study)
    assert model.plateau_.scale == "pooled"
    assert np.abs(model.components_[0, :3]).min() > 0.4  # the component is these features
    given = ContraPCA(1, scale="pooled", axes="ratio")
    for own in (model, given):
        found = held_out_contrast(own, study)
        low, high = found.intervals[0]
        assert low < 1 < high
        assert found.largest_share[0] > 0.9
    # The control: units of each half, which that donor is not in.
    monkeypatch.setattr("contrapca.inference._held_out.measured_once", lambda estimator, data: estimator)
    assert held_out_contrast(given, study).intervals[0, 0] > 1


def test_paths_and_files_know_what_was_decided(tmp_path):
    X, Y, _ = tables("none")
    model = ContraPCA(2).fit(X, background=Y)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert str(again.plateau_) == str(model.plateau_)
    assert again.n_shortened_ == model.n_shortened_
    np.testing.assert_allclose(again.inverse_transform(again.transform(X)), model.inverse_transform(model.transform(X)))
    path = contrast_path(ContraPCA(2), X, background=Y, gammas=[0.0, model.gamma_])
    np.testing.assert_allclose(path.model(model.gamma_).components_, model.components_, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Cases and controls are the same table")
@pytest.mark.parametrize("share", [0.2, 1.0, 5.0])
def test_the_floor_is_its_own_mean(share):
    """t is the mean of eigenvalues of which none counts more than eight times t; without large ones it is the mean."""
    values = np.r_[np.full(3, 100.0 * share), np.ones(D - 3)]
    Y = np.random.default_rng(0).normal(size=(4000, D)) * np.sqrt(values)
    tables = study_of(Y, Y, "test").tables
    data = ContraPCA(1, scale=None, axes="ratio", shorten=False)._collected(tables)
    own = np.linalg.eigvalsh(np.cov(Y.T, ddof=0))
    t = floor_share(data.groups) * own.mean()
    assert t == pytest.approx(np.minimum(own, 8 * t).mean(), rel=1e-9)
    assert t < own.mean() * (1 if share > 0.2 else 1.01)


# ---------------------------------------------------------------------- long rows


def weights_of(X, Y):
    found = shortened(study_of(X, Y, "test").tables)
    return found.weights, found.shortened


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_factors_are_those_of_the_slow_version(missing):
    rng = np.random.default_rng(1)
    X, Y, _ = tables()
    X[:5] *= 30
    X[rng.random(X.shape) < missing] = np.nan
    weights, long = weights_of(X, Y)
    expected = row_factors(X) ** 2
    np.testing.assert_allclose(weights.foreground, expected * len(X) / expected.sum(), rtol=1e-10)
    np.testing.assert_array_equal(long.foreground, np.flatnonzero(expected < 1))
    assert set(range(5)) <= set(long.foreground)


def test_sparse_rows_and_other_types_are_shortened_alike():
    rng = np.random.default_rng(2)
    X, Y = rng.poisson(0.8, size=(2, 150, 20)).astype(float)
    X[:3] *= 40
    expected, long = weights_of(X, Y)
    for convert in (sp.csr_array, lambda rows: rows.astype(np.float32)):
        found, others = weights_of(convert(X), convert(Y))
        np.testing.assert_allclose(found.foreground, expected.foreground, rtol=1e-5)
        np.testing.assert_array_equal(others.foreground, long.foreground)


def test_a_few_far_away_do_not_decide():
    X, Y, truth = tables()
    far = X.copy()
    far[:4] = 200 * np.random.default_rng(3).normal(size=(4, D))  # 2 %
    model = ContraPCA(1).fit(far, background=Y)
    assert {0, 1, 2, 3} <= set(model.shortened_["foreground"])
    assert model.n_shortened_ == sum(map(len, model.shortened_.values()))
    assert f"{model.n_shortened_} rows far from most count less" in str(model.summary())
    clean = agreement(ContraPCA(1).fit(X, background=Y), X, truth)
    assert agreement(model, X, truth) > 0.95 * clean
    assert agreement(ContraPCA(1, shorten=False).fit(far, background=Y), X, truth) < 0.7 * clean  # the control


def test_a_small_group_is_not_cut_off():
    """One case in twenty, six standard deviations away: still the first component."""
    rng = np.random.default_rng(4)
    X, Y = rng.normal(size=(2, 300, 30))
    X[:15, 0] += 6
    model = ContraPCA(1).fit(X, background=Y)
    assert abs(model.components_[0, 0]) > 0.9


def test_rows_of_weight_zero_keep_their_numbers():
    X, Y, _ = tables()
    X[7] *= 100
    weights = np.ones(len(X))
    weights[:5] = 0
    model = ContraPCA(1).fit(X, background=Y, sample_weight=weights)
    assert 7 in model.shortened_["foreground"]
    assert not {0, 1, 2, 3, 4} & set(model.shortened_["foreground"])


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(6)
    X, Y, _ = tables(n=60, m=50)
    X[0] *= 50
    counts = rng.integers(1, 4, size=60)
    found = ContraPCA(1).fit(X, background=Y, sample_weight=counts.astype(float))
    repeated = ContraPCA(1).fit(np.repeat(X, counts, axis=0), background=Y)
    np.testing.assert_allclose(found.components_, repeated.components_, atol=1e-7)


def test_where_most_rows_are_alike_nothing_is_shortened():
    X, Y, _ = tables()
    X[:150] = X[0]
    assert ContraPCA(1).fit(X, background=Y).shortened_["foreground"].size == 0


def test_paths_shorten_long_rows_of_wide_tables():
    """Rows are read again in units of their features; the long ones count less then, too, as in a fit."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 60, 300)) * np.arange(1, 301) ** -1.0
    X[:2] *= 200
    model = ContraPCA(2).fit(X, background=Y)
    path = contrast_path(ContraPCA(2), X, background=Y, gammas=[model.gamma_])
    np.testing.assert_allclose(path.components(model.gamma_), model.components_, atol=1e-7)
