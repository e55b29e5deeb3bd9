"""Moments in place of rows: the same fits, limits, paths and posteriors, without a row being seen."""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import contrapca
from conftest import make_groups
from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    Moments,
    bootstrap,
    calibrate_power,
    contrast_path,
    gamma_limits,
    load,
    posterior,
)
from contrapca.exceptions import ContrastWarning, GroupError, InfeasibleGammaError, RankError

# That PCPCA's default shows what both groups share is said, and beside the point here.
pytestmark = pytest.mark.filterwarnings("ignore:PCPCA still shows")

X, Y = make_groups(150, 120, 12)
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def in_parts(rows, *edges):
    """Moments of parts of a table, added: no site sees the rows of another."""
    first, *others = (Moments.from_rows(part) for part in np.split(rows, edges))
    return sum(others, start=first)


WHOLE = Moments.from_rows(X), Moments.from_rows(Y)
PARTS = in_parts(X, 20, 90), in_parts(Y, 61)

ESTIMATORS = {
    "PPCA": PPCA(3),
    "PPCA, scaled": PPCA(3, scale="group"),
    "PCPCA": PCPCA(2, gamma=0.3),
    "PCPCA, auto": PCPCA(2),
    "PCPCA, scaled": PCPCA(2, gamma=0.3, scale="group"),
    "PCPCA, pooled scale": PCPCA(2, gamma=0.3, scale="pooled"),
    "PCPCA, no contrast": PCPCA(2, gamma=0),
    "CPCA": CPCA(2, gamma=0.8),
    "CPCA, scaled": CPCA(2, gamma=0.8, scale="pooled"),
    "CLVM": CLVM(2, 2, tol=1e-10),
    "CLVM, scaled": CLVM(2, 1, scale="group", tol=1e-10),
}
# Where iterations end depends on rounding: equal to the default tolerance of the solver.
ITERATIVE = {"rtol": 1e-6, "atol": 1e-6}


def fitted(name, left, right):
    estimator = clone(ESTIMATORS[name])
    return estimator.fit(left) if isinstance(estimator, PPCA) else estimator.fit(left, background=right)


def assert_same_fit(left, right, close=CLOSE):
    """Every fitted number, and what the models say of rows."""
    names = (
        vars(left).keys() - left.get_params().keys() - {"fit_", "_parameters", "model_", "background_model_", "solver_"}
    )
    histories = {"objective_history_", "n_iter_"}  # of iterations, which rounding may make one more or less
    assert vars(left).keys() == vars(right).keys()
    for name in sorted(names - histories):
        a, b = getattr(left, name), getattr(right, name)
        if a is None or isinstance(a, list):
            assert a == b, name
        else:
            np.testing.assert_allclose(a, b, err_msg=name, **close)
    for name in ("gamma_max_", "gamma_max_is_bound_"):
        absent = pytest.approx(getattr(right, name, np.nan), rel=1e-10, nan_ok=True)
        assert getattr(left, name, np.nan) == absent, name
    for method in ("transform", "score_samples", "contrast_score", "transform_shared"):
        if hasattr(left, method):
            np.testing.assert_allclose(getattr(left, method)(X), getattr(right, method)(X), err_msg=method, **close)
    np.testing.assert_allclose(left.objective_, right.objective_, rtol=1e-10)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fits(name):
    model = fitted(name, *WHOLE)
    rows = fitted(name, X, Y)
    assert_same_fit(model, rows)
    assert model.n_iter_ == rows.n_iter_
    if not isinstance(model, CLVM):
        assert str(model.solver_) == "eigh: moments were given"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fits_to_sums_of_moments(name):
    assert_same_fit(fitted(name, *PARTS), fitted(name, X, Y), ITERATIVE if "CLVM" in name else CLOSE)


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
def test_fits_to_few_rows(solver):
    """More features than rows: the other solvers, which never form a matrix, find the same."""
    left, right = make_groups(15, 12, 40, seed=1)
    model = PCPCA(2, gamma=0.3).fit(Moments.from_rows(left), background=Moments.from_rows(right))
    rows = PCPCA(2, gamma=0.3, solver=solver).fit(left, background=right)
    close = {"rtol": 1e-8, "atol": 1e-8} if solver == "lanczos" else CLOSE
    np.testing.assert_allclose(model.loadings_, rows.loadings_, **close)
    np.testing.assert_allclose(model.contrast_score(left), rows.contrast_score(left), **close)


def test_sparse_and_weighted_rows():
    left, right = sp.csr_array(np.maximum(X, 1) - 1), sp.csr_array(np.maximum(Y, 1) - 1)
    model = PCPCA(2, gamma=0.3).fit(Moments.from_rows(left), background=Moments.from_rows(right))
    assert_same_fit(model, PCPCA(2, gamma=0.3).fit(left, background=right))
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = PCPCA(2, gamma=0.3).fit(Moments.from_rows(X, sample_weight=counts), background=WHOLE[1])
    assert_same_fit(weighted, PCPCA(2, gamma=0.3).fit(np.repeat(X, counts, axis=0), background=Y))


@pytest.mark.parametrize("scale", [None, "group", "pooled"])
@pytest.mark.parametrize("moments", [WHOLE, PARTS], ids=["whole", "parts"])
def test_limits(moments, scale):
    found = gamma_limits(moments[0], background=moments[1], n_components=2, scale=scale)
    expected = gamma_limits(X, background=Y, n_components=2, scale=scale)
    for name, value in expected.gamma.items():
        assert found.gamma[name] == pytest.approx(value, rel=1e-10), name
    assert (found.ratio, found.is_bound) == (expected.ratio, False)


@pytest.mark.parametrize("kind", [PCPCA, CPCA])
@pytest.mark.parametrize("scale", [None, "group"])
@pytest.mark.parametrize("moments", [WHOLE, PARTS], ids=["whole", "parts"])
def test_paths(moments, kind, scale):
    path = contrast_path(kind(2, scale=scale), moments[0], background=moments[1])
    expected = contrast_path(kind(2, scale=scale), X, background=Y)
    assert path.gamma_max == pytest.approx(expected.gamma_max, rel=1e-10)
    np.testing.assert_allclose(path.gammas, expected.gammas, **CLOSE)
    np.testing.assert_allclose(path.eigenvalues, expected.eigenvalues, **CLOSE)
    np.testing.assert_allclose(path.objective, expected.objective, rtol=1e-10)
    # Paths are certified to 1e-9 of the largest eigenvalue, and which gammas are solved may depend on rounding.
    np.testing.assert_allclose(path.latents(X), expected.latents(X), atol=1e-7)
    gamma = path.gammas[20]
    np.testing.assert_allclose(
        path.model(gamma).transform(X), expected.model(expected.gammas[20]).transform(X), atol=1e-7
    )


@pytest.mark.parametrize("estimator", [PPCA(1), PCPCA(1, gamma=0.3), CPCA(1, gamma=0.3)], ids=str)
def test_posteriors(estimator, need):
    """The same draws for the same seed, whether the model was fitted to rows or to moments, and given which."""
    if not isinstance(estimator, CPCA):
        need("nutpie")
    options = {"draws": 200, "tune": 200, "chains": 2, "random_state": 0, "progress": False}
    if isinstance(estimator, CPCA):
        options["power"] = 0.05
    draws = []
    for fit_to in ((X, Y), WHOLE):
        given = {} if isinstance(estimator, PPCA) else {"background": fit_to[1]}
        model = clone(estimator).fit(fit_to[0], **given)
        for left, right in ((X, Y), WHOLE, PARTS):
            given = {} if isinstance(estimator, PPCA) else {"background": right}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ContrastWarning)  # few draws
                draws.append(posterior(model, left, **given, **options))
    for other in draws[1:]:
        if other.noise_variance is None:
            assert draws[0].noise_variance is None
        np.testing.assert_allclose(other.estimate, draws[0].estimate, **CLOSE)
        # The same chains, as far as rounding lets them stay together.
        np.testing.assert_allclose(other.projector(), draws[0].projector(), atol=0.02)
    np.testing.assert_array_equal(draws[1].loadings, draws[4].loadings)  # moments are the same numbers


def test_saved_moments(tmp_path):
    for name, moments in zip(("cases", "controls"), PARTS, strict=True):
        moments.save(tmp_path / name)
    cases, controls = load(tmp_path / "cases"), load(tmp_path / "controls")
    assert_same_fit(PCPCA(2).fit(cases, background=controls), PCPCA(2).fit(*PARTS[:1], background=PARTS[1]))


def test_names(need):
    pd = need("pandas")
    names = [f"g{j}" for j in range(12)]
    left, right = (pd.DataFrame(table, columns=names) for table in (X, Y))
    moments = Moments.from_rows(left), Moments.from_rows(right)
    for name in ("PPCA", "PCPCA", "CPCA", "CLVM"):
        model = fitted(name, *moments)
        assert list(model.feature_names_in_) == names
        assert sorted(model.feature_table()["feature"]) == sorted(names)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.transform(left)
        with pytest.raises(ValueError, match="same order"):
            model.transform(left[names[::-1]])
    assert contrast_path(PCPCA(2), moments[0], background=moments[1]).feature_names == names
    plain = fitted("PCPCA", *WHOLE)
    assert not hasattr(plain, "feature_names_in_")
    assert set(plain.feature_table()["feature"]) == {f"x{j}" for j in range(12)}


def test_columns_that_are_numbers_are_no_names(need):
    """As for fits to rows: scikit-learn knows names of text only."""
    pd = need("pandas")
    left, right = pd.DataFrame(X), pd.DataFrame(Y)
    model = PCPCA(2, gamma=0.3).fit(Moments.from_rows(left), background=Moments.from_rows(right))
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(PCPCA(2, gamma=0.3).fit(left, background=right), "feature_names_in_")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(left)


def test_a_fit_to_moments_after_one_to_named_rows(need):
    """Nothing of the first is left."""
    pd = need("pandas")
    left, right = (pd.DataFrame(table, columns=list("abcdefghijkl")) for table in (X, Y))
    model = PCPCA(2, gamma=0.3).fit(left, background=right)
    model.fit(Moments.from_rows(X[:, :9]), background=Moments.from_rows(Y[:, :9]))
    assert model.n_features_in_ == 9
    assert not hasattr(model, "feature_names_in_")
    assert model.transform(X[:, :9]).shape == (150, 2)


# ---------------------------------------------------------------------- refused


CONTRASTS = {name: ESTIMATORS[name] for name in ("PCPCA", "CPCA", "CLVM")}


@pytest.mark.parametrize("name", CONTRASTS)
@pytest.mark.parametrize("given", [(WHOLE[0], Y), (X, WHOLE[1])], ids=["foreground", "background"])
def test_one_group_of_each_kind(name, given):
    estimator = clone(CONTRASTS[name])
    with pytest.raises(GroupError, match=r"One group is given as Moments and the other as rows.*from_rows for both"):
        estimator.fit(given[0], background=given[1])
    assert not [key for key in vars(estimator) if key.endswith("_")]


@pytest.mark.parametrize("function", [gamma_limits, partial(contrast_path, PCPCA(2))], ids=["limits", "path"])
def test_one_group_of_each_kind_in_functions(function):
    with pytest.raises(GroupError, match="from_rows for both"):
        function(WHOLE[0], background=Y)
    with pytest.raises(GroupError, match="from_rows for both"):
        function(X, background=WHOLE[1])


@pytest.mark.parametrize("name", CONTRASTS)
def test_no_background(name):
    with pytest.raises(GroupError, match="given one: pass the background as background="):
        clone(CONTRASTS[name]).fit(WHOLE[0])


def test_other_features(need):
    with pytest.raises(GroupError, match="12 features and the background 5"):
        PCPCA(2).fit(WHOLE[0], background=Moments.from_rows(Y[:, :5]))
    pd = need("pandas")
    left, right = pd.DataFrame(X).add_prefix("a"), pd.DataFrame(Y).add_prefix("b")
    with pytest.raises(GroupError, match="feature names of foreground and background differ"):
        PCPCA(2).fit(Moments.from_rows(left), background=Moments.from_rows(right))


def test_too_few_rows():
    with pytest.raises(GroupError, match=r"of the background sums to 1\.5: weights count rows.*Multiply them"):
        PCPCA(2).fit(WHOLE[0], background=Moments.from_rows(Y[:2], sample_weight=[1.0, 0.5]))


def test_impossible_contrasts():
    """The same errors as for rows, with the exact limit."""
    limit = gamma_limits(X, background=Y).pcpca
    with pytest.raises(InfeasibleGammaError, match=f"{limit:.4f}"):
        PCPCA(2, gamma=1.2).fit(*WHOLE[:1], background=WHOLE[1])
    with pytest.raises(RankError):
        PPCA(2).fit(Moments.from_rows(X[:, :2] @ np.ones((2, 12))))
    with pytest.raises(ValueError, match="n_components=12"):
        PPCA(12).fit(WHOLE[0])


@pytest.mark.parametrize("solver", ["lbfgs", "dual", "lanczos", "other"])
def test_solvers_that_work_on_rows(solver):
    """They are refused, and the sentence says why; before, all but the first were ignored."""
    says = rf"solver='{solver}' (cannot be used with moments, which have no rows.*solver='auto' or 'eigh'|is not valid)"
    background = {"background": WHOLE[1]}
    with pytest.raises(ValueError, match=says):
        PCPCA(2, gamma=0.1, solver=solver).fit(WHOLE[0], **background)
    with pytest.raises(ValueError, match=says):
        PCPCA(2, gamma=0.1, solver=solver).fit(contrapca.Study(WHOLE[0], background=WHOLE[1]))
    with pytest.raises(ValueError, match=says):
        PCPCA(2, gamma=0.1, solver=solver).partial_fit(X, background=Y)
    if solver != "lbfgs":
        with pytest.raises(ValueError, match=says):
            CPCA(2, gamma=0.1, solver=solver).fit(WHOLE[0], **background)
        with pytest.raises(ValueError, match=says):
            gamma_limits(WHOLE[0], **background, solver=solver)
    with pytest.raises(ValueError, match=says):
        PPCA(2, solver=solver).fit(WHOLE[0])
    assert PCPCA(2, gamma=0.1, solver="eigh").fit(WHOLE[0], **background).solver_.name == "eigh"


def test_gamma_from_held_out_rows():
    with pytest.raises(ValueError, match=r"gamma='auto' holds rows out, and moments have none: pass gamma="):
        CPCA(2).fit(WHOLE[0], background=WHOLE[1])


@pytest.mark.parametrize("estimator", [PPCA(2), PCPCA(2, gamma=0.3), CPCA(2, gamma=0.3)], ids=str)
def test_the_bootstrap_needs_rows(estimator):
    given = {} if isinstance(estimator, PPCA) else {"background": Y}
    moments = {} if isinstance(estimator, PPCA) else {"background": WHOLE[1]}
    model = clone(estimator).fit(X, **given)
    with pytest.raises(TypeError, match=r"bootstrap needs rows, but .*: pass the tables"):
        bootstrap(model, WHOLE[0], **moments, n_resamples=20)
    with pytest.raises(TypeError, match=r"bootstrap needs rows, but .*: pass the tables"):
        calibrate_power(model, WHOLE[0], **moments)


@pytest.mark.parametrize("other", [X + 0.1, X[:-1], X * 2, X[:, :5]], ids=["moved", "a row less", "scaled", "cut"])
def test_posteriors_of_other_moments(other):
    """Means and numbers of rows tell, as for rows."""
    model = CPCA(2, gamma=0.3).fit(*WHOLE[:1], background=WHOLE[1])
    right = Moments.from_rows(Y[:, : other.shape[1]])
    with pytest.raises(ValueError, match=r"not the table of the fit|features, but"):
        posterior(model, Moments.from_rows(other), background=right)


def test_moments_are_no_rows():
    model = PCPCA(2, gamma=0.3).fit(*WHOLE[:1], background=WHOLE[1])
    says = "needs rows, but X was given as moments: pass the table"
    for method in ("transform", "score", "score_samples", "latent_posterior", "impute", "contrast_score"):
        with pytest.raises(TypeError, match=says):
            getattr(model, method)(WHOLE[0])
    with pytest.raises(TypeError, match=says):
        model.fit_transform(WHOLE[0], background=WHOLE[1])


def test_distant_means_are_noticed():
    with pytest.warns(ContrastWarning, match="pooled standard deviations") as caught:
        PCPCA(1, gamma=0.1).fit(WHOLE[0], background=Moments.from_rows(Y + 1000))
    assert caught[0].filename == __file__
