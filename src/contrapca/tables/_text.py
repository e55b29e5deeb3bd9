"""Tables in text files (CSV, TSV and the like), also compressed by gzip."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from .._array import Array
from ..exceptions import TableFileError
from ._data import DataTable, check_distinct, is_missing

SEPARATORS = ("\t", ";", "|", ",", " ")  # of those that fit, the first
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
WHOLE_NUMBER = re.compile(r"\s*[-+]?\d+\s*")
SAMPLE_ROWS = 20  # that tell the separator and the shape of the header
CELLS_AT_ONCE, LEAST_ROWS_AT_ONCE = 50_000, 100  # few enough for the processor's cache
MOSTLY = 0.5  # a column with a larger share of numbers is one of numbers, spoilt by the others


@dataclass(frozen=True)
class TextFile:
    """The text of a table, taken apart whenever it is needed: cells as objects take ten times its memory.

    Attributes
    ----------
    path, text, separator : str
    has_header : bool
    columns : list of str
        One name for each cell of a row; empty for row names and for what follows a trailing separator.
    """

    path: str
    text: str
    separator: str
    has_header: bool
    columns: list[str]

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """(number of the line, cells), the header included, blank lines left out."""
        reader = _reader(io.StringIO(self.text), self.separator, strict=True)
        try:
            for row in reader:
                if len(row) > 1 or "".join(row).strip():
                    yield reader.line_num, row
        except csv.Error as error:
            raise TableFileError(
                f"Line {reader.line_num} of {self.path!r} cannot be read ({error}): is a quote not closed?"
            ) from error

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """(number of the line, cells) of each row of values, all of the length of `columns`."""
        for number, row in itertools.islice(self.lines(), int(self.has_header), None):
            if len(row) != len(self.columns):
                raise TableFileError(
                    f"Line {number} of {self.path!r} has {len(row)} cells where {len(self.columns)} belong."
                )
            yield number, row


def read_text_table(path: str | Path, *, header: bool | None = None) -> DataTable:
    """Read a text file; its separator is found, and whether its first line is a header, unless told.

    A column is numeric if it holds numbers and missing values only and at least one number. A column without a name
    is taken for row names, as tools write them in front of the others; so is a first column of distinct texts.
    """
    file = open_text_file(path, header=header)
    numbers, texts, lines = _read_columns(file)
    columns = file.columns
    features = {columns[j]: values for j, values in numbers.items() if not np.isnan(values).all()}
    mixed = {}
    for j, cells in texts.items():
        place = _stray_cell(file, cells) if columns[j] else None
        if place is not None:
            mixed[columns[j]] = f"{cells[place]!r} in line {lines[place]}"
    row_names = None
    if 0 in texts and columns[0] not in mixed and (not columns[0] or len(set(texts[0])) == len(lines)):
        row_names = texts[0]
    notes = [] if file.has_header else ["no header"]
    return DataTable(
        path=file.path,
        names=list(features),
        values=np.column_stack(list(features.values())) if features else np.empty((len(lines), 0)),
        named=file.has_header,
        texts={columns[j]: np.array(cells) for j, cells in texts.items() if columns[j]},
        row_names=row_names,
        mixed=mixed,
        empty=[columns[j] for j, values in numbers.items() if np.isnan(values).all()],
        notes=notes,
        source=file,
    )


def write_filled(table: DataTable, file: IO[bytes], names: Sequence[str], filled: Array) -> None:
    """Write the table's text again, missing cells of the named columns filled in; all other cells as they were.

    Parameters
    ----------
    table : DataTable that was read from text
    file : binary file
    names : of the columns that are filled
    filled : ndarray of shape (n, len(names))
        NaN where a cell stays as it is.
    """
    source = table.source
    assert source is not None
    place = {source.columns.index(name): k for k, name in enumerate(names)}
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, delimiter=source.separator, lineterminator="\n")
    if source.has_header:
        writer.writerow(next(source.lines())[1])
    for (_, row), values in zip(source.rows(), filled.tolist(), strict=True):
        for j, k in place.items():
            if is_missing(row[j]) and values[k] == values[k]:
                row[j] = f"{values[k]:.8g}"
        writer.writerow(row)
    text.flush()
    text.detach()  # the file is the caller's to close


def open_text_file(path: str | Path, *, header: bool | None = None) -> TextFile:
    """The text of a file, its separator and its columns."""
    name, text = str(path), read_text(Path(path))
    if not text.strip():
        raise TableFileError(f"{name!r} is empty: a header and rows of values are needed.")
    sample = list(itertools.islice(filter(str.strip, io.StringIO(text)), SAMPLE_ROWS))
    separator = _find_separator(sample)
    if separator is None:
        raise TableFileError(
            f"{name!r} has one column only, as far as commas, tabs, semicolons, | and spaces tell: separate the "
            "columns by one of them."
        )
    file = TextFile(name, text, separator, False, [])
    rows = [row for _, row in itertools.islice(file.lines(), SAMPLE_ROWS)]
    if header is None:
        header = _is_header(rows[0])
    if header and len(rows) == 1:
        raise TableFileError(f"{name!r} has a header but no rows.")
    columns = _columns(rows) if header else [f"x{j}" for j in range(len(rows[0]))]
    check_distinct(name, [column for column in columns if column])
    return TextFile(name, text, separator, header, columns)


def read_text(path: Path) -> str:
    """The text of a file, also of one compressed by gzip."""
    compressed = path.suffix.lower() == ".gz"
    try:
        with gzip.open(path, "rt", encoding="utf-8-sig") if compressed else path.open(encoding="utf-8-sig") as file:
            text = file.read()
    except UnicodeDecodeError as error:
        raise TableFileError(f"{str(path)!r} is not text in UTF-8: save it as CSV in UTF-8 first.") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableFileError(f"{str(path)!r} is not a complete gzip file: compress it again.") from error
    if "\0" in text:
        raise TableFileError(f"{str(path)!r} is not a text file: save it as CSV in UTF-8 first.")
    return text


def _reader(lines: Iterable[str], separator: str, strict: bool) -> Any:
    # Several spaces separate once.
    return csv.reader(lines, delimiter=separator, skipinitialspace=separator == " ", strict=strict)


def _find_separator(sample: list[str]) -> str | None:
    """The first that gives all lines one number of cells (the header may be one short), else the most frequent."""
    for separator in SEPARATORS:
        with contextlib.suppress(csv.Error):  # which is reported with its line later
            first, *others = [len(row) for row in _reader(sample, separator, strict=False)]
            if first > 1 and set(others or [first]) in ({first}, {first + 1}):
                return separator
    best = max(SEPARATORS[:-1], key=sample[0].count)
    return best if best in sample[0] else None


def _is_header(cells: list[str]) -> bool:
    """Whether a first line holds names: some text, and no number with a fraction, as values have."""
    present = [cell for cell in cells if not is_missing(cell)]
    numbers = [cell for cell in present if _number(cell) is not None]
    return len(numbers) < len(present) and all(map(WHOLE_NUMBER.fullmatch, numbers))


def _columns(rows: list[list[str]]) -> list[str]:
    """Names of the cells of a row, from the header and the first rows."""
    names = [cell.strip() for cell in rows[0]]
    if any(len(row) != len(names) + 1 for row in rows[1:]):
        return names
    if all(not row[-1] for row in rows[1:]):
        return [*names, ""]  # a separator at the end of each line
    return ["", *names]  # row names without a name of their own, as R writes them


def _read_columns(file: TextFile) -> tuple[dict[int, Array], dict[int, list[str]], list[int]]:
    """Numeric columns, other columns (stripped), and the line of each row.

    Cells are turned into numbers block by block. Where a later block shows that a column is no numeric one, the text is
    gone through once more for its cells.
    """
    as_text = {j for j, name in enumerate(file.columns) if not name}
    underscores = "_" in file.text  # Python would read 3_1 as 31
    rows_at_once = max(LEAST_ROWS_AT_ONCE, CELLS_AT_ONCE // len(file.columns))
    while True:
        numbers: dict[int, list[Array]] = {j: [] for j in range(len(file.columns)) if j not in as_text}
        texts: dict[int, list[str]] = {j: [] for j in sorted(as_text)}
        lines: list[int] = []
        rows = file.rows()
        while block := list(itertools.islice(rows, rows_at_once)):
            for j, cells in enumerate(zip(*(row for _, row in block), strict=True)):
                if j in texts:
                    texts[j].extend(cell.strip() for cell in cells)
                elif j in numbers:
                    values = _numbers(cells, underscores)
                    if values is not None:
                        numbers[j].append(values)
                        continue
                    del numbers[j]
                    as_text.add(j)
                    if not lines:
                        texts[j] = [cell.strip() for cell in cells]
            lines.extend(number for number, _ in block)
        if as_text == set(texts):
            return {j: np.concatenate(parts) for j, parts in numbers.items()}, dict(sorted(texts.items())), lines


def _numbers(cells: Sequence[str], underscores: bool) -> Array | None:
    """Cells as numbers, NaN where missing; None where one is neither."""
    if underscores and any("_" in cell for cell in cells):
        return None
    try:
        return np.array(list(map(float, cells)))
    except ValueError:  # something is missing, or text
        pass
    try:
        return np.array([np.nan if is_missing(cell) else float(cell) for cell in cells])
    except ValueError:
        return None


def _stray_cell(file: TextFile, cells: list[str]) -> int | None:
    """The row of the first cell that is no number in a column of numbers; None in a column of text."""
    present = [(i, cell) for i, cell in enumerate(cells) if not is_missing(cell)]
    stray = [(i, cell) for i, cell in present if _number(cell) is None]
    with_comma = [cell for _, cell in stray if DECIMAL_COMMA.fullmatch(cell)]
    if with_comma and len(present) - len(stray) + len(with_comma) > MOSTLY * len(present):
        raise TableFileError(
            f"{file.path!r} has decimal commas, such as {with_comma[0]!r}: write numbers with a point, 1.5 and not 1,5."
        )
    return stray[0][0] if len(present) - len(stray) > MOSTLY * len(present) else None


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
