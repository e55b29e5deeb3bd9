"""Mouse proteins with values removed at random: imputation, and what is left of the genotypes in the latents.

As in the authors' code, values missing in the file are 0, each group is standardised by itself, and only then values
are removed; the standardised table is the truth that imputations are compared with.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from contrapca import PCPCA
from contrapca.datasets import load_mouse_protein
from contrapca.exceptions import ContrastWarning, UnboundedError

from ._common import COLOURS, mouse, new_figure, permuted, plain, silhouette, tidy, unit_variance
from ._holes import COLOURS as CURVES
from ._holes import MARKERS, METHODS, draw_curves, fit_all, imputation_errors, with_holes
from ._stages import Json, Row, Tick

TITLE = "Mouse proteins with missing values"
SHOWN = (0.0, 0.2, 0.6, 0.9)  # the text's shares of holes, whose latents the figure shows


def config(*, quick: bool) -> Json:
    """d and gamma of the text; the shares of holes of the text and two more (latents), of the code (imputation)."""
    return {
        "n_components": 2,
        "raw_gamma": 0.4,
        "latent_shares": [0.0, 0.2, 0.4, 0.5, 0.6, 0.9],
        "imputed_shares": [0.2, 0.5, 0.7] if quick else [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7],
        "masks": 3 if quick else 20,
        "code": {"n_components": 10, "raw_gamma": 0.9, "share": 0.5},
    }


def run(config: Json, tick: Tick) -> Json:
    """Imputation errors, (shares, masks) tables; silhouettes of the genotypes for every mask, latents for the first."""
    foreground, background, labels = mouse()
    X, Y = (StandardScaler().fit_transform(table) for table in (foreground, background))
    gamma = config["raw_gamma"] * len(Y) / len(X)
    latents, errors = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContrastWarning)  # rows that lost all values
        for share in config["latent_shares"]:
            tick(f"latents, p = {share}")
            latents.append(see(X, Y, labels, share, gamma, config))
        for share in config["imputed_shares"]:
            tick(f"imputation, p = {share}")
            errors.append([impute(X, Y, share, mask, gamma, config) for mask in range(config["masks"])])
    return {
        "raw_gamma": config["raw_gamma"],
        "gamma": gamma,
        "labels": labels.tolist(),
        "latents": latents,
        "kept_holes": kept_holes(gamma, config),
        "imputed_shares": config["imputed_shares"],
        "error": {name: [[found[name] for found in masks] for masks in errors] for name in METHODS},
        "code": as_the_code(X, Y, config),
    }


def see(X: Any, Y: Any, labels: Any, share: float, gamma: float, config: Json) -> Json:
    """Fits to many masks, seen on the complete rows: silhouettes of PCPCA and PPCA, and the latents of the first."""
    found: Json = {"share": share, "silhouette": [], "permuted": [], "ppca": [], "latents": None}
    for mask in range(config["masks"] if share > 0 else 1):
        left, right = holes(X, Y, share, mask)
        models = fit_all(left, right, config["n_components"], gamma)
        Z = models["PCPCA"].transform(X)
        found["silhouette"].append(silhouette(Z, labels))
        found["permuted"].append(silhouette(Z, permuted(labels, mask)))
        found["ppca"].append(silhouette(models["PPCA, foreground"].transform(X), labels))
        found["latents"] = found["latents"] or plain(unit_variance(Z), 4)
    return found


def holes(X: Any, Y: Any, share: float, mask: int) -> tuple[Any, Any]:
    """Both groups with values removed."""
    rng = np.random.default_rng([mask, round(100 * share)])
    return with_holes(X, share, rng), with_holes(Y, share, rng)


def impute(X: Any, Y: Any, share: float, mask: int, gamma: float, config: Json) -> dict[str, float]:
    """Imputation errors of all methods for one mask."""
    left, right = holes(X, Y, share, mask)
    return imputation_errors(fit_all(left, right, config["n_components"], gamma), left, X)


def kept_holes(gamma: float, config: Json) -> float:
    """Silhouette where the file's own missing values stay missing instead of becoming 0; nothing is removed."""
    data = load_mouse_protein()
    model = PCPCA(config["n_components"], gamma=gamma, scale="group")
    model.fit(data.foreground, background=data.background)
    return silhouette(model.transform(data.foreground), data.labels)


def as_the_code(X: Any, Y: Any, config: Json) -> Json:
    """Whether the settings of the authors' code for imputation have a maximum; if not, the bound of raw gamma."""
    code = config["code"]
    left, right = holes(X, Y, code["share"], 0)
    ratio = len(Y) / len(X)
    try:
        PCPCA(code["n_components"], gamma=code["raw_gamma"] * ratio).fit(left, background=right)
    except UnboundedError as error:
        return {**code, "bounded": False, "raw_limit": float(error.limit / ratio)}
    return {**code, "bounded": True, "raw_limit": None}


def figure(results: Json) -> Any:
    """Latents for each share of holes, their silhouettes, and the imputation errors."""
    shown = results["latents"]
    drawn, axes = new_figure(3, 2, width=4.1, height=3.9)
    labels = np.array(results["labels"])
    for ax, found in zip(axes[:, :2].ravel(), (found for found in shown if found["share"] in SHOWN), strict=True):
        Z = np.array(found["latents"])
        for k, genotype in enumerate(np.unique(labels)):
            ax.scatter(*Z[labels == genotype].T, s=9, linewidths=0, color=COLOURS[k], label=genotype)
        title = f"p = {found['share']:g}: silhouette {found['silhouette'][0]:.2f}"
        ax.set(title=title, xlabel="component 0", ylabel="component 1")
        tidy(ax)
    axes[0, 0].legend(frameon=False, markerscale=2)
    top, bottom = axes[:, 2]
    for kind, name, shift in (("silhouette", METHODS[0], -0.01), ("ppca", METHODS[2], 0.01)):
        style = {"color": CURVES[name], "marker": MARKERS[name]}
        for found in shown:
            places = [found["share"] + shift] * len(found[kind])
            top.plot(places, found[kind], linestyle="", alpha=0.35, ms=3, **style)
        top.plot([found["share"] + shift for found in shown], [np.mean(found[kind]) for found in shown], **style)
    count = len(shown[-1]["silhouette"])
    top.set(title=f"PCPCA holds up to p = 0.6 ({count} masks)", ylabel="silhouette of the genotypes")
    top.set(xlabel="share of values missing, p", ylim=(-0.1, 0.6))
    tidy(top)
    draw_curves(bottom, results["imputed_shares"], results["error"])
    bottom.set(title="PCPCA imputes no better than PPCA", ylabel="mean squared error, standardised", ylim=(0.4, 1.3))
    bottom.legend(frameon=False, fontsize=8, ncols=2, loc="upper center")
    drawn.suptitle("Mouse proteins, a share p of the values removed before the fit; latents of the complete rows")
    return drawn


def rows(results: Json) -> list[Row]:
    """The paper's figures of mouse proteins with missing values, and the sentences about them."""
    seen = {found["share"]: np.array(found["silhouette"]) for found in results["latents"]}
    plainly = {found["share"]: float(np.mean(found["ppca"])) for found in results["latents"]}
    error = {name: np.array(table) for name, table in results["error"].items()}
    means = {name: table.mean(axis=1) for name, table in error.items()}
    masks = error["PCPCA"].shape[1]
    wins = (error["PCPCA"] < error[METHODS[1]]).sum(axis=1)
    code = results["code"]
    shares = results["imputed_shares"]
    by_share = ", ".join(f"{seen[share].mean():.2f} (p = {share:g})" for share in SHOWN)
    ppca = ", ".join(f"{plainly[share]:.2f}" for share in SHOWN)
    spread = "; ".join(f"{np.min(s):.2f} to {np.max(s):.2f} (p = {share:g})" for share, s in seen.items() if share > 0)
    fewer = {share: scores for share, scores in seen.items() if 0 < share < 0.6}
    outside = sum(int(np.sum(np.abs(scores - seen[0.0].mean()) > 0.1)) for scores in fewer.values())
    d = len(results["latents"][0]["latents"][0])
    ratios = np.array([means[name] / means["column means"] for name in METHODS[:3]])
    listed = {name: ", ".join(f"{value:.2f}" for value in means[name]) for name in METHODS}
    unbounded = f"raw gamma must be below {code['raw_limit']:.2f} there" if not code["bounded"] else "it has a maximum"
    return [
        Row(
            "Figure 14: d, gamma",
            "d = 2, gamma = 0.4; Adam",
            f"d = {d}, gamma_raw = {results['raw_gamma']:g}, so gamma' = {results['gamma']:g}; L-BFGS",
            (d, results["raw_gamma"]) == (2, 0.4),
            "Which optimiser does not matter at a maximum; fits here are run until they converge.",
        ),
        Row(
            "Figure 14: latents of the complete foreground, fitted with p = 0, 0.2, 0.6, 0.9 missing",
            "subgroups preserved even with a large fraction masked",
            f"mean silhouettes {by_share}; PPCA of the foreground: {ppca}",
            bool(seen[0.6].mean() > 0.2),
            f"Up to p = 0.6; at 0.9 little is left. {masks} masks for each p; the paper has one. The text's p; the "
            "authors' code has 0, 0.3, 0.5, 0.7. NaN of the file are 0 as in the code; kept as missing values, "
            f"nothing else removed, the silhouette is {results['kept_holes']:.2f}.",
        ),
        Row(
            "Figure 14: silhouette for p < 0.6",
            "steady",
            f"{seen[0.0].mean():.2f} at p = 0; means "
            + ", ".join(f"{scores.mean():.2f} (p = {share:g})" for share, scores in fewer.items())
            + f"; by mask {spread}",
            all(abs(scores.mean() - seen[0.0].mean()) < 0.1 for scores in fewer.values()),
            f"In the mean; in {outside} of {masks * len(fewer)} masks with p < 0.6 it is more than 0.1 off. It depends "
            "on the axes of the plane as well as on the plane, since latents are scaled along them.",
        ),
        Row(
            "Figure 13c: imputation error of mouse proteins",
            "PCPCA consistently lower than PPCA",
            f"PCPCA {listed['PCPCA']}; PPCA of both groups {listed[METHODS[1]]}; PPCA of the foreground "
            f"{listed[METHODS[2]]}; column means {listed['column means']} (p = {', '.join(f'{p:g}' for p in shares)})",
            bool(np.all(means["PCPCA"] < means[METHODS[1]])),
            f"PCPCA has the lower error in {', '.join(map(str, wins))} of {masks} masks. The contrast serves "
            "directions, not densities. All fits here are run to convergence; the authors' code makes 10 steps of Adam "
            f"with d = {code['n_components']} and raw gamma {code['raw_gamma']}, where the objective has no "
            f"maximum ({unbounded} at p = {code['share']:g}).",
        ),
        Row(
            "Figure 13c: sample means as the baseline",
            "in the authors' code; not in the text",
            f"column means {listed['column means']}: the models' errors are {ratios.min():.0%} to {ratios.max():.0%} "
            "of theirs",
            None,
            "Means of what is observed of each protein in the foreground.",
        ),
    ]
