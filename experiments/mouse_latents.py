"""Proteins of mice with and without Down syndrome: the two separate as gamma grows, while the background shrinks."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrapca import PCPCA, PPCA, contrast_path
from contrapca.plots import latents

from ._common import mouse, new_figure, plain, silhouette
from ._stages import Json, Row, Tick

TITLE = "Mouse proteins: latents as the contrast grows"


def config(*, quick: bool) -> Json:
    """The text does not print gamma; the paper's code has 0, 0.5 and 0.6. Fits take milliseconds, so quick is full."""
    return {"n_components": 2, "gammas": [0.0, 0.3, 0.5, 0.6]}


def run(config: Json, tick: Tick) -> Json:
    """Latents of both groups, each centred by its own mean, and how well they separate."""
    X, Y, labels = mouse()
    tick("fits")
    path = contrast_path(PCPCA(config["n_components"], scale="group"), X, background=Y, gammas=config["gammas"])
    cases, controls = path.latents(X), path.latents(Y, center="background")
    ppca = PPCA(config["n_components"]).fit((X - X.mean(axis=0)) / X.std(axis=0))
    return {
        "gammas": config["gammas"],
        "limit": path.gamma_max,
        "sizes": [len(X), len(Y), X.shape[1]],
        "with_down_syndrome": int(np.sum(labels == "Down syndrome")),
        "labels": labels.tolist(),
        "foreground": plain(cases, 4),
        "background": plain(controls, 4),
        "silhouettes": [silhouette(Z, labels) for Z in cases],
        "from_background": [from_background(Z, labels, other) for Z, other in zip(cases, controls, strict=True)],
        "angle_to_ppca": float(np.degrees(np.arccos(_least_cosine(path.components(path.gammas[0]), ppca.components_)))),
    }


def from_background(cases: Any, labels: Any, controls: Any) -> dict[str, float]:
    """Silhouette of each class of cases against the controls, in units of the cases' standard deviations."""
    found = {}
    for name in np.unique(labels):
        part = cases[labels == name]
        both, groups = np.vstack([part, controls]) / cases.std(axis=0), np.repeat([0, 1], [len(part), len(controls)])
        found[str(name)] = silhouette(both, groups, scaled=False)
    return found


def _least_cosine(left: Any, right: Any) -> float:
    """Of the principal angles between two subspaces, given by unit rows."""
    return float(min(1.0, np.linalg.svd(left @ right.T, compute_uv=False).min()))


def figure(results: Json) -> Any:
    """The foreground at each gamma, and at the last one the background too."""
    gammas = results["gammas"]
    drawn, axes = new_figure(len(gammas), width=3.3, height=3.9)
    for k, (ax, gamma) in enumerate(zip(axes[0], gammas, strict=True)):
        last = k == len(gammas) - 1
        latents(
            np.array(results["foreground"][k]),
            background=np.array(results["background"][k]) if last else None,
            labels=results["labels"],
            ax=ax,
        )
        name = f"gamma = {gamma:g}" + (" (PPCA)" if gamma == 0 else ", background too" if last else "")
        ax.set_title(f"{name}\nsilhouette {results['silhouettes'][k]:.2f}", fontsize=10)
    handles, names = axes[0, -1].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    drawn.suptitle("Mice with and without Down syndrome separate as the contrast grows")
    return drawn


def rows(results: Json) -> list[Row]:
    """Every panel and number."""
    n, m, D = results["sizes"]
    d = len(results["foreground"][0][0])
    scores, gammas = results["silhouettes"], results["gammas"]
    first, *_, last = results["from_background"]
    return [
        Row(
            "Figure 3: sizes",
            "n = 270 (135 with Down syndrome), m = 135, 77 proteins, d = 2",
            f"n = {n} ({results['with_down_syndrome']} with Down syndrome), m = {m}, {D} proteins, d = {d}",
            (n, m, D, results["with_down_syndrome"], d) == (270, 135, 77, 135, 2),
            "523 of the values are missing. The text does not mention them; the paper's code fills them with 0 and "
            "then standardises each group by itself. Followed here. Three mice, far left, lack 43 of 77 values.",
        ),
        Row(
            "Figure 3a: gamma 0 is PPCA: minimal separation",
            "minimal separation",
            f"silhouette {scores[0]:.3f}; {results['angle_to_ppca']:.1g} degrees from PPCA",
            scores[0] < 0.1 and results["angle_to_ppca"] < 1e-3,
        ),
        Row(
            "Figure 3b, c: higher gamma separates the genotypes",
            "separated",
            ", ".join(f"{score:.3f} at {gamma:g}" for score, gamma in zip(scores[1:], gammas[1:], strict=True)),
            min(scores[1:]) > scores[0] + 0.2,
            f"gamma is not printed in the text; 0.5 and 0.6 stand in the code. The exact limit is "
            f"{results['limit']:.4f}. The labels only judge, they chose nothing.",
        ),
        Row(
            "Figure 3d: the background is separated from the foreground",
            "separated",
            "silhouettes of background against genotype "
            + ", ".join(f"{last[name]:.2f} ({name}; {first[name]:.2f} at gamma 0)" for name in last),
            all(last[name] > first[name] + 0.15 for name in last),
            "Each group is centred by its own mean, as in the paper's code, so the background lies at the centre by "
            "construction; what shrinks is its spread. The clouds still touch.",
        ),
    ]
