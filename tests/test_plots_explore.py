"""Pictures of contrasts: what they show."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from contrapca import PCPCA, PPCA, ContraPCA, contrast_path, plots
from contrapca.datasets import make_hidden_clusters

DATA = make_hidden_clusters(120, 100, 12, random_state=0)
X, Y = DATA.foreground, DATA.background


@pytest.fixture(scope="module")
def path():
    return contrast_path(PCPCA(3), X, background=Y)


@pytest.fixture(scope="module")
def model(path):
    return path.model(path.gammas[30])


@pytest.fixture
def pyplot(need):
    pyplot = need("matplotlib.pyplot")
    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


def test_ellipses_contain_95_percent(pyplot):
    rng = np.random.default_rng(0)
    table = rng.standard_normal((20_000, 4)) * [4.0, 2.0, 1.0, 1.0] @ np.linalg.qr(rng.normal(size=(4, 4)))[0] + 3
    model = PPCA(2).fit(table)
    points = model.transform(table)
    edge = plots.latent_scatter(model, table).lines[0].get_xydata() - points.mean(axis=0)
    inverse = np.linalg.inv(np.cov(points.T))
    np.testing.assert_allclose(np.einsum("ij,jk,ik->i", edge, inverse, edge), 5.9915, rtol=1e-3)
    distances = np.einsum("ij,jk,ik->i", points - points.mean(axis=0), inverse, points - points.mean(axis=0))
    assert np.mean(distances < 5.9915) == pytest.approx(0.95, abs=0.01)


def test_latent_scatter(model, pyplot):
    ax = plots.latent_scatter(model, X, background=Y, components=(1, 3))
    controls, cases = (np.asarray(dots.get_offsets()) for dots in ax.collections)
    np.testing.assert_allclose(cases, model.transform(X)[:, [0, 2]])
    np.testing.assert_allclose(controls, model.transform(Y, center="background")[:, [0, 2]])
    assert ax.get_ylabel().startswith("component 3\n")
    assert "% of case variance" not in ax.get_ylabel()
    assert "% of control variance" in ax.get_ylabel()
    pyplot.close("all")
    assert "control" not in plots.latent_scatter(PPCA(2).fit(X), X).get_xlabel()


def test_gamma_panel(path, pyplot):
    figure = plots.gamma_panel(path, X, background=Y, k=5)
    panels = [ax for ax in figure.axes if ax.get_visible()]
    assert panels[0].get_title() == "gamma = 0"
    assert len(panels) == 5
    controls, cases = (np.asarray(dots.get_offsets()) for dots in panels[-1].collections)
    np.testing.assert_allclose(cases, path.aligned(X)[-1][:, :2])
    np.testing.assert_allclose(controls, path.aligned(Y, center="background")[-1][:, :2])
    assert "% of case" in panels[0].get_xlabel()


def test_path_curves(path, pyplot):
    foreground, background, limit = plots.path_curves(path).lines
    np.testing.assert_allclose(foreground.get_ydata(), path.shares().foreground.sum(axis=1))
    np.testing.assert_allclose(background.get_ydata(), path.background_share.sum(axis=1))
    assert limit.get_xdata()[0] == path.gamma_max


def test_loadings(model, pyplot):
    ax = plots.loadings(model, 2, n_features=4)
    lengths = [bar.get_width() for bar in ax.patches]
    order = np.argsort(-np.abs(model.loadings_[:, 1]))[:4]
    np.testing.assert_allclose(lengths, model.loadings_[order, 1])
    assert ax.get_xlabel() == "loading on component 2"


def test_biplot(model, pyplot):
    ax = plots.biplot(model, X, background=Y, n_features=6)
    controls, cases = (np.asarray(dots.get_offsets()) for dots in ax.collections)
    np.testing.assert_allclose(controls, model.transform(Y, center="background")[:, :2])
    tips = np.array([text.xy for text in ax.texts if not text.get_text()])
    assert tips.shape == (6, 2)
    assert np.abs(tips).max() <= np.abs(cases).max()
    assert len(ax.get_legend().get_texts()) == 2


def test_scree(path, pyplot):
    ax = plots.scree(path, path.gammas[10])
    heights = np.array([bar.get_height() for bar in ax.patches])
    eigenvalues = ax.lines[0].get_ydata()
    np.testing.assert_allclose(eigenvalues, heights[:3] - path.gammas[10] * heights[3:], atol=1e-8)


def test_refused(path):
    one = contrast_path(PCPCA(1), X, background=Y)
    for call in (lambda: plots.gamma_panel(one, X), lambda: plots.biplot(one.model(one.gammas[5]), X)):
        with pytest.raises(ValueError, match="two components"):
            call()
    model = path.model(path.gammas[5])
    for components in ((0, 1), (1, 4)):
        with pytest.raises(ValueError, match=r"components=\(\d, \d\) must be two of .* counting from 1"):
            plots.latent_scatter(model, X, components=components)
    for component in (0, 4):
        with pytest.raises(ValueError, match=rf"component={component} must be one of this model's 3 .* from 1"):
            plots.loadings(model, component)
    with pytest.raises(ValueError, match="outside this path"):
        plots.scree(path, 50.0)


@pytest.mark.parametrize("draw", [plots.latent_scatter, plots.biplot, plots.loadings])
def test_models_that_are_not_fitted(draw):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        draw(ContraPCA(2), *[X] * (draw is not plots.loadings))


def test_figures(path, model, need):
    pyplot = need("matplotlib.pyplot")
    figure, axes = pyplot.subplots(2, 2, figsize=(12, 8))
    axes = axes.ravel()
    drawn = [
        plots.latent_scatter(model, X, background=Y, labels=DATA.labels, ax=axes[0]),
        plots.path_curves(path, ax=axes[1]),
        plots.loadings(model, ax=axes[2]),
        plots.scree(path, 0.5, ax=axes[3]),
    ]
    assert drawn == list(axes[:4])
    assert len(axes[0].lines) == 5  # an ellipse for each of four classes and the background
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in (axes[0], axes[1], axes[3]))
    figure.canvas.draw()
    panel = plots.gamma_panel(path, X, background=Y, labels=DATA.labels, k=4)
    assert sum(ax.get_visible() for ax in panel.axes) == 4
    panel.canvas.draw()
    pyplot.close("all")


# ---------------------------------------------------------------- fit for print


def inside(figure):
    """Every word of a figure, and whether it lies within the figure; ticks beyond the axes are not drawn."""
    figure.draw_without_rendering()
    edge = figure.bbox
    texts = [
        text
        for text in figure.findobj(lambda part: hasattr(part, "get_text"))
        if text.get_text().strip("\N{MINUS SIGN}-.0123456789")
    ]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_visible()]
    return {name: edge.x0 - 1 <= box.x0 and box.x1 <= edge.x1 + 1 and box.y0 >= edge.y0 - 1 for name, box in boxes}


@pytest.mark.parametrize("labels", ["none", "classes", "numbers"])
def test_nothing_is_cut_and_the_legend_is_beside_the_data(model, pyplot, labels):
    given = {"none": None, "classes": DATA.labels, "numbers": X[:, 0]}[labels]
    ax = plots.latent_scatter(model, X, background=Y, labels=given)
    assert all(inside(ax.figure).values())
    assert not ax.get_legend().get_window_extent().overlaps(ax.get_window_extent())
    assert tuple(ax.figure.get_size_inches()) == (6.4, 4.2)
    assert ax.get_xlabel().startswith("component 1\n")


def test_numbers_have_a_colour_bar_and_classes_have_not(model, pyplot, need):
    numbers = X[:, 0].copy()
    numbers[:9] = np.nan
    ax = plots.latent_scatter(model, X, labels=need("pandas").Series(numbers, name="age"))
    assert len(ax.figure.axes) == 2  # the second is the colour bar
    assert ax.figure.axes[1].get_ylabel() == "age"
    assert ax.get_legend().legend_handles[-1].get_facecolor().tolist()[0][:3] == pytest.approx(
        [0.42, 0.46, 0.5], abs=0.01
    )
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["no label", "cases (foreground)"]
    pyplot.close("all")
    names = [f"cluster {i % 18 + 1}" for i in range(len(X))]
    ax = plots.latent_scatter(model, X, labels=names, ellipses=False)
    assert len(ax.figure.axes) == 1
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert shown == [f"cluster {k}" for k in range(1, 19)]  # in natural order
    styles = {(tuple(drawn.get_facecolor()[0]), drawn.get_paths()[0].vertices.tobytes()) for drawn in ax.collections}
    assert len(styles) == 18  # no two classes look alike


def data_share(figure):
    """The part of a figure's width, and of its height, that the panels of a row have."""
    figure.draw_without_rendering()
    boxes = [ax.get_window_extent() for ax in figure.axes]
    return sum(box.width for box in boxes) / figure.bbox.width, boxes[0].height / figure.bbox.height


@pytest.mark.parametrize("many", [3, 60])
def test_many_classes_with_long_names_leave_room_for_the_data(model, path, pyplot, many):
    names = np.array([f"a treatment with a long name and a dose of {i % many} mg" for i in range(120)], dtype=object)
    names[:3] = None
    ax = plots.latent_scatter(model, X, background=Y, labels=names)
    figure = plots.gamma_panel(path, X, background=Y, labels=names, k=3)
    for drawn, legend in ((ax.figure, ax.get_legend()), (figure, figure.legends[0])):
        assert min(data_share(drawn)) > 0.5
        assert all(inside(drawn).values())
        entries = [text.get_text() for text in legend.get_texts()]
        assert len(entries) == 2 + min(many, 20)
        assert entries[1] == f"a treatment w…a dose of {0 if many == 3 else 3} mg"
        assert entries[-1] == "no label"
        assert ("all other labels" in entries) == (many > 20)


def test_one_component_has_a_strip_for_each_class(pyplot):
    model = PCPCA(1, gamma=0.3).fit(X, background=Y)
    for labels, names in ((DATA.labels, list("0123")), (X[:, 0], ["cases (foreground)"])):
        ax = plots.latent_scatter(model, X, background=Y, labels=labels)
        assert [text.get_text() for text in ax.get_yticklabels()] == ["controls (background)", *names]
        assert (ax.get_ylabel(), ax.get_legend()) == ("", None)
        for k, dots in enumerate(ax.collections[: 1 + len(names)]):
            places = dots.get_offsets()
            members = slice(None) if len(names) == 1 else DATA.labels == k - 1
            rows = model.transform(Y, center="background") if k == 0 else model.transform(X)[members]
            np.testing.assert_allclose(places[:, :1], rows)
            assert np.abs(places[:, 1] - k).max() < 0.5
        assert all(inside(ax.figure).values())
        pyplot.close("all")


def test_a_figure_of_ones_own_is_laid_out(path, pyplot):
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3))
    plots.path_curves(path, ax=axes[0])
    plots.scree(path, 0.5, ax=axes[1])
    assert all(inside(figure).values())
    panel = plots.gamma_panel(path, X, background=Y, labels=DATA.labels, k=3)
    assert all(inside(panel).values())
    assert len(panel.legends) == 1


def test_components_are_counted_from_1_on_figures(path, pyplot):
    ax = plots.scree(path, 0.5)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "3"]


def test_arrows_and_their_names_are_within_the_axes(pyplot):
    """Also where one component spreads the rows far more than the other."""
    scale = np.where(np.arange(12) < 6, 30.0, 1.0)
    model = PPCA(2).fit(X * scale)
    for options in ({"n_features": 12}, {"labels": DATA.labels}):
        ax = plots.biplot(model, X * scale, **options)
        ax.figure.canvas.draw()
        frame = ax.get_window_extent()
        arrows = ax.transData.transform([text.xy for text in ax.texts if not text.get_text()])
        assert len(arrows) >= 8
        assert all(frame.contains(*tip) for tip in arrows)
        boxes = [text.get_window_extent() for text in ax.texts if text.get_text()]
        assert len(boxes) >= 8
        assert all(frame.x0 - 1 <= box.x0 and box.x1 <= frame.x1 + 1 for box in boxes)
        assert all(frame.y0 - 1 <= box.y0 and box.y1 <= frame.y1 + 1 for box in boxes)
        pyplot.close("all")


def test_long_names_of_features_leave_room_for_the_data(need, pyplot):
    names = [f"A measurement that somebody named at length, fasting, in mmol/L ({k})" for k in range(12)]
    table = need("pandas").DataFrame(X, columns=names)
    model = PPCA(2).fit(table)
    ax = plots.biplot(model, table)
    low, high = ax.get_xlim()
    assert np.ptp(model.transform(table)[:, 0]) > 0.5 * (high - low)
    pyplot.close("all")
    assert min(data_share(plots.loadings(model).figure)) > 0.5


def test_values_that_are_spread_out():
    from contrapca.plots._explore import moved_apart

    rng = np.random.default_rng(0)
    values = rng.normal(size=9)
    moved = moved_apart(values, 0.5)
    np.testing.assert_array_equal(np.argsort(moved), np.argsort(values))
    assert np.diff(np.sort(moved)).min() >= 0.5 - 1e-12
    assert moved.mean() == pytest.approx(values.mean())
    np.testing.assert_allclose(moved_apart(np.array([3.0, 0.0, 9.0]), 1.0), [3, 0, 9])
