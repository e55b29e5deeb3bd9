"""`contrapca test`, and the verdict that other commands begin with."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Any

from .. import contrast_test
from ..groups import split_groups
from ..sanity import shows_replicates
from ..selection import verdict_on
from ._console import Console
from ._describe import records
from ._inputs import Inputs, read_inputs

MOST = 10  # dimensions tested unless told


def test(options: Namespace, console: Console) -> None:
    """Test the tables; print the verdict, then the p-values."""
    inputs = read_inputs(options)
    blocks, background_blocks = inputs.blocks or (None, None)
    found = contrast_test(
        inputs.X,
        background=inputs.Y,
        blocks=blocks,
        background_blocks=background_blocks,
        max_components=options.components or MOST,
        method=options.method,
        scale=scale_of(options),
        depth="match" if options.depth == "match" else "ignore",  # whoever reads the tables has warned
        random_state=options.seed,
        progress=console.progress,
    )
    found = replace(found, ignores_replicates=shows_replicates(inputs.findings))
    console.say(found, *inputs.describe())
    facts = {"n_components": found.n_components, "level": found.level, "method": found.method, "units": found.units}
    facts |= {"noise_ratio": found.noise_ratio, "remarks": found.remarks(), "dimensions": records(found.table())}
    console.summarise(
        {"verdict": found.verdict(), "test": facts, "cautions": inputs.cautions, "inputs": inputs.summary()}
    )


def scale_of(options: Namespace, kind: Any = None) -> str | None:
    """The scaling that the options ask for; "auto" is none but for a kind of estimator that chooses it."""
    if options.scale == "auto" and kind is not None and "auto" in kind._scales:
        return "auto"
    return None if options.scale in ("none", "auto") else options.scale


def verdict_of(options: Namespace, inputs: Inputs, console: Console) -> dict[str, Any]:
    """The verdict on the components that a command shows, as values; None without controls, or if it is not wanted."""
    if options.no_test or inputs.controls is None:
        return {"verdict": None, "test": None}
    tables = split_groups(inputs.X, None, inputs.Y, None, name="The test", needs_background=True, allow_missing=True)
    verdict = verdict_on(
        tables,
        n_shown=options.components,
        blocks=None if inputs.blocks is None else (*inputs.blocks, (None, None)),
        scale=scale_of(options),
        ignores_replicates=shows_replicates(inputs.findings),
        random_state=options.seed,
        progress=console.progress,
    )
    return verdict.summary()


def verdict_lines(summary: dict[str, Any]) -> list[str]:
    """The verdict of a summary in lines for people, the first ones of the output."""
    remarks = [] if summary["test"] is None else summary["test"]["remarks"]
    lines = [] if summary["verdict"] is None else [summary["verdict"], *remarks]
    lines += summary.get("remarks", [])  # of a report
    return [*lines, ""] if lines else []
