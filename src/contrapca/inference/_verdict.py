"""What a test says, in sentences: its result, and the verdict at the top of commands and reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.tables import Result, Table
from .._util.text import LEAST_P, MAX_LISTED, joined, plural, times
from ._held_out import HeldOutContrast

NOISIER = 1.2  # noise ratio above which a remark says that the cases vary more everywhere
LARGE_BLOCK_RATIO = 4.0  # a remark says that more is needed: with fewer than about 16 blocks in a group
BLOCKS_OF_A_CELL, ROWS_OF_A_CELL = 10, 100  # with fewer, an interaction must be very strong to be found


@dataclass(frozen=True)
class Missing:
    """How much is missing in the foreground and the background, as shares of all values.

    Attributes
    ----------
    foreground, background : float
    differ : bool
        Whether some features are missing more often in one of the groups than chance makes likely.
    """

    foreground: float
    background: float
    differ: bool

    def __str__(self) -> str:
        words = f"{self.foreground:.1%} of the cases' and {self.background:.1%} of the controls' values are missing."
        if not self.differ:
            return words
        return (
            f"{words} The groups miss different shares, so the result holds only if whether a value is missing "
            "does not depend on the value itself, as it does below a limit of detection."
        )


@dataclass(frozen=True)
class Tested:
    """What the test of a design was about."""

    kind: str  # "conditions", "only_in", "interaction" or "dose"
    name: str  # "drug", "genotype x drug", "concentration"; of "only_in" the condition
    background: str
    least: int  # rows, or blocks, of the smallest condition or cell
    by_blocks: bool
    each: dict[str, float] = field(default_factory=dict)  # the p-value of each condition along the first axis

    @property
    def groups(self) -> tuple[str, str]:
        """Whose noise is compared, for a sentence."""
        return {
            "conditions": ("the conditions", f"the {self.background}"),
            "only_in": (f"rows of {self.name}", "the others"),
            "interaction": ("rows with both factors or neither", "those with one"),
            "dose": ("rows of high doses", "those of low ones"),
        }[self.kind]

    def sentence(self, found: int, p: str, where: str, level: float) -> str:
        """The result in one sentence: p is that of the dimensions found, or of the first."""
        if self.kind == "conditions":
            return self._on_conditions(found, p, where, level)
        if self.kind == "only_in":
            if found:
                return f"{self.name} varies more than the {self.background} and every other condition {where} ({p})."
            return (
                f"Nothing found that varies more in {self.name} alone than chance allows, compared with the "
                f"{self.background} and with each other condition ({p})."
            )
        if self.kind == "interaction":
            first, second = self.name.split(" x ", 1)
            if found:
                return f"The effect of {second} on variation depends on {first} {where} ({p})."
            return (
                f"Nothing found: that the effect of {second} on variation depends on {first} is not shown in any "
                f"direction ({p})."
            )
        if found:
            return f"Variation grows with {self.name} {where} ({p})."
        return (
            f"Nothing found: variation does not grow with {self.name} more than chance allows in any direction ({p})."
        )

    def _on_conditions(self, found: int, p: str, where: str, level: float) -> str:
        """Which conditions vary more, by Holm's rule: at this level none of them is named wrongly."""
        order = sorted(self.each, key=lambda name: self.each[name])
        shown = []
        for k, name in enumerate(order):
            if self.each[name] * (len(order) - k) > level:
                break
            shown.append(name)
        if not found or not shown:
            return (
                f"Nothing found: no condition varies more than the {self.background} by more than chance allows, in "
                f"any direction ({p}); any components shown may be noise."
            )
        names = [name for name in self.each if name in shown]
        others = [name for name in self.each if name not in shown]
        verb = "varies" if len(names) == 1 else "vary"
        names_of_others = joined(others) if 0 < len(others) <= MAX_LISTED else f"the {len(others)} others"
        rest = f"; nothing is shown for {names_of_others}" if others else ""
        return f"{joined(names)} {verb} more than the {self.background} {where} ({p}){rest}."

    def remarks(self) -> list[str]:
        """What to know where nothing was found."""
        enough = BLOCKS_OF_A_CELL if self.by_blocks else ROWS_OF_A_CELL
        if self.kind != "interaction" or self.least >= enough:
            return []
        return [
            f"An interaction cannot be shown with {plural(self.least, 'block' if self.by_blocks else 'row')} in a "
            f"cell: about {BLOCKS_OF_A_CELL} blocks are needed in each of the four, or {ROWS_OF_A_CELL} rows without "
            "blocks."
        ]


@dataclass(frozen=True)
class ContrastTest(Result):
    """The result of `contrast_test`.

    Attributes
    ----------
    n_components : int
        Number of dimensions found, with p-values at or below the level; 0 if nothing was found.
    p_values : ndarray of shape (k,)
        p-values of "the foreground varies more along 1, ..., k axes"; they never decrease.
    statistics : ndarray of shape (n_splits, k)
        Standardised difference of the mean deviations on the test half of each split.
    noise_ratio : float
        Ratio of foreground to background mean variance outside the model's subspace, on rows that did not choose it.
        Far above 1, the cases are noisier everywhere, which alone makes the test reject. nan if so many dimensions
        stand out that there is no noise to be seen, as in most real tables.
    level : float
    units : str
        What was split: "60 + 50 rows", "9 + 8 blocks", "20 pairs".
    ratios : ndarray of shape (k,)
        Ratios of foreground to background variance along the axes, on the test halves (geometric means over splits):
        how strong the contrast is.
    block_ratio : float
        By blocks: how many times the variance between the background's blocks that between the foreground's must be to
        be found in about half of such tables. Few blocks need a large one. nan by rows, and for paired blocks.
    least_p : float
        The least p-value that this many rows or blocks can give: one over the number of ways to exchange the labels of
        those that test.
    ignores_replicates : bool
        Whether rows look like replicates, by their names or a column, and were taken for independent: the verdict
        begins with that.
    missing : Missing or None
        Where values are missing: their share in the `foreground` and the `background`, and whether these `differ`.
    design : Tested or None
        What was compared, of a study of several conditions, two factors or a dose: its `kind` ("conditions", "only_in",
        "interaction" or "dose"), its `name` and that of its `background`. p-values are then those of its question.
    conditions : Table or None
        Of several conditions: the p-value of each along 1, ..., k axes that all conditions share (`p`), that of a test
        of the condition and the background alone (`pairwise_p`), and the `ratio` of variances along the shared axes.
    """

    n_components: int
    p_values: Array
    statistics: Array
    noise_ratio: float
    level: float
    units: str
    ratios: Array = field(default_factory=lambda: np.empty(0), repr=False)
    block_ratio: float = np.nan
    least_p: float = 0.0
    ignores_replicates: bool = False
    missing: Missing | None = field(default=None, repr=False)
    design: Tested | None = field(default=None, repr=False)
    conditions: Table | None = field(default=None, repr=False)

    def verdict(self) -> str:
        """The result in one sentence."""
        found = self.n_components
        p = in_brief(self.p_values[max(found, 1) - 1])
        least = "at least " * (found == self.p_values.size > 1)
        where = f"in {least}{plural(found, 'direction')}"
        if self.design is not None:
            sentence = self.design.sentence(found, p, where, self.level)
        elif found == 0:
            sentence = (
                "Nothing found: the cases do not vary more than chance allows in any direction "
                f"({p}); any components shown may be noise."
            )
        else:
            sentence = f"The cases vary more than chance allows {where} ({p})."
        if not self.ignores_replicates:
            return sentence
        return f"Without regard to replicates, which makes p-values too small, {sentence[0].lower()}{sentence[1:]}"

    def remarks(self, n_shown: int | None = None) -> list[str]:
        """Remarks on the verdict, as sentences; usually none."""
        remarks = [] if self.missing is None else [str(self.missing)]
        if n_shown is not None and n_shown < self.n_components:
            least = "at least " * (self.n_components == self.p_values.size)
            remarks.append(
                f"In total, {least}{self.n_components} dimensions "
                f"{'vary more in the cases' if self.design is None else 'were found'}: show more components."
            )
        if n_shown is not None and self.n_components == self.p_values.size < n_shown:
            remarks.append(f"No more than {self.p_values.size} could be tested with {self.units}.")
        if self.least_p > self.level:
            remarks.append(
                f"No p-value can be below {self.least_p:.2g} with {self.units}: nothing can be found at level "
                f"{self.level:g}, however strong it is, without more of them."
            )
        elif not self.n_components and self.block_ratio > LARGE_BLOCK_RATIO:
            remarks.append(
                f"With {self.units}, what varies between blocks is likely to be found only if it varies about "
                f"{self.block_ratio:.2g} times as much in the cases: that nothing was found says little about it."
            )
        if self.n_components and self.noise_ratio >= NOISIER:
            who, others = self._noise_of
            remarks.append(
                f"{who[0].upper()}{who[1:]} are noisier everywhere ({self.noise_ratio:.2g} times the variance of "
                f"{others}), which alone makes the test reject: check that both groups were measured in the same way."
            )
        if self.design is not None and self.n_components == 0:
            remarks += self.design.remarks()
        return remarks

    @property
    def _noise_of(self) -> tuple[str, str]:
        return ("the cases", "the controls") if self.design is None else self.design.groups

    def table(self) -> Table:
        """One row per tested dimension; statistics are medians over splits."""
        steps = np.arange(1, self.p_values.size + 1)
        columns = {"dimension": steps, "statistic": np.median(self.statistics, axis=0), "p": self.p_values}
        return Table(columns | {"found": steps <= self.n_components})

    def _parts(self) -> list[str | Table]:
        about = f"Level {self.level:g}, {self.units}"
        if not np.isnan(self.noise_ratio):
            who, others = self._noise_of
            about += f"; noise of {who} over that of {others}: {self.noise_ratio:.2f}"
        tables = [self.table()] if self.conditions is None else [self.table(), self.conditions]
        return [self.verdict(), *self.remarks(), *tables, about]


def in_brief(p: float) -> str:
    """A p-value in words."""
    return f"p < {LEAST_P:g}" if p < LEAST_P else f"p = {p:.2g}"


def at_equal_depth(found: ContrastTest) -> ContrastTest:
    """The result, which says that depths were matched first."""
    return replace(found, units=f"{found.units} of equal depth")


@dataclass(frozen=True)
class Verdict:
    """What the test says about the components that are shown."""

    sentence: str
    remarks: list[str]  # further sentences; usually none
    test: ContrastTest | None  # None if the tables cannot be tested; the sentence says why
    n_shown: int

    @classmethod
    def of(cls, test: ContrastTest, n_shown: int) -> Verdict:
        """The verdict of a finished test."""
        return cls(test.verdict(), test.remarks(n_shown), test, n_shown)

    def about(self, held_out: HeldOutContrast | None, features: Sequence[Sequence[str]]) -> Verdict:
        """This verdict with what is known of each shown component; as it is if the test found nothing."""
        if held_out is None or self.test is None or not self.test.n_components:
            return self
        return replace(self, sentence=f"{self.sentence} {on_components(held_out, features)}")

    def summary(self) -> dict[str, Any]:
        """Plain values: "verdict" (the sentence) and "test" (the result, or None)."""
        test = self.test
        if test is None:
            return {"verdict": self.sentence, "test": None}
        facts = {
            "n_components": test.n_components,
            "n_shown": self.n_shown,
            "p_values": test.p_values.tolist(),
            "noise_ratio": None if test.noise_ratio != test.noise_ratio else test.noise_ratio,
            "level": test.level,
            "units": test.units,
            "missing": None if test.missing is None else asdict(test.missing),
            "remarks": self.remarks,
        }
        return {"verdict": self.sentence, "test": facts}


def on_components(held_out: HeldOutContrast, features: Sequence[Sequence[str]]) -> str:
    """Which of the shown components vary more on unseen rows and are found again, in one sentence (F43).

    The test finds axes of its own, so it says that there is something, not that a component shows it. A component does
    if its interval lies above 1 and other halves of the rows find it again. Only say this where the test rejects.

    `features` are the strongest of each component.
    """
    more, again = held_out.intervals[:, 0] > 1, held_out.found_again
    sentences = []
    for kind, words in (
        (more & again, "{figures} as much in unseen cases and is found again"),
        (more & ~again, "{figures} as much in unseen cases but is not found again"),
        (~more & again, "is found again and {figures} as much in unseen cases, so perhaps no more"),
    ):
        for k in np.flatnonzero(kind).tolist():
            low, high = held_out.intervals[k]
            figures = f"varies {times(held_out.ratios[k])} times ({times(low)} to {times(high)})"
            what = f"component {k + 1} ({', '.join(features[k])})"
            sentences.append(f"{what} {words.format(figures=figures)}")
    neither = np.flatnonzero(~more & ~again) + 1
    if neither.size:
        one, all_clear = neither.size == 1, bool(sentences) and np.all(more == again)
        what = f"component{'' if one else 's'} {joined(neither)} {'is' if one else 'are'} not"
        sentences.append(what if all_clear else f"{what} found again")
    text = "; ".join(sentences)
    return f"{text[0].upper()}{text[1:]}."
