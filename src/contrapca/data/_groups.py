"""`Groups`, the container for a foreground and its backgrounds, and `Tables`, the checked rows of all groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows
from .._util.text import listed
from ..exceptions import GroupError

T = TypeVar("T")
R = TypeVar("R")


def is_moments(table: Any) -> bool:
    """Whether a table is given as moments, a class of a higher floor; tensors of torch have a method `scatter`."""
    return hasattr(table, "scatter") and hasattr(table, "weight")


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


@dataclass(frozen=True)
class Tables:
    """What fits read: the rows of all groups as arrays, with their means and weights.

    A `Study` has them beside the tables as they were given. Adjusted, shortened or filled rows, and moments in place of
    rows, are other `Tables` of the same groups.

    Attributes
    ----------
    rows : Groups of tables of shape (n_k, D), or of Moments in their place
    means : Groups of ndarray of shape (D,)
        Column means; nan for columns with missing values.
    names : tuple of str, or None
        Feature names.
    text_names : bool
        Whether the table's own column names were strings, as scikit-learn requires.
    weights : Groups of ndarray of shape (n_k,), or of None
        How often each row counts, above 0; None in a group whose rows all count once.
    kept : Groups of ndarray of bool, or of None
        Which rows of the study these are, if rows of weight 0, or without any value, were left out.
    shortened : Groups of ndarray of int, or None
        Which of the rows are so long that they count less (F42); None if that was not asked.
    """

    rows: Groups[Rows]
    means: Groups[Array]
    names: tuple[str, ...] | None
    text_names: bool
    weights: Groups[Array | None]
    kept: Groups[npt.NDArray[np.bool_] | None]
    shortened: Groups[npt.NDArray[np.intp]] | None = None

    @classmethod
    def of_moments(cls, moments: Groups[Any], names: tuple[str, ...] | None, text_names: bool) -> Tables:
        """Moments in place of rows."""
        none: Groups[Any] = moments.map(lambda _: None)
        return cls(moments, moments.map(lambda group: group.mean), names, text_names, none, none)

    @property
    def totals(self) -> Groups[float]:
        """The number of rows of each group, or the sum of their weights."""
        return self.rows.map(lambda rows, w: float(rows.shape[0] if w is None else w.sum()), self.weights)

    @property
    def incomplete(self) -> bool:
        """Whether values are missing: `column_means` has found some, and their means are nan."""
        return not all(np.isfinite(mean).all() for mean in self.means)

    @property
    def are_moments(self) -> bool:
        """Whether moments take the place of rows."""
        return is_moments(self.rows.foreground)

    @property
    def n_features(self) -> int:
        """D."""
        return self.means.foreground.size

    def feature(self, index: int) -> str:
        """A feature's name in quotes, or its column number."""
        return feature_label(self.names, index)

    def foreground_alone(self) -> Tables:
        """The foreground as the only group."""
        return self._regrouped(lambda groups: Groups.of(groups.foreground))

    def exchanged(self) -> Tables:
        """The background as the foreground, and the foreground as the background."""
        return self._regrouped(lambda groups: groups.like(list(groups)[::-1]))

    def _regrouped(self, change: Callable[[Groups[Any]], Groups[Any]]) -> Tables:
        rows, means, weights, kept = map(change, (self.rows, self.means, self.weights, self.kept))
        long = None if self.shortened is None else change(self.shortened)
        return replace(self, rows=rows, means=means, weights=weights, kept=kept, shortened=long)

    def with_one_background(self, name: str) -> Tables:
        """These tables; raise if there are several backgrounds."""
        backgrounds = self.rows.names[1:]
        if len(backgrounds) > 1:
            raise GroupError(
                f"{name} compares two groups, but there are {len(backgrounds)} backgrounds ({listed(backgrounds)}): "
                "pass one of them, or stack those that were measured alike into one table."
            )
        return self


def feature_label(names: Sequence[str] | None, index: int) -> str:
    """A feature's name in quotes, or its column number."""
    return repr(names[index]) if names else f"column {index}"
