"""Results that people read: tables of columns, and text that notebooks show as HTML."""

from __future__ import annotations

import csv
import html
import io
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from .text import LEAST_P, percent

SHOWN_ROWS = 10
SHARE = re.compile(r"(largest )?share\b")  # how the names of such columns begin


class Table(dict[str, npt.NDArray[Any]]):
    """Named columns of equal length: a dict that `pandas.DataFrame` and `polars.DataFrame` take as it is.

    Printed, it shows its first ten rows.
    """

    def __missing__(self, name: str) -> npt.NDArray[Any]:
        raise KeyError(f"There is no column {name!r}, only {', '.join(map(repr, self))}.")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.values()), ()))

    def first(self, n: int) -> Table:
        """The first `n` rows."""
        return Table({name: column[:n] for name, column in self.items()})

    def to_csv(self) -> str:
        """The table as CSV text, with numbers in full precision."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self)
        writer.writerows(zip(*(column.tolist() for column in self.values()), strict=True))
        return text.getvalue()

    def _cells(self) -> tuple[list[list[str]], str]:
        """The shown rows as text, column by column with the name first, and what is said of the others."""
        cells = [[name, *(_format(name, value) for value in column[:SHOWN_ROWS])] for name, column in self.items()]
        hidden = self.n_rows - SHOWN_ROWS
        return cells, f"... {hidden} more row{'s' if hidden > 1 else ''}" if hidden > 0 else ""

    def __repr__(self) -> str:
        cells, more = self._cells()
        widths = [max(map(len, column)) for column in cells]
        rows = zip(*cells, strict=True)
        lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([*lines, more] if more else lines)

    def _repr_html_(self) -> str:
        cells, more = self._cells()
        head, *rows = ([html.escape(cell) for cell in row] for row in zip(*cells, strict=True))
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        names = "".join(f"<th>{name}</th>" for name in head)
        return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>{more and f'<p>{more}</p>'}"


def _format(name: str, value: Any) -> str:
    """A cell as the report's page shows it: p-values in two digits, shares in percent, other numbers in four digits."""
    if not isinstance(value, float | np.floating):
        return str(value)
    if name == "p":
        return f"< {LEAST_P:g}" if value < LEAST_P else f"{value:.2g}"
    return percent(float(value)) if SHARE.match(name) else f"{value:.4g}"


class Display:
    """Sentences and tables, one below the other.

    Printed, they are text; a notebook shows them as HTML.

    Parameters
    ----------
    *parts : str or Table
    """

    def __init__(self, *parts: str | Table):
        self.parts = parts

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.parts))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(
            part._repr_html_() if isinstance(part, Table) else f"<p>{html.escape(part)}</p>" for part in self.parts
        )


def shown_as_html(*parts: str | Table) -> str:
    """Parts as HTML, user text escaped."""
    return Display(*parts)._repr_html_()


class Result:
    """A result of sentences and tables, printed line by line, or as HTML in a notebook."""

    def _parts(self) -> list[str | Table]:
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(map(str, self._parts()))

    def _repr_html_(self) -> str:
        return shown_as_html(*self._parts())
