"""Which criterion chooses which gamma, and what it is worth: three real sets, two simulations with known truth.

For each criterion of GammaSearch: the chosen gamma as a share of the limit, and a figure that it does not see (except
"silhouette", which is given the labels): silhouette of known labels on unit-variance latents (real
sets; "best" is that of a 200-point grid), mean squared cosine with the planted plane (simulations). ``--nulls N`` runs
the permutation test of contrast_test on N null data sets instead.
Run as ``CONTRAPCA_DATA=... python -m experiments.choosing_gamma``.
"""

from __future__ import annotations

import argparse
import os
import warnings
from typing import Any

import numpy as np

from contrapca import GammaSearch, contrast_path, contrast_test
from contrapca.datasets import make_hidden_clusters
from contrapca.exceptions import ContrastWarning

from ._common import silhouette
from .gamma_fraction import SILHOUETTE_ROWS, cells, digits, mouse

CRITERIA = ("contrast", "limit", "silhouette", "heldout")


def real() -> list[str]:
    """One line for each real set, d = 2."""
    lines = []
    for data in (mouse(), list(cells())[1], digits(0)):
        X, Y = data.foreground, data.background
        scaled: dict[str, Any] = {"scale": "group", "n_components": 2}
        limit = contrast_path(X, background=Y, gammas=[0.0], **scaled).limit
        grid = contrast_path(X, background=Y, gammas=np.linspace(0, 0.9999 * limit, 200), **scaled)
        sample = {"labels": data.labels, "rows": SILHOUETTE_ROWS}
        best = max(silhouette(Z, **sample) for Z in grid.latents(X))
        shown = []
        for criterion in CRITERIA:
            search = GammaSearch(criterion, random_state=0, **scaled).fit(X, background=Y, labels=data.labels)
            shown.append(f"{search.best_gamma_ / limit:.2f}: {silhouette(search.transform(X), **sample):.3f}")
        lines.append(f"| {data.name} | {best:.3f} | {' | '.join(shown)} |")
    return lines


def simulated() -> list[str]:
    """Hidden clusters with moderate and strong nuisance, 10 seeds each."""
    lines = []
    for nuisance in (3.0, 6.0):
        shares, cosines = np.zeros((10, 4)), np.zeros((10, 4))
        for seed in range(10):
            data = make_hidden_clusters(200, 200, 20, nuisance=nuisance, random_state=seed)
            for k, criterion in enumerate(CRITERIA):
                search = GammaSearch(criterion, random_state=0)
                search.fit(data.foreground, background=data.background, labels=data.labels)
                shares[seed, k] = search.best_gamma_ / search.path_.limit
                found = search.best_estimator_.components_ @ data.plane
                cosines[seed, k] = np.sum(found**2) / 2
        shown = [f"{a:.2f}: {b:.3f}" for a, b in zip(shares.mean(axis=0), cosines.mean(axis=0), strict=True)]
        name = f"hidden clusters, nuisance sd {nuisance:g}: squared cosine with the truth"
        lines.append(f"| {name} | | {' | '.join(shown)} |")
    return lines


def nulls(count: int) -> str:
    """The share of null data sets (both groups from one distribution) in which a dimension is found at 5 %."""
    found = 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        scales = np.exp(rng.standard_normal(10))
        X, Y = (rng.standard_normal((n, 10)) * scales for n in (80, 60))
        test = contrast_test(X, background=Y, method="permutation", n_permutations=99, random_state=seed)
        found += test.n_components > 0
    error = np.sqrt(0.05 * 0.95 / count)
    return f"{found} of {count} null data sets: {found / count:.2%} (5 % expected, standard error {error:.2%})"


def main() -> None:
    """Print the table, or the result of the null runs."""
    parser = argparse.ArgumentParser(prog="python -m experiments.choosing_gamma", description=__doc__)
    parser.add_argument("--nulls", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ContrastWarning)
    if options.nulls:
        print(nulls(options.nulls))
        return
    print(f"| share of the limit: figure | best | {' | '.join(CRITERIA)} |")
    print("|---|---|" + "---|" * len(CRITERIA))
    if "CONTRAPCA_DATA" in os.environ:
        print(*real(), sep="\n")
    print(*simulated(), sep="\n")


if __name__ == "__main__":
    main()
