"""How much memory each solver would take, before any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._checks import check_count
from .._util.memory import in_words
from .._util.table import Table
from ._choice import SPECTRAL, select_solver
from ._moments import Moments

BUFFERS = 160e6  # blocks of rows in several threads, and what libraries take on first use


def memory_estimate(shape: Any, *, background: Any, n_components: int = 2, density: float | None = None) -> Table:
    """The memory that each solver would take besides the tables themselves, and which one "auto" would choose.

    Parameters
    ----------
    shape : (int, int)
        Rows and features of the foreground.
    background : int, or a dict of them
        Rows of the background; 0 if there is none.
    n_components : int, default 2
        With ContraPCA, the number of latent dimensions.
    density : float, optional
        Fraction of stored values, for sparse tables.

    Returns
    -------
    Table
        One row for each solver: `solver`, `bytes`, `memory` (in words) and `chosen`.

    Examples
    --------
    >>> from contrapca import memory_estimate
    >>> table = memory_estimate((1_000_000, 2000), background=500_000)
    >>> table["solver"][table["chosen"]].item()
    'eigh'
    >>> bool(0.1e9 < table["bytes"][table["chosen"]].item() < 1e9)
    True
    """
    others = list(background.values()) if isinstance(background, Mapping) else [background]
    if any(isinstance(given, Moments) for given in (shape, *others)):
        raise TypeError("memory_estimate needs numbers of rows, but moments were given: pass those of the tables.")
    if np.shape(shape) != (2,):
        raise ValueError(
            "shape must be two numbers, the rows and the features of the foreground: X.shape of a table X."
        )
    n, D = (check_count(value, "shape") for value in shape)
    counts = [n, *(check_count(value, "background", least=0) for value in others)]
    k, groups = sum(counts), sum(count > 0 for count in counts)
    vectors = 8.0 * D * (max(3 * n_components, n_components + 20) + 4 * n_components)  # of Lanczos, and results
    copy = 0.0 if density is None else 12.0 * density * k * D  # sparse rows in float64
    needs = {
        "eigh": 8.0 * D**2 * (groups + 4) + vectors,
        "dual": 8.0 * (k * D + (groups + 4) * k**2) + vectors,
        "lanczos": vectors + copy,
    }
    chosen = select_solver(k, D, None if density is None else int(density * k * D)).name
    names = [name for name in SPECTRAL if name != "dual" or density is None]
    amounts = np.array([needs[name] + min(BUFFERS, 64.0 * k * D) for name in names])
    return Table(
        {
            "solver": np.array(names),
            "bytes": amounts,
            "memory": np.array([in_words(amount) for amount in amounts]),
            "chosen": np.array([name == chosen for name in names]),
        }
    )
