"""Options from a file, and to a file: what repeats a run."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from .._util.text import did_you_mean
from .._version import __version__
from ._parser import Parser

NOT_SAVED = {"command", "config", "save_config", "shell", "debug", "force", "quiet", "json"}


def parse(parser: Parser, given: list[str]) -> argparse.Namespace:
    """The options of the command line; those of the file that --config names come before, so that they give way."""
    place = next((k for k, word in enumerate(given) if word == "--config" or word.startswith("--config=")), None)
    command = parser.commands.get(given[0])
    words, cases = given, None
    if place is not None and command is not None and "--config" in command._option_string_actions:
        name = given[place].partition("=")[2] or (given[place + 1] if place + 1 < len(given) else "")
        if name:
            facts = _read(command, Path(name), given[0])
            cases = facts.pop("cases", None)
            words = [given[0], *_words(command, facts), *given[1:]]
    options = parser.parse_args(words)
    if getattr(options, "cases", "") is None:
        if cases is None:
            (command or parser).error("the following arguments are required: cases")
        options.cases = Path(str(cases))
    return options


def _read(command: Parser, path: Path, name: str) -> dict[str, Any]:
    """The options in a file, checked to be those of a command."""
    try:
        facts = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        _refuse(f"--config {str(path)!r}: {error.strerror}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        _refuse(f"--config {str(path)!r} is not a TOML file ({error})")
    facts.pop("version", None)
    if facts.get("command", name) != name:
        _refuse(f"--config {str(path)!r} is of contrapca {facts['command']}, not of contrapca {name}")
    facts.pop("command", None)
    known = {key for key, action in _actions(command).items() if action.dest not in NOT_SAVED}
    for key in facts:
        if key not in known:
            hint = did_you_mean(key, known)
            _refuse(f"--config {str(path)!r}: contrapca {name} has no option {key!r}{hint and f'.{hint}'}")
    return facts


def _refuse(message: str) -> NoReturn:
    print(f"contrapca: {message}{'' if message.endswith('?') else '.'}", file=sys.stderr)
    sys.exit(2)


def _actions(command: Parser) -> dict[str, argparse.Action]:
    """The options of a command by the name that a file gives them: header stands for --header and --no-header."""
    return {action.dest.replace("_", "-"): action for action in command._actions if action.dest != "help"}


def _words(command: Parser, facts: dict[str, Any]) -> list[str]:
    """Options as they would be written on the command line."""
    words = []
    for key, value in facts.items():
        option = max(_actions(command)[key].option_strings, key=len)
        if value is True:
            words.append("--header" if key == "header" else option)
        elif value is False:
            words += ["--no-header"] if key == "header" else []
        elif _actions(command)[key].nargs == "+":
            words += [option, *map(str, value)] if value else []
        else:
            for item in value if isinstance(value, list) else [value]:
                words.append(f"{option}={item}")
    return words


@contextlib.contextmanager
def saved(options: argparse.Namespace) -> Iterator[None]:
    """Write the options as TOML after a run, if that is wanted; refuse before it if the file exists."""
    file = getattr(options, "save_config", None)
    if file is None:
        yield
        return
    from ._outputs import check_outputs, staged

    force = getattr(options, "force", False)
    check_outputs([file], force=force)
    lines = [
        f"# contrapca {options.command} --config {file.name}",
        f"command = {_toml(options.command)}",
        f"version = {_toml(__version__)}",
        *(
            f"{key.replace('_', '-')} = {_toml(value)}"
            for key, value in vars(options).items()
            if key not in NOT_SAVED and value is not None and value is not False and value != []
        ),
    ]
    yield
    with staged([file], force=force) as places:
        places[file.name].write_text("\n".join(lines) + "\n", encoding="utf-8")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(str(value), ensure_ascii=False)
