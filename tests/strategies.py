"""Hypothesis strategies: pairs of tables of awkward shapes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class Case:
    X: np.ndarray
    Y: np.ndarray
    d: int


@st.composite
def tables(draw):
    """Random foreground, background and d, with n or m below D, low ranks, ties and uneven scales."""
    D = draw(st.integers(2, 12))
    n, m = draw(st.integers(2, 25)), draw(st.integers(2, 25))
    d = draw(st.integers(1, D - 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = _group(draw, rng, n, D)
    Y = _group(draw, rng, m, D)
    return Case(X, draw(st.sampled_from([1.0, 0.3, 3.0])) * Y, d)


def _group(draw, rng, rows, D):
    kind = draw(st.sampled_from(["plain", "low rank", "tied", "repeated column", "uneven"]))
    table = rng.standard_normal((rows, D))
    if kind == "low rank":
        rank = draw(st.integers(1, D))
        table = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, D))
    elif kind == "tied":  # +-e_j: the covariance is a multiple of the identity on the features reached
        table = np.vstack([np.eye(D), -np.eye(D)])[:: draw(st.sampled_from([1, 1, 2]))]
    elif kind == "repeated column":
        table[:, -1] = table[:, 0]
    elif kind == "uneven":
        table *= np.logspace(0, 2, D)
    return table


@dataclass(frozen=True)
class MaskedCase:
    X: np.ndarray
    Y: np.ndarray
    d: int
    gamma_raw: float
    W: np.ndarray
    sigma2: float


@st.composite
def masked_tables(draw):
    """Groups with holes, shared patterns and complete rows among them, and a point to evaluate the objective at."""
    D, d = draw(st.integers(2, 6)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tables = [_with_holes(draw, rng, draw(st.integers(3, 14)), D) for _ in range(2)]
    W = draw(st.sampled_from([0.3, 1.0, 3.0])) * rng.standard_normal((D, d))
    return MaskedCase(*tables, d, draw(st.sampled_from([0.0, 0.3, 1.5])), W, draw(st.sampled_from([0.2, 1.0, 4.0])))


def _with_holes(draw, rng, rows, D):
    table = rng.standard_normal((rows, D)) + rng.standard_normal(D)
    kind = draw(st.sampled_from(["random", "few patterns", "half complete", "complete"]))
    holes = rng.random((rows, D)) < draw(st.sampled_from([0.1, 0.5]))
    if kind == "few patterns":
        holes = holes[rng.integers(0, 2, rows)]
    elif kind == "half complete":
        holes[: rows // 2 + 1] = False
    elif kind == "complete":
        holes[:] = False
    holes[0] = False  # every feature is observed at least once
    return np.where(holes, np.nan, table)
