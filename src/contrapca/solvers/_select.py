"""Which eigensolver fits a problem's shape, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SolverName = Literal["eigh", "dual", "lanczos", "lbfgs", "adam"]

# Up to this order a dense eigenproblem is a matter of seconds to a minute and some 1.5 GiB.
MAX_DENSE = 8000
# Sparse rows have few products to make, so that forming a scatter matrix pays only when it is small.
MAX_DENSE_FROM_SPARSE = 500


@dataclass(frozen=True)
class SolverChoice:
    """A solver's name and why it was chosen.

    Attributes
    ----------
    name : {"eigh", "dual", "lanczos", "lbfgs", "adam"}
    reason : str
    """

    name: SolverName
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def select_solver(n_rows: int, n_features: int, sparse: bool, requested: str = "auto") -> SolverChoice:
    """The solver for `n_rows` rows (both groups together) of `n_features` features.

    - "eigh": partial eigendecomposition of the D x D contrast, rows read once.
    - "dual": a factor of the stacked rows' Gram matrix, then a problem of the order of their number (F7).
    - "lanczos": products with the rows only; nothing of size D x D.
    """
    names = ("eigh", "dual", "lanczos")
    if requested != "auto":
        if requested not in names:
            raise ValueError(f"solver={requested!r} is not known. Use 'auto' or one of {', '.join(map(repr, names))}.")
        if requested == "dual" and sparse:
            raise ValueError("solver='dual' would turn sparse rows into dense ones. Use 'lanczos', 'eigh' or 'auto'.")
        return SolverChoice(requested, "asked for")  # type: ignore[arg-type]
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
