"""Columns of `obs` and `var`, and backgrounds as arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.optional import require
from .._util.text import did_you_mean, listed
from ..data import Groups, Indices

MAX_LEVELS = 10  # shown in messages


def column(frame: Any, name: Any, argument: str, where: str) -> npt.NDArray[Any]:
    """The values of a column of `obs` or `var`, one for each cell or gene, also where these are read lazily."""
    columns = list(frame.columns)
    if name not in columns:
        known = f"only {listed(columns, MAX_LEVELS)}" if columns else "which has no columns"
        raise ValueError(f"{argument}={name!r} is not a column of {where}, {known}.{did_you_mean(name, columns)}")
    return np.asarray(frame[name])


def frame(columns: Mapping[str, Any]) -> Any:
    """A pandas data frame, which `uns` and files can hold."""
    return require("pandas", extra="anndata").DataFrame(dict(columns))


def levels_of(values: npt.NDArray[Any]) -> tuple[Indices, list[Any]]:
    """The number of each value's level, -1 where there is none, and the levels in order of appearance."""
    codes, levels = require("pandas", extra="anndata").factorize(values)
    return codes.astype(np.intp), np.asarray(levels).tolist()


def background_argument(values: Groups[Any]) -> Any:
    """The values of the backgrounds as estimators take them: one, or a dict if they have names."""
    named = dict(zip(values.names[1:], values.backgrounds, strict=True))
    return named.get("background", named)


def background_labels(background: Any) -> list[Any]:
    """All labels of the controls, as the argument `background` is stored."""
    parts = background.values() if isinstance(background, Mapping) else [background]
    return [label for part in parts for label in np.atleast_1d(part).tolist()]
