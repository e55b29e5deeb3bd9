"""Sparse components of many sizes: how much contrast do few features keep?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from .._checks import check_count, check_sparsity
from .._util.arrays import Array
from .._util.progress import Progress
from .._util.table import Table
from ..estimators import SparseCPCA
from ..fitting import Fit, solve_complete
from ..moments import Complete, contrast, read
from ..solvers import top_eigenpairs

POINTS, LARGEST = 20, 500  # sizes of a default path, and the largest of them


@dataclass(frozen=True, eq=False)
class SparsityPath:
    """The result of `sparsity_path`.

    Attributes
    ----------
    sizes : ndarray of int of shape (K,)
        Largest number of features of a component, increasing.
    contrasts : ndarray of shape (K,)
        tr V'(cov_X - gamma cov_Y) V in the span of the components of each size.
    dense_contrast : float
        The same for CPCA with all features.
    gamma : float
    estimator : SparseCPCA
        Not fitted.
    """

    sizes: npt.NDArray[np.intp]
    contrasts: Array
    dense_contrast: float
    gamma: float
    estimator: SparseCPCA
    _fits: tuple[Fit, ...]

    def __len__(self) -> int:
        return self.sizes.size

    def __repr__(self) -> str:
        edge = f"{self.sizes[0]} to {self.sizes[-1]} features, gamma {self.gamma:.4g}"
        return f"SparsityPath({len(self)} sizes from {edge}, d = {self.estimator.n_components})"

    @property
    def shares(self) -> Array:
        """Contrasts as a fraction of that with all features, shape (K,)."""
        return self.contrasts / self.dense_contrast

    def _index(self, size: int) -> int:
        found = np.flatnonzero(self.sizes == size)
        if found.size == 0:
            raise ValueError(f"{size} is not one of this path's sizes: {', '.join(map(str, self.sizes))}.")
        return int(found[0])

    def components(self, size: int) -> Array:
        """Components with at most `size` features, shape (d, D)."""
        return self._fits[self._index(size)].components.T

    def model(self, size: int) -> SparseCPCA:
        """The fitted estimator of one of the path's sizes."""
        fit = self._fits[self._index(size)]
        found = clone(self.estimator).set_params(sparsity=int(size))
        return found._with_strength(fit.strength)._with_fit(fit)

    def table(self) -> Table:
        """One row for each size."""
        used = [int(np.any(fit.components != 0, axis=1).sum()) for fit in self._fits]
        return Table(
            {
                "sparsity": self.sizes,
                "features": np.array(used),
                "contrast": self.contrasts,
                "share": self.shares,
                "cases_share": np.array([fit.shares.foreground.sum() for fit in self._fits]),
            }
        )


def sparsity_path(
    estimator: SparseCPCA,
    X: Any,
    *,
    background: Any,
    sizes: Any = None,
    sample_weight: Any = None,
    background_weight: Any = None,
    progress: bool = True,
) -> SparsityPath:
    """Sparse components of many sizes at one gamma, from the largest to the smallest, each started from the one before.

    Parameters
    ----------
    estimator : SparseCPCA
        Its parameters are used, except `sparsity`.
    X : array-like, data frame or sparse matrix of shape (n, D), or Moments
    background : array-like, data frame or sparse matrix of shape (m, D), or Moments, or a dict of them
    sizes : array-like of int or int, optional
        Largest numbers of features of a component, or how many of them: by default 20, from 1 to all features or
        500, evenly spread in their logarithm.
    sample_weight, background_weight
        As for the `fit` of CPCA.
    progress : bool, default True
        Show a progress bar on a terminal or in a notebook if it takes longer than two seconds.

    Returns
    -------
    SparsityPath

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import SparseCPCA, sparsity_path
    >>> rng = np.random.default_rng(0)
    >>> controls, cases = rng.normal(size=(2, 200, 30))
    >>> cases[:, [3, 7, 11]] += 2 * rng.normal(size=(200, 1))
    >>> path = sparsity_path(SparseCPCA(1, gamma=1.0), cases, background=controls, sizes=[1, 2, 3, 30])
    >>> path.shares.round(1)
    array([0.3, 0.7, 1. , 1. ])
    """
    if not isinstance(estimator, SparseCPCA):
        raise TypeError(f"sparsity_path needs a SparseCPCA as its first argument; got {type(estimator).__name__}.")
    tables = read(
        X,
        None,
        background,
        name="sparsity_path",
        needs_background=True,
        sample_weight=sample_weight,
        background_weight=background_weight,
        gamma=estimator.gamma,
    )
    D, d = tables.n_features, estimator.n_components
    grid = _checked_sizes(sizes, D)
    model = clone(estimator).set_params(sparsity=int(grid[-1]))
    data = model._collected(tables)
    assert isinstance(data, Complete)
    largest = model._fitted(tables, data, model._strength())
    data = replace(data, groups=replace(data.groups, mix=largest.units.mix), units=largest.units)
    C = contrast(data.groups, largest.gamma)
    dense, n = top_eigenpairs(C, d), data.groups.foreground.weight
    fits = [largest]
    with Progress("sparse components", grid.size, progress) as bar:
        for size in grid[-2::-1]:
            bar.update(len(fits), f"{size} features")
            method = replace(model._method, size=int(size), dense=dense.vectors)
            fit = solve_complete(data, method, model._latents(), largest.gamma, fits[-1].components)
            if fit is None:  # so few features have no contrast left for the last component
                break
            fits.append(fit)
    found = tuple(fits[::-1])
    contrasts = np.array([fit.objective for fit in found]) / n
    kept = grid[grid.size - len(found) :]
    return SparsityPath(kept, contrasts, float(dense.values.sum()) / n, largest.gamma, clone(estimator), found)


def _checked_sizes(sizes: Any, D: int) -> npt.NDArray[np.intp]:
    if sizes is None or np.ndim(sizes) == 0:
        points = POINTS if sizes is None else check_count(sizes, "sizes", least=2)
        sizes = np.round(np.geomspace(1, min(D, LARGEST), points)).astype(int)
    given = np.asarray(sizes)
    if given.size == 0 or given.dtype.kind not in "iu":
        raise ValueError("sizes must contain at least one whole number of features, or be how many sizes there are.")
    for size in given.ravel().tolist():
        check_sparsity(size, D)
    return np.unique(given)
