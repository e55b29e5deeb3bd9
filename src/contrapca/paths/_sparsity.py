"""Sparse components of many sizes: how much contrast do few features keep?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from .._checks import check_count, check_penalty, check_sparsity
from .._util.arrays import Array
from .._util.progress import Progress
from .._util.table import Table
from ..estimators import SparseCPCA, answers
from ..fitting import Fit, fit_data, resolved, solve_complete
from ..moments import contrast, read

POINTS, LARGEST = 20, 500  # sizes of a default path, and the largest of them


@dataclass(frozen=True, eq=False)
class SparsityPath:
    """The result of `sparsity_path`, from few features to many.

    Attributes
    ----------
    sizes : ndarray of int of shape (K,)
        Largest number of features of a component: as asked for, or, with penalties, as found.
    penalties : ndarray of shape (K,), or None
        Decreasing, if they were given instead of sizes.
    contrasts : ndarray of shape (K,)
        tr V'(cov_X - gamma cov_Y) V in the span of the components of each size; with contrast axes, what they hold of
        the foreground's variances along the axes.
    dense_contrast : float
        The same for all features.
    gamma : float
    estimator : SparseCPCA
        Not fitted.
    """

    sizes: npt.NDArray[np.intp]
    penalties: Array | None
    contrasts: Array
    dense_contrast: float
    gamma: float
    estimator: SparseCPCA
    _fits: tuple[Fit, ...]

    def __len__(self) -> int:
        return self.sizes.size

    def __repr__(self) -> str:
        edge = f"{self.sizes[0]} to {self.sizes[-1]} features, gamma {self.gamma:.4g}"
        what = "sizes" if self.penalties is None else "penalties"
        return f"SparsityPath({len(self)} {what} from {edge}, d = {self.estimator.n_components})"

    @property
    def shares(self) -> Array:
        """Contrasts as a fraction of that with all features, shape (K,)."""
        return self.contrasts / self.dense_contrast

    def _index(self, value: float) -> int:
        what, values = ("sizes", self.sizes) if self.penalties is None else ("penalties", self.penalties)
        found = np.flatnonzero(values == value)
        if found.size == 0:
            raise ValueError(f"{value} is not one of this path's {what}: {', '.join(map(str, values.tolist()))}.")
        return int(found[0])

    def components(self, value: float) -> Array:
        """Components of one of the path's sizes, or penalties, shape (d, D)."""
        return self._fits[self._index(value)].components.T

    def model(self, value: float) -> SparseCPCA:
        """The fitted estimator of one of the path's sizes, or penalties."""
        fit = self._fits[self._index(value)]
        found = clone(self.estimator).set_params(**_setting(value, self.penalties is not None))
        return found._with_strength(fit.gamma)._with_fit(fit)

    def table(self) -> Table:
        """One row for each size or penalty."""
        used = [int(np.any(fit.components != 0, axis=1).sum()) for fit in self._fits]
        return Table(
            ({"sparsity": self.sizes} if self.penalties is None else {"penalty": self.penalties})
            | {
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
    penalties: Any = None,
    sample_weight: Any = None,
    background_weight: Any = None,
    progress: bool = True,
) -> SparsityPath:
    """Sparse components of many sizes at one gamma, from the largest to the smallest, each started from the one before.

    Parameters
    ----------
    estimator : SparseCPCA
        Its parameters are used, except `sparsity` and `penalty`.
    X : array-like, data frame or sparse matrix of shape (n, D), or Moments
    background : array-like, data frame or sparse matrix of shape (m, D), or Moments, or a dict of them
    sizes : array-like of int or int, optional
        Largest numbers of features of a component, or how many of them: by default 20, from 1 to all features or
        500, evenly spread in their logarithm. gamma is that of the largest; sizes that have no contrast left at it
        are left out.
    penalties : array-like of float, optional
        Penalties, instead of sizes.
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
    if not answers(estimator, "_is_sparse"):
        raise TypeError(f"sparsity_path needs a SparseCPCA as its first argument; got {type(estimator).__name__}.")
    if sizes is not None and penalties is not None:
        raise ValueError("sizes= and penalties= are two ways to ask for few features: pass only one of them.")
    given = {"sample_weight": sample_weight, "background_weight": background_weight}
    tables = read(X, None, background, name="sparsity_path", needs_background=True, **given)
    penalised = penalties is not None
    grid: Any = _checked_penalties(penalties) if penalised else _checked_sizes(sizes, tables.n_features)
    model = clone(estimator).set_params(**_setting(grid[-1], penalised))
    data, gamma = model._collected(tables), model._strength()
    if gamma is None:
        gamma = model._solve(data, None, tables).gamma
    latents, n = resolved(data, model._latents()), data.groups.foreground.weight
    target = model._method.target(contrast(data.groups, gamma), latents.rank)
    fits = [fit_data(data, replace(model._method, known=target), latents, gamma, model._settings())]
    with Progress("sparse components", grid.size, progress) as bar:
        for value in grid[-2::-1]:
            bar.update(len(fits), f"{'penalty ' if penalised else ''}{value:g}{'' if penalised else ' features'}")
            method = replace(clone(model).set_params(**_setting(value, penalised))._method, known=target)
            fit = solve_complete(data, method, latents, gamma, fits[-1].components)
            if fit is None:  # so few features have no contrast left for the last component
                break
            fits.append(fit)
    found = tuple(fits[::-1])
    kept = grid[grid.size - len(found) :]
    counts = np.array([np.count_nonzero(fit.components, axis=0).max() for fit in found])
    return SparsityPath(
        counts if penalised else kept,
        kept if penalised else None,
        np.array([fit.objective for fit in found]) / n,
        float(target.dense.values.sum()) / n,
        gamma,
        clone(estimator),
        found,
    )


def _setting(value: float, penalised: bool) -> dict[str, float | None]:
    """The parameters of SparseCPCA for a size or a penalty."""
    return {"sparsity": None, "penalty": float(value)} if penalised else {"sparsity": int(value), "penalty": None}


def _checked_penalties(penalties: Any) -> Array:
    """Decreasing penalties: from few features to many."""
    given = np.ravel(np.asarray(penalties, dtype=np.float64))
    if given.size == 0:
        raise ValueError("penalties must contain at least one number above 0 and below 1.")
    for penalty in given.tolist():
        check_penalty(penalty)
    return np.unique(given)[::-1]


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
