"""The verdict at the top of commands and reports: the result of the test, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .._util.checks import check_option, generator
from .._util.text import joined, plural, times
from ..data import DEPTHS, Design, Groups, Study, Tables, count_units, match_depth, table_units
from ..exceptions import GroupError
from ..missing import usable
from ._designs import cell_units, check_cells
from ._held_out import HeldOutContrast
from ._splits import MIN_UNITS
from ._test import ContrastTest, Tested, at_equal_depth, significance_of

SEED = 0  # the same tables give the same page
SURE = 0.001  # p-value below which nothing in the cases, and something in the controls, is said
SWAPPED = "But the controls vary more than the cases (p < 0.001): were the two tables swapped?"
N_TESTED = 10  # number of dimensions, or as many as are shown


@dataclass(frozen=True)
class Verdict:
    """What the test says about the components that are shown.

    Attributes
    ----------
    sentence : str
    remarks : list of str
        Further sentences; usually none.
    test : ContrastTest or None
        None if the tables cannot be tested; the sentence says why.
    n_shown : int
        Number of components.
    """

    sentence: str
    remarks: list[str]
    test: ContrastTest | None
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


def verdict_on(
    tables: Tables,
    *,
    n_shown: int,
    blocks: Groups[Any] | None = None,
    paired: bool = False,
    design: Design | None = None,
    scale: str | None = None,
    depth: str = "ignore",
    ignores_replicates: bool = False,
    progress: bool = True,
) -> Verdict:
    """Test the tables of a model with `n_shown` components, or say why that is not possible.

    `blocks` are checked, and may be pairs. `depth` is that of `contrast_test`, but "warn" is left to the checks of the
    tables. If rows look like replicates (`ignores_replicates`), the verdict says that they were taken for independent.
    The rows of a `design` are about the means of its cells.
    """
    check_option(depth, "depth", DEPTHS)
    rng = generator(SEED)
    if depth == "match":
        cases, controls = tables.with_one_background("The test").rows
        labels = None if blocks is None else tuple(blocks)
        matched = match_depth(Study(cases, background=controls, blocks=labels), random_state=rng)
        tables, blocks = matched.tables, matched.blocks
    reason = ""
    try:
        tables = usable(tables, "the test")
    except GroupError as error:
        reason = str(error).removesuffix(".")
    unit_of = table_units(tables, blocks, least=1, what="the test")
    if design is not None:
        try:
            check_cells(unit_of, design, blocks is not None)
        except GroupError as error:
            fewest = min(map(count_units, cell_units(unit_of, design)))
            about = Tested(design.kind, design.name, design.cells[-1], fewest, blocks is not None)
            reason = " ".join([str(error), *about.remarks()]).removesuffix(".")
    least = min(map(count_units, unit_of))
    what = "row" if blocks is None else "pair" if paired else "block"
    if not reason and least < MIN_UNITS and (blocks is None or least > 1):  # one label for all rows is an error
        reason = f"one group has {plural(least, what)}, but the test needs at least {MIN_UNITS} in each"
    elif not reason and tables.n_features < 2:
        reason = "there is one feature"
    if reason:
        return Verdict(f"The contrast was not tested: {reason}.", [], None, n_shown)
    settings: dict[str, Any] = {"scale": scale, "progress": progress}
    most = max(n_shown, N_TESTED)
    asked: dict[str, Any] = {"paired": paired, "design": design, "max_components": most, "random_state": rng}
    test = significance_of(tables, blocks=blocks, **asked, **settings)
    test = replace(test, ignores_replicates=ignores_replicates)
    verdict = Verdict.of(at_equal_depth(test) if depth == "match" else test, n_shown)
    if test.n_components == 0 and design is None:
        other = None if blocks is None else blocks.like(list(blocks)[::-1])
        settings |= {"max_components": 1, "random_state": SEED}
        if significance_of(tables.exchanged(), blocks=other, **settings).p_values[0] < SURE:
            verdict = replace(verdict, remarks=[*verdict.remarks, SWAPPED])
    return verdict
