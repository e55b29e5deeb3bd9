"""Pictures of contrasts: their data without drawing, and that they are drawn."""

import numpy as np
import pytest

from contrapca import PCPCA, PPCA, contrast_path, plots
from contrapca.datasets import make_hidden_clusters

DATA = make_hidden_clusters(120, 100, 12, random_state=0)
X, Y = DATA.foreground, DATA.background


@pytest.fixture(scope="module")
def path():
    return contrast_path(PCPCA(3), X, background=Y)


@pytest.fixture(scope="module")
def model(path):
    return path.model(path.gammas[30])


def test_ellipse():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((20_000, 2)) @ [[2.0, 0.5], [0.0, 1.0]] + [3, 4]
    edge = plots.ellipse_data(points) - points.mean(axis=0)
    inverse = np.linalg.inv(np.cov(points.T))
    np.testing.assert_allclose(np.einsum("ij,jk,ik->i", edge, inverse, edge), 5.9915, rtol=1e-3)
    distances = np.einsum("ij,jk,ik->i", points - points.mean(axis=0), inverse, points - points.mean(axis=0))
    assert np.mean(distances < 5.9915) == pytest.approx(0.95, abs=0.01)


def test_latent_scatter_data(model):
    data = plots.latent_scatter_data(model, X, background=Y, components=(0, 2))
    np.testing.assert_array_equal(data["foreground"], model.transform(X)[:, [0, 2]])
    np.testing.assert_array_equal(data["background"], model.transform(Y, center="background")[:, [0, 2]])
    assert "% of foreground" in data["axis_labels"][1]


def test_latents_data_without_a_background():
    assert "background" not in plots.latent_scatter_data(PPCA(2).fit(X), X)["axis_labels"][0]


def test_gamma_panel_data(path):
    panels = plots.gamma_panel_data(path, X, background=Y, k=5)
    assert len(panels) == 5
    assert panels[0]["gamma"] == 0
    assert panels[-1]["foreground"].shape == (120, 2)
    assert "% of foreground" in panels[0]["axis_labels"][0]


def test_path_curves_data(path):
    curves = plots.path_curves_data(path)
    assert np.all((curves["foreground"] > 0) & (curves["foreground"] < 1))
    assert curves["limit"] == path.gamma_max


def test_loadings_data(model):
    top = plots.loadings_data(model, 1, 4)
    assert np.all(np.diff(np.abs(top["loading"])) <= 0)
    assert np.abs(top["loading"][0]) == np.abs(model.loadings_[:, 1]).max()


def test_biplot_data(model):
    arrows = plots.biplot_data(model, X, 6)
    assert arrows["arrows"].shape == (6, 2)
    assert np.abs(arrows["arrows"]).max() <= np.abs(arrows["latents"]).max()


def test_scree_data(path):
    bars = plots.scree_data(path, path.gammas[10])
    np.testing.assert_allclose(bars["eigenvalue"], bars["foreground"] - path.gammas[10] * bars["background"], atol=1e-8)


def test_samples_data(model):
    assert plots.samples_data(model, 4).shape == (4, 12)
    assert plots.samples_data(model, 4, (3, 4)).shape == (4, 3, 4)


def test_refused(path):
    one = contrast_path(PCPCA(1), X, background=Y)
    for call in (lambda: plots.gamma_panel_data(one, X), lambda: plots.biplot_data(one.model(one.gammas[5]), X)):
        with pytest.raises(ValueError, match="two components"):
            call()
    with pytest.raises(ValueError, match=r"components=\(0, 5\)"):
        plots.latent_scatter_data(path.model(path.gammas[5]), X, components=(0, 5))
    with pytest.raises(ValueError, match="outside this path"):
        plots.scree_data(path, 50.0)


def test_figures(path, model, need):
    pyplot = need("matplotlib.pyplot")
    figure, axes = pyplot.subplots(2, 4)
    axes = axes.ravel()
    drawn = [
        plots.latent_scatter(model, X, background=Y, labels=DATA.labels, ax=axes[0]),
        plots.path_curves(path, ax=axes[1]),
        plots.loadings(model, ax=axes[2]),
        plots.biplot(model, X, ax=axes[3]),
        plots.scree(path, 0.5, ax=axes[4]),
        plots.samples(model, 3, ax=axes[5]),
        plots.samples(model, 3, shape=(3, 4), ax=axes[6]),
        plots.latent_scatter(PCPCA(2, gamma=0.2).fit(X, background=Y), X, ellipses=False, ax=axes[7]),
    ]
    assert drawn == list(axes)
    assert len(axes[0].lines) == 5  # an ellipse for each of four classes and the background
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in (axes[0], axes[1], axes[4]))
    figure.canvas.draw()
    panel = plots.gamma_panel(path, X, background=Y, labels=DATA.labels, k=4)
    assert sum(ax.get_visible() for ax in panel.axes) == 4
    panel.canvas.draw()
    pyplot.close("all")
