"""Several backgrounds, which share gamma by their rows; against stacked rows and full matrices."""

import numpy as np
import pytest
from sklearn.base import clone

import oracles
from conftest import make_groups
from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    ContraPCA,
    GammaSearch,
    Moments,
    Study,
    bootstrap,
    compare,
    contrast_path,
    contrast_test,
    gamma_limits,
    held_out_contrast,
    load,
    plots,
    posterior,
    report,
)
from contrapca.exceptions import GroupError

pytestmark = pytest.mark.filterwarnings("ignore:PCPCA still shows")

X, Y = make_groups(150, 120, 8)
FIRST, SECOND = Y[:30] + 1.0, 2.0 * Y[30:] - 1.0  # of unequal size, mean and spread
BOTH = {"first": FIRST, "second": SECOND}
CENTRED = np.vstack([FIRST - FIRST.mean(axis=0), SECOND - SECOND.mean(axis=0)])
GAMMA, PARTS = 0.3, {"first": 0.3 * 30 / 120, "second": 0.3 * 90 / 120}
SOLVERS = ["eigh", "dual", "lanczos"]


def holes(rows, seed=0):
    """A tenth of the values missing."""
    return np.where(np.random.default_rng(seed).random(rows.shape) < 0.1, np.nan, rows)


# ---------------------------------------------------------------------- as if stacked, each about its own mean


@pytest.mark.parametrize(
    "model",
    [
        PCPCA(2, gamma=0.3),
        PCPCA(2),
        ContraPCA(2, shorten=False, n_latent=4),
        CPCA(2, gamma=1.3),
        PCPCA(2, gamma=0.3, scale="pooled"),
        CLVM(2, 1, tol=1e-9),
        *(ContraPCA(2, shorten=False, n_latent=4, solver=solver) for solver in SOLVERS),
    ],
    ids=str,
)
def test_one_gamma_is_that_of_the_stacked_rows(model):
    """Contrast axes too: they weigh the backgrounds by rows, as C does; evenly, they would differ."""
    several, stacked = clone(model).fit(X, background=BOTH), clone(model).fit(X, background=CENTRED)
    close = {"rtol": 1e-7, "atol": 1e-7}
    np.testing.assert_allclose(several.components_, stacked.components_, **close)
    np.testing.assert_allclose(several.transform(X), stacked.transform(X), **close)
    np.testing.assert_allclose(several.objective_, stacked.objective_, rtol=1e-9)
    for name in ("gamma_", "gamma_max_", "n_effective_", "axis_ratios_", "eigenvalues_"):
        expected = getattr(stacked, name, None)
        if expected is not None:
            np.testing.assert_allclose(getattr(several, name), expected, err_msg=name, **close)


def test_limits_and_paths_are_those_of_the_stacked_rows():
    several, stacked = (gamma_limits(X, background=other) for other in (BOTH, CENTRED))
    np.testing.assert_allclose(list(several.gamma.values()), list(stacked.gamma.values()), rtol=1e-9)
    assert several.ratio == pytest.approx(stacked.ratio)
    left, right = (
        contrast_path(ContraPCA(2, shorten=False, n_latent=4), X, background=other, gammas=9)
        for other in (BOTH, CENTRED)
    )
    for name in ("gammas", "eigenvalues", "axis_ratios", "background_variance", "noise_variance", "objective"):
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), rtol=1e-6, err_msg=name)
    assert {"first_share", "second_share"} <= left.table().keys()


def test_missing_values():
    given = {name: holes(rows) for name, rows in BOTH.items()}
    means = [np.nanmean(rows, axis=0) for rows in given.values()]
    stacked = np.vstack([rows - mean for rows, mean in zip(given.values(), means, strict=True)])
    for model in (PCPCA(2, gamma=0.3), PCPCA(1)):
        several = clone(model).fit(holes(X), background=given)
        one = model.fit(holes(X), background=stacked)
        np.testing.assert_allclose(several.get_covariance(), one.get_covariance(), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose([several.objective_, several.gamma_], [one.objective_, one.gamma_], rtol=1e-4)


# ---------------------------------------------------------------------- as written out


@pytest.mark.parametrize("solver", SOLVERS)
def test_against_the_full_matrix(solver):
    model = CPCA(2, gamma=GAMMA, solver=solver).fit(X, background=BOTH)
    values, U = np.linalg.eigh(oracles.mixed_contrast(X, BOTH.values(), PARTS.values()))
    np.testing.assert_allclose(model.eigenvalues_, values[:-3:-1] / len(X), rtol=1e-9)
    np.testing.assert_allclose(np.abs(model.components_ @ U[:, :-3:-1]), np.eye(2), atol=1e-7)


def test_the_likelihood():
    model = PCPCA(2, gamma=GAMMA).fit(X, background=BOTH)
    A, raw = model.get_covariance(), GAMMA * 150 / 120
    value = oracles.gaussian_log_density(X - X.mean(axis=0), A).sum()
    for rows in BOTH.values():
        value -= raw * oracles.gaussian_log_density(rows - rows.mean(axis=0), A).sum()
    assert model.objective_ == pytest.approx(value)
    assert model.n_effective_ == pytest.approx(150 * 0.7)


def test_paths(tmp_path):
    path = contrast_path(CPCA(2), X, background=BOTH, gammas=[0.0, GAMMA, 0.6])
    model = path.model(GAMMA)
    again = CPCA(2, gamma=GAMMA).fit(X, background=BOTH)
    np.testing.assert_allclose(model.components_, again.components_, atol=1e-8)
    assert model.gamma == GAMMA
    path.save(tmp_path / "path.npz")
    loaded = load(tmp_path / "path.npz")
    assert loaded.scaling.names == path.scaling.names
    np.testing.assert_array_equal(loaded.background_variance, path.background_variance)


# ---------------------------------------------------------------------- labels, names, moments


def test_labels():
    rows = np.vstack([FIRST, X, SECOND])
    y = np.array(["first"] * 30 + ["case"] * 150 + ["second"] * 90)
    model = ContraPCA(2, background_label=["first", "second"]).fit(rows, y)
    again = ContraPCA(2).fit(X, background=BOTH)
    np.testing.assert_allclose(model.transform(rows), again.transform(rows))
    assert model.gamma_ == again.gamma_
    assert model.score(rows, y) == pytest.approx(again.score(X))
    numbers = ContraPCA(2, background_label=[0, 2]).fit(rows, np.repeat([0, 1, 2], [30, 150, 90]))
    assert list(numbers.background_mean_) == ["0", "2"]


def test_attributes_and_centres():
    model = ContraPCA(2, shorten=False).fit(X, background=BOTH)
    np.testing.assert_allclose(model.background_mean_["second"], SECOND.mean(axis=0))
    Z = model.transform(FIRST, center="first")
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    assert np.abs(model.transform(FIRST).mean(axis=0)).max() > 0.1
    for name in ("background", "third"):
        with pytest.raises(ValueError, match=r"center=.* is not valid.*Choose one of 'foreground', 'first', 'second'"):
            model.transform(FIRST, center=name)
    table = model.feature_table()
    variance = dict(zip(table["feature"], table["first_variance"], strict=True))
    np.testing.assert_allclose([variance[f"x{j}"] for j in range(8)], FIRST.var(axis=0))
    assert "second_variance" in table
    one = ContraPCA(2).fit(X, background={"first": FIRST})
    np.testing.assert_array_equal(one.transform(FIRST, center="first"), one.transform(FIRST, center="background"))
    shared = CLVM(2, 1).fit(X, background=BOTH)
    for name, rows in BOTH.items():
        np.testing.assert_allclose(shared.transform_shared(rows, center=name).mean(axis=0), 0, atol=1e-10)


@pytest.mark.parametrize("name", ["first", "a/b", "../x", "äöü", "background", "foreground.mean"])
def test_files(tmp_path, name):
    model = ContraPCA(2, gamma=0.15).fit(X, background={name: FIRST, "other": SECOND})
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.transform(X, center=name), model.transform(X, center=name))
    assert again.get_params() == model.get_params()


def test_moments_in_their_place():
    rows = PCPCA(2, gamma=GAMMA).fit(X, background=BOTH)
    moments = {name: Moments.from_rows(table) for name, table in BOTH.items()}
    model = PCPCA(2, gamma=GAMMA).fit(Moments.from_rows(X), background=moments)
    np.testing.assert_allclose(model.components_, rows.components_, atol=1e-10)
    with pytest.raises(GroupError, match="One group is given as Moments and the other as rows"):
        PCPCA(2).fit(Moments.from_rows(X), background={**moments, "second": SECOND})


# ---------------------------------------------------------------------- what works with them, and what says no


def test_held_out_and_searches():
    found = held_out_contrast(ContraPCA(2, shorten=False, n_latent=4), X, background=BOTH)
    assert np.all(np.isfinite(found.log_ratios))
    same = {"first": Y, "second": Y[::-1]}  # two copies of one background, in other folds: nearly the one
    one = held_out_contrast(PCPCA(1, gamma=0.3), X, background=Y)
    assert held_out_contrast(PCPCA(1, gamma=0.3), X, background=same).mean == pytest.approx(one.mean, abs=0.1)
    assert CPCA(2).fit(X, background=BOTH).gamma_ > 0
    assert GammaSearch(CPCA(2), gammas=[0.0, 0.3]).fit(X, background=BOTH).best_gamma_ in (0.0, 0.3)
    blocks = np.arange(270) // 5
    own = blocks[:150], {"first": blocks[150:180], "second": blocks[180:]}
    by_name = GammaSearch(PCPCA(2), gammas=[0.0, 0.1]).fit(Study(X, background=BOTH, blocks=own)).scores_
    assert not np.allclose(by_name, GammaSearch(PCPCA(2), gammas=[0.0, 0.1]).fit(X, background=BOTH).scores_)
    with pytest.raises(GroupError, match="blocks is a tuple of 2, but there are 3 groups"):
        held_out_contrast(PCPCA(1), Study(X, background=BOTH, blocks=(blocks[:150], blocks[150:])))


@pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
@pytest.mark.parametrize("give", [lambda rows: rows, holes], ids=["complete", "missing"])
def test_resamples(give):
    background = {name: give(rows) for name, rows in BOTH.items()}
    model = PCPCA(1, gamma=0.07).fit(give(X), background=background)
    refits = bootstrap(model, give(X), background=background, n_resamples=3 if give is holes else 20, random_state=0)
    assert np.rad2deg(refits.angles()).max() < 30
    if give is not holes:
        with pytest.raises(ValueError, match="second is not the table of the fit: the means"):
            bootstrap(model, X, background=BOTH | {"second": SECOND + 1})
        with pytest.raises(ValueError, match="The groups are 'foreground', 'background', but the fit had"):
            bootstrap(model, X, background=FIRST)


@pytest.mark.filterwarnings("ignore:DO NOT TRUST")
def test_posterior():
    model = CPCA(1, gamma=GAMMA).fit(X, background=BOTH)
    draws = posterior(model, X, background=BOTH, draws=50, tune=1, chains=1, power=10.0, random_state=0)
    C = oracles.mixed_contrast(X, BOTH.values(), PARTS.values())
    assert np.mean([np.sum(W * (C @ W)) for W in draws.W[0]]) > 0.5 * np.linalg.eigvalsh(C)[-1]


def test_plots(need):
    need("matplotlib").use("agg")
    pyplot = need("matplotlib.pyplot")
    pyplot.close("all")
    model = ContraPCA(2).fit(X, background=BOTH)
    assert plots.latent_scatter(model, X, background=BOTH).collections[0].get_offsets().shape == (120, 2)
    path = contrast_path(ContraPCA(2), X, background=BOTH, gammas=3)
    panels = plots.gamma_panel(path, X, background=BOTH).axes
    assert panels[0].collections[0].get_offsets().shape == (120, 2)
    pyplot.close("all")
    assert np.all(plots.path_curves(path).lines[1].get_ydata() > 0)
    pyplot.close("all")


@pytest.mark.parametrize(
    "call",
    [
        lambda: contrast_test(X, background=BOTH),
        lambda: compare(X, background=BOTH),
        lambda: report(X, ContraPCA(2), background=BOTH, output="never.html"),
    ],
    ids=["contrast_test", "compare", "report"],
)
def test_what_compares_two_groups_says_so(call, need, request):
    if "report" in request.node.name:
        need("jinja2")
    with pytest.raises(GroupError, match=r"compares two groups, but there are 2 backgrounds \('first', 'second'\)"):
        call()


def test_contrast_score_says_so():
    model = PCPCA(2, gamma=0.1).fit(X, background=BOTH)
    with pytest.raises(GroupError, match="contrast_score compares with one background, but this model has 2"):
        model.contrast_score(X)


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("model", "background", "message"),
    [
        (PCPCA(2), {}, "background is an empty dict"),
        (PCPCA(2), {"foreground": Y}, "'foreground' cannot be the name of a background"),
        (PCPCA(2), {"": Y}, "'' cannot be the name"),
        (PCPCA(2), {1: Y, "1": Y}, "'1' cannot be the name"),
        (PCPCA(2), {"first": Y, "second": Y[:, 1:]}, "The foreground has 8 features and the second 7"),
        (PCPCA(2, gamma={"first": 0.1, "second": 0.2}), BOTH, "a number, 0 or more, which all backgrounds share"),
    ],
)
def test_bad_backgrounds(model, background, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, background=background)
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ([], "must be a label that occurs in y, or a list of them"),
        ([["a"]], "must be a label that occurs in y, or a list of them"),
        (["a", "z"], "No row has the background label 'z'. Labels in y: 'a', 'b', 'c'"),
        (["a", "a"], "'a' cannot be the name of a background"),
        (["a", "b", "c"], "All 270 rows have the background label 'a', 'b', 'c': no foreground is left"),
        (["a", "d"], "the background 'd' has 1"),
    ],
)
def test_bad_labels(label, message):
    rows, y = np.vstack([X, Y]), np.repeat(np.array(["a", "b", "c"], dtype=object), 90)
    if "d" in label:
        y[-1] = "d"
    with pytest.raises(GroupError, match=message):
        PCPCA(2, background_label=label).fit(rows, y)
