"""`contrapca test`, and the verdict that other commands begin with."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from .._util.tables import Table
from ..data.checks import shows_replicates
from ..estimators import ContraPCA
from ..inference import contrast_test
from ._console import Console, records
from ._inputs import cautions_of, described, input_facts, read_inputs

MOST = 10  # dimensions tested by default


def test(options: Namespace, console: Console) -> None:
    """Test the tables; print the verdict, then the p-values."""
    inputs = read_inputs(options)
    found = contrast_test(
        inputs.study,
        max_components=options.components or MOST,
        scale=scale_of(options),
        depth="match" if options.depth == "match" else "ignore",  # reading the tables has warned already
        random_state=options.seed,
        progress=console.progress,
    )
    found = replace(found, ignores_replicates=shows_replicates(inputs.findings))
    console.say(found, *described(inputs))
    facts = {"n_components": found.n_components, "level": found.level, "units": found.units}
    facts |= {"missing": None if found.missing is None else asdict(found.missing)}
    facts |= {"noise_ratio": found.noise_ratio, "remarks": found.remarks(), "dimensions": records(found.table())}
    console.summarise(
        {"verdict": found.verdict(), "test": facts, "cautions": cautions_of(inputs), "inputs": input_facts(inputs)}
    )


def scale_of(options: Namespace, kind: Any = None) -> str | None:
    """The scaling that the options ask for; "auto" is none but for a kind of estimator that chooses it."""
    if options.scale == "auto" and kind is not None and issubclass(kind, ContraPCA):
        return "auto"
    return None if options.scale in ("none", "auto") else options.scale


def verdict_lines(summary: dict[str, Any]) -> list[str]:
    """The verdict of a summary in lines for people, the first ones of the output."""
    if summary.get("verdict") is None:
        return []
    remarks = [] if summary["test"] is None else summary["test"]["remarks"]
    lines = [summary["verdict"], *remarks, *summary.get("remarks", [])]  # the last of a report
    return [*lines, ""]


def unseen_lines(summary: dict[str, Any]) -> list[Any]:
    """What other halves of the rows say of each component, in lines for people; none where that is not known."""
    components = [entry for entry in summary.get("components", ()) if entry["held_out_ratio"] is not None]
    if not components:
        return []
    low, high = np.array([entry["held_out_interval"] for entry in components], dtype=float).T
    columns: dict[str, Any] = {"component": np.array([entry["component"] + 1 for entry in components])}
    columns |= {"ratio": np.array([entry["held_out_ratio"] for entry in components]), "from": low, "to": high}
    columns["found again"] = np.array(["yes" if entry["found_again"] else "no" for entry in components], dtype=object)
    share = "largest share of one block" if summary["by_blocks"] else "largest share of one case"
    columns[share] = np.array([entry["largest_share"] for entry in components])
    return ["Variance of cases over that of controls, on rows that the fit has not seen:", Table(columns), ""]
