"""Reports of several conditions, two factors and a dose: what the summary says, and the page in a real browser."""

import base64
import json

import numpy as np
import pytest

from browsing import NASTY
from contrapca import (
    PCPCA,
    PPCA,
    ContraPCA,
    Study,
    bootstrap,
    condition_similarity,
    contrast_path,
    contrast_test,
    held_out_contrast,
    report,
)
from contrapca.estimators import unfitted
from contrapca.exceptions import GroupError
from contrapca.reporting import summarize
from contrapca.reporting._points import choose_points

pd = pytest.importorskip("pandas")

NAMES = [f"gene{j}" for j in range(10)]
DESKTOP = {"width": 1440, "height": 900}
KINDS = ("conditions", "interaction", "dose")
GROUPS = "contrapcaReport.state.column.groups.map(({ name, members }) => [name, members.length])"
CELLS = {("mut", "drug"): 8, ("mut", "none"): 0, ("wt", "drug"): 0, ("wt", "none"): 0}


def table(rng, n, variance, mean=0.0):
    return mean + rng.normal(size=(n, 10)) + np.sqrt(variance) * rng.normal(size=(n, 1)) * np.eye(10)[0]


def framed(parts, **columns):
    return pd.DataFrame(np.vstack(parts), columns=NAMES).assign(**columns)


@pytest.fixture(scope="module")
def frames():
    """A frame of each kind, in which gene0 varies more; donors are blocks of three rows."""
    rng = np.random.default_rng(0)
    sizes = {"A": 45, "B": 60, "C": 30, "DMSO": 60}
    variances = {"A": 8, "B": 0, "C": 8, "DMSO": 0}
    conditions = [table(rng, sizes[name], variances[name], rng.normal()) for name in sizes]
    doses = (0, 1, 10, 100)
    return {
        "conditions": framed(conditions, drug=np.repeat(list(sizes), list(sizes.values()))),
        "interaction": framed(
            [table(rng, 60, variance, rng.normal()) for variance in CELLS.values()],
            genotype=np.repeat([genotype for genotype, _ in CELLS], 60),
            treatment=np.repeat([treatment for _, treatment in CELLS], 60),
        ),
        "dose": framed(
            [table(rng, 50, variance, variance / 4) for variance in (0, 2, 4, 8)], concentration=np.repeat(doses, 50)
        ),
    }


ASKED = {
    "conditions": {"groupby": "drug", "background": "DMSO", "conditions": True},
    "interaction": {"interaction": ("genotype", "treatment"), "case": ("mut", "drug")},
    "dose": {"dose": "concentration"},
}


@pytest.fixture(scope="module")
def studies(frames):
    return {kind: Study.from_frame(frames[kind], **ASKED[kind]) for kind in KINDS}


@pytest.fixture(scope="module")
def reports(studies, tmp_path_factory, need):
    """The file of each page, and its summary."""
    need("jinja2")
    folder = tmp_path_factory.mktemp("designs")
    return {
        kind: (folder / f"{kind}.html", report(study, output=folder / f"{kind}.html", progress=False))
        for kind, study in studies.items()
    }


# ---------------------------------------------------------------------- the summary


@pytest.mark.parametrize("kind", KINDS)
def test_a_summary_says_what_the_library_says(reports, studies, kind):
    summary, study = reports[kind][1], studies[kind]
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    test = contrast_test(study, random_state=0, progress=False)
    assert summary["answer"] == test.verdict()
    assert summary["test"]["p_values"] == test.p_values.tolist()
    found = held_out_contrast(summary.subject.model, study)
    cells = {
        (cell["name"], entry["component"] + 1): (cell["ratio"], *cell["interval"])
        for entry in summary["components"]
        for cell in entry["cells"]
    }
    name, *columns = found.variance_table().values()
    for cell, component, *numbers in zip(name, *columns, strict=True):
        assert cells.pop((cell, component)) == pytest.approx(numbers, rel=0.05)
    assert not cells
    first = summary["components"][0]
    own = found.ratios[0] if kind == "conditions" else np.exp(found.cells.log_ratios[-1][0])
    assert first["held_out_ratio"] == pytest.approx(own, rel=0.05)
    assert first["support"] == "holds up"
    assert first["features"][0]["feature"] == "gene0"
    assert summary["design"]["kind"] == kind
    assert str(study.design) in summary["methods"]


def test_shares_of_variance_count_rows_as_the_fit_does(reports):
    for _, summary in reports.values():
        shares, start = summary["path"]["axis_shares"], summary["path"]["start"]
        for k, entry in enumerate(summary["components"]):
            assert shares["foreground"][start][k] == pytest.approx(entry["foreground_share"])
            assert shares["background"][start][k] == pytest.approx(entry["background_share"])


def test_conditions_are_as_alike_as_the_library_says(reports, studies):
    summary = reports["conditions"][1]
    alike = unfitted(summary.subject.path.estimator, gamma="auto", n_latent="auto")
    found = condition_similarity(alike, studies["conditions"])
    assert summary["design"]["similarity"]["conditions"] == ["A", "B", "C"]
    np.testing.assert_allclose(summary["design"]["similarity"]["values"], found.similarity)
    assert all(reports[kind][1]["design"]["similarity"] is None for kind in ("interaction", "dose"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_fitted_model_gives_the_same_page(studies, kind):
    fresh = summarize(studies[kind], PCPCA(1), test=False, progress=False)
    fitted = summarize(studies[kind], PCPCA(1).fit(studies[kind]), test=False, progress=False)
    assert json.dumps(fresh) == json.dumps(fitted)
    with pytest.raises(GroupError, match="needs a population"):  # as after fit
        bootstrap(fresh.subject.model, studies[kind])


def test_points_know_cells_blocks_and_doses(studies, frames):
    """Colours, entries of the legend and texts of each kind of design, in the order of the picture: controls first."""

    def columns(study):
        points = choose_points(summarize(study, PCPCA(1), test=False, progress=False).subject)
        texts = [
            [own["texts"]["names"][code] for code in np.frombuffer(base64.b64decode(own["texts"]["codes"]), "u1")]
            for own in points["columns"]
            if own["texts"]
        ]
        entries = [[(entry["name"], entry["rows"]) for entry in own["entries"]] for own in points["columns"]]
        return [own["name"] for own in points["columns"]], entries, texts

    names, entries, texts = columns(studies["conditions"])
    assert names == ["drug", "cases and controls"]
    assert entries[0] == [("controls", 60), ("A", 45), ("B", 60), ("C", 30)]
    assert texts[0] == ["background"] * 60 + ["A"] * 45 + ["B"] * 60 + ["C"] * 30
    _, entries, _ = columns(studies["interaction"])
    assert entries[0] == [("mut, drug", 60), ("mut, none", 60), ("wt, drug", 60), ("wt, none", 60)]
    assert entries[1] == [("one factor", 120), ("both or neither", 120)]
    names, entries, texts = columns(studies["dose"])
    assert names == ["concentration", "high concentration and low concentration"]
    assert entries[0] == [("low concentration", 100), ("high concentration", 100)]
    assert texts[0] == ["0"] * 50 + ["1"] * 50 + ["10"] * 50 + ["100"] * 50
    donors = [f"d{i // 3}" for i in range(195)]
    labelled = frames["conditions"].assign(donor=donors, sex=["f", "m", "f"] * 65)
    names, _, texts = columns(Study.from_frame(labelled, **ASKED["conditions"], blocks="donor", labels="sex"))
    assert names == ["drug", "sex", "block", "cases and controls"]
    assert texts[2] == donors[135:] + donors[:135]


def test_who_carries_a_component_counts_rows_as_the_design_does(frames):
    """A condition of few rows counts as much as one of many, so each of its rows counts more."""
    rng = np.random.default_rng(1)
    frame = framed(
        [table(rng, 10, 8), table(rng, 100, 8), table(rng, 60, 0)], drug=["A"] * 10 + ["B"] * 100 + ["-"] * 60
    )
    frame["donor"] = [f"A{i // 2}" for i in range(10)] + [f"B{i // 2}" for i in range(100)] + list(range(60))
    study = Study.from_frame(frame, groupby="drug", background="-", conditions=True, blocks="donor")
    summary = summarize(study, PCPCA(1, gamma=0.3), test=False, progress=False)
    Z = summary.subject.latents[:, 0]
    weights = np.where(np.arange(110) < 10, 1 / 10, 1 / 100)
    squares = weights * (Z - np.average(Z, weights=weights)) ** 2
    shares = np.bincount(np.arange(110) // 2, squares) / squares.sum()
    carrier = summary["components"][0]["carrier"]
    assert carrier["name"] == f"A{np.argmax(shares)}"
    assert carrier["share"] == pytest.approx(shares.max(), rel=1e-6)


def test_cautions_of_a_design_advise_what_a_design_has(frames):
    """Neither the bootstrap nor means that are equal at all doses."""
    noise = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 120))).add_prefix("noise")
    wide = pd.concat([frames["dose"], noise], axis=1)
    features = [name for name in wide if name != "concentration"]
    wide[features] = wide[features].add(6 * (wide["concentration"] > 1), axis=0)
    summary = summarize(Study.from_frame(wide, **ASKED["dose"]), ContraPCA(1), test=False, progress=False)
    said = " ".join(summary["cautions"])
    assert "There are fewer samples of high concentration (100) than features (130)" in said
    assert "bootstrap" not in said
    assert "batch" not in summary["caution_topics"]


def test_too_few_blocks_for_an_interaction_are_said(frames):
    frame = frames["interaction"].assign(donor=[i // 15 for i in range(240)])
    few = Study.from_frame(frame, **ASKED["interaction"], blocks="donor")
    summary = summarize(few, ContraPCA(1), progress=False)
    assert summary["test"] is None
    assert "'mut, drug' has 4 blocks: the test needs at least 6" in summary["verdict"]
    assert "An interaction cannot be shown with 4 blocks in a cell" in summary["verdict"]
    frame["donor"] = [i // 8 for i in range(240)]
    summary = summarize(Study.from_frame(frame, **ASKED["interaction"], blocks="donor"), ContraPCA(1), progress=False)
    if not summary["test"]["n_components"]:
        assert any("cannot be shown with" in remark for remark in summary["test"]["remarks"])


def test_what_a_report_of_a_design_refuses(studies, frames):
    study, plain = studies["conditions"], frames["conditions"][NAMES].to_numpy()
    pair = Study(plain[:135], background=plain[135:])
    path = contrast_path(PCPCA(2), pair, gammas=[0, 0.2])
    draws = bootstrap(PCPCA(2).fit(pair), pair, n_resamples=3, progress=False)
    for model, given, message in (
        (path, {}, "A path compares two populations"),
        (PCPCA(2), {"uncertainty": draws}, "uncertainty= compares two populations"),
        (PPCA(2), {}, "PPCA has no background"),
        (PCPCA(2), {"depth": "match"}, "match_depth compares two populations"),
    ):
        with pytest.raises(GroupError, match=message):
            summarize(study, model, progress=False, **given)


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("tables", "strata", "covariates")]


@pytest.mark.parametrize("kind", [*KINDS, "blocks", *SLOW])
def test_the_code_of_a_page_makes_the_same_page(frames, kind, tmp_path, monkeypatch, need):
    need("jinja2")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    frame = frames[kind if kind in KINDS else "dose" if kind == "strata" else "conditions"].copy()
    if "drug" in frame:
        frame["drug"] = frame["drug"].replace("DMSO", "background")
    asked, names = ASKED.get(kind, ASKED["conditions"]) | {}, {"frame": frame}
    if "background" in asked:
        asked["background"] = "background"
    if kind == "tables":
        tables = {name: frame.loc[frame["drug"] == name, NAMES].reset_index(drop=True) for name in "ABC"}
        names = {"tables": tables, "controls": frame.loc[frame["drug"] == "background", NAMES].reset_index(drop=True)}
        names |= {"blocks": [np.arange(len(own)) // 3 for own in tables.values()], "control_blocks": np.arange(60) // 2}
        blocks = tuple(np.array([f"{k}{i}" for i in own]) for k, own in enumerate(names["blocks"]))
        names |= {"blocks": blocks, "control_blocks": np.array([f"c{i}" for i in names["control_blocks"]])}
        study = Study(groups=tables, background=names["controls"], blocks=(*blocks, names["control_blocks"]))
    else:
        if kind == "strata":
            frame["stratum"] = np.tile(["x", "y"], 100)
            asked = ASKED["dose"] | {"strata": "stratum"}
        if kind == "blocks":
            frame["block"] = np.arange(195) // 3
            asked |= {"blocks": "block"}
        if kind == "covariates":
            frame["age"] = np.random.default_rng(0).uniform(20, 80, 195)
            asked |= {"covariates": "age"}
        study = Study.from_frame(frame, **asked)
    summary = report(study, PCPCA(1), progress=False)
    first = (tmp_path / "report.html").read_text()
    exec(summary["code"]["python"], names)
    again = (tmp_path / "report_again.html").read_text()
    assert again == first


def test_numbers_are_numbers_in_the_code_of_a_page(frames):
    frame = frames["interaction"]
    levels = {"genotype": (frame["genotype"] == "mut").astype(int), "treatment": frame["treatment"] == "drug"}
    frame = frame.assign(**levels)
    study = Study.from_frame(frame, interaction=("genotype", "treatment"), case=(1, True))
    code = summarize(study, PCPCA(1), test=False, progress=False)["code"]["python"]
    assert "interaction=('genotype', 'treatment'), case=(1, True)" in code
    doses = Study.from_frame(frames["dose"], groupby="concentration", background=0, conditions=True)
    code = summarize(doses, PCPCA(1), test=False, progress=False)["code"]["python"]
    assert "foreground=[1, 10, 100], conditions=True" in code


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_of_a_design_are_shown_as_text(open_page, frames, kind, tmp_path, need):
    """Columns and cells whose names are markup, or have braces."""
    need("jinja2")
    hostile = f"{{times}} {NASTY}"
    asked = {"conditions": {"groupby": hostile, "background": "DMSO", "conditions": True}, "dose": {"dose": hostile}}
    asked["interaction"] = {"interaction": ("genotype", hostile), "case": ("mut", f"{hostile}!")}
    columns = {"drug": hostile, "treatment": hostile, "concentration": hostile}
    frame = frames[kind].replace({"A": f"{hostile} A", "drug": f"{hostile}!"}).rename(columns=columns)
    file = tmp_path / "page.html"
    summary = report(Study.from_frame(frame, **asked[kind]), ContraPCA(2), file, progress=False)
    assert "{times}" in summary["title"] + summary["methods"]
    page = open_page(file, viewport=DESKTOP)
    assert page.evaluate("document.querySelectorAll('img, main b').length") == 0
    assert NASTY in page.inner_text("#design") + page.inner_text("#scale") + page.inner_text("#legend")
    assert page.complaints == []


@pytest.mark.parametrize("kind", KINDS)
def test_tables_and_figures_that_readers_take_away(reports, studies, kind, need):
    need("matplotlib")
    summary, study = reports[kind][1], studies[kind]
    table = summary.coordinates()
    assert list(table) == ["row", "group", study.design.name, "component_1", "component_2"]
    words = {"conditions": {"case", "control"}, "interaction": {"both or neither", "one factor"}}
    assert set(table["group"]) == words.get(kind, {"high concentration", "low concentration"})
    Z = np.column_stack([table["component_1"], table["component_2"]])
    cells = np.concatenate(list(study.design.cell_of))
    for cell in range(len(study.design.cells)):  # about their own means
        assert np.abs(Z[cells == cell].mean(axis=0)).max() < 0.3 * Z.std(axis=0).min()
    figure = summary.figure()
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    cells = {"conditions": ["A", "B", "C"], "dose": ["0", "1", "10", "100"]}
    cells["interaction"] = ["mut, drug", "mut, none", "wt, drug", "wt, none"]
    assert legend[-len(cells[kind]) :] == cells[kind]


def test_the_figure_of_blocks_without_labels_says_cases_once(need):
    need("matplotlib")
    rng = np.random.default_rng(0)
    blocks = (np.arange(60) // 6, 10 + np.arange(50) // 5)
    study = Study(rng.normal(size=(60, 6)), background=rng.normal(size=(50, 6)), blocks=blocks)
    summary = summarize(study, ContraPCA(2), test=False, progress=False)
    legend = [text.get_text() for text in summary.figure().axes[0].get_legend().get_texts()]
    assert legend == ["controls (background)", "cases (foreground)"]


# ---------------------------------------------------------------------- the page


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_screen_of_a_design_answers(open_page, reports, kind):
    file, summary = reports[kind]
    page = open_page(file, viewport=DESKTOP)
    for name in ("#verdict", "#scatter", "#legend", "#colour", ".card >> nth=0", ".card >> nth=1"):
        box = page.locator(name).bounding_box()
        assert box["y"] >= 0, name
        assert box["y"] + box["height"] <= 900, name
    assert page.inner_text("#verdict") == summary["answer"]
    card = page.locator(".card").first.inner_text()
    assert f"{summary['components'][0]['held_out_ratio']:.2g} times" in card
    who = {
        "conditions": (" varies ", " times as much as controls, ", "not shown for B"),
        "interaction": ("Times the variance in wt, none", "in mut, drug"),
        "dose": ("Times the variance at 0", "at 100"),
    }
    assert all(words in card for words in who[kind])
    assert page.locator("#strength, #gamma, #uncertainty").count() == 0  # what a design cannot have
    assert page.complaints == []


@pytest.mark.parametrize("width", [1440, 820, 390])
@pytest.mark.parametrize("kind", KINDS)
def test_ratios_of_cells_are_a_table_of_bars(open_page, reports, kind, width):
    file, summary = reports[kind]
    page = open_page(file, viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for k, entry in enumerate(summary["components"]):
        rows = page.locator("#design .ratios").nth(k).locator("tbody tr")
        assert rows.count() == len(entry["cells"])
        for row, cell in zip(rows.all(), entry["cells"], strict=True):
            assert row.locator("th").inner_text() == cell["name"]
            assert row.locator(".value").inner_text().startswith(f"{cell['ratio']:.2g} (")
            track, interval, dot = (row.locator(name).bounding_box() for name in (".track", ".interval", ".dot"))
            assert interval["x"] - 1 <= dot["x"] <= interval["x"] + interval["width"] + 1
            assert interval["x"] >= track["x"] - 1
            assert (interval["x"] > track["x"] + track["width"] / 2) == cell["is_more"]
    assert page.locator("#design .heat tbody td").count() == (9 if kind == "conditions" else 0)


def test_colours_and_hover_of_a_design(open_page, reports):
    page = open_page(reports["conditions"][0], viewport=DESKTOP)
    assert page.locator("#colour option").first.inner_text() == "drug"
    assert page.evaluate(GROUPS) == [["controls", 60], ["A", 45], ["B", 60], ["C", 30]]
    page.mouse.move(*page.place(60 + int(np.argmax(page.coordinates()[60:, 0]))))
    page.wait_for_selector("#scatter .tooltip:not([hidden])", timeout=10_000)
    assert "drug: " in page.inner_text("#scatter .tooltip")
    page = open_page(reports["interaction"][0], viewport=DESKTOP)
    assert [name for name, _ in page.evaluate(GROUPS)] == ["mut, drug", "mut, none", "wt, drug", "wt, none"]
    page = open_page(reports["dose"][0], viewport=DESKTOP)
    shades = np.array(page.evaluate("Array.from(contrapcaReport.state.scale.shades)"))
    assert sorted(set(shades.tolist())) == [0, 85, 169, 254]  # evenly, by rank: doses are 0, 1, 10 and 100
    assert page.inner_text("#scale-name") == "concentration"
    _, content = page.saved("#save-coordinates")
    assert content.decode().splitlines()[0] == "row,group,concentration,component_1,component_2"
    assert page.complaints == []
