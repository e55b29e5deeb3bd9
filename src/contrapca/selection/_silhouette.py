"""How well latents separate known classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.arrays import TINY, Array
from ..exceptions import GroupError

SILHOUETTE_ROWS = 2000  # larger foregrounds are sampled


def checked_classes(labels: Any, n_rows: int) -> Any:
    """One class for each foreground row, as text, shape (n,)."""
    classes = np.asarray(labels).ravel().astype(str)
    if classes.size != n_rows:
        raise GroupError(f"labels has {classes.size} entries for {n_rows} foreground rows: pass one each.")
    return classes


def check_several(classes: Any) -> None:
    """Refuse classes that no silhouette exists for."""
    if not 1 < np.unique(classes).size < classes.size:
        raise GroupError("labels must contain at least two classes, and fewer classes than rows.")


def unit_variance_silhouette(latents: Array, classes: Any) -> float:
    """Silhouette of the classes on latents (n, d) of unit variance."""
    from sklearn.metrics import silhouette_score  # imported late, because it is slow

    return float(silhouette_score(latents / np.maximum(latents.std(axis=0), TINY), classes))
