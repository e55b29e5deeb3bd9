"""Tests of what one group has that the other lacks: ours (F31) beside BasCoD's, CDE's and RACT's (F38).

Size: the share of data sets of two equal groups in which the background seems to vary in directions of its own, at
level .05. Power: the same where it has one. Number: how often exactly the dimensions of the foreground that the
background lacks are found, by `contrast_test` and by CDE. CDE and BasCoD get the number of dimensions above the noise
(F16); RACT asks whether covariances differ at all. All but BasCoD's keep donors together. Data set k of a setting is
drawn from the seed (k, the setting's name).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from contrapca import Moments, Study, check_background, contrast_test
from contrapca.contrast._axes import dimensions_above_noise

from . import _common
from ._other_tests import UnitMoments, bascod_statistic, contrastive_dimension, ract_p_value
from ._stages import Json, Row, Tick
from .contrast_test import ALLOWED, LEVEL, _note, _seeded, _share, gauss, lognormal, planted, poisson, t3_rows

TITLE = "Is the background suitable? Four tests"
METHODS = ("split", "RACT", "CDE", "BasCoD")
PROBLEM = "problem"  # how often `check_background` finds one

Draw = Callable[[np.random.Generator], tuple[Any, Any, Any]]  # foreground, background, rows of each block


def rows_of(law: Callable[[np.random.Generator, int, int], Any], n: int, m: int, D: int, variance: float = 0.0) -> Draw:
    """Both groups from one law; the background also has a direction of its own, of so much variance."""

    def draw(rng: np.random.Generator) -> tuple[Any, Any, Any]:
        X, Y = (np.asarray(law(rng, count, D), dtype=float) for count in (n, m))
        return X, Y + _own_direction(rng, m, D, variance), None

    return draw


def shared(n: int, m: int, D: int, variance: float = 0.0, stronger: float = 1.0) -> Draw:
    """Gaussian rows with two directions that both groups share, in the background `stronger` times in variance."""

    def draw(rng: np.random.Generator) -> tuple[Any, Any, Any]:
        W = np.linalg.qr(rng.standard_normal((D, 3)))[0]
        X = gauss(rng, n, D) + gauss(rng, n, 2) * [5, 4] @ W[:, :2].T
        Y = gauss(rng, m, D) + gauss(rng, m, 2) * [5, 4] @ W[:, :2].T * np.sqrt(stronger)
        return X, Y + np.sqrt(variance) * gauss(rng, m, 1) @ W[:, 2:].T, None

    return draw


def donors(n_donors: int, per_donor: int, D: int, effect: float, within: float = 0.0, between: float = 0.0) -> Draw:
    """Donors with effects of their own; a direction of the controls varies within their donors, or between them."""

    def group(rng: np.random.Generator) -> Any:
        spread = np.repeat(np.exp(0.3 * rng.standard_normal(n_donors)), per_donor)[:, None]
        own = effect * np.repeat(gauss(rng, n_donors, D), per_donor, axis=0)
        return own + spread * gauss(rng, n_donors * per_donor, D)

    def draw(rng: np.random.Generator) -> tuple[Any, Any, Any]:
        X, Y = group(rng), group(rng)
        Y += _own_direction(rng, len(Y), D, within)
        Y += np.repeat(_own_direction(rng, n_donors, D, between), per_donor, axis=0)
        return X, Y, per_donor

    return draw


def _own_direction(rng: np.random.Generator, m: int, D: int, variance: float) -> Any:
    v = rng.standard_normal(D)
    return np.outer(np.sqrt(variance) * rng.standard_normal(m), v / np.linalg.norm(v))


SIZE: dict[str, Draw] = {
    "Gaussian, 60+60x20": shared(60, 60, 20),
    "Gaussian, 40+40x80": shared(40, 40, 80),
    "Gaussian, 120+30x20": shared(120, 30, 20),
    "Gaussian, 30+120x20": shared(30, 120, 20),
    "heavy tails, 60+60x20": rows_of(t3_rows, 60, 60, 20),
    "heavy tails, 30+120x20": rows_of(t3_rows, 30, 120, 20),
    "lognormal, 60+60x20": rows_of(lognormal, 60, 60, 20),
    "Poisson(.3), 100+100x30": rows_of(poisson(0.3), 100, 100, 30),
    "6+6 donors, 20 rows each": donors(6, 20, 15, 1.0),
    "8+8 donors, 20 rows each": donors(8, 20, 15, 1.0),
    "12+12 donors, 10 rows each": donors(12, 10, 15, 2.0),
}
POWER: dict[str, Draw] = {
    "variance 4, 60+60x20": shared(60, 60, 20, 4),
    "variance 9, 40+40x80": shared(40, 40, 80, 9),
    "variance 4, 120+30x20": shared(120, 30, 20, 4),
    "variance 4, 30+120x20": shared(30, 120, 20, 4),
    "variance 12, heavy tails, 60+60x20": rows_of(t3_rows, 60, 60, 20, 12),
    "variance 1.5, Poisson(.3), 100+100x30": rows_of(poisson(0.3), 100, 100, 30, 1.5),
    "variance 4 within 6+6 donors": donors(6, 20, 15, 1.0, within=4),
    "variance 4 within 8+8 donors": donors(8, 20, 15, 1.0, within=4),
    "variance 16 between 8+8 donors": donors(8, 20, 15, 1.0, between=16),
    "variance 16 between 12+12 donors": donors(12, 10, 15, 1.0, between=16),
}
# The background has no direction of its own, but is not equal: what a check should leave alone.
STRONGER: dict[str, Draw] = {"shared directions 1.5 times, 200+200x20": shared(200, 200, 20, stronger=1.5)}
NUMBER = {f"{k} of the foreground, 200+200x40": (k, planted(200, 200, 40, k, 4)) for k in (1, 2)}


def config(*, quick: bool) -> Json:
    """How many data sets of each setting, and which settings."""
    step = 4 if quick else 1
    return {
        "datasets": {"size": 20 if quick else 300, "power": 8 if quick else 100},
        "size": list(SIZE)[::step],
        "power": list(POWER)[::step],
        "stronger": list(STRONGER),
        "number": list(NUMBER)[: 1 if quick else 2],
        "n_permutations": 39,
    }


def run(config: Json, tick: Tick) -> Json:
    """Shares of data sets, each with the number of data sets."""
    counts, results = config["datasets"], {"datasets": config["datasets"]}
    for kind, draws in (("size", SIZE), ("power", POWER), ("stronger", STRONGER)):
        count = counts["size" if kind == "size" else "power"]
        results[kind] = {}
        for name in config[kind]:
            found = [_rejected(name, draws[name], k, config["n_permutations"], tick) for k in range(count)]
            results[kind][name] = dict(zip(METHODS, np.mean(found, axis=0).tolist(), strict=True))
            if kind == "stronger":
                results[kind][name][PROBLEM] = float(np.mean([_problem(name, draws[name], k) for k in range(count)]))
    results["number"] = {}
    for name in config["number"]:
        truth, draw = NUMBER[name]
        numbers = np.array([_numbers(name, draw, k, tick) for k in range(counts["power"])])
        results["number"][name] = dict(zip(("split", "CDE"), np.mean(numbers == truth, axis=0).tolist(), strict=True))
    return results


def _rejected(name: str, draw: Draw, k: int, n_permutations: int, tick: Tick) -> list[bool]:
    """Whether each test finds a direction of the background's own in data set k."""
    tick(f"{name}, data set {k}")
    rng = _seeded(name, k)
    X, Y, per_donor = draw(rng)
    units = (np.arange(len(X)) // (per_donor or 1), np.arange(len(X), len(X) + len(Y)) // (per_donor or 1))
    study = Study(Y, background=X, blocks=None if per_donor is None else units[::-1])
    x, y = (UnitMoments.of(table, own) for table, own in zip((X, Y), units, strict=True))
    d_x, d_y = _dimensions(X), _dimensions(Y)
    V, U = (np.linalg.eigh(np.cov(rows.T))[1][:, : -d - 1 : -1] for rows, d in ((X, d_x), (Y, d_y)))
    p_values = (
        # That of `check_background`, which also exchanges the groups.
        contrast_test(study, max_components=1, random_state=rng, progress=False).p_values[0],
        ract_p_value(x, y, n_permutations, rng),
        contrastive_dimension(y, x, d_y, d_x, n_permutations, rng).p_value,
        bascod_statistic(V, U)[1],
    )
    return [bool(p <= LEVEL) for p in p_values]


def _dimensions(rows: Any) -> int:
    return max(dimensions_above_noise(Moments.from_rows(rows)), 1)


def _problem(name: str, draw: Draw, k: int) -> bool:
    """Whether `check_background` finds a problem in data set k."""
    X, Y, _ = draw(_seeded(name, k))
    return not check_background(X, background=Y, progress=False).admissible


def _numbers(name: str, draw: Any, k: int, tick: Tick) -> list[int]:
    """Dimensions of the foreground that the background lacks in data set k, by `contrast_test` and by CDE."""
    tick(f"{name}, data set {k}")
    rng = _seeded(name, k)
    X, Y = draw(rng)
    found = contrast_test(X, background=Y, max_components=5, random_state=rng, progress=False).n_components
    x, y = (UnitMoments.of(rows, np.arange(len(rows))) for rows in (X, Y))
    return [found, contrastive_dimension(x, y, _dimensions(X), _dimensions(Y), 0, rng).n_dimensions]


def figure(results: Json) -> Any:
    """Sizes of the four tests beside the level, and their power."""
    figure, axes = _common.new_figure(2, width=5.5, height=5)
    for ax, kind, label in zip(
        map(_common.tidy, axes[0]),
        ("size", "power"),
        ("equal groups that are called different", "data sets in which it is found"),
        strict=True,
    ):
        place = np.arange(len(results[kind]))[::-1]
        for k, method in enumerate(METHODS):
            shares = [found[method] for found in results[kind].values()]
            ax.scatter(shares, place, marker="osD^"[k], color=_common.COLOURS[k], label=method, zorder=3)
        ax.set_yticks(place, list(results[kind]), fontsize=7)
        ax.grid(axis="y", linewidth=0.4)
        ax.set(xlabel=f"share of {label}", xlim=(-0.03, 1.03))
    axes[0, 0].axvline(LEVEL, color="black", linestyle=":", label="level")
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure


def rows(results: Json) -> list[Row]:
    """What was hoped for beside what was found."""
    counts, found = results["datasets"], []

    def line(kind: str, name: str, count: int) -> str:
        shares = results[kind][name]
        return ", ".join([f"{method} {_share(shares[method], count)}" for method in METHODS])

    for name, shares in results["size"].items():
        ours, right = line("size", name, counts["size"]), shares["split"] <= ALLOWED
        found.append(Row(f"size, {name}", f"at most {ALLOWED} (split)", ours, right, _note(counts["size"])))
    for name in results["power"]:
        found.append(Row(f"power, {name}", "n/a", line("power", name, counts["power"]), None))
    for name, shares in results["stronger"].items():
        ours = f"called a problem {shares[PROBLEM]:.3f}; {line('stronger', name, counts['power'])}"
        found.append(Row(name, "no problem", ours, shares[PROBLEM] <= ALLOWED, _note(counts["power"])))
    for name, shares in results["number"].items():
        ours = ", ".join(f"{method} {_share(share, counts['power'])}" for method, share in shares.items())
        found.append(Row(f"right number, {name}", "CDE's or more", ours, shares["split"] >= shares["CDE"], "see F38"))
    return found
