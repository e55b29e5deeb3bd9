"""Estimators that users write by subclassing work wherever ours do."""

import numpy as np
import pytest
from sklearn.base import clone

import contrapca
from contrapca import CPCA, PPCA, ContraPCA, GammaSearch, bootstrap, compare, contrast_path, held_out_contrast, report
from contrapca.contrast import Solution, Spectrum
from contrapca.datasets import make_hidden_clusters
from contrapca.estimators import Contrastive, ContrastSolver

data = make_hidden_clusters(random_state=0)
X, Y = data.foreground, data.background


class Widest(Contrastive):
    """Of the features themselves, those with the largest contrast of variances."""

    _rotates = False

    def __init__(self, n_components=2, *, gamma=1.0, background_label=None, scale=None, solver="eigh"):
        self.n_components = n_components
        self.gamma = gamma
        self.background_label = background_label
        self.scale = scale
        self.solver = solver

    def _maximum(self, C, r, start=None):
        V = np.eye(C.size)[:, np.argsort(-C.diagonal())[:r]]
        values = np.sum(V * C.matmul(V), axis=0)
        return Solution(Spectrum(values, V, C.images(V)), np.ones(r), 0.0, bool(values[-1] > 0), eigenvectors=False)


class Scaled(ContraPCA):
    """ContraPCA with settings of a laboratory, and one argument."""

    def __init__(self, n_components=2):
        super().__init__(n_components, scale="pooled", n_latent=5, shorten=False)

    def fit(self, X, y=None, *, background=None):
        return super().fit(X, y, background=background)


class Plain(CPCA):
    """CPCA without a gamma to set."""

    def __init__(self, n_components=2):
        super().__init__(n_components)


class Smoothed(ContrastSolver):
    """CPCA whose parameter is how little the background counts, at most 1, or "auto"."""

    def __init__(self, n_components=2, *, smoothing=0.5, background_label=None, scale=None, solver="auto"):
        self.n_components = n_components
        self.smoothing = smoothing
        self.background_label = background_label
        self.scale = scale
        self.solver = solver

    def _strength(self):
        return None if self.smoothing == "auto" else 1 - self.smoothing

    def _with_strength(self, gamma):
        self.smoothing = 1 - gamma
        return self


MODELS = [Widest(), Scaled(), Plain(), Smoothed()]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_everything_takes_it(model, tmp_path, need):
    need("jinja2")
    fitted = clone(model).fit(X, background=Y)
    assert fitted.transform(X).shape == (len(X), 2)
    found = held_out_contrast(model, X, background=Y)
    assert np.isfinite(found.log_ratios).all()
    assert bootstrap(fitted, X, background=Y, n_resamples=20, progress=False).W.shape[1] == 20
    assert GammaSearch(model, gammas=[0.1, 0.4], n_folds=2).fit(X, background=Y).best_gamma_ in (0.1, 0.4)
    path = contrast_path(model, X, background=Y, gammas=[0.1, 0.4])
    assert path.model(0.4).transform(X).shape == (len(X), 2)
    report(X, fitted, background=Y, output=tmp_path / "page.html", progress=False)
    assert f"import {type(model).__name__}" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_settings_of_a_subclass_stay_in_subsets_and_on_paths():
    """Arguments that it does not have cannot be set, but what it has decided holds."""
    mine, ours = Scaled(), ContraPCA(scale="pooled", n_latent=5, shorten=False)
    left, right = (held_out_contrast(model, X, background=Y) for model in (mine, ours))
    np.testing.assert_array_equal(left.log_ratios, right.log_ratios)
    left, right = (contrast_path(model, X, background=Y, gammas=[0.3]) for model in (mine, ours))
    np.testing.assert_array_equal(left.components(0.3), right.components(0.3))
    left, right = (held_out_contrast(model, X, background=Y) for model in (Plain(), CPCA()))
    assert left.gamma == right.gamma
    np.testing.assert_array_equal(left.log_ratios, right.log_ratios)


def test_any_strength_can_be_left_to_halves_of_the_rows():
    mine, ours = (model.fit(X, background=Y).fit_ for model in (Smoothed(smoothing="auto"), CPCA()))
    assert mine.gamma == ours.gamma
    assert mine.limit == ours.limit
    np.testing.assert_allclose(mine.components, ours.components, atol=1e-9)
    found = held_out_contrast(Smoothed(smoothing="auto"), X, background=Y)
    assert found.gamma == held_out_contrast(CPCA(), X, background=Y).gamma


def test_features_stay_features_in_wide_tables():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 24, 80))
    left[:, [3, 40]] *= [9, 6]
    fitted = Widest().fit(left, background=right)
    assert np.flatnonzero(fitted.components_.any(axis=0)).tolist() == [3, 40]
    refits = bootstrap(fitted, left, background=right, n_resamples=20, progress=False)
    assert np.count_nonzero(np.abs(refits.W) > 1e-12) == refits.W.shape[1] * 2
    found = held_out_contrast(Widest(), left, background=right)
    assert np.all(found.ratios > 9)
    assert np.all(found.agreement > 0.99)


def test_compared_with_all_others():
    left, right = X[:, :12], Y[:, :12]
    found = compare(left, background=right, estimators=MODELS, progress=False)
    names = [entry.method for entry in found.entries if not entry.failure]
    assert {"Scaled", "Plain"} <= set(names)
    assert "Widest at gamma 1" in names
    ours = compare(left, background=right, progress=False)
    assert {entry.name: entry.score for entry in ours.entries}.items() <= {
        entry.name: entry.score for entry in found.entries
    }.items()


@pytest.mark.parametrize("other", [PPCA(), "PCPCA", CPCA])
def test_what_cannot_be_compared(other):
    with pytest.raises(TypeError, match="compare takes estimators of contrapca that have a background"):
        compare(X, background=Y, estimators=[other])


def test_files_are_of_our_own(tmp_path):
    with pytest.raises(TypeError, match="only contrapca's own estimators can"):
        Widest().fit(X, background=Y).save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())
    assert "Widest" not in contrapca.__all__
