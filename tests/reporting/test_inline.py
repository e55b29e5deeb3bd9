"""A report in a notebook, and names that no text can hold."""

import html
import json
import re

import numpy as np
import pytest

from contrapca import PCPCA, report

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


def made(groups, tmp_path, names, **options):
    X, Y = (Frame(table, names) for table in groups)
    return report(
        PCPCA(2, gamma=0.3), X, background=Y, test=False, gammas=3, output=tmp_path / "report.html", **options
    )


def test_a_notebook_shows_the_page(groups, tmp_path):
    found = made(groups, tmp_path, [f"{EVIL}{j}" for j in range(12)])
    assert found["model"]["n_components"] == 2  # a dict, as before
    assert json.loads(json.dumps(found))["data"]["features"] == 12
    shown = found._repr_html_()
    frame = re.fullmatch(r'<iframe srcdoc="([^"]*)" sandbox="([^"]*)" title="[^"]*" style="[^"]*"></iframe>', shown)
    assert html.unescape(frame[1]) == (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "allow-same-origin" not in frame[2]  # the page cannot reach into the notebook
    assert EVIL not in shown


def test_names_with_halves_of_characters(groups, tmp_path):
    """Surrogates, which reach Python from file names or damaged text, cannot be written as UTF-8."""
    names = ["gene\udce9", *(f"gene{j}" for j in range(11))]
    rows = ["row\ud800", *(f"s{i}" for i in range(149))]
    found = made(groups, tmp_path, names, row_names=rows, title="a\udfff", labels=["x\udc00", "y"] * 75)
    page = (tmp_path / "report.html").read_bytes().decode("utf-8")
    assert "a\\udfff" in page
    assert found["title"] == "a\udfff"
