"""Refits to resampled rows: uncertainty where the Gibbs posterior is improper, or too dear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._array import Array, calm_threads
from ..gaussian import LatentGaussian
from ..moments import Contrast, DenseScatter, MaskedPair, Moments, observe
from ..solvers import maximise, solve_cpca, solve_pcpca, top_eigenpairs

Report = Callable[[int], None]


@dataclass(frozen=True)
class Refits:
    """Loadings of the refits that succeeded, (k, D, d), their noise variances (k,), and how many failed."""

    loadings: Array
    sigma2: Array
    failures: int


def bootstrap_refits(
    rows: list[Array], gamma: float, d: int, method: str, n: int, generator: np.random.Generator, report: Report
) -> Refits:
    """`n` refits to rows drawn with replacement within each group.

    A resample is a vector of weights, and its scatter a weighted product. With more features than rows all happens in
    an orthonormal basis of their span.

    Parameters
    ----------
    rows : list of (n_k, D) ndarray, complete, in model units
        The foreground and, if there is one, the background.
    gamma : float
        gamma'.
    d : int
    method : {"pcpca", "cpca"}
    n : int
    generator : numpy Generator
    report : callable
        Called with the number of refits made.
    """
    D, counts = rows[0].shape[1], [table.shape[0] for table in rows]
    basis = None
    if D > sum(counts):
        centred = np.vstack([table - table.mean(axis=0) for table in rows])
        basis, triangle = np.linalg.qr(centred.T)
        rows = np.split(triangle.T, np.cumsum(counts)[:-1])
    coefficients = [1.0, -gamma * counts[0] / counts[-1]][: len(rows)]
    loadings, sigma2, failures = [], [], 0
    solve = solve_pcpca if method == "pcpca" else solve_cpca
    with calm_threads(max(counts) * rows[0].shape[1] ** 2):
        for k in range(n):
            moments = [_resampled(table, generator) for table in rows]
            contrast = Contrast(tuple(zip(coefficients, moments, strict=True)), D)
            spectrum = top_eigenpairs(contrast, d)
            solution = solve(contrast, spectrum.values)
            if solution.feasible:
                U = spectrum.vectors if basis is None else basis @ spectrum.vectors
                loadings.append(U * solution.lengths)
                sigma2.append(solution.sigma2)
            else:
                failures += 1
            report(k + 1)
    return Refits(np.array(loadings).reshape(-1, D, d), np.array(sigma2), failures)


def _resampled(rows: Array, generator: np.random.Generator) -> Moments:
    """Moments of as many rows, drawn with replacement."""
    n = rows.shape[0]
    return _weighted(rows, np.bincount(generator.integers(0, n, n), minlength=n))


def _weighted(rows: Array, weights: npt.NDArray[np.integer]) -> Moments:
    """Moments of rows that count `weights` times each."""
    total = float(weights.sum())
    mean = weights @ rows / total
    centred = np.sqrt(weights)[:, None] * (rows - mean)
    return Moments(total, mean, DenseScatter(centred.T @ centred))


def bootstrap_observed(
    rows: list[Array], gamma: float, start: LatentGaussian, n: int, generator: np.random.Generator, report: Report
) -> Refits:
    """The same for rows with holes (NaN): gradient fits, each from the estimate.

    A resample in which some feature is never observed counts as failed.
    """
    loadings, sigma2, failures = [], [], 0
    for k in range(n):
        groups = [observe(table[generator.integers(0, len(table), len(table))])[0] for table in rows]
        if all(np.all(group.observed > 0) for group in groups):
            pair = MaskedPair(groups[0], groups[1] if len(groups) == 2 else None)
            solution = maximise(pair, gamma, start.W, start.sigma2)
            if solution.status == "converged":
                loadings.append(solution.W)
                sigma2.append(solution.sigma2)
        failures = k + 1 - len(loadings)
        report(k + 1)
    return Refits(np.array(loadings).reshape(-1, *start.W.shape), np.array(sigma2), failures)
