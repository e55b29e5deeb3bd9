"""What commands say of results: lines for people, values for programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.tables import Table
from ..estimators import facts


def model_summary(model: Any) -> dict[str, Any]:
    """What `summary()` of a fitted model says, as values."""
    return {name: records(value) if isinstance(value, Table) else value for name, value in facts(model).items()}


def records(table: Table) -> list[dict[str, Any]]:
    """The rows of a table, names with underscores."""
    names = [name.replace(" ", "_") for name in table]
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


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
