"""What is said twice is said alike: in .ci/run, the workflows, pyproject.toml, the recipe and the documents."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from contrapca.saving import REGISTRY

import contrapca
from contrapca.estimators import Decomposition

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"
FORMS = sorted(
    str(path.relative_to(ROOT).as_posix())
    for folder in (".github", "conda")
    for path in (ROOT / folder).rglob("*.y*ml")
)


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


PROJECT = tomllib.loads(read("pyproject.toml"))["project"]
FLOOR = PROJECT["requires-python"].removeprefix(">=")
EXTRAS = PROJECT["optional-dependencies"]


@pytest.fixture(scope="module")
def workflow(need):
    yaml = need("yaml")
    return lambda name: yaml.safe_load(read(f".github/workflows/{name}.yml"))


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def steps_of_ci():
    """The steps of .ci/run: name to its commands."""
    found = re.findall(r"^step_(\w+)\(\) \{ # \S.*\n((?:.*\n)*?)\}$", read(".ci/run"), re.M)
    return {name: [line.strip() for line in body.splitlines()] for name, body in found}


# ---------------------------------------------------------------- .ci/run and the workflows


def test_every_step_of_ci_but_the_lowest_versions_is_run_by_default():
    listed = re.search(r'^all="(.*)"$', read(".ci/run"), re.M)[1].split()
    assert [*listed, "lowest"] == list(steps_of_ci())
    assert "slow" in listed


def test_the_workflow_runs_every_step(workflow):
    jobs = workflow("tests")["jobs"]
    by_name = jobs["step"]["strategy"]["matrix"]["step"]
    assert [*by_name, "test"] == [name for name in steps_of_ci() if name != "test"] + ["test"]
    assert commands(jobs["step"]) == [".ci/run ${{ matrix.step }}"]
    install, test = commands(jobs["test"])
    assert install.removeprefix("pip install ") in steps_of_ci()["test"][1]
    assert test == steps_of_ci()["test"][-1]


def test_the_matrix_is_what_the_package_promises(workflow):
    matrix = workflow("tests")["jobs"]["test"]["strategy"]["matrix"]
    promised = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if " :: Python :: 3." in text]
    assert matrix["python"] == promised
    assert promised[0] == FLOOR
    assert "Operating System :: OS Independent" in PROJECT["classifiers"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    for name in ("tests", "docs", "release"):  # other jobs use the oldest Python
        assert set(re.findall(r'python-version: "(.*)"', read(f".github/workflows/{name}.yml"))) == {FLOOR}


def test_the_documentation_is_built_alike(workflow):
    install, build = commands(workflow("docs")["jobs"]["build"])
    in_ci = steps_of_ci()["docs"]
    assert install.removeprefix("pip install ") in in_ci[0]
    assert build.rpartition(" ")[0] == in_ci[1].rpartition(" ")[0]


def test_extras_that_are_installed_exist():
    texts = [read(path) for path in (*FORMS, ".ci/run", "README.md", "CONTRIBUTING.md")]
    named = {
        name for text in texts for names in re.findall(r'[.\w}*)]\[([a-z,]+)\]"', text) for name in names.split(",")
    }
    assert {"test", "dev", "report"} <= named <= set(EXTRAS)


# ---------------------------------------------------------------- workflows are well-formed, and may do little


@pytest.mark.parametrize("path", FORMS)
def test_forms_are_valid(path, need):
    assert isinstance(need("yaml").safe_load(read(path)), dict)
    assert "\t" not in read(path)


@pytest.mark.parametrize("name", ["tests", "docs", "release"])
def test_workflows_may_do_little(workflow, name):
    found = workflow(name)
    assert found["permissions"] == {"contents": "read"}
    for job in found["jobs"].values():
        assert job["timeout-minutes"] <= 45
        for step in job["steps"]:
            # Of a major version: dependabot proposes the next.
            assert "uses" not in step or re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step["uses"])
    allowed = {"docs": {"pages", "id-token"}, "release": {"id-token", "attestations"}, "tests": set()}[name]
    given = [job["permissions"] for job in found["jobs"].values() if "permissions" in job]
    assert set().union(*given) == allowed


def test_only_tags_publish(workflow):
    found = workflow("release")
    assert found[True] == {"push": {"tags": ["v*"]}}  # YAML takes "on" for a truth value
    assert found["jobs"]["publish"]["needs"] == "build"
    assert found["jobs"]["publish"]["environment"] == "release"


# ---------------------------------------------------------------- versions


def test_every_requirement_has_a_floor():
    """Which the job of the lowest versions installs."""
    done = subprocess.run([sys.executable, ROOT / ".ci" / "lowest.py"], capture_output=True, text=True, check=True)
    pins = dict(pin.split("==") for pin in done.stdout.split())
    assert pins.keys() > {"numpy", "scipy", "scikit-learn", "threadpoolctl", "matplotlib", "polars", "nutpie", "pytest"}
    given = [*PROJECT["dependencies"], *(text for texts in EXTRAS.values() for text in texts)]
    for name, version in pins.items():
        assert f"{name}>={version}" in given


def test_the_recipe_is_of_this_package(need):
    recipe = need("yaml").safe_load(read("conda/recipe.yaml"))
    assert recipe["context"] == {"version": contrapca.__version__, "python_min": FLOOR}
    python, *needed = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert [text.replace(" ", "") for text in needed] == PROJECT["dependencies"]
    backend = tomllib.loads(read("pyproject.toml"))["build-system"]["requires"]
    assert [text.replace(" ", "") for text in recipe["requirements"]["host"][2:]] == backend
    assert recipe["about"]["summary"] == PROJECT["description"]
    entry_points = dict(text.split(" = ") for text in recipe["build"]["python"]["entry_points"])
    assert entry_points == PROJECT["scripts"]


# ---------------------------------------------------------------- documents


# Addresses and paths of one machine, and places for secrets.
PRIVATE = re.compile(r"/root/|/home/|/Users/|file://|index-url|find-links|localhost|secrets\.|@example\.")


@pytest.mark.parametrize(
    "path", [*FORMS, ".ci/run", ".ci/lowest.py", "SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"]
)
def test_nothing_is_of_one_machine(path):
    assert not PRIVATE.findall(read(path))


def test_contributing_names_the_commands():
    text = read("CONTRIBUTING.md")
    for command in ("pytest -m slow", "tests/fuzz.py", ".ci/run lowest", "SECURITY.md", "CODE_OF_CONDUCT.md"):
        assert command in text


# ---------------------------------------------------------------- nothing fails on Windows at import

POSIX_ONLY = {
    *("crypt", "curses", "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "spwd", "syslog", "termios"),
    "tty",
}  # fmt: skip
POSIX_NAMES = {
    *("fork", "geteuid", "getuid", "getgid", "getloadavg", "killpg", "mkfifo", "nice", "setsid", "sched_getaffinity"),
    *("sysconf", "uname", "wait", "SIGKILL", "SIGALRM", "SIGHUP", "SIGUSR1"),
}
SOURCES = sorted(path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py"))


def run_at_import(body):
    """Statements that run when a module is imported: not the bodies of functions."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from run_at_import([*node.decorator_list, node.args] if hasattr(node, "decorator_list") else [])
        else:
            yield node
            yield from run_at_import(ast.iter_child_nodes(node))


def windows_has_not(text):
    """What a module asks for at import that Windows has not."""
    found = set()
    for node in run_at_import(ast.parse(text).body):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names} & POSIX_ONLY
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= {node.module.partition(".")[0]} & POSIX_ONLY
            if node.module in ("os", "signal"):
                found |= {alias.name for alias in node.names} & POSIX_NAMES
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in ("os", "signal"):
            found |= {node.attr} & POSIX_NAMES
    return found


def test_windows_can_import_every_module():
    assert len(SOURCES) > 150
    found = {str(path.relative_to(ROOT)): windows_has_not(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import resource", {"resource"}),
        ("import os, fcntl", {"fcntl"}),
        ("from pwd import getpwnam", {"pwd"}),
        ("from os import fork", {"fork"}),
        ("import os\nROOT = os.geteuid() == 0", {"geteuid"}),
        ("import os\n@mark(os.getuid())\ndef f(): pass", {"getuid"}),
        ("import os\ndef f(x=os.getuid()): pass", {"getuid"}),
        ("try:\n    import termios\nexcept ImportError:\n    termios = None", {"termios"}),
        ("def late():\n    import resource", set()),
        ("import os\nimport signal\nsignal.SIGINT, os.getpid", set()),
        ("from importlib import resources", set()),
    ],
)
def test_what_windows_has_not_is_found(text, found):
    """The control."""
    assert windows_has_not(text) == found


# ---------------------------------------------------------------- estimators answer for themselves

PACKAGE = Path(contrapca.__file__).parent
# With their bases. What else a file may hold has no part in this.
ESTIMATORS = {name for name, kind in REGISTRY.items() if issubclass(kind, Decomposition)}
ESTIMATORS |= {"Decomposition", "WithStrength"}


def names_in(node):
    """Classes that an expression names, as such or in quotes."""
    for part in ast.walk(node):
        yield getattr(part, "id", None) or getattr(part, "attr", None) or getattr(part, "value", None)


def decides_by_class(text):
    """The classes of estimators that a module tells apart: by isinstance, by a pattern or by comparing names."""
    tree = ast.parse(text)
    unions = {
        node.targets[0].id: names_in(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.BinOp | ast.Tuple)
        and hasattr(node.targets[0], "id")
    }
    known = {name: {name} for name in ESTIMATORS}
    known |= {union: set(parts) & ESTIMATORS for union, parts in unions.items()}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            found += names_in(node.args[1])
        elif isinstance(node, ast.Compare):
            found += [name for side in (node.left, *node.comparators) for name in names_in(side)]
        elif isinstance(node, ast.MatchClass):
            found += names_in(node.cls)
    return set().union(*(known[name] for name in found if isinstance(name, str) and name in known))


def test_code_asks_estimators_and_not_for_their_class():
    """So that a new estimator need not join lists in many files; CONTRIBUTING.md says what it answers."""
    outside = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "estimators"]
    assert len(outside) > 150
    found = {str(path.relative_to(PACKAGE)): decides_by_class(path.read_text(encoding="utf-8")) for path in outside}
    assert {name: classes for name, classes in found.items() if classes} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("isinstance(model, PCPCA)", {"PCPCA"}),
        ("isinstance(model, ContrastPath | PPCA)", {"PPCA"}),
        ("isinstance(model, (CPCA, estimators.RatioPCA))", {"CPCA", "RatioPCA"}),
        ("Ours = PPCA | WithStrength\nisinstance(model, Ours)", {"PPCA", "WithStrength"}),
        ("issubclass(kind, Decomposition)", {"Decomposition"}),
        ("type(model) is KernelCPCA", {"KernelCPCA"}),
        ("METHODS[name] is not CPCA", {"CPCA"}),
        ("entry.method == 'ContraPCA'", {"ContraPCA"}),
        ("type(model).__name__ in ('CLVM', 'PPCA')", {"CLVM", "PPCA"}),
        ("match model:\n    case SparseCPCA():\n        pass", {"SparseCPCA"}),
        ("isinstance(data, Complete) and model._contrasts", set()),
        ("isinstance(found, Moments) or found == 'moments'", set()),
        ("def f(model: PCPCA) -> str:\n    return CPCA(2).fit(X) and 'CPCA'", set()),
    ],
)
def test_decisions_by_class_are_found(text, found):
    """The control."""
    assert decides_by_class(text) == found


# ---------------------------------------------------------------- the entry in scverse's registry

# What its schema asks for.
ENTRY = {
    "name",
    "description",
    "project_home",
    "documentation_home",
    "install",
    "license",
    "tags",
    "version",
    "contact",
}


def test_the_registry_entry_is_of_this_package(need):
    entry = need("yaml").safe_load(read("scverse/meta.yaml"))
    assert entry.keys() > ENTRY | {"category", "test_command", "tutorials_home"}
    assert (entry["name"], entry["version"]) == (PROJECT["name"], contrapca.__version__)
    assert entry["license"] == PROJECT["license"]
    assert entry["install"]["pypi"] == PROJECT["name"]
    assert all(isinstance(tag, str) for tag in entry["tags"] + entry["contact"])
    assert len(set(entry["tags"])) == len(entry["tags"])
    page = entry["tutorials_home"].removeprefix(entry["documentation_home"]).removesuffix(".html")
    assert (ROOT / f"docs{page}.ipynb").exists()
    assert entry["test_command"].partition(" && ")[2] == "pytest"
