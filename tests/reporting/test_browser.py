"""The report in real browsers, opened from disk: every control of the picture, and nothing that leaves the page."""

import csv
import io

import numpy as np
import pytest

from browsing import NASTY
from contrapca import PCPCA, ContraPCA, Study, cli, report
from contrapca.datasets import make_hidden_clusters
from contrapca.reporting import _points
from csvfiles import read_csv, write_csv

# Every button of the page but those of groups and features, which have the names of the user's.
BUTTONS = {
    *("play", "reset", "zoom", "move", "select", "zoom-in", "zoom-out", "zoom-off", "arrows", "compare", "more"),
    *("scale-off", "save-png", "save-svg", "save-coordinates", "save-loadings", "save-selection", "clear"),
    *("methods", "citation-1", "bibtex-1", "command", "python"),
}
BUTTONS_FOUND = """Array.from(document.querySelectorAll('button:not(.group):not(.name):not(.sort)'))
  .map((button) => button.dataset.mode || button.dataset.copies || button.id)"""
LINKS_OUT = """Array.from(document.querySelectorAll('*')).flatMap((element) => Array.from(element.attributes)
  .filter(({ name }) => /^(.*:)?(href|src|srcset|action|formaction|data|poster|ping|background)$/.test(name))
  .map(({ value }) => value).filter((value) => !/^(#|data:)/.test(value)))"""
PIXELS = "Array.from(contrapcaReport.pictures[0].x.keys(), (i) => contrapcaReport.pictures[0].pixel(i))"
BOXES = """Array.from(document.querySelectorAll('#scatter .frame, #scatter .arrow'), (element) => {
  const { left, top, right, bottom } = element.getBoundingClientRect();
  return [left, top, right, bottom];
})"""
NAMES = """Array.from(document.querySelectorAll('#scatter .arrow-name'), (element) => {
  const { left, top, right, bottom } = element.getBoundingClientRect();
  return [left, (top + bottom) / 2 - 6, right, (top + bottom) / 2 + 6]; // letters without the blank around them
})"""
# The events of a double click; when it is made by a slow machine, browsers see two clicks.
DOUBLE_CLICK = """(button) => [['click', 1], ['click', 2], ['dblclick', 2]]
  .forEach(([name, detail]) => button.dispatchEvent(new MouseEvent(name, { detail })))"""
ELSEWHERE = "https://example.invalid/"


def aligned(subject, g):
    X, Y = subject.rows
    background = subject.path.aligned(Y, center="background", start=subject.start)[g]
    return np.concatenate([background, subject.path.aligned(X, start=subject.start)[g]])


def close(found, expected):
    return np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


# ---------------------------------------------------------------------- private


def test_hostile_text_is_shown_as_text_and_nothing_is_asked_for(opened, case):
    page = opened()
    visible = page.inner_text("body")
    for text in (NASTY, f"{NASTY} 0", f"cases: {NASTY} (150)"):
        assert text in visible
    assert page.title() == NASTY
    page.click("#arrows")
    page.fill("#search", "onerror")
    outermost = 200 + int(np.argmax(page.coordinates()[200:, 0]))
    page.mouse.move(*page.place(outermost))
    page.wait_for_selector("#scatter .tooltip:not([hidden])", timeout=10_000)
    shown, label = case.X.index[outermost - 200], case.labels[outermost - 200]
    assert page.inner_text("#scatter .tooltip").startswith(f"{shown}\nlabel: {label}\n")
    page.mouse.down()
    page.mouse.up()
    assert page.inner_text("#selection-table tbody th") == shown
    page.locator("#loadings button.name").first.click()
    assert page.inner_text("#scale-name").startswith(NASTY)
    page.set_slider(3)
    assert page.evaluate("document.querySelectorAll('img, main b').length") == 0
    assert page.complaints == []
    assert {url for url in page.requests if not url.startswith(("data:", "blob:"))} <= {case.file.as_uri()}


def test_nothing_leads_out_of_the_page(opened, case):
    page = opened()
    assert set(page.evaluate(BUTTONS_FOUND)) == BUTTONS
    assert page.evaluate(LINKS_OUT) == []
    assert page.evaluate("document.forms.length") == 0
    page.evaluate(f"""() => {{
      const link = document.createElement('a');
      link.href = '{ELSEWHERE}';
      document.body.append(link);
    }}""")
    assert page.evaluate(LINKS_OUT) == [ELSEWHERE]  # the control: a link is found
    assert page.evaluate(f"window.open('{ELSEWHERE}')") is None
    page.evaluate(f"""() => {{
      const form = document.createElement('form'), script = document.createElement('script');
      Object.assign(form, {{ action: '{ELSEWHERE}', method: 'post' }});
      document.body.append(form);
      try {{ form.submit(); }} catch {{ /* Firefox says so */ }}
      script.textContent = 'window.injected = true';
      document.body.append(script);
    }}""")
    sent = page.evaluate(f"fetch('{ELSEWHERE}').then(() => 'sent', () => 'refused')")
    assert sent == "refused"
    assert page.evaluate("window.injected") is None
    assert page.url == case.file.as_uri()
    assert len(page.context.pages) == 1
    assert not [url for url in page.requests if url.startswith("http")]


# ---------------------------------------------------------------------- settings


def test_the_slider_moves_points_to_the_latents_of_that_gamma(opened, case):
    page, subject = opened(), case.subject
    assert close(page.coordinates(), aligned(subject, subject.start)[:, :2])
    for g in (0, 17, len(subject.path) - 1):
        page.set_slider(g)
        assert close(page.coordinates(), aligned(subject, g)[:, :2])
        assert f"gamma = {float(f'{subject.path.gammas[g]:.4g}'):g}" in page.inner_text("#readout")
    assert np.abs(aligned(subject, 0) - aligned(subject, subject.start)).max() > 0.1  # there was something to move
    page.select_option("#vertical", "2")
    assert close(page.coordinates(), aligned(subject, len(subject.path) - 1)[:, [0, 2]])
    assert page.locator("#loadings h3:visible").all_inner_texts() == ["component 1", "component 3"]


def test_axes_say_what_share_of_variance_they_show(opened, case):
    page, subject = opened(), case.subject
    g, (X, Y) = 5, subject.rows
    page.set_slider(g)
    turned = subject.path.components(subject.path.gammas[g]).T @ subject.path.turns(subject.start)[g]
    assert np.allclose(np.linalg.norm(turned, axis=0), 1)
    for axis, title in enumerate(page.locator("#scatter svg .title").all_text_contents()):
        shares = [np.var(rows @ turned[:, axis]) / rows.var(axis=0).sum() for rows in (X, Y)]
        assert title == f"component {axis + 1} (cases {shares[0]:.1%}, controls {shares[1]:.1%})"


def test_bars_follow_the_slider(opened, case):
    page, subject = opened(), case.subject
    page.set_slider(0)
    W = subject.path.loadings(subject.path.gammas[0]) @ subject.path.turns(subject.start)[0]
    top = int(np.argmax(np.abs(W[:, 1])))
    row = page.locator("#loadings tbody").nth(1).locator("tr").first
    assert row.locator("th").inner_text() == subject.path.feature_names[top]
    assert float(row.locator(".value").inner_text()) == pytest.approx(W[top, 1], rel=1e-2)


def test_play_and_keyboard_of_the_slider(opened, case):
    page, start = opened(), case.subject.start
    value = "Number(document.getElementById('gamma').value)"
    page.focus("#gamma")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(value) == start - 1
    before = page.coordinates()
    page.focus("#play")
    page.keyboard.press("Space")
    page.until(f"{value} >= {start + 2}")
    page.keyboard.press("Space")
    assert page.get_attribute("#play", "aria-pressed") == "false"
    assert np.abs(page.coordinates() - before).max() > 0
    page.focus("#reset")
    page.keyboard.press("Enter")
    assert page.evaluate(value) == start


def test_two_settings_side_by_side(opened, case):
    page, subject = opened(viewport={"width": 1300, "height": 800}), case.subject
    assert not page.is_visible("#scatter-b")
    page.click("#compare")
    assert close(page.coordinates(1), aligned(subject, 0)[:, :2])  # without any contrast
    page.set_slider(9, "gamma-b")
    page.select_option("#horizontal-b", "2")
    assert close(page.coordinates(1), aligned(subject, 9)[:, [2, 1]])
    assert close(page.coordinates(0), aligned(subject, subject.start)[:, :2])
    left, right = (page.locator(name).bounding_box() for name in ("#scatter", "#scatter-b"))
    assert left["x"] + left["width"] <= right["x"]
    page.click("#compare")
    assert not page.is_visible("#scatter-b")


# ---------------------------------------------------------------------- the picture


def drag(page, corners):
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner, steps=4)
    page.mouse.up()


def test_zoom_is_kept_while_sliding(opened, case):
    page = opened()
    page.place(0)
    box = page.locator("#scatter").bounding_box()
    before = page.ranges()
    drag(page, [(box["x"] + 150, box["y"] + 60), (box["x"] + 300, box["y"] + 160)])
    zoomed = page.ranges()
    assert np.all(np.diff(zoomed) < 0.5 * np.diff(before))
    page.set_slider(4)
    assert np.array_equal(page.ranges(), zoomed)
    page.click("#zoom-in")
    assert np.allclose(np.diff(page.ranges()), np.diff(zoomed) / 1.5)
    page.click("#zoom-out")
    page.click("[data-mode=move]")
    box = page.locator("#scatter").bounding_box()  # the click may have scrolled
    drag(page, [(box["x"] + 200, box["y"] + 100), (box["x"] + 250, box["y"] + 100)])
    moved = page.ranges()
    assert np.all(moved[0] < zoomed[0])
    assert np.allclose(moved[1], zoomed[1])
    page.click("#zoom-off")
    shown = page.coordinates()
    assert np.all(page.ranges()[:, 0] < shown.min(axis=0))
    assert np.all(page.ranges()[:, 1] > shown.max(axis=0))


def test_groups_are_hidden_and_isolated(opened, case):
    page = opened()
    hidden = "Array.from(contrapcaReport.state.hidden)"
    button = page.locator("#legend button", has_text="even")
    button.click()
    assert page.evaluate(hidden) == [2]
    assert button.get_attribute("aria-pressed") == "false"
    page.set_slider(5)
    assert page.evaluate(hidden) == [2]
    shown = page.coordinates()[np.r_[:200, 200 + np.flatnonzero(case.labels == "even")]]
    assert np.all(page.ranges()[:, 0] < shown.min(axis=0))
    button.click()
    assert page.evaluate(hidden) == []
    for expected in ([0, 1], []):
        button.evaluate(DOUBLE_CLICK)
        assert page.evaluate(hidden) == expected
    button.focus()
    page.keyboard.press("Shift+Enter")
    assert page.evaluate(hidden) == [0, 1]
    page.keyboard.press("Enter")
    assert page.evaluate(hidden) == [0, 1, 2]


def test_a_line_around_points_lists_their_rows(opened, case):
    page = opened()
    points = page.coordinates()
    wanted = int(np.argmax(points[:, 0]))
    x, y = page.place(wanted)
    page.click("[data-mode=select]")
    x, y = page.place(wanted)
    drag(page, [(x - 25, y - 25), (x + 8, y - 25), (x + 8, y + 25), (x - 25, y + 25), (x - 25, y - 25)])
    chosen = page.selected()
    places = np.array(page.evaluate(PIXELS))
    inside = np.all(np.abs(places - places[wanted] - [-8.5, 0]) < [16.5, 25], axis=1)
    assert wanted in chosen
    assert np.array_equal(chosen, np.flatnonzero(inside))
    assert page.inner_text("#selection-count").startswith(f"{len(chosen)} sample")
    name, content = page.saved("#save-selection")
    assert name == "selection_gamma_0.5.csv"
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert len(rows) == len(chosen)
    expected = aligned(case.subject, case.subject.start)[chosen]
    found = [[float(row[f"component_{k}"]) for k in (1, 2, 3)] for row in rows]
    assert close(np.array(found), expected)
    page.click("#clear")
    assert page.selected().size == 0
    assert not page.is_visible("#selection")


def test_points_by_keyboard(opened, case):
    page = opened()
    page.focus("#scatter")
    page.keyboard.press("ArrowRight")
    mark = "contrapcaReport.pictures[0].mark"
    first = page.evaluate(mark)
    assert first is not None
    page.keyboard.press("ArrowRight")
    second = page.evaluate(mark)
    points = page.coordinates()
    assert points[second, 0] > points[first, 0]
    page.keyboard.press("ArrowUp")
    third = page.evaluate(mark)
    assert points[third, 1] > points[second, 1]
    assert "component 1: " in page.text_content("#announce")
    page.keyboard.press("Enter")
    assert page.selected().tolist() == [third]
    before = page.ranges()
    page.keyboard.press("+")
    assert np.allclose(np.diff(page.ranges()), np.diff(before) / 1.5)
    page.keyboard.press("0")
    assert np.allclose(page.ranges(), before)
    page.keyboard.press("Escape")
    assert page.selected().size == 0


def test_arrows_stay_inside(opened, case):
    page = opened(viewport={"width": 500, "height": 700})
    assert page.locator("#scatter .arrow").count() == 0
    page.click("#arrows")
    for g in (0, 30):
        page.set_slider(g)
        assert page.locator("#scatter .arrow").count() == 8
        boxes = np.array(page.evaluate(BOXES))
        assert np.all(boxes[1:, :2] >= boxes[0, :2] - 1)
        assert np.all(boxes[1:, 2:] <= boxes[0, 2:] + 1)
        names = np.array(page.evaluate(NAMES))
        assert len(names) >= 2
        assert np.all(names[:, :2] >= boxes[0, :2] - 1)
        assert np.all(names[:, 2:] <= boxes[0, 2:] + 1)
        apart = [
            max(a[0] - b[2], b[0] - a[2]) >= -1 or max(a[1] - b[3], b[1] - a[3]) >= -1
            for k, a in enumerate(names)
            for b in names[:k]
        ]
        assert all(apart)


# ---------------------------------------------------------------------- features and labels


def test_a_feature_is_found_and_colours_the_points(opened, case):
    page = opened()
    page.fill("#search", "BOLD</B> 7")
    assert page.inner_text("#matched") == "1 feature"
    button = page.locator("#feature-table button.name")
    assert button.inner_text() == f"{NASTY} 7"
    button.click()
    assert page.is_visible("#scale")
    X, Y = case.subject.rows
    values = np.concatenate([Y[:, 7], X[:, 7]])
    low, high = np.quantile(values, [0.01, 0.99])
    assert float(page.inner_text("#scale-low").removeprefix("≤ ")) == pytest.approx(low, rel=1e-3)
    shades = np.array(page.evaluate("Array.from(contrapcaReport.state.scale.shades)"))
    assert np.abs(shades / 254 - np.clip((values - low) / (high - low), 0, 1)).max() < 1 / 254
    page.click("#scale-off")
    assert page.evaluate("contrapcaReport.state.scale") is None
    first = page.locator("#loadings button.name").first
    first.focus()
    for pressed in ("true", "false"):
        page.keyboard.press("Enter")
        assert first.get_attribute("aria-pressed") == pressed
        assert first.evaluate("(button) => button === document.activeElement")  # the focus is kept
    page.fill("#search", "nothing like it")
    assert page.inner_text("#matched") == "0 features"
    page.fill("#search", "")
    assert page.inner_text("#matched") == ""


def test_one_component_and_a_scale_of_labels(open_page, tmp_path, monkeypatch):
    monkeypatch.setattr(_points, "MAX_VALUES", 2 * 110)  # room for two features
    data = make_hidden_clusters(60, 50, 8, random_state=0)
    model = PCPCA(1, gamma=0.3).fit(data.foreground, background=data.background)
    study = Study(data.foreground, background=data.background, labels=np.arange(60.0))
    report(study, model, output=tmp_path / "one.html")
    page = open_page(tmp_path / "one.html")
    assert close(page.coordinates()[50:, 0], model.transform(data.foreground)[:, 0])
    shades = page.evaluate("Array.from(contrapcaReport.state.scale.shades)")
    assert set(shades[:50]) == {255}  # controls are grey
    assert shades[50:] == [round(254 * i / 59) for i in range(60)]
    ends = [page.inner_text(f"#scale-{end}") for end in ("low", "middle", "high")]
    assert ends == ["0", "29.5", "59"]
    strips = page.locator("#scatter svg text.number[text-anchor=end]").all_text_contents()
    assert strips == ["controls", "cases"]
    assert page.inner_text("#legend").split("\n") == ["controls (50)", "cases (60)"]
    weakest = int(np.argmin(np.abs(model.loadings_[:, 0])))
    page.fill("#search", f"x{weakest}")
    page.locator("#feature-table button.name").click()
    assert page.inner_text("#feature-note").startswith(
        f"The page has no room for the values of x{weakest}: it holds those"
    )
    assert page.inner_text("#scale-name") == "label"
    page.set_slider(2)
    assert page.complaints == []


def test_without_labels_clusters_are_found_and_named(open_page, tmp_path):
    data = make_hidden_clusters(200, 150, 10, random_state=0)
    model = ContraPCA(2).fit(data.foreground, background=data.background)
    summary = report(data.foreground, model, background=data.background, output=tmp_path / "page.html", gammas=3)
    page = open_page(tmp_path / "page.html")
    legend = page.locator("#legend button").all_inner_texts()
    assert legend == ["controls (150)", *(f"{name} ({rows})" for name, rows in summary["data"]["labels"].items())]
    assert len(legend) == 5
    assert "clusters that were found here" in page.inner_text("main")
    assert page.complaints == []


@pytest.mark.parametrize(
    "labels", ["words", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("numbers", None))]
)
def test_page_report_and_fit_save_the_same_table(open_page, tmp_path, monkeypatch, need, labels):
    """Also for labels that the legend combines, or has not, and with labels of the controls."""
    need("polars")
    monkeypatch.chdir(tmp_path)
    data = make_hidden_clusters(100, 50, 6, random_state=0)
    words = {"words": [*["", "a,b"], *(f"class {i % 30}" for i in range(48))], "numbers": ["", *map(str, range(49))]}
    for name, table in (("cases", data.foreground), ("controls", data.background)):
        beside = words.get(labels, [""] * 50)
        write_csv(tmp_path / f"{name}.csv", ["kind", *"uvwxyz"], zip(2 * beside, *table.T, strict=False))
    tables = ["cases.csv", "--background", "controls.csv", "--no-test", "--quiet"]
    tables += ["--ignore", "kind", "--scale", "none"] if labels is None else ["--labels", "kind"]
    assert cli.main(["fit", *tables, "-o", "fit"]) == 0
    assert cli.main(["report", *tables, "--gammas", "3", "-o", "page.html", "--save", "saved"]) == 0
    page = open_page(tmp_path / "page.html")
    saved = list(csv.reader(io.StringIO(page.saved("#save-coordinates")[1].decode())))
    head, *rows = read_csv("fit/latents.csv")
    assert head == ["row", "group", "cluster" if labels is None else "label", "component_1", "component_2"]
    assert [row[:2] for row in rows] == [
        [str(i + 1), what] for n, what in ((100, "case"), (50, "control")) for i in range(n)
    ]
    found = [row[2] for row in rows]
    if labels is None:
        assert {text.partition(":")[0] for text in found} == {"", "cluster 1", "cluster 2", "cluster 3", "cluster 4"}
    else:
        assert found == 3 * words[labels]
    for other in (read_csv("saved/coordinates.csv"), saved):
        assert other[0] == head
        assert [row[:3] for row in other[1:]] == [row[:3] for row in rows]
        assert close(*(np.array([row[3:] for row in every], dtype=float) for every in (other[1:], rows)))
