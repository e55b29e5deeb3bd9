"""Counting calls of functions, however deep they are made and under whatever name they were imported."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from pathlib import Path

# Eigensolvers and optimisers of NumPy and SciPy: all that solving a contrast comes down to.
SOLVERS = ("eigh", "eigvalsh", "eig", "eigsh", "lobpcg", "svd", "svds", "minimize", "fmin_l_bfgs_b")


@contextlib.contextmanager
def calls(*names, packages=("contrapca",), where=lambda arguments: True):
    """A Counter of entered functions.

    Those with one of these names, in files below a folder of one of the packages, and with arguments, by name, of which
    `where` is true.
    """
    found, before = Counter(), sys.getprofile()

    def enter(frame, event, argument):
        if before is not None:  # an outer count goes on
            before(frame, event, argument)
        code = frame.f_code
        if event == "call" and code.co_name in names and not set(packages).isdisjoint(Path(code.co_filename).parts):
            found[code.co_name] += bool(where(frame.f_locals))

    sys.setprofile(enter)
    try:
        yield found
    finally:
        sys.setprofile(before)


def solves():
    """The same for eigensolvers and optimisers of NumPy and SciPy."""
    return calls(*SOLVERS, packages=("numpy", "scipy"))
