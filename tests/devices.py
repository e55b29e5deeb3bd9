"""Arrays on a device that NumPy cannot read: array-api-strict's "device1", which stands for a GPU."""

from __future__ import annotations

import contextlib
import importlib
from types import SimpleNamespace

import numpy as np


def there(table):
    """A NumPy array on the device; None stays None."""
    strict = importlib.import_module("array_api_strict")
    return None if table is None else strict.asarray(np.asarray(table), device=strict.Device("device1"))


def is_there(array):
    strict = importlib.import_module("array_api_strict")
    return isinstance(array, type(strict.ones(1))) and array.device == strict.Device("device1")


def back(array):
    """A NumPy array from the device; numbers as they are."""
    if isinstance(array, tuple):
        return tuple(map(back, array))
    if not hasattr(array, "to_device"):
        return array
    strict = importlib.import_module("array_api_strict")
    return np.asarray(array.to_device(strict.Device("CPU_DEVICE")))


@contextlib.contextmanager
def leaving():
    """What leaves the device inside the block: shapes of the arrays, in `shapes`."""
    strict = importlib.import_module("array_api_strict")
    kind, found = type(strict.ones(1)), SimpleNamespace(shapes=[])
    before = kind.to_device

    def to_device(self, device, /, **options):
        if device == strict.Device("CPU_DEVICE"):
            found.shapes.append(self.shape)
        return before(self, device, **options)

    kind.to_device = to_device
    try:
        yield found
    finally:
        kind.to_device = before
