"""A small table: named columns of one length, printable without any optional library."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .optional import require


@dataclass(frozen=True, repr=False)
class Table:
    """Named columns of equal length.

    Attributes
    ----------
    columns : mapping from name to 1-D ndarray
    """

    columns: Mapping[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self.columns:
            raise KeyError(f"There is no column {name!r}, only {', '.join(map(repr, self.columns))}.")
        return self.columns[name]

    def sorted_by(self, name: str, *, descending: bool = False) -> Table:
        """The rows in the order of one column."""
        order = np.argsort(self[name], kind="stable")
        order = order[::-1] if descending else order
        return Table({key: column[order] for key, column in self.columns.items()})

    def head(self, n: int = 10) -> Table:
        """The first `n` rows."""
        return Table({key: column[:n] for key, column in self.columns.items()})

    def to_frame(self) -> Any:
        """A pandas DataFrame."""
        return require("pandas", extra=None).DataFrame(dict(self.columns))

    def to_csv(self) -> str:
        """The table as text, numbers in full precision."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*(column.tolist() for column in self.columns.values()), strict=True))
        return text.getvalue()

    def __repr__(self) -> str:
        cells = [[name, *map(_format, column)] for name, column in self.columns.items()]
        widths = [max(map(len, column)) for column in cells]
        rows = zip(*cells, strict=True)
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)


def _format(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
