"""Pictures of draws: the data they show, and that they are drawn."""

import numpy as np
import pytest

from contrapca import CPCA, PCPCA, bootstrap, plots
from contrapca.datasets import make_toy
from contrapca.exceptions import MissingExtraError


@pytest.fixture(scope="module")
def toy():
    data = make_toy(100, 100, kind="posterior", random_state=0)
    model = PCPCA(1, gamma=0.6).fit(data.foreground, background=data.background)
    return data, bootstrap(model, data.foreground, background=data.background, n_resamples=40, random_state=0)


def test_data(toy, groups):
    _, posterior = toy
    draws, estimate = plots.subspace_draws_data(posterior, 25)
    assert draws.shape == (25, 2)
    np.testing.assert_allclose(np.linalg.norm(draws, axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(estimate), 1)
    X, Y = groups
    wide = bootstrap(PCPCA(2, gamma=0.3).fit(X, background=Y), X, background=Y, n_resamples=30, random_state=0)
    data = plots.loading_intervals_data(wide, 1, 5)
    assert len(data["feature"]) == 5
    assert np.all(np.diff(np.abs(data["estimate"])) <= 0)
    assert np.all((data["lower"] <= data["median"]) & (data["median"] <= data["upper"]))
    with pytest.raises(ValueError, match="component=2"):
        plots.loading_intervals_data(wide, 2)
    with pytest.raises(ValueError, match="12 and 2"):
        plots.subspace_draws_data(wide)
    directions = bootstrap(CPCA(1, gamma=0.3).fit(X, background=Y), X, background=Y, n_resamples=30, random_state=0)
    assert plots.trace_data(directions)[0].startswith("largest angle")
    assert plots.trace_data(wide)[1].shape == (1, 30)


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
