"""Words, numbers and small tables as people read them."""

from __future__ import annotations

import difflib
import math
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, NamedTuple, Protocol

Words = Literal["python", "command"]
MAX_LISTED = 5  # names in a sentence
LEAST_P = 1e-6  # smaller p-values are reported as "p <": tails are not known that far out
A_NUMBER = re.compile(r"[-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]{1,3})?", re.IGNORECASE)
NUMBERS = re.compile(r"((?:(?<!\S)-)?[0-9]+)")  # in a name; a minus begins a word, else it is a hyphen, as in "T-1"
NOT_IN_DOUBLE_QUOTES = re.compile(r'["$`!\n]|\\\\|\\$')  # what shells change there, also two backslashes, or one last


def listed(names: Sequence[Any], limit: int = MAX_LISTED) -> str:
    """Names in quotes, at most `limit` of them, and how many more there are."""
    shown = ", ".join(map(repr, names[:limit]))
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")


def as_list(given: Any) -> list[Any]:
    """A list of what was given: one value, or several."""
    return [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)


def joined(parts: Iterable[Any]) -> str:
    """Parts of a sentence, the last after "and": 1, 2 and 3."""
    *others, last = map(str, parts)
    return f"{', '.join(others)} and {last}" if others else last


def plural(count: int, word: str) -> str:
    """The count and the word, with an s unless the count is 1."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def as_command(words: Iterable[str]) -> str:
    """Words as a line to type: double quotes where they are needed, because cmd.exe has no others, if they will do."""
    return " ".join(
        f'"{word}"' if shlex.quote(word) != word and not NOT_IN_DOUBLE_QUOTES.search(word) else shlex.quote(word)
        for word in words
    )


@dataclass(frozen=True)
class Option:
    """An option in a sentence: `labels='stage'` in Python, `--labels stage` on the command line."""

    name: str
    value: Any = None  # a text, several, or for a switch True or False; None for the name alone

    def text(self, words: Words) -> str:
        """As it is written there."""
        if words == "python":
            return f"{self.name}={'' if self.value is None else repr(self.value)}"
        if isinstance(self.value, bool):
            return f"--{'' if self.value else 'no-'}{self.name}"
        given = [] if self.value is None else [self.value] if isinstance(self.value, str) else list(self.value)
        return " ".join([f"--{self.name}", *([as_command(given)] if given else [])])


class Said(NamedTuple):
    """What Python and the command line say in different words."""

    python: str
    command: str

    def text(self, words: Words) -> str:
        """The words of one of them."""
        return self.python if words == "python" else self.command


def said_group(name: str) -> Said:
    """The name of a group: the command line has cases and controls."""
    return Said(name, {"foreground": "cases", "background": "controls"}.get(name, name))


class Worded(Protocol):
    """What Python and the command line say in different words: an option, a finding."""

    def text(self, words: Words) -> str: ...


def worded(parts: Iterable[str | Worded], words: Words) -> str:
    """A sentence of texts and options, in Python's words or those of the command line."""
    return "".join(part if isinstance(part, str) else part.text(words) for part in parts)


def percent(share: float) -> str:
    """A share with one decimal, one that is not 0 never as 0; data.js writes the same."""
    return "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def times(ratio: float) -> str:
    """A ratio to two digits."""
    return f"{ratio:.2g}" if ratio < 100 or not math.isfinite(ratio) else f"{ratio:.0f}"


def format_gamma(value: float) -> str:
    """A value of gamma to four digits: at least four decimals and four significant digits."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:.{max(4, 3 - math.floor(math.log10(abs(value))))}f}"


def default_names(n_features: int) -> list[str]:
    """x0, x1, ...: the names of features that have none."""
    return [f"x{j}" for j in range(n_features)]


def component_names(n_components: int) -> list[str]:
    """component_1, component_2, ...: the components as columns of tables for people, who count from 1."""
    return [f"component_{k}" for k in range(1, n_components + 1)]


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """ " Did you mean 'X'?" for a name that is like a known one, in any case; else nothing."""
    options = {str(option).casefold(): option for option in known}
    close = difflib.get_close_matches(str(name).casefold(), options, n=1)
    return f" Did you mean {options[close[0]]!r}?" if close else ""


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas.NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def spelling(text: str) -> str:
    """A text without what typing changes: upper and lower case, and blanks around and between words."""
    return " ".join(text.split()).casefold()


def natural_order(names: Sequence[str]) -> list[int]:
    """Indices that sort names as people do: -2 before -1 before 0.5, "cluster 2" before "cluster 10"."""

    def key(name: str) -> list[tuple[int, Decimal, str]]:
        plain = name.strip().replace("\N{MINUS SIGN}", "-")
        if A_NUMBER.fullmatch(plain):
            return [(0, Decimal(plain), "")]
        parts = [part for part in NUMBERS.split(plain) if part]
        return [
            (0, Decimal(part), "") if NUMBERS.fullmatch(part) else (1, Decimal(), part.casefold()) for part in parts
        ]

    return sorted(range(len(names)), key=lambda k: (key(names[k]), names[k]))
