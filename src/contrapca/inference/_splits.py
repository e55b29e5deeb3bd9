"""Random halves of independent units: one half finds axes, the other tests them (F18)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.special

from ..data import Groups, Indices, count_units, paired_units

Flags = npt.NDArray[np.bool_]

# Halves are drawn as 10 of 20 chunks, whose moments are computed once: 184,756 halves of each group, each for 20
# additions of D x D matrices. More chunks gain nothing; fewer make the splits more alike. Of many kinds of units there
# are fewer chunks each, so that the matrices of all fit into memory.
N_CHUNKS, MOST_CHUNKS = 20, 80
LONE = 4  # units of a kind, below which they are split together with those of other such kinds
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


def draw_splits(
    unit_of: Groups[Indices],
    n_splits: int,
    rng: np.random.Generator,
    cell_of: Groups[Indices] | None = None,
    *,
    few_chunks: bool = False,
) -> Splits:
    """Random halves of the units.

    Units are of one kind if they have rows in the same groups, or, in a design, in the same cells. Each kind is split
    by itself, so that both halves contain it. `few_chunks` limits those of all kinds together.
    """
    cells = unit_of.like(np.zeros_like(own) + k for k, own in enumerate(unit_of)) if cell_of is None else cell_of
    n_units = 1 + max(int(own.max()) for own in unit_of)
    sizes = np.zeros((n_units, 1 + max(int(own.max()) for own in cells)), dtype=np.intp)
    for own, cell in zip(unit_of, cells, strict=True):
        np.add.at(sizes, (own, cell), 1)
    here = np.flatnonzero(sizes.any(axis=1))
    kind_of = np.zeros(here.size, dtype=np.intp)
    for cell in sizes[here].T:  # numbers of the kinds, in the order of the rows of this table of flags
        kind_of = np.unique(2 * kind_of + (cell > 0), return_inverse=True)[1]
    counts = np.bincount(kind_of)
    if cell_of is not None and np.any(counts < LONE):
        kind_of[counts[kind_of] < LONE] = np.argmax(counts < LONE)
    present = np.unique(kind_of)[::-1]
    most = max(2, min(N_CHUNKS, MOST_CHUNKS // present.size)) if few_chunks else N_CHUNKS
    unit_chunks, finds = np.empty(n_units, dtype=np.intp), []
    first = 0
    for kind in present:
        members = rng.permutation(here[kind_of == kind])
        count = min(most, members.size)
        unit_chunks[members] = first + np.arange(members.size) % count
        # With an odd number of chunks the larger half tests.
        finds.append(np.argsort(rng.random((n_splits, count)), axis=1) < count // 2)
        first += count
    repeated = sizes[sizes > 0].min() > 1
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
