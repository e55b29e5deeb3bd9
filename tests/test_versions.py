"""Versions, and the address, are said alike in all places."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import contrapca
from contrapca._version import DOCUMENTATION

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


def address():
    """The account that the repository and the site belong to; a placeholder until the first release."""
    return re.fullmatch(r"https://github\.com/([\w-]+)/contrapca", PROJECT["urls"]["Repository"])[1]


ADDRESS = re.compile(r"(?:github\.com|githubusercontent\.com|//)[/:]?([\w-]+)(?:\.github\.io)?/contrapca\b")


def test_the_address_is_the_same_everywhere():
    """One placeholder, which one command of CONTRIBUTING.md replaces."""
    files = ["README.md", "CITATION.cff", "pyproject.toml", "conda/recipe.yaml", "scverse/meta.yaml"]
    for name in files:
        assert set(ADDRESS.findall((ROOT / name).read_text(encoding="utf-8"))) == {address()}, name
    command = re.search(r"git grep -lz (\S+) .*s/(\S+)/YOUR-ACCOUNT/g", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert command[1] == command[2]
    assert DOCUMENTATION in ("", PROJECT["urls"]["Documentation"].rstrip("/"))


def test_readme_on_the_package_index():
    """Links and pictures are absolute there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](docs/" in text
    for rule in PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert len(targets) > 20
    assert all(target.startswith("https://") for target in targets)
    root = f"https://raw.githubusercontent.com/{address()}/contrapca/main/"
    for picture in re.findall(r"!\[[^\]]*\]\((\S+\.png)\)", text):
        assert (ROOT / picture.removeprefix(root)).exists()


def test_actions_are_pinned():
    """To the commit of a release: a tag can be moved to other code."""
    used = [
        line.partition("uses: ")[2]
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "uses: " in line
    ]
    assert len(used) > 10
    assert not [action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)]
    assert len({action.partition("@")[0] for action in used}) == len(set(used))  # one version of each


def test_the_registry_entry(need):
    """Keys and values that schema 2.0 of the scverse ecosystem allows."""
    entry = need("yaml").safe_load((ROOT / "scverse" / "meta.yaml").read_text(encoding="utf-8"))
    needed = {"name", "description", "project_home", "documentation_home", "install", "license", "tags", "contact"}
    assert needed <= entry.keys() <= needed | {
        "tutorials_home", "primary_category", "language", "publications", "logo", "test_command", "category",
    }  # fmt: skip
    assert entry["name"] == PROJECT["name"]
    assert (entry["license"], entry["category"]) == (PROJECT["license"], "ecosystem")
    assert (entry["project_home"], entry["documentation_home"]) == (
        PROJECT["urls"]["Repository"],
        PROJECT["urls"]["Documentation"],
    )
    assert entry["primary_category"] == "scRNA-seq"
    known = {"scRNA-seq", "bulk RNA-seq", "dimensionality reduction", "perturbation", "probabilistic modeling"}
    assert set(entry["tags"]) <= known
    assert entry["contact"] == [address()]
    assert "::" in entry["install"]["conda"]
