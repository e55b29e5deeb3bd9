"""Blocks of rows that belong together (one donor, animal or plate), and row names that suggest them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array
from .._util.text import is_missing, listed, plural
from ..exceptions import GroupError, warn
from ._groups import Groups, Tables

Indices = npt.NDArray[np.intp]


# The last part of a name such as 309_1, s7-b or patient3.rep2: a short number, one letter, or rep with a number.
REPLICATE = re.compile(r"(?P<stem>.*\w)[_.\- ](?P<last>\d{1,3}|[A-Za-z]|(?:r|rep|replicate|run)[_.\- ]?\d{1,3})")


NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")  # names of rows that are numbers, such as -0.713


# What a column is called that says whom rows come from, and the ends of such names: donor, patient_id, Mouse.number.
PEOPLE = (
    "donor",
    "patient",
    "subject",
    "individual",
    "ind",
    "participant",
    "person",
    "animal",
    "mouse",
    "litter",
    "family",
)


SUFFIX = r"s?(?:[ _.-]?(?:id|nr|no|number|name))?"


# Whom or what several rows of any table come from; and where rows are cells, the most likely donors first.
SOURCES = (*PEOPLE, "biosample", "plate", "hto", "pool", "run")


SOURCES_OF_CELLS = (
    *PEOPLE,
    *("sample", "biosample", "specimen", "replicate", r"orig[._]?ident", "library", "batch", "plate", "channel"),
    *("lane", "hto", "pool", "run"),
)


MIN_STEMS = 3  # one or two common beginnings are the names of groups (case_1, ..., control_1, ...)


MIN_REPEATED = 0.5  # fraction of the rows that share their beginning with another row


def names_source(column: str, sources: Sequence[str] = SOURCES) -> bool:
    """Whether a column says whom or what its rows come from, by its name: donor, plate, mouse_id."""
    return re.fullmatch(f"(?:{'|'.join(sources)}){SUFFIX}", column, re.IGNORECASE) is not None


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
    labels = given.map_named(lambda group, own: check_labels(own, counts[group], f"blocks of the {group}"))
    if paired:
        _check_partners(labels)
    else:
        _warn_single_rows(labels)
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


def check_labels(labels: Any, n_rows: int, name: str) -> list[Any]:
    """Check that there is one label per row and none is missing."""
    values = np.asarray(labels, dtype=object)
    if values.shape != (n_rows,):
        raise GroupError(f"{name} has shape {values.shape} for {plural(n_rows, 'row')}: pass one label per row.")
    missing = [i for i, label in enumerate(values) if is_missing(label) or (isinstance(label, str) and not label)]
    if missing:
        raise GroupError(
            f"{name} has no label for {len(missing)} of {plural(n_rows, 'row')} (the first is row {missing[0]}, "
            "counting from 0): label these rows or drop them."
        )
    found: list[Any] = values.tolist()
    return found


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


def _warn_single_rows(labels: Groups[list[Any]]) -> None:
    """Warn if every block is a single row but the labels look like replicates."""
    names = [str(label) for own in labels for label in own]
    if all(len(set(own)) == len(own) for own in labels) and (stems := looks_like_replicates(names)) is not None:
        warn(
            f"Every row is its own block, but the labels look like replicates ({replicate_example(names, stems)}): "
            "pass only the part that replicates share."
        )


def looks_like_replicates(names: Sequence[str]) -> list[str] | None:
    """The block of each row as suggested by the row names; None if they suggest none.

    Names such as 309_1, 309_2, 311_1 suggest blocks: several rows share a beginning, followed by a separator and a
    short number or letter. Names with only one or two beginnings do not (case_1, case_2, ..., control_1, ...).

    Parameters
    ----------
    names : sequence of str

    Returns
    -------
    list of str, or None
    """
    matches = [REPLICATE.fullmatch(name) for name in names]
    if all(map(NUMBER.fullmatch, names)) and not _count_up(matches):
        return None
    if not matches or sum(match is not None for match in matches) < MIN_REPEATED * len(matches):
        return None
    stems = [name if match is None else match["stem"] for name, match in zip(names, matches, strict=True)]
    counts = Counter(stems)
    repeated = sum(count for count in counts.values() if count > 1)
    distinct = len(set(names)) == len(names)
    return stems if distinct and len(counts) >= MIN_STEMS and repeated >= MIN_REPEATED * len(names) else None


def _count_up(matches: Sequence[re.Match[str] | None]) -> bool:
    """Whether the numbers after each beginning are 1, 2, ..., as in 309.1, 309.2; decimals of measurements are not."""
    last: dict[str, list[int]] = {}
    for match in matches:
        if match is not None:
            last.setdefault(match["stem"], []).append(int(match["last"]))
    return all(
        sorted(counts) in (list(range(len(counts))), list(range(1, len(counts) + 1))) for counts in last.values()
    )


def replicate_example(names: Sequence[str], stems: Sequence[str]) -> str:
    """Three example names, two with the same beginning."""
    first = next(stem for stem, count in Counter(stems).items() if count > 1)
    same = [name for name, stem in zip(names, stems, strict=True) if stem == first][:2]
    other = next(name for name, stem in zip(names, stems, strict=True) if stem != first)
    return f"{listed([*same, other])}, ..."
