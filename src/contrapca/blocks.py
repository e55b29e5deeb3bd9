"""Blocks: rows that belong together (of one donor, animal or plate), and names that look as if rows did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._util.arrays import Array
from ._util.text import is_missing, listed, plural
from .exceptions import GroupError, warn
from .groups import Groups

Indices = npt.NDArray[np.intp]

ARGUMENTS = Groups.of("blocks", "background_blocks")  # what users call them
# The last part of a name such as 309_1, s7-b or patient3.rep2: a short number, one letter, or rep with a number.
REPLICATE = re.compile(r"(?P<stem>.*\w)[_.\- ](?P<last>\d{1,3}|[A-Za-z]|(?:r|rep|replicate|run)[_.\- ]?\d{1,3})")
MIN_STEMS = 3  # one or two common beginnings are the names of groups (case_1, ..., control_1, ...)
MIN_REPEATED = 0.5  # of the rows share their beginning with another row


def unit_numbers(counts: Groups[int], blocks: Any, background_blocks: Any, *, least: int, what: str) -> Groups[Indices]:
    """The independent unit of each row: its block, or the row itself where no blocks are given.

    Parameters
    ----------
    counts : Groups of int
        Rows of each group.
    blocks, background_blocks : array-like of shape (n,), (m,), or None
        A label that stands in both is one block, with rows in both groups (paired).
    least : int
        Units that each group needs.
    what : str
        What needs them, for the message.

    Returns
    -------
    Groups of ndarray of shape (n,), (m,)
        Numbers from 0 on, the same for the same block in both groups.
    """
    if blocks is None and background_blocks is None:
        for group, count in zip(counts.names, counts, strict=True):
            if count < least:
                raise GroupError(f"The {group} has {plural(count, 'row')}: {what} needs {least} or more in each group.")
        starts = Groups.from_items(np.cumsum([0, *counts])[:-1].tolist(), counts.names)
        return counts.map(lambda count, start: np.arange(start, start + count), starts)
    if counts.background is not None and (blocks is None or background_blocks is None):
        has, lacks = ARGUMENTS if background_blocks is None else list(ARGUMENTS)[::-1]
        raise GroupError(
            f"{has} is given and {lacks} is not: blocks can only be compared with blocks. Give both; rows that are "
            "independent get a label each."
        )
    codes: dict[Any, int] = {}
    given = Groups.of(blocks, background_blocks if counts.backgrounds else None)
    labels = given.map(check_labels, counts, ARGUMENTS)
    units = labels.map(lambda own: np.array([codes.setdefault(label, len(codes)) for label in own], dtype=np.intp))
    for name, own in zip(ARGUMENTS, units, strict=False):
        found = count_units(own)
        if found < least:
            raise GroupError(
                f"{name} names {plural(found, 'block')}: {what} needs {least} or more in each group. With fewer, "
                "nothing can be said about others than those measured."
            )
    _warn_single_rows(labels, units)
    return units


def check_labels(labels: Any, n_rows: int, name: str) -> list[Any]:
    """One label for each row, none missing."""
    values = np.asarray(labels, dtype=object)
    if values.shape != (n_rows,):
        raise GroupError(f"{name} has shape {values.shape} for {plural(n_rows, 'row')}: it needs one label for each.")
    missing = [i for i, label in enumerate(values) if is_missing(label) or (isinstance(label, str) and not label)]
    if missing:
        raise GroupError(
            f"{name} lacks the label of {len(missing)} of {plural(n_rows, 'row')} (the first is row {missing[0]}, "
            "counted from 0): name their blocks, or drop these rows."
        )
    found: list[Any] = values.tolist()
    return found


def count_units(units: Indices) -> int:
    """The number of different units among rows."""
    return int(np.unique(units).size)


def paired_units(units: Groups[Indices]) -> int:
    """The number of blocks with rows in both groups."""
    assert units.background is not None
    return int(np.intersect1d(units.foreground, units.background).size)


def fewer_folds(units: Groups[Indices], n_folds: int) -> int:
    """So many folds, or, with a warning, as many as the smaller group has blocks: a block is never cut."""
    least = min(map(count_units, units))
    if least < 2:
        raise GroupError(
            "All rows of one group are in one block: nothing can be held out. 2 blocks or more are needed."
        )
    if least < n_folds:
        warn(f"There are {least} blocks in the smaller group, fewer than n_folds={n_folds}: {least} folds are used.")
    return min(least, n_folds)


def resampled_weights(units: Groups[Indices], random: np.random.Generator) -> Groups[Array]:
    """How often each row counts when as many units are drawn with replacement, shape (n,) for each group.

    Units of one group, and those with rows in several, are each drawn among their own kind, so that every resample has
    as many of each.
    """
    size = 1 + max(int(own.max()) for own in units)
    present = np.stack([np.bincount(own, minlength=size) > 0 for own in units])
    times = np.zeros(size)
    for kind in np.unique(present[:, present.any(axis=0)], axis=1).T[::-1]:
        members = np.flatnonzero((present == kind[:, None]).all(axis=0))
        times[members] = np.bincount(random.integers(0, members.size, members.size), minlength=members.size)
    return units.map(lambda own: times[own])


def _warn_single_rows(labels: Groups[list[Any]], units: Groups[Indices]) -> None:
    """Blocks of one row each change nothing; often they are names of replicates."""
    names = [str(label) for own in labels for label in own]
    if all(count_units(own) == own.size for own in units) and (stems := looks_like_replicates(names)) is not None:
        warn(
            f"Every row is a block of its own, but the labels look like replicates ({_example(names, stems)}): pass "
            "the part that replicates share."
        )


def looks_like_replicates(names: Sequence[str]) -> list[str] | None:
    """The blocks that names of rows suggest, one for each row; None where they suggest none.

    Names such as 309_1, 309_2, 311_1 do: a beginning that several rows share, a separator, and a short number or letter
    that tells them apart. Names with one or two beginnings do not (case_1, case_2, ..., control_1, ...).

    Parameters
    ----------
    names : sequence of str

    Returns
    -------
    list of str, or None
    """
    matches = [REPLICATE.fullmatch(name) for name in names]
    if not matches or sum(match is not None for match in matches) < MIN_REPEATED * len(matches):
        return None
    stems = [name if match is None else match["stem"] for name, match in zip(names, matches, strict=True)]
    counts = Counter(stems)
    repeated = sum(count for count in counts.values() if count > 1)
    distinct = len(set(names)) == len(names)
    return stems if distinct and len(counts) >= MIN_STEMS and repeated >= MIN_REPEATED * len(names) else None


def warn_of_replicates(names: Groups[Sequence[str] | None], how: str) -> None:
    """Warn where rows were not told to belong together and their names say that they do.

    Parameters
    ----------
    names : Groups of sequence of str, or of None where rows have no names
    how : str
        How to say which rows do.
    """
    every = [str(name) for own in names if own is not None for name in own]
    stems = looks_like_replicates(every)
    if stems is not None:
        warn(
            f"The names of the rows look like replicates ({_example(every, stems)}). Rows of one donor, animal or "
            f"plate are not independent, and p-values that ignore it are far too small: {how}."
        )


def _example(names: Sequence[str], stems: Sequence[str]) -> str:
    """Three names, two of which share their beginning."""
    first = next(stem for stem, count in Counter(stems).items() if count > 1)
    same = [name for name, stem in zip(names, stems, strict=True) if stem == first][:2]
    other = next(name for name, stem in zip(names, stems, strict=True) if stem != first)
    return f"{listed([*same, other])}, ..."
