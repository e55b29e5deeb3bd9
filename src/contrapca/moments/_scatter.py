"""How a scatter matrix is stored: dense, by its rows, or in few directions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .._files import SAVED_AS
from .._util.arrays import Array, Rows, host, is_sparse, namespace, outer, put
from ..data.rows import storage

WIDE = 8  # with more columns, rows are converted for each product: that moves fewer bytes than the product
Indices = npt.NDArray[np.intp]


class Scatter(Protocol):
    """A centred scatter matrix S = sum_i (x_i - mean)(x_i - mean)': a sum, not a mean.

    It may be stored as a matrix or as the rows themselves.
    """

    @property
    def size(self) -> int:
        """The order of the matrix."""

    @property
    def trace(self) -> float:
        """tr S."""

    def diagonal(self) -> Array:
        """diag(S), shape (D,)."""

    def matmul(self, V: Array) -> Array:
        """S V for V of shape (D, k)."""

    def dense(self) -> Any:
        """S itself, shape (D, D), on the device of the rows."""

    def scaled(self, divisor: Array) -> Scatter:
        """The scatter of the rows divided by `divisor`, shape (D,)."""


@dataclass(frozen=True)
class DenseScatter:
    """A scatter matrix stored as a symmetric (D, D) array, where the rows were; only `dense` returns it as it is."""

    matrix: Any = field(metadata={SAVED_AS: Array})

    @property
    def size(self) -> int:
        return int(self.matrix.shape[0])

    @cached_property
    def trace(self) -> float:
        return float(namespace(self.matrix).linalg.trace(self.matrix))

    def diagonal(self) -> Array:
        return host(namespace(self.matrix).linalg.diagonal(self.matrix))

    def matmul(self, V: Array) -> Array:
        return host(self.matrix @ put(V, self.matrix))

    def dense(self) -> Any:
        return self.matrix

    def scaled(self, divisor: Array) -> DenseScatter:
        placed = put(divisor, self.matrix)
        return DenseScatter(self.matrix / placed[:, None] / placed)


@dataclass(frozen=True)
class InnerScatter(DenseScatter):
    """Q'S Q for some directions Q, with the trace of the whole of S."""

    whole: float  # tr S

    @property
    def trace(self) -> float:  # type: ignore[override]
        return self.whole


@dataclass(frozen=True)
class RowScatter:
    """The scatter matrix of (rows - mean) / divisor, never formed, only applied: (rows)'(rows V)."""

    rows: Rows  # (n, D)
    mean: Array  # (D,)
    divisor: Array  # (D,)
    weights: Array | None = None  # (n,): how often each row counts

    def __post_init__(self) -> None:
        # Not only at the first product: solvers hold the BLAS to one thread meanwhile, and we use as many as it has.
        _ = self._slices

    @property
    def size(self) -> int:
        return self.mean.size

    def scaled(self, divisor: Array) -> RowScatter:
        found = replace(self, divisor=self.divisor * divisor)
        if "_diagonal" in vars(self):  # which takes a pass over the rows
            vars(found)["_diagonal"] = self._diagonal / divisor**2
        return found

    @cached_property
    def _diagonal(self) -> Array:
        return storage(self.rows).squares(self.rows, self.mean, self.weights) / self.divisor**2

    def diagonal(self) -> Array:
        return self._diagonal

    @property
    def trace(self) -> float:
        return float(self._diagonal.sum())

    @cached_property
    def _slices(self) -> list[slice]:
        """Parts of the rows, one per thread."""
        return storage(self.rows).parts(self.rows)

    @cached_property
    def _views(self) -> list[Rows]:
        """The rows of each part: making them anew for every product of sparse rows took a fifth of its time."""
        return [storage(self.rows).view(self.rows, part) for part in self._slices]

    @cached_property
    def _prepared_views(self) -> list[Rows]:
        kind = storage(self.rows)
        prepared = kind.prepared(self.rows)
        return self._views if prepared is self.rows else [kind.view(prepared, part) for part in self._slices]

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(len(self._slices))

    def matmul(self, V: Array) -> Array:
        # Rows of another type are converted for good only if single vectors would convert them again and again.
        return self._times(self._prepared_views if V.shape[1] < WIDE else self._views, V / self.divisor[:, None])

    def coarse_matmul(self, V: Array) -> Array:
        """S V in the float type of sparse rows, which then need no copy in another."""
        scaled = V / self.divisor[:, None]
        return self._times(self._views, scaled.astype(self.rows.dtype) if is_sparse(self.rows) else scaled)

    def _times(self, views: list[Rows], scaled: Array) -> Array:
        def product(rows: Rows, part: slice) -> Array:
            weights = None if self.weights is None else self.weights[part]
            return storage(rows).product(rows, self.mean, scaled, weights)

        run: Any = map if len(views) == 1 else self._pool.map
        return np.sum(list(run(product, views, self._slices)), axis=0) / self.divisor[:, None]

    def dense(self) -> Any:
        found = DenseScatter(storage(self.rows).scatter(self.rows, self.mean, self.weights))
        return found.matrix if np.all(self.divisor == 1) else found.scaled(self.divisor).matrix

    def centred(self, part: slice) -> Array:
        """Some of the rows (x - mean) / divisor, times the roots of their weights, filled in, shape (rows, D)."""
        rows = self.rows[part]
        filled: Array = rows.toarray() if is_sparse(rows) else np.asarray(rows)
        found = filled.astype(np.float64, copy=False)
        if self.mean.any() or np.any(self.divisor != 1):
            found = (found - self.mean) / self.divisor
        return found if self.weights is None else found * np.sqrt(self.weights[part])[:, None]

    def products(self, V: Array) -> Array:
        """Inner products of all rows, as in `centred`, with those of V (k, D), shape (n, k)."""
        found = storage(self.rows).centred_product(self.rows, self.mean, (V / self.divisor).T)
        return found if self.weights is None else found * np.sqrt(self.weights)[:, None]

    @cached_property
    def gram(self) -> Any:
        """Inner products of the rows, times the roots of their weights, (n, n): the same non-zero eigenvalues as S."""
        found = storage(self.rows).gram(self.rows, self.mean, self.divisor)
        return found if self.weights is None else found * outer(np.sqrt(self.weights), found)


def scatter_block(scatter: Scatter, chosen: Indices) -> Array:
    """The rows and columns of S that are chosen, shape (k, k), from these columns of the rows alone."""
    if isinstance(scatter, RowScatter):
        some = storage(scatter.rows).scatter(scatter.rows[:, chosen], scatter.mean[chosen], scatter.weights)
        divisor = scatter.divisor[chosen]
        return some if np.all(divisor == 1) else some / divisor[:, None] / divisor
    return scatter.dense()[np.ix_(chosen, chosen)]


def scatter_columns(scatter: Scatter, chosen: Indices) -> Array:
    """The columns of S that are chosen, shape (D, k)."""
    if not isinstance(scatter, RowScatter):
        return np.asarray(scatter.dense()[:, chosen])
    if isinstance(scatter.rows, np.ndarray) and scatter.weights is None and not scatter.mean.any():
        some = scatter.rows[:, chosen] / scatter.divisor[chosen]
        return np.asarray(scatter.rows.T @ some / scatter.divisor[:, None])
    units = np.zeros((scatter.size, chosen.size))
    units[chosen, np.arange(chosen.size)] = 1.0
    return scatter.matmul(units)
