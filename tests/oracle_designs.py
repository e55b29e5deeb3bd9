"""Slow, obvious formulas of designs and of whitening (F47). NumPy only; nothing of contrapca.

A design gives every row a weight c of any sign, 0 in sum, and a mean model. Rows about it are r. Then A is the mean of
r r' with weights c+, and B that with c-.
"""

from __future__ import annotations

import itertools

import numpy as np

# ---------------------------------------------------------------------- rows about their mean, and two moments


def about_cell_means(X, cells):
    """Each row minus the mean of its cell, one row after the other."""
    X = np.asarray(X, dtype=np.float64)
    return np.array(
        [
            x - np.mean([y for y, other in zip(X, cells, strict=True) if other == c], axis=0)
            for x, c in zip(X, cells, strict=True)
        ]
    )


def about_quadratic(X, z):
    """Each column minus its least squares fit to 1, z and z^2."""
    M = np.column_stack([np.ones(len(z)), z, np.square(z)])
    return X - M @ np.linalg.lstsq(M, X, rcond=None)[0]


def signed_moments(R, weights):
    """A, n_A, B, n_B of residuals with signed weights: sums over rows, one after the other."""
    found = []
    for sign in (1, -1):
        c = [max(sign * w, 0.0) for w in weights]
        total = sum(c)
        found += [sum(w * np.outer(r, r) for w, r in zip(c, R, strict=True)) / total, total**2 / sum(w**2 for w in c)]
    return tuple(found)


def design_contrast(A, n_A, B, gamma):
    """C and N of two weighted moments: n_A (A - gamma B) and n_A (1 - gamma)."""
    return n_A * (A - gamma * B), n_A * (1 - gamma)


# ---------------------------------------------------------------------- the weights of three designs


def several_weights(conditions, background):
    """Every condition counts alike, whatever its number of rows; those of the background count together as -1."""
    names = sorted(set(conditions) - {background})
    share = {name: 1 / len(names) / conditions.count(name) for name in names}
    share[background] = -1 / conditions.count(background)
    return [share[own] for own in conditions]


def interaction_weights(first, second, case):
    """Cells 11 and 00 against 10 and 01: each cell counts alike."""
    cells = [(a == case[0], b == case[1]) for a, b in zip(first, second, strict=True)]
    return [(0.5 if a == b else -0.5) / cells.count((a, b)) for a, b in cells]


def mid_ranks(z):
    """1 for the smallest; equal values share the mean of their ranks."""
    return [sum(b < a for b in z) + (sum(b == a for b in z) + 1) / 2 for a in z]


def dose_weights(z, strata=None):
    """Mid-ranks of the dose about their mean, within each stratum."""
    strata = [0] * len(z) if strata is None else strata
    found = [0.0] * len(z)
    for s in set(strata):
        inside = [i for i, own in enumerate(strata) if own == s]
        ranks = mid_ranks([z[i] for i in inside])
        for i, rank in zip(inside, ranks, strict=True):
            found[i] = rank - sum(ranks) / len(ranks)
    return found


def ratio_axis(A, B):
    """The direction with the largest v'A v / v'B v, of unit length, by an explicit inverse."""
    values, vectors = np.linalg.eig(np.linalg.inv(B) @ A)
    v = np.real(vectors[:, np.argmax(np.real(values))])
    return v / np.linalg.norm(v)


# ---------------------------------------------------------------------- tests along one direction


def exchanged_moments(a, e):
    """Variance and third moment of sum a_i e_p(i) over all orders p of e: every one of them (few rows)."""
    sums = np.array([np.dot(a, order) for order in itertools.permutations(e)])
    sums -= sums.mean()
    return np.mean(sums**2), np.mean(sums**3)


def unit_deviations(p):
    """Jackknife values of the mean distance between rows: 2 (n - 1) h_u - n mean h, over n - 2 (F44)."""
    n = len(p)
    h = np.array([np.mean([abs(p[i] - p[j]) for j in range(n) if j != i]) for i in range(n)])
    return (2 * (n - 1) * h - n * h.mean()) / (n - 2)


def log_interaction(cells):
    """T = log e_11 - log e_10 - log e_01 + log e_00 of four columns of deviations, and its Welch standard error."""
    signs = (1, -1, -1, 1)
    T = sum(s * np.log(np.mean(e)) for s, e in zip(signs, cells, strict=True))
    return T, np.sqrt(sum(np.var(e, ddof=1) / len(e) / np.mean(e) ** 2 for e in cells))


# ---------------------------------------------------------------------- whitening


def within_treatments(X, treatment):
    """Rows about the mean of their treatment, times sqrt(c / (c - 1)); treatments with one row are left out."""
    found = []
    for name in sorted(set(treatment)):
        rows = np.array([x for x, own in zip(X, treatment, strict=True) if own == name])
        if len(rows) > 1:
            found += list((rows - rows.mean(axis=0)) * np.sqrt(len(rows) / (len(rows) - 1)))
    return np.array(found)


def ledoit_wolf(R):
    """The shrinkage of rows R about their mean: the error of the covariance over its distance from t I."""
    m, D = R.shape
    S = R.T @ R / m
    t = np.trace(S) / D
    error = sum(np.sum((np.outer(r, r) - S) ** 2) for r in R) / m**2
    return min(1.0, error / np.sum((S - t * np.eye(D)) ** 2))


def oracle_approximating(R):
    m, D = R.shape
    S = R.T @ R / m
    square, trace = np.sum(S**2), np.trace(S)
    return min(1.0, ((1 - 2 / D) * square + trace**2) / ((m + 1 - 2 / D) * (square - trace**2 / D)))


def whitener(R, shrinkage):
    """The inverse root of (1 - delta) S + delta t I, by a full eigendecomposition."""
    S = R.T @ R / len(R)
    shrunk = (1 - shrinkage) * S + shrinkage * np.trace(S) / len(S) * np.eye(len(S))
    values, V = np.linalg.eigh(shrunk)
    return V @ np.diag(values**-0.5) @ V.T
