"""The paper's simulation with missing values: is a contrast worth its price for densities and imputation?

Foreground and background come from separate PPCA models (n = m = 100, D = 10, d = 2, sigma2 = 1, loadings standard
normal); values are removed with probability p. PCPCA at raw gamma 0.05 is compared with PPCA of the pooled rows, as in
the paper, and with PPCA of the foreground alone, the honest baseline. Figures: log-likelihood per held-out foreground
row, and mean squared error of the imputed foreground values. Run as ``python -m experiments.missing_simulation``.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

from contrapca import PCPCA, PPCA
from contrapca.exceptions import ContrastWarning

N_ROWS, N_FEATURES, N_LATENT, SIGMA2, RAW_GAMMA = 100, 10, 2, 1.0, 0.05
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
HELD_OUT, STARTS = 1000, 4
METHODS = ("PCPCA", "PPCA of both", "PPCA of the foreground")


def draw(rows: int, W: Any, rng: np.random.Generator) -> Any:
    """Rows of one PPCA model, shape (rows, D)."""
    noise = np.sqrt(SIGMA2) * rng.standard_normal((rows, N_FEATURES))
    return rng.standard_normal((rows, N_LATENT)) @ W.T + noise


def repeat(share: float, seed: int) -> Any:
    """Held-out log-likelihood and imputation error of each method, shape (3, 2); the error is nan without holes."""
    rng = np.random.default_rng([seed, int(100 * share)])
    W_f, W_b = rng.standard_normal((2, N_FEATURES, N_LATENT))
    X, Y, new = draw(N_ROWS, W_f, rng), draw(N_ROWS, W_b, rng), draw(HELD_OUT, W_f, rng)
    left, right = (np.where(rng.random(table.shape) < share, np.nan, table) for table in (X, Y))
    starts: dict[str, Any] = {"n_init": STARTS, "random_state": 0}
    models = {
        "PCPCA": PCPCA(N_LATENT, gamma=RAW_GAMMA * len(Y) / len(X), **starts).fit(left, background=right),
        "PPCA of both": PPCA(N_LATENT, **starts).fit(np.vstack([left, right])),
        "PPCA of the foreground": PPCA(N_LATENT, **starts).fit(left),
    }
    holes = np.isnan(left)
    return np.array(
        [
            [model.score(new), np.mean((model.impute(left) - X)[holes] ** 2) if holes.any() else np.nan]
            for model in (models[name] for name in METHODS)
        ]
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m experiments.missing_simulation", description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ContrastWarning)  # rows that lost all values
    results = np.array([[repeat(share, seed) for seed in range(options.repeats)] for share in SHARES])
    for k, (what, sign) in enumerate((("held-out log-likelihood per row", 1), ("mean squared imputation error", -1))):
        print(f"\n| {what}: p | {' | '.join(METHODS)} | PCPCA better than PPCA of both |")
        print("|---|" + "---:|" * (len(METHODS) + 1))
        for share, values in zip(SHARES, results[..., k], strict=True):
            wins = int(np.sum(sign * (values[:, 0] - values[:, 1]) > 0))
            means = " | ".join(f"{value:.3f}" for value in values.mean(axis=0))
            print(f"| {share} | {means} | {wins} of {options.repeats} |")


if __name__ == "__main__":
    main()
