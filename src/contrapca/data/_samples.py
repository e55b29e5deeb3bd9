"""What users say of samples, as a column of their frames or a value for each: names, labels, blocks, weights."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from .._util.arrays import Array, host, is_sparse, library_of, on_device, put
from .._util.text import did_you_mean, is_missing, listed, plural
from ..exceptions import GroupError, warn
from ._groups import MAX_LISTED, Groups
from ._names import aligned, column_names, distinct, index_names, looks_like_replicates, replicate_example
from ._tables import Tables

Indices = npt.NDArray[np.intp]

LARGEST_KIND = 2**60  # of units, before another group adds a bit


def read_known(rows: Groups[Any], given: Mapping[str, Any]) -> tuple[Groups[Any], dict[str, Groups[Any]]]:
    """The tables without the columns that arguments name, and what was given for the samples of each group."""
    known = {argument: _by_group(own, rows.names, argument) for argument, own in given.items()}
    tables = []
    for k, (group, table) in enumerate(zip(rows.names, rows, strict=True)):
        used: dict[str, str] = {}
        for argument, own in known.items():
            names, columns = names_in(own[k], argument), column_names(table) or []
            if isinstance(own[k], list) and len(names) == n_rows_of(table) and not set(names) & set(columns):
                names = []  # text, one for each sample
            for name in names:
                check_column(table, name, argument, f"the {group}")
                if name in used:
                    raise GroupError(
                        f"The column {name!r} is used twice, as {used[name]}= and {argument}=: use it once."
                    )
                used[name] = argument
            if names:
                own[k] = select(distinct(table, f"the {group}"), names) if argument == "covariates" else table[own[k]]
            elif own[k] is not None:
                own[k] = aligned(own[k], table, f"{argument} of the {group}")
        tables.append(table if not used else select(table, [name for name in columns if name not in used]))
    return rows.like(tables), {argument: rows.like(own) for argument, own in known.items()}


def names_in(given: Any, argument: str) -> list[str]:
    """The columns that an argument names; only covariates may be several."""
    if isinstance(given, str):
        return [given]
    several = argument == "covariates" and isinstance(given, list) and len(given) > 0
    return given if several and all(isinstance(name, str) for name in given) else []


def _by_group(given: Any, groups: Sequence[str], argument: str) -> list[Any]:
    """What was given for each group: a tuple, a dict, column names for all of them, or something for the only one."""
    if given is None or names_in(given, argument):
        return [given] * len(groups)
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping):
        given = {"foreground": given[0]} | {str(name): own for name, own in given[1].items()}
    if isinstance(given, Mapping):
        own = {str(name): values for name, values in given.items()}
        check_known(list(own), list(groups), argument, "the study has no group")
        return [own.get(name) for name in groups]
    if isinstance(given, tuple) and len(given) == len(groups):
        return list(given)
    if not isinstance(given, tuple) and len(groups) == 1:
        return [given]
    if argument == "labels" and not isinstance(given, tuple):
        return [given, *[None] * (len(groups) - 1)]
    what = f"a tuple of {len(given)}" if isinstance(given, tuple) else f"one {type(given).__name__}"
    raise GroupError(
        f"{argument} is {what}, but there are {plural(len(groups), 'group')} ({listed(groups)}): pass a tuple with one "
        "entry for each, in this order, or the name of a column if the tables are frames."
    )


def check_column(table: Any, name: str, argument: str, where: str) -> None:
    columns = column_names(table)
    if columns is None:
        raise GroupError(
            f"{argument}={name!r} names a column, but {where} is of type {type(table).__name__}, without column "
            "names: pass a value for each sample, or data frames."
        )
    if name not in columns:
        raise GroupError(
            f"{argument}={name!r} is not a column of {where}, which has {listed(columns, MAX_LISTED) or 'none'}."
            f"{did_you_mean(name, columns)}"
        )


def check_known(wanted: Sequence[Any], known: Sequence[Any], what: str, why: str = "the study has no") -> None:
    """Raise for values that do not occur, with a near one."""
    for value in wanted:
        if value not in known:
            texts = list(dict.fromkeys(map(str, known)))
            raise GroupError(
                f"{what}: {why} {value!r}, it has {listed(texts, MAX_LISTED) or 'none'}."
                f"{did_you_mean(str(value), texts)}"
            )


def n_rows_of(table: Any) -> int:
    """Rows of a table; only `len` counts those of a dask frame."""
    count = table.shape[0] if hasattr(table, "shape") else None
    return int(count) if isinstance(count, int | np.integer) else len(table)


def select(table: Any, names: list[Any]) -> Any:
    """Some columns of a frame."""
    return table.select(names) if hasattr(table, "column_names") else table[names]


def take(values: Any, rows: Indices) -> Any:
    """Some rows of a table, or of what stands beside one: a list, array, Series, dict of arrays, or None."""
    if values is None:
        return None
    if isinstance(values, dict) and not is_sparse(values):  # SciPy's dok_array is a dict, too
        return {name: own[rows] for name, own in values.items()}
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "column_names"):  # pyarrow
        return values.take(rows)
    if isinstance(values, list):
        return [values[k] for k in rows.tolist()]
    if hasattr(values, "format") and hasattr(values, "tocsr"):  # other sparse formats have no rows
        values = values.tocsr()
    return values[put(rows, values, "int64") if on_device(values) else rows]


def stacked(parts: Sequence[Any]) -> Any:
    """Tables of the same columns as one, or what stands beside them: lists, arrays, Series, dicts of arrays."""
    first = parts[0]
    if isinstance(first, dict) and not is_sparse(first):
        return {name: stacked([own[name] for own in parts]) for name in first}
    if isinstance(first, list):
        return [value for own in parts for value in own]
    library = library_of(type(first))
    if library == "pandas":
        numbered = all(index_names(own) is None for own in parts)  # numbers of rows would occur more than once
        return sys.modules["pandas"].concat(parts, ignore_index=numbered)
    if library == "polars":
        return sys.modules["polars"].concat(parts)
    if library == "pyarrow":
        return sys.modules["pyarrow"].concat_tables(parts)
    if is_sparse(first):
        return scipy.sparse.vstack(parts, format="csr")
    if on_device(first) or library == "dask":
        raise GroupError("Conditions are stacked in memory: pass their tables as NumPy arrays or data frames.")
    return np.concatenate([np.asarray(own) for own in parts])


def checked_labels(
    given: Groups[Any], counts: Groups[int], what: str, *, allow_missing: bool = False
) -> Groups[npt.NDArray[Any] | None]:
    """One label for each row of a group, and none is missing; None for groups without labels.

    `counts` are the rows of each group; `what` the labels are, for messages.
    """
    found: list[npt.NDArray[Any] | None] = []
    for group, labels, n_rows in zip(given.names, given, counts, strict=True):
        if labels is None:
            found.append(None)
            continue
        values = np.asarray(host(labels))
        if values.dtype.kind == "U" and not hasattr(labels, "dtype"):  # of a list, in which NumPy writes NaN as text
            values = np.asarray(labels, dtype=object)
        if values.shape != (n_rows,):
            table = " The table of the controls is background=." if values.ndim == 2 and values.shape[1] > 1 else ""
            raise GroupError(
                f"{what} of the {group} has shape {values.shape} for {plural(n_rows, 'row')}: pass one label per row."
                f"{table}"
            )
        checked = values[:0] if allow_missing else values
        if missing := [k for k, own in enumerate(checked) if is_missing(own) or (isinstance(own, str) and not own)]:
            raise GroupError(
                f"{what} of the {group} has no label for {len(missing)} of {plural(n_rows, 'row')} (the first is row "
                f"{missing[0]}, counting from 0): label these rows or drop them."
            )
        found.append(values)
    return given.like(found)


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
    by_text: dict[str, Any] = {}
    for label in set().union(*labels):  # 1 and "1" would be two donors
        if (other := by_text.setdefault(str(label), label)) is not label:
            raise GroupError(
                f"Blocks are text in some rows and numbers in others, such as {other!r} and {label!r}: write a block "
                "alike wherever it occurs."
            )
    if paired:
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
        return labels
    names = [str(label) for own in labels for label in own]
    if all(len(set(own)) == len(own) for own in labels) and (stems := looks_like_replicates(names)) is not None:
        warn(
            f"Every row is its own block, but the labels look like replicates ({replicate_example(names, stems)}): "
            "pass only the part that replicates share."
        )
    return labels


def table_units(
    tables: Tables, blocks: Groups[Any] | None = None, *, paired: bool = False, least: int, what: str
) -> Groups[Indices]:
    """The independent unit of each row: its block, or the row itself if there are none.

    Units are numbered from 0, with the same number for the same block in both groups; rows that were left out of the
    tables have none. `what` needs `least` units in each group, for the message, as has `paired`.
    """
    if blocks is None:
        ends = np.cumsum([0, *(int(rows.shape[0]) for rows in tables.rows)])
        unit_of = tables.rows.like(np.arange(start, stop) for start, stop in pairwise(ends.tolist()))
    else:
        codes: dict[Any, int] = {}
        unit_of = blocks.map(lambda own: np.array([codes.setdefault(k, len(codes)) for k in own], dtype=np.intp))
        unit_of = unit_of.map(lambda own, kept: own if kept is None else own[kept], tables.kept)
    kind = "row" if blocks is None else "pair" if paired else "block"
    few = " With fewer, the result says nothing about donors, animals or plates that were not measured."
    for group, own in zip(unit_of.names, unit_of, strict=True):
        if (found := count_units(own)) < least:
            raise GroupError(
                f"The {group} has {plural(found, kind)}: {what} needs at least {least} in each group."
                f"{'' if blocks is None else few}"
            )
    return unit_of


def count_units(unit_of: Indices) -> int:
    """The number of different units among rows."""
    return int(np.unique(unit_of).size)


def paired_units(unit_of: Groups[Indices]) -> int:
    """The number of blocks with rows in both groups."""
    assert unit_of.background is not None
    return int(np.intersect1d(unit_of.foreground, unit_of.background).size)


def kinds_of_units(inside: npt.NDArray[np.bool_]) -> Indices:
    """Numbers of the units' kinds, shape (units,): those with rows in the same groups (or cells) are of one kind.

    `inside` (groups, units) says where they have rows. Each group is a bit, the first one the highest: of two groups,
    units are in the second alone (1), in the first alone (2), or in both (3). Numbers of so many groups that they have
    too many bits are smaller, in the same order. A unit without rows has 0.
    """
    kinds = np.zeros(inside.shape[1], dtype=np.intp)
    for own in inside:
        if kinds.max(initial=0) >= LARGEST_KIND:
            kinds = np.unique(kinds, return_inverse=True)[1] + int(kinds.min() > 0)
        kinds = 2 * kinds + own
    return kinds


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
    kinds = kinds_of_units(np.array([np.bincount(own, minlength=size) > 0 for own in unit_of]))
    times = np.zeros(size)
    for kind in np.unique(kinds[kinds > 0])[::-1]:
        members = np.flatnonzero(kinds == kind)
        times[members] = np.bincount(random.integers(0, members.size, members.size), minlength=members.size)
    return unit_of.map(lambda own: times[own])
