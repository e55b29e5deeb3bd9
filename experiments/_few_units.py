"""Tables without a contrast, of few rows or blocks, or of blocks of unequal size (F44); and tables with a weak one.

Each setting draws both groups and the blocks, if there are any, from a generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Law = Callable[[np.random.Generator, int, int], Array]
Sizes = Callable[[np.random.Generator], Sequence[int]]
Setting = Callable[[np.random.Generator], tuple[Array, Array, dict[str, Any]]]


def gauss(rng: np.random.Generator, n: int, D: int) -> Array:
    return rng.standard_normal((n, D))


def t3(rng: np.random.Generator, n: int, D: int) -> Array:
    return rng.standard_t(3, size=(n, D))


def t3_rows(rng: np.random.Generator, n: int, D: int) -> Array:
    return rng.standard_normal((n, D)) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3)


def lognormal(sigma: float = 1.0) -> Law:
    return lambda rng, n, D: rng.lognormal(sigma=sigma, size=(n, D))


def poisson(rate: float) -> Law:
    return lambda rng, n, D: rng.poisson(rate, size=(n, D)).astype(float)


def binary(share: float) -> Law:
    return lambda rng, n, D: (rng.random((n, D)) < share).astype(float)


def negative_binomial(rng: np.random.Generator, n: int, D: int) -> Array:
    return rng.poisson(rng.gamma(0.5, 2, size=(n, D))).astype(float)


def mixture(rng: np.random.Generator, n: int, D: int) -> Array:
    """15 % of the rows are moved along the first feature."""
    return rng.standard_normal((n, D)) + 4 * (rng.random((n, 1)) < 0.15) * np.eye(1, D)


def contaminated(rng: np.random.Generator, n: int, D: int) -> Array:
    """5 % of the rows are eight times as large."""
    return rng.standard_normal((n, D)) * np.where(rng.random((n, 1)) < 0.05, 8, 1)


def rounded(rng: np.random.Generator, n: int, D: int) -> Array:
    return np.round(0.6 * rng.standard_normal((n, D)))


def scales(rng: np.random.Generator, n: int, D: int) -> Array:
    return rng.standard_normal((n, D)) * np.geomspace(1, 1000, D)


def rows(law: Law, n: int, m: int, D: int = 5) -> Setting:
    return lambda rng: (law(rng, n, D), law(rng, m, D), {})


def equal(n_blocks: int, n_rows: int) -> Sizes:
    return lambda rng: [n_rows] * n_blocks


def between(n_blocks: int, least: int, most: int) -> Sizes:
    return lambda rng: rng.integers(least, most + 1, n_blocks).tolist()


def blocks(x: Sizes, y: Sizes, icc: float, law: Law = gauss, *, paired: int = 0, spread: float = 0.0) -> Setting:
    """Blocks with effects of their own; the first `paired` are in both groups, which share half of their effects.

    `icc` is the effects' part of the variance of a feature, `spread` the standard deviation of the logarithm of the
    blocks' own deviations.
    """

    def draw(rng: np.random.Generator) -> tuple[Array, Array, dict[str, Any]]:
        sizes, D = (x(rng), y(rng)), 5
        common = law(rng, max(map(len, sizes)), D)
        tables, labels = [], []
        for group, own in enumerate(sizes):
            effects, both = law(rng, len(own), D), np.arange(len(own)) < paired
            effects[both] = (effects[both] + common[: len(own)][both]) / np.sqrt(2)
            block = np.repeat(np.arange(len(own)), own)
            deviation = np.exp(spread * rng.standard_normal(len(own)))[block, None]
            tables.append(np.sqrt(icc) * effects[block] + np.sqrt(1 - icc) * deviation * law(rng, len(block), D))
            labels.append(np.where(block < paired, block, block + 1000 * (group + 1)))
        return tables[0], tables[1], {"blocks": (labels[0], labels[1])}

    return draw


LAWS: dict[str, Law] = {"gauss": gauss, "t3": t3, "lognormal": lognormal(), "Poisson(1)": poisson(1.0)}
NUMBERS = (
    *((4, 4), (6, 6), (7, 7), (8, 8), (10, 10), (12, 12), (16, 16), (20, 20), (4, 100), (6, 100), (100, 6)),
    *((8, 200), (200, 8), (12, 40), (20, 60)),
)
FEW: dict[str, Setting] = {f"{name} {n}+{m}x5": rows(law, n, m) for name, law in LAWS.items() for n, m in NUMBERS}
for _name in ("gauss", "lognormal"):
    for _icc in (0.0, 0.4, 0.8):
        for _paired in (0, 1):
            _of = f"{_name}, {'pairs' if _paired else 'blocks'}, icc {_icc}, "
            for _text, _x, _y, _count in (
                ("15x50 v 15x5", equal(15, 50), equal(15, 5), 15),
                ("15x50 v 15x2", equal(15, 50), equal(15, 2), 15),
                ("20x2 v 20x50", equal(20, 2), equal(20, 50), 20),
                ("15 of 1-100", between(15, 1, 100), between(15, 1, 100), 15),
                ("8x20 v 8x20", equal(8, 20), equal(8, 20), 8),
            ):
                FEW[_of + _text] = blocks(_x, _y, _icc, LAWS[_name], paired=_count * _paired)
        FEW[f"{_name}, blocks, icc {_icc}, 8x20 v 60x3"] = blocks(equal(8, 20), equal(60, 3), _icc, LAWS[_name])
        FEW[f"{_name}, blocks, icc {_icc}, 60x20 v 8x3"] = blocks(equal(60, 20), equal(8, 3), _icc, LAWS[_name])
        FEW[f"{_name}, blocks, icc {_icc}, 50 of 1-9 v 12x50"] = blocks(
            between(50, 1, 9), equal(12, 50), _icc, LAWS[_name]
        )
FEW |= {
    "binary(.3) 12+60x10": rows(binary(0.3), 12, 60, 10),
    "binary(.3) 60+12x10": rows(binary(0.3), 60, 12, 10),
    "nearly constant, binary(.02) 30+30x10": rows(binary(0.02), 30, 30, 10),
    "nearly constant, binary(.02) 12+12x30": rows(binary(0.02), 12, 12, 30),
    "nearly constant, Poisson(.02) 10+200x20": rows(poisson(0.02), 10, 200, 20),
    **{f"nearly constant, Poisson(.1) {n}+{n}x10": rows(poisson(0.1), n, n, 10) for n in (8, 10, 12, 16, 20)},
    "mixture 20+20x5": rows(mixture, 20, 20),
    "mixture 8+60x5": rows(mixture, 8, 60),
    "contaminated 20+20x5": rows(contaminated, 20, 20),
    "contaminated 12+40x5": rows(contaminated, 12, 40),
    "t3 rows 16+16x5": rows(t3_rows, 16, 16),
    "t3 rows 8+100x5": rows(t3_rows, 8, 100),
    "lognormal(1.5) 20+20x5": rows(lognormal(1.5), 20, 20),
    "lognormal(1.5) 10+100x5": rows(lognormal(1.5), 10, 100),
    "negative binomial 16+16x10": rows(negative_binomial, 16, 16, 10),
    "gauss 8+8x2": rows(gauss, 8, 8, 2),
    "lognormal 8+40x2": rows(lognormal(), 8, 40, 2),
    "gauss 10+10x300": rows(gauss, 10, 10, 300),
    "lognormal 15+15x300": rows(lognormal(), 15, 15, 300),
    "rounded 12+12x4": rows(rounded, 12, 12, 4),
    "scales of 1 to 1000, 12+12x10": rows(scales, 12, 12, 10),
    "blocks of unequal spread, 12x20 v 12x20": blocks(equal(12, 20), equal(12, 20), 0.3, spread=0.7),
    "blocks of unequal spread, 15x50 v 15x5": blocks(equal(15, 50), equal(15, 5), 0.3, spread=0.7),
    "pairs of unequal spread, 15x30 v 15x4": blocks(equal(15, 30), equal(15, 4), 0.3, paired=15, spread=1.0),
    "15 of 1-100 v 15 of 1-5": blocks(between(15, 1, 100), between(15, 1, 5), 0.4),
    "15 of 1-5 v 15 of 1-100": blocks(between(15, 1, 5), between(15, 1, 100), 0.4),
    "6 pairs, 6 and 6 blocks": blocks(equal(12, 10), equal(12, 10), 0.5, paired=6),
    "8 pairs, 4 and 20 blocks, lognormal": blocks(equal(12, 20), equal(28, 5), 0.5, lognormal(), paired=8),
    "3 pairs, 5 and 40 blocks": blocks(equal(8, 20), equal(43, 5), 0.5, paired=3),
    "20 rows v 20 blocks of 10": blocks(equal(20, 1), equal(20, 10), 0.5),
}


def with_contrast(n: int, m: int, D: int, variance: float) -> Setting:
    """Two shared directions, and one of the foreground."""

    def draw(rng: np.random.Generator) -> tuple[Array, Array, dict[str, Any]]:
        W = np.linalg.qr(rng.standard_normal((D, 3)))[0]
        X, Y = (gauss(rng, rows, D) + 4 * gauss(rng, rows, 2) @ W[:, :2].T for rows in (n, m))
        return X + np.sqrt(variance) * gauss(rng, n, 1) @ W[:, 2:].T, Y, {}

    return draw


# Where p-values are about .01.
WEAK: dict[str, Setting] = {
    "60+60x50": with_contrast(60, 60, 50, 2.5),
    "36+36x40": with_contrast(36, 36, 40, 6.0),
    "16+16x8": with_contrast(16, 16, 8, 15.0),
    "200+200x50": with_contrast(200, 200, 50, 0.8),
}
