"""The report as data: the summary, the packed points, the page's text."""

import base64
import datetime
import json
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    RatioPCA,
    Study,
    bootstrap,
    contrast_path,
    contrast_test,
    gamma_limits,
    plots,
    report,
    reporting,
)
from contrapca._util.text import natural_order
from contrapca.contrast._fit import SHARED_RATIO
from contrapca.data.rows import _numpy
from contrapca.datasets import make_hidden_clusters
from contrapca.exceptions import ContrastWarning, GroupError, InfeasibleGammaError, NonFiniteError
from contrapca.inference._verdict import ContrastTest
from contrapca.plots import BACKGROUND_COLOUR, COLOURS, as_classes, on_a_scale
from contrapca.reporting import _html, _points
from contrapca.reporting._answers import chance_of
from contrapca.reporting._cautions import _ratio
from contrapca.reporting._points import choose_points
from contrapca.reporting._report import summarize
from contrapca.reporting._subject import examine
from contrapca.reporting._summary import Origin

NASTY = """<script>alert("x")</script> & 'quotes' </style>"""

ALIKE = ["case"] * 120  # without labels, points would be sorted by cluster


@pytest.fixture(scope="module")
def data():
    return make_hidden_clusters(120, 100, 12, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return PCPCA(2).fit(data.foreground, background=data.background)


def subject_of(thing, data, **given):
    return examined(thing, data.foreground, data.background, **given)


def examined(thing, X, Y, **given):
    beside = {name: given.pop(name) for name in ("labels", "names") if name in given}
    return examine(Study(X, background=Y, **beside), thing, progress=False, **given)


def unpacked(packed, path):
    """Numbers at every gamma as the page computes them, (G, n, d)."""
    scores = np.frombuffer(base64.b64decode(packed["scores"]), "<f4" if packed["bytes"] == 4 else "<f8")
    maps = np.frombuffer(base64.b64decode(packed["maps"]), "<f8").reshape(len(path), packed["rank"], path.n_components)
    return scores.reshape(packed["n"], packed["rank"]).astype(float) @ maps


def both_aligned(path, X, Y, start):
    return np.concatenate([path.aligned(Y, center="background", start=start), path.aligned(X, start=start)], axis=1)


@pytest.mark.parametrize("kind", ["pcpca", "cpca", "ratio", "ppca", "three components", "missing", "scaled", "path"])
def test_points_are_the_aligned_latents(data, kind):
    X, Y = data.foreground, data.background
    if kind == "missing":
        X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    thing = {
        "ratio": lambda: RatioPCA(2).fit(X, background=Y),
        "cpca": lambda: CPCA(2, gamma=2).fit(X, background=Y),
        "ppca": lambda: PPCA(2).fit(X),
        "three components": lambda: PCPCA(3, gamma=0.3).fit(X, background=Y),
        "missing": lambda: PCPCA(2, gamma=0.3).fit(X, background=Y),
        "scaled": lambda: PCPCA(2, scale="group").fit(X, background=Y),
        "path": lambda: contrast_path(PCPCA(2), X, background=Y, gammas=[0, 0.2, 0.5]),
    }.get(kind, lambda: PCPCA(2).fit(X, background=Y))()
    subject = examined(thing, X, Y, labels=ALIKE)
    path, start = subject.path, subject.start
    found, expected = unpacked(choose_points(subject)["positions"], path), both_aligned(path, X, Y, start)
    largest = np.abs(expected).max(axis=(1, 2), keepdims=True)
    assert np.max(np.abs(found - expected) / largest) < 1e-6
    if kind != "path":  # at its own gamma the picture is the model's
        gamma = thing.fit_.gamma
        assert path.gammas[start] == pytest.approx(gamma)
        own = np.asarray(thing.transform(X))
        assert np.abs(found[start, len(Y) :] - own).max() < 1e-6 * np.abs(own).max()


def test_loadings_of_every_feature_are_packed(data, model):
    subject = subject_of(model, data)
    path, packed = subject.path, choose_points(subject)["loadings"]
    assert packed["features"] == path.feature_names
    turns = path.turns(subject.start)
    expected = np.stack([path.loadings(gamma) @ turn for gamma, turn in zip(path.gammas, turns, strict=True)])
    largest = np.abs(expected).max(axis=(1, 2), keepdims=True)
    assert np.max(np.abs(unpacked(packed, path) - expected) / largest) < 1e-6


def test_packing_uses_64_bits_where_32_are_too_coarse(data, model, monkeypatch):
    subject = subject_of(model, data, labels=ALIKE)
    packed = choose_points(subject)["positions"]
    assert packed["bytes"] == 4
    assert packed["rank"] < 20  # of 82 columns
    monkeypatch.setattr(_points, "PACKING_ERROR", 1e-9)
    packed = choose_points(subject)["positions"]
    expected = both_aligned(subject.path, data.foreground, data.background, subject.start)
    assert packed["bytes"] == 8
    assert np.abs(unpacked(packed, subject.path) - expected).max() < 1e-9 * np.abs(expected).max()


def test_packing_counts_every_gamma_alike():
    """Near the limit latents can be a thousand times larger; zero stays zero."""
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((5, 40, 2)) * np.array([1e-6, 1.0, 1e4, 0.0, 3.0])[:, None, None]
    packed = _points.pack(numbers)
    scores = np.frombuffer(base64.b64decode(packed["scores"]), "<f4").reshape(40, -1).astype(float)
    found = scores @ np.frombuffer(base64.b64decode(packed["maps"]), "<f8").reshape(5, -1, 2)
    assert np.abs(found[3]).max() < 1e-12
    for g in (0, 1, 2, 4):
        assert np.abs(found[g] - numbers[g]).max() < 1e-6 * np.abs(numbers[g]).max()


def test_values_of_features_are_kept_as_shades(data, model, monkeypatch):
    X, Y = data.foreground.copy(), data.background
    X[3, 5] = 1e6  # an outlier does not take the whole scale
    subject = examined(PCPCA(2, gamma=0.1).fit(X, background=Y), X, Y, labels=data.labels)
    found = choose_points(subject)["features"]
    assert found["index"] == list(range(12))
    shades = np.frombuffer(base64.b64decode(found["shades"]), "u1").reshape(12, 220)
    values = np.concatenate([Y, X])
    for j in (0, 5):
        low, high = np.quantile(values[:, j], [0.01, 0.99])
        assert [found["low"][j], found["high"][j]] == pytest.approx([low, high], rel=1e-3)
        assert np.abs(shades[j] / 254 - np.clip((values[:, j] - low) / (high - low), 0, 1)).max() <= 0.5 / 254 + 1e-12
    monkeypatch.setattr(_points, "MAX_VALUES", 3 * 220)
    few = choose_points(subject_of(model, data))["features"]
    largest = np.abs(model.loadings_).max(axis=1) / np.abs(model.loadings_).max()
    assert len(few["index"]) == 3
    assert int(np.argmax(largest)) in few["index"]


def test_missing_values_have_no_shade(data):
    X = data.foreground.copy()
    X[7, 2] = np.nan
    subject = examined(PCPCA(2, gamma=0.1).fit(X, background=data.background), X, data.background, labels=["a"] * 120)
    found = choose_points(subject)["features"]
    shades = np.frombuffer(base64.b64decode(found["shades"]), "u1").reshape(12, 220)
    assert np.argwhere(shades == 255).tolist() == [[2, 107]]


def test_path_through_a_model_holds_its_gamma_once(data, model):
    subject = subject_of(model, data)
    assert np.sum(np.isclose(subject.path.gammas, model.gamma_)) == 1
    assert len(subject.path) == 41
    assert len(subject_of(model, data, gammas=7).path) == 8
    strongest = PCPCA(2, gamma=0.0).fit(data.foreground, background=data.background)
    assert len(subject_of(strongest, data).path) == 40  # 0 is one of the 40


def test_summary_is_what_the_library_says(data):
    model = PCPCA(2, gamma=0.5).fit(data.foreground, background=data.background)
    refits = bootstrap(model, data.foreground, background=data.background, n_resamples=30, random_state=0)
    summary = summarize(
        Study(data.foreground, background=data.background, labels=data.labels), model, uncertainty=refits
    )
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["data"]["foreground"] == {"rows": 120, "missing_values": 0, "incomplete_rows": 0}
    assert summary["data"]["labels"] == {"0": 30, "1": 30, "2": 30, "3": 30}
    assert summary["model"]["gamma"] == pytest.approx(model.gamma_)
    limits = gamma_limits(data.foreground, background=data.background, n_components=2)
    assert summary["model"]["limit"] == pytest.approx(limits.pcpca)
    assert summary["model"]["noise_variance"] == pytest.approx(model.noise_variance_)
    assert summary["model"]["objective"] == pytest.approx(model.objective_)
    for k, entry in enumerate(summary["components"]):
        assert entry["foreground_variance"] == pytest.approx(model.explained_variance_[k])
        assert entry["background_share"] == pytest.approx(model.background_variance_ratio_[k])
        top = entry["features"][0]
        assert abs(top["loading"]) == pytest.approx(np.abs(model.loadings_[:, k]).max())
        assert model.loadings_[int(top["feature"][1:]), k] == pytest.approx(top["loading"])
    assert summary["uncertainty"]["draws"] + summary["uncertainty"]["failures"] == 30
    assert summary["uncertainty"]["angle_median"] == pytest.approx(np.degrees(np.median(refits.angles()[..., 0])))
    assert "PCPCA(gamma=0.5).fit(study)" in summary["code"]["python"]


def test_units_that_a_fit_chose_are_not_in_the_code():
    """They would become parameters, and the test of the page made again would be in other units."""
    rng = np.random.default_rng(0)
    mixing, spread = rng.normal(size=(40, 40)) * np.geomspace(1, 0.02, 40), np.geomspace(1, 30, 40)
    X, Y = (rng.normal(size=(60, 40)) @ mixing.T * spread for _ in range(2))
    study = Study(X, background=Y)
    model = ContraPCA(2).fit(study)
    assert model.plateau_.scale == "pooled"
    assert "model = ContraPCA().fit(study)" in summarize(study, model, test=False, progress=False)["code"]["python"]


def test_the_code_of_a_report_makes_the_same_report(data, model, tmp_path, monkeypatch, need):
    need("jinja2")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    summary = report(Study(data.foreground, background=data.background, labels=data.labels), model)
    first = (tmp_path / "report.html").read_bytes()
    (tmp_path / "report.html").write_bytes(b"mine")
    names = {"cases": data.foreground, "controls": data.background, "labels": data.labels}
    exec(summary["code"]["python"], names)
    assert (tmp_path / "report_again.html").read_bytes() == first
    assert (tmp_path / "report.html").read_bytes() == b"mine"  # the page stays


@pytest.mark.parametrize(
    "estimator",
    [
        PCPCA(2),
        PCPCA(2, gamma=0.3, scale="pooled"),
        CPCA(2, gamma=2.0),
        CPCA(2),
        RatioPCA(2),
        PCPCA(2, solver="lbfgs"),
    ],
    ids=["pcpca", "scaled", "cpca", "cpca auto", "ratio", "gradients"],
)
def test_a_model_is_fitted_with_the_report(data, estimator, monkeypatch):
    X, Y = data.foreground, data.background
    fitted = clone(estimator).fit(X, background=Y)
    read, scatter = [], _numpy.scatter
    monkeypatch.setattr(_numpy, "scatter", lambda rows, *rest: read.append(len(rows)) or scatter(rows, *rest))
    summary = summarize(Study(X, background=Y), estimator, gammas=5, test=False)
    if estimator.solver == "auto" and not (isinstance(estimator, CPCA) and estimator.gamma == "auto"):
        # Each group once, and once more in five folds for ratios on unseen rows; CPCA's "auto" holds rows out, too, and
        # gradients need no moments.
        assert read[:2] == [120, 100]
        assert sum(read[2:]) == 220
    assert json.dumps(summary) == json.dumps(summarize(Study(X, background=Y), fitted, gammas=5, test=False))
    assert summary["model"]["gamma"] == fitted.fit_.gamma
    limit = contrast_path(clone(estimator).set_params(solver="auto"), X, background=Y).gamma_max
    assert summary["model"]["limit"] == pytest.approx(limit)
    with pytest.raises(NotFittedError):  # what was given is left as it was
        estimator.transform(X)


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (PCPCA(12), ValueError, "n_components=12 is not possible"),
        (PCPCA(scale="both"), ValueError, "scale='both' is not valid"),
        (PCPCA(solver="none"), ValueError, "solver='none' is not valid"),
        (CPCA(gamma=-1), ValueError, "gamma=-1 must be"),
        (PCPCA(gamma=1.5), InfeasibleGammaError, "gamma=1.5"),
        (PPCA(2), NotFittedError, "not fitted"),
    ],
)
def test_a_model_that_cannot_be_fitted(data, estimator, error, message):
    with pytest.raises(error, match=message):
        summarize(Study(data.foreground, background=data.background), estimator)


def test_models_of_complete_rows_do_not_show_missing_values(data):
    X, Y = data.foreground, data.background
    holes = np.where(np.arange(X.size).reshape(X.shape) % 50 == 0, np.nan, X)
    path = contrast_path(CPCA(2), X, background=Y, gammas=[0, 0.2])
    summary = summarize(Study(holes, background=Y), CPCA(2, gamma=0.2))  # which is fitted to them
    assert summary["data"]["foreground"]["missing_values"] == np.isnan(holes).sum()
    for thing in (CPCA(2, gamma=0.2).fit(X, background=Y), path):
        with pytest.raises(NonFiniteError, match="These rows must be complete: use ContraPCA"):
            summarize(Study(holes, background=Y), thing)


def test_missing_values_are_counted():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 6)), rng.standard_normal((50, 6))
    X[:5, 0] = np.nan
    Y[3, :2] = np.nan
    summary = summarize(Study(X, background=Y), contrast_path(PCPCA(2), X, background=Y, gammas=[0, 0.1]))
    assert summary["data"]["foreground"] == {"rows": 60, "missing_values": 5, "incomplete_rows": 5}
    assert summary["data"]["background"] == {"rows": 50, "missing_values": 2, "incomplete_rows": 1}
    assert summary["model"]["limit_is_bound"]


def test_sparse_tables_need_no_dense_copy():
    rng = np.random.default_rng(0)
    X, Y = (sp.random_array((n, 30), density=0.2, random_state=rng, format="csr") for n in (80, 70))
    path = contrast_path(PCPCA(2), X, background=Y, gammas=[0, 0.2])
    subject = examined(path, X, Y, labels=ALIKE[:80])
    dense = path.aligned(X.toarray(), start=subject.start)
    assert np.allclose(
        unpacked(choose_points(subject)["positions"], path)[:, 70:], dense, atol=1e-6 * np.abs(dense).max()
    )


def test_shares_at_the_axes_are_those_of_the_table(data):
    """Long rows count less, there as here."""
    X = data.foreground.copy()
    X[:3] *= 20
    summary = summarize(Study(X, background=data.background), ContraPCA(2), test=False, gammas=3)
    assert summary["model"]["shortened"]["foreground"]
    own, start = summary["path"]["axis_shares"], summary["path"]["start"]
    for k, entry in enumerate(summary["components"]):
        assert own["foreground"][start][k] == pytest.approx(entry["foreground_share"])
        assert own["background"][start][k] == pytest.approx(entry["background_share"])
    path = summary.subject.path
    plain = np.var(X @ path.components(path.gammas[start])[0]) / X.var(axis=0).sum()
    assert abs(plain / summary["components"][0]["foreground_share"] - 1) > 0.005  # the control: all rows count alike


def test_many_rows_are_sampled_and_that_is_said(data, model, monkeypatch):
    monkeypatch.setattr(_points, "MAX_POINTS", 50)
    monkeypatch.setattr("contrapca.reporting._cautions.MAX_POINTS", 50)
    subject = subject_of(model, data, labels=ALIKE)
    points = choose_points(subject)
    rows = np.frombuffer(base64.b64decode(points["rows"]), "<u4")
    assert points["positions"]["n"] == rows.size <= 50
    assert points["n_background"] == 22  # in proportion: 100 of 220
    assert np.unique(rows[22:]).size == rows.size - 22
    found = unpacked(points["positions"], subject.path)[subject.start, 22:]
    assert np.allclose(found, model.transform(data.foreground)[rows[22:]], atol=1e-5)
    said = summarize(Study(data.foreground, background=data.background), model)["cautions"][-1]
    assert "random sample of 50 of 220 rows" in said


def test_labels_become_classes_or_a_scale(data, model):
    def column(labels):
        found, *_ = choose_points(subject_of(model, data, labels=labels))["columns"]
        controls, *own = found["entries"]
        assert (controls["name"], controls["rows"]) == ("controls", 100)
        return found, [entry["name"].removeprefix("cases: ") for entry in own]

    for numbers in (np.arange(120) % 30, 100_200 + np.arange(120.0)):
        values = np.frombuffer(base64.b64decode(column(numbers)[0]["numbers"]), "<f8")
        assert np.isnan(values[:100]).all()
        assert np.array_equal(values[100:], numbers)
    with_holes, names = column(np.where(np.arange(120) < 5, np.nan, np.arange(120.0)))
    assert names == ["cases", "no label"]
    assert [entry["rows"] for entry in with_holes["entries"]] == [100, 115, 5]
    assert list(base64.b64decode(with_holes["codes"])) == [0] * 100 + [2] * 5 + [1] * 115
    assert column(np.where(np.arange(120) < 5, None, data.labels))[1] == ["0", "1", "2", "3", "no label"]
    words, names = column([f"name {i % 40}" for i in range(120)])
    assert len(names) == 20
    assert names[-1] == "all other labels"
    assert sum(entry["rows"] for entry in words["entries"]) == 220
    texts = words["texts"]  # of every class, also of those that share a colour
    codes = np.frombuffer(base64.b64decode(texts["codes"]), "u1")
    assert [texts["names"][code] for code in codes] == [""] * 100 + [f"name {i % 40}" for i in range(120)]
    numbered = [f"cluster {i % 12 + 1}" for i in range(120)]
    assert column(numbered)[1] == [f"cluster {k}" for k in range(1, 13)]
    summary = summarize(
        Study(data.foreground, background=data.background, labels=numbered), model, gammas=2, test=False
    )
    assert list(summary["data"]["labels"]) == [f"cluster {k}" for k in range(1, 13)]
    assert column(data.labels.astype(float))[1] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("labels", "scale"),
    [
        (np.arange(120.0), True),
        (np.arange(120) % 21, True),
        (np.arange(120) % 20, False),
        (np.arange(120) % 20 / 4, False),  # few fractions name classes, as few whole numbers do
        (np.where(np.arange(120) < 99, np.arange(120), np.nan), True),
        (np.where(np.arange(120) < 30, np.arange(120.0), np.inf), True),
        (np.where(np.arange(120) < 20, np.arange(120.0), np.inf), False),
        (np.array([*range(119), None], dtype=object), True),
        (np.array([*np.arange(118), 1.5, np.float32(2.5)], dtype=object), True),
        (np.arange(120) % 2 == 0, False),
        (np.arange(120).astype(str), False),
        (np.arange(120).astype("datetime64[D]").astype("datetime64[ns]"), False),
        (np.array([*range(119), "unknown"], dtype=object), False),
    ],
    ids=str,
)
def test_page_and_figures_agree_what_a_scale_is(data, model, labels, scale, need):
    need("matplotlib")
    subject = subject_of(model, data, labels=labels)
    assert (subject.values is not None) == scale
    ax = plots.latents(model.transform(data.foreground), labels=labels)
    assert any(drawn.colorbar is not None for drawn in ax.collections) == scale
    if scale:
        np.testing.assert_array_equal(np.isnan(subject.values), ~np.isfinite(labels.astype(float)))


def test_dates_are_classes():
    days = np.array(["2024-02-10", "NaT", "2024-02-09"], dtype="datetime64[ns]")
    assert as_classes(days).tolist() == ["2024-02-10", "", "2024-02-09"]
    hours = days + np.timedelta64(90, "m")
    assert as_classes(hours).tolist() == ["2024-02-10T01:30:00", "", "2024-02-09T01:30:00"]
    assert on_a_scale(days) is None


def test_twenty_classes_can_be_told_apart(data, model):
    """By symbol, or else by a colour of a palette that any eyes can tell apart."""
    points = choose_points(subject_of(model, data, labels=[f"class {i % 20}" for i in range(120)]))
    looks = [(group["colour"], group["symbol"]) for group in points["columns"][0]["entries"]]
    assert len(looks) == len(set(looks)) == 21
    assert {symbol for _, symbol in looks[1:8]} == {"circle"}  # a few classes need no other


def luminance(colour):
    """As WCAG defines it, of #rrggbb."""
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def test_every_class_can_be_seen_on_light_and_dark_pages():
    panels = re.findall(r"--panel: (#\w{6})", _html.asset("report.css"))
    assert len(panels) == 2

    def contrast(colour):
        lights = [sorted([luminance(colour), luminance(panel)]) for panel in panels]
        return min((high + 0.05) / (low + 0.05) for low, high in lights)

    every = [*COLOURS, BACKGROUND_COLOUR, _points.NO_LABEL_LOOK[0]]
    assert min(map(contrast, every)) > 2
    assert contrast("#F0E442") < 1.5  # the control: yellow on white


def test_natural_order():
    names = ["b", "cluster 10", "Cluster 2", "cluster 1", "", "x2y10", "x2y9", "x02y9", "10", "9", "9" * 5000]
    assert [names[k] for k in natural_order(names)] == [
        *("", "9", "10", "9" * 5000, "b", "cluster 1", "Cluster 2", "cluster 10", "x02y9", "x2y9", "x2y10")
    ]
    for ordered in (
        ["-10", "-2", "\N{MINUS SIGN}1", "-0.5", "0", "0.25", "0.5", "1e2", "1e+03"],
        ["day -10", "day -2", "day 0", "day 3"],
        ["A-1", "A-2", "A-10", "T-1", "T-2"],  # hyphens
        ["0-9", "10-19", "100-109"],
    ):
        assert [ordered[k] for k in natural_order(ordered)] == ordered
        assert natural_order(ordered[::-1]) == list(range(len(ordered)))[::-1]


def test_text_from_users_is_escaped(data, tmp_path, need):
    need("jinja2")
    pandas = need("pandas")
    names = [NASTY, *(f"x{j}" for j in range(1, 12))]
    X, Y = (pandas.DataFrame(table, columns=names) for table in (data.foreground, data.background))
    model = PCPCA(2).fit(X, background=Y)
    target = tmp_path / "report.html"
    labels = [NASTY if i % 2 else "b" for i in range(120)]
    given = {"title": NASTY, "origin": Origin(NASTY, sources=[NASTY])}
    study = Study(X, background=Y, labels=labels, names=([NASTY] * 120, None))
    summarize(study, model, **given).write(target)
    text = target.read_text()
    assert "alert(" in text
    assert '<script>alert("x")' not in text
    assert len(re.findall(r"<script[ >]", text[: text.index('id="summary"')])) == 1


def test_scripts_are_readable():
    """One file for each matter, no line too long, and every file is part of the page."""
    files = list(Path(reporting.__file__).parent.joinpath("page").glob("*.js"))
    assert {file.stem for file in files} == set(_html.SCRIPTS)
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        assert 20 < len(lines) < 400
        assert max(map(len, lines)) <= 120, file.name


@pytest.mark.slow
def test_pages_of_large_tables_stay_small(tmp_path, need):
    """Below 4 MB for 5,000 + 5,000 rows and 500 features."""
    need("jinja2")
    data = make_hidden_clusters(5000, 5000, 500, random_state=0)
    study = Study(data.foreground, background=data.background, labels=data.labels)
    report(study, ContraPCA(2), test=False, output=tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 4e6


def test_nothing_is_fetched_from_elsewhere(data, model, tmp_path, need):
    need("jinja2")
    report(data.foreground, model, background=data.background, output=tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    page = text[: text.index('<script type="application/json" id="summary">')]
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)[^\"]*\"", page)
    assert "default-src 'none'" in page.replace("&#39;", "'")


class TestCautions:
    def said(self, X, Y, model=None, **given):
        model = PCPCA(2, gamma=0.3).fit(X, background=Y) if model is None else model
        return " ".join(summarize(Study(X, background=Y), model, **given)["cautions"])

    def test_none_where_all_is_well(self):
        data = make_hidden_clusters(400, 400, 30, random_state=0)
        assert (
            self.said(data.foreground, data.background, PCPCA(2).fit(data.foreground, background=data.background)) == ""
        )

    def test_exchanged_groups(self):
        rng = np.random.default_rng(0)
        X, Y = rng.standard_normal((80, 6)), 20 * rng.standard_normal((80, 6))
        for cases, controls, swapped in ((X, Y, True), (Y, X, False)):
            found = summarize(Study(cases, background=controls), PCPCA(2, gamma=0).fit(cases, background=controls))
            assert any("swapped" in remark for remark in found["test"]["remarks"]) is swapped
            assert "swapped" not in " ".join(found["cautions"])  # the test is asked, not the limit of gamma

    def test_few_rows(self):
        rng = np.random.default_rng(0)
        X, Y = rng.standard_normal((20, 40)), rng.standard_normal((60, 40))
        said = self.said(X, Y, PCPCA(2, gamma=0.1).fit(X, background=Y))
        assert "fewer cases (20) than features (40)" in said
        assert "fewer controls" not in said

    def test_raw_counts(self):
        rng = np.random.default_rng(0)
        X, Y = (rng.poisson(rng.gamma(0.5, 20.0, size=(n, 6))).astype(float) for n in (80, 60))
        assert "look like raw counts" in self.said(X, Y)
        assert "look like" not in self.said(np.log1p(X), np.log1p(Y))
        assert "look like" not in self.said(X, np.log1p(Y))  # then something else is wrong

    def test_units(self, data):
        X, Y = data.foreground.copy(), data.background.copy()
        X[:, 3] *= 1000
        Y[:, 3] *= 1000
        said = self.said(X, Y)
        assert "'x3' varies" in said
        assert "almost only the feature 'x3'" in said
        scaled = PCPCA(2, gamma=0.3, scale="pooled").fit(X, background=Y)
        assert "units" not in self.said(X, Y, scaled)

    def test_one_feature_has_both_the_direction_and_the_loadings(self):
        """The direction of this component is x0 alone, but its loadings are mostly x1's, which moves with it."""
        rng = np.random.default_rng(0)
        Y, X = (rng.standard_normal((300, 4)) * [1, 30, 1, 1] for _ in range(2))
        X += rng.standard_normal((300, 1)) * [2, 9, 0, 0]
        model = ContraPCA(1, scale=None).fit(X, background=Y)
        assert model.components_[0, 0] ** 2 > 0.9
        found = summarize(Study(X, background=Y), model, gammas=3, test=False)
        assert found["components"][0]["features"][0]["feature"] == "x1"
        assert "almost only" not in " ".join(found["cautions"])
        X[:, 1] = Y[:, 1]
        assert "almost only the feature 'x0'" in self.said(X, Y, ContraPCA(1).fit(X, background=Y))

    def test_an_outlier(self, data):
        X = data.foreground.copy()
        X[7] += 400
        assert "A single case (row 7) accounts for" in self.said(X, data.background)

    def test_shared_components(self, data):
        assert "chance, or something that both share" in self.said(
            data.foreground, data.background, PCPCA(2, gamma=0).fit(data.foreground, background=data.background)
        )

    def test_the_width_of_a_posterior(self, data):
        model = PCPCA(2, gamma=0.3).fit(data.foreground, background=data.background)
        refits = bootstrap(model, data.foreground, background=data.background, n_resamples=20, random_state=0)
        assert "not calibrated" not in self.said(data.foreground, data.background, model, uncertainty=refits)
        posterior = type(refits)(**{**vars(refits), "kind": "gibbs"})
        assert "not calibrated" in self.said(data.foreground, data.background, model, uncertainty=posterior)

    def test_unsettled_draws(self, data):
        model = PCPCA(2, gamma=0.3).fit(data.foreground, background=data.background)
        refits = bootstrap(model, data.foreground, background=data.background, n_resamples=20, random_state=0)
        short = type(refits)(**{**vars(refits), "kind": "gibbs", "divergences": 3})
        assert "have not converged" in self.said(data.foreground, data.background, model, uncertainty=short)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [1, 2]}, r"labels of the foreground has shape \(2,\) for 120"),
        (
            {"labels": (["a"] * 120, [1, 2])},
            r"labels of the background has shape \(2,\) for 100 rows",
        ),
        ({"names": (["a"], None)}, "names of the foreground has shape"),
        ({"gammas": 0}, "gammas=0 must be a whole number"),
    ],
)
def test_bad_input_is_named(data, model, change, message):
    with pytest.raises(ValueError, match=message):
        subject_of(model, data, **change)


def test_other_tables_and_models_are_refused(data, model):
    for X, Y, name in (
        (data.foreground + 1, data.background, "X"),
        (data.foreground, data.background[:80], "background"),
        (data.background, data.foreground, "X"),
    ):
        for thing in (model, contrast_path(PCPCA(2), data.foreground, background=data.background, gammas=[0, 0.2])):
            with pytest.raises(ValueError, match=f"{name} is not the table of the fit: the means of"):
                summarize(Study(X, background=Y), thing)
    with pytest.raises(ValueError, match="X has 11 columns"):
        summarize(Study(data.foreground[:, 1:], background=data.background[:, 1:]), model)
    clvm = CLVM().fit(data.foreground, background=data.background)
    with pytest.raises(TypeError, match="not CLVM"):
        summarize(Study(data.foreground, background=data.background), clvm)


def test_a_failure_leaves_no_file(data, model, tmp_path, need):
    need("jinja2")
    with pytest.raises(ValueError, match="X has 11 columns"):
        report(data.foreground[:, 1:], model, background=data.background[:, 1:], output=tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mean", ["observed", "gls"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_with_holes_the_report_is_of_the_model_itself(seed, mean):
    """Small tables with many holes have several local maxima: a path of its own would find others."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((2, 10)) * 2
    X, Y = (rng.standard_normal((60, 2)) @ shared + rng.standard_normal((60, 10)) for _ in range(2))
    X += np.outer(rng.standard_normal(60), rng.standard_normal(10))
    X, Y = (np.where(rng.random(table.shape) < 0.4, np.nan, table) for table in (X, Y))
    model = PCPCA(3, gamma=0.1, mean=mean).fit(X, background=Y)
    summary = summarize(Study(X, background=Y), model, gammas=5)
    assert summary["model"]["noise_variance"] == pytest.approx(model.noise_variance_, rel=1e-3)
    assert summary["model"]["objective"] == pytest.approx(model.objective_, rel=1e-5)
    found = [entry["foreground_variance"] for entry in summary["components"]]
    np.testing.assert_allclose(found, model.explained_variance_, rtol=1e-2)


def test_one_background_may_have_a_name(data, tmp_path, need):
    need("jinja2")
    pd = need("pandas")
    X, Y = (pd.DataFrame(table).add_prefix("gene") for table in (data.foreground, data.background))
    Y.index = [f"donor{i}" for i in range(len(Y))]
    named, plain = (PCPCA(2).fit(X, background=given) for given in ({"healthy": Y}, Y))
    found, wanted = (
        report(X, model, background=given, output=tmp_path / "report.html")
        for model, given in ((named, {"healthy": Y}), (plain, Y))
    )
    assert found["components"] == wanted["components"]
    assert "donor99" in (tmp_path / "report.html").read_text(encoding="utf-8")
    subject = examined(named, X, {"healthy": Y}, labels=ALIKE)
    assert choose_points(subject)["names"]["background"][-1].startswith("donor")


def test_a_subclass_is_called_what_its_class_is(data):
    class Subclass(PCPCA):
        pass

    found = summarize(Study(data.foreground, background=data.background), Subclass(2))
    assert found["model"]["estimator"] == "Subclass"
    assert "by probabilistic contrastive principal component analysis (PCPCA)" in found["methods"]


def test_a_background_without_any_variance(data):
    model = PCPCA(2, gamma=0).fit(data.foreground, background=np.ones((30, 12)))
    summary = summarize(Study(data.foreground, background=np.ones((30, 12))), model)
    assert summary["components"][0]["background_share"] == 0.0


def test_the_page_says_what_the_noise_decided_and_which_rows_are_long(data, need, tmp_path):
    need("jinja2")
    X, Y = data.foreground.copy(), data.background
    X[3] *= 40
    model = ContraPCA(2).fit(X, background=Y)
    found = summarize(Study(X, background=Y), model, gammas=3, test=False)["model"]
    assert found["noise"] == str(model.plateau_) != ""
    assert "row 3" in found["shortened"]["foreground"]
    assert sum(map(len, found["shortened"].values())) == model.n_shortened_
    report(X, model, background=Y, gammas=3, test=False, output=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert found["noise"] in page
    assert "row 3" in re.search(r"Cases far from most.*?</p>", page, re.S)[0]
    plain = summarize(Study(X, background=Y), PCPCA(2).fit(X, background=Y), gammas=3, test=False)["model"]
    assert (plain["noise"], plain["shortened"]) == ("", {})


def test_a_path_starts_where_auto_would(data):
    X, Y = data.foreground, data.background
    for kind in (PCPCA, ContraPCA):
        path = contrast_path(kind(2), X, background=Y)
        wanted = kind(2).fit(X, background=Y).gamma_
        nearest = path.gammas[np.argmin(np.abs(path.gammas - wanted))]
        assert summarize(Study(X, background=Y), path, test=False)["model"]["gamma"] == pytest.approx(nearest)


def test_a_path_of_cpca_starts_in_the_middle(data):
    """Its "auto" is chosen on held-out rows, of which a path knows nothing."""
    X, Y = data.foreground, data.background
    path = contrast_path(CPCA(2), X, background=Y, gammas=[0.0, 0.5, 2.0])
    assert summarize(Study(X, background=Y), path, test=False)["model"]["gamma"] == 0.5


@pytest.mark.slow
def test_a_path_with_holes_ends_where_solutions_do():
    """The bound of gamma is not sharp in small tables with many holes: the slider ends earlier, and says so."""
    rng = np.random.default_rng(10)
    X, Y = rng.standard_normal((40, 8)), rng.standard_normal((40, 8))
    X[rng.random(X.shape) < 0.5] = np.nan
    Y[rng.random(Y.shape) < 0.5] = np.nan
    model = PCPCA(3, gamma=0.01).fit(X, background=Y)
    subject = examined(model, X, Y, gammas=6)
    assert subject.path.gammas[-1] < 0.95 * subject.path.gamma_max
    assert "no solution was found above gamma" in summarize(Study(X, background=Y), model, gammas=6)["cautions"][-1]
    assert subject.path.gammas[subject.start] == pytest.approx(0.01)


def test_the_verdict_is_first_and_escaped(data, model, tmp_path, need):
    need("jinja2")
    X, Y = data.foreground, data.background
    file = tmp_path / "page.html"
    expected = contrast_test(X, background=Y, random_state=0)
    summary = report(X, model, background=Y, gammas=2, output=file)
    assert summary["verdict"].startswith(f"{expected.verdict()} Component 1 (")
    assert re.search(r"varies [\d.]+ times \([\d.]+ to [\d.]+\) as much in unseen cases", summary["verdict"])
    assert summary["components"][0]["features"][0]["feature"] in summary["verdict"]
    assert summary["test"]["p_values"] == expected.p_values.tolist()
    page = file.read_text()
    assert summary["answer"] == expected.verdict()
    assert page.index("The cases vary more than chance allows") < page.index('class="card"') < page.index("<canvas")
    assert summary["verdict"] in summary["methods"]

    class Nasty(ContrastTest):
        def verdict(self):
            return NASTY

        def remarks(self, n_shown=None):
            return [NASTY]

    nasty = Nasty(0, expected.p_values, expected.statistics, 1.0, 0.05, NASTY)
    assert report(X, model, background=Y, gammas=2, output=file, test=nasty)["verdict"] == NASTY
    assert NASTY not in file.read_text()
    assert summarize(Study(X, background=Y), model, gammas=2, test=False)["verdict"] is None
    assert "test=False" in summarize(Study(X, background=Y), model, gammas=2, test=False)["code"]["python"]
    by_blocks = Study(X, background=Y, blocks=(np.arange(120) % 10, np.arange(100) % 10))
    assert summarize(by_blocks, model, gammas=2)["test"]["units"].startswith("10 + 10 blocks")
    with pytest.raises(ValueError, match="blocks of the foreground has shape"):
        summarize(Study(X, background=Y, blocks=([1], [2])), model, gammas=2)
    with pytest.raises(TypeError, match="test is a str"):
        summarize(Study(X, background=Y), model, gammas=2, test="split")


def test_a_verdict_with_missing_values(data):
    X = np.where(np.random.default_rng(0).random(data.foreground.shape) < 0.05, np.nan, data.foreground)
    summary = summarize(
        Study(X, background=data.background), PCPCA(1, gamma=0.2).fit(X, background=data.background), gammas=2
    )
    assert summary["verdict"].startswith("The cases vary more than chance allows in ")
    assert summary["test"]["missing"]["foreground"] == np.isnan(X).mean()
    assert "values are missing" in summary["test"]["remarks"][0]
    assert summary["components"][0]["held_out_ratio"] > 1


# ---------------------------------------------------------------------- text to take away


def test_the_date_is_of_today_or_of_the_build(data, model, monkeypatch):
    study, given = Study(data.foreground, background=data.background), {"gammas": 2, "test": False}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    summary = summarize(study, model, **given)
    assert summary["date"] == "2023-11-14"
    assert "2023-11-14" in summary["methods"]
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    before = datetime.date.today().isoformat()
    assert before <= summarize(study, model, **given)["date"] <= datetime.date.today().isoformat()


@pytest.mark.parametrize(
    ("kind", "doi"),
    [
        ("ContraPCA", "10.48550/arXiv.2012.07977"),
        ("CPCA", "10.1038/s41467-018-04608-8"),
        ("PPCA", "10.1111/1467-9868.00196"),
    ],
)
def test_methods_have_every_number(data, kind, doi):
    X, Y = data.foreground, data.background
    models = {"ContraPCA": ContraPCA(2, scale="pooled"), "CPCA": CPCA(2, gamma=1.5), "PPCA": PPCA(2)}
    model = models[kind].fit(X, **({} if kind == "PPCA" else {"background": Y}))
    summary = summarize(Study(X, background=Y), model, gammas=2)
    text = summary["methods"]
    assert "We compared 120 cases with 100 controls, measured on 12 features" in text
    assert summary["citations"][0]["doi"] == doi
    assert f"https://doi.org/{doi}" in text
    assert doi in summary["citations"][0]["bibtex"]
    ratios = [
        f"{entry['held_out_ratio']:.2f} ({entry['held_out_interval'][0]:.2f} to {entry['held_out_interval'][1]:.2f})"
        for entry in summary["components"]
    ]
    assert f"was {' and '.join(ratios)} times that of the controls along components 1 and 2" in text
    assert ("gamma" in text) == (kind != "PPCA")
    assert ("standard deviations within groups" in text) == (kind == "ContraPCA")
    if kind == "ContraPCA":
        assert f"{model.n_latent_} latent dimensions" in text
        assert f"gamma = {model.gamma_:.4f} (its limit for these data is {model.gamma_max_:.4f})" in text


def test_methods_of_missing_values_and_intervals(data):
    X = data.foreground.copy()
    X[:3, 0] = np.nan
    model = PCPCA(1, gamma=0.2).fit(X, background=data.background)
    for fitted, how in ((model, "left out of the likelihood"), (CPCA(1, gamma=0.2), "expected under one factor model")):
        methods = summarize(Study(X, background=data.background), fitted, gammas=2)["methods"]
        assert f"(3 of the cases, 0 of the controls) were {how}" in methods
    whole = PCPCA(1, gamma=0.2).fit(data.foreground, background=data.background)
    refits = bootstrap(whole, data.foreground, background=data.background, n_resamples=20, random_state=0)
    summary = summarize(
        Study(data.foreground, background=data.background), whole, gammas=2, uncertainty=refits, test=False
    )
    assert "(90%) are from 20 bootstrap resamples" in summary["methods"]
    assert "was tested" not in summary["methods"]


def test_axis_shares_are_those_of_the_components_at_the_start(data, model):
    subject = subject_of(model, data)
    summary = summarize(Study(data.foreground, background=data.background), model, test=False)
    shares, start = summary["path"]["axis_shares"], subject.start
    for name in ("foreground", "background"):
        np.testing.assert_allclose(shares[name][start], subject.path.shares()[name][start])
    holes = np.where(np.arange(data.foreground.size).reshape(data.foreground.shape) % 40 == 0, np.nan, data.foreground)
    masked = PCPCA(2, gamma=0.2).fit(holes, background=data.background)
    known = summarize(Study(holes, background=data.background), masked, gammas=3)["path"]
    assert [shares is not None for shares in known["axis_shares"]["foreground"]] == [
        g == known["start"] for g in range(len(known["gammas"]))
    ]


def test_the_limit_is_said_with_its_dimensions(data, tmp_path, need):
    """More is possible with fewer dimensions, so no gamma is called impossible."""
    need("jinja2")
    X, Y = data.foreground, data.background
    model = ContraPCA(2).fit(X, background=Y)
    assert f"with {model.n_latent_} latent dimensions, higher with fewer)" in str(model.summary())
    with pytest.warns(ContrastWarning, match="only"):
        assert ContraPCA(2, gamma=1.05 * model.gamma_max_).fit(X, background=Y).n_latent_ < model.n_latent_
    given = {"background": Y, "test": False, "gammas": 2, "output": tmp_path / "report.html"}
    page = report(X, model, **given).page
    assert f"(its limit with {model.n_latent_} latent dimensions is " in page
    assert "(its limit is " in report(X, PCPCA(2), **given).page


def test_shares_with_missing_values_are_those_of_the_model():
    random = np.random.default_rng(0)
    X, Y = random.standard_normal((80, 8)) * [3, 2, 1, 1, 1, 1, 1, 1], random.standard_normal((60, 8))
    X[random.random(X.shape) < 0.1] = np.nan
    model = ContraPCA(2, random_state=0, progress=False).fit(X, background=Y)
    found = summarize(Study(X, background=Y), model, gammas=4, test=False, progress=False)["components"]
    for entry, share, other in zip(
        found, model.explained_variance_ratio_, model.background_variance_ratio_, strict=True
    ):
        assert entry["foreground_share"] == pytest.approx(share, rel=1e-4)
        assert entry["background_share"] == pytest.approx(other, rel=1e-4)


class TestPooledGroups:
    def said(self, X, Y, labels):
        found = summarize(Study(X, background=Y, labels=labels), ContraPCA(2), gammas=2, test=False, progress=False)
        return " ".join(found["remarks"])

    def test_groups_of_cases_with_different_means(self):
        """Two drugs, neither of which varies more than the controls: together they do."""
        random = np.random.default_rng(0)
        X, Y = random.standard_normal((200, 10)), random.standard_normal((200, 10))
        drugs = np.repeat(["a", "b"], 100)
        X[100:, 3] += 6
        assert "9" == self.said(X, Y, drugs)[0]
        assert "of component 1 is the difference between the means of 'a', 'b'." in self.said(X, Y, drugs)
        X[100:, 3] -= 6
        assert self.said(X, Y, drugs) == ""

    @pytest.mark.parametrize("classes", [2, 3, 12])
    def test_silent_on_labels_of_no_meaning(self, classes):
        """70 tables with labels at random, with and without a contrast."""
        random = np.random.default_rng(classes)
        for k in range(70):
            X, Y = random.standard_t(3, (int(random.integers(15, 60)), 6)), random.standard_normal((40, 6))
            X[:, 0] *= 1 + 3 * (k % 2)
            assert self.said(X, Y, random.integers(0, classes, len(X)).astype(str)) == ""


def test_a_component_that_surely_varies_more_is_not_called_shared():
    """1.4 times the variance is hardly more, but 2,000 rows leave no doubt of it; in 40 rows it may be chance."""
    random = np.random.default_rng(0)
    for rows, deviations, other, sure in ((2000, [1.17, 1, 1, 1, 1], 1.0, True), (40, [1.0] * 5, 1.2, False)):
        X, Y = random.standard_normal((rows, 5)) * deviations, other * random.standard_normal((rows, 5))
        found = summarize(Study(X, background=Y), CPCA(1, gamma=0.5), gammas=2, test=False)
        assert found["components"][0]["held_out_ratio"] < SHARED_RATIO
        assert ("hardly more" not in " ".join(found["cautions"])) is sure


def test_a_held_out_ratio_of_zero_is_one():
    """Not an absent one, for which the ratio on the rows of the fit would be taken."""
    entry = {"held_out_ratio": 0.0, "foreground_variance": 5.0, "background_variance": 1.0}
    assert _ratio(entry) == 0
    assert _ratio(entry | {"held_out_ratio": None}) == 5


@pytest.mark.parametrize("classes", [2, 5])
def test_chance_of_labels_is_that_of_kruskal_and_wallis(classes):
    random = np.random.default_rng(0)
    Z, own = random.standard_normal((50, 2)), np.arange(50) % classes
    Z[:, 1] += own
    expected = [scipy.stats.kruskal(*(z[own == c] for c in range(classes))) for z in Z.T]
    np.testing.assert_allclose(chance_of(Z, own), [test.pvalue for test in expected], rtol=1e-10)


def test_what_a_study_knows_is_on_the_page(data, tmp_path, need):
    """Labels with the name of their column, pairs, covariates and names of samples; the code makes the same again."""
    need("jinja2")
    pandas = need("pandas")
    donors, other = np.arange(120) % 20, np.arange(100) % 20
    X, Y = (pandas.DataFrame(table).add_prefix("g") for table in (data.foreground, data.background))
    X, Y = X.assign(donor=donors, age=donors + 0.0), Y.assign(donor=other, age=other + 1.0)
    X["type"], Y["type"] = np.arange(120) % 3, 0
    X.index = [f"s{i}" for i in range(120)]
    study = Study(X, background=Y, blocks="donor", covariates="age", labels="type", paired=True)
    summary = report(study, output=tmp_path / "page.html", gammas=3)
    assert summary["model"]["estimator"] == "ContraPCA"
    assert summary["test"]["units"] == "20 pairs"
    assert summary["data"]["label_name"] == "type"
    assert summary.coordinates()["row"][0] == "s0"
    plain = ContraPCA(2, random_state=0).fit(study)  # which takes the effect of age out, too
    shown = [entry["foreground_variance"] for entry in summary["components"]]
    np.testing.assert_allclose(shown, plain.explained_variance_)
    beside = {"covariates": X[["age"]], "control_covariates": Y[["age"]], "blocks": donors, "control_blocks": other}
    names = beside | {"cases": data.foreground, "controls": data.background, "labels": X["type"].to_numpy()}
    code = summary["code"]["python"].replace("report_again.html", str(tmp_path / "again.html"))
    exec(code, names)
    again = summarize(names["study"], names["model"], gammas=3)
    assert [entry["foreground_variance"] for entry in again["components"]] == pytest.approx(shown)
    assert again["test"]["units"] == summary["test"]["units"]
    assert again["test"]["p_values"] == pytest.approx(summary["test"]["p_values"])
    with pytest.raises(GroupError, match="The model was fitted with covariates"):
        summarize(study, plain)
    with pytest.raises(GroupError, match="report takes no weights"):
        summarize(Study(data.foreground, background=data.background, weights=(np.full(120, 2.0), None)))


def test_arguments_in_the_old_order_are_refused(data, model):
    with pytest.raises(TypeError, match="first argument of report is the Study, or the cases; the model is the second"):
        report(model, data.foreground, background=data.background)
    with pytest.raises(TypeError, match=r"pass the file as output='page\.html'"):
        report(data.foreground, "page.html", background=data.background)


@pytest.mark.parametrize(
    ("model", "strength"),
    [(RatioPCA(2, ridge=0.5), "ridge = 0.5"), (PCPCA(2, gamma=0.25), "gamma = 0.25"), (PPCA(2), "")],
)
def test_the_strength_is_in_the_words_of_the_method(data, model, strength, need):
    need("matplotlib")
    X, Y = data.foreground, data.background
    fitted = model.fit(X) if isinstance(model, PPCA) else model.fit(X, background=Y)
    summary = summarize(Study(X, background=Y), fitted, test=False, gammas=5, progress=False)
    assert summary["model"]["strength"] == strength
    name = type(model).__name__
    assert summary.figure().axes[0].get_title().split("\n")[-1] == (f"{name}, {strength}" if strength else name)
    if strength.startswith("ridge"):
        assert "RatioPCA with 2 components at ridge\xa0=\xa00.5, which is gamma&nbsp;=&nbsp;0.6667." in summary.page
