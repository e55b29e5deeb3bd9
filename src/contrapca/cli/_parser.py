"""What can be written on the command line. Imports argparse only, so that --help is quick."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from .._util.text import as_command, did_you_mean
from .._version import __version__

FORMATS = "CSV, TSV, TXT (also .gz or .zip), Excel, Parquet, NPY, NPZ, MTX or h5ad"
SETTINGS = {"method": "contrapca", "components": 2, "gamma": "auto", "scale": "auto"}  # defaults of a new model

METHOD = {
    "choices": ["contrapca", "pcpca", "cpca"],
    "default": SETTINGS["method"],
    "help": f"(default: {SETTINGS['method']})",
}

SCALE = {
    "choices": ["auto", "none", "group", "pooled"],
    "default": SETTINGS["scale"],
    "help": "divide features by their standard deviation in each group, or within groups (default: auto, which is what "
    "the noise asks for with contrapca, and none otherwise)",
}

OUTPUT = {"type": Path, "required": True}
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
        "contrapca report cases.csv --background controls.csv --uncertainty bootstrap --save results",
    ],
    "sample": ["contrapca sample results/model.npz -n 500 -o new_rows.csv"],
    "demo": ["contrapca demo -o demo"],
    "info": ["contrapca info results/model.npz"],
}

EPILOGS = {
    command: "\n".join(["examples:", *(f"  {example}" for example in examples), "", EXIT_CODES])
    for command, examples in EXAMPLES.items()
}


def _whole(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, {least} or more")
    return value


seed, count, several = (partial(_whole, least=least) for least in (0, 1, 2))


def number(text: str) -> float:
    """A finite number, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number, 0 or more")
    return value


def _gamma(text: str) -> float | str:
    return text if text == "auto" else number(text)


class Option:
    """One option as argparse describes it; commands share them."""

    def __init__(self, *names: str, **settings: Any):
        self.names, self.settings = names, settings


READING = [
    Option(
        "--missing",
        nargs="+",
        action="extend",
        default=[],
        metavar="WORD",
        help="words or numbers that mean a missing value, such as ND or -999, besides empty cells, NA and the like",
    ),
    Option("--transpose", action="store_true", help="samples are columns of the files, not rows"),
    Option("--percent", action="store_true", help="read 12%% as the number 0.12"),
    Option("--thousands", action="store_true", help="read 1,234 as the number 1234"),
    Option("--encoding", metavar="NAME", help="of text files, such as latin-1 (default: utf-8)"),
    Option(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line contains column names, and not values (default: detected)",
    ),
]

GROUPS = [
    Option("cases", type=Path, help=f"the cases, or both groups with --group ({FORMATS})"),
    Option("--background", metavar="FILE_OR_VALUE", help="controls table; with --group, the value that marks controls"),
    Option("--group", metavar="COLUMN", help="column that marks cases and controls of one table"),
]

LABELS = Option("--labels", metavar="COLUMN", help="column to show with the results; not a feature")

BLOCKS = [
    Option(
        "--blocks",
        metavar="COLUMN",
        help="column with the donor, animal or plate of each row; not a feature. Rows of one block stay "
        "together, and the same name in both groups is the same block",
    ),
    Option(
        "--pairs",
        metavar="COLUMN",
        help="column with the pair of each row, such as a donor before and after treatment: like --blocks, and "
        "every name must be in both groups",
    ),
    Option(
        "--covariates",
        nargs="+",
        action="extend",
        metavar="COLUMN",
        help="columns such as age and sex (or age,sex), numbers or text; not features. Their effect is taken "
        "out of both groups",
    ),
]

FILES: list[Option] = [
    Option("--ignore", nargs="+", action="extend", default=[], metavar="COLUMN", help="columns to leave out"),
    Option("--common", action="store_true", help="use only the columns that both tables have"),
    Option(
        "--sheet",
        action="append",
        metavar="NAME",
        help="sheet of an Excel file (default: the first); give it twice for different sheets of cases and controls",
    ),
    Option("--layer", metavar="NAME", help="layer of an h5ad file (default: X)"),
    Option(
        "--mask",
        metavar="COLUMN",
        help="column of var of an h5ad file: which genes to use, or none for all (default: highly_variable, if any)",
    ),
    *READING,
]

COMPONENTS = {
    "type": count,
    "default": SETTINGS["components"],
    "metavar": "NUMBER",
    "help": f"dimensions (default: {SETTINGS['components']})",
}

GAMMA = {
    "type": _gamma,
    "default": SETTINGS["gamma"],
    "metavar": "NUMBER",
    "help": "strength of the contrast, 0 for none (default: auto, which is robust for finding directions)",
}

NO_TEST = Option("--no-test", action="store_true", help="skip the test against chance")

# Tables, and a model to fit or a saved one. With that it matters whether settings were given, so they have no default.
DEPTH = Option(
    "--depth",
    choices=["warn", "match", "ignore"],
    default="warn",
    help="if counts add up to less in one group: warn, or thin both groups to equal depth for the test (default: "
    "%(default)s)",
)

GAMMAS = Option(
    "--gammas", type=several, metavar="NUMBER", help="how many values of gamma (default: 40; 20 with missing values)"
)

MODEL = Option("model", type=Path, help="a file that contrapca saved (model.npz)")
SEED = Option("--seed", type=seed, default=0, metavar="NUMBER", help="random seed (default: %(default)s)")
FORCE = Option("--force", action="store_true", help="overwrite existing files")
FOLDER = [Option("-o", "--output", **OUTPUT, metavar="FOLDER", help="output folder (created if missing)"), FORCE]
TABLE = [Option("-o", "--output", **OUTPUT, metavar="FILE", help="the table to be written (.csv or .tsv)"), FORCE]

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
            Option("--components", type=count, metavar="NUMBER", help="dimensions to test at most (default: 10)"),
            Option("--scale", **SCALE),
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
            Option("--method", **METHOD | {"choices": ["contrapca", "pcpca", "cpca", "ppca"]}),
            Option("--components", **COMPONENTS),
            Option("--gamma", **GAMMA),
            Option("--scale", **SCALE),
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
            Option("table", type=Path, help=f"the rows ({FORMATS})"),
            Option(
                "--center",
                choices=["foreground", "background"],
                default="foreground",
                help="center the rows as cases or as controls (default: %(default)s)",
            ),
            Option("--sheet", metavar="NAME", help="sheet of an Excel file (default: the first)"),
            *READING,
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
            Option("--components", **COMPONENTS),
            Option(
                "--gamma",
                type=number,
                metavar="NUMBER",
                help="strength of the contrast (default: half of what these tables allow at most)",
            ),
            Option(
                "-o",
                "--output",
                **OUTPUT,
                metavar="FILE",
                help="the table to be written (.csv, .tsv or .npy; of a text table in its own format, also .txt "
                "and with .gz)",
            ),
            Option(
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
            Option("--method", **METHOD),
            Option("--components", **COMPONENTS),
            Option("--scale", **SCALE),
            GAMMAS,
            *FOLDER,
        ],
    ),
    "report": (
        "one HTML page about cases and controls",
        "Write a page about the contrast of cases and controls, at many strengths, with pictures, tables and text. It "
        "opens without a network.",
        [
            *GROUPS,
            LABELS,
            *BLOCKS,
            *FILES,
            Option("--method", **METHOD | {"default": None}),
            Option("--components", **COMPONENTS | {"default": None}),
            Option("--gamma", **GAMMA | {"default": None}),
            Option("--scale", **SCALE | {"default": None}),
            NO_TEST,
            DEPTH,
            Option(
                "--model",
                type=Path,
                metavar="FILE",
                help="a saved model (or path) of these tables, in place of fitting one",
            ),
            GAMMAS,
            Option(
                "--uncertainty",
                choices=["none", "bootstrap", "posterior"],
                default="none",
                help="intervals of the loadings (default: %(default)s)",
            ),
            Option("--title", metavar="TEXT", help="page title"),
            SEED,
            Option(
                "-o",
                "--output",
                type=Path,
                metavar="FILE",
                help="the page to be written (.html; default: report.html beside the cases)",
            ),
            Option(
                "--save",
                type=Path,
                metavar="FOLDER",
                help="also write what the page saves: coordinates.csv, loadings.csv, figure.png, figure.svg and "
                "methods.txt (a paragraph for a paper, and what to cite)",
            ),
            FORCE,
        ],
    ),
    "sample": (
        "new rows from a saved model",
        "Draw rows from the model's distribution of cases. For realistic rows fit with at most half gamma's limit.",
        [
            MODEL,
            Option("-n", type=count, default=100, metavar="NUMBER", help="how many (default: %(default)s)"),
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
            Option(
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
}

# Of every command.
TALK = [
    Option("--quiet", action="store_true", help="print errors and warnings only"),
    Option("--json", action="store_true", help="print the summary as JSON, and nothing else"),
    Option("--debug", action="store_true", help="show where in the program an error arose"),
]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message, and where to look, and leave."""
        text = " ".join(message.split())
        print(f"contrapca: {text}{' See' if text.endswith('?') else '; see'} {self.prog} --help.", file=sys.stderr)
        sys.exit(2)


def make_parsers() -> tuple[Parser, dict[str, Parser]]:
    """The parser of everything, and that of each command."""
    layout: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    parser = Parser(
        prog="contrapca",
        description="What varies in the cases but not in the controls: contrastive dimension reduction of tables, rows "
        "being samples.",
        epilog=EPILOGS[""],
        **layout,
    )
    parser.add_argument("--version", action="version", version=f"contrapca {__version__}")
    places = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands = {}
    for name, (help, description, options) in COMMANDS.items():
        command = places.add_parser(name, help=help, description=description, epilog=EPILOGS[name], **layout)
        reading = command.add_argument_group("reading tables")
        for each in (*TALK, *options):
            (reading if each in READING else command).add_argument(*each.names, **each.settings)
        commands[name] = command
    return parser, commands


def parse(given: Sequence[str]) -> argparse.Namespace:
    """The options of a command, or leave with what may have been meant."""
    parser, commands = make_parsers()
    if not given[0].startswith("-") and given[0] not in COMMANDS:
        hint = did_you_mean(given[0], COMMANDS)
        known = f".{hint}" if hint else f", only {', '.join(COMMANDS)}"
        parser.error(f"there is no command {given[0]!r}{known}")
    options, unknown = parser.parse_known_args(given)
    if unknown:
        first = unknown[0].partition("=")[0]
        names = [name for each in (*TALK, *COMMANDS[options.command][2]) for name in each.names]
        if not first.startswith("-") and getattr(options, "background", "") is None:
            line = as_command(["contrapca", options.command, str(options.cases), "--background", first])
            commands[options.command].error(f"the controls need --background: {line} ...")
        hint = did_you_mean(first, names) if first.startswith("-") else ""
        commands[options.command].error(f"unrecognized arguments: {' '.join(unknown)}{hint and f'.{hint}'}")
    options.shell = as_command(["contrapca", *given])
    return options
