"""Posteriors of the paper's toy data, and how fast they contract.

Toy (kind "posterior", gamma = 0.85): for n = m = 30, 60 and 300 in each of several data sets, how many posteriors are
proper (infeasible fits and improper posteriors are refused, not sampled), and the angle of the draws to the axis that
separates the subgroups. Contraction (F14): the foreground is one Gaussian; for n = 50, ..., 500 rows in all, the share
of draws whose risk divergence d exceeds C n^(-1/2), and log(n) / 2 n^(-1/2).
Run as ``python -m experiments.posterior``.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

from contrapca import PCPCA, divergence
from contrapca.datasets import make_toy
from contrapca.exceptions import ContrastWarning, ImproperPosteriorError, InfeasibleGammaError

GAMMA = 0.85
TOY_SIZES, TOY_SETS = (30, 60, 300), 30
SIZES, REPEATS = (50, 100, 200, 300, 400, 500), 20
# Population of the contraction experiment: foreground with its own direction, background the shared axis.
FOREGROUND = np.array([[6.25, 0.35], [0.35, 6.25]])
BACKGROUND = np.array([[4.0, 2.6], [2.6, 4.0]])
CONTRACTION_GAMMA, C = 0.5, 4.0


def toy(draws: int) -> list[str]:
    """One line for each size."""
    lines = [
        "| n = m | infeasible | improper | sampled | median angle, degrees | 90 % of draws within |",
        "|" + "---|" * 6,
    ]
    for n in TOY_SIZES:
        infeasible, improper, angles = 0, 0, []
        for seed in range(TOY_SETS):
            data = make_toy(n, n, kind="posterior", random_state=seed)
            try:
                model = PCPCA(1, gamma=GAMMA).fit(data.foreground, background=data.background)
                posterior = model.posterior(draws=draws, tune=draws, chains=2, random_state=seed, progress=False)
            except InfeasibleGammaError:
                infeasible += 1
            except ImproperPosteriorError:
                improper += 1
            else:
                bases = posterior.bases()[..., 0]
                angles.append(np.degrees(np.arccos(np.clip(np.abs(bases @ data.plane[:, 0]), 0, 1))).ravel())
        pooled = np.concatenate(angles)
        shown = f"{np.median(pooled):.1f} | {np.quantile(pooled, 0.9):.1f}"
        lines.append(f"| {n} | {infeasible} | {improper} | {len(angles)} | {shown} |")
    return lines


def contraction(draws: int) -> list[str]:
    """One line for each number of rows, and the fitted rate."""
    lines = [f"| n | median of sqrt(n) d | share with d > {C:g} / sqrt(n) | share with d > log(n) / (2 sqrt(n)) |"]
    lines.append("|---|---|---|---|")
    settings: dict[str, Any] = {"beta": 0.5, "gamma": CONTRACTION_GAMMA}
    medians = []
    for n in SIZES:
        scaled = []
        for seed in range(REPEATS):
            rng = np.random.default_rng([n, seed])
            X = rng.multivariate_normal([0, 0], FOREGROUND, n // 2)
            Y = rng.multivariate_normal([0, 0], BACKGROUND, n // 2)
            model = PCPCA(1, gamma=CONTRACTION_GAMMA).fit(X, background=Y)
            found = model.posterior(draws=draws, tune=draws, chains=2, random_state=seed, progress=False)
            values = divergence(found.loadings, found.sigma2, FOREGROUND, BACKGROUND, **settings)
            scaled.append(np.sqrt(n) * values.ravel())
        pooled = np.concatenate(scaled)
        medians.append(np.median(pooled) / np.sqrt(n))
        shares = [np.mean(pooled > C), np.mean(pooled > np.log(n) / 2)]
        lines.append(f"| {n} | {np.median(pooled):.2f} | {shares[0]:.4f} | {shares[1]:.4f} |")
    slope = np.polyfit(np.log(SIZES), np.log(medians), 1)[0]
    return [*lines, "", f"The median divergence falls as n to the power {slope:.2f} ({REPEATS} data sets for each n)."]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m experiments.posterior", description=__doc__)
    parser.add_argument("--draws", type=int, default=500)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ContrastWarning)  # short chains
    print(*toy(options.draws), "", *contraction(options.draws), sep="\n")


if __name__ == "__main__":
    main()
