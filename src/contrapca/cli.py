"""The command line: `contrapca demo` and `contrapca impute`."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._array import Array
from ._table import Table
from ._textfile import TextTable, read_text_table
from ._version import __version__
from .exceptions import UnboundedError
from .io import atomic_write

if TYPE_CHECKING:
    from . import PCPCA


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="contrapca", description="What varies in the cases and not in the controls.")
    parser.add_argument("--version", action="version", version=f"contrapca {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    demo_parser = commands.add_parser(
        "demo",
        help="run the method on made-up data and write its results",
        description="Make cases with hidden subgroups and controls without, contrast them, and write the latents "
        "(CSV) and a picture (PNG). Files of an earlier demo are replaced.",
    )
    demo_parser.add_argument("--out", type=Path, default=Path("contrapca-demo"), help="folder (default: %(default)s)")
    demo_parser.add_argument("--seed", type=int, default=0, help="seed of the made-up data (default: %(default)s)")
    demo_parser.set_defaults(run=lambda options: demo(options.out, options.seed))
    impute_parser = commands.add_parser(
        "impute",
        help="fill the missing values of a table of cases",
        description="Fill the missing values of a text table (CSV, TSV; empty cells, NA, NaN and so on) from a model "
        "of its rows, contrasted with a background if one is given. Columns that are not numeric are kept as they are.",
    )
    impute_parser.add_argument("cases", type=Path, help="the table to be filled")
    impute_parser.add_argument("--background", type=Path, help="a table of controls with the same numeric columns")
    impute_parser.add_argument("-o", "--output", type=Path, required=True, help="the file to be written")
    impute_parser.add_argument(
        "--components", type=int, default=2, help="dimensions of the model (default: %(default)s)"
    )
    impute_parser.add_argument(
        "--gamma", type=float, help="strength of the contrast (default: half of what these tables allow at most)"
    )
    impute_parser.add_argument(
        "--ignore", nargs="+", default=[], metavar="COLUMN", help="numeric columns to leave alone"
    )
    impute_parser.add_argument("--no-header", action="store_true", help="the first line holds values, not names")
    impute_parser.add_argument("--force", action="store_true", help="replace the output if it exists")
    impute_parser.set_defaults(run=impute)
    options = parser.parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: print(f"contrapca: warning: {message}", file=sys.stderr)
            options.run(options)
    except (OSError, ValueError, ImportError) as error:
        print(f"contrapca: {error}", file=sys.stderr)
        return 1
    return 0


def demo(folder: Path, seed: int) -> None:
    """The main job on made-up data: a table on the terminal, latents as CSV, a picture as PNG."""
    from . import PCPCA, datasets, plots  # late: `contrapca --help` needs none of it
    from .estimators import AUTO_FRACTION

    data = datasets.make_hidden_clusters(random_state=seed)
    X, Y = data.foreground, data.background
    print(
        f"{len(X)} cases and {len(Y)} controls, {X.shape[1]} features.\n"
        "The cases form four subgroups; stronger variation, shared with the controls, hides them.\n"
    )
    models = {"before (PCA)": PCPCA(n_components=2, gamma=0), "after (PCPCA)": PCPCA(n_components=2)}
    for model in models.values():
        model.fit(X, background=Y)
    print(_summary(models, X, data.labels), "\n")

    after = models["after (PCPCA)"]
    print(f"gamma = {after.gamma_:.4f}, {AUTO_FRACTION} of its exact limit {after.gamma_max_:.4f} for 2 components.")
    strongest = np.argsort(after.feature_table()["rank"])[:5]
    print(f"Features with the largest loadings: {', '.join(data.feature_names[j] for j in strongest)}.\n")

    folder.mkdir(parents=True, exist_ok=True)
    panels = [_panel(name, model, X, Y, data.labels) for name, model in models.items()]
    plots.save_figure(plots.side_by_side(panels), folder / "before_after.png")
    with atomic_write(folder / "latents.csv") as file:
        file.write(_latent_table(after, X, Y, data.labels).to_csv().encode())
    print(f"Latents: {folder / 'latents.csv'}\nPicture: {folder / 'before_after.png'}")


def impute(options: argparse.Namespace) -> None:
    """Fill the holes of a text table and say how much was filled."""
    from . import PPCA

    output, components = options.output, options.components
    if output.is_dir():
        raise IsADirectoryError(f"{str(output)!r} is a folder. Name a file as --output.")
    if output.exists() and not options.force:
        raise FileExistsError(f"{str(output)!r} exists. Choose another --output, or add --force to replace it.")
    if options.gamma is not None and options.background is None:
        raise ValueError("--gamma needs --background: without controls there is nothing to contrast with.")
    header = False if options.no_header else None
    table = read_text_table(options.cases, header=header)
    unknown = [name for name in options.ignore if name not in table.header]
    if unknown:
        raise ValueError(f"--ignore: {str(options.cases)!r} has no column {', '.join(map(repr, unknown))}.")
    names = [name for name in table.numeric() if name not in options.ignore]
    if len(names) <= components:
        raise ValueError(
            f"{str(options.cases)!r} has {len(names)} numeric columns: more than --components={components} are needed."
        )
    X = table.values(names)
    kept = [name or "(no name)" for name in table.header if name not in names] or ["none"]
    first = "the first line holds names" if table.has_header else "no header"
    print(f"{options.cases}: {len(X)} rows, {len(names)} numeric columns ({first}); left alone: {', '.join(kept)}")
    if table.empty():
        print(f"Columns without any value, which cannot be filled: {', '.join(table.empty())}")
    if options.background is None:
        model: Any = PPCA(components).fit(X)
        print(f"Model: PPCA with {components} components.\n")
    else:
        Y = _same_columns(read_text_table(options.background, header=header), names, options.cases)
        print(f"{options.background}: {len(Y)} rows")
        model, how = _contrasted(X, Y, components, options.gamma)
        print(f"Model: PCPCA with {components} components, gamma = {model.gamma_:.4f} ({how}).\n")
    filled, std = model.impute(X, return_std=True)
    table.write_filled(output, names, filled)
    print(_filled_table(names, X, filled, std), "\n")
    print(f"{np.isnan(X).sum()} of {X.size} values ({np.isnan(X).mean():.1%}) were missing and are filled in: {output}")


def _contrasted(X: Array, Y: Array, components: int, gamma: float | None) -> tuple[PCPCA, str]:
    """A fitted PCPCA, at half of the largest gamma unless told, and how gamma was chosen."""
    from . import PCPCA, gamma_limits

    if gamma is not None:
        return PCPCA(components, gamma=gamma).fit(X, background=Y), "as asked for"
    limits = gamma_limits(X, Y, n_components=components)
    what = "the upper bound" if limits.is_bound else "its limit"
    try:
        return PCPCA(components, gamma=0.5 * limits.pcpca).fit(X, background=Y), f"half of {what} {limits.pcpca:.4f}"
    except UnboundedError as error:
        if error.works is None:
            raise
        return PCPCA(components, gamma=error.works).fit(X, background=Y), "as large as works"


def _same_columns(table: TextTable, names: list[str], cases: Path) -> Array:
    """The background's values in the columns of the cases."""
    lacking = [name for name in names if name not in table.header]
    if lacking:
        raise ValueError(
            f"{table.path!r} lacks {len(lacking)} numeric columns of {str(cases)!r}, the first: "
            f"{', '.join(map(repr, lacking[:5]))}."
        )
    numeric = set(table.numeric())
    text = [name for name in names if name not in numeric]
    if text:
        raise ValueError(f"Columns of {table.path!r} that do not hold numbers: {', '.join(map(repr, text[:5]))}.")
    return table.values(names)


def _filled_table(names: list[str], X: Array, filled: Array, std: Array) -> Table:
    """What was filled into each column, those with the most missing values first, at most 15 of them."""
    holes = np.isnan(X)
    missing = holes.sum(axis=0)
    order = [j for j in np.argsort(-missing, kind="stable") if missing[j]][:15]

    def mean(values: Array) -> Array:
        return np.array([values[holes[:, j], j].mean() for j in order])

    columns = {
        "column": np.array([names[j] for j in order]),
        "missing": missing[order],
        "share": missing[order] / len(X),
        "observed mean": np.array([np.nanmean(X[:, j]) for j in order]),
        "filled mean": mean(filled),
        "filled sd": mean(std),
    }
    return Table(columns)


def _summary(models: dict[str, PCPCA], X: Array, labels: Array) -> Table:
    """One row for each model: what its two components hold, and how well they show the subgroups."""
    from sklearn.metrics import silhouette_score

    fitted = list(models.values())
    control_variance = [model.background_variance_.sum() for model in fitted if model.background_variance_ is not None]
    separation = [silhouette_score(model.transform(X), labels) for model in fitted]
    return Table(
        {
            "": np.array(list(models)),
            "gamma": np.array([model.gamma_ for model in fitted]),
            "case variance": np.array([model.explained_variance_.sum() for model in fitted]),
            "control variance": np.array(control_variance),
            "subgroup separation": np.array(separation),
        }
    )


def _panel(name: str, model: PCPCA, X: Array, Y: Array, labels: Array) -> dict[str, Any]:
    """Arguments of `plots.latents` for one model."""
    assert model.background_variance_ratio_ is not None
    shares = zip(model.explained_variance_ratio_, model.background_variance_ratio_, strict=True)
    return {
        "foreground": model.transform(X),
        "background": model.transform(Y, center="background"),
        "labels": np.array([f"case subgroup {label + 1}" for label in labels]),
        "title": f"{name}, gamma = {model.gamma_:.2f}",
        "axis_labels": [
            f"component {k} ({a:.0%} of case, {b:.0%} of control variance)" for k, (a, b) in enumerate(shares)
        ],
    }


def _latent_table(model: PCPCA, X: Array, Y: Array, labels: Array) -> Table:
    """Latents of all rows, the controls about their own mean."""
    Z = np.vstack([model.transform(X), model.transform(Y, center="background")])
    return Table(
        {
            "group": np.repeat(["case", "control"], [len(X), len(Y)]),
            "subgroup": np.concatenate([(labels + 1).astype(str), np.full(len(Y), "")]),
            **dict(zip(model.get_feature_names_out(), Z.T, strict=True)),
        }
    )
