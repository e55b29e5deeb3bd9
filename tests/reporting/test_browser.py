"""The report in a real browser, opened from disk.

Needs Chromium (Debian's package, or the program that CONTRAPCA_CHROMIUM names) and playwright.
"""

import os
import shutil

import numpy as np
import pytest

from conftest import skip
from contrapca import PCPCA, report
from contrapca.datasets import make_hidden_clusters
from contrapca.reporting._subject import examine

FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
NASTY = """<img src=x onerror=alert(1)> "quotes" & 'more' </script><b>bold</b>"""

COORDINATES = (
    """['x', 'y'].map((name) => document.getElementById('scatter').data.flatMap((trace) => Array.from(trace[name])))"""
)
MOVE_SLIDER = """(g) => {
  const slider = document.getElementById('gamma');
  slider.value = g;
  slider.dispatchEvent(new Event('input'));
}"""
FOCUSABLE = """Array.from(document.querySelectorAll('a[href], button, input, select, pre'))
  .filter((element) => element.tabIndex >= 0).map((element) => element.id || element.className)"""
OUTERMOST_CASE = """() => {
  const x = Array.from(document.getElementById('scatter').data[1].x);
  return x.indexOf(Math.max(...x));
}"""
PLACE_OF_A_CASE = """(i) => {
  const plot = document.getElementById('scatter'), box = plot.getBoundingClientRect(), layout = plot._fullLayout;
  return [
    box.left + layout._size.l + layout.xaxis.d2p(plot.data[1].x[i]),
    box.top + layout._size.t + layout.yaxis.d2p(plot.data[1].y[i]),
  ];
}"""


@pytest.fixture(scope="module")
def browser(need):
    for library in ("plotly", "jinja2", "pandas"):
        need(library)
    playwright = need("playwright.sync_api")
    names = (os.environ.get("CONTRAPCA_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    program = next((found for name in names if name and (found := shutil.which(name))), None)
    if program is None:
        skip("no Chromium: install it (Debian: apt-get install chromium) or name it in CONTRAPCA_CHROMIUM")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def case(tmp_path_factory, need):
    """A report about tables whose every text is hostile, with uncertainty: (file, subject, names, labels)."""
    pandas = need("pandas")
    data = make_hidden_clusters(300, 200, 10, random_state=0)
    columns = [f"{NASTY} {j}" for j in range(10)]
    X = pandas.DataFrame(data.foreground, columns=columns, index=[f"{NASTY} row {i}" for i in range(300)])
    Y = pandas.DataFrame(data.background, columns=columns)
    labels = np.where(data.labels % 2 == 0, "even", NASTY)
    model = PCPCA(3, gamma=0.5).fit(X, background=Y)
    refits = model.bootstrap(X, background=Y, n_resamples=20, random_state=0)
    file = tmp_path_factory.mktemp("report") / 'a "report" & <b>.html'
    hostile = {"title": NASTY, "sources": [NASTY], "code": NASTY}
    report(model, X, background=Y, labels=labels, output=file, uncertainty=refits, **hostile)
    return file, examine(model, X, Y, labels, None, None, None, None, None, False), X, labels


class Page:
    """A page with what it complained about and asked for."""

    def __init__(self, browser, file, **options):
        self.page = browser.new_page(**options)
        self.complaints, self.requests = [], []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-ready=true]", timeout=60_000)

    def _hear(self, message):
        if message.type == "error":
            self.complaints.append(message.text)

    def coordinates(self):
        x, y = self.page.evaluate(COORDINATES)
        return np.array([x, y], dtype=float).T

    def set_slider(self, g):
        self.page.evaluate(MOVE_SLIDER, g)


@pytest.fixture
def opened(browser, case):
    pages = []

    def opener(**options):
        pages.append(Page(browser, case[0], **options))
        return pages[-1]

    yield opener
    for page in pages:
        page.page.close()


def aligned(subject, g):
    X, Y = subject.rows
    X = X[np.argsort(subject.classes, kind="stable")]  # points of a group stand together
    background = subject.path.aligned(Y, center="background", start=subject.start)[g]
    return np.concatenate([background, subject.path.aligned(X, start=subject.start)[g]])


def test_the_slider_moves_points_to_the_latents_of_that_gamma(opened, case):
    page, subject = opened(), case[1]
    assert np.abs(page.coordinates() - aligned(subject, subject.start)[:, :2]).max() < 1e-6
    for g in (0, 17, len(subject.path) - 1):
        page.set_slider(g)
        expected = aligned(subject, g)[:, :2]
        assert np.abs(page.coordinates() - expected).max() < 1e-6 * np.abs(expected).max()
        assert f"gamma = {float(f'{subject.path.gammas[g]:.4g}'):g}" in page.page.inner_text("#readout")
    assert np.abs(aligned(subject, 0) - aligned(subject, subject.start)).max() > 0.1  # there was something to move
    page.page.select_option("#vertical", "2")
    expected = aligned(subject, len(subject.path) - 1)[:, [0, 2]]
    assert np.abs(page.coordinates() - expected).max() < 1e-6 * np.abs(expected).max()


def test_bars_follow_the_slider(opened, case):
    page, subject = opened(), case[1]
    page.set_slider(0)
    W = subject.path.loadings(subject.path.gammas[0]) @ subject.path.turns(subject.start)[0]
    top = int(np.argmax(np.abs(W[:, 1])))
    row = page.page.locator("#loadings tbody").nth(1).locator("tr").first
    assert row.locator("th").inner_text() == subject.path.feature_names[top]
    assert float(row.locator(".value").inner_text()) == pytest.approx(W[top, 1], rel=1e-2)


def test_play_and_keyboard(opened, case):
    page, start = opened(), case[1].start
    page.page.focus("#gamma")
    page.page.keyboard.press("ArrowLeft")
    assert page.page.evaluate("Number(document.getElementById('gamma').value)") == start - 1
    before = page.coordinates()
    page.page.focus("#play")
    page.page.keyboard.press("Space")
    page.page.wait_for_function(f"Number(document.getElementById('gamma').value) >= {start + 2}", timeout=20_000)
    page.page.keyboard.press("Space")
    assert page.page.get_attribute("#play", "aria-pressed") == "false"
    assert np.abs(page.coordinates() - before).max() > 0
    page.page.focus("#reset")
    page.page.keyboard.press("Enter")
    assert page.page.evaluate("Number(document.getElementById('gamma').value)") == start
    order = page.page.evaluate(FOCUSABLE)
    assert order[0] == "skip"
    assert {"play", "gamma", "reset", "horizontal", "vertical", "group"} <= set(order)


def test_the_legend_toggles_a_group(opened, case):
    page = opened()
    button = page.page.locator("#legend button", has_text="even")
    button.click()
    shown = "document.getElementById('scatter')._fullData.map((trace) => trace.visible)"
    assert page.page.evaluate(shown) == [True, True, False]
    assert button.get_attribute("aria-pressed") == "false"
    page.set_slider(5)
    assert page.page.evaluate(shown) == [True, True, False]
    button.click()
    assert page.page.evaluate(shown) == [True, True, True]


def test_hostile_text_is_shown_as_text_and_nothing_is_asked_for(opened, case):
    page, X = opened(), case[2]
    visible = page.page.inner_text("body")
    for text in (NASTY, f"{NASTY} 0", f"{NASTY} (150)"):
        assert text in visible
    assert page.page.title() == NASTY
    assert page.page.evaluate("document.querySelectorAll('img, main b').length") == 0
    page.page.evaluate("document.getElementById('scatter').scrollIntoView({ block: 'center' })")
    outermost = page.page.evaluate(OUTERMOST_CASE)
    point = page.page.evaluate(PLACE_OF_A_CASE, outermost)
    page.page.mouse.move(point[0] + 40, point[1] + 40)
    page.page.mouse.move(*point, steps=5)
    page.page.wait_for_selector("#tooltip:not([hidden])", timeout=10_000)
    shown = X.index[np.argsort(case[3], kind="stable")[outermost]]
    assert page.page.inner_text("#tooltip").startswith(f"{shown}\n{NASTY}\n")
    page.set_slider(3)
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith(("data:", "blob:"))] == [case[0].as_uri()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_screens_do_not_scroll_sideways(opened, scheme):
    page = opened(viewport={"width": 360, "height": 700}, color_scheme=scheme)
    width, window = page.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= window
    paper = page.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_one_component_and_a_scale_of_labels(browser, tmp_path):
    data = make_hidden_clusters(60, 50, 8, random_state=0)
    model = PCPCA(1, gamma=0.3).fit(data.foreground, background=data.background)
    given = {"background": data.background, "labels": np.arange(60.0)}
    report(model, data.foreground, **given, output=tmp_path / "one.html")
    page = Page(browser, tmp_path / "one.html")
    found = page.coordinates()[50:, 0]
    expected = model.transform(data.foreground)[:, 0]
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()
    colours = page.page.evaluate("document.getElementById('scatter').data.map((trace) => trace.marker.color)")
    assert isinstance(colours[0], str)
    assert len(set(colours[1])) > 40
    assert page.complaints == []
    page.page.close()
