"""A foreground and, if there is one, a background, whatever holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from .._array import Array


class Group(Protocol):
    """What both kinds of groups have."""

    @property
    def weight(self) -> float:
        """Number of rows."""

    @property
    def mean(self) -> Array:
        """Shape (D,)."""


G = TypeVar("G", bound=Group)


@dataclass(frozen=True)
class TwoGroups(Generic[G]):
    """Two groups of one kind."""

    foreground: G
    background: G | None

    @property
    def groups(self) -> list[G]:
        """The foreground and, if there is one, the background."""
        return [self.foreground] + ([] if self.background is None else [self.background])

    @property
    def n_features(self) -> int:
        """D."""
        return self.foreground.mean.size

    @property
    def ratio(self) -> float:
        """m / n: gamma' = gamma_raw * ratio. 1 without a background."""
        return self.background.weight / self.foreground.weight if self.background else 1.0
