"""Bone-marrow cells before and after a transplant, on a stand-in for the paper's foreground."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from contrapca import CPCA, PCPCA, contrast_path, gamma_limits
from contrapca.plots import latents

from ._common import draw_silhouettes, gamma_grid, new_figure, permuted, plain, projections, silhouette
from ._data import load_zheng_bmmc
from ._stages import Json, Row, Tick

TITLE = "Single cells before and after a transplant (stand-in foreground)"
METHODS = {"cpca": CPCA, "pcpca": PCPCA}
PATIENTS = {"pre": "AML027, before a transplant", "post": "AML035, after a transplant"}
SEPARATES = 0.15  # a silhouette of that size is not "no separation": the paper's best are 0.20 and 0.23


class Variant(NamedTuple):
    """What the text or a figure does not settle: how many components, which of them, in which units."""

    words: str
    n_components: int
    shown: dict[str, tuple[int, int]]  # of each method
    scaled: bool  # to unit variance


VARIANTS = {
    "figure": Variant("10 components, 3 and 4", 10, {"cpca": (2, 4), "pcpca": (2, 4)}, True),
    "text": Variant("text (2 components)", 2, {"cpca": (0, 2), "pcpca": (0, 2)}, True),
    "code": Variant("code (2 of 5 components, not scaled)", 5, {"cpca": (1, 3), "pcpca": (2, 4)}, False),
}


def config(*, quick: bool) -> Json:
    """The figure's gammas, curves on a sample of the cells (a silhouette needs all distances)."""
    return {
        "gammas": [0.0, 0.7, 0.9],
        "points": 8 if quick else 24,
        "nearest_to_limit": 1e-3,
        "silhouette_rows": 800 if quick else 1500,
        "shown_rows": 1200,
        "seed": 0,
    }


def run(config: Json, tick: Tick) -> Json:
    """Latents at the figure's gammas, and silhouettes of both methods for each variant."""
    data = load_zheng_bmmc()
    X, Y = data.foreground, data.background
    labels = np.array([PATIENTS[label] for label in data.labels])
    shuffled = permuted(labels, config["seed"])
    d = VARIANTS["figure"].n_components
    tick("latents")
    limit = gamma_limits(X, background=Y, n_components=d, scale="group").pcpca
    gammas = sorted({*(g for g in config["gammas"] if g < limit), *(share * limit for share in config["gammas"][1:])})
    path = contrast_path(PCPCA(d, scale="group"), X, background=Y, gammas=gammas)
    shown = np.random.default_rng(config["seed"]).choice(len(X), config["shown_rows"], replace=False)
    pairs = path.latents(X)[:, :, 2:4]
    sample: Json = {"rows": config["silhouette_rows"], "seed": config["seed"]}
    curves: Json = {}
    for name, (_, n_components, shown_pair, scaled) in VARIANTS.items():
        limits = gamma_limits(X, background=Y, n_components=n_components, scale="group")
        curves[name] = {}
        for method in METHODS:
            tick(f"{method}, {n_components} components")
            top = getattr(limits, method)
            grid = gamma_grid(method, top, config["points"], config["nearest_to_limit"])
            found = contrast_path(METHODS[method](n_components, scale="group"), X, background=Y, gammas=grid)
            part = slice(*shown_pair[method])
            Z = (found.latents(X) if scaled else projections(found, X))[:, :, part]
            scores = [silhouette(z, labels, scaled=scaled, **sample) for z in Z]
            best = int(np.argmax(scores))
            curves[name][method] = {
                "limit": top,
                "gammas": plain(grid, 6),
                "silhouettes": scores,
                "permuted": [silhouette(z, shuffled, scaled=scaled, **sample) for z in Z],
                "best": scores[best],
                "best_gamma": float(grid[best]),
            }
    tick("silhouettes of all cells")
    return {
        "sizes": [len(X), len(Y), X.shape[1]],
        "gammas": gammas,
        "limit": limit,
        "silhouettes": [silhouette(Z, labels) for Z in pairs],
        "latents": plain(pairs[:, shown], 4),
        "labels": labels[shown].tolist(),
        "curves": curves,
    }


def figure(results: Json) -> Any:
    """Latents above, silhouettes against gamma below."""
    gammas = results["gammas"]
    drawn, axes = new_figure(len(gammas), 2, width=3.4, height=3.4)
    labels = np.array(results["labels"])
    for k, (ax, gamma) in enumerate(zip(axes[0], gammas, strict=True)):
        names = ("component 2 (the third)", "component 3 (the fourth)")
        latents(np.array(results["latents"][k]), labels=labels, axis_labels=names, ax=ax)
        share = "PPCA" if gamma == 0 else f"{gamma / results['limit']:.2f} of the limit"
        ax.set_title(f"gamma = {gamma:.3g} ({share})\nsilhouette {results['silhouettes'][k]:.3f}", fontsize=10)
    handles, words = axes[0, 0].get_legend_handles_labels()
    drawn.legend(handles, words, loc="outside lower center", ncols=2, frameon=False)
    for ax in axes[1]:
        ax.remove()
    grid = axes[1, 0].get_gridspec()
    half = len(gammas) // 2
    for method, place in zip(METHODS, (slice(0, half), slice(half, len(gammas))), strict=True):
        curve = results["curves"]["figure"][method]
        ax = drawn.add_subplot(grid[1, place])
        draw_silhouettes(ax, method.upper(), curve, log=method == "cpca", of="patients")
    n, m, _ = results["sizes"]
    drawn.suptitle(
        f"Stand-in foreground (AML027 pre, AML035 post; {n} cells) against a healthy donor ({m} cells):\n"
        "components 3 and 4 of 10 separate the patients better as the contrast grows"
    )
    return drawn


def rows(results: Json) -> list[Row]:
    """Every panel and number; a claim holds where it holds in the variants of the text and of the code."""
    n, m, D = results["sizes"]
    scores, gammas = results["silhouettes"], results["gammas"]
    curves = results["curves"]
    stand_in = "Stand-in foreground: the paper's (AML035 before the transplant) could not be obtained."
    at = {round(gamma, 3): score for gamma, score in zip(gammas, scores, strict=True)}

    def row(item: str, paper: str, ours: Callable[[Json], str], holds: Callable[[Json], bool], note: str) -> Row:
        found = "; ".join(f"{VARIANTS[name].words}: {ours(pair)}" for name, pair in curves.items())
        return Row(item, paper, found, bool(holds(curves["text"]) and holds(curves["code"])), f"{stand_in} {note}")

    def best(method: str) -> Callable[[Json], str]:
        return lambda pair: f"{pair[method]['best']:.2f} at gamma {pair[method]['best_gamma']:.2f}"

    return [
        Row(
            "Figures 5 and 6: sizes",
            "n = 4501, m = 1985, 500 genes, d = 2",
            f"n = {n}, m = {m}, {D} genes, d = 10, 2 and 5",
            False,
            f"{stand_in} Patient AML027 before and AML035 after stand in for it, so patient and label are confounded, "
            "and no silhouette below can equal the paper's. The text's d = 2 has no third and fourth component, which "
            "Figure 5 shows; the code has 10 components for Figure 5 and 5 for Figure 6.",
        ),
        Row(
            "Figure 5: latents (components 3 and 4) at gamma 0, 0.7, 0.9: separate at higher gamma, not with PPCA",
            "seen in the figure",
            "silhouettes " + ", ".join(f"{score:.3f} at {gamma:.3g}" for gamma, score in at.items()),
            at[0.7] > at[0.0] + 0.05 and at[0.0] < SEPARATES,
            f"{stand_in} They separate better as gamma grows, but PPCA separates them too: its {at[0.0]:.2f} is as "
            "good as the paper's best silhouettes (0.20 and 0.23). 10 components, as in the code. gamma 0.9 is above "
            f"the exact limit, {results['limit']:.4f}, which the code does not check in this figure; shown instead are "
            "0.7 and 0.9 of the limit. The groups overlap at any gamma.",
        ),
        row(
            "Figure 6b: best silhouette of PCPCA",
            "0.23",
            best("pcpca"),
            lambda pair: abs(pair["pcpca"]["best"] - 0.23) < 0.03,
            "The labels chose gamma, as in the paper. The code's variant comes near; the text's does not.",
        ),
        row(
            "Figure 6a: best silhouette of CPCA",
            "0.20",
            best("cpca"),
            lambda pair: abs(pair["cpca"]["best"] - 0.20) < 0.03,
            "The code shows components 2 and 3 for CPCA and 3 and 4 for PCPCA; where 10 are fitted both have 3 and 4 "
            "here. CPCA's gammas are ours in all variants, in equal ratios up to its exact limit, and not the code's.",
        ),
        row(
            "Figure 6: the best silhouettes of both are roughly equal",
            "0.20 and 0.23",
            lambda pair: f"{pair['cpca']['best']:.2f} and {pair['pcpca']['best']:.2f}",
            lambda pair: abs(pair["cpca"]["best"] - pair["pcpca"]["best"]) < 0.05,
            "Roughly equal only on the third and fourth of 10 components; in the variants of the text and of the code "
            "CPCA is far ahead.",
        ),
        row(
            "Figure 6b: PCPCA's silhouette increases with gamma",
            "monotonically",
            lambda pair: (
                f"from {pair['pcpca']['silhouettes'][0]:.3f} to {pair['pcpca']['silhouettes'][-1]:.3f}, falling by at "
                f"most {falls(pair['pcpca']):.4f} between grid points"
            ),
            lambda pair: falls(pair["pcpca"]) < 0.005,
            "The limit is exact; near it the curve is flat.",
        ),
        row(
            "Figure 6a: CPCA peaks at lower gamma",
            "yes",
            lambda pair: f"at {pair['cpca']['best_gamma']:.2f} of {pair['cpca']['limit']:.2f}",
            lambda pair: pair["cpca"]["best_gamma"] < 0.25 * pair["cpca"]["limit"],
            "Lower: in the first quarter of its range. With the code's components it is best at the very end.",
        ),
        row(
            "Figure 6: CPCA's range is much larger",
            "yes",
            lambda pair: f"to {pair['cpca']['limit']:.2f}, against {pair['pcpca']['limit']:.4f}",
            lambda pair: pair["cpca"]["limit"] > 5 * pair["pcpca"]["limit"],
            "Both limits are exact. The code's axis for CPCA is off by the factor n / m, as for the mice.",
        ),
    ]


def falls(curve: Json) -> float:
    """By how much the silhouette falls at most from one gamma to the next; 0 where it never does."""
    return float(max(0.0, np.max(-np.diff(curve["silhouettes"]))))
