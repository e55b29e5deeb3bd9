"""The first screen answers; colours, selections, histograms and the table of features tell more, in a real browser."""

import numpy as np
import pytest

from contrapca import PCPCA, ContraPCA, Study, report
from contrapca.datasets import make_hidden_clusters
from contrapca.reporting._report import summarize

JARGON = ("gamma", "latent", "statistic", "eigen", "loading")
DESKTOP = {"width": 1440, "height": 900}
LONG = "a protein with a name that is much longer than any column of a table, " * 2
SHADES = "Array.from(contrapcaReport.state.scale.shades)"
CELLS = """(selector) => Array.from(document.querySelectorAll(`${selector} tbody tr`),
  (row) => Array.from(row.cells, (cell) => cell.textContent))"""


@pytest.fixture(scope="module")
def known(tmp_path_factory, need):
    """A page of a study with donors, covariates, labels and missing values; the study and the summary."""
    need("jinja2")
    pandas = need("pandas")
    data, rng = make_hidden_clusters(160, 120, 12, random_state=0), np.random.default_rng(0)
    tables = [data.foreground.copy(), data.background.copy()]
    tables[0][:7, 2] = np.nan
    tables[1][5, 3] = np.nan
    for table in tables:
        table[:, 11] = table[:, 10]  # a caution
    X, Y = (pandas.DataFrame(table, columns=[LONG, *(f"gene{j}" for j in range(1, 12))]) for table in tables)
    beside = [
        {"donor": [f"d{i % 8 + k}" for i in range(n)], "age": rng.uniform(20, 80, n), "sex": ["f", "m"] * (n // 2)}
        for k, n in ((0, 160), (8, 120))
    ]
    X, Y = (table.assign(**own) for table, own in zip((X, Y), beside, strict=True))
    X["kind"], Y["kind"] = data.labels.astype(str), "healthy"
    study = Study(X, background=Y, blocks="donor", covariates=["age", "sex"], labels="kind")
    file = tmp_path_factory.mktemp("first") / "page.html"
    return file, study, report(study, ContraPCA(2), file, gammas=3, progress=False)


def test_the_first_screen_answers_without_scrolling(open_page, known):
    file, _, summary = known
    page = open_page(file, viewport=DESKTOP)
    for name in ("#verdict", "#scatter", "#legend", "#colour", "[data-mode=select]", "#strength"):
        box = page.locator(name).bounding_box()
        assert box["y"] >= 0, name
        assert box["y"] + box["height"] <= 900, name
    for card in page.locator(".card").all():
        box = card.bounding_box()
        assert box["y"] + box["height"] <= 900
    picture, answers = (page.locator(name).bounding_box() for name in ("#scatter", "#answers"))
    assert picture["x"] >= answers["x"] + answers["width"]  # beside them
    assert picture["y"] < 200
    assert picture["width"] * picture["height"] > 0.3 * 1440 * 900
    assert page.inner_text("#verdict") == summary["answer"]
    for entry, card in zip(summary["components"], page.locator(".card").all(), strict=True):
        text = card.inner_text()
        assert all(item["feature"].strip() in text for item in entry["features"][:4])
        assert f"{entry['label']['share']:.0%} of its spread" in text
        assert entry["carrier"]["name"] in text
        assert f"{entry['held_out_ratio']:.2g} times" in text
        assert entry["support"] in text
    shown = page.inner_text("#answers") + page.inner_text("#scatter-section") + page.inner_text("header")
    assert not [word for word in JARGON if word in shown.lower()]
    assert "gamma" in page.inner_text("main").lower()  # the control: sections below have such words


def test_long_names_can_be_told_apart(open_page, tmp_path, need):
    """Names as CellProfiler gives them, which differ at their ends, are whole on a phone, and no comma stands alone."""
    need("jinja2")
    data = make_hidden_clusters(80, 60, 6, random_state=0)
    names = [f"Cytoplasm_Texture_InverseDifferenceMoment_CorrTub_{j}_0" for j in range(6)]
    study, file = Study(data.foreground, background=data.background, features=names), tmp_path / "page.html"
    report(study, ContraPCA(2), file, gammas=4, test=False, progress=False)
    page = open_page(file, viewport={"width": 390, "height": 844})
    cut = "(names) => names.some((name) => name.scrollHeight > name.clientHeight + 1)"
    bars = page.locator("#loadings button.name")
    assert bars.count() == 12
    assert not bars.evaluate_all(cut)
    widths = page.locator("#loadings tr").first.locator("> *").evaluate_all("(own) => own.map((e) => e.clientWidth)")
    assert widths[0] > 1.3 * (widths[1] + widths[2])  # 60% for the names
    page.evaluate("document.body.classList.remove('long-names')")
    assert bars.evaluate_all(cut)  # the control: as narrow as for short names
    assert page.locator(".card .item .feature").evaluate_all(
        """(names) => names.length > 3 && names.filter((name) => name.nextSibling).every((name) => {
          const comma = document.createRange();
          comma.selectNode(name.nextSibling);
          return comma.getClientRects()[0].left > name.getBoundingClientRect().left + 20;
        })"""
    )


@pytest.mark.parametrize(("kind", "is_open"), [(ContraPCA, False), (PCPCA, True)])
def test_strength_is_open_where_gamma_matters(open_page, tmp_path, kind, is_open, need):
    need("jinja2")
    data = make_hidden_clusters(80, 60, 6, random_state=0)
    report(data.foreground, kind(2), tmp_path / "page.html", background=data.background, gammas=4, test=False)
    page = open_page(tmp_path / "page.html", viewport=DESKTOP)
    assert page.evaluate("document.getElementById('strength').open") is is_open
    assert page.is_visible("#gamma") is is_open
    if not is_open:
        page.click("#strength summary")
        page.until("document.querySelectorAll('#curves path').length > 0")  # drawn when it is seen
    assert page.complaints == []


def test_points_are_coloured_by_any_column(open_page, known):
    file, study, _ = known
    page = open_page(file, viewport=DESKTOP)
    options = page.locator("#colour option").all_inner_texts()
    assert options[:5] == ["kind", "block", "age", "sex", "cases and controls"]
    groups = "contrapcaReport.state.column.groups.map(({ name, members }) => [name, members.length])"
    assert page.evaluate(groups) == [["controls", 120], *([f"cases: {k}", 40] for k in range(4))]
    page.select_option("#colour", label="block")
    assert page.evaluate(groups) == [["controls", 120], *([f"cases: d{k}", 20] for k in range(8))]
    assert page.locator("#legend button").count() == 9
    page.locator("#legend button").last.click()
    page.select_option("#colour", label="age")  # which shows all points again
    assert page.evaluate("contrapcaReport.state.hidden.size") == 0
    ages = np.concatenate([study.covariates.backgrounds[0]["age"], study.covariates.foreground["age"]])
    shades = np.array(page.evaluate(SHADES))
    expected = 254 * (ages - ages.min()) / (ages.max() - ages.min())
    assert np.abs(shades - expected).max() <= 0.5 + 1e-9
    assert not page.is_visible("#histogram")
    page.select_option("#colour", label="gene3")
    assert page.inner_text("#scale-name") == "gene3"
    assert page.is_visible("#histogram")
    page.click("#scale-off")
    assert page.inner_text("#scale-name") == "age"
    page.select_option("#colour", label="cases and controls")
    assert page.inner_text("#legend").split("\n") == ["controls (120)", "cases (160)"]
    page.select_option("#horizontal", "1")
    page.select_option("#vertical", "0")
    assert page.locator("#loadings h3:visible").all_inner_texts() == ["component 2", "component 1"]
    assert page.complaints == []


def test_points_say_their_block_in_any_colour(open_page, known):
    """Cases and controls: under the pointer, in the table of a selection, and in the tables that readers save."""
    file, study, summary = known
    page = open_page(file, viewport=DESKTOP)
    page.select_option("#colour", label="gene3")
    outermost = int(np.argmax(page.coordinates()[:120, 0]))  # a control
    for i, block in ((outermost, study.blocks.backgrounds[0][outermost]), (125, study.blocks.foreground[5])):
        page.evaluate("(i) => { contrapcaReport.state.selected.fill(0); contrapcaReport.state.selected[i] = 1; }", i)
        page.evaluate("contrapcaReport.show(contrapcaReport.pictures[0].step)")
        cells = page.evaluate(CELLS, "#selection-table")
        assert cells[0][1:4] == ["control" if i < 120 else "case", "healthy" if i < 120 else cells[0][2], block]
    page.mouse.move(*page.place(outermost))
    page.wait_for_selector("#scatter .tooltip:not([hidden])", timeout=10_000)
    told = page.inner_text("#scatter .tooltip").split("\n")
    assert told[1:4] == ["control", "kind: healthy", f"block: {study.blocks.backgrounds[0][outermost]}"]
    _, content = page.saved("#save-coordinates")
    head, *rows = content.decode().splitlines()
    assert head == "row,group,label,block,component_1,component_2"
    assert [row.split(",")[3] for row in rows] == [*study.blocks.foreground, *study.blocks.backgrounds[0]]
    assert summary.coordinates()["block"].tolist() == [*study.blocks.foreground, *study.blocks.backgrounds[0]]


def test_a_histogram_has_the_values_of_both_groups(open_page, known):
    file, _, summary = known
    page = open_page(file, viewport=DESKTOP)
    strongest = summary["components"][0]["features"][0]["feature"]
    page.fill("#search", "gene2")
    page.locator("#feature-table button.name").click()
    X, Y = (np.asarray(rows, dtype=float)[:, 2] for rows in summary.subject.rows)
    low, high = np.nanquantile(np.concatenate([Y, X]), [0.01, 0.99])
    shade = np.clip(np.rint((X[~np.isnan(X)] - low) / (high - low) * 254), 0, 254)
    counts = np.bincount((shade * 24 // 255).astype(int), minlength=24)
    bars = "Array.from(document.querySelectorAll('#histogram rect'), (bar) => Number(bar.getAttribute('height')))"
    found = np.array(page.evaluate(bars))
    assert np.corrcoef(found, counts)[0, 1] > 0.999999
    note = page.inner_text("#scale-note")
    middle = float(note.split("median ")[1].split(". ")[0])
    assert middle == pytest.approx(np.nanmedian(X), abs=0.02 * (high - low))
    assert "Missing: 7 and 0." in note
    page.locator(".card button.name").first.click()
    assert page.inner_text("#scale-name") == strongest.strip()
    assert "Histogram of" in page.get_attribute("#histogram", "aria-label")


def test_a_selection_lists_what_sets_it_apart(open_page, known):
    file, _, summary = known
    page = open_page(file, viewport=DESKTOP)
    points = page.coordinates()[120:]
    across = np.sort(points[:, 0])
    k = 96 + int(np.argmax(np.diff(across[96:128])))  # the widest gap, through which the line is drawn
    middle = float(across[k : k + 2].mean())
    chosen = points[:, 0] > middle
    page.click("[data-mode=select]")
    edge = page.evaluate("(x) => contrapcaReport.pictures[0].frame.across(x)", middle)
    box = page.locator("#scatter").bounding_box()
    frame = page.evaluate(
        "(({ left, top, width, height }) => [left, top, width, height])(contrapcaReport.pictures[0].frame)"
    )
    x0, y0 = box["x"] + frame[0] + edge, box["y"] + frame[1] + 1
    x1, y1 = box["x"] + frame[0] + frame[2] - 1, y0 + frame[3] - 2
    page.mouse.move(x0, y0)
    page.mouse.down()
    for corner in ((x1, y0), (x1, y1), (x0, y1), (x0, y0)):
        page.mouse.move(*corner, steps=3)
    page.mouse.up()
    selected = page.selected()
    assert np.array_equal(selected[selected >= 120] - 120, np.flatnonzero(chosen))
    X = np.asarray(summary.subject.rows.foreground, dtype=float)
    both = np.concatenate([np.asarray(summary.subject.rows.backgrounds[0], dtype=float), X])
    X = np.clip(X, *np.nanquantile(both, [0.01, 0.99], axis=0))
    apart, rest = X[chosen], X[~chosen]
    sums = sum(np.nansum((part - np.nanmean(part, axis=0)) ** 2, axis=0) for part in (apart, rest))
    within = np.sqrt(sums / (np.isfinite(X).sum(axis=0) - 2))
    differences = (np.nanmean(apart, axis=0) - np.nanmean(rest, axis=0)) / within
    names = summary.subject.features
    found = {name: float(value) for name, _, value in page.evaluate(CELLS, "#selection-features")}
    sizes = np.abs(list(found.values()))
    assert len(found) == 10
    assert np.all(np.diff(sizes) <= 0)
    for name, difference in zip(names, differences, strict=True):
        assert found.get(name, difference) == pytest.approx(difference, abs=0.02)
        assert name in found or abs(difference) < sizes.min() + 0.02
    strongest = next(iter(found))
    assert "of 40 cases: " in page.inner_text("#selection-groups")
    head = page.locator("#selection-table th[scope=col]").all_inner_texts()
    assert head[:6] == ["sample", "group", "kind", "block", "age", "sex"]
    page.locator("#selection-features button.name").first.click()
    assert page.inner_text("#scale-name") == strongest.strip()
    assert page.locator("#selection").bounding_box()["y"] < 200  # on the first screen
    assert page.complaints == []


def test_the_table_of_features_is_complete_sorted_and_searched(open_page, known):
    file, _, summary = known
    page = open_page(file, viewport=DESKTOP)
    head = page.locator("#feature-table th[scope=col]")
    assert head.all_inner_texts() == [
        *("feature", "component 1", "component 2", "shift", "missing, cases", "missing, controls")
    ]
    rows = {row[0]: row[1:] for row in page.evaluate(CELLS, "#feature-table")}
    table = summary.loadings()
    assert set(rows) == set(map(str, table["feature"]))
    for name, first, second in zip(*table.values(), strict=True):
        np.testing.assert_allclose([float(rows[name][0]), float(rows[name][1])], [first, second], rtol=6e-3, atol=1e-6)
    assert rows["gene2"][3:] == ["7", "0"]
    assert rows["gene3"][3:] == ["0", "1"]
    X, Y = (np.asarray(rows, dtype=float) for rows in summary.subject.rows)
    within = np.sqrt((np.nanvar(X, axis=0) + np.nanvar(Y, axis=0)) / 2)
    shifts = (np.nanmean(X, axis=0) - np.nanmean(Y, axis=0)) / within
    assert [float(rows[name][2]) for name in table["feature"]] == pytest.approx(shifts.tolist(), abs=0.15)
    assert head.nth(1).get_attribute("aria-sort") == "descending"
    sizes = [abs(float(row[1])) for row in page.evaluate(CELLS, "#feature-table")]
    assert sizes == sorted(sizes, reverse=True)
    head.nth(4).locator("button").click()
    assert page.evaluate(CELLS, "#feature-table")[0][0] == "gene2"
    for direction in ("descending", "ascending"):
        head.nth(2).locator("button").click()
        assert head.nth(2).get_attribute("aria-sort") == direction
    sizes = [abs(float(row[2])) for row in page.evaluate(CELLS, "#feature-table")]
    assert sizes == sorted(sizes)
    page.fill("#search", "GENE1")
    assert {row[0] for row in page.evaluate(CELLS, "#feature-table")} == {"gene1", "gene10", "gene11"}
    assert page.inner_text("#matched") == "3 features"


def test_large_tables_of_features_come_in_parts(open_page, tmp_path, need):
    need("jinja2")
    data = make_hidden_clusters(60, 50, 250, random_state=0)
    report(data.foreground, PCPCA(1), tmp_path / "page.html", background=data.background, gammas=2, test=False)
    page = open_page(tmp_path / "page.html")
    rows = page.locator("#feature-table tbody tr")
    assert rows.count() == 100
    page.click("#more")
    assert rows.count() == 250
    assert not page.is_visible("#more")


@pytest.mark.parametrize("width", [1440, 820, 390])
def test_long_names_cut_no_table(open_page, known, width):
    page = open_page(known[0], viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("#feature-table", "#loadings table"):
        cells = page.locator(f"{name} tbody tr", has_text="a protein").locator("th, td")
        boxes = [cell.bounding_box() for cell in cells.all()[:3]]
        assert min(box["width"] for box in boxes) > 30, name
        assert max(box["height"] for box in boxes) < 120, name
    region = "(element) => element.scrollWidth <= element.clientWidth + 1"
    if width > 1000:  # nothing has to be scrolled sideways
        assert page.locator("#feature-table").evaluate(f"(table) => ({region})(table.parentElement)")


def test_cautions_are_folded_only_where_they_do_not_fit(open_page, known):
    assert known[2]["cautions"]
    is_open = "document.getElementById('cautions').open"
    for height, expected in ((2000, True), (420, False)):
        page = open_page(known[0], viewport={"width": 1440, "height": height})
        assert page.evaluate(is_open) is expected
        text = page.inner_text("#cautions summary")
        assert text.startswith(f"{len(known[2]['cautions']) + len(known[2]['remarks'])} caution")
        assert all(topic in text for topic in known[2]["caution_topics"])
    page.click("#cautions summary")
    assert known[2]["cautions"][0] in page.inner_text("#cautions")


def test_paper_has_the_legend_beside_the_picture(open_page, known):
    page = open_page(known[0], viewport={"width": 690, "height": 1000})
    page.on_paper()
    picture, legend = (page.locator(name).bounding_box() for name in ("#scatter", "#legend"))
    assert legend["x"] >= picture["x"] + picture["width"]
    assert picture["y"] <= legend["y"] < picture["y"] + picture["height"]
    assert page.is_visible("#cautions li")  # unfolded
    assert not page.is_visible("#feature-table")


def test_saved_pictures_waste_no_room(open_page, known):
    page = open_page(known[0], viewport=DESKTOP)
    _, content = page.saved("#save-svg")
    frame = content.decode().split('class="frame"')[1]
    left, width = (float(frame.split(f'{name}="')[1].split('"')[0]) for name in ("x", "width"))
    assert left + width > 800  # of 960, beside a legend of short names
    assert "cases: 3" in content.decode()


def test_first_screen_of_numbers_and_of_no_labels(tmp_path, need):
    """What is said of a scale, and without labels."""
    need("jinja2")
    data = make_hidden_clusters(100, 80, 6, random_state=0)
    model = PCPCA(1, gamma=0.3)
    study = Study(data.foreground, background=data.background)
    latents = summarize(study, model, gammas=2, test=False).subject.latents[:, 0]
    numbers = Study(data.foreground, background=data.background, labels=-latents, label_name="dose")
    page = report(numbers, model, tmp_path / "page.html", gammas=2, test=False).page
    assert "Falls with dose (rank correlation -1.00)." in page
    plain = report(study, model, tmp_path / "page.html", gammas=2, test=False).page
    assert "rank correlation -1" not in plain
    assert "eta squared" not in plain
    assert 'id="verdict"' not in plain
