"""What can be written on the command line. Imports argparse only, so that --help is quick."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from .._util.text import did_you_mean
from .._version import __version__
from ._options import (
    BLOCKS,
    COMPONENTS,
    CONTRAST,
    DEPTH,
    FILES,
    FOLDER,
    FORCE,
    FORMATS,
    GAMMA,
    GAMMAS,
    GROUPS,
    LABELS,
    METHOD,
    MODEL,
    NO_TEST,
    OUTPUT,
    SCALE,
    SEED,
    TABLE,
    Option,
    add_reading,
    count,
    number,
    option,
)

EXIT_CODES = "Exit codes: 0 done, 2 something given cannot be used, 1 a bug, 130 stopped by Ctrl-C."
EXAMPLES = {
    "": [
        "contrapca demo",
        "contrapca report cases.csv --background controls.csv -o report.html",
        "contrapca report all.xlsx --group diagnosis --background healthy --labels batch -o report.html",
        "contrapca COMMAND --help",
    ],
    "test": [
        "contrapca test cases.csv --background controls.csv",
        "contrapca test cases.csv --background controls.csv --blocks donor",
        "contrapca test cells.h5ad --group condition --background ctrl --depth match",
    ],
    "fit": [
        "contrapca fit cases.csv --background controls.csv -o results",
        "contrapca fit all.csv --group diagnosis --background healthy --labels batch -o results",
        "contrapca fit cases.csv --background controls.csv --missing -999 --ignore age -o results",
        "contrapca fit --config run.toml",
    ],
    "transform": ["contrapca transform results/model.npz new.csv -o new_latents.csv"],
    "impute": [
        "contrapca impute cases.csv -o filled.csv",
        "contrapca impute cases.csv --background controls.csv --missing ND -o filled.csv",
    ],
    "path": ["contrapca path cases.csv --background controls.csv --method pcpca -o results"],
    "report": [
        "contrapca report cases.csv --background controls.csv --labels stage -o report.html",
        "contrapca report book.xlsx --background book.xlsx --sheet cases --sheet controls -o report.html",
        "contrapca report cases.csv --background controls.csv --uncertainty bootstrap -o report.html",
    ],
    "export": ["contrapca export cases.csv --background controls.csv -o results"],
    "sample": ["contrapca sample results/model.npz -n 500 -o new_rows.csv"],
    "demo": ["contrapca demo -o demo"],
    "info": ["contrapca info results/model.npz"],
    "completion": [
        'eval "$(contrapca completion bash)"  (in ~/.bashrc; zsh: the same in ~/.zshrc)',
        "contrapca completion fish > ~/.config/fish/completions/contrapca.fish",
        "contrapca completion powershell | Out-String | Invoke-Expression  (in $PROFILE)",
    ],
}
EPILOGS = {
    command: "\n".join(["examples:", *(f"  {example}" for example in examples), "", EXIT_CODES])
    for command, examples in EXAMPLES.items()
}
SHELLS = ("bash", "zsh", "fish", "powershell")


# What the main help says of each command, what its own help says, and its options.
COMMANDS: dict[str, tuple[str, str, list[Option]]] = {
    "test": (
        "is there anything to find?",
        "Test whether the cases vary more than the controls in any direction, and in how many. Prints the verdict and "
        "a p-value for each dimension.",
        [
            *GROUPS,
            *BLOCKS,
            *FILES,
            option("--components", type=count, metavar="NUMBER", help="dimensions to test at most (default: 10)"),
            option("--scale", **SCALE),
            DEPTH,
            SEED,
        ],
    ),
    "fit": (
        "contrast cases with controls",
        "Fit a model to cases and controls. Writes model.npz, latents.csv (the coordinates of each row) and "
        "loadings.csv (each feature's part) into a folder.",
        [
            *GROUPS,
            LABELS,
            *BLOCKS,
            *FILES,
            option("--method", **METHOD | {"choices": ["contrapca", "pcpca", "cpca", "ppca"]}),
            option("--components", **COMPONENTS),
            option("--gamma", **GAMMA),
            option("--scale", **SCALE),
            NO_TEST,
            SEED,
            *FOLDER,
        ],
    ),
    "transform": (
        "latent coordinates of new rows",
        "Apply a saved model to the rows of a table. Columns are matched by name; extra ones are ignored.",
        [
            MODEL,
            option("table", type=Path, help=f"the rows ({FORMATS})"),
            option(
                "--center",
                choices=["foreground", "background"],
                default="foreground",
                help="center the rows as cases or as controls (default: %(default)s)",
            ),
            option("--sheet", metavar="NAME", help="sheet of an Excel file (default: the first)"),
            add_reading,
            *TABLE,
        ],
    ),
    "impute": (
        "fill the missing values of a table of cases",
        "Fill the missing values (empty cells, NA, NaN and so on) from a model of the cases, contrasted with a "
        "background if one is given. All other cells of a text table stay as they are.",
        [
            *GROUPS,
            *FILES,
            option("--components", **COMPONENTS),
            option(
                "--gamma",
                type=number,
                metavar="NUMBER",
                help="strength of the contrast (default: half of what these tables allow at most)",
            ),
            option(
                "-o",
                "--output",
                **OUTPUT,
                metavar="FILE",
                help="the table to be written (.csv, .tsv or .npy; of a text table in its own format, also .txt "
                "and with .gz)",
            ),
            option(
                "--mask-out",
                type=Path,
                metavar="FILE",
                help="a table of 1 where a value was filled in and 0 elsewhere, with their number in each row (.csv or "
                ".tsv)",
            ),
            FORCE,
        ],
    ),
    "path": (
        "contrast at many strengths",
        "Contrast cases and controls at many values of gamma. Writes path.npz and path.csv (one line for each gamma) "
        "into a folder, and names the gammas whose results differ most.",
        [
            *GROUPS,
            *FILES,
            option("--method", **METHOD),
            option("--components", **COMPONENTS),
            option("--scale", **SCALE),
            GAMMAS,
            *FOLDER,
        ],
    ),
    "report": (
        "one HTML page about cases and controls",
        "Write a page about the contrast of cases and controls, at many strengths, with pictures, tables and text. It "
        "opens without a network.",
        [
            *CONTRAST,
            GAMMAS,
            option(
                "--uncertainty",
                choices=["none", "bootstrap", "posterior"],
                default="none",
                help="intervals of the loadings (default: %(default)s)",
            ),
            option("--title", metavar="TEXT", help="page title"),
            SEED,
            option("-o", "--output", **OUTPUT, metavar="FILE", help="the page to be written (.html)"),
            FORCE,
        ],
    ),
    "export": (
        "what a report offers to save, as files",
        "Contrast cases and controls, and write coordinates.csv (every row), loadings.csv (every feature), figure.png "
        "and figure.svg, and methods.txt (a paragraph for a paper, and what to cite) into a folder.",
        [*CONTRAST, option("--title", metavar="TEXT", help="title of the figure"), SEED, *FOLDER],
    ),
    "sample": (
        "new rows from a saved model",
        "Draw rows from the model's distribution of cases. For realistic rows fit with at most half gamma's limit.",
        [
            MODEL,
            option("-n", type=count, default=100, metavar="NUMBER", help="how many (default: %(default)s)"),
            SEED,
            *TABLE,
        ],
    ),
    "demo": (
        "run the method on made-up data and write its results",
        "Make cases with hidden subgroups and controls without, contrast them, and write both tables, the latents, a "
        "picture and a report.",
        [
            SEED,
            option(
                "-o",
                "--output",
                "--out",
                type=Path,
                default=Path("contrapca-demo"),
                metavar="FOLDER",
                help="folder for the results (default: %(default)s)",
            ),
            FORCE,
        ],
    ),
    "info": ("describe a saved file", "Describe a saved model, path or posterior.", [MODEL]),
    "completion": (
        "completion for your shell",
        "Print a script that completes commands and options.",
        [option("for_shell", metavar="shell", choices=SHELLS, help=", ".join(SHELLS))],
    ),
}
# Of every command.
TALK = [
    option("--quiet", action="store_true", help="print errors and warnings only"),
    option("--json", action="store_true", help="print the summary as JSON, and nothing else"),
    option("--debug", action="store_true", help="show where in the program an error arose"),
]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line.

    Attributes
    ----------
    commands : dict from name to Parser
        The parsers of the commands; empty for that of a command.
    """

    commands: Mapping[str, Parser] = {}

    def error(self, message: str) -> NoReturn:
        """Print the message, with what may have been meant, and leave."""
        text = " ".join(message.split())
        hint = "" if "maybe you meant" in text else self._did_you_mean(text)
        print(f"contrapca: {text}{f'{hint} See' if hint else '; see'} {self.prog} --help.", file=sys.stderr)
        sys.exit(2)

    def _did_you_mean(self, message: str) -> str:
        """The nearest option or command, if what was written is like one; newer Pythons say it themselves."""
        unknown = re.search(r"unrecognized arguments: (\S+)|invalid choice: '([^']+)'", message)
        if unknown is None:
            return ""
        known = [name for action in self._actions for name in (*action.option_strings, *(action.choices or ()))]
        # Options of a command that the main parser does not know are looked for among all of them.
        known += [name for parser in self.commands.values() for name in parser._option_string_actions]
        return did_you_mean(unknown[1] or unknown[2], known)


def make_parser() -> Parser:
    """The parser of all commands."""
    layout: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    parser = Parser(
        prog="contrapca",
        description="What varies in the cases but not in the controls: contrastive dimension reduction of tables, rows "
        "being samples.",
        epilog=EPILOGS[""],
        **layout,
    )
    parser.add_argument("--version", action="version", version=f"contrapca {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    parser.commands = commands.choices
    for name, (help, description, options) in COMMANDS.items():
        command = commands.add_parser(name, help=help, description=description, epilog=EPILOGS[name], **layout)
        for add in (*TALK, *options):
            add(command)
    return parser
