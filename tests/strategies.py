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
