"""What several experiments share: data, silhouettes, intervals, plain values for results.json, the look of figures."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from sklearn.metrics import silhouette_score

from contrapca import CPCA
from contrapca.datasets import load_mouse_protein
from contrapca.inference._path import ContrastPath
from contrapca.plots import BACKGROUND_COLOUR, COLOURS

__all__ = [
    "BACKGROUND_COLOUR",
    "COLOURS",
    "draw_silhouettes",
    "gamma_grid",
    "interval",
    "mouse",
    "new_figure",
    "permuted",
    "plain",
    "projections",
    "silhouette",
    "tidy",
    "unit_variance",
]
GENOTYPES = {"Control": "no Down syndrome", "Ts65Dn": "Down syndrome"}
MOSTLY_MISSING = 40  # of 77 proteins; three foreground rows lack 43 each, all others far fewer


def mouse(*, all_rows: bool = True) -> tuple[Any, Any, Any]:
    """Foreground, background and genotypes of the mouse proteins, missing values as 0, as in the paper's code.

    Parameters
    ----------
    all_rows : bool
        False drops the three foreground rows that are mostly missing, which some of the paper's programs do.
    """
    data = load_mouse_protein()
    keep = np.isnan(data.foreground).sum(axis=1) < (np.inf if all_rows else MOSTLY_MISSING)
    labels = np.array([GENOTYPES[label] for label in data.labels])
    return np.nan_to_num(data.foreground[keep]), np.nan_to_num(data.background), labels[keep]


def projections(path: ContrastPath, X: Any) -> Any:
    """What the paper's code calls latents, shape (G, n, d): W'x for PCPCA, Lambda^(1/2) V'x for CPCA.

    In units of unit variance they are the latents of `path`; as they are, their dimensions weigh differently.
    """
    if isinstance(path.estimator, CPCA):
        return path.latents(X) * np.sqrt(path.eigenvalues)[:, None, :]
    squares = np.array([np.sum(path.loadings(gamma) ** 2, axis=0) for gamma in path.gammas])  # of W's columns
    return path.latents(X) * (squares + path.noise_variance[:, None])[:, None, :]


def unit_variance(latents: Any) -> Any:
    """Latents (n, d), each dimension divided by its standard deviation."""
    return latents / latents.std(axis=0)


def silhouette(latents: Any, labels: Any, *, scaled: bool = True, rows: int | None = None, seed: int = 0) -> float:
    """Silhouette of the labels on (unless not `scaled`) unit-variance latents, on a seeded sample of at most `rows`."""
    Z, labels = np.asarray(latents), np.asarray(labels)
    if scaled:
        Z = unit_variance(Z)
    if rows is not None and len(Z) > rows:
        chosen = np.random.default_rng(seed).permutation(len(Z))[:rows]
        Z, labels = Z[chosen], labels[chosen]
    return float(silhouette_score(Z, labels))


def gamma_grid(method: str, limit: float, points: int, nearest: float = 1e-3) -> Any:
    """`points` gammas from 0 to (1 - `nearest`) of the limit: in equal steps, or, for CPCA, in equal ratios."""
    top = (1 - nearest) * limit
    if method == "pcpca":
        return np.linspace(0, top, points)
    return np.concatenate([[0.0], np.geomspace(0.05, top, points - 1)])  # its range spans decades


def permuted(labels: Any, seed: int = 0) -> Any:
    """The same labels in random order: what any claim about labels must fail on."""
    return np.random.default_rng(seed).permutation(np.asarray(labels))


def interval(values: Any) -> tuple[float, float]:
    """Mean, and half the width of its 95 % interval by Student's t (0 for one value)."""
    if len(values) == 1:
        return float(values[0]), 0.0
    return float(np.mean(values)), float(stats.sem(values) * stats.t.ppf(0.975, len(values) - 1))


def plain(values: Any, digits: int = 5) -> Any:
    """Numbers as (nested) lists, rounded to `digits` significant ones so that results stay small."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        return array.tolist()
    flat = [float(f"{value:.{digits}g}") if array.dtype.kind == "f" else value for value in array.ravel().tolist()]
    shaped = np.empty(array.shape, dtype=object)
    shaped.ravel()[:] = flat
    return shaped.tolist()


def new_figure(columns: int = 1, rows: int = 1, *, width: float = 3.6, height: float = 3.4) -> tuple[Any, Any]:
    """A figure and its axes, shape (rows, columns); no window is opened."""
    from matplotlib.figure import Figure  # late: runs do without matplotlib

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def tidy(ax: Any) -> Any:
    """Axes without a frame at the top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def draw_silhouettes(
    ax: Any, name: str, curve: Any, *, log: bool, of: str, lines: dict[str, float] | None = None
) -> Any:
    """A method's silhouettes against gamma, beside those of permuted labels; the best, the limit and `lines` marked.

    Parameters
    ----------
    ax : matplotlib Axes
    name : str
        The method.
    curve : dict
        gammas, silhouettes, permuted, best, best_gamma, limit.
    log : bool
        Whether gamma spans decades.
    of : str
        What the labels are.
    lines : dict of str to float, optional
        Further values to compare with.
    """
    tidy(ax)
    ax.plot(curve["gammas"], curve["silhouettes"], "o-", markersize=3, color=COLOURS[0], label=name)
    ax.plot(curve["gammas"], curve["permuted"], color=COLOURS[3], linewidth=1, label="permuted labels")
    ax.axhline(curve["best"], color=COLOURS[1], linestyle="--", label=f"best {curve['best']:.3f}")
    for label, value in (lines or {}).items():
        ax.axhline(value, color=COLOURS[2], linestyle="-.", label=f"{label} {value:.3f}")
    ax.axvline(curve["limit"], color="black", linestyle=":", label=f"fails from gamma = {curve['limit']:.4g}")
    if log:
        ax.set_xscale("symlog", linthresh=0.1)
        ax.set_xlim(0, 2 * curve["limit"])
        ticks = [tick for tick in (0, 0.1, 1, 10, 100) if tick < curve["limit"]]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set(xlabel="gamma", ylabel=f"silhouette of the {of}", ylim=(-0.1, 0.6))
    ax.set_title(f"{name}, best at gamma = {curve['best_gamma']:.3g}", fontsize=10)
    ax.legend(frameon=False, fontsize=7, ncols=2, loc="upper left")
    return ax
