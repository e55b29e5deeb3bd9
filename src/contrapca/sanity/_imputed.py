"""Tables that say that some of their values were imputed: a test would take these for measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..exceptions import TableWarning, warn
from ._finding import Finding

IMPUTED = "imputed"  # the column of a file, and the entry of a data frame's `attrs`, that say so


def imputed_values(count: int, where: str) -> Finding:
    """What is to be said of a table with so many imputed values."""
    return Finding(
        "imputed values",
        f"{count} values of {where} were imputed. Imputed values vary less than measured ones, which can look like a "
        "contrast.",
        "Pass the table as it was: missing values (NaN) can be in both groups.",
        "Use the table as it was: values can be missing in both groups.",
    )


def warn_of_imputed(tables: Iterable[Any]) -> None:
    """Warn of data frames that `impute` has filled."""
    for table in tables:
        count = getattr(table, "attrs", {}).get(IMPUTED)
        if count:
            warn(str(imputed_values(count, "a table")), TableWarning)
