"""Imports that do not keep a command waiting."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import sys
import threading
from collections.abc import Iterator
from typing import Any

# Imported by scikit-learn, SciPy and here, and as long as all other imports.
SELDOM_USED = (
    "numpy.f2py",
    "numpy.testing",
    "scipy.fft",
    "scipy.io",
    "scipy.optimize",
    "scipy.stats",
)
UNUSED = "pandas"  # imported by scikit-learn where it is installed; it knows tables of pandas without that


@contextlib.contextmanager
def quick_imports() -> Iterator[None]:
    """Import without garbage collection, a tenth of the time, and without executing what is seldom used.

    A None among the modules makes Python say that there is no such module.
    """
    for package in SELDOM_USED:
        defer(package)
    collecting, hidden = gc.isenabled(), UNUSED not in sys.modules
    gc.disable()
    if hidden:
        sys.modules[UNUSED] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if hidden:
            del sys.modules[UNUSED]
        if collecting:
            gc.enable()


def defer(name: str) -> None:
    """Let a package be executed when something in it is first used, not when it is imported.

    importlib.util.LazyLoader does the same, but takes an import statement for a use.
    """
    if name in sys.modules or (spec := importlib.util.find_spec(name)) is None:
        return
    package = importlib.util.module_from_spec(spec)
    path = package.__path__
    del package.__path__  # imports of its modules ask for it, and need the package itself first
    lock, executing = threading.RLock(), False

    def execute(attribute: str) -> Any:
        nonlocal executing
        with lock:  # other threads wait
            if executing:
                raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
            if vars(package).get("__getattr__") is execute:
                executing, package.__path__ = True, path
                try:
                    spec.loader.exec_module(package)  # type: ignore[union-attr]
                except BaseException:
                    sys.modules.pop(name, None)
                    raise
                finally:
                    executing = False
                if package.__getattr__ is execute:  # the package may have one of its own
                    del package.__getattr__
        return getattr(package, attribute)

    package.__getattr__ = execute  # type: ignore[method-assign]
    sys.modules[name] = package
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, package)
