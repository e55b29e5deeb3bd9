"""`Groups`, one value for each group of rows, and which rows are in which group by their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from .._util.arrays import host, is_sparse
from .._util.text import as_list, did_you_mean, is_missing, listed, plural, spelling
from ..exceptions import GroupError, TableWarning, warn

Codes = npt.NDArray[np.intp]
MAX_LISTED = 10
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Groups(Generic[T]):
    """One value for the foreground and one for each background, the foreground first.

    Attributes
    ----------
    foreground
        The foreground's value.
    backgrounds : tuple
        The value of each background; empty if there is none.
    names : tuple of str
        "foreground", then the names of the backgrounds.
    """

    foreground: T
    backgrounds: tuple[T, ...] = ()
    names: tuple[str, ...] = ("foreground",)

    def _check_values(self) -> None:
        """Raise unless the first group is the foreground and names differ."""
        if self.names[:1] != ("foreground",) or len(set(self.names)) != 1 + len(self.backgrounds):
            raise ValueError(f"its groups are impossible: {listed(self.names)}")

    @classmethod
    def of(cls, foreground: T, background: T | None = None) -> Groups[T]:
        """One foreground and at most one background."""
        return cls(foreground) if background is None else cls(foreground, (background,), ("foreground", "background"))

    @classmethod
    def from_items(cls, items: Iterable[T], names: tuple[str, ...]) -> Groups[T]:
        """One value for each name, the foreground's first."""
        foreground, *backgrounds = items
        return cls(foreground, tuple(backgrounds), names)

    def like(self, items: Iterable[R]) -> Groups[R]:
        """Other values for the same groups, the foreground's first."""
        foreground, *backgrounds = items
        return Groups(foreground, tuple(backgrounds), self.names)

    @property
    def background(self) -> T | None:
        """The first background's value; None if there is none."""
        return self.backgrounds[0] if self.backgrounds else None

    def __iter__(self) -> Iterator[T]:
        return iter((self.foreground, *self.backgrounds))

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> T:
        if name not in self.names:
            raise ValueError(f"There is no group {name!r} in this fit, only {listed(self.names)}.")
        return list(self)[self.names.index(name)]

    def map(self, function: Callable[..., R], *others: Groups[Any]) -> Groups[R]:
        """Apply a function to each group's value, and to the values of `others` for the same group."""
        return self.like(map(function, self, *others))

    def map_named(self, function: Callable[[str, T], R]) -> Groups[R]:
        """Apply a function to each group's name and value."""
        return self.like(map(function, self.names, self))


def named_backgrounds(background: Any) -> dict[str, Any]:
    """A dict of backgrounds by name. A single table is named "background"; None gives an empty dict."""
    if not isinstance(background, Mapping) or is_sparse(background):  # SciPy's dok_array is a dict, too
        return {} if background is None else {"background": background}
    if not background:
        raise GroupError("background is an empty dict: pass at least one table.")
    _distinct_names(list(background))
    return {str(name): table for name, table in background.items()}


def _distinct_names(labels: Sequence[Any]) -> list[str]:
    """Names of backgrounds, from labels of any type."""
    names = list(map(str, labels))
    for k, name in enumerate(names):
        if name in ("", "foreground", *names[:k]):
            raise GroupError(
                f"{labels[k]!r} cannot be the name of a background: names must differ, and may not be empty or "
                "'foreground'."
            )
    return names


def groups_of(X: Any, background: Any) -> Groups[Any]:
    """The tables of the foreground and of each background, as they were given."""
    others = named_backgrounds(background)
    return Groups.from_items([X, *others.values()], ("foreground", *others))


def by_background(given: Any, backgrounds: Iterable[str], argument: str, *, all_of_them: bool = True) -> list[Any]:
    """What was given for each background: one thing, or a dict with one for each, or only for some; else None."""
    names = list(backgrounds)
    if given is None:
        return [None] * len(names)
    if not isinstance(given, Mapping):
        if len(names) > 1:
            raise GroupError(
                f"There are {len(names)} backgrounds: pass {argument}= as a dict with the names {listed(names)}."
            )
        return [given] * len(names)
    own = {str(name): value for name, value in given.items()}
    if not own.keys() <= set(names) or (all_of_them and len(own) < len(names)):
        raise GroupError(f"{argument} has {listed(list(own))}, but the backgrounds are {listed(names)}.")
    return [own.get(name) for name in names]


def check_labelled(y: Any, background_label: Any, background_weight: Any = None) -> None:
    """Raise if stacked rows have no labels in y, or if the background's weights are separate."""
    if y is None:
        raise GroupError(
            f"background_label={background_label!r} needs y: one label per row of X. "
            "Or pass the background table as background=."
        )
    if background_weight is not None:
        raise GroupError("background_weight= is for a background= table: sample_weight= has one for each row of X.")


def label_groups(y: Any, background_label: Any, n_rows: int) -> tuple[Codes, tuple[str, ...]]:
    """The group of each row, shape (n,), 0 for the foreground and k for the k-th background label; and their names."""
    wanted = list(background_label) if _is_list(background_label) else [background_label]
    if not wanted or any(isinstance(label, list | tuple | dict | set) for label in wanted):
        raise GroupError(f"background_label={background_label!r} must be a label that occurs in y, or a list of them.")
    labels = np.ravel(host(y))
    if labels.size != n_rows:
        raise GroupError(f"y has {labels.size} labels for {n_rows} rows: pass one per row.")
    missing = sum(map(is_missing, labels.tolist()))
    if missing:
        raise GroupError(f"{missing} of {n_rows} labels in y are missing: drop those rows or assign them to a group.")
    group_of = np.zeros(labels.size, dtype=np.intp)
    for k, label in enumerate(wanted, 1):
        group_of[np.broadcast_to(np.asarray(labels == label, dtype=bool), labels.shape)] = k
    names = _distinct_names(wanted) if _is_list(background_label) else ["background"]
    return group_of, ("foreground", *names)


def _is_list(background_label: Any) -> bool:
    return isinstance(background_label, list | tuple | np.ndarray)


def check_present(group_of: Codes, y: Any, background_label: Any) -> None:
    """Raise unless each group has at least 2 rows; warn of labels that are nearly the background's."""
    labels = list(background_label) if _is_list(background_label) else [background_label]
    found = list(dict.fromkeys(np.ravel(host(y)).tolist()))
    n_cases, *counts = np.bincount(group_of, minlength=len(labels) + 1).tolist()
    if len(found) == 1:  # the error that follows would be buried in the tracebacks of a cross-validation
        warn(
            f"All rows of this fit have the label {found[0]!r}, so a group is missing. In cross-validation, use a "
            "splitter that mixes the groups, such as cv=StratifiedKFold(5)."
        )
    for label, count in zip(labels, counts, strict=True):
        if count == 0:
            raise GroupError(
                f"No row has the background label {label!r}. Labels in y: {listed(found, MAX_LISTED)}."
                f"{did_you_mean(label, found) if isinstance(label, str) else ''}"
            )
    if n_cases == 0:
        raise GroupError(f"All {group_of.size} rows have the background label {listed(labels)}: no foreground is left.")
    if len(labels) == 1 and min(n_cases, *counts) == 1:
        raise GroupError(
            f"The background has {counts[0]} and the foreground {n_cases} rows: each group needs at least 2."
        )
    if min(n_cases, *counts) == 1:
        which = "the foreground" if n_cases == 1 else f"the background {labels[counts.index(1)]!r}"
        raise GroupError(f"Each group needs at least 2 rows, but {which} has 1.")
    _warn_of_spelling([label for label in found if label not in labels], labels, "y")


def _warn_of_spelling(cases: list[Any], controls: list[Any], where: str) -> None:
    """Warn of values of the foreground that differ from those of the background only in case or blanks."""
    known = {spelling(label) for label in controls if isinstance(label, str)}
    if alike := [label for label in cases if isinstance(label, str) and spelling(label) in known]:
        warn(
            f"Rows labelled {listed(alike)} count as foreground: in {where}, this differs from the background's label "
            "only in case or blanks. If they are background too, spell the labels alike.",
            TableWarning,
        )


def group_rows(values: npt.NDArray[Any], background: Any, foreground: Any, where: str) -> Groups[Codes]:
    """The rows of each group, from a column (N,) that tells them apart; `where` it is, for messages.

    A list of values is one group; a dict of them has several backgrounds by name, or several conditions, which are one
    foreground here. The foreground may be all others.
    """
    own = values.tolist()
    missing = np.array([is_missing(value) for value in own], dtype=bool)
    levels = list(dict.fromkeys(value for value, gone in zip(own, missing, strict=True) if not gone))
    if isinstance(background, Mapping):
        named = {str(name): as_list(labels) for name, labels in background.items()}
    else:
        named = {"background": as_list(background)}
    controls = [label for labels in named.values() for label in labels]
    conditions = [as_list(labels) for labels in foreground.values()] if isinstance(foreground, Mapping) else []
    if foreground is None:
        cases = [level for level in levels if level not in controls]
    else:
        cases = [label for labels in conditions for label in labels] if conditions else as_list(foreground)
    if not controls or background is None:
        raise GroupError(f"background= names no value of {where}: name the one that marks the background.")
    for argument, wanted in (("background", controls), ("foreground", cases)):
        for label in wanted:
            if label not in levels:
                have = listed(levels, MAX_LISTED) or "no values"
                raise GroupError(
                    f"{argument}={label!r} does not occur in {where}, which has {have}."
                    f"{did_you_mean(str(label), map(str, levels))}"
                )
    if twice := [label for label in dict.fromkeys(controls) if controls.count(label) > 1]:
        raise GroupError(f"background: {listed(twice)} is in several backgrounds: name each value once.")
    named_by = [label for labels in conditions for label in dict.fromkeys(labels)]
    if twice := [label for label in dict.fromkeys(named_by) if named_by.count(label) > 1]:
        raise GroupError(f"foreground: {listed(twice)} is in several conditions: name each value once.")
    if both := [label for label in cases if label in controls]:
        raise GroupError(f"background and foreground both have {listed(both)}: a sample is in one group only.")
    if not cases:
        raise GroupError(f"All values of {where} are background, so no foreground is left: name fewer of them.")
    if foreground is None and missing.any():
        raise GroupError(
            f"{missing.sum()} of {plural(missing.size, 'sample')} have no value in {where}: fill it in, drop them, or "
            "name the values of the foreground with foreground=, so that they belong to no group."
        )
    if foreground is None:
        _warn_of_spelling(cases, controls, where)
    labels_of = [cases, *named.values()]
    return Groups.from_items(
        (np.flatnonzero([value in labels for value in own]) for labels in labels_of), ("foreground", *named)
    )
