"""The command line: `contrapca demo`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._array import Array
from ._table import Table
from ._version import __version__
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
    options = parser.parse_args(arguments)
    try:
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
