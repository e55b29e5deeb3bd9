"""The moments of one group of rows, for any storage of its scatter matrix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._files import ROUNDING, SAVED_AS, check_values, save
from .._util.arrays import EPS, Array, Rows, host, is_sparse
from ..data import check_table, check_weights, column_means, text_names
from ..data.rows import merged, storage
from ..exceptions import GroupError
from ._scatter import DenseScatter, RowScatter, Scatter
from ._solver import MAX_DENSE


@dataclass(frozen=True, eq=False)  # arrays have no single truth value for ==
class Moments:
    """Number of rows, mean and centred scatter of one group: all that methods for complete data need.

    Moments of the parts of a table add up exactly to those of the whole, so rows can stay where they are.

    Attributes
    ----------
    weight : float
        Sum of the row weights; the number of rows when rows are not weighted.
    mean : ndarray of shape (D,)
    scatter : Scatter
        sum_i (x_i - mean)(x_i - mean)'; `scatter.dense()` is the matrix.
    names : tuple of str, or None
        Feature names.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import Moments, PCPCA
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(150, 5))
    >>> cases = Moments.from_rows(X[:120]) + Moments.from_rows(X[120:])
    >>> model = PCPCA(1, gamma=0.5).fit(cases, background=Moments.from_rows(Y))
    >>> again = PCPCA(1, gamma=0.5).fit(X, background=Y)
    >>> np.allclose(model.components_, again.components_, atol=1e-12)
    True
    """

    weight: float
    mean: Array
    scatter: Scatter = field(metadata={SAVED_AS: DenseScatter})
    names: tuple[str, ...] | None = None

    @classmethod
    def from_rows(cls, X: Any, sample_weight: Any = None) -> Moments:
        """Compute the moments of a table.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, D)
            Rows without missing values.
        sample_weight : array-like of shape (n,), optional
            How often each row counts, 0 or more.
        """
        rows = check_table(X, "Moments")
        if rows.shape[1] > MAX_DENSE:
            raise ValueError(f"{rows.shape[1]} features are too many for a matrix of moments (at most {MAX_DENSE}).")
        weights = check_weights(sample_weight, rows.shape[0], "sample_weight")
        return replace(cls.of_table(rows, weights), names=text_names(X))

    @classmethod
    def of_table(cls, rows: Rows, weights: Array | None) -> Moments:
        """The moments of a checked table."""
        return _checked(dense_moments(rows, column_means(rows, weights), weights))

    def __add__(self, other: Moments) -> Moments:
        """The moments of both groups of rows together (F8)."""
        if not isinstance(other, Moments):
            return NotImplemented
        self._check_features(other, "added")
        if self.weight + other.weight == np.inf:
            raise ValueError("The total weights of these moments are too large to be added: use smaller weights.")
        weight, mean, matrix = merged(self._parts(), other._parts())
        return _checked(Moments(weight, mean, DenseScatter(matrix), self.names or other.names))

    def __sub__(self, part: Moments) -> Moments:
        """The moments of the rows that are not in `part`, whose rows are among these.

        Exact up to the rounding of the total: the less is left, the fewer digits of it are right.
        """
        if not isinstance(part, Moments):
            return NotImplemented
        self._check_features(part, "subtracted")
        if not part.weight < self.weight:
            raise ValueError(
                f"Moments of weight {part.weight:g} cannot be subtracted from moments of weight {self.weight:g}: the "
                "part weighs less than the whole, and its rows are among those of the whole."
            )
        weight, mean, matrix = part._parts()
        weight, mean, matrix = merged(self._parts(), (-weight, mean, -matrix))
        return Moments(weight, mean, DenseScatter(matrix), self.names or part.names)

    def _check_features(self, other: Moments, done: str) -> None:
        """Raise unless both have the same features in the same order, so that they can be `done`: added, ..."""
        if self.mean.size != other.mean.size or (self.names and other.names and self.names != other.names):
            raise GroupError(f"Only moments of the same features, in the same order, can be {done}.")

    def _parts(self) -> tuple[float, Array, Any]:
        return self.weight, self.mean, self.scatter.dense()

    def stored(self) -> Moments:
        """These moments with a matrix in this process's memory, as files have it."""
        return replace(self, scatter=DenseScatter(host(self.scatter.dense())))

    def save(self, path: Any) -> None:
        """Write the moments to a file that `contrapca.load` reads (npz and JSON, no pickle), atomically."""
        save(path, self.stored())

    def _check_values(self) -> None:
        """Raise if no rows have these, with a scatter matrix in memory."""
        assert isinstance(self.scatter, DenseScatter)
        sizes, matrix = check_values(self, {"mean": "D"}, positive=("weight",)), self.scatter.matrix
        sizes |= check_values(self.scatter, {"matrix": "DD"})
        lengths = np.sqrt(np.abs(np.diagonal(matrix)))
        bound = (1 + ROUNDING) * np.outer(lengths, lengths)  # by Cauchy and Schwarz
        if not np.allclose(matrix, matrix.T) or np.any(np.diagonal(matrix) < 0) or np.any(np.abs(matrix) > bound):
            raise ValueError("its scatter matrix is impossible")
        if self.mean.size != sizes["D"] or (self.names is not None and len(self.names) != sizes["D"]):
            raise ValueError("its mean, scatter matrix and names do not fit each other")

    @property
    def variance(self) -> Array:
        """Variance of each feature (ddof 0), shape (D,)."""
        return self.scatter.diagonal() / self.weight

    def total_variance(self) -> float:
        """tr cov, or 0 if it is only rounding."""
        total = self.scatter.trace / self.weight
        return total if total > self.mean.size * rounding_variance(self) else 0.0

    def scaled(self, divisor: Array) -> Moments:
        """The moments of the rows divided by `divisor`, shape (D,)."""
        return replace(self, mean=self.mean / divisor, scatter=self.scatter.scaled(divisor))


def dense_moments(rows: Rows, mean: Array, weights: Array | None = None) -> Moments:
    """Moments with the scatter matrix of rows that count so often, given their mean."""
    weight = float(rows.shape[0] if weights is None else weights.sum())
    return Moments(weight, mean, DenseScatter(storage(rows).scatter(rows, mean, weights)))


def row_moments(rows: Rows, mean: Array, weights: Array | None = None) -> Moments:
    """Moments with an implicit scatter, which keeps `rows`; products with single vectors copy sparse float32 rows."""
    rows = rows if is_sparse(rows) else storage(rows).prepared(rows)
    weight = float(rows.shape[0] if weights is None else weights.sum())
    return Moments(weight, mean, RowScatter(rows, mean, np.ones(mean.size), weights))


def _checked(moments: Moments) -> Moments:
    """These moments; raise if a sum of squares is not finite."""
    if not np.isfinite(moments.scatter.trace):
        raise ValueError("Input contains values too large to be squared: rescale them.")
    return moments


def pooled_deviation(groups: Iterable[Moments]) -> Array:
    """Within-group sd of each feature (ddof 0), 1 if constant in each group up to rounding, shape (D,)."""
    every = list(groups)
    squares = np.sum([group.scatter.diagonal() for group in every], axis=0)
    return deviation_beyond_rounding(squares, sum(group.weight for group in every), [group.mean for group in every])


def deviation_beyond_rounding(squares: Array, counts: Array | float, means: list[Array]) -> Array:
    """Sd of each feature from sums of squares of `counts` values, 1 if rounding of the means explains it, shape
    (D,)."""
    variance = squares / counts
    rounding = counts * EPS * np.max(np.abs(means), axis=0)
    return np.where(variance > rounding**2, np.sqrt(np.maximum(variance, 0.0)), 1.0)


def rounding_variance(group: Any) -> float:
    """The largest variance that rounding of the mean can give a constant feature, for Moments or a MaskedGroup."""
    return float((group.weight * EPS * np.abs(group.mean).max()) ** 2)
