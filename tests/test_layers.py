"""Imports point one way: every module imports only from layers below its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import contrapca

ROOT = Path(contrapca.__file__).parent

# From the bottom up; modules of one set do not import each other unless they share a folder.
LAYERS = [
    {"_array", "_progress", "exceptions", "_version"},
    {"_optional", "io"},
    {"_table", "_textfile", "_validation"},
    {"moments", "gaussian"},
    {"objective"},
    {"solvers"},
    {"posterior"},
    {"datasets"},
    {"estimators"},
    {"plots"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
SKLEARN_ALLOWED = {"_validation", "estimators", "datasets", "cli"}
ONE_FILE_ONLY = {
    "PIL": "datasets",
    "arviz": "posterior",
    "matplotlib": "plots",
    "numba": "posterior",
    "nutpie": "posterior",
    "pandas": "_table",
    "threadpoolctl": "_array",
}


def modules():
    return sorted(path for path in ROOT.rglob("*.py") if path.name != "__init__.py" or path.parent != ROOT)


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path):
    """(layer, None) for imports inside the package, (None, library) for others."""
    package = ["contrapca", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require":
            yield None, node.args[0].value.partition(".")[0]  # an optional library, imported late
        elif isinstance(node, ast.Import):
            yield from ((None, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                yield None, node.module.partition(".")[0]
                continue
            base = package[: len(package) - node.level + 1]
            full = [*base, *(node.module.split(".") if node.module else [])]
            if len(full) > 1:
                yield full[1], None
            else:
                # `from . import x`: submodules by name, public names come from the estimators
                yield from ((alias.name if alias.name in LEVEL else "estimators", None) for alias in node.names)


def test_every_module_has_a_layer():
    assert {layer_of(path) for path in modules()} == set(LEVEL)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_point_down(path):
    own = layer_of(path)
    for layer, library in imported(path):
        if layer is not None and layer != own:
            assert LEVEL[layer] < LEVEL[own], f"{own} must not import {layer}"
        if library == "sklearn":
            assert own in SKLEARN_ALLOWED
        if library in ONE_FILE_ONLY:
            assert own == ONE_FILE_ONLY[library]


def test_a_wrong_arrow_is_found(tmp_path, monkeypatch):
    """The control: a module of moments that imports an estimator fails the walk."""
    folder = tmp_path / "moments"
    folder.mkdir()
    bad = folder / "bad.py"
    bad.write_text("from ..estimators import PCPCA\n")
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    with pytest.raises(AssertionError, match="moments must not import estimators"):
        test_arrows_point_down(bad)
