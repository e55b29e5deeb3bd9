"""Bad input: a clear error, and nothing half-fitted."""

import copy
import inspect
import pickle
import re
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    RatioPCA,
    bootstrap,
    check_tables,
    contrast_test,
    gamma_limits,
    load,
    posterior,
    report,
)
from contrapca.exceptions import ContrastWarning, GroupError, InfeasibleGammaError, NonFiniteError, RankError

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((30, 6)), rng.standard_normal((25, 6))
LABELS = np.repeat([0, 1], [20, 10])


def with_value(table, value):
    table = table.copy()
    table[2, 3] = value
    return table


def low_rank(table, rank):
    return table[:, :rank] @ rng.standard_normal((rank, 6))


# name: (estimator, arguments of fit, keywords of fit, error, what the message says)
CASES = {
    "NaN in X": (CLVM(), (with_value(X, np.nan),), {"background": Y}, ValueError, "NaN.*PCPCA or PPCA.*foreground"),
    "NaN in background": (CLVM(), (X,), {"background": with_value(Y, np.nan)}, ValueError, "NaN.*background"),
    "inf in X": (CPCA(), (with_value(X, np.inf),), {"background": Y}, ValueError, "infinity"),
    "inf in wide X": (PPCA(), (with_value(X[:4], -np.inf),), {}, ValueError, "infinity"),
    "NaN in sparse X": (PPCA(solver="lanczos"), (sp.csr_array(with_value(X, np.nan)),), {}, ValueError, "NaN"),
    "other feature counts": (PCPCA(), (X,), {"background": Y[:, :5]}, GroupError, r"6 features .* background 5"),
    "2-D y": (PCPCA(), (X, Y), {}, GroupError, r"fit\(X, background=Y\)"),
    "no background": (PCPCA(), (X,), {}, GroupError, r"background=.*background_label=.*PPCA"),
    "no background, y ignored": (CPCA(gamma=0.5), (X, LABELS[:30]), {}, GroupError, "background_label="),
    "y as one column": (PCPCA(background_label=1), (X, LABELS[:, None]), {}, GroupError, r"\(30, 1\).*one column"),
    "label without y": (PCPCA(background_label=1), (X,), {}, GroupError, "needs y"),
    "both kinds of background": (PCPCA(background_label=1), (X, LABELS), {"background": Y}, GroupError, "Both"),
    "y too short": (PCPCA(background_label=1), (X, LABELS[:9]), {}, GroupError, "9 labels for 30 rows"),
    "no row with the label": (PCPCA(background_label=7), (X, LABELS), {}, GroupError, r"No row .* 7.*: 0, 1\."),
    "label of another type": (PCPCA(background_label="1"), (X, LABELS), {}, GroupError, r"label '1'.*: 0, 1\."),
    "a list as label": (PCPCA(background_label=[1] * 30), (X, LABELS), {}, GroupError, "1 cannot be the name"),
    "missing labels": (
        PCPCA(background_label=1),
        (X, [None, np.nan, *LABELS[2:]]),
        {},
        GroupError,
        "2 of 30 .* missing",
    ),
    "missing float labels": (PCPCA(background_label=1), (X, [np.nan, *LABELS[1:]]), {}, GroupError, "1 of 30 labels"),
    "too large to square": (PCPCA(gamma=0.1), (X * 1e160,), {"background": Y}, ValueError, "too large.*foreground"),
    "too large, wide": (PCPCA(), (X[:2],), {"background": Y[:2] * 1e160}, ValueError, "too large.*background"),
    "all rows with the label": (PCPCA(background_label=1), (X, np.ones(30)), {}, GroupError, "All 30 rows"),
    "one background row": (PCPCA(background_label=1), (X, np.arange(30)), {}, GroupError, "background has 1"),
    "one foreground row": (PCPCA(), (X[:1],), {"background": Y}, ValueError, "1 sample"),
    "one row of background": (PCPCA(), (X,), {"background": Y[:1]}, ValueError, "1 sample.*background"),
    "n_components = D": (PCPCA(6), (X,), {"background": Y}, ValueError, "n_components=6.*n_features=6"),
    "n_components = 0": (CPCA(0), (X,), {"background": Y}, ValueError, "n_components=0"),
    "n_components = -1": (PPCA(-1), (X,), {}, ValueError, "n_components=-1"),
    "n_components not whole": (PPCA(1.5), (X,), {}, TypeError, "whole number"),
    "rank = n_components": (
        PCPCA(2, gamma=0.3),
        (low_rank(X, 2),),
        {"background": Y},
        RankError,
        "at most 2 directions",
    ),
    "rank < n_components": (PCPCA(4), (low_rank(X, 2),), {"background": Y}, RankError, "smaller n_components"),
    "rank too low, gamma = 0": (PPCA(2), (low_rank(X, 2),), {}, RankError, "at any gamma"),
    "rank = n_components for CPCA": (CPCA(2, gamma=0.1), (low_rank(X, 2),), {"background": Y}, RankError, "direct"),
    "rank too low for CPCA": (CPCA(3, gamma=0.1), (low_rank(X, 2),), {"background": Y}, RankError, "directions"),
    "constant foreground": (PPCA(1), (np.ones((5, 4)),), {}, RankError, "direction"),
    "two rows, two components": (PPCA(2), (X[:2],), {}, RankError, "directions"),
    "gamma negative": (PCPCA(gamma=-0.1), (X,), {"background": Y}, ValueError, "0 or more"),
    "gamma NaN": (PCPCA(gamma=np.nan), (X,), {"background": Y}, ValueError, "nan"),
    "gamma inf": (CPCA(gamma=np.inf), (X,), {"background": Y}, ValueError, "finite"),
    "gamma text": (CPCA(gamma="strong"), (X,), {"background": Y}, TypeError, "must be 'auto' or a number"),
    "gamma too large": (PCPCA(gamma=1.0), (X,), {"background": Y}, InfeasibleGammaError, "is too large"),
    "complex": (PCPCA(), (X + 1j,), {"background": Y}, ValueError, "Complex"),
    "complex background": (PCPCA(), (X,), {"background": Y * 1j}, ValueError, "Complex"),
    "text": (PCPCA(), (with_value(X.astype(object), "a"),), {"background": Y}, ValueError, "not numbers: '3'"),
    "objects": (PCPCA(), (with_value(X.astype(object), {}),), {"background": Y}, TypeError, "not numbers: '3'"),
    "1-D X": (PCPCA(), (X[0],), {"background": Y}, ValueError, "1D array"),
    "labels as background": (
        PCPCA(),
        (X,),
        {"background": np.array(["a", "b"] * (len(X) // 2))},
        ValueError,
        "background of PCPCA is 30 labels, such as 'a', not a table.*background_label",
    ),
    "scale unknown": (PCPCA(scale="both"), (X,), {"background": Y}, ValueError, "scale='both'.*'pooled'"),
    "scale True": (PCPCA(scale=True), (X,), {"background": Y}, ValueError, "scale=True"),
    "scale True, one group": (PPCA(scale=True), (X,), {}, ValueError, "scale=True is not valid. Choose one of None"),
    "solver unknown": (PCPCA(solver="svd"), (X,), {"background": Y}, ValueError, "solver='svd'"),
}


@pytest.mark.filterwarnings("ignore:All rows of this fit")  # said besides, for cross-validation
@pytest.mark.parametrize("name", CASES)
def test_refused_and_left_unfitted(name):
    estimator, arguments, keywords, error, message = CASES[name]
    with pytest.raises(error, match=f"(?s){message}"):
        estimator.fit(*arguments, **keywords)
    assert not [key for key in vars(estimator) if key.endswith("_")]
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


def test_the_message_has_the_exact_limit_to_four_digits():
    limit = gamma_limits(X, background=Y, n_components=2).pcpca
    with pytest.raises(InfeasibleGammaError, match=re.escape(f"{limit:.4f}")):
        PCPCA(2, gamma=1.2).fit(X, background=Y)


def test_a_failed_refit_keeps_the_old_fit():
    model = PCPCA(2, gamma=0.1).fit(X, background=Y)
    before = dict(vars(model))
    with pytest.raises(InfeasibleGammaError):
        model.set_params(gamma=5.0).fit(X[:, :5], background=Y[:, :5])
    after = dict(vars(model), gamma=0.1)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] or after[name] == before[name] for name in before)


OF_ROWS = ["transform", "inverse_transform", "score", "score_samples", "latent_posterior", "contrast_score"]
RESULTS = ["sample", "feature_table", "get_covariance", "get_precision"]
ATTRIBUTES = ["fit_", "objective_", "reconstruction_error_", "gamma_max_", "n_latent_", "background_model_"]


@pytest.mark.parametrize("method", OF_ROWS + RESULTS)
def test_use_before_fit(method):
    with pytest.raises(NotFittedError):
        getattr(PCPCA(), method)(*([X] if method in OF_ROWS else []))


@pytest.mark.parametrize("name", [*ATTRIBUTES, "plateau_", "shortened_"])
def test_attributes_before_fit(name):
    with pytest.raises(NotFittedError, match="This ContraPCA instance is not fitted yet"):
        getattr(ContraPCA(), name)
    assert not hasattr(ContraPCA(), name)


def test_save_before_fit(tmp_path):
    with pytest.raises(NotFittedError):
        PCPCA().save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["transform", "score", "score_samples", "latent_posterior", "contrast_score"])
def test_new_rows_are_checked(method):
    model = PCPCA(2, gamma=0.1).fit(X, background=Y)
    with pytest.raises(ValueError, match="5 features, but PCPCA is expecting 6"):
        getattr(model, method)(X[:, :5])
    with pytest.raises(ValueError, match="infinity"):
        getattr(model, method)(with_value(X, np.inf))
    holes = with_value(X, np.inf)
    holes[4, 3] = np.nan  # in the same column
    with pytest.raises(ValueError, match="infinity"):
        getattr(model, method)(holes)
    with pytest.raises(ValueError, match="NaN"):
        getattr(model, method)(sp.csr_array(with_value(X, np.nan)))


def test_cpca_transforms_no_holes():
    with pytest.raises(ValueError, match="NaN"):
        CPCA(2, gamma=0.1).fit(X, background=Y).transform(with_value(X, np.nan))


@pytest.fixture(scope="module")
def model():
    return PCPCA(2, gamma=0.1, background_label=1).fit(X, LABELS)


@pytest.fixture(scope="module")
def alone():
    """Without a background."""
    return PCPCA(2, gamma=0).fit(X)


@pytest.fixture(scope="module")
def flat():
    """With a background of one direction, too few for a PPCA of it."""
    return PCPCA(2, gamma=0.1).fit(X, background=0.1 * np.outer(np.arange(9.0), np.ones(6)))


def test_latents_of_another_width(model):
    with pytest.raises(ValueError, match="3 columns, but the model has 2"):
        model.inverse_transform(np.ones((4, 3)))


def test_an_unknown_centre(model):
    with pytest.raises(ValueError, match="center='middle'"):
        model.transform(X, center="middle")


def test_no_samples(model):
    with pytest.raises(ValueError, match="n_samples=0"):
        model.sample(0)


def test_background_rows_alone_cannot_be_scored(model):
    with pytest.warns(ContrastWarning, match="there is nothing to score, so the score is nan"):
        assert np.isnan(model.score(X, np.ones(30)))


def test_the_centre_of_an_absent_background(alone):
    with pytest.raises(ValueError, match="fitted with a background"):
        alone.transform(X, center="background")


def test_a_contrast_with_an_absent_background(alone):
    with pytest.raises(ValueError, match="without a background"):
        alone.contrast_score(X)


def test_a_contrast_with_a_flat_background(flat):
    with pytest.raises(RankError, match="no PPCA can be fitted"):
        flat.contrast_score(X)


@pytest.mark.parametrize("function", [posterior, bootstrap])
def test_a_background_that_the_fit_had_not(alone, function):
    with pytest.raises(ValueError, match="without a background: do not pass one"):
        function(alone, X, background=Y)


@pytest.mark.parametrize("estimator", [PCPCA, CPCA])
@pytest.mark.parametrize("gamma", [0, 0.1])
def test_a_limit_that_was_not_computed(estimator, gamma):
    """It is absent, not computed late, and the error says how to have it."""
    fitted = estimator(2, gamma=gamma).fit(X, background=Y)
    for name in ("gamma_max_", "gamma_max_is_bound_"):
        assert not hasattr(fitted, name)
        with pytest.raises(AttributeError, match=r"gamma='auto'.*contrapca\.gamma_limits\(X, background=Y"):
            getattr(fitted, name)


def test_names_are_checked(need):
    pd = need("pandas")
    names = list("abcdef")
    left, right = pd.DataFrame(X, columns=names), pd.DataFrame(Y, columns=names)
    with pytest.raises(GroupError, match=r"order, starting at column 0: 'a' and 'f'.*background\[X.columns\]"):
        PCPCA().fit(left, background=right[names[::-1]])
    numbered = pd.DataFrame(X), pd.DataFrame(Y)[[5, 4, 3, 2, 1, 0]]
    with pytest.raises(GroupError, match=r"starting at column 0: 0 and 5"):
        PCPCA().fit(numbered[0], background=numbered[1])
    with pytest.raises(
        GroupError, match=r"1 only in the foreground \(the first: 'c'\) and 1 only .* 'z'.*intersection"
    ):
        PCPCA().fit(left, background=right.rename(columns={"c": "z"}))
    model = PCPCA().fit(left, background=right)
    with pytest.raises(ValueError, match="same order"):
        model.transform(left[names[::-1]])
    with pytest.raises(ValueError, match="feature names"):
        model.transform(left.rename(columns={"a": "q"}))
    with pytest.raises(GroupError, match=r"1 only in the foreground \(the first: 'b'\)\. Keep"):
        PCPCA().fit(left, background=right.drop(columns="b"))
    with pytest.raises(ValueError, match="foreground that are not numbers: 'c'"):
        PCPCA().fit(left.assign(c="text"), background=right)
    with pytest.raises(ValueError, match="background that are not numbers: 'c'"):
        PCPCA().fit(left, background=right.assign(c="text"))
    with pytest.raises(NonFiniteError, match=r"NaN.*In the background, 'd'"):
        CLVM().fit(left, background=pd.DataFrame(with_value(Y, np.nan), columns=names))
    with pytest.warns(ContrastWarning, match="the first: 'e'"):
        PCPCA(1, gamma=0.1).fit(left, background=right.assign(e=right.e + 1000))


@pytest.mark.parametrize("estimator", [PPCA(2), CPCA(2), PCPCA(2), PCPCA(2, gamma=0.1)], ids=str)
@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
@pytest.mark.parametrize("convert", [np.array, sp.csr_array])
def test_rows_that_change_later_change_nothing(estimator, solver, convert, tmp_path):
    """A fitted model keeps no rows: all it says is the same after the user's tables were changed in place."""
    if solver == "dual" and convert is sp.csr_array:
        solver = "auto"  # "dual" is for dense rows
    rows, background = convert(X), convert(Y)
    given = {} if isinstance(estimator, PPCA) else {"background": background}
    model = clone(estimator).set_params(solver=solver).fit(rows, **given)
    before = said(model)
    for table in (rows, background):
        values = table.data if sp.issparse(table) else table
        values[:] = 2 * values[::-1].copy() + 1
    model.save(tmp_path / "model.npz")
    for twin in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model)), load(tmp_path / "model.npz")):
        after = said(twin)
        assert after.keys() == before.keys()
        for name, value in before.items():
            np.testing.assert_array_equal(after[name], value, err_msg=name)


def said(model):
    """What a model says of rows, and its own numbers."""
    found = {name: getattr(model, name)(X) for name in OF_ROWS if name != "inverse_transform" and hasattr(model, name)}
    found |= {name: getattr(model, name) for name in ("components_", "gamma_max_", "mean_") if hasattr(model, name)}
    if "latent_posterior" in found:
        found["latent_posterior"] = found["latent_posterior"][1]
    return found | {"objective": model.objective_, "inverse_transform": model.inverse_transform([[1, 2]])}


def test_attributes_that_do_not_exist_can_be_asked_for(alone, flat):
    for model in (alone, flat, PCPCA()):
        assert not hasattr(model, "background_model_")
        assert not hasattr(model, "gamma_max_")
        inspect.getmembers(model)
    assert PCPCA(2, gamma=0.1).fit(X, background=Y).background_model_.sigma2 > 0


def test_limit_of_one_names_the_rows():
    with pytest.raises(InfeasibleGammaError, match="outweighs"):
        PCPCA(1, gamma=1.0).fit(X, background=0.1 * Y)


def test_ppca_ignores_y():
    """As a step before a regression on several targets, for example."""
    np.testing.assert_array_equal(PPCA(2).fit(X, Y).components_, PPCA(2).fit(X).components_)


def test_one_text_column_among_many_is_named_quickly(need):
    frame = need("pandas").DataFrame(rng.standard_normal((20, 3000))).rename(columns=str).assign(note="text")
    start = time.perf_counter()
    with pytest.raises(ValueError, match="not numbers: 'note'"):
        PPCA(2).fit(frame)
    assert time.perf_counter() - start < 60  # one conversion for each column took many minutes


def test_warning_points_at_the_users_line():
    with pytest.warns(ContrastWarning) as caught:
        PCPCA(1, gamma=0.1).fit(X, background=Y + 100)
    assert caught[0].filename == __file__


def repeated_names(kind, table):
    """A table whose first two columns have the same name."""
    names = ["a", "a", *map(str, range(2, table.shape[1]))]
    if kind.__name__ == "pandas":
        return kind.DataFrame(table, columns=names)
    return kind.table([kind.array(column) for column in table.T], names=names)


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_columns_of_one_name_are_named(need, library):
    kind = need(library)
    bad, bad_background = (repeated_names(kind, table) for table in (X, Y))
    model, batches = PCPCA(gamma=0.1).fit(X, background=Y), CPCA(gamma=0.1).partial_fit(X, background=Y)
    calls = [
        (lambda: check_tables(bad, background=bad_background), "the foreground"),
        (lambda: contrast_test(bad, background=bad_background), "the foreground"),
        (lambda: PCPCA().fit(bad, background=bad_background), "the foreground"),
        (lambda: CPCA().fit(X, background=bad_background), "the background"),
        (lambda: CPCA().partial_fit(bad, background=bad_background), "the foreground"),
        (lambda: batches.partial_fit(bad), "X"),
        (lambda: report(bad, model, background=bad_background), "the foreground"),
        (lambda: bootstrap(model, bad, background=bad_background), "the foreground"),
        *((lambda call=call: call(bad), "X") for call in (model.transform, model.impute)),
    ]
    for call, where in calls:
        message = rf"^Several columns of {where} have the same name: 'a'\. Rename them, .*~X\.columns\.duplicated\(\)\]"
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    ("model", "name"),
    [(ContraPCA(shorten="no"), "shorten"), (PCPCA(progress=0), "progress"), (RatioPCA(orthogonal="yes"), "orthogonal")],
)
def test_text_and_numbers_are_not_true_or_false(model, name):
    with pytest.raises(TypeError, match=f"{name}=.* must be True or False"):
        model.fit(np.eye(5), background=np.eye(5))
    model.set_params(**{name: np.False_}).fit(*np.random.default_rng(0).normal(size=(1, 30, 5)), background=np.eye(5))


def test_pictures_of_a_fit_need_one(need):
    need("matplotlib")
    from contrapca.plots import biplot

    with pytest.raises(NotFittedError, match="This ContraPCA instance is not fitted yet"):
        biplot(ContraPCA(), X)
