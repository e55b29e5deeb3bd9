"""What a report says of a design: several conditions, two factors or a dose in place of two groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.text import plural
from ..data import Design, Groups, Study
from ..estimators import ContrastSolver, Likelihood, unfitted
from ..exceptions import InfeasibleGammaError, RankError
from ..inference import condition_similarity

FEW_CELLS = 5  # conditions that are listed
TWO_GROUPS = {
    "title": "What varies in the cases but not in the controls",
    # In legends, at axes and in tables.
    "cases": "cases",
    "controls": "controls",
    "case": "case",
    "control": "control",
    # In sentences.
    "many": "cases",
    "others": "controls",
    "more": "in the cases than in the controls",
    "vary": "cases vary",
    "as_much": "as much as controls",
    "ratio": "cases / controls",
    # Of a methods section; TIMES stands for ratios.
    "tested": "Whether the cases vary more than the controls was",
    "held_out": "the cases' variance was TIMES times that of the controls",
    "centred": "Each group was centred by its own mean",
}


def words_for(design: Design | None) -> dict[str, str]:
    """How a page speaks of both groups, and of what their contrast means."""
    if design is None:
        return TWO_GROUPS
    if design.kind == "conditions":
        return TWO_GROUPS | {
            "title": "What varies in the conditions but not in the controls",
            "vary": "the conditions together vary",
            "ratio": "conditions / controls",
            "tested": "Whether any condition varies more than the controls was",
            "held_out": "the variance of all conditions together was TIMES times that of the controls",
            "centred": "Each condition was centred by its own mean, and all count alike",
        }
    if design.kind == "interaction":
        first, second = design.name.split(" x ", 1)
        both, one = "both or neither", "one factor"
        return (
            dict.fromkeys(("cases", "case"), both)
            | dict.fromkeys(("controls", "control"), one)
            | {
                "title": f"Where the effect of {second} on variation depends on {first}",
                "many": "samples with both factors or neither",
                "others": "samples with one factor",
                "more": "than both factors explain by themselves",
                "vary": "both factors together change the variance",
                "as_much": "as much as each by itself explains",
                "ratio": "double ratio of the cells",
                "tested": f"Whether the effect of {second} on variation depends on {first} was",
                "held_out": "the double ratio of the four variances was TIMES",
                "centred": "Each cell was centred by its own mean, and all cells of a group count alike",
            }
        )
    high, low = f"high {design.name}", f"low {design.name}"
    return (
        dict.fromkeys(("cases", "case"), high)
        | dict.fromkeys(("controls", "control"), low)
        | {
            "title": f"What varies the more, the higher {design.name} is",
            "many": f"samples of {high}",
            "others": f"samples of {low}",
            "more": f"at high {design.name} than at low",
            "vary": "the variance grows",
            "as_much": f"from the lowest to the highest {design.name}",
            "ratio": "growth of the variance",
            "tested": f"Whether variation grows with {design.name} was",
            "held_out": f"the variance grew TIMES times from the lowest to the highest {design.name}",
            "centred": f"Each sample was centred by the mean of its {design.name}, where 10 or more samples have it, "
            "or by a curve through those of the others, and counts by its rank",
        }
    )


def shortly(design: Design) -> str:
    """What a page is about, on one line: the cells of a design and their rows, if they are few."""
    if design.kind != "conditions":
        return str(design).removesuffix(" samples")
    *counts, controls = design.counts
    names = ", ".join(f"{name} {count:,}" for name, count in zip(design.cells, counts, strict=False))
    cases = f"{plural(len(counts), 'condition')} ({names})"
    if len(counts) > FEW_CELLS:
        cases = f"{sum(counts):,} samples of {len(counts)} conditions"
    return f"{cases} and {controls:,} controls"


def labels_of(study: Study) -> Groups[Any]:
    """The labels that a user has given; a study without any has the cells of its design."""
    design = study.design
    if design is None or study.label_name != design.name:
        return study.labels
    own = all(
        given is not None and np.array_equal(given, cells)
        for given, cells in zip(study.labels, design.cell_names, strict=True)
    )
    return study.labels.map(lambda _: None) if own else study.labels


def similarity_of(study: Study, estimator: ContrastSolver, gamma: float) -> dict[str, Any] | None:
    """How alike the axes of conditions are; None where there is one, or one that cannot be fitted alone.

    Units and axes are those of all conditions together, and so is gamma, unless it has a limit: that of one condition
    is often below, so each has its own, and its own rank.
    """
    if study.design is None or study.design.kind != "conditions" or len(study.design.cells) < 3:
        return None
    if isinstance(estimator, Likelihood):
        alike = unfitted(estimator, gamma="auto", n_latent=estimator.n_latent and "auto")
    else:
        alike = unfitted(estimator)._with_strength(gamma)
    try:
        found = condition_similarity(alike, study)
    except (InfeasibleGammaError, RankError):
        return None
    return {"conditions": list(found.conditions), "values": found.similarity.tolist(), "by_chance": found.by_chance}
