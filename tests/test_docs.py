"""What the documents promise: examples run, links lead somewhere, functions exist."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

import contrapca

ROOT = Path(__file__).parents[1]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/math.md"]


def test_readme_examples_run(tmp_path, monkeypatch, need):
    need("nutpie")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len(blocks) == 5
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in blocks:
            exec(compile(block, "README.md", "exec"), names)
    assert names["latents"].shape == (400, 2)
    assert names["new_rows"].shape == (10, 30)
    assert not np.isnan(names["filled"]).any()
    assert names["grid"].best_params_["n_components"] == 5  # three shared directions and the plane
    assert names["search"].best_n_clusters_ == 4
    assert names["pipeline"].transform(names["rows"]).shape == (800, 2)
    assert "noise_positive_sharp" in printed.getvalue()
    assert contrapca.load(tmp_path / "model.npz").gamma_ > names["density"].gamma_


def test_readme_has_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert 'pip install ".[report]" && contrapca demo' in text
    assert 'pip install -e ".[test]" && pytest' in text


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_to_files(document):
    path = ROOT / document
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text())
    for link in links:
        assert (path.parent / link).exists(), link


def test_math_names_things_that_exist():
    """Every `name` in docs/math.md that looks like ours is one of ours."""
    text = (ROOT / "docs/math.md").read_text()
    source = "\n".join(file.read_text() for file in (ROOT / "src").rglob("*.py"))
    names = set(re.findall(r"`(?:\w+\.)*(\w+)`", text))
    assert len(names) > 20
    external = {"stats", "dsyrk", "name", "gamma_fraction", "missing_simulation", "posterior", "choosing_gamma"}
    missing = {name for name in names - external if not re.search(rf"\b{name}\b", source)}
    assert not missing
    for test_file in re.findall(r"`(tests/[\w/]+\.py)`", text):
        assert (ROOT / test_file).exists(), test_file


def test_auto_fraction_is_what_the_documents_say():
    from contrapca.estimators import AUTO_FRACTION

    said = f"{AUTO_FRACTION:g} of"
    for document in [
        "README.md",
        "CHANGELOG.md",
        "src/contrapca/estimators/pcpca.py",
        "src/contrapca/estimators/cpca.py",
    ]:
        assert said in (ROOT / document).read_text(), document
    assert f'"auto" is **{AUTO_FRACTION:g}**' in (ROOT / "docs/math.md").read_text()


def test_pictures_are_small():
    pictures = list((ROOT / "docs").rglob("*.png"))
    assert pictures
    assert max(picture.stat().st_size for picture in pictures) < 300_000
