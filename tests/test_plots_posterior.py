"""Pictures of draws: the data they show, and that they are drawn."""

import numpy as np
import pytest

from contrapca import CPCA, PCPCA, ContraPCA, bootstrap, plots
from contrapca.exceptions import MissingExtraError
from experiments._generators import make_toy


@pytest.fixture(scope="module")
def toy():
    data = make_toy(100, 100, kind="posterior", random_state=0)
    model = PCPCA(1, gamma=0.6).fit(data.foreground, background=data.background)
    return data, bootstrap(model, data.foreground, background=data.background, n_resamples=40, random_state=0)


def test_what_is_drawn(toy, groups, need):
    pyplot = need("matplotlib.pyplot")
    data, posterior = toy
    ax = plots.subspace_draws(posterior, data.foreground, n_draws=25)
    steps = np.array([np.diff(line.get_xydata(), axis=0)[0] for line in ax.lines])
    directions = steps / np.linalg.norm(steps, axis=1, keepdims=True)
    estimate = posterior.estimate[:, 0] / np.linalg.norm(posterior.estimate)
    np.testing.assert_allclose(directions[-1], estimate)
    assert len(directions) == 26
    assert 0.8 < np.abs(directions[:-1] @ estimate).min() < 1
    pyplot.close("all")
    X, Y = groups
    wide = bootstrap(PCPCA(2, gamma=0.3).fit(X, background=Y), X, background=Y, n_resamples=30, random_state=0)
    median, estimates = plots.loading_intervals(wide, 2, n_features=5).lines[1:]
    top = wide.largest_loadings(2, 5)
    np.testing.assert_allclose(estimates.get_xdata(), top["estimate"])
    np.testing.assert_allclose(median.get_xdata(), top["median"])
    np.testing.assert_allclose(top["estimate"], wide.estimate[np.argsort(-np.abs(wide.estimate[:, 1]))[:5], 1])
    assert np.all((top["lower"] <= top["median"]) & (top["median"] <= top["upper"]))
    pyplot.close("all")
    for component in (0, 3):
        with pytest.raises(ValueError, match=f"component={component} must be one of the 2 components, counting from 1"):
            plots.loading_intervals(wide, component)
    with pytest.raises(ValueError, match="12 and 2"):
        plots.subspace_draws(wide, X)
    directions = bootstrap(CPCA(1, gamma=0.3).fit(X, background=Y), X, background=Y, n_resamples=30, random_state=0)
    assert plots.trace(directions).get_ylabel().startswith("largest angle")
    pyplot.close("all")
    [chain] = plots.trace(wide).lines
    np.testing.assert_allclose(chain.get_ydata(), wide.noise_variance[0])
    pyplot.close("all")


def test_draws_name_their_estimator(groups):
    X, Y = groups
    model = ContraPCA(2).fit(X, background=Y)
    draws = bootstrap(model, X, background=Y, n_resamples=10, random_state=0)
    assert repr(draws).startswith("Bootstrap(ContraPCA: 10 refits")


def test_figures(toy, need):
    pyplot = need("matplotlib.pyplot")
    data, posterior = toy
    figure, axes = pyplot.subplots(1, 3)
    drawn = [
        plots.subspace_draws(posterior, data.foreground, background=data.background, n_draws=10, ax=axes[0]),
        plots.loading_intervals(posterior, ax=axes[1]),
        plots.trace(posterior, ax=axes[2]),
    ]
    assert drawn == list(axes)
    assert len(axes[0].lines) == 11
    assert [label.get_text() for label in axes[1].get_yticklabels()] != []
    assert axes[1].get_title() == "bootstrap"
    assert all(ax.get_xlabel() for ax in axes)
    pyplot.close(figure)
    assert plots.trace(posterior) is pyplot.gca()
    pyplot.close("all")


def test_without_matplotlib(toy, monkeypatch):
    import importlib

    real = importlib.import_module

    def absent(name, *args):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(name, name="matplotlib")
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingExtraError, match="contrapca\\[plot\\]"):
        plots.trace(toy[1])
