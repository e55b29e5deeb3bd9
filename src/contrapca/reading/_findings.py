"""Probable mistakes that only files show: numbers hidden in text, slips in labels, identifiers, replicates."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .._util.arrays import is_sparse
from .._util.text import Option, Worded, listed, plural, spelling
from ..data import names_source
from ..data.checks import (
    IMPUTED,
    Finding,
    alike_labels,
    imputed_values,
    is_whole,
    names_rows,
    repeated_names,
    replicates,
)
from ..exceptions import TableFileError
from ._layout import PLAIN, Numerals
from ._table import DataTable

MAX_LISTED = 10  # columns with bad cells
# Labels that may be slips: rows of the common one for each of theirs, letters, how many of them, of how many labels.
TIMES_RARER, SHORTEST, MOST_ONCE, MOST_CLASSES = 5, 4, 3, 100
NEARLY = 0.9  # fraction of distinct values in a first column that should name the rows
MIN_NAMES, FEW_TIMES = 10, 4  # at least 10 distinct values, all equally often and at most 4 times, do so as well

# ---------------------------------------------------------------- numbers that are hidden in columns of text

MOSTLY = 0.9  # fraction of the cells that must look alike
LONGEST = 60  # characters of a cell with a number; patterns would take long for more
MANY_UNITS = 0.25  # fraction of different words above which they are not units, but codes such as "5 a" and "6 b"
NUMBER = r"[-+]?\d+(?:[.,]\d+)?"
LONE_NUMBER = re.compile(NUMBER)
UNIT = re.compile(rf"{NUMBER}\s*([^\W\d_][^\s\d]*|[°µ‰][^\s\d]*|%[^\s\d]+)")
UNIT_WORD = re.compile(rf"{NUMBER}\s+([^\W\d_][^\s\d]*)")  # not the codes "5a" and "6b"
ANSWERS = ({"yes", "no"}, {"y", "n"}, {"true", "false"}, {"positive", "negative"}, {"present", "absent"})
ANY = r"[-+]?[.,]?\d(?:[\d.,'\u00a0\u202f]*\d)?(?:[eE][-+]?\d+)?"  # a number, perhaps with thousands separators
SIGN = r"[^\w#:]"  # # and : are in codes, numbers of things, and times of day
BRACKETED = rf"[(\[{{]{SIGN}*{ANY}(?:{SIGN}+{ANY})?\s*[)\]}}]"
SIGNS = {  # what hides numbers: how the cells look
    "percent signs": rf"{NUMBER}\s*%",
    "thousands separators": r"[-+]?\d{1,3}(?:[,.' \u00a0\u202f]\d{3})+(?:[.,]\d+)?",
    "errors after ±": rf"{ANY}\s*(?:±|\+\s?/?\s?[-\u2212])\s*{ANY}",
    "second numbers in the cells": rf"{ANY}\s*(?:[/\u2013]\s*{ANY}|{BRACKETED})",  # hyphens are also in dates
    "currency signs": rf"[-+]?[$¢£¤¥\u20a0-\u20cf]\s*{ANY}|{ANY}\s*[$¢£¤¥\u20a0-\u20cf]",
    "brackets": rf"[(\[{{]\s*{ANY}\s*[)\]}}]",
    "signs around the numbers": rf"(?!{ANY}\Z){SIGN}*{ANY}{SIGN}*",
}
WAYS_OUT: dict[str, tuple[str | Worded, ...]] = {
    "words": ("write 1 and 0 to use such answers",),
    "units": ("write the unit into the name of the column instead",),
    "units that differ": ("convert all to one unit, and write it into the name of the column",),
    "percent signs": ("add ", Option("percent", True), " to read 12% as 0.12"),
    "thousands separators": ("add ", Option("thousands", True), " to read 1,234 as 1234"),
    "errors after ±": ("leave only the number before ±",),
    "second numbers in the cells": ("leave one number in each, or make two columns",),
    "currency signs": ("write the currency into the name of the column instead",),
    "brackets": ("write the numbers without them, and with a minus sign if that is what they mean",),
    "signs around the numbers": ("write the numbers alone",),
}


class Hidden(NamedTuple):
    """What hides the numbers of a column of text, an example of it, and how to use them."""

    kind: str
    example: str

    @property
    def reason(self) -> str:
        such = f"such as {self.example!r}"
        return f"because of words {such}" if self.kind == "words" else f"because of {self.kind} ({such})"

    @property
    def way_out(self) -> tuple[str | Worded, ...]:
        return WAYS_OUT[self.kind]


def hidden_by(cells: Sequence[str]) -> Hidden | None:
    """What the numbers of a column of text are hidden by; None for other text."""
    least = MOSTLY * sum(map(bool, cells))
    cells = [cell for cell in cells if 0 < len(cell) <= LONGEST]
    if {cell.casefold() for cell in cells} in ANSWERS:
        return Hidden("words", cells[0])
    units = Counter(match[1] for cell in cells if (match := UNIT.fullmatch(cell)))
    if units and max(units.values()) >= least:
        return Hidden("units", cells[0])
    words = Counter(match[1] for cell in cells if (match := UNIT_WORD.fullmatch(cell)))
    if words and words.total() >= least and len(words) <= MANY_UNITS * len(cells):
        return Hidden("units that differ", cells[0])
    lone = sum(bool(LONE_NUMBER.fullmatch(cell)) for cell in cells)
    for kind, looks in SIGNS.items():
        hits = [cell for cell in cells if re.fullmatch(looks, cell)]
        if hits and len(hits) + lone >= least:
            return Hidden(kind, hits[0])
    return None


def dropped_columns(texts: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Columns, by name, that are not used because their numbers are written as text, and why."""
    kinds: dict[str, dict[str, Hidden]] = {}
    for name, cells in texts.items():
        if (found := hidden_by(cells)) is not None:
            kinds.setdefault(found.kind, {})[name] = found
    findings = []
    for kind, columns in kinds.items():
        hidden, many = next(iter(columns.values())), len(columns) > 1
        it, hold = ("them", "they hold") if many else ("it", "it holds")
        sentence = f"{listed(list(columns))} {'are not used as features' if many else 'is not used as a feature'}"
        if kind == "words":
            sentence += f": {hold} words such as {hidden.example!r}, not numbers."
            silent = ("; add ", Option("ignore"), " or ", Option("labels"), " to silence this.")
            hint: tuple[str | Worded, ...] = ("Write 1 and 0 to use such answers", *silent)
        else:
            sentence += f", {hidden.reason}."
            hint = (f"To use {it}, ", *hidden.way_out, f"; otherwise name {it} with ", Option("ignore"), ".")
        findings.append(Finding.worded("dropped column", sentence, *hint))
    return findings


# ---------------------------------------------------------------- rows and labels


def findings_of_tables(
    tables: list[DataTable], without: set[str], *, classes: Iterable[str | None], blocks: Iterable[str | None]
) -> list[Finding]:
    """Findings about row names, columns of text, and the labels in columns of classes and of blocks."""
    found: list[Finding] = []
    texts: dict[str, list[str]] = {}
    for given, group in zip(tables, ("cases", "controls") if len(tables) > 1 else ("table",), strict=True):
        found += repeated_names(_names_of_rows(given, without), group)
        if not given.annotated:
            texts |= {name: given.as_text(name).tolist() for name in given.texts if name not in without}
        if empty := [name for name in given.empty if name and name not in without]:
            found.append(Finding("empty column", f"{given.path!r} has no values in {listed(empty)}."))
    mixed = {name for given in tables for name in given.mixed}
    found += dropped_columns({name: cells for name, cells in texts.items() if name not in mixed})
    for name in filter(None, (*classes, *blocks)):
        cells = [cell for given in tables if name in given.columns for cell in given.as_text(name).tolist()]
        found += alike_labels(cells, f"Values of {name!r}")
        found += rare_labels(cells, name) if name in classes else []
    return found


def rare_labels(cells: Sequence[str], column: str) -> list[Finding]:
    """Labels that nearly spell a common one, or that occur once among a few common ones: slips of the keyboard.

    Numbers, and names that end in one, may well be rare.
    """
    counts = Counter(cell for cell in cells if cell and not cell[-1].isdigit() and PLAIN.value(cell) is None)
    if len(counts) > MOST_CLASSES:
        return []
    found, known = [], set()
    for rare, common in itertools.permutations(counts, 2):
        if rare not in known and counts[rare] * TIMES_RARER <= counts[common] and _one_slip(rare, common):
            known.add(rare)
            rows, of = plural(counts[rare], "row"), plural(counts[common], "row")
            sentence = f"{rare!r} in the column {column!r} ({rows}) nearly spells {common!r} ({of})."
            found.append(Finding("spelling", sentence, "If they mean the same, spell them alike."))
    once = [label for label, count in counts.items() if count == 1 and label not in known]
    others = [count for label, count in counts.items() if count > 1 and label not in known]
    if 0 < len(once) <= MOST_ONCE and len(others) > 1 and min(others) >= TIMES_RARER:
        rows = f"in one row only, and every other label in {min(others)} or more"
        sentence = f"{listed(once)} {'occurs' if len(once) == 1 else 'occur'} in the column {column!r} {rows}."
        found.append(Finding("rare label", sentence, "If it is a slip, correct it."))
    return found


def _one_slip(word: str, other: str) -> bool:
    """Whether a letter is added, left out or another; but digits, and another last letter, tell codes apart."""
    word, other = spelling(word), spelling(other)
    digits, other_digits = ([c for c in name if c.isdigit()] for name in (word, other))
    if min(len(word), len(other)) < SHORTEST or digits != other_digits or word[:-1] == other[:-1]:
        return False
    shorter, others = ({name[:i] + name[i + 1 :] for i in range(len(name))} for name in (word, other))
    return word in others or other in shorter or bool(shorter & others)


def identifiers_of(tables: list[DataTable], without: set[str]) -> tuple[list[str], list[Finding]]:
    """Columns of whole numbers that say which row it is, or whose, by their name: MouseID, patient, plate."""
    tables = [table for table in tables if not table.annotated and not is_sparse(table.values)]
    names = []
    for name in dict.fromkeys(name for table in tables for name in table.names):
        columns = (np.asarray(table.select([name]))[:, 0] for table in tables if name in table.names)
        if name not in without and (names_rows(name) or names_source(name)) and all(map(is_whole, columns)):
            names.append(name)
    if not names:
        return [], []
    are, theirs, these, them = (
        ("are", "their names", "these columns say", "them as features, rename the columns")
        if len(names) > 1
        else ("is", "its name", "this column says", "it as a feature, rename the column")
    )
    sentence = (
        f"{listed(names)} {are} not analysed: by {theirs} and whole numbers, {these} which sample a row is, or whose."
    )
    return names, [Finding("identifier", sentence, f"To use {them}.")]


def block_findings(tables: Sequence[DataTable]) -> list[Finding]:
    """Names of rows, or a column, that say that several rows belong together."""
    first, names = tables[0], [name for table in tables for name in table.row_names or []]
    shared = [column for column in first.texts if all(column in table.texts for table in tables)]
    # The column of the row names is among those of text, if it has a name.
    own = next((column for column in shared if first.row_names == first.as_text(column).tolist()), None)
    places: list[tuple[str, list[str], str | None]] = [("The row names", names, own)]
    for column in first.texts:
        of = tables if column in shared else tables[:1]
        cells = [cell for table in of for cell in table.as_text(column).tolist()]
        places.append((f"The values of {column!r}", cells, column))
    for place, labels, where in places:
        if found := replicates(labels, place, where):
            return found
    for column in first.columns:
        if names_source(column) and 1 < np.unique(first.as_text(column)).size <= len(first) / 2:
            sentence = (
                f"The column {column!r} may name whom or what several rows come from: if so, they are not independent, "
                "and p-values that ignore it are far too small."
            )
            return [Finding.worded("replicates", sentence, "Add ", Option("blocks", column), ".")]
    return []


def _names_of_rows(table: DataTable, without: set[str]) -> list[str] | None:
    """The names of the rows, also where some are repeated so that the reader has not taken them for names.

    The first column of text has them if few are repeated, if all occur a few times, or by its own name. A column that
    names blocks has a caution of its own.
    """
    if table.row_names is not None or table.source is None or not table.source.columns:
        return table.row_names
    name = table.source.columns[0]
    if name not in table.texts or name in without or names_source(name):
        return None
    names = [cell for cell in table.texts[name].tolist() if cell]
    counts = Counter(names)
    all_alike = len(set(counts.values())) == 1 and len(counts) >= MIN_NAMES and len(names) <= FEW_TIMES * len(counts)
    return names if names_rows(name) or all_alike or len(counts) >= NEARLY * len(names) else None


def check_mixed(tables: list[DataTable], without: Iterable[str]) -> None:
    """A few texts in a column of numbers are usually mistakes, but not among the names of rows, or of mice."""
    bad = [
        (table, name)
        for table in tables
        for name in table.mixed
        if name not in without and not names_rows(name) and not names_source(name)
    ]
    if not bad:
        return
    places = [f"column {name!r} of {table.path!r} is numeric except for {table.mixed[name]}" for table, name in bad]
    places = list(dict.fromkeys(places))  # one file may be both
    more = f"; and {len(places) - MAX_LISTED} more columns" if len(places) > MAX_LISTED else ""
    listing = "; ".join(places[:MAX_LISTED])
    words = set()  # that are not numbers
    for table, name in bad:
        numerals = Numerals() if table.source is None else table.source.numerals
        words |= {cell for cell in table.as_text(name).tolist() if cell and numerals.value(cell) is None}
    names = list(dict.fromkeys(name for _, name in bad))[:MAX_LISTED]
    hidden = hidden_by(sorted(words))
    hint: list[str | Worded] = [] if hidden is None else [" (", *hidden.way_out, ")"]
    raise TableFileError(
        f"{listing[0].upper()}{listing[1:]}{more}. Correct the file",
        *hint,
        ", add ",
        Option("missing", words.pop() if len(words) == 1 else "WORD"),
        " if a word means a missing value, or ",
        Option("ignore", names),
        " if that is not a feature.",
    )


def imputed_in(tables: list[DataTable]) -> list[Finding]:
    """Tables with the column that `contrapca impute` writes: how many values of each row were imputed."""
    found = []
    for given in tables:
        if IMPUTED in given.names and not is_sparse(given.values):
            counts = np.asarray(given.select([IMPUTED]), dtype=np.float64)[:, 0]
            if np.all((counts >= 0) & (counts == np.round(counts))) and counts.any():
                found.append(imputed_values(int(counts.sum()), repr(given.path)))
    return found
