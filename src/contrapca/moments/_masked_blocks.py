"""Incomplete rows on a cluster: every block keeps its observed values, and only sums come back (F9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._util.arrays import Array
from ._masked import MaskedGroup, MaskedRows, by_pattern


@dataclass(frozen=True)
class MaskedBlocks:
    """Rows with missing values in blocks, in place of `MaskedRows`.

    Attributes
    ----------
    blocks : Kept of MaskedRows, or of None for a block without values
    counts : ndarray of shape (D + 1,)
        How many rows have 0, 1, ..., D observed values.
    """

    blocks: Any
    counts: Array

    def total(self, function: Callable[[MaskedRows], tuple[Any, ...]]) -> tuple[Any, ...]:
        """The sums of a function of all blocks."""
        found = self.blocks.reduce(lambda rows: None if rows is None else function(rows), _added)
        assert found is not None
        return tuple(found)

    def by_count(self) -> Array:
        """How many rows have 0, 1, ..., D observed values, shape (D + 1,)."""
        return self.counts.copy()

    def together(self) -> Array:
        """In how many patterns of the blocks two features are both observed, shape (D, D)."""
        found: Array = self.total(lambda rows: (rows.together(),))[0]
        return found

    def column_squares(self) -> Array:
        """Sum of squared values of each feature, shape (D,)."""
        found: Array = self.total(lambda rows: (rows.column_squares(),))[0]
        return found

    def product(self, V: Array) -> Array:
        """values'values V, for V of shape (D, k)."""
        found: Array = self.total(lambda rows: (rows.product(V),))[0]
        return found

    def scaled(self, divisor: Array) -> MaskedBlocks:
        """The rows in units of `divisor`, shape (D,)."""
        return self._map(lambda rows: rows.scaled(divisor))

    def shifted(self, shift: Array) -> MaskedBlocks:
        """The rows with `shift`, shape (D,), added to every observed value."""
        return self._map(lambda rows: rows.shifted(shift))

    def _map(self, function: Callable[[MaskedRows], MaskedRows]) -> MaskedBlocks:
        return replace(self, blocks=self.blocks.map(lambda rows: None if rows is None else function(rows)))


def _added(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return tuple(a + b for a, b in zip(left, right, strict=True))


def observe_blocks(rows: Any, weights: Array | None) -> tuple[MaskedGroup, int]:
    """`observe` of rows on a cluster: one pass for the means, one to centre the values, which then stay there."""
    D = rows.shape[1]

    def sums(block: Array, w: Array | None) -> tuple[Any, ...]:
        counted = np.ones(block.shape[0]) if w is None else w
        there = ~np.isnan(block)
        full = there.any(axis=1)
        number = there.sum(axis=1)
        by_count = np.bincount(number[full], counted[full], minlength=D + 1)
        return counted @ there, counted @ np.where(there, block, 0.0), by_count, int(np.count_nonzero(~full))

    counts, totals, by_count, empty = rows.reduce(sums, _added, weights)
    mean = totals / np.where(counts > 0, counts, 1.0)

    def centred(block: Array, w: Array | None) -> MaskedRows | None:
        absent = np.isnan(block)
        full = ~absent.all(axis=1)
        counted = np.ones(block.shape[0]) if w is None else w
        values = np.where(absent, 0.0, block.astype(np.float64) - mean)
        return by_pattern((np.sqrt(counted)[:, None] * values)[full], absent[full], counted[full])

    blocks = MaskedBlocks(rows.keep(centred, weights), by_count)
    with np.errstate(over="ignore"):
        squares = blocks.column_squares()
    return MaskedGroup(float(by_count.sum()), mean, counts, None, blocks, squares), empty
