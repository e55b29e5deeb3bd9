"""`contrapca completion`: a script for a shell, made from the parser."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from ._console import Console
from ._parser import Parser, make_parser


def completion(options: Namespace, console: Console) -> None:
    """Print the script."""
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish, "powershell": _powershell}[options.for_shell]
    print(write(make_parser().commands))


def _options(command: Parser) -> list[str]:
    return sorted(name for name in command._option_string_actions if name.startswith("--"))


def _choices(command: Parser) -> dict[str, list[str]]:
    """Values of the options that have a few."""
    return {
        name: list(action.choices)
        for action in command._actions
        if action.choices
        for name in action.option_strings or [""]
    }


def _bash(commands: Mapping[str, Parser]) -> str:
    cases = []
    for name, command in commands.items():
        for option, choices in _choices(command).items():
            pattern = f'"{name} {option}"' if option else f'"{name} {name}"'
            cases.append(f'    {pattern}) words="{" ".join(choices)}" ;;')
        cases.append(f'    "{name} "*) words="{" ".join(_options(command))}" ;;')
    return "\n".join(
        [
            "_contrapca() {",
            '  local word="${COMP_WORDS[COMP_CWORD]}" words=""',
            f'  if [ "$COMP_CWORD" -eq 1 ]; then words="{" ".join(commands)} --help --version"; else',
            '  case "${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD-1]}" in',
            *cases,
            "  esac; fi",
            '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
            "}",
            "complete -o default -F _contrapca contrapca",
        ]
    )


def _zsh(commands: Mapping[str, Parser]) -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash(commands)}"


def _fish(commands: Mapping[str, Parser]) -> str:
    lines = [f"complete -c contrapca -n __fish_use_subcommand -f -a '{' '.join(commands)}'"]
    for name, command in commands.items():
        when = f"complete -c contrapca -n '__fish_seen_subcommand_from {name}'"
        choices = _choices(command)
        for option in _options(command):
            values = f" -x -a '{' '.join(choices[option])}'" if option in choices else ""
            lines.append(f"{when} -l {option.removeprefix('--')}{values}")
        if "" in choices:
            lines.append(f"{when} -f -a '{' '.join(choices[''])}'")
    return "\n".join(lines)


def _powershell(commands: Mapping[str, Parser]) -> str:
    quoted = {name: ", ".join(f"'{option}'" for option in _options(command)) for name, command in commands.items()}
    table = "; ".join(f"'{name}' = @({options})" for name, options in quoted.items())
    return "\n".join(
        [
            "Register-ArgumentCompleter -Native -CommandName contrapca -ScriptBlock {",
            "  param($word, $tree, $cursor)",
            f"  $commands = [ordered]@{{ {table} }}",
            "  $given = @($tree.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })",
            "  $options = if ($given.Count -gt 0 -and $commands.Contains($given[0]) -and $word -ne $given[0]) "
            "{ $commands[$given[0]] } else { $commands.Keys }",
            '  $options | Where-Object { $_ -like "$word*" } | ForEach-Object { '
            "[System.Management.Automation.CompletionResult]::new($_) }",
            "}",
        ]
    )
