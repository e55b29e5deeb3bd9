"""What a notebook shows: HTML of every result, escaped, cut at ten rows; and arguments that were misspelt."""

import html.parser

import numpy as np
import pytest

import contrapca
from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    GammaSearch,
    SparseCPCA,
    bootstrap,
    check_background,
    contrast_path,
    contrast_test,
    gamma_limits,
    held_out_contrast,
    stability_selection,
)

EVIL = "<script>alert(1)</script>"


class Tags(html.parser.HTMLParser):
    """Which tags a text opens, and that all but a few are closed again."""

    def __init__(self, text):
        super().__init__()
        self.opened, self.stack = [], []
        self.feed(text)
        assert self.stack == []

    def handle_starttag(self, tag, attributes):
        self.opened.append(tag)
        if tag not in ("input", "br", "meta", "img", "hr"):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


class Frame:
    """A data frame with hostile column names."""

    def __init__(self, values):
        self.values, self.shape = values, values.shape
        self.columns = [f"{EVIL}{j}" for j in range(values.shape[1])]

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)


@pytest.fixture(scope="module")
def named(groups):
    return [Frame(table) for table in groups]


def results(X, Y):
    """Every kind of result, with what its HTML must say."""
    model = PCPCA(2, gamma=0.3).fit(X, background=Y)
    yield model.feature_table(), "... 2 more rows"
    yield contrast_path(PCPCA(2), X, background=Y), "30 more rows"
    yield contrast_test(X, background=Y, random_state=0), "than chance allows"
    yield gamma_limits(X, background=Y, n_components=2), "noise_positive_sharp"
    yield bootstrap(model, X, background=Y, n_resamples=20, random_state=0), "more rows"
    yield held_out_contrast(model, X, background=Y), "ratio of variances on unseen rows"
    yield check_background(X, background=Y, n_splits=3), "The background looks suitable."
    sparse = SparseCPCA(1, gamma=0.5, sparsity=3)
    yield stability_selection(sparse, X, background=Y, n_splits=2), "of 4 halves or more"
    yield model.summary(), "Features with the largest loadings"


def test_html_of_results(named):
    X, Y = named
    for result, says in results(X, Y):
        shown = result._repr_html_()
        assert says in shown, type(result)
        assert EVIL not in shown
        assert Tags(shown).opened.count("table") >= 1
        assert shown.count("<tr>") <= 2 * 11
    assert "&lt;script&gt;" in PCPCA(1, gamma=0.1).fit(X, background=Y).summary()._repr_html_()


@pytest.mark.parametrize(
    "estimator", [ContraPCA(2), PCPCA(2, gamma=0.2), CPCA(2), PPCA(2), CLVM(2, 1), GammaSearch(CPCA(2))], ids=repr
)
def test_html_of_models(groups, estimator):
    """The model's is scikit-learn's; what was found is in the summary's."""
    X, Y = groups
    model = estimator
    model.fit(X) if isinstance(model, PPCA) else model.fit(X, background=Y)
    assert model._repr_mimebundle_()["text/plain"] == repr(model)
    assert "share of cases" in model.summary()._repr_html_()
    printed = str(model.summary())
    assert "Features with the largest loadings:" in printed
    assert "component_1" in printed
    assert repr(model.summary()) == printed


def test_a_model_that_is_not_fitted_has_no_summary():
    with pytest.raises(ValueError, match="not fitted yet"):
        PCPCA().summary()


def test_findings_are_sentences(named):
    X, Y = (Frame(table.values.copy()) for table in named)
    nothing = contrapca.check_tables(X, background=Y)
    assert nothing == []
    assert nothing._repr_html_() == f"<p>{nothing}</p>" == "<p>No problems found.</p>"
    for table in (X, Y):
        table.values[:, 3] = 7
        table.values[:2, 0] = 999
    found = contrapca.check_tables(X, background=Y)
    assert isinstance(found, list)
    assert [finding.check for finding in found] == ["missing code", "constant"]
    assert str(found).splitlines() == repr(found).splitlines() == list(map(str, found))
    shown = found._repr_html_()
    assert EVIL not in shown
    assert Tags(shown).opened == ["p", "p"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda X, Y: PCPCA(2, scale="poled").fit(X, background=Y),
            "'poled' is not valid. Did you mean 'pooled'",
        ),
        (lambda X, Y: PCPCA(2, solver="eig").fit(X, background=Y), "Did you mean 'eigh'"),
    ],
)
def test_misspelt_options(groups, call, says):
    with pytest.raises(ValueError, match=says):
        call(*groups)
