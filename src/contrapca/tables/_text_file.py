"""The text that a table is read from, line by line."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import string
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from .._util.text import listed, plural
from ..exceptions import TableFileError
from ._layout import cells_of, is_comment, is_empty
from ._numerals import PLAIN, Numerals

UTF_8 = "utf-8-sig"  # with or without a byte-order mark
IN_ARCHIVES = (".csv", ".tsv", ".txt")
BLOCK = 1 << 26  # characters; tables are parsed in blocks, to hold little more than their numbers in memory


def open_text(path: Path, encoding: str = UTF_8) -> TextIO:
    """Open a text file, also one compressed by gzip or the only table of a zip archive."""
    match path.suffix.lower():
        case ".gz":
            return gzip.open(path, "rt", encoding=encoding)
        case ".zip":
            return io.TextIOWrapper(_only_table(path), encoding=encoding)
    return path.open(encoding=encoding)


def _only_table(path: Path) -> zipfile.ZipExtFile:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.startswith("__MACOSX/") and not name.endswith("/")]
        tables = [name for name in names if name.lower().endswith(IN_ARCHIVES)]
        if not tables:
            raise TableFileError(
                f"{str(path)!r} contains no {', '.join(IN_ARCHIVES)} file (it contains {listed(names) or 'nothing'})."
            )
        if len(tables) > 1:
            raise TableFileError(
                f"{str(path)!r} contains {len(tables)} tables ({listed(tables)}): extract the one to be used."
            )
        return archive.open(tables[0])  # type: ignore[return-value]


def _quotes_cells(line: str, separator: str) -> bool:
    """Whether quotes are only around whole cells, and separators only outside."""
    parts = f"{separator}{line.rstrip()}{separator}".split('"')
    before, inside, after = parts[:-1:2], parts[1::2], parts[2::2]
    return (
        len(before) == len(inside) == len(after)
        and all(part.endswith(separator) for part in before)
        and all(part.startswith(separator) for part in after)
        and not any(separator in part for part in inside)
    )


OTHER_ENCODING = "save it as CSV in UTF-8, or name its encoding, such as --encoding latin-1 or --encoding utf-16"


@contextlib.contextmanager
def text_errors(path: str) -> Iterator[None]:
    """Say which file cannot be read, and what to do about it."""
    try:
        yield
    except UnicodeDecodeError as error:
        encoding = "UTF-8" if error.encoding.lower().startswith("utf-8") else error.encoding
        raise TableFileError(f"{path!r} is not {encoding} text: {OTHER_ENCODING}.") from error
    except UnicodeError as error:  # of UTF-16 without a byte-order mark
        raise TableFileError(f"{path!r} cannot be decoded ({error}): {OTHER_ENCODING}.") from error
    except (gzip.BadGzipFile, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise TableFileError(f"{path!r} is not a complete compressed file: compress or copy it again.") from error
    except RuntimeError as error:  # a zip archive with a password, or of a rare kind
        raise TableFileError(f"{path!r} cannot be decompressed ({error}): extract it first.") from error


@dataclass(frozen=True)
class TextFile:
    """A text table, read whenever it is needed: its cells as objects take ten times the memory.

    Attributes
    ----------
    path : str
    open : function
        Opens the text at its beginning.
    separator : str
    has_header : bool
    columns : list of str
        One name for each cell of a row; empty for row names and after a trailing separator.
    numerals : Numerals
        How numbers and missing values are written.
    above : tuple of str
        Lines above the table: one that names the separator, such as `sep=;`, comments and titles.
    """

    path: str
    open: Callable[[], TextIO]
    separator: str = ","
    has_header: bool = False
    columns: list[str] = field(default_factory=list)
    numerals: Numerals = PLAIN
    above: tuple[str, ...] = ()

    def lines(self) -> Iterator[tuple[int, str]]:
        """(number, text) of each line but those above the table."""
        with text_errors(self.path), self.open() as text:
            for number, line in enumerate(text, 1):
                if "\0" in line:
                    raise TableFileError(f"{self.path!r} is not a text file: {OTHER_ENCODING}.")
                if number > len(self.above):
                    yield number, line

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """(number of the first line, cells) of each row, header included, blank lines and comments left out."""
        lines, in_header = self.lines(), True
        for number, line in lines:
            if not in_header and self.columns and is_comment(line, self.separator, len(self.columns)):
                continue
            cells = self._cells(number, line, lines)
            if len(cells) > 1 or not is_empty(cells):
                in_header = False
                yield number, cells

    def blocks(self) -> Iterator[tuple[list[int], str, int, int]]:
        """(line of each row, text, number of empty rows and of comments left out) for several rows at a time.

        All rows have as many cells as `columns`. Most lines are passed on as they are. Those with quotes in odd places
        are normalised, because libraries read them differently.
        """
        width, separator = len(self.columns), self.separator
        blank = string.whitespace + '"' + separator
        in_header, lines = self.has_header, self.lines()
        numbers: list[int] = []
        parts: list[str] = []
        size = n_empty = n_comments = 0
        for number, line in lines:
            is_plain = line.count(separator) == width - 1 and line.lstrip(blank) and separator != " "
            if not is_plain or ('"' in line and not _quotes_cells(line, separator)):
                if not in_header and is_comment(line, separator, width):
                    n_comments += 1
                    continue
                cells = self._cells(number, line, lines)
                if is_empty(cells):
                    n_empty += len(cells) > 1
                    continue
                if len(cells) != width and not in_header:
                    found = plural(len(cells), "cell")
                    title = "" if numbers else ". If a title is above the table, remove it or begin it with #"
                    raise TableFileError(f"Line {number} of {self.path!r} has {found}; expected {width}{title}.")
                line = self._joined(cells)
            if in_header:
                in_header = False
                continue
            numbers.append(number)
            parts.append(line)
            size += len(line)
            if size >= BLOCK:
                yield numbers, "".join(parts), n_empty, n_comments
                numbers, parts, size, n_empty, n_comments = [], [], 0, 0, 0
        yield numbers, "".join(parts), n_empty, n_comments

    def _cells(self, number: int, line: str, lines: Iterator[tuple[int, str]]) -> list[str]:
        """The cells of the row that begins with `line`; line breaks in quotes take further lines."""
        following = (text for _, text in lines)
        try:
            return next(cells_of(itertools.chain([line], following), self.separator, strict=True))
        except csv.Error as error:
            raise TableFileError(
                f"Line {number} of {self.path!r} cannot be read ({error}): is a quote not closed?"
            ) from error

    def _joined(self, cells: list[str]) -> str:
        text = io.StringIO()
        csv.writer(text, delimiter=self.separator, lineterminator="\n").writerow(cells)
        return text.getvalue()
