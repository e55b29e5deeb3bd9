"""Incomplete rows on a device: what `MaskedRows` is for NumPy (F9)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.devices import host, namespace, put


@dataclass(frozen=True)
class DeviceMaskedRows:
    """Rows with missing values on a device, each with a mask of its own: sorting them by pattern would not pay there.

    Attributes
    ----------
    values : array of shape (n, D)
        Deviations from the group's mean, 0 where missing, times the roots of the rows' weights; float64.
    masks : array of shape (n, D)
        1 where there is a value, 0 where it is missing; float64, for products.
    weights : array of shape (n,)
        How often each row counts.
    """

    values: Any
    masks: Any
    weights: Any

    @cached_property
    def feature_counts(self) -> Array:
        """How many of the rows have each feature, by weight, shape (D,)."""
        return host(self.weights @ self.masks)

    @cached_property
    def weight(self) -> float:
        """Number of rows, by weight."""
        return float(namespace(self.weights).sum(self.weights))

    @property
    def cells(self) -> float:
        """Number of observed values, by weight."""
        return float(self.feature_counts.sum())

    def by_count(self) -> Array:
        """How many rows have 0, 1, ..., D observed values, shape (D + 1,)."""
        xp, D = namespace(self.masks), self.masks.shape[1]
        counts = xp.sum(self.masks, axis=1)
        order = xp.argsort(counts)
        edges = xp.searchsorted(xp.take(counts, order, axis=0), put(np.arange(D + 1) + 0.5, counts))
        weights = xp.concat([put(np.zeros(1), self.weights), xp.take(self.weights, order, axis=0)])
        return np.diff(host(xp.take(xp.cumulative_sum(weights), edges, axis=0)), prepend=0.0)

    def together(self) -> Array:
        """In how many rows two features are both observed, shape (D, D)."""
        return host(self.masks.T @ self.masks)

    def column_squares(self) -> Array:
        """Sum of squared values of each feature, shape (D,)."""
        return host(namespace(self.values).sum(self.values * self.values, axis=0))

    def product(self, V: Array) -> Array:
        """values'values V, for V of shape (D, k)."""
        return host(self.values.T @ (self.values @ put(V, self.values)))

    def scaled(self, divisor: Array) -> DeviceMaskedRows:
        """The rows in units of `divisor`, shape (D,)."""
        return replace(self, values=self.values / put(divisor, self.values))

    def shifted(self, shift: Array) -> DeviceMaskedRows:
        """The rows with `shift` (D,) added to observed values."""
        roots = namespace(self.weights).sqrt(self.weights)[:, None]
        return replace(self, values=self.values + roots * self.masks * put(shift, self.values))

    def only(self, mask: Any) -> DeviceMaskedRows:
        """Some of the rows, by a mask (n,) on the device."""
        return DeviceMaskedRows(self.values[mask], self.masks[mask], self.weights[mask])


def observe_on_device(rows: Any, weights: Array | None = None) -> tuple[DeviceMaskedRows, Array, int, Any]:
    """Incomplete rows centred by the means of their observed values, without rows that have no value.

    Parameters
    ----------
    rows : array of shape (n, D)
    weights : ndarray of shape (n,), optional
        How often each row counts; rows that count 0 times are left out.

    Returns
    -------
    rows : DeviceMaskedRows
    mean : ndarray of shape (D,)
    empty : int
        Number of rows without any value.
    full : array of bool of shape (n - empty,)
        Which rows are complete; on the device.
    """
    xp = namespace(rows)
    masks = xp.astype(~xp.isnan(rows), xp.float64)
    values = xp.astype(xp.where(masks > 0, rows, xp.zeros_like(rows)), xp.float64)
    w = put(np.ones(rows.shape[0]) if weights is None else weights, rows)
    found, seen = DeviceMaskedRows(values, masks, w), xp.sum(masks, axis=1) > 0
    empty = int(xp.sum(xp.astype(~seen & (w > 0), xp.int64)))
    if empty or weights is not None:
        found = found.only(seen & (w > 0))
    counts = found.feature_counts
    mean = host(found.weights @ found.values) / np.where(counts > 0, counts, 1.0)
    roots = xp.sqrt(found.weights)[:, None]
    found = replace(found, values=roots * (found.values - put(mean, rows)) * found.masks)
    return found, mean, empty, xp.sum(found.masks, axis=1) == rows.shape[1]
