"""Which part of the exact limit should ``gamma="auto"`` take?

PCPCA is fitted at several fractions of the exact limit of gamma' (F3) to labelled real data and to simulations with a
planted foreground-only subspace. The first table says how well the components show what they should, and ends with the
regret of each fraction (best over the fractions minus value); the second says what the same fits are worth as
densities. Run as ``CONTRAPCA_DATA=... python -m experiments.gamma_fraction``; without it only simulations run.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrapca import PCPCA, gamma_limits

from . import _common
from ._data import load_corrupted_mnist, load_zheng_bmmc

Floats = NDArray[np.float64]
Labels = NDArray[Any]

FRACTIONS = (0.0, 0.25, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99)
NUISANCE_DIM = 3
HELD_OUT_ROWS = 1000
DIGIT_ROWS = 2000
DIGIT_SEEDS = 5
SILHOUETTE_ROWS = 1500


@dataclass(frozen=True)
class Curve:
    """One row of a table: a value at each fraction, and the limit they are fractions of."""

    name: str
    limit: float
    values: Floats  # (len(FRACTIONS),)


@dataclass(frozen=True)
class Labelled:
    """Real foreground and background, with the classes that good components of the foreground separate."""

    name: str
    foreground: Floats  # (n, D)
    background: Floats  # (m, D)
    labels: Labels  # (n,)
    n_components: int
    shown: slice  # the components on which the silhouette is taken


def mouse() -> Labelled:
    """Mouse proteins; NaN filled with 0, as in the paper."""
    return Labelled("mouse proteins, d=2", *_common.mouse(), 2, slice(0, 2))


def cells() -> Iterator[Labelled]:
    """Bone-marrow cells of two patients (stand-in foreground) against a healthy donor, log(1 + count)."""
    data = load_zheng_bmmc()
    groups = data.foreground, data.background, data.labels
    yield Labelled("zheng500 stand-in, d=10, comp. 3-4", *groups, 10, slice(2, 4))
    yield Labelled("zheng500 stand-in, d=2", *groups, 2, slice(0, 2))


def digits(seed: int) -> Labelled:
    """Zeros and ones, faint on grass, against grass from elsewhere."""
    data = load_corrupted_mnist(n=DIGIT_ROWS, random_state=seed)
    return Labelled("digits on grass, d=2", data.foreground, data.background, data.labels, 2, slice(0, 2))


def separation(sets: Sequence[Labelled]) -> tuple[Curve, Curve]:
    """Silhouette of the labels, each group standardised by itself, averaged over data sets of one kind.

    First on latents of unit variance, then on whitened ones. Only the latter depends on the shown components' span
    alone: the former may fall where two eigenvalues cross and their components mix.
    """
    values = np.empty((len(sets), 2, len(FRACTIONS)))
    limits = np.empty(len(sets))
    for s, data in enumerate(sets):
        d, X, Y = data.n_components, data.foreground, data.background
        limits[s] = gamma_limits(X, background=Y, n_components=d, scale="group").pcpca
        for i, fraction in enumerate(FRACTIONS):
            model = PCPCA(d, gamma=fraction * limits[s], scale="group").fit(X, background=Y)
            Z = model.transform(X)[:, data.shown]
            sphere = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)[0]
            for j, latents in enumerate((Z, sphere)):
                values[s, j, i] = _common.silhouette(latents, data.labels, rows=SILHOUETTE_ROWS)
    name, limit, (scaled, whitened) = sets[0].name, float(limits.mean()), values.mean(axis=0)
    return Curve(name, limit, scaled), Curve(f"{name}, whitened", limit, whitened)


@dataclass(frozen=True)
class Planted:
    """Gaussian groups with unit noise, shared nuisance directions and a subspace only the foreground varies in.

    Variances are those added to the noise; `planted` counts the dimensions to be found.
    """

    name: str
    planted: int
    n_components: int
    D: int = 50
    n: int = 200
    m: int = 200
    nuisance: float = 25.0
    background_nuisance: float | None = None  # as `nuisance` unless told
    signal: float = 4.0

    def draw(self, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Foreground (n, D), background (m, D), held-out foreground and the planted subspace (D, planted)."""
        rng = np.random.default_rng(seed)
        axes = np.linalg.qr(rng.normal(size=(self.D, NUISANCE_DIM + self.planted)))[0]
        other = self.nuisance if self.background_nuisance is None else self.background_nuisance
        ours = np.sqrt([self.nuisance] * NUISANCE_DIM + [self.signal] * self.planted)
        theirs = np.sqrt([other] * NUISANCE_DIM + [0.0] * self.planted)

        def rows(count: int, deviations: Floats) -> Floats:
            latent = rng.normal(size=(count, deviations.size)) * deviations
            return np.asarray(latent @ axes.T + rng.normal(size=(count, self.D)))

        return rows(self.n, ours), rows(self.m, theirs), rows(HELD_OUT_ROWS, ours), axes[:, NUISANCE_DIM:]


def settings() -> Iterator[Planted]:
    """The main settings, most of them with one and with two planted dimensions (k)."""
    for k in (1, 2):
        yield Planted(f"D=50, n=m=200, k={k}", k, k)
        yield Planted(f"n=100, m=400, k={k}", k, k, n=100, m=400)
        yield Planted(f"n=400, m=100, k={k}", k, k, n=400, m=100)
        yield Planted(f"wide: D=500, n=m=100, k={k}", k, k, D=500, n=100, m=100)
        yield Planted(f"nuisance 100, k={k}", k, k, nuisance=100.0)
        yield Planted(f"weak signal 2, k={k}", k, k, signal=2.0)
        yield Planted(f"background nuisance 15, k={k}", k, k, background_nuisance=15.0)
    yield Planted("d too large: d=4, k=1", 1, 4)


def further_settings() -> Iterator[Planted]:
    """Easier ones, where the planted direction can be found, then ones in which a contrast can only harm."""
    yield Planted("n=m=2000, k=1", 1, 1, n=2000, m=2000)
    yield Planted("signal 10, k=1", 1, 1, signal=10.0)
    yield Planted("nuisance 9, k=1", 1, 1, nuisance=9.0)
    yield Planted("background nuisance 22, k=1", 1, 1, background_nuisance=22.0)
    yield Planted("no nuisance, signal 2, k=1", 1, 1, nuisance=0.0, signal=2.0)
    yield Planted("no nuisance, m=30, k=1", 1, 1, nuisance=0.0, m=30)
    yield Planted("no nuisance, n=m=40, k=1", 1, 1, nuisance=0.0, n=40, m=40)


def simulate(setting: Planted, seeds: int) -> tuple[Curve, Curve, float]:
    """Fit at every fraction, averaged over seeds: directions found, density, and the former's largest standard error.

    Directions: mean squared cosine of the angles between planted subspace and components (1: found, d / D: by chance).
    Density: held-out foreground log-likelihood per row, less that at gamma = 0.
    """
    found, density = np.empty((2, seeds, len(FRACTIONS)))
    limits = np.empty(seeds)
    for seed in range(seeds):
        X, Y, held_out, truth = setting.draw(seed)
        limits[seed] = gamma_limits(X, background=Y, n_components=setting.n_components).pcpca
        for i, fraction in enumerate(FRACTIONS):
            model = PCPCA(setting.n_components, gamma=fraction * limits[seed]).fit(X, background=Y)
            found[seed, i] = np.sum((model.components_ @ truth) ** 2) / setting.planted
            density[seed, i] = model.score(held_out)
    limit = float(limits.mean())
    relative = (density - density[:, :1]).mean(axis=0)
    error = float(found.std(axis=0, ddof=1).max() / np.sqrt(seeds))
    return Curve(setting.name, limit, found.mean(axis=0)), Curve(setting.name, limit, relative), error


def table(title: str, rows: Sequence[Curve], digits: int) -> Iterator[str]:
    """Markdown lines, the best value of each row in bold."""
    yield f"| {title} | limit | " + " | ".join(f"{fraction:g}" for fraction in FRACTIONS) + " |"
    yield "|---|" + "---:|" * (1 + len(FRACTIONS))
    for row in rows:
        written = [f"{value:.{digits}f}" for value in row.values]
        best = written[int(np.argmax(row.values))]
        yield f"| {row.name} | {row.limit:.3f} | " + " | ".join(f"**{t}**" if t == best else t for t in written) + " |"


def regret_lines(groups: dict[str, Sequence[Curve]]) -> Iterator[str]:
    """Worst and mean regret of each fraction over each group of rows, as further lines of a table."""
    for name, rows in groups.items():
        if rows:
            values = np.array([row.values for row in rows])
            lost = values.max(axis=1, keepdims=True) - values
            for kind, regret in (("worst", lost.max(axis=0)), ("mean", lost.mean(axis=0))):
                yield f"| *{kind} regret, {name}* | | " + " | ".join(f"{value:.3f}" for value in regret) + " |"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="simulated data sets per setting")
    seeds = parser.parse_args().seeds
    start = time.perf_counter()
    labelled: list[tuple[Curve, Curve]] = []
    if "CONTRAPCA_DATA" in os.environ:
        grass = [digits(seed) for seed in range(DIGIT_SEEDS)]
        labelled = [separation(sets) for sets in ([mouse()], *([data] for data in cells()), grass)]
    simulated = [simulate(setting, seeds) for setting in settings()]
    further = [simulate(setting, seeds) for setting in further_settings()]
    found, density, errors = zip(*simulated, *further, strict=True)
    groups: dict[str, Sequence[Curve]] = {
        "real": [scaled for scaled, _ in labelled],
        "real, whitened": [whitened for _, whitened in labelled],
        "main simulations": found[: len(simulated)],
        "further simulations": found[len(simulated) :],
    }
    groups["all"] = [row for rows in groups.values() for row in rows]
    print(*table("directions, by fraction of the limit", groups["all"], 3), *regret_lines(groups), sep="\n")
    print(f"\nReal: silhouette (digits: mean of {DIGIT_SEEDS} draws of grass). Simulated: mean squared cosine over")
    print(f"{seeds} seeds, standard error at most {max(errors):.3f}. Limits are means over seeds.\n")
    print(*table("held-out log-likelihood per row, less that at 0", density, 2), sep="\n")
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
