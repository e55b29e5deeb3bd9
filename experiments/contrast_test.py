"""Size and power of the test of a contrast (F18), beside the permutation test of version 0.1.

Size: the share of data sets without any contrast in which a dimension is found at level .05. Power: the same with one
planted direction. Number: how often exactly the planted dimensions are found. Blocks: donors with effects of their own
and no contrast, by donors and, as the control, by rows. Few: sizes at three levels with few rows or blocks, or blocks
of unequal size. Seeds: how much p-values of about .01 depend on the seed. Failures: what the test takes for a contrast,
or overlooks. `run` takes any share of the names that `config` lists.
Data set k of a setting is drawn from the seed (k, the setting's name), so that any line can be repeated alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from contrapca import Study, contrast_test
from contrapca.exceptions import GroupError

from . import _common
from ._data import load_zheng_bmmc
from ._few_units import FEW, WEAK, Setting
from ._other_tests import permutation_test
from ._stages import Json, Row, Tick

TITLE = "Is there anything to find? Size and power of the test"
LEVEL, ALLOWED = 0.05, 0.07  # what a size may be, sampling error included
LEVELS, ALLOWED_FEW = (0.05, 0.01, 0.001), (0.065, 0.015, 0.003)
NEAR, N_SEEDS, ALLOWED_SD = (0.003, 0.03), 12, 0.3  # p-values near .01, how often repeated, and how alike

Draw = Callable[[np.random.Generator], tuple[Any, Any]]


def of_rows(draw: Callable[[np.random.Generator, int, int], Any], n: int, m: int, D: int) -> Draw:
    """Both groups from one law of rows."""
    return lambda rng: (np.asarray(draw(rng, n, D), dtype=float), np.asarray(draw(rng, m, D), dtype=float))


def gauss(rng: np.random.Generator, n: int, D: int) -> Any:
    return rng.standard_normal((n, D))


def t3(rng: np.random.Generator, n: int, D: int) -> Any:
    """Independent heavy-tailed features."""
    return rng.standard_t(3, size=(n, D))


def t3_rows(rng: np.random.Generator, n: int, D: int) -> Any:
    """Multivariate t: whole rows are large together."""
    return rng.standard_normal((n, D)) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3)


def lognormal(rng: np.random.Generator, n: int, D: int) -> Any:
    return rng.lognormal(size=(n, D))


def poisson(rate: float) -> Callable[[np.random.Generator, int, int], Any]:
    return lambda rng, n, D: rng.poisson(rate, size=(n, D))


def binary(share: float) -> Callable[[np.random.Generator, int, int], Any]:
    return lambda rng, n, D: rng.random((n, D)) < share


def planted(n: int, m: int, D: int, n_planted: int, variance: float, n_shared: int = 3, shared_sd: float = 4.0) -> Draw:
    """Unit noise, `n_shared` directions of both groups and `n_planted` of the foreground, all orthogonal."""

    def draw(rng: np.random.Generator) -> tuple[Any, Any]:
        W = np.linalg.qr(rng.standard_normal((D, n_planted + n_shared)))[0]
        own, shared = W[:, :n_planted] * np.sqrt(variance), W[:, n_planted:] * shared_sd
        X = gauss(rng, n, D) + gauss(rng, n, n_planted) @ own.T + gauss(rng, n, n_shared) @ shared.T
        return X, gauss(rng, m, D) + gauss(rng, m, n_shared) @ shared.T

    return draw


SIZE: dict[str, Draw] = {
    "gauss 50+50x5": of_rows(gauss, 50, 50, 5),
    "gauss 400+400x30": of_rows(gauss, 400, 400, 30),
    "gauss 40+40x300": of_rows(gauss, 40, 40, 300),
    "gauss 20+200x20": of_rows(gauss, 20, 200, 20),
    "gauss 200+20x20": of_rows(gauss, 200, 20, 20),
    "shared 200+200x50": planted(200, 200, 50, 0, 0, 5, 5),
    "shared 100+30x50": planted(100, 30, 50, 0, 0, 5, 5),
    "t3 50+50x5": of_rows(t3, 50, 50, 5),
    "t3 200+200x30": of_rows(t3, 200, 200, 30),
    "t3 40+40x300": of_rows(t3, 40, 40, 300),
    "t3 20+200x20": of_rows(t3, 20, 200, 20),
    "t3 200+20x20": of_rows(t3, 200, 20, 20),
    "t3 rows 100+100x20": of_rows(t3_rows, 100, 100, 20),
    "lognormal 100+100x10": of_rows(lognormal, 100, 100, 10),
    "lognormal 20+200x20": of_rows(lognormal, 20, 200, 20),
    "lognormal 200+20x20": of_rows(lognormal, 200, 20, 20),
    "Poisson(.1) 200+20x50": of_rows(poisson(0.1), 200, 20, 50),
    "Poisson(.02) 1000+100x50": of_rows(poisson(0.02), 1000, 100, 50),
    "Poisson(.02) 100+1000x50": of_rows(poisson(0.02), 100, 1000, 50),
    "Poisson(1) 100+100x100": of_rows(poisson(1.0), 100, 100, 100),
    "binary(.02) 300+60x40": of_rows(binary(0.02), 300, 60, 40),
    "binary(.02) 60+300x40": of_rows(binary(0.02), 60, 300, 40),
    # More features than working dimensions: rotated without regard to the groups first.
    "t3 500+150x700": of_rows(t3, 500, 150, 700),
    "Poisson(.1) 150+500x700": of_rows(poisson(0.1), 150, 500, 700),
}

# Planted variance over unit noise; the permutation test is valid here, all rows being Gaussian.
POWER: dict[str, Draw] = {
    "variance 1, 200+200x50": planted(200, 200, 50, 1, 1),
    "variance 1.5, 200+200x50": planted(200, 200, 50, 1, 1.5),
    "variance 2, 200+200x50": planted(200, 200, 50, 1, 2),
    "variance 4, 60+60x50": planted(60, 60, 50, 1, 4),
    "variance 4, 200+30x50": planted(200, 30, 50, 1, 4),
    "variance 4, 30+200x50": planted(30, 200, 50, 1, 4),
    "variance 6, 100+100x300": planted(100, 100, 300, 1, 6),
}
NUMBER: dict[str, tuple[int, Draw]] = {
    f"{k} planted, {n}+{n}x40": (k, planted(n, n, 40, k, 4)) for k in (1, 2, 3) for n in (200, 400)
}
FAILURES: dict[str, Draw] = {
    "background t3": lambda rng: (gauss(rng, 200, 20), t3(rng, 200, 20) / np.sqrt(3)),
    "background t3 rows": lambda rng: (gauss(rng, 200, 20), t3_rows(rng, 200, 20) / np.sqrt(3)),
    "foreground t3 rows": lambda rng: (t3_rows(rng, 200, 20) / np.sqrt(3), gauss(rng, 200, 20)),
    "foreground noise x 1.3": lambda rng: (np.sqrt(1.3) * gauss(rng, 200, 20), gauss(rng, 200, 20)),
    "background directions": lambda rng: (gauss(rng, 200, 20), gauss(rng, 200, 20) * np.repeat([4.0, 1.0], [2, 18])),
}
DONORS = {"10 + 10 donors": (10, False), "20 + 20 donors": (20, False), "20 paired donors": (20, True)}


def cells() -> dict[str, Draw]:
    """Healthy bone-marrow cells split at random: counts and logs, random genes of the 500."""
    counts = load_zheng_bmmc(log=False).background.astype(float)

    def setting(n: int, m: int, D: int, logs: bool) -> Draw:
        def draw(rng: np.random.Generator) -> tuple[Any, Any]:
            rows = counts[rng.permutation(len(counts))[: n + m]][:, rng.permutation(counts.shape[1])[:D]]
            rows = np.log1p(rows) if logs else rows
            return rows[:n], rows[n:]

        return draw

    return {
        f"cells, {'logs' if logs else 'counts'}, {n}+{m}x{D}": setting(n, m, D, logs)
        for logs in (False, True)
        for n, m in ((600, 60), (150, 150))
        for D in (30, 100, 300)
    }


def config(*, quick: bool) -> Json:
    """How many data sets of each setting, and which settings."""
    step = 8 if quick else 1
    return {
        "datasets": {"size": 20 if quick else 500, "power": 5 if quick else 200, "blocks": 5 if quick else 500},
        "size": list(SIZE)[::step],
        "power": list(POWER)[2 :: step // 2 or 1] if quick else list(POWER),
        "number": list(NUMBER)[:: step // 2 or 1] if quick else list(NUMBER),
        "failures": list(FAILURES)[::2] if quick else list(FAILURES),
        "few": list(FEW)[:: 2 * step] if quick else list(FEW),
        "seeds": list(WEAK)[:: 2 * step] if quick else list(WEAK),
        "cells": not quick,
        "n_permutations": 39 if quick else 99,
    }


def run(config: Json, tick: Tick) -> Json:
    """Shares of data sets, each with the number of data sets."""
    counts, results = config["datasets"], {"datasets": config["datasets"]}
    draws = {name: SIZE[name] for name in config["size"]} | (cells() if config["cells"] else {})
    results["size"] = {name: _rejected(name, draw, counts["size"], tick) for name, draw in draws.items()}
    results["failures"] = {name: _rejected(name, FAILURES[name], counts["power"], tick) for name in config["failures"]}
    results["power"] = {}
    for name in config["power"]:
        split = _rejected(name, POWER[name], counts["power"], tick)
        number = config["n_permutations"]
        results["power"][name] = [split, _permuted(name, POWER[name], counts["power"], number, tick)]
    results["number"] = {}
    for name in config["number"]:
        truth, draw = NUMBER[name]
        found = np.array([_found(name, draw, k, 5, tick) for k in range(counts["power"])])
        results["number"][name] = [float(np.mean(found == truth)), float(np.mean(found > truth))]
    results["blocks"] = {name: _blocks(name, counts["blocks"], tick) for name in DONORS}
    results["few"] = {name: _shares(name, FEW[name], counts["size"], tick) for name in config["few"]}
    results["seeds"] = {name: _deviation(name, WEAK[name], counts["power"], tick) for name in config["seeds"]}
    return results


def _seeded(name: str, k: int) -> np.random.Generator:
    return np.random.default_rng([k, zlib.crc32(name.encode())])


def _found(name: str, draw: Draw, k: int, most: int, tick: Tick) -> int:
    """Dimensions found in data set k."""
    tick(f"{name}, data set {k}")
    rng = _seeded(name, k)
    X, Y = draw(rng)
    return contrast_test(X, background=Y, max_components=most, level=LEVEL, random_state=rng).n_components


def _rejected(name: str, draw: Draw, count: int, tick: Tick) -> float:
    """The share of data sets in which anything is found."""
    return float(np.mean([_found(name, draw, k, 1, tick) > 0 for k in range(count)]))


def _permuted(name: str, draw: Draw, count: int, n_permutations: int, tick: Tick) -> float:
    """The same by the permutation test."""
    found = []
    for k in range(count):
        tick(f"{name}, data set {k}, permutations")
        rng = _seeded(name, k)
        options = {"level": LEVEL, "n_permutations": n_permutations, "random_state": rng}
        found.append(permutation_test(*draw(rng), max_components=1, **options).n_components > 0)
    return float(np.mean(found))


def _p_value(name: str, k: int, setting: Setting, tick: Tick, seed: int = 0) -> float:
    """p-value of the first dimension of data set k."""
    tick(f"{name}, data set {k}")
    X, Y, given = setting(_seeded(name, k))
    study = Study(X, background=Y, **given)
    test = contrast_test(study, max_components=1, random_state=1000 * seed + k, progress=False)
    return float(test.p_values[0])


def _shares(name: str, setting: Setting, count: int, tick: Tick) -> list[float] | None:
    """Shares of data sets with p-values at or below the levels; None if they are refused."""
    try:
        p_values = np.array([_p_value(name, k, setting, tick) for k in range(count)])
    except GroupError:
        return None
    return [float(np.mean(p_values <= level)) for level in LEVELS]


def _deviation(name: str, setting: Setting, count: int, tick: Tick) -> list[float]:
    """Mean and largest standard deviation over seeds of log10 p, of data sets with p near .01, and their number."""
    found = []
    for k in range(count):
        if NEAR[0] < _p_value(name, k, setting, tick) < NEAR[1]:
            found.append(np.std(np.log10([_p_value(name, k, setting, tick, seed) for seed in range(1, N_SEEDS + 1)])))
    return [float(np.mean(found)), float(np.max(found)), len(found)] if found else [0.0, 0.0, 0]


def donors(rng: np.random.Generator, n_donors: int, per_donor: int = 50, D: int = 20) -> Any:
    """Rows of donors with effects of their own on the means and on the spread of all features."""
    effect = np.repeat(rng.standard_normal((n_donors, D)), per_donor, axis=0)
    spread = np.repeat(np.exp(0.3 * rng.standard_normal(n_donors)), per_donor)
    return effect + spread[:, None] * gauss(rng, n_donors * per_donor, D)


def _blocks(name: str, count: int, tick: Tick) -> list[float]:
    """Shares rejected by donors, and by rows."""
    (n_donors, paired), found = DONORS[name], []
    for k in range(count):
        tick(f"{name}, data set {k}")
        rng = _seeded(name, k)
        blocks = np.repeat(np.arange(n_donors), 50)
        X, Y, others = donors(rng, n_donors), donors(rng, n_donors), blocks + n_donors
        if paired:  # besides its effect in each group, a donor has one that its rows of both groups share
            common = np.repeat(rng.standard_normal((n_donors, 20)), 50, axis=0)
            X, Y, others = X + common, Y + common, blocks
        studies = Study(X, background=Y, blocks=(blocks, others)), Study(X, background=Y)
        tests = [contrast_test(study, max_components=1, random_state=rng) for study in studies]
        found.append([test.n_components > 0 for test in tests])
    return np.mean(found, axis=0).tolist()


def figure(results: Json) -> Any:
    """Sizes beside the level, and power beside that of the permutation test."""
    figure, axes = _common.new_figure(2, width=5.5, height=6.5)
    left, right = map(_common.tidy, axes[0])
    sizes = results["size"]
    left.barh(list(sizes)[::-1], list(sizes.values())[::-1], color=_common.COLOURS[0])
    left.axvline(LEVEL, color="black", linestyle=":", label="level")
    left.axvline(ALLOWED, color=_common.COLOURS[1], linestyle="--", label="allowed")
    left.set(xlabel="share of tables without a contrast in which one is found", xlim=(0, 0.12))
    left.tick_params(axis="y", labelsize=7)
    left.legend(frameon=False, fontsize=8)
    place = np.arange(len(results["power"]))[::-1]
    for k, name in enumerate(("split", "permutation")):
        right.barh(place - 0.4 * k, [pair[k] for pair in results["power"].values()], 0.4, label=name,
                   color=_common.COLOURS[k])  # fmt: skip
    right.set_yticks(place - 0.2, list(results["power"]), fontsize=7)
    right.set(xlabel="share of tables in which the planted direction is found", xlim=(0, 1))
    right.legend(frameon=False, fontsize=8)
    return figure


def rows(results: Json) -> list[Row]:
    """What was hoped for beside what was found."""
    counts = results["datasets"]
    found = [
        Row(
            f"size, {name}",
            f"at most {ALLOWED}",
            _share(value, counts["size"]),
            value <= ALLOWED,
            _note(counts["size"]),
        )
        for name, value in results["size"].items()
    ]
    for name, (split, permuted) in results["power"].items():
        ours = f"{_share(split, counts['power'])}, by permutation {_share(permuted, counts['power'])}"
        found.append(Row(f"power, {name}", "permutation's or more", ours, split >= permuted, "a small foreground"))
    for name, (right, more) in results["number"].items():
        ours = f"{_share(right, counts['power'])}, too many {more:.3f}"
        found.append(Row(name, "the right number in 0.9", ours, right >= 0.9, _note(counts["power"])))
    for name, (blocks, by_rows) in results["blocks"].items():
        ours = f"{_share(blocks, counts['blocks'])}, by rows {by_rows:.3f}"
        found.append(Row(name, "0.02 to 0.08 by blocks", ours, 0.02 <= blocks <= 0.08, _note(counts["blocks"])))
    for name, shares in results["few"].items():
        said = "refused" if shares is None else " / ".join(f"{share:.3f}" for share in shares)
        held = shares is None or all(share <= most for share, most in zip(shares, ALLOWED_FEW, strict=True))
        wanted = "at most " + " / ".join(map(str, ALLOWED_FEW))
        found.append(Row(f"size at {' / '.join(map(str, LEVELS))}, {name}", wanted, said, held, _note(counts["size"])))
    for name, (mean, largest, number) in results["seeds"].items():
        ours = f"{mean:.2f}, largest {largest:.2f}"
        note = f"{number} data sets with p near .01"
        found.append(Row(f"sd of log10 p over seeds, {name}", f"at most {ALLOWED_SD}", ours, mean <= ALLOWED_SD, note))
    for name, value in results["failures"].items():
        found.append(Row(f"known failure, {name}", "n/a", _share(value, counts["power"]), None))
    return found


def _share(rate: float, count: int) -> str:
    """A share with its standard error."""
    return f"{rate:.3f} ({np.sqrt(max(rate * (1 - rate), 1 / count) / count):.3f})"


def _note(count: int) -> str:
    return f"{count} data sets"
