"""Moments of rows that come in batches (F21)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .._files import check_values, save, unpack
from .._files import read as read_file
from .._util.arrays import float_type
from .._util.text import listed
from ..data import (
    Tables,
    by_background,
    check_labelled,
    check_table,
    check_weights,
    label_groups,
    named_backgrounds,
    study_of,
    text_names,
)
from ..exceptions import GroupError, ModelFileError
from ._moments import Moments

BATCH_KEYS = ("X", "y", "background", "sample_weight", "background_weight")


@dataclass(frozen=True)
class Stream:
    """All rows that were seen so far, by the names of the groups."""

    moments: dict[str, Moments] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)  # rows seen
    dtype: str = "float32"  # float type of the foreground's rows
    n_batches: int = 0

    def plus(self, batch: Mapping[str, Moments], counts: Mapping[str, int], dtype: str | None) -> Stream:
        """These rows and those of another batch."""
        moments, seen = dict(self.moments), dict(self.counts)
        known = next(iter(moments.values()), None)
        for name, more in batch.items():
            if known is not None and more.mean.size != known.mean.size:
                raise GroupError(f"This batch has {more.mean.size} features, but the earlier ones {known.mean.size}.")
            if known is not None and known.names and more.names and known.names != more.names:
                raise GroupError("This batch does not have the feature names of the earlier ones, in the same order.")
            known = known or more
            moments[name] = moments[name] + more if name in moments else more
        for name, count in counts.items():
            seen[name] = seen.get(name, 0) + count
        kind = self.dtype if dtype is None else str(np.promote_types(self.dtype, dtype))
        return replace(self, moments=moments, counts=seen, dtype=kind, n_batches=self.n_batches + 1)

    def lacks(self, *, needs_background: bool) -> str:
        """Which group has too few rows for a fit, in words; empty if none has."""
        wanted = ["foreground"]
        if needs_background and len(self.moments) < 2:
            wanted.append("background")
        few = [name for name in wanted if name not in self.moments or self.moments[name].weight < 2]
        few += [name for name in self.moments if self.moments[name].weight < 2 and name not in few]
        return "" if not few else f"each group needs at least 2, and {listed(few)} had fewer"

    def tables(self, name: str, *, needs_background: bool) -> Tables:
        """The moments in place of tables; `name` is what needs them, for messages."""
        others = {group: own for group, own in self.moments.items() if group != "foreground"}
        study = study_of(self.moments["foreground"], others or None, name, needs_background=needs_background)
        return study.tables

    def save(self, path: Any) -> None:
        """Write a checkpoint, atomically: an interrupted write leaves the previous one intact."""
        save(path, replace(self, moments={name: group.stored() for name, group in self.moments.items()}))

    @classmethod
    def load(cls, path: Any) -> Stream:
        """Read a checkpoint."""
        found = unpack(read_file(path), path)
        if not isinstance(found, cls):
            raise ModelFileError(f"{str(path)!r} contains a {type(found).__name__}, not a checkpoint of fit_batches.")
        return found

    def _check_values(self) -> None:
        """Raise if no batches have these."""
        check_values(self, {}, not_negative=("n_batches",))
        sizes = {group.mean.size for group in self.moments.values()}
        if len(sizes) > 1 or not self.moments.keys() <= self.counts.keys() or min(self.counts.values(), default=0) < 0:
            raise ValueError("its groups do not fit each other")
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"its float type {self.dtype!r} is impossible")


def read_batch(
    X: Any = None,
    y: Any = None,
    *,
    background: Any = None,
    background_label: Any = None,
    sample_weight: Any = None,
    background_weight: Any = None,
    name: str,
) -> tuple[dict[str, Moments], dict[str, int], str | None]:
    """Moments and numbers of rows of each group in a batch, and the foreground's float type.

    Any group may be absent.
    """
    if background_label is not None and background is None:
        given = _labelled(X, y, background_label, sample_weight, background_weight, name)
    else:
        others = named_backgrounds(background)
        weights = by_background(background_weight, others, "background_weight", all_of_them=False)
        given = {group: (table, own) for (group, table), own in zip(others.items(), weights, strict=True)}
        given = {group: pair for group, pair in given.items() if pair[0] is not None}
        if X is not None:
            given = {"foreground": (X, sample_weight), **given}
    if not given:
        raise GroupError("The batch is empty: pass rows as X, as background=, or both.")
    moments, counts, dtype = {}, {}, None
    for group, (table, weights) in given.items():
        if isinstance(table, Moments):
            moments[group], counts[group] = table, round(table.weight)
            continue
        rows = check_table(table, name, group, least=1)
        argument = "sample_weight" if group == "foreground" else "background_weight"
        own = check_weights(weights, rows.shape[0], argument, any_counts=False)
        counts[group] = int(rows.shape[0])
        if group == "foreground":
            dtype = float_type(rows)
        if own is not None and not own.any():
            continue  # no row of this batch counts
        moments[group] = replace(Moments.of_table(rows, own), names=text_names(table))
    return moments, counts, dtype


def read_batches(batches: Iterable[Any], background_label: Any, checkpoint: Any, name: str) -> Stream:
    """All rows of batches; those that a checkpoint counts, if there is one, are skipped."""
    stream = Stream() if checkpoint is None or not Path(checkpoint).exists() else Stream.load(checkpoint)
    for batch in islice(batches, stream.n_batches, None):
        stream = stream.plus(*read_batch(**_batch_arguments(batch, background_label), name=name))
        if checkpoint is not None:
            stream.save(checkpoint)
    return stream


def _batch_arguments(batch: Any, background_label: Any) -> dict[str, Any]:
    """A batch of an iterable as the arguments of `read_batch`, but for the name."""
    given = {"X": batch}
    if isinstance(batch, Mapping):
        unknown = [key for key in batch if key not in BATCH_KEYS]
        if unknown:
            raise GroupError(f"A batch has {listed(unknown)}: as a dict, it may have {listed(BATCH_KEYS)}.")
        given = dict(batch)
    elif isinstance(batch, tuple):
        if len(batch) != 2:
            raise GroupError(f"A batch is a tuple of {len(batch)}: pass (X, background), or (X, y) for stacked rows.")
        given = {"X": batch[0], "background" if background_label is None else "y": batch[1]}
    return given | {"background_label": background_label}


def _labelled(
    X: Any, y: Any, background_label: Any, sample_weight: Any, background_weight: Any, name: str
) -> dict[str, tuple[Any, Any]]:
    """The groups of a stacked batch."""
    check_labelled(y, background_label, background_weight)
    table = check_table(X, name, least=1)
    group_of, groups = label_groups(y, background_label, table.shape[0])
    weights = check_weights(sample_weight, table.shape[0], "sample_weight", any_counts=False)
    found = {}
    for k, group in enumerate(groups):
        chosen = group_of == k
        if chosen.any():
            found[group] = table[chosen], None if weights is None else weights[chosen]
    return found
