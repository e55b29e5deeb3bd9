"""Options that several commands of the command line share, and the numbers that they take."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

FORMATS = "CSV, TSV, TXT (also .gz or .zip), Excel, Parquet, NPY, NPZ, MTX or h5ad"
SETTINGS = {"method": "contrapca", "components": 2, "gamma": "auto", "scale": "auto"}  # of a new model, unless told


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


# ---------------------------------------------------------------------- options

# What adds an option, or several, to the parser of a command.
Option = Callable[[argparse.ArgumentParser], object]


def option(*names: str, **settings: Any) -> Option:
    """One option, as argparse describes it; commands share them."""
    return lambda parser: parser.add_argument(*names, **settings)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How files are read."""
    parser = parser.add_argument_group("reading tables")  # type: ignore[assignment]
    parser.add_argument(
        "--missing",
        nargs="+",
        action="extend",
        default=[],
        metavar="WORD",
        help="words or numbers that mean a missing value, such as ND or -999, besides empty cells, NA and the like",
    )
    parser.add_argument("--transpose", action="store_true", help="samples are columns of the files, not rows")
    parser.add_argument("--percent", action="store_true", help="read 12%% as the number 0.12")
    parser.add_argument("--thousands", action="store_true", help="read 1,234 as the number 1234")
    parser.add_argument("--encoding", metavar="NAME", help="of text files, such as latin-1 (default: utf-8)")
    header = parser.add_mutually_exclusive_group()
    header.add_argument(
        "--header", action="store_true", default=None, help="the first line contains column names (default: detected)"
    )
    header.add_argument("--no-header", dest="header", action="store_false", help="the first line contains values")


GROUPS = [
    option("cases", type=Path, nargs="?", help=f"the cases, or both groups with --group ({FORMATS})"),
    option("--background", metavar="FILE_OR_VALUE", help="controls table; with --group, the value that marks controls"),
    option("--group", metavar="COLUMN", help="column that marks cases and controls of one table"),
]
LABELS = option("--labels", metavar="COLUMN", help="column to show with the results; not a feature")
BLOCKS = [
    option(
        "--blocks",
        metavar="COLUMN",
        help="column with the donor, animal or plate of each row; not a feature. Rows of one block stay "
        "together, and the same name in both groups is the same block",
    ),
    option(
        "--pairs",
        metavar="COLUMN",
        help="column with the pair of each row, such as a donor before and after treatment: like --blocks, and "
        "every name must be in both groups",
    ),
    option(
        "--covariates",
        nargs="+",
        action="extend",
        metavar="COLUMN",
        help="columns such as age and sex (or age,sex), numbers or text; not features. Their effect is taken "
        "out of both groups",
    ),
]
FILES: list[Option] = [
    option("--ignore", nargs="+", action="extend", default=[], metavar="COLUMN", help="columns to leave out"),
    option("--common", action="store_true", help="use only the columns that both tables have"),
    option(
        "--sheet",
        action="append",
        metavar="NAME",
        help="sheet of an Excel file (default: the first); give it twice for different sheets of cases and controls",
    ),
    option("--layer", metavar="NAME", help="layer of an h5ad file (default: X)"),
    option(
        "--mask",
        metavar="COLUMN",
        help="column of var of an h5ad file: which genes to use, or none for all (default: highly_variable, if any)",
    ),
    add_reading,
    option(
        "--config", type=Path, metavar="FILE", help="read options from a TOML file; the command line overrides them"
    ),
    option(
        "--save-config", type=Path, metavar="FILE", help="write the options of this run to a TOML file for --config"
    ),
]
METHOD = {
    "choices": ["contrapca", "pcpca", "cpca"],
    "default": SETTINGS["method"],
    "help": f"(default: {SETTINGS['method']})",
}
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
SCALE = {
    "choices": ["auto", "none", "group", "pooled"],
    "default": SETTINGS["scale"],
    "help": "divide features by their standard deviation in each group, or within groups (default: auto, which is what "
    "the noise asks for with contrapca, and none otherwise)",
}
NO_TEST = option("--no-test", action="store_true", help="skip the test against chance")
# Tables, and a model to fit or a saved one. With that it matters whether settings were given, so they have no default.
DEPTH = option(
    "--depth",
    choices=["warn", "match", "ignore"],
    default="warn",
    help="if counts add up to less in one group: warn, or thin both groups to equal depth for the test (default: "
    "%(default)s)",
)
CONTRAST = [
    *GROUPS,
    LABELS,
    *BLOCKS,
    *FILES,
    option("--method", **METHOD | {"default": None}),
    option("--components", **COMPONENTS | {"default": None}),
    option("--gamma", **GAMMA | {"default": None}),
    option("--scale", **SCALE | {"default": None}),
    NO_TEST,
    DEPTH,
    option(
        "--model", type=Path, metavar="FILE", help="a saved model (or path) of these tables, in place of fitting one"
    ),
]
GAMMAS = option(
    "--gammas", type=several, metavar="NUMBER", help="how many values of gamma (default: 40; 20 with missing values)"
)
MODEL = option("model", type=Path, help="a file that contrapca saved (model.npz)")
SEED = option("--seed", type=seed, default=0, metavar="NUMBER", help="random seed (default: %(default)s)")
FORCE = option("--force", action="store_true", help="overwrite existing files")
OUTPUT = {"type": Path, "required": True}
FOLDER = [option("-o", "--output", **OUTPUT, metavar="FOLDER", help="output folder (created if missing)"), FORCE]
TABLE = [option("-o", "--output", **OUTPUT, metavar="FILE", help="the table to be written (.csv or .tsv)"), FORCE]
