"""How often each row counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, chosen, host
from ..exceptions import GroupError


def check_weights(weights: Any, n_rows: int, name: str, *, any_counts: bool = True) -> Array | None:
    """One finite weight per row, 0 or more, shape (n,); None if none are given. If `any_counts`, one is above 0."""
    if weights is None:
        return None
    try:
        found = np.asarray(host(weights), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must contain numbers: {error}.") from error
    if found.shape != (n_rows,):
        raise ValueError(f"{name} has shape {found.shape} for {n_rows} rows: pass one weight per row.")
    bad = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
    if bad.size:
        raise ValueError(
            f"{name} must contain finite numbers, 0 or more: row {bad[0]}, counting from 0, has {found[bad[0]]:g}."
        )
    with np.errstate(over="ignore"):
        total = float(found.sum())
    if total == 0 and any_counts:
        raise ValueError(f"All weights in {name} are zero, so no row counts.")
    if total == np.inf:
        raise ValueError(f"{name} sums to {total:g}: use smaller weights.")
    return found


def counted_rows(
    rows: Rows, weights: Any, group: str, name: str
) -> tuple[Rows, Array | None, npt.NDArray[np.bool_] | None]:
    """The rows that count, how often, and which they are, if rows of weight 0 were left out."""
    kept = None
    found = check_weights(weights, rows.shape[0], name)
    if found is None or np.all(found == 1):
        return rows, None, None
    if np.any(found == 0):
        kept = found > 0
        rows, found = chosen(rows, kept), found[kept]
        if found.size < 2:
            raise GroupError(f"{name} leaves one row of the {group}: each group needs at least 2.")
    check_total(found.sum(), name)
    return rows, None if np.all(found == 1) else found, kept


def check_total(total: float, name: str) -> None:
    """Raise if all weights of a group together are less than 2 rows."""
    if total < 2:
        raise GroupError(
            f"{name} sums to {total:g}: weights count rows, and each group needs at least 2. Multiply them, so that "
            "their sum is the number of rows."
        )
