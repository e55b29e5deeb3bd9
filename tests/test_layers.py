"""Imports go down from floor to floor, in no circle, and not to what is private to another folder."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import contrapca
from contrapca.estimators import ContrastSolver, Decomposition

ROOT = Path(contrapca.__file__).parent
FLOORS = {  # a module or folder of the package: its floor
    **dict.fromkeys(("_util", "_version", "_files", "exceptions"), 0),
    "data": 1,
    "moments": 2,
    **dict.fromkeys(("contrast", "missing"), 3),
    **dict.fromkeys(("estimators", "inference"), 4),
    **dict.fromkeys(("datasets", "plots", "reporting", "anndata", "reading", "cli", "__main__", "tl", "pl", "get"), 5),
}


def names(path):
    """The dotted name of a module below the package, as parts; of a folder for its `__init__`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imports(text, package):
    """Modules of the package that a module in the folder `package` imports, late imports included."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = (*package[: len(package) - node.level + 1], *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                inside = ROOT.joinpath(*base, alias.name)
                found = (*base, alias.name) if inside.is_dir() or inside.with_suffix(".py").exists() else base
                yield ".".join(found or (contrapca._HOMES[alias.name],))  # `from .. import PCPCA`: from where it lives


def wrong(graph):
    """Sentences about arrows that point up, reach in or make a circle."""
    for name, targets in graph.items():
        for target in targets:
            own, other = name.split("."), target.split(".")
            if FLOORS[other[0]] > FLOORS[own[0]]:
                yield f"{name} must not import {target}"
            if own[0] != other[0] and any(part[0] == "_" for part in other[1:]):
                yield f"{target} is private"
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"a circle: {' -> '.join(error.args[1])}"


def test_imports_go_down():
    paths = [path for path in sorted(ROOT.rglob("*.py")) if path.parent != ROOT or path.name != "__init__.py"]
    graph = {
        ".".join(names(path)): set(imports(path.read_text(encoding="utf-8"), path.relative_to(ROOT).parts[:-1]))
        for path in paths
    }
    assert {name.partition(".")[0] for name in graph} == set(FLOORS)
    assert sum(map(len, graph.values())) > 500
    assert list(wrong(graph)) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("from ..estimators import PCPCA", "moments._x must not import estimators"),
        ("from .. import PCPCA", "moments._x must not import estimators"),
        ("def late():\n    from ..cli import main", "moments._x must not import cli"),
        ("from ..data.rows import _scipy", "data.rows._scipy is private"),
        ("from ..data.rows._scipy import squares", "data.rows._scipy is private"),
        ("from . import Moments", "a circle: "),
    ],
)
def test_a_wrong_import_is_found(text, says):
    (found,) = wrong({"moments._x": set(imports(text, ("moments",))), "moments": {"moments._x"}})
    assert found.startswith(says)


# ---------------------------------------------------------------------- what others may ask of an estimator


def undeclared(text):
    """Private names of estimators that a module asks of a model, but for those that their bases declare."""
    declared = {*vars(Decomposition), *Decomposition.__annotations__, *vars(ContrastSolver)}
    kinds = [
        kind
        for kind in vars(contrapca.estimators).values()
        if isinstance(kind, type) and issubclass(kind, BaseEstimator)
    ]
    private = {name for kind in kinds for name in dir(kind) if re.match("_[a-z]", name)}
    private -= declared | set(dir(BaseEstimator))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in private and ast.unparse(node.value) not in ("self", "cls"):
            yield node.attr


def test_others_ask_estimators_for_what_they_declare():
    folders = [folder for folder, floor in FLOORS.items() if floor > 3 and folder != "estimators"]
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert len(paths) > 60
    found = {path: list(undeclared(path.read_text(encoding="utf-8"))) for path in paths}
    assert not any(found.values()), {path.name: names for path, names in found.items() if names}


@pytest.mark.parametrize("text", ["model._ranked(data, gamma)", "own.estimator._left_to_data"])
def test_what_they_do_not_declare_is_found(text):
    assert list(undeclared(text))
    assert not list(undeclared("model._fit_to(data, halves); model._limit(groups, 2); self._left_to_data"))
