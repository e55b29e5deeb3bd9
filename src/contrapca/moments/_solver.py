"""Which eigensolver, and why."""

from __future__ import annotations

from dataclasses import dataclass

from .._util.arrays import is_sparse
from ..data import Tables
from ..data.rows import DaskRows

# Up to this order a dense eigenproblem takes at most a minute and about 1.5 GiB.
MAX_DENSE = 8000

# What sparse rows cost, counted in multiplications with one stored value, each of which moves 24 bytes: the
# eigenproblems of a fit, as a part of D^3, and the number of vectors that the rows are multiplied with, forth and back,
# instead of forming a matrix. Both were measured on one machine, for a few components.
EIGENPROBLEMS, PRODUCTS = 4 / 9, 500

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

    def _check_values(self) -> None:
        """Raise unless there is such a solver."""
        if self.name not in (*SPECTRAL, "lbfgs"):
            raise ValueError(f"its solver {self.name!r} does not exist")

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def choose_solver(tables: Tables, requested: str = "auto") -> SolverChoice:
    """The solver for these tables; see `select_solver`."""
    D = tables.n_features
    if any(isinstance(table, DaskRows) for table in tables.rows):
        if requested == "dual":
            raise ValueError("solver='dual' would read all rows into memory. Use 'eigh', 'lanczos' or 'auto'.")
        if requested == "auto" and D <= MAX_DENSE:
            return SolverChoice("eigh", f"rows are read in blocks, once, for one {D} x {D} matrix")
        if requested == "auto":
            return SolverChoice("lanczos", f"rows are read in blocks, and {D} features are too many for a matrix")
    n_rows = sum(table.shape[0] for table in tables.rows)
    sparse = any(map(is_sparse, tables.rows))
    stored = sum(table.nnz if is_sparse(table) else table.size for table in tables.rows) if sparse else None
    return select_solver(n_rows, D, stored, requested)


def select_solver(n_rows: int, n_features: int, stored: int | None, requested: str = "auto") -> SolverChoice:
    """The solver for `n_rows` rows (both groups together) of `n_features` features, given how many values sparse rows
    have `stored`; None if rows are dense.

    - "eigh": partial eigendecomposition of the D x D contrast, rows read once.
    - "dual": a factor of the stacked rows' Gram matrix, then a problem of the order of their number (F7).
    - "lanczos": products with the rows only; nothing of size D x D.
    """
    if requested != "auto":
        if requested not in SPECTRAL:
            allowed = ", ".join(map(repr, SPECTRAL))
            raise ValueError(f"solver={requested!r} is not valid. Choose 'auto' or one of {allowed}.")
        if requested == "dual" and stored is not None:
            raise ValueError("solver='dual' would make sparse rows dense. Use 'lanczos', 'eigh' or 'auto'.")
        return SolverChoice(requested, "requested")
    D, k = n_features, n_rows
    if stored is not None:
        pairs = stored**2 / max(k, 1) / 2  # of values in a row, if all rows have as many, each multiplied once
        matrix, products = pairs + EIGENPROBLEMS * D**3, 2 * PRODUCTS * stored
        if D <= MAX_DENSE and matrix <= products:
            return SolverChoice("eigh", f"{k} sparse rows with {D} features: their matrix costs less than products")
        return SolverChoice("lanczos", f"{k} sparse rows with {D} features: products with them cost less than a matrix")
    if min(D, k) > MAX_DENSE:
        return SolverChoice("lanczos", f"{D} features and {k} rows both exceed {MAX_DENSE}: too large to be dense")
    if D > k:
        return SolverChoice("dual", f"more features ({D}) than rows ({k}): the problem reduces to order {k}")
    return SolverChoice("eigh", f"{D} features and {k} rows: one {D} x {D} matrix is enough")
