"""The report in real browsers: what readers take away, and whether all of them can read it."""

import csv
import io
import struct
from importlib import resources
from xml.etree import ElementTree

import numpy as np
import pytest

from browsing import NASTY

pytestmark = pytest.mark.slow

FOCUSABLE = """Array.from(document.querySelectorAll('a[href], button, input, select, pre, [tabindex]'))
  .filter((element) => element.tabIndex >= 0 && element.checkVisibility())
  .map((element) => element.id || element.dataset.mode || element.className)"""
SIDEWAYS = "[document.documentElement.scrollWidth, innerWidth]"
CORNER = """() => {
  const canvas = document.querySelector('#scatter canvas');
  return Array.from(canvas.getContext('2d').getImageData(1, 1, 1, 1).data);
}"""
SVG = "{http://www.w3.org/2000/svg}"


# ---------------------------------------------------------------------- taking away


def test_pictures_have_title_and_legend(opened, case):
    page = opened()
    page.click("#arrows")
    page.locator("#loadings button.name").first.click()
    name, content = page.saved("#save-svg")
    assert name == "picture_gamma_0.5.svg"
    root = ElementTree.fromstring(content)  # well-formed, whatever the names hold
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert texts[0] == NASTY
    assert {"controls", "cases: even"} <= set(texts)
    assert any(text.startswith("component 1 (cases ") for text in texts)
    assert {page.inner_text("#scale-low"), page.inner_text("#scale-high")} <= set(texts)
    assert page.inner_text("#scale-low").startswith("≤ ")
    assert not list(root.iter(f"{SVG}img")) + list(root.iter(f"{SVG}script"))
    marks = [item for kind in ("circle", "path") for item in root.iter(SVG + kind)]
    assert len(marks) >= 500 + 3 + 8  # points, legend, arrows
    name, content = page.saved("#save-png")
    assert name == "picture_gamma_0.5.png"
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) == (1920, 1280)
    assert page.complaints == []


def test_tables_hold_every_row_and_every_feature(opened, case):
    page, subject = opened(), case.subject
    g = 7
    page.set_slider(g)
    name, content = page.saved("#save-coordinates")
    assert name.startswith("coordinates_gamma_")
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert [row["group"] for row in rows] == ["case"] * 300 + ["control"] * 200
    assert [row["row"] for row in rows] == [*case.X.index, *(str(i + 1) for i in range(200))]
    assert [row["label"] for row in rows] == [*subject.classes, *[""] * 200]
    found = np.array([[float(row[f"component_{k}"]) for k in (1, 2, 3)] for row in rows])
    X, Y = subject.rows
    expected = np.concatenate(
        [
            subject.path.aligned(X, start=subject.start)[g],
            subject.path.aligned(Y, center="background", start=subject.start)[g],
        ]
    )
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()
    _, content = page.saved("#save-loadings")
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert [row["feature"] for row in rows] == subject.path.feature_names
    found = np.array([[float(row[f"component_{k}"]) for k in (1, 2, 3)] for row in rows])
    expected = subject.path.loadings(subject.path.gammas[g]) @ subject.path.turns(subject.start)[g]
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


def test_texts_can_be_copied(opened, case):
    page = opened()
    methods = page.inner_text("#methods")
    assert methods.startswith("We compared 300 cases with 200 controls, measured on 10 features, by probabilistic")
    assert "gamma = 0.5000" in methods
    assert "https://doi.org/10.48550/arXiv.2012.07977" in page.inner_text("#citation-1")
    page.click("[data-copies=methods]")
    page.locator("[data-copies=methods]", has_text="Copied").wait_for(timeout=5000)  # browsers copy in their own time
    assert page.inner_text("[data-copies=methods]") == "Copied"


# ---------------------------------------------------------------------- for every reader


def axe_violations(page):
    """What axe-core finds, after the page has been used: contrast, names, roles and so on."""
    page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    page.click("#compare")
    page.click("#arrows")
    page.fill("#search", "7")
    page.locator("#feature-table button.name").click()
    page.locator("#legend button").last.click()
    page.focus("#scatter")
    for key in ("ArrowRight", "Enter"):
        page.keyboard.press(key)
    found = page.evaluate("axe.run()")
    assert {"color-contrast", "button-name", "label"} <= {rule["id"] for rule in found["passes"]}
    return [(rule["id"], [node["html"][:200] for node in rule["nodes"]]) for rule in found["violations"]]


def test_axe_finds_nothing(opened, need):
    need("axe_playwright_python")
    page = opened(viewport={"width": 1280, "height": 900})
    assert axe_violations(page) == []
    page.evaluate("document.getElementById('play').textContent = ''")
    page.evaluate("document.getElementById('reset').style.color = '#aaaaaa'")
    again = {rule["id"] for rule in page.evaluate("axe.run()")["violations"]}
    assert {"button-name", "color-contrast"} <= again  # the control: what is wrong is found


def test_axe_finds_nothing_in_the_dark(emulated, need):
    need("axe_playwright_python")
    assert axe_violations(emulated(color_scheme="dark")) == []


def test_everything_is_reached_by_keyboard(opened):
    page = opened()
    order = page.evaluate(FOCUSABLE)
    assert order[0] == "skip"
    wanted = {"colour", "play", "gamma", "reset", "horizontal", "vertical", "scatter", "zoom", "select", "arrows"}
    wanted |= {"compare", "sort"}
    assert wanted | {"group", "name", "search", "save-png", "save-loadings"} <= set(order)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "scatter"  # past the answers


def test_text_alternatives_are_true(opened, case):
    page, path = opened(), case.subject.path
    page.set_slider(3)
    gamma = f"gamma = {float(f'{path.gammas[3]:.4g}'):g}"
    assert gamma in page.get_attribute("#scatter", "aria-label")
    assert gamma == page.get_attribute("#gamma", "aria-valuetext")
    assert "200 controls" in page.get_attribute("#scatter", "aria-label")
    page.locator("#legend button").first.click()
    assert "200 controls" not in page.get_attribute("#scatter", "aria-label")
    share = f"{path.shares().foreground[0].sum():.1%}"
    assert f"from {share} of the cases'" in page.get_attribute("#curves", "aria-label")


def test_narrow_screens_do_not_scroll_sideways(opened):
    page = opened(viewport={"width": 360, "height": 700})
    for button in (None, "#compare", "#arrows"):
        if button:
            page.click(button)
        width, window = page.evaluate(SIDEWAYS)
        assert width <= window
    hidden = "(legend) => legend.scrollHeight - legend.clientHeight"
    assert page.locator("#legend").evaluate(hidden) == 0  # no group is cut


def test_dark_mode(emulated):
    page = emulated(color_scheme="dark")
    colour = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(colour) == "rgb(20, 24, 29)"
    assert max(page.evaluate(CORNER)[:3]) < 80
    if page.context.browser.browser_type.name == "chromium":  # in which it can be changed while the page is open
        page.emulate_media(color_scheme="light")
        page.until(f"{colour} === 'rgb(255, 255, 255)'")
        page.until(f"Math.min(...({CORNER})()) > 200")  # the picture follows


@pytest.mark.parametrize(
    "size",
    [(1280, 800), (1280, 640), (1024, 600), (820, 1180), (390, 844)],
    ids=["desktop", "laptop", "small", "tablet", "phone"],
)
def test_the_picture_stays_in_view(opened, size):
    """While the features scroll, and while the sliders of one and of two settings are used."""
    width, height = size
    page = opened(viewport={"width": width, "height": height})
    last = "Array.from(document.querySelectorAll('#loadings .panel:not([hidden]) tr')).at(-1)"
    sliders = [f"document.getElementById('{name}')" for name in ("gamma", "gamma-b")]
    for pictures, targets in ((["#scatter", "#scatter-b"], [*sliders, last]), (["#scatter"], [sliders[0], last])):
        page.click("#compare")
        for target in targets:
            page.evaluate(f"{target}.scrollIntoView({{ block: 'end' }})")
            below = page.evaluate(f"{target}.getBoundingClientRect().top")
            assert 0 <= below < height
            for name in pictures:
                box = page.locator(name).bounding_box()
                assert box["y"] >= -1, name
                assert box["y"] + box["height"] <= height, name
                assert width > 1000 or box["y"] + box["height"] <= below, name  # covers nothing
        page.evaluate("scrollTo(0, 0)")
    picture, side = (page.locator(name).bounding_box() for name in ("#scatter", "#loadings"))
    if width > 1000:
        assert picture["x"] >= side["x"] + side["width"]  # beside


def test_motion_is_reduced(emulated):
    page = emulated(reduced_motion="reduce")
    page.evaluate("contrapcaReport.show(0)")
    # Timed by the page itself: a busy machine may take long to pass a click on.
    page.evaluate("""() => {
      const gamma = document.getElementById('gamma')
      document.getElementById('play').addEventListener('click', () => {
        const clicked = performance.now()
        const timer = setInterval(() => {
          if (Number(gamma.value) < 1) return
          window.waited = performance.now() - clicked
          clearInterval(timer)
        }, 10)
      }, {once: true})
    }""")
    page.click("#play")
    page.until("window.waited !== undefined")
    assert page.evaluate("window.waited") > 700
    page.click("#play")


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_nothing_is_cut_on_paper(emulated, paper):
    """Printed as wide as the paper: nothing sticks out, all is black on white."""
    inches = {"A4": 8.27, "Letter": 8.5}[paper] - 2 * 14 / 25.4
    page = emulated(color_scheme="dark", viewport={"width": int(96 * inches), "height": 1000})
    page.on_paper()
    width, window = page.evaluate(SIDEWAYS)
    assert width <= window
    cut = """Array.from(document.querySelectorAll('main *')).filter((element) => element.checkVisibility()
      && getComputedStyle(element).overflowX !== 'visible' && element.scrollWidth > element.clientWidth + 1
      && !element.closest('.hidden')).map((element) => element.outerHTML.slice(0, 100))"""
    assert page.evaluate(cut) == []
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.is_visible("#play")
    assert min(page.evaluate(CORNER)) > 200  # the picture, too, is drawn for paper
    assert page.pdf(format=paper)[:5] == b"%PDF-"
