"""The slow, obvious version of the split test (F18): the same splits, nothing shared, nothing approximated.

Every half is cut out of the tables, every covariance is computed from its rows with all features, every statistic in
a loop over rows. It has no working basis, so it equals `contrast_test` wherever that loses nothing: up to 500 features,
or up to 502 rows in both groups together.
"""

from __future__ import annotations

import itertools

import numpy as np
import scipy.linalg
import scipy.stats


def split_p_values(X, Y, splits, n_axes):
    """p-value of each axis (n_axes,) for given splits of dense tables (n, D) and (m, D)."""
    by_split = []
    (x_chunks, y_chunks), (x_units, y_units) = splits.chunks, splits.unit_of
    repeated = min(np.count_nonzero(units == u) for units in (x_units, y_units) for u in units) > 1
    for number, finds in enumerate(splits.finds):
        x_find, y_find = finds[x_chunks], finds[y_chunks]
        within = repeated and number % 2 == 1
        if within:
            (S, n), (T, m) = (
                within_covariance(X[x_find], x_chunks[x_find]),
                within_covariance(Y[y_find], y_chunks[y_find]),
            )
        else:
            S, T = np.cov(X[x_find].T, ddof=0), np.cov(Y[y_find].T, ddof=0)
            n, m = sum(x_find), sum(y_find)
        V = axes(S, T, n, m, n_axes)
        x, y = X[~x_find] @ V, Y[~y_find] @ V
        if within:
            x, y = about_unit_means(x, x_units[~x_find]), about_unit_means(y, y_units[~y_find])
        p = []
        for j in range(n_axes):
            r, s = residuals(x, y, j)
            p.append(p_value(r, s, x_units[~x_find], y_units[~y_find], within))
        by_split.append([max(p[: j + 1]) for j in range(n_axes)])
    combined = []
    for column in np.array(by_split).T:
        score = np.mean([np.tan((0.5 - min(p, 0.99)) * np.pi) for p in column])
        combined.append(min((1 + np.log(len(column)) / 7) * scipy.stats.cauchy.sf(score), 1.0))
    return np.array(combined)


def within_covariance(X, chunks):
    """Covariance of rows about the means of their chunks, and the degrees of freedom plus one."""
    scatter = sum(np.cov(X[chunks == c].T, ddof=0) * sum(chunks == c) for c in set(chunks))
    n = len(X) - len(set(chunks)) + 1
    return scatter / n, n


def about_unit_means(x, units):
    """Rows about the means of their units, with the variance of single rows."""
    found = np.empty_like(x)
    for u in set(units):
        own = x[units == u]
        found[units == u] = (own - own.mean(axis=0)) * np.sqrt(len(own) / (len(own) - 1))
    return found


def axes(S, T, n, m, n_axes):
    """Contrast axes (D, n_axes) of the finding half, from the covariances of n and m rows."""
    D = len(S)
    signals = max(n_signals(S, n), n_signals(T, m))
    ranks = []
    for k in range(1, n_axes + 1):
        r = max(min(min(signals + 1, 50) + k, min(n, m) // 2), k + 1)
        ranks.append(max(min(r, D - 1, min(n - 1, D, 500) - 1), k))
    mu, rho = np.linalg.eigvalsh(S)[::-1], np.linalg.eigvalsh(T)[::-1]
    gamma = 0.5 * min(1.0, mu[ranks[0] :].sum() / rho[: D - ranks[0]].sum())
    U = np.linalg.eigh(S - gamma * T)[1][:, ::-1]
    found = []
    for r in ranks:
        P = U[:, :r]
        x_noise = (np.trace(S) - np.trace(P.T @ S @ P)) / (D - r) * n / (n - 1)
        y_noise = (np.trace(T) - np.trace(P.T @ T @ P)) / (D - r) * m / (m - 1)
        least, floor = min(x_noise, y_noise), y_noise
        variances, basis = np.linalg.eigh(P.T @ T @ P)
        while True:
            B = basis @ np.diag(np.maximum(variances, floor)) @ basis.T
            # Directions in the subspace that are uncorrelated with the earlier axes.
            free = scipy.linalg.null_space(np.array([B @ P.T @ v for v in found])) if found else np.eye(r)
            theta, w = scipy.linalg.eigh(free.T @ P.T @ S @ P @ free, free.T @ B @ free)
            if theta[-1] >= 3 or floor <= least:
                break
            floor = max(floor / 2, least)
        v = P @ free @ w[:, -1]
        found.append(v / np.linalg.norm(v))
    return np.column_stack(found)


def n_signals(covariance, rows):
    """Eigenvalues above the Tracy-Widom edge of what is left."""
    D, N = len(covariance), rows - 1
    scatter = np.linalg.eigvalsh(covariance * rows)[::-1]
    most = min(N, D) - 1
    for j in range(most):
        A, B = N - j - 0.5, D - j - 0.5
        s2 = max(scatter[j + 1 :].sum(), 0.0) / ((D - j - 1) * (N - j - 1))
        mu = (np.sqrt(A) + np.sqrt(B)) ** 2
        tau = (np.sqrt(A) + np.sqrt(B)) * (1 / np.sqrt(A) + 1 / np.sqrt(B)) ** (1 / 3)
        if scatter[j] <= s2 * (mu + 2.02 * tau):
            return j
    return most


def residuals(x, y, j):
    """Axis j of both groups without what the axes before it explain."""
    if j == 0:
        return x[:, 0], y[:, 0]
    a, b = np.atleast_2d(np.cov(x.T, ddof=0)), np.atleast_2d(np.cov(y.T, ddof=0))
    M = a - b
    if np.linalg.eigvalsh(M[:j, :j])[0] < 0.2 * np.mean(np.diag(b)[:j]):
        M = a
    beta = np.linalg.solve(M[:j, :j], M[:j, j])
    return x[:, j] - x[:, :j] @ beta, y[:, j] - y[:, :j] @ beta


def p_value(x, y, x_units, y_units, within):
    """One-sided p-value of "the foreground's deviations are larger", from one split and one axis."""
    n, m = len(set(x_units)), len(set(y_units))
    if within:  # rows are about the means of their units already
        alike, x_centre, y_centre = 1.0, 0.0, 0.0
    else:
        alike, x_centre, y_centre = np.sqrt((1 - 1 / n) / (1 - 1 / m)), np.median(x), np.median(y)
    p = {u: np.mean(np.abs(x - x_centre)[x_units == u]) for u in sorted(set(x_units))}
    q = {u: alike * np.mean(np.abs(y - y_centre)[y_units == u]) for u in sorted(set(y_units))}
    pairs = [u for u in p if u in q]
    left, right = [p[u] for u in p if u not in q], [q[u] for u in q if u not in p]
    numerator = variance = third = 0.0
    limit = len(pairs)
    for u in pairs:
        numerator += (p[u] - q[u]) / 2
        variance += (p[u] - q[u]) ** 2 / 4
    if left and right and len(left) + len(right) > 2:
        k, h = len(left), len(right)
        M = k + h
        w = k * h / M
        v = w**2 * np.var(left + right, ddof=1) * (1 / k + 1 / h)
        skewness = scipy.stats.skew(left + right) * (M - 2 * k) * np.sqrt(M - 1) / ((M - 2) * np.sqrt(k * h))
        numerator += w * (np.mean(left) - np.mean(right))
        variance += v
        third += skewness * v**1.5
        limit += M - 1
    z, skewness = numerator / np.sqrt(variance), third / variance**1.5
    student = scipy.stats.t.sf(z * np.sqrt((limit - 1) / (limit - z**2)), limit - 1)
    return float(student if abs(skewness) < 1e-3 else max(student, scipy.stats.pearson3.sf(z, skewness)))


# ---------------------------------------------------------------------- what halves of the rows say (F43)


def unseen(estimator, X, Y, splits, parts, units):
    """Log ratios (k,), what units add to them {unit: (k,)}, and agreement (k,), from refits to explicit halves.

    `splits` are flags of parts in the first half, `parts` and `units` those of the rows of X and Y.
    """

    def fitted(rows):
        left = [table[keep] for table, keep in zip((X, Y), rows, strict=True)]
        model = estimator(left[0], left[1])
        state = model._state
        scales = [state.units.foreground.scale, (state.units.background or state.units.foreground).scale]
        axes = [model.components_.T / scale[:, None] for scale in scales]
        return [(table - own.mean(axis=0)) @ V for table, own, V in zip((X, Y), left, axes, strict=True)]

    whole = fitted([np.ones(len(table), dtype=bool) for table in (X, Y)])[0]
    k = whole.shape[1]
    squares = [{u: np.zeros(k) for u in own} for own in units]
    rows = [dict.fromkeys(own, 0) for own in units]
    agreements = []
    for first in splits:
        latents = []
        for half in (first, ~first):
            seen = [half[own] for own in parts]
            Z = fitted(seen)
            order, signs = _matched(whole, Z[0])
            Z = [(own[:, order]) * signs for own in Z]
            latents.append(Z[0])
            unit = sum(np.var(own[keep], axis=0) for own, keep in zip(Z, seen, strict=True))
            for g in range(2):
                number = len(set(units[g][seen[g]]))
                for i in np.flatnonzero(~seen[g]):
                    squares[g][units[g][i]] += Z[g][i] ** 2 / unit * number / (number + 1)
                    rows[g][units[g][i]] += 1
        agreements.append([scipy.stats.spearmanr(latents[0][:, j], latents[1][:, j])[0] for j in range(k)])
    means = [sum(squares[g].values()) / sum(rows[g].values()) for g in range(2)]
    added = {}
    for g, sign in ((0, 1.0), (1, -1.0)):
        for u, own in squares[g].items():
            part = sign * (own - rows[g][u] * means[g]) / sum(squares[g].values())
            added[u] = added.get(u, 0.0) + part
    return np.log(means[0] / means[1]), added, np.mean(agreements, axis=0)


def _matched(whole, Z):
    """The order and signs of latents that agree most with those of all rows, by trying all orders."""
    k = whole.shape[1]
    r = np.array([[scipy.stats.spearmanr(whole[:, i], Z[:, j])[0] for j in range(k)] for i in range(k)])
    best = max(itertools.permutations(range(k)), key=lambda order: sum(abs(r[i, j]) for i, j in enumerate(order)))
    return list(best), np.array([np.sign(r[i, j]) for i, j in enumerate(best)])


def reproducible(Z, controls, unseen_cases, unseen_controls, floors):
    """Agreement times contrast of one split: latents of all cases and controls along the axes of both halves."""
    k = Z[0].shape[1]
    r = np.array([[abs(scipy.stats.spearmanr(Z[0][:, i], Z[1][:, j])[0]) for j in range(k)] for i in range(k)])

    def contrast(h, j):
        x, y = Z[h][unseen_cases[h], j], controls[h][unseen_controls[h], j]
        x, y = (np.mean(np.abs(own - np.median(own))) ** 2 for own in (x, y))
        return (x - y) / (x + y + 2 / np.pi * floors[h][j])

    best = max(itertools.permutations(range(k)), key=lambda order: sum(r[i, j] for i, j in enumerate(order)))
    return np.mean([r[i, j] * (contrast(0, i) + contrast(1, j)) / 2 for i, j in enumerate(best)])
