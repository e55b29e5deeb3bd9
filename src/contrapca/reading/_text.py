"""Tables in text files (CSV, TSV and the like): rows checked here, cells split and parsed by polars."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import gzip
import io
import itertools
import math
import re
import string
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, TextIO

import numpy as np

from .._util.arrays import Array
from .._util.optional import require
from .._util.text import Option, Worded, default_names, listed, plural
from ..exceptions import TableFileError
from ._layout import (
    COMMA_TO_POINT,
    COMMENT,
    NUMBER_WITH_COMMA,
    PLAIN,
    SAMPLE,
    Numerals,
    cells_of,
    column_names,
    find_decimal,
    find_header,
    find_separator,
    is_empty,
    lines_above,
)
from ._table import DataTable, check_distinct, without_empty

UTF_8 = "utf-8-sig"  # with or without a byte-order mark
SEPARATOR_LINE = re.compile(r'"?sep=([\t;|,: ])"?[^\S\n]*\n', re.IGNORECASE)  # understood by spreadsheets
MOSTLY = 0.5  # a column with a larger share of numbers is numeric, and its other cells are mistakes
MAX_SHOWN = 40  # characters of a cell
MAX_STRAY = 10  # cells of a column that are listed
IN_ARCHIVES = (".csv", ".tsv", ".txt")
OTHER_ENCODING: tuple[str | Worded, ...] = (
    "save it as CSV in UTF-8, or name its encoding, such as ",
    Option("encoding", "latin-1"),
    " or ",
    Option("encoding", "utf-16"),
    ".",
)


def open_text(path: Path, encoding: str = UTF_8) -> TextIO:
    """Open a text file, also one compressed by gzip or the only table of a zip archive."""
    match path.suffix.lower():
        case ".gz":
            return gzip.open(path, "rt", encoding=encoding)
        case ".zip":
            with zipfile.ZipFile(path) as archive:
                names = [name for name in archive.namelist() if not name.startswith("__MACOSX/") and name[-1:] != "/"]
                tables = [name for name in names if name.lower().endswith(IN_ARCHIVES)]
                if not tables:
                    has = listed(names) or "nothing"
                    raise TableFileError(
                        f"{str(path)!r} contains no {', '.join(IN_ARCHIVES)} file (it contains {has})."
                    )
                if len(tables) > 1:
                    raise TableFileError(
                        f"{str(path)!r} contains {len(tables)} tables ({listed(tables)}): extract the one to be used."
                    )
                return io.TextIOWrapper(archive.open(tables[0]), encoding=encoding)
    return path.open(encoding=encoding)


@contextlib.contextmanager
def text_errors(path: str) -> Iterator[None]:
    """Say which file cannot be read, and what to do about it."""
    try:
        yield
    except UnicodeDecodeError as error:
        encoding = "UTF-8" if error.encoding.lower().startswith("utf-8") else error.encoding
        raise TableFileError(f"{path!r} is not {encoding} text: ", *OTHER_ENCODING) from error
    except UnicodeError as error:  # of UTF-16 without a byte-order mark
        raise TableFileError(f"{path!r} cannot be decoded ({error}): ", *OTHER_ENCODING) from error
    except (gzip.BadGzipFile, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise TableFileError(f"{path!r} is not a complete compressed file: compress or copy it again.") from error
    except RuntimeError as error:  # a zip archive with a password, or of a rare kind
        raise TableFileError(f"{path!r} cannot be decompressed ({error}): extract it first.") from error


@dataclass(frozen=True)
class TextFile:
    """A text table, read whenever it is needed: its cells as objects take ten times the memory."""

    path: str
    open: Callable[[], TextIO]  # opens the text at its beginning
    separator: str = ","
    has_header: bool = False
    # One name for each cell of a row; empty for row names and after a trailing separator.
    columns: list[str] = field(default_factory=list)
    numerals: Numerals = PLAIN  # how numbers and missing values are written
    # Lines above the table: one that names the separator, such as `sep=;`, comments and titles.
    above: tuple[str, ...] = ()

    def lines(self) -> Iterator[tuple[int, str]]:
        """(number, text) of each line but those above the table."""
        with text_errors(self.path), self.open() as text:
            for number, line in enumerate(text, 1):
                if "\0" in line:
                    raise TableFileError(f"{self.path!r} is not a text file: ", *OTHER_ENCODING)
                if number > len(self.above):
                    yield number, line

    def records(self) -> Iterator[tuple[int, str, list[str] | None]]:
        """(number of the first line, text, cells) of each row, header included, blank lines left out.

        There are no cells in a comment, and None stands for a row that any library reads as it is. Once the columns
        are known, comments are told from rows: they have other numbers of cells.
        """
        width, separator = len(self.columns), self.separator
        blank, mark = string.whitespace + '"' + separator, re.escape(separator)
        # Quotes are only around whole cells, and separators only outside of them.
        regular = re.compile(rf'(?:(?:[^"]*+(?<={mark}))?"[^"{mark}]*"(?={mark}|\n?$))*[^"]*')
        lines, at_top = self.lines(), True
        for number, line in lines:
            fits = separator != " " and line.count(separator) == width - 1 and line.lstrip(blank)
            # Quotes need not be looked for after the last one, nor any in most lines.
            if fits and ('"' not in line or regular.fullmatch(line, 0, line.rindex('"') + 2)):
                cells = None
            elif line.startswith(COMMENT) and width and not at_top and len(self.split(line)) != width:
                cells = []
            else:  # line breaks in quotes take further lines
                try:
                    following = itertools.chain([line], (text for _, text in lines))
                    cells = next(cells_of(following, separator, strict=True))
                except csv.Error as error:
                    raise TableFileError(
                        f"Line {number} of {self.path!r} cannot be read ({error}): is a quote not closed?"
                    ) from error
                if len(cells) < 2 and is_empty(cells):
                    continue
            yield number, line, cells
            at_top = False

    def split(self, line: str) -> list[str]:
        return next(cells_of([line], self.separator, strict=False))  # type: ignore[no-any-return]

    def rows(self) -> Iterator[list[str]]:
        """The cells of each row, header included, blank lines and comments left out."""
        for _, line, cells in self.records():
            if cells is None or cells:
                yield self.split(line) if cells is None else cells


def text_table(
    path: str, opener: Callable[[], TextIO], *, header: bool | None, separator: str | None, numerals: Numerals
) -> DataTable:
    """Read a text table; its separator and whether it has a header are found unless given.

    A column is numeric if it holds only numbers and missing values, and at least one number. A column without a name
    holds row names, and so does a first column of distinct texts.
    """
    file = _with_layout(path, opener, header, separator, numerals)
    content, lines, notes = _content(file)
    values, numeric, cells = _parsed(file, content, len(lines))
    if file.numerals.percent:
        _check_percent(file, cells, numeric)
    others = sorted(set(range(len(file.columns))) - set(numeric))
    texts = {j: cells[str(j)].to_list() for j in others}
    mixed = {}
    for j, column in texts.items():
        places = _stray_cells(file, column) if file.columns[j] else []
        if places:
            shown = [f"{column[i][:MAX_SHOWN]!r} on line {lines[i]}" for i in places[:MAX_STRAY]]
            more = f" and {len(places) - MAX_STRAY} more" if len(places) > MAX_STRAY else ""
            mixed[file.columns[j]] = ", ".join(shown) + more
    row_names = None
    if 0 in texts and file.columns[0] not in mixed and (not file.columns[0] or len(set(texts[0])) == len(lines)):
        row_names = texts[0]
    names, values, empty = without_empty([file.columns[j] for j in numeric], values)
    return DataTable(
        path=path,
        names=names,
        values=values,
        named=file.has_header,
        texts={file.columns[j]: np.array(column) for j, column in texts.items() if file.columns[j]},
        row_names=row_names,
        mixed=mixed,
        empty=empty,
        notes=notes,
        source=file,
        missing=numerals.missing,
    )


def write_filled(
    table: DataTable, file: IO[bytes], names: Sequence[str], filled: Array, beside: tuple[str, list[int]] | None = None
) -> None:
    """Write a table that was read from text again, with cells of some columns filled in where they are missing.

    All other cells stay as they were; comments in or below the table are left out. `filled` has a column for each of
    `names`, NaN where a cell stays as it is. `beside` is a further column, the last one, and its numbers; it is left
    out where the table has no header, or has a column of that name.
    """
    source = table.source
    assert source is not None
    place = {source.columns.index(name): k for k, name in enumerate(names)}
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    text.write("".join(source.above))
    writer = csv.writer(text, delimiter=source.separator, lineterminator="\n")
    nothing = [np.nan] * len(names)
    values = iter([nothing, *filled.tolist()] if source.has_header else filled.tolist())
    further: Iterator[Any] = iter(())
    if beside is not None and source.has_header and beside[0] not in source.columns:
        further = iter([beside[0], *beside[1]])
    for row in source.rows():
        fill = nothing if is_empty(row) else next(values)
        for j, k in place.items():
            if fill[k] == fill[k] and source.numerals.is_missing(row[j]):
                row[j] = f"{fill[k]:.8g}".replace(".", source.numerals.decimal)
        writer.writerow(row if is_empty(row) else [*row, *itertools.islice(further, 1)])
    text.flush()
    text.detach()  # the file is the caller's to close


def turned_text_table(
    path: str, opener: Callable[[], TextIO], *, header: bool | None, separator: str | None, numerals: Numerals
) -> DataTable:
    """A text table that is turned over before it is read, so that names and labels find their places."""
    rows = [row for row in _with_layout(path, opener, False, separator, PLAIN).rows() if not is_empty(row)]
    width = max(map(len, rows))
    if len(rows[0]) == width - 1:  # row names without a name of their own, as R writes them
        rows[0] = ["", *rows[0]]
    uneven = next((k for k, row in enumerate(rows, 1) if len(row) != width), None)
    if uneven is not None:
        raise TableFileError(
            f"Row {uneven} of {path!r} has {len(rows[uneven - 1])} cells; expected {width}: it cannot be transposed."
        )
    names, *columns = zip(*rows, strict=True)
    notes = ["transposed: samples are columns in the file"]
    # Columns that describe the features, as words about genes do: a sample has numbers.
    about = [
        cells
        for cells in columns
        if all(numerals.value(cell) is None for cell in cells[1:]) and not all(map(numerals.is_missing, cells[1:]))
    ]
    if 0 < len(about) < len(columns):
        columns = [cells for cells in columns if cells not in about]
        notes.append(f"{plural(len(about), 'column')} of text left out ({listed([cells[0] for cells in about])})")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([names, *columns])
    turned = partial(io.StringIO, text.getvalue())
    table = text_table(f"{path} (transposed)", turned, header=header, separator=",", numerals=numerals)
    return dataclasses.replace(table, notes=[*notes, *table.notes])


def _with_layout(
    path: str, opener: Callable[[], TextIO], header: bool | None, separator: str | None, numerals: Numerals
) -> TextFile:
    """The file with its separator and columns, as its first rows show them."""
    file = TextFile(path, opener)
    first = [line for _, line in itertools.islice(file.lines(), 2 * SAMPLE)]
    declared = SEPARATOR_LINE.match(first[0]) if first else None
    start = bool(declared)
    file = dataclasses.replace(file, above=tuple(first[: start + lines_above(first[start:])]))
    lines = itertools.dropwhile(lambda line: not line.strip(' \t;|,"\n').strip(), (line for _, line in file.lines()))
    sample = list(itertools.islice(lines, 2 * SAMPLE))
    every, rest = sample[:SAMPLE], [line for line in sample[1:] if not line.startswith(COMMENT)]
    sample = [*sample[:1], *(rest or sample[1:])][:SAMPLE]  # without comments, unless names of rows begin with #
    if not sample:
        raise TableFileError(f"{path!r} is empty: a table needs a header and rows of values.")
    if separator is None:
        known = declared[1] if declared and declared[1] in sample[0] else None
        separator = known or find_separator(sample) or find_separator(every)  # a quoted name may have a line with #
    if separator is None:
        raise TableFileError(
            f"{path!r} has only one column: at least 2 features are needed. If there are more, separate them by "
            "commas, tabs, semicolons, | or spaces."
        )
    file = dataclasses.replace(file, separator=separator)
    rows = list(itertools.islice((row for row in file.rows() if not is_empty(row)), SAMPLE))
    rows = [row for row in rows if not row[0].startswith(COMMENT) or len(row) - len(rows[0]) in (0, 1)]
    numerals = dataclasses.replace(numerals, decimal=find_decimal(rows, separator, thousands=numerals.thousands))
    if header is None:
        header = find_header(path, rows, numerals)
    if header and len(rows) == 1:
        raise TableFileError(f"{path!r} has a header but no rows.")
    columns = column_names(rows) if header else default_names(len(rows[0]))
    if header and rows[0][0].startswith(COMMENT) and columns[0].startswith(COMMENT):  # a header that begins with #
        columns[0] = columns[0].removeprefix(COMMENT).strip()
    check_distinct(path, [column for column in columns if column])
    return dataclasses.replace(file, has_header=header, columns=columns, numerals=numerals)


def _content(file: TextFile) -> tuple[bytes, list[int], list[str]]:
    """The rows as any library reads them, the line of each, and what was decided, in words."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=file.separator, lineterminator="\n")
    lines: list[int] = []
    n_empty, n_comments, in_header = 0, 0, file.has_header
    for number, line, cells in file.records():
        if cells is not None:
            if is_empty(cells):
                n_comments, n_empty = n_comments + (not cells), n_empty + bool(cells)
                continue
            if len(cells) != len(file.columns) and not in_header:
                title = "" if lines else ". If a title is above the table, remove it or begin it with #"
                found, expected = plural(len(cells), "cell"), len(file.columns)
                raise TableFileError(f"Line {number} of {file.path!r} has {found}; expected {expected}{title}.")
        if in_header:
            in_header = False
            continue
        lines.append(number)
        if cells is None:
            text.write(line)
        else:
            writer.writerow(cells)
    notes = [] if file.has_header else ["no header"]
    if file.above and (skipped := [line.strip() for line in file.above if not SEPARATOR_LINE.match(line)]):
        first = next(filter(None, skipped), "").strip(f'"{file.separator} ')[:MAX_SHOWN]
        notes.append(f"{plural(len(skipped), 'line')} above the table skipped ({first!r})")
    if file.numerals.decimal == ",":
        notes.append("numbers with decimal commas")
    if n_empty:
        notes.append(f"{plural(n_empty, 'empty row')} left out")
    if n_comments:
        notes.append(f"{plural(n_comments, 'line')} that begin{'s' * (n_comments == 1)} with # skipped")
    return text.getvalue().encode(), lines, notes


def _parsed(file: TextFile, content: bytes, n_rows: int) -> tuple[Array, list[int], Any]:
    """The columns of numbers as one array, NaN where missing, their places, and columns with other cells as text."""
    polars, numerals, every = require("polars", extra="tables"), file.numerals, range(len(file.columns))

    def parse(text: bytes, kind: Any, columns: Sequence[int]) -> Any:
        schema = {str(j): kind for j in every}
        if not (text and columns):
            return polars.DataFrame(schema={str(j): kind for j in columns})
        return polars.read_csv(
            text,
            columns=list(columns),
            has_header=False,
            separator=file.separator,
            schema=schema,
            ignore_errors=True,  # a cell of another type becomes null
        )

    numbers = parse(content.translate(COMMA_TO_POINT) if numerals.decimal == "," else content, polars.Float64, every)
    unread = [j for j, count in enumerate(numbers.null_count().row(0)) if count or not file.columns[j]]
    cells = parse(content, polars.String, unread).select(polars.all().fill_null("").str.strip_chars())
    found: dict[int, tuple[Any, list[float]]] = {}
    for j in unread:
        rows = numbers[str(j)].is_null()
        words = cells[str(j)].filter(rows)  # a few, again and again
        known = {word: math.nan if numerals.is_missing(word) else numerals.value(word) for word in words.unique()}
        if file.columns[j] and None not in known.values():
            found[j] = rows.to_numpy(), [known[word] for word in words]  # type: ignore[misc]
    numeric = sorted({*every} - {*unread} | {*found})
    values = np.empty((n_rows, len(numeric)))
    if numeric:
        values[:] = numbers.select([str(j) for j in numeric]).to_numpy()
    for k, j in enumerate(numeric):
        if j in found:
            places, values_of = found[j]
            values[places, k] = values_of
    return values, numeric, cells


def _check_percent(file: TextFile, cells: Any, columns: list[int]) -> None:
    """Refuse a column of numbers with and without percent signs, which would differ a hundredfold; 0 is 0%."""
    for j in sorted(set(columns) & set(map(int, cells.columns))):
        words = [word for word in cells[str(j)].unique(maintain_order=True) if not file.numerals.is_missing(word)]
        signed = next((word for word in words if word.endswith("%")), None)
        bare = next((word for word in words if not word.endswith("%") and file.numerals.value(word) != 0), None)
        if signed is not None and bare is not None:
            raise TableFileError(
                f"Column {file.columns[j]!r} of {file.path!r} has numbers with and without percent signs, such as "
                f"{signed!r} and {bare!r}: ",
                Option("percent", True),
                " divides only the former by 100. Write all alike.",
            )


def _stray_cells(file: TextFile, cells: list[str]) -> list[int]:
    """The rows of cells that are not numbers in a column of numbers; none for a column of text."""
    numerals = file.numerals
    present = [(i, cell) for i, cell in enumerate(cells) if not numerals.is_missing(cell)]
    stray = [(i, cell) for i, cell in present if numerals.value(cell) is None]
    with_comma = [cell for _, cell in stray if NUMBER_WITH_COMMA.fullmatch(cell)]
    if with_comma and len(present) - len(stray) + len(with_comma) > MOSTLY * len(present):
        raise TableFileError(
            f"{file.path!r} has decimal commas or thousands separators, such as {with_comma[0]!r}: write 1.5 instead "
            "of 1,5; if 1,234 means 1234, add ",
            Option("thousands", True),
            ".",
        )
    return [i for i, _ in stray] if len(present) - len(stray) > MOSTLY * len(present) else []
