"""Columns of `obs` and `var`: their levels, and the two groups of cells that they tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.optional import require
from .._util.text import did_you_mean, listed
from ..data import Groups, Indices, named_backgrounds
from ..exceptions import GroupError

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


def group_cells(obs: Any, groupby: Any, background: Any, foreground: Any) -> Groups[Indices]:
    """The cells of the foreground and of each background, as their numbers.

    Parameters
    ----------
    obs : data frame
    groupby : str
        The column that tells them apart.
    background : label, list of labels, or a dict of them
        The labels of a list are one background, those of a dict several, by name.
    foreground : label, or list of labels
        Without it, all cells that are not background.
    """
    codes, levels = levels_of(column(obs, groupby, "groupby", "adata.obs"))
    if len(levels) < 2:
        raise GroupError(
            f"adata.obs[{groupby!r}] has {f'one value, {levels[0]!r}' if levels else 'no values'}: two groups are "
            "needed, cases and controls."
        )
    named = {name: _numbers(levels, own, "background", groupby) for name, own in named_backgrounds(background).items()}
    controls = [k for own in named.values() for k in own]
    twice = [levels[k] for k in dict.fromkeys(controls) if sum(k in own for own in named.values()) > 1]
    if any("/" in name for name in named):
        raise GroupError(f"Backgrounds are named {listed(list(named))}: files take '/' for a folder, so leave it out.")
    if twice:
        raise GroupError(f"background={background!r}: {listed(twice)} is in several backgrounds. Name each value once.")
    if foreground is not None:
        cases = _numbers(levels, foreground, "foreground", groupby)
    elif np.any(codes < 0):
        raise GroupError(
            f"{np.sum(codes < 0)} of {codes.size} cells have no value in adata.obs[{groupby!r}]: fill it in, drop "
            "these cells, or name the cases with foreground=, so that they belong to neither group."
        )
    else:
        cases = [k for k in range(len(levels)) if k not in controls]
    both = [levels[k] for k in cases if k in controls]
    if both or not cases:
        what = f"{listed(both)} is in both groups" if both else "every cell is background, so no cases are left"
        raise GroupError(f"background={background!r}, foreground={foreground!r}: {what}. Name different values.")
    groups = Groups.from_items((cases, *named.values()), ("foreground", *named)).map(
        lambda own: np.flatnonzero(np.isin(codes, own))
    )
    for name, cells in zip(groups.names, groups, strict=True):
        if cells.size < 2:
            raise GroupError(f"The {name} has {cells.size} cell: each group needs at least 2.")
    return groups


def background_argument(values: Groups[Any]) -> Any:
    """The values of the backgrounds as estimators take them: one, or a dict if they have names."""
    named = dict(zip(values.names[1:], values.backgrounds, strict=True))
    return named.get("background", named)


def background_labels(background: Any) -> list[Any]:
    """All labels of the controls, from the argument of `group_cells` as it is stored."""
    parts = background.values() if isinstance(background, Mapping) else [background]
    return [label for part in parts for label in np.atleast_1d(part).tolist()]


def _numbers(levels: Sequence[Any], wanted: Any, argument: str, groupby: Any) -> list[int]:
    """The numbers of one or several levels."""
    labels = list(wanted) if isinstance(wanted, list | tuple | set | np.ndarray) else [wanted]
    for label in labels or [wanted]:
        if label not in levels:
            raise GroupError(
                f"{argument}={label!r} does not occur in adata.obs[{groupby!r}], only {listed(levels, MAX_LEVELS)}."
                f"{did_you_mean(label, levels)}"
            )
    return [levels.index(label) for label in labels]
