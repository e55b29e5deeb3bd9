"""The slow, obvious version of the split test (F18, F44): the same splits, nothing shared, nothing approximated.

Every half is cut out of the tables, every covariance is computed from its rows with all features, every statistic in
a loop over rows. It has no working basis, so it equals `contrast_test` wherever that loses nothing: up to 500 features,
or up to 502 rows in both groups together.
"""

from __future__ import annotations

import itertools

import numpy as np
import scipy.linalg
import scipy.stats


def split_p_values(X, Y, splits, n_axes, kept):
    """p-value of each axis (n_axes,) for given splits of dense tables (n, D) and (m, D).

    `kept` has two arrays of flags for each split: the testing rows of both groups that thinning leaves.
    """
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
        V = axes(S, T, n, m, n_axes, *shared(X, Y, x_chunks, y_chunks, within))
        (x_keep, y_keep) = kept[number]
        x, y = X[~x_find][x_keep] @ V, Y[~y_find][y_keep] @ V
        own, others = x_units[~x_find][x_keep], y_units[~y_find][y_keep]
        centred = (about_unit_means(x, own), about_unit_means(y, others)) if within else (x, y)
        p = []
        for j in range(n_axes):
            beta = explained(*centred, j)
            p.append(p_value(x[:, j] - x[:, :j] @ beta, y[:, j] - y[:, :j] @ beta, own, others, within))
        by_split.append([max(p[: j + 1]) for j in range(n_axes)])
    least = least_p(x_units, y_units)
    return np.array([max(trimmed_cauchy(column), least) for column in np.array(by_split).T])


def trimmed_cauchy(p_values):
    """One p-value of those of all splits, the smallest raised to the next."""
    p = sorted(min(p, 0.99) for p in p_values)
    trimmed = min(max(len(p) // 20, 1), len(p) - 1)
    score = np.mean([np.tan((0.5 - max(own, p[trimmed])) * np.pi) for own in p])
    return scipy.stats.cauchy.sf(score)


def least_p(x_units, y_units):
    """One over the number of ways to exchange the labels of the testing units."""
    both, alone, others = (
        len(units) - len(units) // 2
        for units in (set(x_units) & set(y_units), set(x_units) - set(y_units), set(y_units) - set(x_units))
    )
    labels = len(list(itertools.islice(itertools.combinations(range(alone + others), alone), 10**6)))
    return 1 / (labels * 2**both)


def quotas(x_sizes, y_sizes):
    """How many rows blocks keep that are in one group only, both sorted by their numbers of rows."""
    a, b = sorted(x_sizes), sorted(y_sizes)
    n, m = len(a), len(b)
    x = [min(a[k - 1], b[int(np.floor(m * (k - 0.5) / n))]) for k in range(1, n + 1)]
    return x, [min(b[k - 1], a[int(np.floor(n * (k - 0.5) / m))]) for k in range(1, m + 1)]


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


def shared(X, Y, x_chunks, y_chunks, within):
    """Dimensions above the noise of all rows of both groups, and their principal directions (D, D), the first first."""
    if within:
        (S, n), (T, m) = within_covariance(X, x_chunks), within_covariance(Y, y_chunks)
    else:
        S, T, n, m = np.cov(X.T, ddof=0), np.cov(Y.T, ddof=0), len(X), len(Y)
    pooled = (n * S + m * T) / (n + m - 1)
    return n_signals(pooled, max(n, m) / 2), np.linalg.eigh(pooled)[1][:, ::-1]


def axes(S, T, n, m, n_axes, signals, directions):
    """Contrast axes (D, n_axes) of the finding half, from the covariances of n and m rows."""
    D = len(S)
    ranks = []
    for k in range(1, n_axes + 1):
        r = max(min(min(signals + 1, 50) + k, min(n, m) // 2), k + 1)
        ranks.append(max(min(r, D - 1, min(n - 1, D, 500) - 1), k))
    P = directions[:, : ranks[0]]
    gamma = 0.5 * min(1.0, (np.trace(S) - np.trace(P.T @ S @ P)) / np.trace(T))
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
    most = int(min(N, D)) - 1
    for j in range(most):
        A, B = N - j - 0.5, D - j - 0.5
        s2 = max(scatter[j + 1 :].sum(), 0.0) / ((D - j - 1) * (N - j - 1))
        mu = (np.sqrt(A) + np.sqrt(B)) ** 2
        tau = (np.sqrt(A) + np.sqrt(B)) * (1 / np.sqrt(A) + 1 / np.sqrt(B)) ** (1 / 3)
        if scatter[j] <= s2 * (mu + 2.02 * tau):
            return j
    return most


def explained(x, y, j):
    """How axis j of both groups depends on the axes before it, by their excess (j,)."""
    if j == 0:
        return np.zeros(0)
    a, b = np.atleast_2d(np.cov(x.T, ddof=0)), np.atleast_2d(np.cov(y.T, ddof=0))
    M = a - b
    if np.linalg.eigvalsh(M[:j, :j])[0] < 0.2 * np.mean(np.diag(b)[:j]):
        M = a
    return np.linalg.solve(M[:j, :j], M[:j, j])


def mean_distance(a, b):
    """Mean of |s - t| over all s of one unit and t of another."""
    return np.mean([abs(s - t) for s in a for t in b])


def unit_values(x, units, within):
    """How far the rows of each unit are from each other, or from those of the other units, as jackknife values."""
    own = {u: x[units == u] for u in sorted(set(units))}
    if within:
        return {u: np.mean([abs(s - t) for s, t in itertools.combinations(rows, 2)]) for u, rows in own.items()}
    n = len(own)
    h = {u: np.mean([mean_distance(own[u], own[v]) for v in own if v != u]) for u in own}
    return {u: (2 * (n - 1) * h[u] - n * np.mean(list(h.values()))) / (n - 2) for u in own}


def exchange_p(x, y, x_units, y_units, within):
    """Share of all exchanges of labels, the observed one included, with at least the observed difference of means."""
    x, y = (rows if within else stretched(rows, units) for rows, units in ((x, x_units), (y, y_units)))
    cells = [(u, x[x_units == u]) for u in sorted(set(x_units))] + [(u, y[y_units == u]) for u in sorted(set(y_units))]
    n = len(set(x_units))
    both = [(i, j) for i in range(n) for j in range(n, len(cells)) if cells[i][0] == cells[j][0]]
    alone = [i for i in range(len(cells)) if not any(i in pair for pair in both)]

    def spread(chosen):
        rows = [cells[i][1] for i in chosen]
        if within:
            return np.mean([np.mean([abs(s - t) for s, t in itertools.combinations(own, 2)]) for own in rows])
        return np.mean([mean_distance(a, b) for a, b in itertools.combinations(rows, 2)])

    differences = []
    for labels in itertools.combinations(alone, n - len(both)):
        for swaps in itertools.product(*both):
            chosen = [*labels, *swaps]
            differences.append(spread(chosen) - spread([i for i in range(len(cells)) if i not in chosen]))
    observed = spread(range(n)) - spread(range(n, len(cells)))
    return np.mean(np.array(differences) >= observed - 1e-12)


def stretched(x, units):
    """Rows about the mean of the unit means, these stretched by the root of n / (n - 1)."""
    n = len(set(units))
    means = {u: np.mean(x[units == u]) for u in units}
    centre = np.mean([means[u] for u in set(units)])
    return np.array([s - means[u] + np.sqrt(n / (n - 1)) * (means[u] - centre) for s, u in zip(x, units, strict=True)])


def p_value(x, y, x_units, y_units, within):
    """One-sided p-value of "the foreground's rows are further apart", from one split and one axis."""
    p, q = unit_values(x, x_units, within), unit_values(y, y_units, within)
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


def measured(scale, X, Y):
    """Both tables in the units of all their rows, for an estimator that then scales nothing."""
    own = X.var(axis=0), Y.var(axis=0)
    if scale == "pooled":
        own = 2 * [(len(X) * own[0] + len(Y) * own[1]) / (len(X) + len(Y))]
    return (X / np.sqrt(own[0]), Y / np.sqrt(own[1])) if scale in ("pooled", "group") else (X, Y)


def unseen(estimator, X, Y, splits, parts, units):
    """Log ratios (k,), what units add to them {unit: (k,)}, and agreement (k,), from refits to explicit halves.

    `splits` are flags of parts in the first half, `parts` and `units` those of the rows of X and Y.
    """

    def fitted(rows):
        left = [table[keep] for table, keep in zip((X, Y), rows, strict=True)]
        model = estimator(left[0], left[1])
        state = model.fit_
        scales = [state.scaling.foreground.scale, (state.scaling.background or state.scaling.foreground).scale]
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
                sizes = [np.sum(units[g][seen[g]] == u) for u in set(units[g][seen[g]])]
                number = sum(sizes) ** 2 / sum(size**2 for size in sizes)
                for i in np.flatnonzero(~seen[g]):
                    squares[g][units[g][i]] += Z[g][i] ** 2 / unit * number / (number + 1)
                    rows[g][units[g][i]] += 1
        agreements.append([scipy.stats.spearmanr(latents[0][:, j], latents[1][:, j])[0] for j in range(k)])
    means = [sum(squares[g].values()) / sum(rows[g].values()) for g in range(2)]
    added = {}
    for g, sign in ((0, 1.0), (1, -1.0)):
        for u, own in squares[g].items():
            part = sign * (own - rows[g][u] * means[g]) / sum(squares[g].values())
            part = part / (1 - rows[g][u] / sum(rows[g].values()))
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
