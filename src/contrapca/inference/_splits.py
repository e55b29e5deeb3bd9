"""Random halves of independent units: one half finds axes, the other tests them (F18)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.special

from ..data import Groups, Indices, count_units, paired_units

Flags = npt.NDArray[np.bool_]

# Halves are drawn as 10 of 20 chunks, whose moments are computed once: 184,756 halves of each group, each for 20
# additions of D x D matrices. More chunks gain nothing; fewer make the splits more alike.
N_CHUNKS = 20
MIN_UNITS = 6  # three rows (or blocks) to find axes and three to test them: the jackknife needs so many


@dataclass(frozen=True)
class Splits:
    """Random halves of independent units (rows, or blocks of rows)."""

    unit_of: Groups[Indices]  # the unit of each row; one with rows in both groups is a paired block
    chunks: Groups[Indices]  # the chunk of each row: units that are always in the same half
    finds: Flags  # (n_splits, n_chunks): whether each chunk finds the axes or tests them
    within: Flags  # whether each split compares what varies within blocks: every other one, if no block is a row (F38)
    seeds: Indices  # of what is random on the testing half of each split: thinning and relabelling (F44)

    def shares(self, count: int) -> list[Splits]:
        """The splits cut into `count` shares, for as many versions of the tables."""
        parts = np.array_split(np.arange(len(self.finds)), count)
        return [
            replace(self, finds=self.finds[part], within=self.within[part], seeds=self.seeds[part]) for part in parts
        ]


def draw_splits(unit_of: Groups[Indices], n_splits: int, rng: np.random.Generator) -> Splits:
    """Random halves of the units.

    Paired blocks, foreground-only units and background-only units are split separately, so both halves contain each
    kind.
    """
    n_units = 1 + max(int(own.max()) for own in unit_of)
    sizes = unit_of.map(lambda own: np.bincount(own, minlength=n_units))
    in_x, in_y = sizes.map(lambda size: size > 0)
    unit_chunks, finds = np.empty(n_units, dtype=np.intp), []
    first = 0
    for kind in (in_x & in_y, in_x & ~in_y, ~in_x & in_y):
        members = rng.permutation(np.flatnonzero(kind))
        count = min(N_CHUNKS, members.size)
        unit_chunks[members] = first + np.arange(members.size) % max(count, 1)
        # With an odd number of chunks the larger half tests.
        finds.append(np.argsort(rng.random((n_splits, count)), axis=1) < count // 2)
        first += count
    repeated = all(size[size > 0].min() > 1 for size in sizes)
    within = (np.arange(n_splits) % 2 == 1) & repeated
    seeds = rng.integers(2**62, size=n_splits)
    return Splits(unit_of, unit_of.map(lambda own: unit_chunks[own]), np.hstack(finds), within, seeds)


def least_p_value(unit_of: Groups[Indices]) -> float:
    """One over the number of ways to label the testing units: no honest p-value is smaller (F44).

    With more than 20 units of a kind the testing halves vary a little; then this is their mean, and tiny.
    """
    paired = paired_units(unit_of)
    n, m = (own - own // 2 for own in (count_units(units) - paired for units in unit_of))
    return float(1 / (2.0 ** (paired - paired // 2) * scipy.special.comb(n + m, n)))


def most_axes(unit_of: Groups[Indices], n_features: int) -> int:
    """The maximum number of axes to test: half the units of the smaller group find them, and there are fewer than
    features."""
    return max(1, min(min(map(count_units, unit_of)) // 4, n_features - 1))
