"""`contrapca demo`: the main job on made-up data."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from .. import datasets, plots
from .._util.optional import require
from .._util.tables import Table
from .._util.text import format_gamma
from ..data import Study
from ..estimators import PCPCA, ContraPCA
from ..reporting import Origin, check_libraries, summarize
from ._fit import latent_columns
from ._outputs import check_outputs, staged, write_columns
from ._results import records

FILES = {
    "cases.csv": "Cases:",
    "controls.csv": "Controls:",
    "latents.csv": "Latents:",
    "before_after.png": "Picture:",
    "report.html": "Report:",
}

REPORT_COMMAND = "contrapca report cases.csv --background controls.csv --labels subgroup -o report.html"


def demo(options: Namespace) -> tuple[list[Any], dict[str, Any]]:
    """A table on the terminal; tables, latents, a picture and a report in a folder."""
    from sklearn.metrics import silhouette_score

    files = [options.output / name for name in FILES]
    check_outputs(files, force=options.force)
    check_libraries(figures=True)
    data = datasets.make_hidden_clusters(random_state=options.seed)
    X, Y = data.foreground, data.background
    subgroups = np.array([f"case subgroup {label + 1}" for label in data.labels])
    models = {"before (PCA)": PCPCA(n_components=2, gamma=0), "after (ContraPCA)": ContraPCA(n_components=2)}
    for model in models.values():
        model.fit(X, background=Y)
    after = models["after (ContraPCA)"]
    study = Study(X, background=Y, labels=subgroups, label_name="subgroup")
    with staged(files, force=options.force) as places:
        write_columns(places["cases.csv"], {"subgroup": subgroups} | dict(zip(data.feature_names, X.T, strict=True)))
        write_columns(places["controls.csv"], dict(zip(data.feature_names, Y.T, strict=True)))
        write_columns(places["latents.csv"], latent_columns(after, study))
        figure = require("matplotlib.figure", extra="plot").Figure(figsize=(10, 4.2), layout="constrained")
        panels = figure.subplots(1, 2)
        for ax, (name, model) in zip(panels, models.items(), strict=True):
            plots.latent_scatter(model, X, background=Y, labels=subgroups, ellipses=False, ax=ax)
            ax.set_title(f"{name}, gamma = {model.gamma_:.2f}")
            ax.get_legend().remove()
        figure.get_layout_engine().set(wspace=0.06)
        plots.legend_of_figure(figure, panels[0])
        figure.savefig(places["before_after.png"], dpi=300)
        summary = summarize(
            study,
            after,
            title="Demonstration: four hidden subgroups",
            origin=Origin(REPORT_COMMAND, sources=["cases.csv", "controls.csv"]),
            progress=options.progress,
        )
        summary.write(places["report.html"])
    variances = [model.fit_.variances for model in models.values()]
    comparison = Table(
        {
            "": np.array(list(models)),
            "gamma": np.array([model.gamma_ for model in models.values()]),
            "case variance": np.array([own.foreground.sum() for own in variances]),
            "control variance": np.array([own.backgrounds[0].sum() for own in variances]),
            "subgroup separation": np.array([silhouette_score(m.transform(X), data.labels) for m in models.values()]),
        }
    )
    lines = [
        f"{len(X)} cases and {len(Y)} controls, {X.shape[1]} features.",
        "The cases form four subgroups; stronger variation, shared with the controls, hides them.",
        "",
        summary["verdict"],
        "",
        comparison,
        "",
        f"gamma = {format_gamma(after.gamma_)}, half of what these tables allow.",
        f"Features with the largest loadings: {', '.join(after.feature_table()['feature'][:5].tolist())}.",
        "",
        *(f"{what:<9} {file}" for what, file in zip(FILES.values(), files, strict=True)),
        "",
        "The other commands take these tables, for example",
        f"  contrapca fit {files[0]} --background {files[1]} --labels subgroup -o results",
        "",
        f"Now open the report in a browser: {files[-1]}",
    ]
    facts = {"verdict": summary["verdict"], "test": summary["test"], "comparison": records(comparison)}
    return lines, facts | {"gamma": after.gamma_, "written": {file.name: str(file) for file in files}}
