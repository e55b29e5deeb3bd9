"""Slow, obvious formulas that every fast path is compared with. NumPy only; nothing of contrapca."""

from __future__ import annotations

import numpy as np


def scatter(X):
    R = np.asarray(X, dtype=np.float64)
    R = R - R.mean(axis=0)
    return R.T @ R


def weighted_moments(X, weights):
    """Mean and scatter of rows that count `weights` times, one row after the other."""
    X = np.asarray(X, dtype=np.float64)
    mean = sum(w * x for w, x in zip(weights, X, strict=True)) / sum(weights)
    return mean, sum(w * np.outer(x - mean, x - mean) for w, x in zip(weights, X, strict=True))


def contrast_matrix(X, Y, gamma):
    """C = S_X - gamma_raw S_Y with gamma_raw = gamma' n / m."""
    return scatter(X) - gamma * len(X) / len(Y) * scatter(Y)


def pcpca(X, Y, gamma, d):
    """(W, sigma2, eigenvalues of C, eigenvectors) by a full eigendecomposition; the paper's Theorem 3."""
    n, D = X.shape
    C = contrast_matrix(X, Y, gamma) if Y is not None else scatter(X)
    N = n * (1 - gamma)
    values, U = np.linalg.eigh(C)
    values, U = values[::-1], U[:, ::-1]
    sigma2 = values[d:].sum() / (N * (D - d))
    W = U[:, :d] * np.sqrt(values[:d] / N - sigma2)
    return W, sigma2, values, U


def gaussian_log_density(R, A):
    """log N(r; 0, A) for each row, by an explicit inverse and determinant."""
    D = A.shape[0]
    quadratic = np.einsum("ij,jk,ik->i", R, np.linalg.inv(A), R)
    return -0.5 * (D * np.log(2 * np.pi) + np.linalg.slogdet(A)[1] + quadratic)


def relative_log_likelihood(X, Y, gamma, W, sigma2):
    """log p(X) - gamma_raw log p(Y), row by row."""
    A = W @ W.T + sigma2 * np.eye(len(W))
    value = gaussian_log_density(X - X.mean(axis=0), A).sum()
    if Y is not None:
        value -= gamma * len(X) / len(Y) * gaussian_log_density(Y - Y.mean(axis=0), A).sum()
    return value


def noise_sum(X, Y, gamma, d):
    """f(gamma') = sum of all but the d largest eigenvalues of C."""
    return np.linalg.eigvalsh(contrast_matrix(X, Y, gamma))[: X.shape[1] - d].sum()


def pcpca_limit(X, Y, d, steps=80):
    """The root of the concave f on (0, 1] by bisection; 1 if f is positive at 1, 0 if it is nowhere positive."""
    level = 1e-12 * X.shape[1] * (np.trace(scatter(X)) + len(X) / len(Y) * np.trace(scatter(Y)))
    if noise_sum(X, Y, 1.0, d) > level:
        return 1.0
    if noise_sum(X, Y, 0.0, d) <= level:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if noise_sum(X, Y, middle, d) > 0 else (low, middle)
    return low


def cpca_limit(X, Y, d):
    """The d-th largest generalised eigenvalue of (cov_X, cov_Y), off their common null space."""
    cov_x, cov_y = scatter(X) / len(X), scatter(Y) / len(Y)
    values, V = np.linalg.eigh(cov_x / np.trace(cov_x) + cov_y / np.trace(cov_y))
    kept = values > 1e-11 * values[-1]
    root = V[:, kept] / np.sqrt(values[kept])
    shares, _ = np.linalg.eigh(root.T @ cov_y @ root / np.trace(cov_y))  # in [0, 1]: the background's part
    if kept.sum() < d or shares[d - 1] > 1 - 1e-11:
        return 0.0
    if shares[d - 1] < 1e-11:
        return np.inf
    return (1 - shares[d - 1]) / shares[d - 1] * np.trace(cov_x) / np.trace(cov_y)


def ratio(X, Y, ridge=0.0):
    """All ratios v'A v / v'(B + mu I) v, descending, and unit vectors: the theta form in range(A + B + mu I) (F26)."""
    A, B = scatter(X) / len(X), scatter(Y) / len(Y)
    B = B + ridge * np.trace(B) / len(B) * np.eye(len(B))
    values, Q = np.linalg.eigh(A + B)
    kept = values > 1e-12 * values[-1]
    root = Q[:, kept] / np.sqrt(values[kept])
    theta, w = np.linalg.eigh(root.T @ A @ root)
    with np.errstate(divide="ignore"):
        rho = (theta / (1 - theta))[::-1]
    V = (root @ w)[:, ::-1]
    return rho, V / np.linalg.norm(V, axis=0)


def orthogonal_ratio(X, Y, ends, ridge=0.0):
    """Directions one after the other, each the best of those orthogonal to all before; ends: +1 or -1 for each."""
    found = np.zeros((X.shape[1], 0))
    for end in ends:
        P = np.linalg.svd(found)[0][:, found.shape[1] :] if found.size else np.eye(X.shape[1])
        A, B = (scatter(T) / len(T) for T in ((X, Y) if end > 0 else (Y, X)))
        A, B = (P.T @ S @ P for S in (A, B + ridge * np.trace(B) / len(B) * np.eye(len(B))))
        root = np.linalg.inv(np.linalg.cholesky(B)).T
        v = P @ root @ np.linalg.eigh(root.T @ A @ root)[1][:, -1]
        found = np.column_stack([found, v / np.linalg.norm(v)])
    return found


def reconstruction_loss(X, Y, gamma, V):
    """The paper's Theorem 1, with distances written out."""

    def mean_square_distance(T):
        R = T - T.mean(axis=0)
        return np.mean(np.sum((R - R @ V @ V.T) ** 2, axis=1))

    return mean_square_distance(X) - gamma * mean_square_distance(Y)


def least_losses(X, Y, gamma, d_max):
    """The Corollary: tail sums of a full spectrum, for 0, ..., d_max components."""
    values = np.linalg.eigvalsh(contrast_matrix(X, Y, gamma))[::-1] / len(X)
    return np.array([values[d:].sum() for d in range(d_max + 1)])


def sufficient_bounds(X, Y, d):
    """The paper's bounds on gamma' and the sharper one, from full spectra without zeros."""
    D = X.shape[1]
    mu = np.linalg.eigvalsh(scatter(X) / len(X))[::-1]
    rho = np.linalg.eigvalsh(scatter(Y) / len(Y))[::-1]
    return {
        "positive_definite": mu[-1] / rho[0],
        "leading_positive": max(mu[d - 1 + j] / rho[j] for j in range(D - d + 1)),
        "noise_positive": min(1, mu[d:].sum() / ((D - d) * rho[0])),
        "noise_positive_sharp": min(1, mu[d:].sum() / rho[: D - d].sum()),
    }


def latent_posterior(X, mean, W, sigma2):
    """Mean and covariance of z | x by conditioning the joint Gaussian of (z, x)."""
    A = W @ W.T + sigma2 * np.eye(len(W))
    gain = W.T @ np.linalg.inv(A)
    return (X - mean) @ gain.T, np.eye(W.shape[1]) - gain @ W


def same_subspace(A, B, atol):
    """Whether the columns of A and of B (orthonormal) span the same space: equal projectors."""
    np.testing.assert_allclose(A @ A.T, B @ B.T, atol=atol)


# ---------------------------------------------------------------------- missing values


def indicator(row):
    """L of shape (D_i, D): L x are the observed values of x."""
    return np.eye(row.size)[~np.isnan(row)]


def observed_log_likelihood(X, Y, gamma_raw, W, sigma2, mean_x=None, mean_y=None):
    """log p(X_observed) - gamma_raw log p(Y_observed), row by row with explicit indicator matrices."""
    A = W @ W.T + sigma2 * np.eye(len(W))

    def total(table, mean):
        mean = np.nanmean(table, axis=0) if mean is None else mean
        value = 0.0
        for row in table:
            L = indicator(row)
            if len(L):
                value += gaussian_log_density((L @ (np.nan_to_num(row) - mean))[None], L @ A @ L.T)[0]
        return value

    return total(X, mean_x) - (0.0 if Y is None else gamma_raw * total(Y, mean_y))


def finite_differences(function, x, step=1e-5):
    """Gradient of a scalar function of an array by central differences."""
    gradient = np.empty_like(x)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (function(up) - function(down)) / (2 * step)
    return gradient


def quadratic(table, W, sigma2):
    """sum x_o'A_o^-1 x_o about the observed means."""
    A, mean = W @ W.T + sigma2 * np.eye(len(W)), np.nanmean(table, axis=0)
    total = 0.0
    for row in table:
        L = indicator(row)
        x = L @ (np.nan_to_num(row) - mean)
        total += x @ np.linalg.solve(L @ A @ L.T, x) if len(L) else 0.0
    return total


def gls_mean(table, W, sigma2):
    """(sum L'A_i^-1 L)^-1 sum L'A_i^-1 x, written out."""
    A = W @ W.T + sigma2 * np.eye(len(W))
    left, right = 0.0, 0.0
    for row in table:
        L = indicator(row)
        weight = L.T @ np.linalg.inv(L @ A @ L.T) @ L
        left, right = left + weight, right + weight @ np.nan_to_num(row)
    return np.linalg.solve(left, right)


def ppca_em(X, d, steps=2000, seed=0):
    """PPCA with missing values by the EM algorithm of Tipping and Bishop, about the observed means; (W, sigma2)."""
    D = X.shape[1]
    R = X - np.nanmean(X, axis=0)
    rng = np.random.default_rng(seed)
    W, sigma2 = rng.standard_normal((D, d)), 1.0
    for _ in range(steps):
        right, left = np.zeros((D, d)), np.zeros((D, d, d))
        moments = []
        for row in R:
            o = ~np.isnan(row)
            inverse = np.linalg.inv(sigma2 * np.eye(d) + W[o].T @ W[o])
            z = inverse @ W[o].T @ row[o]
            zz = sigma2 * inverse + np.outer(z, z)
            moments.append((o, z, zz))
            right[o] += np.outer(row[o], z)
            left[o] += zz
        W = np.stack([np.linalg.solve(left[j], right[j]) for j in range(D)])
        residual = 0.0
        for row, (o, z, zz) in zip(R, moments, strict=True):
            residual += row[o] @ row[o] - 2 * row[o] @ W[o] @ z + np.sum((W[o].T @ W[o]) * zz)
        sigma2 = residual / np.sum(~np.isnan(X))
    return W, sigma2


def expected_covariance(X, U, W, sigma2):
    """Mean over rows of E[U'x x'U | observed], by conditioning A explicitly; x about the observed means."""
    A, total = W @ W.T + sigma2 * np.eye(len(W)), 0.0
    for row in X - np.nanmean(X, axis=0):
        o = ~np.isnan(row)
        gain = A[:, o] @ np.linalg.inv(A[np.ix_(o, o)])
        mean, covariance = gain @ row[o], A - gain @ A[o]
        mean[o] = row[o]
        total = total + U.T @ (np.outer(mean, mean) + covariance) @ U
    return total / len(X)


def expected_variances(X, U, W, sigma2):
    """The diagonal of that: E[(u'x)^2 | observed] for each column u."""
    return np.diag(expected_covariance(X, U, W, sigma2))


# ---------------------------------------------------------------------- posteriors


def gibbs_log_density(W, sigma2, N, C, w=1.0):
    """w l(W, sigma2) of F5, with explicit inverse and determinant."""
    D = len(C)
    A = W @ W.T + sigma2 * np.eye(D)
    return -0.5 * w * (N * (D * np.log(2 * np.pi) + np.linalg.slogdet(A)[1]) + np.trace(np.linalg.solve(A, C)))


def gibbs_moments_2d(N, C, w=1.0, size=250, angles=100):
    """E[sigma2], E[A_11], E[A_12], E[A_22] for D = 2, d = 1 and a flat prior in (W, sigma2), by quadrature.

    W = r (cos t, sin t): the area element is r dr dt. Radius and sigma2 on grids of r^2 and log sigma2.
    """
    values = np.linalg.eigvalsh(C)
    scale = values[1] / N
    log_s = np.linspace(np.log(scale * 1e-5), np.log(scale * 300), size)
    log_u = np.linspace(np.log(scale * 1e-6), np.log(scale * 3000), size)  # u = r^2, r dr = du / 2
    t = (np.arange(angles) + 0.5) * np.pi / angles
    s, u = np.exp(log_s)[:, None, None], np.exp(log_u)[None, :, None]
    x = np.stack([np.cos(t), np.sin(t)])
    q = np.einsum("it,ij,jt->t", x, C, x)[None, None]  # x'C x
    quadratic = (np.trace(C) - u / (s + u) * q) / s
    log_density = -0.5 * w * (N * (np.log(s) + np.log(s + u)) + quadratic) + np.log(s) + np.log(u)
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    entries = [s + u * x[0] ** 2, u * x[0] * x[1], s + u * x[1] ** 2]
    return np.array([(mass * s).sum(), *((mass * entry).sum() for entry in entries)])


def bingham_second_moments(values, sign=1.0, size=801):
    """E[x_i^2] of density exp(sign x'diag(values) x) on the circle or the sphere, by quadrature."""
    values = np.asarray(values)
    if values.size == 2:
        t = np.linspace(0, 2 * np.pi, 20001)[:-1]
        x, area = np.stack([np.cos(t), np.sin(t)], axis=-1), 1.0
    else:
        t, p = np.meshgrid(np.linspace(0, np.pi, size), np.linspace(0, 2 * np.pi, size)[:-1], indexing="ij")
        x, area = np.stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)], axis=-1), np.sin(t)
    mass = np.exp(sign * (x**2 @ values)) * area
    mass /= mass.sum()
    return (mass[..., None] * x**2).sum(axis=tuple(range(x.ndim - 1)))


def clvm_log_likelihood(X, Y, S, W, sigma2):
    """Both groups about their means, row by row."""
    shared = S @ S.T + sigma2 * np.eye(len(S))
    left = gaussian_log_density(X - X.mean(axis=0), shared + W @ W.T).sum()
    return left + gaussian_log_density(Y - Y.mean(axis=0), shared).sum()


def repeated(rows, weights):
    """Rows that count whole numbers of times, written out."""
    return np.repeat(rows, np.asarray(weights, dtype=int), axis=0)


def mixed_contrast(X, backgrounds, gammas):
    """C = S_X - sum_j gamma'_j (n / m_j) S_j, each background about its own mean."""
    return scatter(X) - sum(g * len(X) / len(Y) * scatter(Y) for g, Y in zip(gammas, backgrounds, strict=True))


def ray_limit(X, backgrounds, gammas, d, steps=60):
    """The largest t <= 1 / sum(gammas) at which PCPCA is feasible along t * gammas, by bisection, times their sum."""
    low, high = 0.0, 1 / sum(gammas)
    for _ in range(steps):
        middle = (low + high) / 2
        C = mixed_contrast(X, backgrounds, [middle * g for g in gammas])
        low, high = (middle, high) if np.linalg.eigvalsh(C)[: X.shape[1] - d].sum() > 0 else (low, middle)
    return low * sum(gammas)


def residuals(tables, covariates, weights=None):
    """Tables without covariates (F35): least squares with a dummy for each group, adjusted to the mean covariates."""
    counts = [len(table) for table in tables]
    groups = np.repeat(np.eye(len(tables)), counts, axis=0)
    Z, rows = np.vstack(covariates), np.vstack(tables)
    w = np.ones(len(rows)) if weights is None else np.concatenate(weights)
    B = np.empty((Z.shape[1], rows.shape[1]))
    for j, column in enumerate(rows.T):
        seen = ~np.isnan(column)
        root = np.sqrt(w[seen])[:, None]
        B[:, j] = np.linalg.lstsq(root * np.hstack([groups, Z])[seen], root[:, 0] * column[seen], rcond=None)[0][
            len(tables) :
        ]
    adjusted = rows - (Z - np.average(Z, axis=0, weights=w)) @ B
    return np.split(adjusted, np.cumsum(counts)[:-1]), B


def kernel_cpca(K, n, gamma, d):
    """CPCA from the kernel values K of n cases, then all controls: eigenvalues (d,), latents of all rows (n + m, d).

    With the centred rows as Phi and J = diag(1/n, ..., -gamma/m, ...), C = Phi'J Phi. An eigenvector a of J Phi Phi'
    gives the eigenvector v = Phi'a of C, of squared length a'Phi Phi'a. Not symmetric, so solved by a general solver.
    """
    m = len(K) - n
    H = np.zeros_like(K)
    H[:n, :n], H[n:, n:] = np.eye(n) - 1 / n, np.eye(m) - 1 / max(m, 1)
    centred = H @ K @ H
    J = np.repeat([1 / n, -gamma / max(m, 1)], [n, m])
    values, vectors = np.linalg.eig(J[:, None] * centred)
    top = np.argsort(-values.real)[:d]
    a = vectors[:, top].real
    return values[top].real, centred @ a / np.sqrt(np.einsum("ik,ij,jk->k", a, centred, a))


def quadratic_features(X, constant):
    """phi(x) with phi(x)'phi(z) = (x'z + constant)^2, written out: squares, products, the features, 1."""
    D = X.shape[1]
    products = [np.sqrt(2) * X[:, i] * X[:, j] for i in range(D) for j in range(i)]
    ones = np.full((len(X), 1), constant)
    return np.hstack([X**2, np.stack(products, axis=1), np.sqrt(2 * constant) * X, ones])


def penalty_conditions(B, v, weight):
    """How far v is from a maximum of v'B v - 2 weight |v|_1 over unit vectors, in units of the largest |B v|."""
    gradient, inside = B @ v, v != 0
    mu = v @ gradient - weight * np.abs(v).sum()
    within = np.abs(gradient - weight * np.sign(v) - mu * v)[inside].max()
    elsewhere = np.max(np.abs(gradient[~inside]) - weight, initial=0.0)
    return max(within, elsewhere) / np.abs(gradient).max()


def depth_unit(values):
    """The value of one molecule in a row: all values of the row are multiples of it; nan if there is none (F46)."""
    values = sorted(float(v) for v in values if v > 0)
    for divisor in range(1, 7):
        unit = values[0] / divisor
        multiples = [v / unit for v in values]
        if all(abs(x - round(x)) < 1e-3 + 1e-6 * x and x < 1e5 for x in multiples):
            return unit
    return float("nan")


def depth_targets(own, other):
    """Totals of one group at the depth of another, both without ties: the other's quantile at each rank (F46)."""
    ordered, targets = sorted(other), []
    for total in own:
        place = (sum(t < total for t in own) + 0.5) / len(own) * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        quantile = ordered[low] + (place - low) * (ordered[high] - ordered[low])
        targets.append(min(total, max(np.floor(quantile), 1)))
    return targets


def molecules_kept(row, probability, rng):
    """A row of counts, each molecule kept with this probability, one after the other (F46)."""
    return [sum(rng.random() < probability for _ in range(count)) for count in row]


def typical_ratio(own, other):
    """The median, over genes with 20 counts or more, of the ratio of sums over the middle half of the rows (F46)."""
    middles = []
    for rows in (own, other):
        ordered = [row for _, row in sorted(enumerate(rows), key=lambda item: (np.sum(item[1] > 0), item[0]))]
        quarter = len(ordered) // 4
        middles.append(ordered[quarter : len(ordered) - quarter])
    ratios = []
    for j in range(own.shape[1]):
        a, b = (sum(row[j] for row in rows) for rows in middles)
        if a + b >= 20:
            ratios.append((a + 0.5) / len(middles[0]) / ((b + 0.5) / len(middles[1])))
    return np.median(ratios)


def given_observed(x, mean, A):
    """Mean (D,) and covariance (D, D) of N(mean, A) given the values of x that are not nan: Gaussian conditioning."""
    o, m = ~np.isnan(x), np.isnan(x)
    filled, covariance = x.copy(), np.zeros_like(A)
    if m.any():
        gain = A[np.ix_(m, o)] @ np.linalg.inv(A[np.ix_(o, o)]) if o.any() else np.zeros((m.sum(), 0))
        filled[m] = mean[m] + gain @ (x[o] - mean[o])
        covariance[np.ix_(m, m)] = A[np.ix_(m, m)] - gain @ A[np.ix_(o, m)]
    return filled, covariance


def factor_step(X, group_of, means, W, noise, least_noise):
    """A step of F45's EM, row by row and feature by feature."""
    (n, D), r, G = X.shape, W.shape[1], len(means)
    Z, V = np.zeros((n, r)), np.zeros((n, r, r))
    for i, x in enumerate(X):
        o = ~np.isnan(x)
        V[i] = np.linalg.inv(np.eye(r) + W[o].T @ np.diag(1 / noise[o]) @ W[o])
        Z[i] = V[i] @ W[o].T @ np.diag(1 / noise[o]) @ (x - means[group_of[i]])[o]
    new_means, new_W, new_noise = np.zeros((G, D)), np.zeros((D, r)), np.zeros(D)
    for j in range(D):
        left, right, square, count = np.diag([1.0] * r + [1e-9] * G), np.zeros(r + G), 0.0, 0
        for i in np.flatnonzero(~np.isnan(X[:, j])):
            design = np.concatenate([Z[i], np.eye(G)[group_of[i]]])
            left = left + np.outer(design, design)
            left[:r, :r] += V[i]
            right = right + X[i, j] * design
            square, count = square + X[i, j] ** 2, count + 1
        found = np.linalg.solve(left, right)
        new_W[j], new_means[:, j] = found[:r], found[r:]
        new_noise[j] = max((square - found @ right) / count, least_noise[j])
    centre = np.array([Z[group_of == g].mean(axis=0) for g in range(G)])
    parts = [np.outer(z - centre[g], z - centre[g]) + v for z, v, g in zip(Z, V, group_of, strict=True)]
    return new_means + centre @ new_W.T, new_W @ np.linalg.cholesky(np.mean(parts, axis=0)), new_noise
