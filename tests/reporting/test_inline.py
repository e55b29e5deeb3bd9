"""A report in a notebook, and names that no text can hold."""

import html
import json
import re

import numpy as np
import pytest

from contrapca import PCPCA, Study, report

EVIL = '"></iframe><script>alert(1)</script>'


@pytest.fixture(autouse=True)
def _libraries(need):
    need("jinja2")


class Frame:
    """A data frame with given column names."""

    def __init__(self, values, names):
        self.values, self.columns, self.shape = values, names, values.shape

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)


def made(groups, tmp_path, features, title=None, **beside):
    X, Y = (Frame(table, features) for table in groups)
    given = {"test": False, "gammas": 3, "output": tmp_path / "report.html", "title": title}
    return report(Study(X, background=Y, **beside), PCPCA(2, gamma=0.3), **given)


def test_a_notebook_shows_the_page(groups, tmp_path):
    found = made(groups, tmp_path, [f"{EVIL}{j}" for j in range(12)])
    assert found["model"]["n_components"] == 2  # a dict, as before
    assert json.loads(json.dumps(found))["data"]["features"] == 12
    shown = found._repr_html_()
    frame = re.fullmatch(r'<iframe srcdoc="([^"]*)" sandbox="([^"]*)" title="[^"]*" style="[^"]*"></iframe>', shown)
    assert html.unescape(frame[1]) == (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "allow-same-origin" not in frame[2]  # the page cannot reach into the notebook
    assert EVIL not in shown


def test_names_that_no_picture_can_hold(groups, tmp_path):
    """Control characters, which SVG files must not have, and names that browsers take a minute to draw."""
    names = ["gene\x01", "long" * 5000, *(f"gene{j}" for j in range(10))]
    given = {"names": (["row\x07", *(f"s{i}" for i in range(149))], None), "labels": ["a\x1f", "b"] * 75}
    found = made(groups, tmp_path, names, title="a\x00b", label_name="l\x02", **given)
    assert found["title"] == "a b"
    data = [json.loads(text) for text in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', found.page)]
    points = next(part for part in data if "positions" in part)
    assert points["loadings"]["features"][:2] == ["gene ", f"{'long' * 249}lon…"]
    assert points["names"]["foreground"][0] == "row "
    assert [entry["name"] for entry in points["columns"][0]["entries"]] == ["controls", "cases: a ", "cases: b"]
    assert not re.search(r"\\u00[01]", json.dumps(data))
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", found.page)
    assert found.loadings()["feature"][0] == "gene\x01"  # tables have the whole name
    assert len(found.loadings()["feature"][1]) == 20_000


def test_names_with_halves_of_characters(groups, tmp_path):
    """Surrogates, which reach Python from file names or damaged text, cannot be written as UTF-8."""
    names = ["gene\udce9", *(f"gene{j}" for j in range(11))]
    rows = ["row\ud800", *(f"s{i}" for i in range(149))]
    found = made(groups, tmp_path, names, names=(rows, None), title="a\udfff", labels=["x\udc00", "y"] * 75)
    page = (tmp_path / "report.html").read_bytes().decode("utf-8")
    assert "a\\udfff" in page
    assert found["title"] == "a\udfff"
