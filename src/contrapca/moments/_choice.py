"""The choice of how to store the scatter matrices, which decides the eigensolver."""

from __future__ import annotations

from dataclasses import dataclass

from .._util.arrays import is_sparse
from ..groups import Tables
from ..rows import Blocked

# Up to this order a dense eigenproblem takes at most a minute and about 1.5 GiB.
MAX_DENSE = 8000
# Products with sparse rows are cheap, so forming a scatter matrix pays only when it is small, or when there are so many
# rows that hundreds of products with them cost more.
MAX_DENSE_FROM_SPARSE, MAX_DENSE_FROM_MANY, MANY_ROWS = 500, 500, 5
SPECTRAL = ("eigh", "dual", "lanczos")


@dataclass(frozen=True)
class SolverChoice:
    """The name of a solver and why it was chosen.

    Attributes
    ----------
    name : {"eigh", "dual", "lanczos", "lbfgs"}
    reason : str
    """

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def choose_solver(tables: Tables, requested: str = "auto") -> SolverChoice:
    """The solver for these tables; see `select_solver`."""
    n_rows = sum(table.shape[0] for table in tables.rows)
    if any(isinstance(table, Blocked) for table in tables.rows):
        return _select_for_blocks(tables.n_features, requested)
    return select_solver(n_rows, tables.n_features, any(map(is_sparse, tables.rows)), requested)


def _select_for_blocks(n_features: int, requested: str) -> SolverChoice:
    """The solver for rows that are read in blocks."""
    if requested == "dual":
        raise ValueError("solver='dual' would read all rows into memory. Use 'eigh', 'lanczos' or 'auto'.")
    if requested != "auto":
        return select_solver(n_features, n_features, False, requested)
    if n_features <= MAX_DENSE:
        return SolverChoice("eigh", f"rows are read in blocks, once, for one {n_features} x {n_features} matrix")
    return SolverChoice("lanczos", f"rows are read in blocks, and {n_features} features are too many for a matrix")


def select_solver(n_rows: int, n_features: int, sparse: bool, requested: str = "auto") -> SolverChoice:
    """The solver for `n_rows` rows (both groups together) of `n_features` features.

    - "eigh": partial eigendecomposition of the D x D contrast, rows read once.
    - "dual": a factor of the stacked rows' Gram matrix, then a problem of the order of their number (F7).
    - "lanczos": products with the rows only; nothing of size D x D.
    """
    if requested != "auto":
        if requested not in SPECTRAL:
            allowed = ", ".join(map(repr, SPECTRAL))
            raise ValueError(f"solver={requested!r} is not valid. Choose 'auto' or one of {allowed}.")
        if requested == "dual" and sparse:
            raise ValueError("solver='dual' would make sparse rows dense. Use 'lanczos', 'eigh' or 'auto'.")
        return SolverChoice(requested, "requested")
    D, k = n_features, n_rows
    if sparse:
        if D <= MAX_DENSE_FROM_SPARSE or (D <= MAX_DENSE_FROM_MANY and k >= MANY_ROWS * D):
            return SolverChoice("eigh", f"{k} sparse rows, but only {D} features: their scatter matrix is small")
        return SolverChoice("lanczos", f"sparse rows with {D} features: only products with the rows are needed")
    if min(D, k) > MAX_DENSE:
        return SolverChoice("lanczos", f"{D} features and {k} rows both exceed {MAX_DENSE}: too large to be dense")
    if D > k:
        return SolverChoice("dual", f"more features ({D}) than rows ({k}): the problem reduces to order {k}")
    return SolverChoice("eigh", f"{D} features and {k} rows: one {D} x {D} matrix is enough")
