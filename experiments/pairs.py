"""Pairs and covariates (F34, F35): size and power of the test, and which tables show a response of donors best.

Donors have levels along five directions and respond along one, which lies among these or beside them; two more
directions vary between measurements. Data set k of a setting is drawn from the seed (k, the setting's name).
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from contrapca import PPCA, ContraPCA, Study, contrast_test, within_pairs
from contrapca.contrast._subspaces import affinity

from . import _common
from ._stages import Json, Row, Tick

TITLE = "Pairs and covariates"
LEVEL, ALLOWED = 0.05, 0.07  # what a size may be, sampling error included
D = 6  # features of the tables that are tested

# Pairs: donors, rows of each before and after, variance of their levels, of their visits and of their response.
PAIRS = {
    "40 pairs": (40, 1, 9.0, 0.0, 0.0),
    "20 donors, 5 rows a visit": (20, 5, 4.0, 1.0, 0.0),
    "100 pairs, response 4": (100, 1, 9.0, 0.0, 4.0),
    "100 pairs, response 9": (100, 1, 9.0, 0.0, 9.0),
}
# Covariates: cases, controls, number of covariates, variance planted in the cases.
COVARIATES = {
    "40 + 40, 5 covariates": (40, 40, 5, 0.0),
    "30 + 100, 5 covariates": (30, 100, 5, 0.0),
    "100 + 30, 5 covariates": (100, 30, 5, 0.0),
    "40 + 40, 5 covariates, planted 6": (40, 40, 5, 6.0),
}
# Whether the response lies among the directions of the levels, and control rows of each donor.
RESPONSES = {
    "beside the levels, 2 controls": (False, 2),
    "among the levels, 2 controls": (True, 2),
    "among the levels, 5 controls": (True, 5),
}
TABLES = ("as they are", "differences", "differences, PPCA", "within pairs")


def config(*, quick: bool) -> Json:
    """How many data sets of each setting."""
    return {"tests": 5 if quick else 500, "responses": 8 if quick else 200}


def run(config: Json, tick: Tick) -> Json:
    """Shares of data sets in which anything is found, with and without pairs or covariates; mean affinities."""
    results: Json = {"datasets": config, "pairs": {}, "covariates": {}, "responses": {}}
    for name in PAIRS:
        results["pairs"][name] = _shares(name, lambda rng, name=name: visits(rng, *PAIRS[name]), config["tests"], tick)
    for name in COVARIATES:
        draw = lambda rng, name=name: regressed(rng, *COVARIATES[name])  # noqa: E731
        results["covariates"][name] = _shares(name, draw, config["tests"], tick)
    for name, (among, n_controls) in RESPONSES.items():
        tick(name)
        found = [_affinities(_seeded(name, k), among, n_controls) for k in range(config["responses"])]
        results["responses"][name] = dict(zip(TABLES, np.mean(found, axis=0).tolist(), strict=True))
    return results


def _seeded(name: str, k: int) -> np.random.Generator:
    return np.random.default_rng([k, zlib.crc32(name.encode())])


def visits(
    rng: np.random.Generator, n: int, per_visit: int, level: float, visit: float, response: float
) -> tuple[Any, Any, Json]:
    """Donors after and before, and their pairs."""
    own = np.sqrt(level) * rng.normal(size=(n, D))
    after, before = own + np.sqrt(visit) * rng.normal(size=(2, n, D))
    after[:, 0] += np.sqrt(response) * rng.normal(size=n)
    donors = np.repeat(np.arange(n), per_visit)
    noise = rng.normal(size=(2, donors.size, D))
    return after[donors] + noise[0], before[donors] + noise[1], {"blocks": (donors, donors), "paired": True}


def regressed(rng: np.random.Generator, n: int, m: int, q: int, planted: float) -> tuple[Any, Any, Json]:
    """Cases and controls with a large effect of covariates, and these."""
    Z, W, effect = rng.normal(size=(n, q)), rng.normal(size=(m, q)), 2 * rng.normal(size=(q, D))
    cases, controls = Z @ effect + rng.normal(size=(n, D)), W @ effect + rng.normal(size=(m, D))
    cases[:, 0] += np.sqrt(planted) * rng.normal(size=n)
    return cases, controls, {"covariates": (Z, W)}


def _shares(name: str, draw: Any, count: int, tick: Tick) -> list[float]:
    """How often anything is found, with what is known of the rows and without."""
    found = []
    for k in range(count):
        tick(f"{name}, data set {k}")
        rng = _seeded(name, k)
        cases, controls, known = draw(rng)
        studies = Study(cases, background=controls, **known), Study(cases, background=controls)
        options = {"max_components": 1, "level": LEVEL, "random_state": k}
        found.append([contrast_test(study, **options).n_components > 0 for study in studies])
    return np.mean(found, axis=0).tolist()


def _affinities(rng: np.random.Generator, among: bool, n_controls: int, n: int = 40, width: int = 30) -> list[float]:
    """Affinity of the first component with the response (variance 4), for each kind of table."""
    U = np.linalg.qr(rng.normal(size=(width, 8)))[0]
    response = (U[:, 0] + U[:, 7]) / np.sqrt(2) if among else U[:, 7]
    level = np.sqrt(50) * rng.normal(size=(n, 5)) @ U[:, :5].T

    def measured() -> Any:
        return level + np.sqrt(3) * rng.normal(size=(n, 2)) @ U[:, 5:7].T + rng.normal(size=(n, width))

    cases, controls = measured() + 2 * np.outer(rng.normal(size=n), response), [measured() for _ in range(n_controls)]
    donors, every = np.arange(n), np.vstack(controls)
    changes = cases - np.mean(controls, axis=0)
    inside = within_pairs(Study(cases, background=every, blocks=(donors, np.tile(donors, n_controls)), paired=True))
    fits = (
        ContraPCA(1).fit(cases, background=every),
        ContraPCA(1).fit(changes, background=every),
        PPCA(1).fit(changes),
        ContraPCA(1).fit(inside),
    )
    return [float(affinity(model.components_.T, response[:, None])) for model in fits]


def figure(results: Json) -> Any:
    """Shares with and without what is known of the rows; affinities."""
    figure, axes = _common.new_figure(2, width=5.5, height=4.5)
    left, right = map(_common.tidy, axes[0])
    shares = results["pairs"] | results["covariates"]
    place = np.arange(len(shares))[::-1]
    for k, label in enumerate(("pairs or covariates known", "ignored")):
        values = [pair[k] for pair in shares.values()]
        left.barh(place - 0.4 * k, values, 0.4, label=label, color=_common.COLOURS[k])
    left.set_yticks(place - 0.2, list(shares), fontsize=7)
    left.axvline(LEVEL, color="black", linestyle=":")
    left.set(xlabel="share of tables in which a contrast is found", xlim=(0, 1))
    left.legend(frameon=False, fontsize=8)
    place = np.arange(len(results["responses"]))[::-1]
    for k, name in enumerate(TABLES):
        values = [found[name] for found in results["responses"].values()]
        right.barh(place - 0.2 * k, values, 0.2, label=name, color=_common.COLOURS[k])
    right.set_yticks(place - 0.3, list(results["responses"]), fontsize=7)
    right.set(xlabel="affinity with the planted response", xlim=(0, 1))
    right.legend(frameon=False, fontsize=8)
    return figure


def rows(results: Json) -> list[Row]:
    """What was hoped for beside what was found."""
    counts, found = results["datasets"], []
    for name, (known, ignored) in (results["pairs"] | results["covariates"]).items():
        nothing = (PAIRS | COVARIATES)[name][-1] == 0
        hoped, right = (f"at most {ALLOWED}", known <= ALLOWED) if nothing else ("more than ignored", known > ignored)
        ours, note = f"{known:.3f}, ignored {ignored:.3f}", f"{counts['tests']} data sets"
        found.append(Row(name, hoped, ours, right, note))
    for name, affinities in results["responses"].items():
        ours = ", ".join(f"{table} {value:.2f}" for table, value in affinities.items())
        found.append(Row(f"response {name}", "n/a", ours, None, f"{counts['responses']} data sets"))
    return found
