"""How many contrastive dimensions are there, if any? And a foreground without the background's directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._array import Array, calm_blas, is_sparse
from .._progress import Progress
from .._table import Table
from .._validation import check_count, check_option, check_positive, generator, like_table, split_groups
from ..moments import finite_column_means
from ..solvers import helmert_contrasts, largest_excess, whitening


@dataclass(frozen=True)
class ComponentTest:
    """The outcome of `choose_components`.

    Attributes
    ----------
    n_components : int
        Contrastive dimensions found; 0: none.
    p_values : ndarray of shape (k,)
        Of "no further dimension" before each step, up to the first that is not rejected.
    excess : ndarray of shape (k,)
        By how much the foreground's variance exceeds the background's along each tested direction, relative to that of
        all.
    directions : ndarray of shape (n_components, D)
        Unit rows, in scaled units: the patterns of features along which the excess shows.
    level : float
    """

    n_components: int
    p_values: Array
    excess: Array
    directions: Array
    level: float

    def table(self) -> Table:
        """One row for each tested dimension."""
        steps = np.arange(1, self.p_values.size + 1)
        columns = {"dimension": steps, "relative excess": self.excess, "p": self.p_values}
        return Table(columns | {"kept": steps <= self.n_components})

    def __str__(self) -> str:
        what = "no contrastive dimension" if self.n_components == 0 else f"{self.n_components} contrastive dimension(s)"
        return f"{what} at level {self.level:g}\n{self.table()}"


def choose_components(
    X: Any,
    *,
    background: Any,
    max_components: int = 10,
    level: float = 0.05,
    n_permutations: int = 199,
    scale: bool | str = False,
    random_state: Any = None,
    progress: bool = True,
) -> ComponentTest:
    """The number of dimensions in which the foreground varies more than the background, by a permutation test.

    Null hypothesis of step k: apart from k - 1 directions found before, the rows of both groups, each about its own
    mean, come from one distribution. Statistic: the largest eigenvalue of cov_X - cov_Y (gamma' = 1) of rows whitened
    by the covariance of all, in the space orthogonal to the directions found: the largest excess of variance along any
    direction, relative to what both groups have there. Exchanged: the group labels of Helmert contrasts of the rows, n
    - 1 and m - 1 of them, which are free of the means. Under the null hypothesis these are exchangeable (exactly so
    for Gaussian rows), so that the rank of the observed statistic among those of random labellings is uniform, and p =
    (1 + #{permuted >= observed}) / (1 + permutations). Steps end at the first p above `level`, so that finding a
    dimension where there is none happens with probability `level`. Directions that were removed are the best ones for
    the observed labels but not for permuted ones, which makes later steps conservative.

    A background that varies more in some directions is no reason to reject: only excess of the foreground counts,
    though the null distribution is then too wide and the test conservative.

    Parameters
    ----------
    X : array-like or data frame of shape (n, D)
    background : array-like or data frame of shape (m, D)
    max_components : int, default 10
        At most so many steps.
    level : float, default 0.05
    n_permutations : int, default 199
    scale : False, "group" or "pooled", default False
    random_state : None, int, Generator or RandomState
    progress : bool, default True

    Returns
    -------
    ComponentTest

    Examples
    --------
    >>> from contrapca import choose_components
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> test = choose_components(data.foreground, background=data.background, random_state=0, progress=False)
    >>> test.n_components  # the plane of the clusters
    2
    """
    check_option(scale, "scale", (False, "group", "pooled"))
    check_count(max_components, "max_components")
    check_count(n_permutations, "n_permutations")
    check_positive(level, "level")
    if not 1 / (1 + n_permutations) <= level < 1:
        raise ValueError(
            f"level={level} must be below 1 and at least 1 / (1 + n_permutations) = {1 / (1 + n_permutations):.3g}."
        )
    groups = split_groups(X, None, background, None, name="choose_components", needs_background=True)
    tables = [_centred(table) for table in groups.tables]
    if tables[0].shape[1] < 2:
        raise ValueError("The tables have 1 feature: directions can be told apart from 2 on.")
    if scale:
        own = [_deviation(table) for table in tables]
        pooled = _deviation(np.vstack(tables))
        tables = [
            table / (deviation if scale == "group" else pooled) for table, deviation in zip(tables, own, strict=True)
        ]
    tables = [helmert_contrasts(table) for table in tables]
    rows, is_foreground = np.vstack(tables), np.repeat([True, False], [len(table) for table in tables])
    basis = None
    if rows.shape[1] > rows.shape[0]:  # all that matters happens in the span of the rows
        basis, triangle = np.linalg.qr(rows.T)
        rows = triangle.T
    whitener, colour = whitening(rows)
    rows = rows @ whitener
    random = generator(random_state)
    steps = min(max_components, rows.shape[1] - 1)
    p_values, excess, directions = [], [], []
    with (
        Progress("permutations", steps * n_permutations, progress) as bar,
        calm_blas(rows.shape[0] * rows.shape[1] ** 2),
    ):
        for step in range(steps):
            observed, direction = largest_excess(rows, is_foreground)
            larger = 0
            for k in range(n_permutations):
                larger += largest_excess(rows, random.permutation(is_foreground), vector=False)[0] >= observed
                bar.update(step * n_permutations + k + 1, f"dimension {step + 1}")
            p_values.append((1 + larger) / (1 + n_permutations))
            excess.append(observed)
            if p_values[-1] > level:
                break
            pattern = colour @ direction
            pattern = pattern if basis is None else basis @ pattern
            directions.append(pattern / np.linalg.norm(pattern))
            rows = rows - np.outer(rows @ direction, direction)
    found = np.array(directions).reshape(len(directions), groups.foreground.shape[1])
    return ComponentTest(len(directions), np.array(p_values), np.array(excess), found, level)


def _centred(table: Any) -> Array:
    mean = finite_column_means(table)
    return (table.toarray() if is_sparse(table) else table).astype(np.float64) - mean


def _deviation(table: Array) -> Array:
    deviation = np.sqrt(np.mean(table**2, axis=0))
    return np.where(deviation > 0, deviation, 1.0)


def remove_background(X: Any, *, background: Any, n_directions: int = 2) -> Any:
    """The foreground with the background's dominant directions removed, in original units.

    x - B B'(x - mean), with B the `n_directions` leading principal directions of the background and mean the
    foreground's. What is left has the foreground's mean and no variance along B. It is a table for looking at, or for
    methods that take one table; it is no estimate of what the foreground would be without the background's causes:
    whatever the foreground has along B is lost with it, shared or not, and what is orthogonal to B stays, even if the
    background varies there too.

    Parameters
    ----------
    X : array-like or data frame of shape (n, D)
    background : array-like or data frame of shape (m, D)
    n_directions : int, default 2, less than D

    Returns
    -------
    ndarray or data frame like `X`

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import remove_background
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> cleaned = remove_background(data.foreground, background=data.background, n_directions=3)
    >>> np.allclose(cleaned.mean(axis=0), data.foreground.mean(axis=0))
    True
    >>> bool(cleaned.var(axis=0).sum() < 0.5 * data.foreground.var(axis=0).sum())
    True
    """
    check_count(n_directions, "n_directions")
    groups = split_groups(X, None, background, None, name="remove_background", needs_background=True)
    D = groups.foreground.shape[1]
    if n_directions >= D:
        raise ValueError(f"n_directions={n_directions} must be less than the number of features, {D}.")
    _, lengths, directions = np.linalg.svd(_centred(groups.tables[1]), full_matrices=False)
    rank = int(np.count_nonzero(lengths > 1e-10 * max(lengths[0], np.finfo(float).tiny)))
    if n_directions > rank:
        raise ValueError(
            f"n_directions={n_directions} is more than the background has: it varies in {rank} directions."
        )
    B = directions[:n_directions].T
    foreground = _centred(groups.foreground)
    table = groups.foreground.toarray() if is_sparse(groups.foreground) else groups.foreground
    return like_table((table - foreground @ B @ B.T).astype(table.dtype), X)
