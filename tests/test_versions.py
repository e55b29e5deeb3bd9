"""Versions, and the address, are said alike in all places."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import contrapca

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
FLOOR = PROJECT["requires-python"].removeprefix(">=")


def test_python():
    promised = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if " :: Python :: 3." in text]
    assert promised[0] == FLOOR
    for name in ("tests", "docs", "release"):  # the oldest Python, but in the matrix of the tests
        text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
        assert set(re.findall(r'python-version: "(.*)"', text)) == {FLOOR}
        if name == "tests":
            assert re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", text)[1]) == promised


def test_every_requirement_has_a_floor():
    """Which the job of the lowest versions installs."""
    done = subprocess.run([sys.executable, ROOT / ".ci" / "lowest.py"], capture_output=True, text=True, check=True)
    pins = dict(pin.split("==") for pin in done.stdout.split())
    assert pins.keys() > {"numpy", "scipy", "scikit-learn", "threadpoolctl", "matplotlib", "polars", "nutpie", "pytest"}
    given = [*PROJECT["dependencies"], *(text for texts in PROJECT["optional-dependencies"].values() for text in texts)]
    for name, version in pins.items():
        assert f"{name}>={version}" in given


def test_the_recipe(need):
    recipe = need("yaml").safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"] == {"version": contrapca.__version__, "python_min": FLOOR}
    python, *needed = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert [text.replace(" ", "") for text in needed] == PROJECT["dependencies"]
    backend = PYPROJECT["build-system"]["requires"]
    assert [text.replace(" ", "") for text in recipe["requirements"]["host"][2:]] == backend


def test_the_registry_entry(need):
    entry = need("yaml").safe_load((ROOT / "scverse" / "meta.yaml").read_text(encoding="utf-8"))
    assert (entry["name"], entry["version"]) == (PROJECT["name"], contrapca.__version__)
    assert entry["project_home"] == PROJECT["urls"]["Repository"]
