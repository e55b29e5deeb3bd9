"""What can be written on the command line. Imports argparse only, so that --help is quick."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from .._util.text import as_command, did_you_mean
from .._version import __version__

FORMATS = "CSV, TSV, TXT (also .gz or .zip), Excel, Parquet, NPY, NPZ, MTX or h5ad"
SETTINGS = {"method": "contrapca", "components": 2, "gamma": "auto", "scale": "auto"}  # defaults of a new model
EXIT_CODES = "Exit codes: 0 done, 2 something given cannot be used, 1 a bug, 130 stopped by Ctrl-C."
# Options by other names that people try.
MEANT = {
    **dict.fromkeys(("--controls", "--control", "--reference"), "--background"),
    **dict.fromkeys(("--donor", "--donors", "--patient", "--block"), "--blocks"),
    **dict.fromkeys(("--color", "--colour", "--label", "--hue"), "--labels"),
    **dict.fromkeys(("--alpha", "--strength"), "--gamma"),
    "--na": "--missing",
}
Kind = Callable[[str], Any]


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


def gamma(text: str) -> float | str:
    """A strength, or that it is chosen."""
    return text if text == "auto" else number(text)


class Option(NamedTuple):
    """An option, or what is given without one, as argparse takes it; commands share them."""

    flags: list[str]
    settings: dict[str, Any]


def option(usage: str, help: str, kind: Kind | None = None, **settings: Any) -> Option:
    """An option by its line of usage: "-o --output FILE", "--sheet a|b" (choices), "--ignore COLUMN..." (several).

    Without a word in capitals or choices it is a switch. FILE and FOLDER are paths.
    """
    *flags, value = usage.split()
    if value.startswith("-"):
        return Option([*flags, value], {"action": "store_true", "help": help} | settings)
    if not flags:
        return Option([value], {"help": help, "type": kind or Path} | settings)
    if value.endswith("..."):
        settings = {"nargs": "+", "action": "extend", "default": [], "metavar": value[:-3]} | settings
    elif "|" in value:
        settings = {"choices": value.split("|")} | settings
    else:
        settings = {"metavar": value, "type": kind or (Path if value in ("FILE", "FOLDER") else str)} | settings
    return Option(flags, {"help": help} | settings)


READING = [
    option(
        "--missing WORD...",
        "words or numbers that mean a missing value, such as ND or -999, besides empty cells, NA and the like",
    ),
    option("--transpose", "samples are columns of the files, not rows"),
    option("--percent", "read 12%% as the number 0.12"),
    option("--thousands", "read 1,234 as the number 1234"),
    option("--encoding NAME", "of text files, such as latin-1 (default: utf-8)"),
    option(
        "--header",
        "whether the first line contains column names, and not values (default: detected)",
        action=argparse.BooleanOptionalAction,
    ),
]
GROUPS = [
    option("cases", f"the cases, or both groups with --group ({FORMATS})"),
    option("--background FILE_OR_VALUE", "controls table; with --group, the value that marks controls"),
    option("--group COLUMN", "column that marks cases and controls of one table"),
]
LABELS = option("--labels COLUMN", "column to show with the results; not a feature")
BLOCKS = [
    option(
        "--blocks COLUMN",
        "column with the donor, animal or plate of each row; not a feature. Rows of one block stay together, and the "
        "same name in both groups is the same block",
    ),
    option(
        "--pairs COLUMN",
        "column with the pair of each row, such as a donor before and after treatment: like --blocks, and every name "
        "must be in both groups",
    ),
    option(
        "--covariates COLUMN...",
        "columns such as age and sex (or age,sex), numbers or text; not features. Their effect is taken out of both "
        "groups",
    ),
]
FILES = [
    option("--ignore COLUMN...", "columns to leave out"),
    option("--common", "use only the columns that both tables have"),
    option(
        "--sheet NAME",
        "sheet of an Excel file (default: the first); give it twice for different sheets of cases and controls",
        action="append",
    ),
    option("--layer NAME", "layer of an h5ad file (default: X)"),
    option(
        "--mask COLUMN",
        "column of var of an h5ad file: which genes to use, or none for all (default: highly_variable, if any)",
    ),
    *READING,
]


def model_options(methods: str = "contrapca|pcpca|cpca", defaults: Mapping[str, Any] = SETTINGS) -> list[Option]:
    """--method, --components, --gamma and --scale; beside --model it matters whether they were given: no defaults."""
    return [
        option(f"--method {methods}", f"(default: {SETTINGS['method']})", default=defaults.get("method")),
        option(
            "--components NUMBER",
            f"dimensions (default: {SETTINGS['components']})",
            count,
            default=defaults.get("components"),
        ),
        option(
            "--gamma NUMBER",
            "strength of the contrast, 0 for none (default: auto, which is robust for finding directions)",
            gamma,
            default=defaults.get("gamma"),
        ),
        option(
            "--scale auto|none|group|pooled",
            "divide features by their standard deviation in each group, or within groups (default: auto, which is "
            "what the noise asks for with contrapca, and none otherwise)",
            default=defaults.get("scale"),
        ),
    ]


METHOD, COMPONENTS, GAMMA, SCALE = model_options()
NO_TEST = option("--no-test", "skip the test against chance")
DEPTH = option(
    "--depth warn|match|ignore",
    "if counts add up to less in one group: warn, or thin both groups to equal depth for the test (default: warn)",
    default="warn",
)
GAMMAS = option("--gammas NUMBER", "how many values of gamma (default: 40; 20 with missing values)", several)
MODEL = option("model", "a file that contrapca saved (model.npz)")
SEED = option("--seed NUMBER", "random seed (default: 0)", seed, default=0)
FORCE = option("--force", "overwrite existing files")
FOLDER = [option("-o --output FOLDER", "output folder (created if missing)", required=True), FORCE]
TABLE = [option("-o --output FILE", "the table to be written (.csv or .tsv)", required=True), FORCE]
TALK = [  # of every command
    option("--quiet", "print errors and warnings only"),
    option("--json", "print the summary as JSON, and nothing else"),
    option("--debug", "show where in the program an error arose"),
]


class Command(NamedTuple):
    """A command: what the main help says of it, what its own help says, examples, and its options."""

    help: str
    description: str
    examples: list[str]
    options: list[Option]


COMMANDS = {
    "test": Command(
        "is there anything to find?",
        "Test whether the cases vary more than the controls in any direction, and in how many. Prints the verdict and "
        "a p-value for each dimension.",
        [
            "contrapca test cases.csv --background controls.csv",
            "contrapca test cases.csv --background controls.csv --blocks donor",
            "contrapca test cells.h5ad --group condition --background ctrl --depth match",
        ],
        [
            *GROUPS,
            *BLOCKS,
            *FILES,
            option("--components NUMBER", "dimensions to test at most (default: 10)", count),
            SCALE,
            DEPTH,
            SEED,
        ],
    ),
    "fit": Command(
        "contrast cases with controls",
        "Fit a model to cases and controls. Writes model.npz, latents.csv (the coordinates of each row) and "
        "loadings.csv (each feature's part) into a folder.",
        [
            "contrapca fit cases.csv --background controls.csv -o results",
            "contrapca fit all.csv --group diagnosis --background healthy --labels batch -o results",
            "contrapca fit cases.csv --background controls.csv --missing -999 --ignore age -o results",
        ],
        [*[*GROUPS, LABELS, *BLOCKS, *FILES], *model_options("contrapca|pcpca|cpca|ppca"), *[NO_TEST, SEED, *FOLDER]],
    ),
    "transform": Command(
        "latent coordinates of new rows",
        "Apply a saved model to the rows of a table. Columns are matched by name; extra ones are ignored.",
        ["contrapca transform results/model.npz new.csv -o new_latents.csv"],
        [
            MODEL,
            option("table", f"the rows ({FORMATS})"),
            option(
                "--center foreground|background",
                "center the rows as cases or as controls (default: foreground)",
                default="foreground",
            ),
            option("--sheet NAME", "sheet of an Excel file (default: the first)"),
            *READING,
            *TABLE,
        ],
    ),
    "impute": Command(
        "fill the missing values of a table of cases",
        "Fill the missing values (empty cells, NA, NaN and so on) from a model of the cases, contrasted with a "
        "background if one is given. All other cells of a text table stay as they are.",
        [
            "contrapca impute cases.csv -o filled.csv",
            "contrapca impute cases.csv --background controls.csv --missing ND -o filled.csv",
        ],
        [
            *GROUPS,
            *FILES,
            COMPONENTS,
            option(
                "--gamma NUMBER", "strength of the contrast (default: half of what these tables allow at most)", number
            ),
            option(
                "-o --output FILE",
                "the table to be written (.csv, .tsv or .npy; of a text table in its own format, also .txt and with "
                ".gz)",
                required=True,
            ),
            option(
                "--mask-out FILE",
                "a table of 1 where a value was filled in and 0 elsewhere, with their number in each row (.csv or "
                ".tsv)",
            ),
            FORCE,
        ],
    ),
    "path": Command(
        "contrast at many strengths",
        "Contrast cases and controls at many values of gamma. Writes path.npz and path.csv (one line for each gamma) "
        "into a folder, and names the gammas whose results differ most.",
        ["contrapca path cases.csv --background controls.csv --method pcpca -o results"],
        [*GROUPS, *FILES, METHOD, COMPONENTS, SCALE, GAMMAS, *FOLDER],
    ),
    "report": Command(
        "one HTML page about cases and controls",
        "Write a page about the contrast of cases and controls, at many strengths, with pictures, tables and text. It "
        "opens without a network.",
        [
            "contrapca report cases.csv --background controls.csv --labels stage -o report.html",
            "contrapca report book.xlsx --background book.xlsx --sheet cases --sheet controls -o report.html",
            "contrapca report cases.csv --background controls.csv --uncertainty bootstrap --save results",
        ],
        [
            *[*GROUPS, LABELS, *BLOCKS, *FILES],
            *model_options(defaults={}),
            *[NO_TEST, DEPTH],
            option("--model FILE", "a saved model (or path) of these tables, in place of fitting one"),
            GAMMAS,
            option(
                "--uncertainty none|bootstrap|posterior", "intervals of the loadings (default: none)", default="none"
            ),
            option("--title TEXT", "page title"),
            SEED,
            option("-o --output FILE", "the page to be written (.html; default: report.html beside the cases)"),
            option(
                "--save FOLDER",
                "also write what the page saves: coordinates.csv, loadings.csv, figure.png, figure.svg and "
                "methods.txt (a paragraph for a paper, and what to cite)",
            ),
            FORCE,
        ],
    ),
    "sample": Command(
        "new rows from a saved model",
        "Draw rows from the model's distribution of cases. For realistic rows fit with at most half gamma's limit.",
        ["contrapca sample results/model.npz -n 500 -o new_rows.csv"],
        [MODEL, option("-n NUMBER", "how many (default: 100)", count, default=100), SEED, *TABLE],
    ),
    "demo": Command(
        "run the method on made-up data and write its results",
        "Make cases with hidden subgroups and controls without, contrast them, and write both tables, the latents, a "
        "picture and a report.",
        ["contrapca demo -o demo"],
        [
            SEED,
            option(
                "-o --output --out FOLDER",
                "folder for the results (default: contrapca-demo)",
                default=Path("contrapca-demo"),
            ),
            FORCE,
        ],
    ),
    "info": Command(
        "describe a saved file",
        "Describe a saved model, path or posterior.",
        ["contrapca info results/model.npz"],
        [MODEL],
    ),
}

EXAMPLES = {
    "": [
        "contrapca demo",
        "contrapca report cases.csv --background controls.csv -o report.html",
        "contrapca report all.xlsx --group diagnosis --background healthy --labels batch -o report.html",
        "contrapca COMMAND --help",
    ]
} | {name: command.examples for name, command in COMMANDS.items()}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message, and where to look, and leave."""
        text = " ".join(message.split())
        print(f"contrapca: {text}{' See' if text.endswith('?') else '; see'} {self.prog} --help.", file=sys.stderr)
        sys.exit(2)


def make_parsers() -> tuple[Parser, dict[str, Parser]]:
    """The parser of everything, and that of each command."""

    def layout(name: str) -> dict[str, Any]:
        epilog = "\n".join(["examples:", *(f"  {example}" for example in EXAMPLES[name]), "", EXIT_CODES])
        return {"epilog": epilog, "formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}

    about = "What varies in the cases but not in the controls: contrastive dimension reduction of tables, rows being "
    parser = Parser(prog="contrapca", description=f"{about}samples.", **layout(""))
    parser.add_argument("--version", action="version", version=f"contrapca {__version__}")
    places = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands = {}
    for name, command in COMMANDS.items():
        own = places.add_parser(name, help=command.help, description=command.description, **layout(name))
        reading = own.add_argument_group("reading tables")
        for each in (*TALK, *command.options):
            (reading if each in READING else own).add_argument(*each.flags, **each.settings)
        commands[name] = own
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
        names = [name for each in (*TALK, *COMMANDS[options.command].options) for name in each.flags]
        if not first.startswith("-") and getattr(options, "background", "") is None:
            line = as_command(["contrapca", options.command, str(options.cases), "--background", first])
            commands[options.command].error(f"the controls need --background: {line} ...")
        elsewhere = [name for name, other in COMMANDS.items() if any(first in each.flags for each in other.options)]
        if first.startswith("-") and elsewhere:
            others = " and ".join(elsewhere)
            commands[options.command].error(f"{options.command} has no {first}, which belongs to {others}")
        hint = did_you_mean(MEANT.get(first, first), names) if first.startswith("-") else ""
        commands[options.command].error(f"unrecognized arguments: {' '.join(unknown)}{hint and f'.{hint}'}")
    options.shell = as_command(["contrapca", *given])
    return options
