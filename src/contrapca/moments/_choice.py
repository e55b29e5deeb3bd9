"""How the groups' scatter is stored, which decides the eigensolver, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._util.arrays import is_sparse
from ..groups import Tables, split_groups

# Up to this order a dense eigenproblem is a matter of seconds to a minute and some 1.5 GiB.
MAX_DENSE = 8000
# Sparse rows have few products to make, so that forming a scatter matrix pays only when it is small.
MAX_DENSE_FROM_SPARSE = 500
SPECTRAL = ("eigh", "dual", "lanczos")


@dataclass(frozen=True)
class SolverChoice:
    """A solver's name and why it was chosen.

    Attributes
    ----------
    name : {"eigh", "dual", "lanczos", "lbfgs", "adam"}
    reason : str
    """

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def choose_solver(tables: Tables, requested: str = "auto") -> SolverChoice:
    """The solver for these tables; see `select_solver`."""
    n_rows = sum(table.shape[0] for table in tables.rows)
    return select_solver(n_rows, tables.n_features, any(map(is_sparse, tables.rows)), requested)


def select_solver(n_rows: int, n_features: int, sparse: bool, requested: str = "auto") -> SolverChoice:
    """The solver for `n_rows` rows (both groups together) of `n_features` features.

    - "eigh": partial eigendecomposition of the D x D contrast, rows read once.
    - "dual": a factor of the stacked rows' Gram matrix, then a problem of the order of their number (F7).
    - "lanczos": products with the rows only; nothing of size D x D.
    """
    if requested != "auto":
        if requested not in SPECTRAL:
            allowed = ", ".join(map(repr, SPECTRAL))
            raise ValueError(f"solver={requested!r} is not known. Use 'auto' or one of {allowed}.")
        if requested == "dual" and sparse:
            raise ValueError("solver='dual' would turn sparse rows into dense ones. Use 'lanczos', 'eigh' or 'auto'.")
        return SolverChoice(requested, "asked for")
    D, k = n_features, n_rows
    if sparse:
        if D <= MAX_DENSE_FROM_SPARSE:
            return SolverChoice("eigh", f"sparse rows, but only {D} features: their scatter matrix is small")
        return SolverChoice("lanczos", f"sparse rows with {D} features: only products with the rows are needed")
    if min(D, k) > MAX_DENSE:
        return SolverChoice("lanczos", f"{D} features and {k} rows both exceed {MAX_DENSE}: no dense problem is small")
    if D > k:
        return SolverChoice("dual", f"more features ({D}) than rows ({k}): the problem reduces to order {k}")
    return SolverChoice("eigh", f"{D} features are no more than the {k} rows: one {D} x {D} matrix holds all")


def which_solver(X: Any, *, background: Any = None) -> SolverChoice:
    """The solver that `solver="auto"` picks for these tables, and why; nothing is fitted.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, D)
        The foreground, or both groups stacked.
    background : array-like, data frame or sparse matrix of shape (m, D), optional

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import which_solver
    >>> print(which_solver(np.zeros((20, 500)), background=np.zeros((30, 500))))
    dual: more features (500) than rows (50): the problem reduces to order 50
    """
    tables = split_groups(X, None, background, None, name="which_solver", needs_background=False, allow_missing=True)
    return choose_solver(tables)
