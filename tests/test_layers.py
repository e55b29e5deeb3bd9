"""Imports point one way: from room to room, and from module to module inside a room."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import contrapca

ROOT = Path(contrapca.__file__).parent

# From the bottom up. Rooms of one set do not import each other, but for those at the bottom, whose modules are sorted.
LAYERS = [
    {"_util", "_version", "exceptions"},
    {"rows"},
    {"_checks", "backgrounds", "gaussian"},
    {"groups"},
    {"blocks", "covariates", "units"},
    {"study"},
    {"depth"},
    {"sanity"},
    {"moments"},
    {"subspaces"},
    {"objectives"},
    {"solvers"},
    {"limits"},
    {"methods"},
    {"fitting"},
    {"uncertainty"},
    {"saving", "theory"},
    {"estimators"},
    {"paths"},
    {"selection"},
    {"datasets", "tables"},
    {"plots"},
    {"scverse"},
    {"reporting"},
    {"results", "tl", "pl", "get"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
BOTTOM = LAYERS[0]
OPEN_FOLDERS = {"_util"}  # whose modules are imported from everywhere; those of other folders are their own
# The reduction to fewer coordinates is one of dense rows, and centres them all at once.
REACHING_IN = {("moments._dual", "rows._numpy"), ("moments._dual_on_device", "rows._array_api")}
SKLEARN_ALLOWED = {"groups", "fitting", "theory", "paths", "estimators", "selection", "datasets", "reporting", "cli"}
SKLEARN_NAMES = {"fitting": {"ConvergenceWarning"}}  # all that a room may take of it
ONE_ROOM_ONLY = {
    "anndata": "tables datasets",
    "array_api_compat": "_util",
    "fastexcel": "tables",
    "PIL": "datasets",
    "arviz": "uncertainty",
    "dask": "rows",
    "h5py": "rows",
    "jinja2": "reporting",
    "matplotlib": "plots",
    "numba": "uncertainty",
    "nutpie": "uncertainty",
    "pandas": "datasets scverse",
    "polars": "rows tables",
    "threadpoolctl": "_util",
    "zarr": "rows",
}


def modules():
    """Every module, and the packages' own `__init__`, but for that of contrapca itself, which loads names late."""
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def name_of(path: Path) -> str:
    """ "moments._dual", or "moments" for its `__init__`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(name: str) -> str:
    return name.partition(".")[0]


def exists(name: str) -> bool:
    file = ROOT.joinpath(*name.split("."))
    return file.with_suffix(".py").exists() or (file / "__init__.py").exists()


def imported(path: Path):
    """(module, None) for imports inside the package, (None, (library, names)) for others; late imports included."""
    package = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require":
            yield None, (node.args[0].value.partition(".")[0], set())  # an optional library
        elif isinstance(node, ast.Import):
            yield from ((None, (alias.name.partition(".")[0], {alias.name})) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            if node.level == 0:
                yield None, (node.module.partition(".")[0], names)
                continue
            base = [*package[: len(package) - node.level + 1], *(node.module.split(".") if node.module else [])]
            for name in names:
                inside = ".".join([*base, name])
                if exists(inside):
                    yield inside, None
                elif base:
                    yield ".".join(base), None
                else:  # `from . import x`: a public name, from where it lives
                    yield contrapca._HOMES[name], None


def imports_of(path: Path) -> set[str]:
    return {module for module, _ in imported(path) if module is not None}


def cycle(paths) -> list[str] | None:
    """Modules that import each other in a circle, if any do; imports of other modules than these do not count."""
    names = {name_of(path): path for path in paths}
    graph = {name: imports_of(path) & names.keys() for name, path in names.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def folders():
    return sorted({path.parent for path in modules()} - {ROOT})


def test_every_room_has_a_layer():
    assert {room_of(name_of(path)) for path in modules()} == set(LEVEL)


def identifier(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", modules(), ids=identifier)
def test_arrows_point_down(path):
    name = name_of(path)
    own = room_of(name)
    for module, library in imported(path):
        if module is not None:
            room = room_of(module)
            below = LEVEL[room] < LEVEL[own] or {room, own} <= BOTTOM
            assert room == own or below, f"{own} must not import {room}"
            private = "." in module and room not in OPEN_FOLDERS
            assert room == own or not private or (name, module) in REACHING_IN, f"{module} is private to {room}"
        elif library[0] == "sklearn":
            assert own in SKLEARN_ALLOWED, f"{own} must not import scikit-learn"
            assert own not in SKLEARN_NAMES or library[1] <= SKLEARN_NAMES[own]
        elif library[0] in ONE_ROOM_ONLY:
            assert own in ONE_ROOM_ONLY[library[0]].split(), f"{own} must not import {library[0]}"


@pytest.mark.parametrize("folder", folders(), ids=identifier)
def test_arrows_inside_a_folder_point_one_way(folder):
    """Also to the folder itself: a module that imports what its `__init__` gathers would be part of a circle."""
    found = cycle(folder.glob("*.py"))
    assert found is None, f"a circle of imports: {' -> '.join(found or [])}"


def test_no_circle_anywhere():
    found = cycle(modules())
    assert found is None, f"a circle of imports: {' -> '.join(found or [])}"


@pytest.mark.parametrize("folder", folders(), ids=identifier)
def test_modules_inside_a_folder_are_private(folder):
    open_ = [path.name for path in folder.glob("*.py") if not path.name.startswith("_")]
    assert not open_ or folder.name in OPEN_FOLDERS


# ---------------------------------------------------------------------- controls


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A package of files that the walk looks at instead: name to text."""
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)

    def write(**files):
        for name, text in files.items():
            folder, file = name.split("__", 1)
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"_{file}.py").write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from ..estimators import PCPCA\n", "moments must not import estimators"),
        ("from .. import PCPCA\n", "moments must not import estimators"),
        ("def late():\n    from ..cli import main\n", "moments must not import cli"),
        ("from ..solvers import top_eigenpairs\n", "moments must not import solvers"),
        ("from ..rows._scipy import squares\n", r"rows._scipy is private to rows"),
        ("from ..rows import _scipy\n", r"rows._scipy is private to rows"),
        ("import sklearn.base\n", "moments must not import scikit-learn"),
        ("from threadpoolctl import threadpool_limits\n", "moments must not import threadpoolctl"),
        ("plt = require('matplotlib.pyplot', extra='plot')\n", "moments must not import matplotlib"),
    ],
)
def test_a_wrong_arrow_is_found(elsewhere, text, message):
    root = elsewhere(moments__bad=text, rows__scipy="", moments__good="from ..rows import storage\n")
    test_arrows_point_down(root / "moments" / "_good.py")
    with pytest.raises(AssertionError, match=message):
        test_arrows_point_down(root / "moments" / "_bad.py")


@pytest.mark.parametrize(
    ("back", "circle"),
    [
        ("from ._first import x\n", {"moments._first", "moments._second", "moments._third"}),
        ("from . import _first\n", {"moments._first", "moments._second", "moments._third"}),
        ("def late():\n    from ._first import x\n", {"moments._first", "moments._second", "moments._third"}),
        ("from . import x\n", {"moments", "moments._third"}),  # of the folder's __init__
        ("from ..moments import x\n", {"moments", "moments._third"}),
    ],
)
def test_a_circle_inside_a_folder_is_found(elsewhere, back, circle):
    files = {"moments__first": "from ._second import x\n", "moments__second": "from ._third import x\n"}
    root = elsewhere(**files, moments__third="x = 1\n")
    (root / "moments" / "__init__.py").write_text("from ._third import x\n")
    test_arrows_inside_a_folder_point_one_way(root / "moments")
    elsewhere(moments__third=back)
    with pytest.raises(AssertionError, match="a circle of imports"):
        test_arrows_inside_a_folder_point_one_way(root / "moments")
    assert circle <= set(cycle((root / "moments").glob("*.py")) or ())


def test_a_circle_at_the_bottom_is_found(elsewhere):
    """Where rooms may import each other, their modules still may not."""
    root = elsewhere(_util__text="from ..exceptions import warn\n")
    (root / "exceptions.py").write_text("from ._util._text import listed\n")
    with pytest.raises(AssertionError, match="a circle of imports"):
        test_no_circle_anywhere()


def test_an_open_module_is_found(elsewhere):
    root = elsewhere(moments__dual="")
    test_modules_inside_a_folder_are_private(root / "moments")
    (root / "moments" / "dual.py").write_text("")
    with pytest.raises(AssertionError):
        test_modules_inside_a_folder_are_private(root / "moments")
