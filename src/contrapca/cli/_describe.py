"""What fitted models hold, as values for programs."""

from __future__ import annotations

from typing import Any

from .._util.table import Table


def model_summary(model: Any) -> dict[str, Any]:
    """What `summary()` of a fitted model says, as values."""
    return {name: records(value) if isinstance(value, Table) else value for name, value in model._facts().items()}


def records(table: Table) -> list[dict[str, Any]]:
    """The rows of a table, names with underscores."""
    names = [name.replace(" ", "_") for name in table]
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]
