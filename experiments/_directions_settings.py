"""Simulated tables with planted contrast directions, and how much of the planted latents a method's directions find.

A foreground row is ``S (F h + L t + e)``, a background row ``S (F' h + G g + c e)``: shared directions F, planted
directions L (what a contrast should find), directions G of the background alone, noise e, and units S of the features.
All latents h, t, g have mean 0 and variance 1, so that strengths are lengths of columns: `nuisance` is the variance
that each column of F adds, `signal` that of each column of L, in units of the noise variance of a feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]

__all__ = ["STANDARD", "Drawn", "Population", "Setting", "random_setting", "reachable", "share"]


@dataclass(frozen=True)
class Population:
    """What a setting draws rows from, and what scores are computed against.

    Attributes
    ----------
    foreground, background : ndarray of shape (D, D)
        Covariances of the two groups.
    planted : ndarray of shape (D, p)
        Covariances of the features with the planted latents, which have unit variance: ``S L``.
    directions : ndarray of shape (D, shared + p)
        All directions of the foreground that are not noise: ``S [F, L]``.
    """

    foreground: Array
    background: Array
    planted: Array
    directions: Array


@dataclass(frozen=True)
class Drawn:
    """One data set: rows (n, D) and (m, D), the block of each row, and the population they come from."""

    foreground: Array
    background: Array
    foreground_blocks: Labels
    background_blocks: Labels
    population: Population


@dataclass(frozen=True)
class Setting:
    """One kind of data set. The defaults are the standard situation: strong shared directions, a weaker planted one.

    Attributes
    ----------
    k : int
        Directions a method is asked for (n_components).
    signal : tuple of float
        Variances of the planted directions, in units of the noise; their number is the truth.
    nuisance : float
        Variance of each shared direction in the foreground; `background_nuisance` times that in the background.
    cosine : float
        Cosine of each planted direction with the span of the shared ones; 0 is orthogonal.
    background_only : int
        Directions that only the background has, each of variance `background_only_variance`.
    background_noise : float
        Noise standard deviation in the background, in units of the foreground's.
    ar : float
        Correlation of the noise of neighbouring features (AR(1)).
    df : float or None
        Degrees of freedom of Student t sources (latents and noise, each scaled to variance 1); None is Gaussian.
    elliptical : bool
        Whether `df` multiplies whole rows (multivariate t) instead of drawing each source by itself.
    binary : bool
        Whether planted latents are -1 or 1 (two subgroups) instead of continuous.
    units : float
        Standard deviation of the logarithm of the features' units.
    block_rows : int
        Rows of one animal, donor or plate; 1 is independent rows.
    block_share : float
        Share of every source's variance that rows of a block have in common.
    """

    name: str
    D: int = 50
    n: int = 200
    m: int = 200
    k: int = 1
    signal: tuple[float, ...] = (4.0,)
    shared: int = 3
    nuisance: float = 25.0
    background_nuisance: float = 1.0
    cosine: float = 0.0
    background_only: int = 0
    background_only_variance: float = 25.0
    background_noise: float = 1.0
    ar: float = 0.0
    df: float | None = None
    elliptical: bool = False
    binary: bool = False
    units: float = 0.0
    block_rows: int = 1
    block_share: float = 0.5

    def draw(self, seed: int | Sequence[int]) -> Drawn:
        """One data set: directions, units and rows are all drawn anew."""
        rng = np.random.default_rng(seed)
        D, p = self.D, len(self.signal)
        basis = np.linalg.qr(rng.normal(size=(D, self.shared + p + self.background_only)))[0]
        F, L, G = np.split(basis, [self.shared, self.shared + p], axis=1)
        if self.cosine and self.shared:
            # Each planted direction leans towards a random direction in the span of the shared ones.
            lean = F @ rng.normal(size=(self.shared, p))
            L = np.sqrt(1 - self.cosine**2) * L + self.cosine * lean / np.linalg.norm(lean, axis=0)
        F = F * np.sqrt(self.nuisance)
        L = L * np.sqrt(self.signal)
        G = G * np.sqrt(self.background_only_variance)
        units = np.exp(self.units * rng.normal(size=D))
        scaled_F, scaled_L, scaled_G = (units[:, None] * loadings for loadings in (F, L, G))
        noise = units[:, None] * _ar_root(D, self.ar)
        own = np.hstack([scaled_F, scaled_L, noise])
        other = np.hstack([np.sqrt(self.background_nuisance) * scaled_F, scaled_G, self.background_noise * noise])
        population = Population(own @ own.T, other @ other.T, scaled_L, own[:, : self.shared + p])
        our_blocks, their_blocks = (np.arange(rows) // self.block_rows for rows in (self.n, self.m))
        planted = slice(self.shared, self.shared + p)
        ours = self._sources(our_blocks, own.shape[1], planted, rng)
        theirs = self._sources(their_blocks, other.shape[1], slice(0, 0), rng)
        return Drawn(ours @ own.T, theirs @ other.T, our_blocks, their_blocks, population)

    def _sources(self, blocks: Labels, count: int, planted: slice, rng: np.random.Generator) -> Array:
        """Latents and noise (rows, count) of variance 1; rows of a block have `block_share` of it in common."""
        rows = len(blocks)

        def independent(number: int) -> Array:
            if self.df is None or self.elliptical:
                return rng.normal(size=(number, count))
            drawn: Array = np.sqrt((self.df - 2) / self.df) * rng.standard_t(self.df, size=(number, count))
            return drawn

        if self.block_rows == 1:
            values = independent(rows)
        else:
            common = independent(int(blocks[-1]) + 1)[blocks]
            values = np.sqrt(self.block_share) * common + np.sqrt(1 - self.block_share) * independent(rows)
        if self.binary:
            values[:, planted] = np.sign(values[:, planted])
        if self.df is not None and self.elliptical:
            # Chi-squared mixing gives a multivariate t; the factor brings its variance back to 1.
            values *= np.sqrt((self.df - 2) / rng.chisquare(self.df, size=(rows, 1)))
        return values


def _ar_root(D: int, correlation: float) -> Array:
    """A square root (D, D) of the covariance ``correlation ** |i - j|``."""
    if not correlation:
        return np.eye(D)
    lags = np.abs(np.subtract.outer(np.arange(D), np.arange(D)))
    covariance: Array = correlation ** lags.astype(np.float64)
    return np.linalg.cholesky(covariance).astype(np.float64)


def reachable(population: Population, k: int, basis: Array | None = None) -> float:
    """Largest R^2, summed over the planted latents, that k directions in the span of `basis` reach on unseen rows.

    The latents t have variance 1 and covariance P with the features. From projections V'x their best linear predictor
    has the R^2 ``tr[(V'P)' (V'SV)^-1 V'P]``, S being the foreground's covariance. Over all V with k columns in the span
    of T, its maximum is the sum of the k largest eigenvalues of ``(T'P)' (T'ST)^-1 T'P``.

    Parameters
    ----------
    population : Population
    k : int
    basis : ndarray of shape (D, p), optional
        Of full column rank; None is the whole space.

    Returns
    -------
    float
        At most the number of planted latents.
    """
    S, P = population.foreground, population.planted
    if basis is not None:
        T = np.linalg.qr(basis)[0]
        S, P = T.T @ S @ T, T.T @ P
    return float(np.linalg.eigvalsh(P.T @ cho_solve(cho_factor(S), P))[::-1][:k].sum())


def share(directions: Array, population: Population, k: int, *, strict: bool = False) -> float:
    """R^2 of the planted latents on unseen rows, as a share of what the true directions reach.

    Both are exact: they follow from the population's covariances, and no test sample is drawn. What is reached is the
    R^2 of the best linear predictor of the planted latents from the rows' projections on `directions`: only their span
    counts. What the true directions reach is the same with the best k directions in the span of all planted and shared
    directions, `population.directions`. So the yardstick knows every direction and every strength, and clears the
    planted latents of what is shared. Where the noise is white, nothing in the whole space does better, and where the
    groups differ in the planted directions alone, it is what the contrast axes reach with infinitely many rows: by
    Woodbury's identity ``S_X^-1 P`` and ``S_Y^-1 P`` span the same space, the leading solutions of
    ``S_X v = theta S_Y v``.

    Where the noise is coloured (units, AR), a predictor that also knows the noise's covariance does better still.
    ``strict=True`` compares with that one, the best linear predictor from all features. Shares above 1, possible only
    with coloured noise and unless `strict`, are cut to 1, so that none makes up for another.

    Parameters
    ----------
    directions : ndarray of shape (D, k)
        Of full column rank.
    population : Population
    k : int
        Directions asked for; where they are fewer than were planted, the best k count.
    strict : bool

    Returns
    -------
    float
        From 0 to 1.
    """
    possible = reachable(population, k, None if strict else population.directions)
    return min(1.0, reachable(population, k, directions) / possible)


STANDARD: tuple[Setting, ...] = (
    Setting("standard"),
    Setting("weak nuisance", nuisance=9.0),
    Setting("strong nuisance", nuisance=100.0),
    Setting("nothing shared, weak plant", shared=0, signal=(2.0,)),
    Setting("stronger plant", signal=(10.0,)),
    Setting("many rows", n=2000, m=2000),
    Setting("30 controls", m=30),
    Setting("30 cases", n=30, signal=(8.0,)),
    Setting("30 cases, 30 controls, 30 features", D=30, n=30, m=30, signal=(10.0,), shared=2),
    Setting("500 features", D=500, n=100, m=100, k=2, signal=(10.0, 10.0)),
    Setting("1000 features", D=1000, n=150, m=150, k=2, signal=(15.0, 15.0)),
    Setting("1000 features, 2000 cases", D=1000, n=2000, m=300, k=2, signal=(6.0, 4.0)),
    Setting("20 of 30 dimensions shared", D=30, n=500, m=500, k=2, signal=(4.0, 4.0), shared=20),
    Setting("20 shared of 100", D=100, n=400, m=200, k=2, signal=(6.0, 4.0), shared=20, nuisance=16.0),
    Setting("oblique", cosine=0.5),
    Setting("very oblique, two directions", k=2, signal=(8.0, 6.0), nuisance=50.0, cosine=0.7),
    Setting("t5 sources", k=2, signal=(6.0, 4.0), df=5.0),
    Setting("t5 rows", k=2, signal=(6.0, 4.0), df=5.0, elliptical=True),
    Setting("two subgroups", binary=True),
    Setting("unequal units", k=2, signal=(6.0, 4.0), units=0.5),
    Setting("5 directions of the background alone", background_only=5),
    Setting("10 strong directions of the background alone", background_only=10, background_only_variance=100.0),
    Setting("AR noise", k=2, signal=(10.0, 8.0), ar=0.6),
    Setting("replicates, 40 + 40 animals", n=400, m=400, signal=(8.0,), block_rows=10),
    Setting("background shares more weakly", background_nuisance=0.7, k=2, signal=(6.0, 4.0)),
    Setting("background noisier", background_noise=1.4, k=2, signal=(8.0, 6.0)),
    Setting("2 shown of 4", k=2, signal=(12.0, 8.0, 4.0, 3.0)),
    Setting("3 shown of 1", k=3),
    Setting("5 of 5", D=100, k=5, signal=(10.0, 8.0, 6.0, 5.0, 4.0), shared=5),
    Setting(
        "everything at once",
        D=200,
        n=300,
        m=150,
        k=2,
        signal=(12.0, 8.0),
        shared=6,
        cosine=0.4,
        background_only=3,
        background_nuisance=1.3,
        ar=0.3,
        df=6.0,
        units=0.2,
    ),
)


def random_setting(seed: int) -> Setting:
    """A setting drawn at random, over the ranges of the standard ones.

    Two ranges follow the rows N of the smaller group, or no method could find much: a planted variance is 2.5 to 8
    times ``1 + sqrt(D / N)``, the largest standard deviation in a table of noise; and the directions that are shared or
    the background's own are together at most N / 5 (of N / 3 directions, N rows cannot tell whether they are shared: a
    failure that is documented by itself).

    Parameters
    ----------
    seed : int
        Recorded in the setting's name.

    Returns
    -------
    Setting
    """
    rng = np.random.default_rng([20261, seed])
    D, n, m = (round(float(np.exp(rng.uniform(np.log(30), np.log(top))))) for top in (1000, 2000, 2000))
    planted = int(rng.integers(1, 5))
    fewest = min(n, m)
    shared = int(rng.integers(0, min(20, fewest // 5, D - planted - 6) + 1))
    strengths = np.sort(rng.uniform(2.5, 8.0, size=planted))[::-1] * (1 + np.sqrt(D / fewest))
    setting = Setting(
        f"random {seed}",
        D=D,
        n=n,
        m=m,
        k=planted,
        signal=tuple(round(float(value), 2) for value in strengths),
        shared=shared,
        nuisance=round(float(np.exp(rng.uniform(np.log(2), np.log(100)))), 2),
    )
    # Every departure is drawn whether or not it is used, so that one setting's numbers do not move another's.
    use = rng.random(8)
    only = int(rng.integers(1, 6))
    options: list[tuple[float, dict[str, Any]]] = [
        (0.4, {"cosine": round(float(rng.uniform(0.2, 0.7)), 2)}),
        (0.3, {"background_only": min(only, fewest // 5 - shared), "background_only_variance": setting.nuisance}),
        (0.25, {"df": round(float(rng.uniform(4.5, 8.0)), 1), "elliptical": bool(rng.random() < 0.5)}),
        (0.2, {"units": round(float(rng.uniform(0.1, 0.5)), 2)}),
        (0.2, {"ar": round(float(rng.uniform(0.2, 0.6)), 2)}),
        (0.3, {"background_nuisance": round(float(rng.uniform(0.7, 1.4)), 2)}),
        (0.2, {"binary": True}),
        (0.4, {"k": max(1, planted + int(rng.choice([-1, 1, 2])))}),
    ]
    for (chance, change), drawn in zip(options, use, strict=True):
        if drawn < chance:
            setting = replace(setting, **change)
    return setting
