"""Are the posteriors calibrated, and do the intervals cover?

*Ranks.* Parameters are drawn from what is known before, rows from the parameters, and draws from the posterior given
these rows; the rank of the parameters among the draws is then uniform (Talts, Betancourt, Simpson, Vehtari and Gelman
2018). CPCA's posterior is exact for rows N(0, l V V' + sigma2 I) of known l and sigma2 at the power
l / (2 sigma2 (sigma2 + l)), with V uniform before. The flat prior of PPCA is no distribution to draw from, so that its
parameters are drawn from the posterior of a first table, and the rank is taken among draws given that table and a
second one. Both also run with twice the right power, which must show.

*Coverage.* Shares of the truths in intervals: of PPCA's posterior, of latents and imputed values given a fit, and of
the held-out ratio. The intervals of the bootstrap are the study `coverage`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import chisquare, norm, ortho_group

from contrapca import CPCA, PPCA, ContraPCA, Moments, held_out_contrast, posterior
from contrapca.contrast._subspaces import align
from contrapca.moments._scatter import DenseScatter

from . import _common
from ._stages import Json, Row, Tick

TITLE = "Are the posteriors calibrated, and do the intervals cover?"
DRAWS, BINS = 63, 8  # draws that a rank is taken among, and bins of the 64 ranks
THIN = 4  # every 4th draw of a chain is taken
SAMPLER: dict[str, Any] = {"draws": THIN * DRAWS, "tune": 200, "chains": 1, "progress": False}
LEAST_P = 1e-3  # of a calibrated posterior; the wrong power must be below it
LEVELS = (0.5, 0.9)
SLACK = 0.03  # what intervals that take the fit for the truth may lack

Draws = dict[str, Any]  # of each statistic: one value, or many


def config(*, quick: bool) -> Json:
    """How many ranks of each posterior, and how many data sets of each kind of interval."""
    ranks = {"CPCA, 1 direction": 64, "CPCA, 2 directions": 16, "PPCA": 32} if quick else dict.fromkeys(RANKS, 200)
    return {"ranks": ranks, "datasets": 10 if quick else 100, "powers": [1.0, 2.0]}


def run(config: Json, tick: Tick) -> Json:
    """Ranks of each statistic and power; shares covered, with standard errors."""
    found: Json = {"ranks": {}, "covered": {}, "datasets": config["datasets"]}
    for name, ranks in RANKS.items():
        for power in config["powers"]:
            seen = []
            repeats = config["ranks"][name]
            for k, one in enumerate(ranks(power, repeats, _random(f"{name} {power}"))):
                tick(f"{name}, power {power:g}: {k + 1} of {repeats}")
                seen.append(one)
            own = {key: [one[key] for one in seen] for key in seen[0]}
            found["ranks"].setdefault(name, {})[f"{power:g}"] = own
    for name, covered in COVERED.items():
        random, shares = _random(name), []
        for k in range(config["datasets"]):
            tick(f"{name}: {k + 1} of {config['datasets']}")
            shares.append(covered(random))
        found["covered"][name] = {
            level: [float(np.mean(own)), float(np.std(own, ddof=1) / np.sqrt(len(own)))]
            for level in shares[0]
            for own in [[share[level] for share in shares]]
        }
    return found


def _random(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def _ranks(truth: Draws, draws: Draws) -> dict[str, int]:
    """How many of the draws are below the truth."""
    return {name: int(np.sum(np.ravel(draws[name])[::THIN][:DRAWS] < value)) for name, value in truth.items()}


# ---------------------------------------------------------------------- ranks


def cpca_ranks(d: int) -> Callable[[float, int, np.random.Generator], Iterator[dict[str, int]]]:
    """CPCA's posterior (the matrix Bingham distribution) of d directions among 5 features, from 25 rows."""
    D, n, length = 5, 25, 3.0
    right = length / (2 * (1 + length))

    def statistics(V: Any, S: Any) -> Draws:
        projected = np.einsum("...id,...jd->...ij", V, V)
        return {
            "projector, entry 1, 1": projected[..., 0, 0],
            "projector, entry 1, 2": projected[..., 0, 1],
            "objective": np.einsum("...id,ij,...jd->...", V, S, V),
        }

    def ranks(power: float, repeats: int, random: np.random.Generator) -> Iterator[dict[str, int]]:
        for _ in range(repeats):
            V = ortho_group.rvs(D, random_state=random)[:, :d]
            X = np.sqrt(length) * random.standard_normal((n, d)) @ V.T + random.standard_normal((n, D))
            S = np.cov(X.T, ddof=0) * n
            found = posterior(CPCA(d, gamma=0).fit(X), X, power=power * right, random_state=random, **SAMPLER)
            yield _ranks(statistics(V, S), statistics(found.loadings, S))

    return ranks


def ppca_ranks(power: float, repeats: int, random: np.random.Generator) -> Iterator[dict[str, int]]:
    """PPCA's posterior of one dimension among 4 features, from 30 rows before and 30 more; their mean is known: 0."""
    D, n = 4, 30

    def scatter(A: Any) -> Any:
        rows = random.standard_normal((n, D)) @ np.linalg.cholesky(A).T
        return rows.T @ rows

    def draws_from(S: Any, rows: int, **options: Any) -> Any:
        moments = Moments(float(rows), np.zeros(D), DenseScatter(S))
        return posterior(PPCA(1).fit(moments), moments, random_state=random, **SAMPLER | options)

    def statistics(A: Any, sigma2: Any) -> Draws:
        first = np.linalg.eigh(A)[1][..., :, -1]
        return {
            "noise variance": sigma2,
            "covariance, entry 1, 1": A[..., 0, 0],
            "log determinant": np.linalg.slogdet(A)[1],
            "projector, entry 1, 1": first[..., 0] ** 2,
        }

    before = scatter(np.diag([4.0, 1, 1, 1]))
    known = draws_from(before, n, draws=THIN * max(repeats, DRAWS))  # every 4th draw is one set of parameters
    drawn = known.covariance_draws()[0, ::THIN], known.noise_variance[0, ::THIN]
    for A, sigma2 in list(zip(*drawn, strict=True))[:repeats]:
        found = draws_from(before + scatter(A), 2 * n, power=power)
        yield _ranks(statistics(A, sigma2), statistics(found.covariance_draws(), found.noise_variance))


RANKS = {"CPCA, 1 direction": cpca_ranks(1), "CPCA, 2 directions": cpca_ranks(2), "PPCA": ppca_ranks}


# ---------------------------------------------------------------------- intervals


def _inside(ends: Any, truth: Any) -> float:
    return float(np.mean((ends[0] <= truth) & (truth <= ends[1])))


def _planted(random: np.random.Generator, n: int, D: int, d: int) -> tuple[Any, Any, Any]:
    """Rows of a model with unit noise, their latents, and the loadings."""
    W, Z = 2 * random.standard_normal((D, d)), random.standard_normal((n, d))
    return Z @ W.T + random.standard_normal((n, D)), Z, W


def posterior_covers(random: np.random.Generator) -> dict[str, float]:
    """PPCA's posterior: noise variance and loadings, turned towards the estimate."""
    X, _, W = _planted(random, 60, 5, 2)
    found = posterior(PPCA(2).fit(X), X, random_state=random, **SAMPLER)
    truth = align(W[None], found.estimate)[0]
    shares = {f"loadings, {level:.0%}": _inside(found.interval(level), truth) for level in LEVELS}
    return shares | {f"noise variance, {level:.0%}": _inside(found.noise_interval(level), 1.0) for level in LEVELS}


def latents_cover(random: np.random.Generator) -> dict[str, float]:
    """latent_posterior of 100 new rows, given a fit to 200."""
    X, Z, W = _planted(random, 300, 8, 1)
    model = PPCA(1).fit(X[:200])
    mean, covariance = model.latent_posterior(X[200:])
    truth = Z[200:] * np.sign(np.sum(W * model.loadings_))
    reach = np.sqrt(covariance[:, 0])
    return {f"{level:.0%}": _inside(_around(mean, reach, level), truth) for level in LEVELS}


def imputed_cover(random: np.random.Generator) -> dict[str, float]:
    """impute of the values that a fifth of 200 rows x 8 features lacks, with a fit to these rows."""
    X, _, _ = _planted(random, 200, 8, 2)
    missing = random.random(X.shape) < 0.2
    incomplete = np.where(missing, np.nan, X)
    filled, deviation = PPCA(2).fit(incomplete).impute(incomplete, return_std=True)
    around = {level: _around(filled[missing], deviation[missing], level) for level in LEVELS}
    return {f"{level:.0%}": _inside(ends, X[missing]) for level, ends in around.items()}


def _around(mean: Any, deviation: Any, level: float) -> tuple[Any, Any]:
    reach = norm.ppf((1 + level) / 2) * deviation
    return mean - reach, mean + reach


def held_out_covers(random: np.random.Generator) -> dict[str, float]:
    """held_out_contrast: its interval of the ratio that axes of half of the rows have in truth."""
    D, n, m = 10, 150, 120
    own, shared = random.standard_normal((2, D))
    cov_x, cov_y = np.eye(D) + np.outer(own, own) + np.outer(shared, shared), np.eye(D) + np.outer(shared, shared)
    X, Y = (random.multivariate_normal(np.zeros(D), cov, size=rows) for cov, rows in ((cov_x, n), (cov_y, m)))
    estimator = ContraPCA(1, gamma=0.2, n_latent=3)
    found = held_out_contrast(estimator, X, background=Y)
    logs = []
    for k in range(2):
        fit = estimator.fit(X[np.arange(n) % 2 != k], background=Y[np.arange(m) % 2 != k])
        v = fit.components_[0]
        logs.append(np.log((v @ cov_x @ v) / (v @ cov_y @ v)))
    low, high = np.log(found.intervals[0])
    return {"two standard errors": float(low <= np.mean(logs) <= high)}


COVERED: dict[str, Callable[[np.random.Generator], dict[str, float]]] = {
    "posterior of PPCA": posterior_covers,
    "latents of new rows": latents_cover,
    "imputed values": imputed_cover,
    "held-out ratio": held_out_covers,
}


def nominal(level: str) -> float:
    """The share that a level promises."""
    return 0.954 if level == "two standard errors" else float(level.rpartition(" ")[2].removesuffix("%")) / 100


# ---------------------------------------------------------------------- results


def p_value(ranks: list[int]) -> float:
    """Of uniform ranks, by a chi-square test of 8 bins."""
    counts = np.histogram(ranks, bins=BINS, range=(0, DRAWS + 1))[0]
    return float(chisquare(counts).pvalue)


def figure(results: Json) -> Any:
    """Histograms of ranks at the right power and at twice that, and shares covered."""
    figure, axes = _common.new_figure(len(results["ranks"]) + 1, width=3.4, height=3.2)
    for axis, (name, powers) in zip(axes[0], results["ranks"].items(), strict=False):
        _common.tidy(axis)
        for (power, own), colour in zip(powers.items(), _common.COLOURS, strict=False):
            heights = np.mean(
                [np.histogram(r, bins=BINS, range=(0, DRAWS + 1))[0] / len(r) for r in own.values()], axis=0
            )
            axis.stairs(heights * BINS, np.linspace(0, 1, BINS + 1), color=colour, label=f"power {power}")
        axis.axhline(1.0, color="0.8", zorder=0)
        axis.set(title=name, xlabel="rank of the truth", ylim=(0, None))
        axis.legend(frameon=False, fontsize=7)
    axis = _common.tidy(axes[0][-1])
    rows = [(f"{name}, {level}", nominal(level), *found) for name, own in results["covered"].items()
            for level, found in own.items()]  # fmt: skip
    for place, (_, promised, share, error) in enumerate(rows[::-1]):
        axis.plot([promised], [place], "|", color="0.6", markersize=12)
        axis.errorbar([share], [place], xerr=2 * error, fmt="o", color=_common.COLOURS[0], markersize=4)
    axis.set_yticks(range(len(rows)), [row[0] for row in rows[::-1]], fontsize=6)
    axis.set(xlabel="share covered", xlim=(0, 1))
    return figure


def rows(results: Json) -> list[Row]:
    """What was promised beside what was found."""
    found = []
    for name, powers in results["ranks"].items():
        for power, own in powers.items():
            for statistic, ranks in own.items():
                p, right = p_value(ranks), power == "1"
                wanted = "uniform ranks" if right else "not uniform (the wrong power)"
                # A wrong power shows in some statistic, not in each.
                same = p > LEAST_P if right else None
                note = f"{len(ranks)} tables, chi-square test"
                found.append(Row(f"{name}, {statistic}, {power} x the power", wanted, f"p = {p:.2g}", same, note))
    for name, own in results["covered"].items():
        for level, (share, error) in own.items():
            promised = nominal(level)
            at_least = np.sqrt(promised * (1 - promised) / results["datasets"])  # where all or none are covered
            same = bool(abs(share - promised) <= 3 * max(error, at_least if error == 0 else 0.0) + SLACK)
            note = f"{results['datasets']} data sets, standard error {error:.3f}"
            found.append(Row(f"{name}, {level}", f"{promised:.3f}", f"{share:.3f}", same, note))
    return found
