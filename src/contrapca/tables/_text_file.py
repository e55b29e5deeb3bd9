"""The text that a table was read from."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from ..exceptions import TableFileError
from ._layout import Decimal, cells_of, is_empty


@dataclass(frozen=True)
class TextFile:
    """The text of a table, taken apart whenever it is needed: cells as objects take ten times its memory.

    Attributes
    ----------
    path, text, separator : str
    has_header : bool
    columns : list of str
        One name for each cell of a row; empty for row names and for what follows a trailing separator.
    decimal : "." or ","
    separator_line : str
        What stood before `text`: empty, or a line such as `sep=;`.
    """

    path: str
    text: str
    separator: str
    has_header: bool
    columns: list[str]
    decimal: Decimal = "."
    separator_line: str = ""

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """(number of the line, cells), the header included, blank lines left out."""
        reader = cells_of(io.StringIO(self.text), self.separator, strict=True)
        before = bool(self.separator_line)
        try:
            for row in reader:
                if len(row) > 1 or not is_empty(row):
                    yield before + reader.line_num, row
        except csv.Error as error:
            raise TableFileError(
                f"Line {before + reader.line_num} of {self.path!r} cannot be read ({error}): is a quote not closed?"
            ) from error

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """(number of the line, cells) of each row of values, as many as `columns`; no cells of rows that are empty."""
        before_values = self.has_header
        for line, row in self.lines():
            if is_empty(row):
                yield line, []
            elif before_values:
                before_values = False
            elif len(row) != len(self.columns):
                raise TableFileError(
                    f"Line {line} of {self.path!r} has {len(row)} cells where {len(self.columns)} belong."
                )
            else:
                yield line, row
