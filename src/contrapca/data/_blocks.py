"""Blocks of rows that belong together (one donor, animal or plate): from labels to numbers of independent units."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array
from .._util.text import listed, plural
from ..exceptions import GroupError, warn
from ._groups import Groups, Tables
from ._labels import checked_labels
from ._replicates import looks_like_replicates, replicate_example

Indices = npt.NDArray[np.intp]


def table_units(
    tables: Tables, blocks: Groups[Any] | None = None, *, paired: bool = False, least: int, what: str
) -> Groups[Indices]:
    """The independent unit of each row: its block, or the row itself if there are none.

    Parameters
    ----------
    tables : Tables
        Rows of them that were left out have no unit.
    blocks : Groups of array-like of shape (n_k,), or None
        Checked labels. A label in both groups is one block with rows in both.
    paired : bool
        Whether blocks are pairs, for the error message.
    least : int
        Minimum number of units in each group.
    what : str
        What needs them, for the error message.

    Returns
    -------
    Groups of ndarray of shape (n_k,)
        Numbers starting at 0, the same for the same block in both groups.
    """
    if blocks is None:
        counts = tables.rows.map(lambda rows: int(rows.shape[0]))
        starts = counts.like(np.cumsum([0, *counts])[:-1].tolist())
        unit_of = counts.map(lambda count, start: np.arange(start, start + count), starts)
    else:
        codes: dict[Any, int] = {}
        labels = tables.rows.like(blocks).map(
            lambda own, kept: np.asarray(own, dtype=object) if kept is None else np.asarray(own, dtype=object)[kept],
            tables.kept,
        )
        unit_of = labels.map(lambda own: np.array([codes.setdefault(k, len(codes)) for k in own], dtype=np.intp))
    kind = "row" if blocks is None else "pair" if paired else "block"
    for group, own in zip(unit_of.names, unit_of, strict=True):
        if (found := count_units(own)) < least:
            raise GroupError(
                f"The {group} has {plural(found, kind)}: {what} needs at least {least} in each group."
                + (
                    " With fewer, the result says nothing about donors, animals or plates that were not measured."
                    if blocks is not None
                    else ""
                )
            )
    return unit_of


def checked_blocks(given: Groups[Any], counts: Groups[int], *, paired: bool = False) -> Groups[Any] | None:
    """The block of each row of all groups; None if there are none. If they are paired, all are in every group."""
    if not isinstance(paired, bool | np.bool_):
        raise GroupError(f"paired={paired!r} must be True or False: blocks= says which samples belong together.")
    if all(own is None for own in given):
        if paired:
            raise GroupError("paired=True says that each block has rows in both groups: pass blocks=, too.")
        return None
    for group, own in zip(given.names, given, strict=True):
        if own is None:
            raise GroupError(
                f"The {group} has no blocks, but the other group has: blocks can only be compared with blocks. Pass "
                "those of both; give each independent row its own label."
            )
    labels: Groups[list[Any]] = checked_labels(given, counts, "blocks").map(lambda own: own.tolist())
    if paired:
        _check_partners(labels)
        return labels
    names = [str(label) for own in labels for label in own]
    if all(len(set(own)) == len(own) for own in labels) and (stems := looks_like_replicates(names)) is not None:
        warn(
            f"Every row is its own block, but the labels look like replicates ({replicate_example(names, stems)}): "
            "pass only the part that replicates share."
        )
    return labels


def _check_partners(labels: Groups[list[Any]]) -> None:
    """Raise if a pair has rows in the foreground only, or in the backgrounds only."""
    if not labels.backgrounds:
        raise GroupError("paired=True is for blocks with rows in two groups, but there is no background.")
    cases, controls = set(labels.foreground), set().union(*labels.backgrounds)
    for group, alone, lacks in (
        ("foreground", cases - controls, "background"),
        ("background", controls - cases, "foreground"),
    ):
        if alone:
            raise GroupError(
                f"{plural(len(alone), 'pair')} of the {group} ({listed(sorted(map(str, alone)))}) "
                f"{'has' if len(alone) == 1 else 'have'} no row in the {lacks}. Check the spelling of the labels, "
                "leave these rows out, or leave paired=True out, so that labels may be in one group only."
            )


def count_units(unit_of: Indices) -> int:
    """The number of different units among rows."""
    return int(np.unique(unit_of).size)


def paired_units(unit_of: Groups[Indices]) -> int:
    """The number of blocks with rows in both groups."""
    assert unit_of.background is not None
    return int(np.intersect1d(unit_of.foreground, unit_of.background).size)


def fewer_folds(unit_of: Groups[Indices], n_folds: int) -> int:
    """`n_folds`, or fewer (with a warning) if the smaller group has fewer blocks: a block is never split."""
    least = min(map(count_units, unit_of))
    if least < 2:
        raise GroupError(
            "All rows of one group are in one block, so no rows can be held out: at least 2 blocks are needed."
        )
    if least < n_folds:
        warn(f"There are {least} blocks in the smaller group, fewer than n_folds={n_folds}: using {least} folds.")
    return min(least, n_folds)


def resampled_weights(unit_of: Groups[Indices], random: np.random.Generator) -> Groups[Array]:
    """How often each row is drawn when units are resampled with replacement, shape (n,) for each group.

    Units with rows in one group and units with rows in both are resampled separately, so every resample has the same
    number of each.
    """
    size = 1 + max(int(own.max()) for own in unit_of)
    kinds = np.zeros(size, dtype=int)  # in which groups a unit has rows, one bit per group
    for own in unit_of:
        kinds = 2 * kinds + (np.bincount(own, minlength=size) > 0)
    times = np.zeros(size)
    for kind in np.unique(kinds[kinds > 0])[::-1]:
        members = np.flatnonzero(kinds == kind)
        times[members] = np.bincount(random.integers(0, members.size, members.size), minlength=members.size)
    return unit_of.map(lambda own: times[own])
