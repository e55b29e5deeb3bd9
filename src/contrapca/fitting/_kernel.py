"""CPCA in the feature space of a kernel: coordinates there, then the linear solution (F32)."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, ClassVar

import numpy as np

from .._checks import SCALES, check_count, check_option, check_positive, generator
from .._util.arrays import Array, Rows, is_sparse, row_slices
from .._util.devices import float_type, on_device
from ..backgrounds import label_groups
from ..exceptions import GroupError, InfeasibleGammaError, NonFiniteError, RankError
from ..groups import Groups, Tables, split_groups
from ..methods import CPCA_METHOD
from ..moments import (
    FLOAT32_TOLERANCE,
    KERNEL_TOLERANCE,
    KERNELS,
    Complete,
    FeatureSpace,
    Indices,
    Kernel,
    Moments,
    check_definite,
    check_precomputed,
    choose_landmarks,
    collect,
    dense_moments,
    factors,
    median_bandwidth,
)
from ..rows import DaskRows, as_rows
from ..units import Units, group_of
from ._complete import fit_complete
from ._fit import Latents, share_of
from ._held_out import unwarned

AUTO_GAMMA = 1.5  # or half the limit, if that is not below it (F33)
LANDMARKS = 1000  # that "auto" takes: 2000 + 2000 rows are then fitted in about a second
BLOCK_ROWS = 1024  # whose kernel values are computed at a time


@dataclass(frozen=True)
class KernelSettings:
    """What the user asked for, checked: `bandwidth` may be "auto", `n_landmarks` too, or None for all (F32, F33)."""

    kernel: str
    bandwidth: float | str
    degree: int
    coef0: float
    n_landmarks: int | str | None
    scale: str | None
    random_state: Any

    def __post_init__(self) -> None:
        check_option(self.kernel, "kernel", KERNELS)
        check_option(self.scale, "scale", SCALES)
        check_count(self.degree, "degree")
        if not (isinstance(self.bandwidth, str) and self.bandwidth == "auto"):
            check_positive(self.bandwidth, "bandwidth")
        if not isinstance(self.coef0, numbers.Real) or not 0 <= float(self.coef0) < np.inf:
            raise ValueError(f"coef0={self.coef0!r} must be a finite number, 0 or more: others are no kernel.")
        if isinstance(self.n_landmarks, str):
            check_option(self.n_landmarks, "n_landmarks", ("auto",))
        elif self.n_landmarks is not None:
            check_count(self.n_landmarks, "n_landmarks", least=2)
        if self.precomputed and self.scale is not None:
            raise ValueError(f"scale={self.scale!r} needs features, and a precomputed kernel has none: use scale=None.")

    @property
    def precomputed(self) -> bool:
        """Whether tables have kernel values in place of rows."""
        return self.kernel == "precomputed"


@dataclass(frozen=True)
class Map:
    """From rows to coordinates of a feature space.

    Attributes
    ----------
    space : FeatureSpace
    units : Groups of Units
        Of the features; for a precomputed kernel, of its columns.
    origin : ndarray of shape (D,)
        What rows are measured from, in the kernel's units.
    """

    space: FeatureSpace
    units: Groups[Units]
    origin: Array

    def coordinates(self, rows: Rows, units: Units) -> Array:
        """Coordinates of rows with these units, shape (n, r)."""
        return _by_block(rows, lambda block: self.space.coordinates(_dense(block, units, self.origin)))

    def moments(self, rows: Rows, units: Units, weights: Array | None) -> Moments:
        """Moments of the coordinates, of which there are never more than those of a block."""

        def of_block(part: slice) -> Moments:
            block, own = self.coordinates(rows[part], units), None if weights is None else weights[part]
            return dense_moments(block, np.average(block, axis=0, weights=own), own)

        return reduce(add, map(of_block, row_slices(rows.shape[0], BLOCK_ROWS)))


@dataclass(frozen=True)
class KernelFit:
    """CPCA in a feature space: everything the estimator reports.

    Attributes
    ----------
    units : Groups of Units
    kernel : Kernel
    origin : ndarray of shape (D,)
    landmarks : ndarray of shape (r, D)
        In the kernel's units; for a precomputed kernel columns of it, shape (r, 1).
    coefficients : ndarray of shape (r, k)
        The latents of a row x are k(x, landmarks) coefficients, minus those of the mean of its group.
    offsets : Groups of ndarray of shape (k,)
        Of the mean of each group.
    variances : Groups of ndarray of shape (k,)
    totals : Groups of float
        Variance of each group in the feature space.
    gamma : float
    eigenvalues : ndarray of shape (k,)
    """

    units: Groups[Units]
    kernel: Kernel
    origin: Array
    landmarks: Array
    coefficients: Array
    offsets: Groups[Array]
    variances: Groups[Array]
    totals: Groups[float]
    gamma: float
    eigenvalues: Array
    model: ClassVar[None] = None  # as in a `Fit` without a distribution, or covariates
    covariates: ClassVar[None] = None

    @property
    def n_shown(self) -> int:
        """k."""
        return self.eigenvalues.size

    @property
    def shares(self) -> Groups[Array]:
        """Fraction of each group's variance along each component, shape (k,)."""
        return self.variances.map(share_of, self.totals)

    @property
    def objective(self) -> float:
        """CPCA's objective in the feature space: n times the sum of the eigenvalues."""
        return self.units.foreground.weight * float(self.eigenvalues.sum())

    @property
    def gammas(self) -> dict[str, float]:
        """The part of gamma that each background has, by name."""
        return dict(zip(self.units.names[1:], (-factors(self.units, self.gamma)[1:]).tolist(), strict=True))

    @property
    def strength(self) -> float | dict[str, float]:
        """gamma as the estimator takes it: one number, or one for each background if they have their own."""
        return self.gamma if self.units.mix is None else self.gammas

    def latents(self, rows: Rows, center: str) -> Array:
        """Latent coordinates of rows about the mean of the group named by `center`, shape (n, k)."""
        units, offset = group_of(self.units, center), group_of(self.offsets, center)

        def latents(block: Rows) -> Array:
            return self.kernel(_dense(block, units, self.origin), self.landmarks) @ self.coefficients - offset

        return _by_block(rows, latents)

    def along_components(self, rows: Rows) -> Array:
        """The same about the foreground's mean."""
        return self.latents(rows, "foreground")


def _dense(rows: Rows, units: Units, origin: Array) -> Array:
    """Rows in the kernel's units, as a new array of float64."""
    dense = np.asarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64)
    return dense / units.scale - origin


def _by_block(rows: Rows, function: Callable[[Rows], Array]) -> Array:
    """A function of blocks of rows, stacked."""
    return np.vstack([function(rows[part]) for part in row_slices(rows.shape[0], BLOCK_ROWS)])


def kernel_tables(
    settings: KernelSettings, X: Any, y: Any, background: Any, background_label: Any, *, name: str, **given: Any
) -> tuple[Tables, Groups[Indices] | None]:
    """The checked tables, and the columns that their rows are if they are kernel values.

    Other arguments are those of `split_groups`.
    """
    try:
        tables = split_groups(X, y, background, background_label, name=name, **given)
    except NonFiniteError as error:
        if not settings.precomputed:
            raise
        raise ValueError(
            f"The precomputed kernel has a value that is not finite in column {error.feature}, counting from 0: "
            "compute it from complete rows, or drop this row and column."
        ) from None
    for rows in tables.rows:
        check_in_memory(rows)
    return _kernel_values(tables, y, background_label) if settings.precomputed else (tables, None)


def refuse_covariates(*given: Any) -> None:
    """Raise if there are covariates."""
    if any(covariates is not None for covariates in given):
        raise GroupError("KernelCPCA takes no covariates: take them out of the tables with regress_out first.")


def check_in_memory(X: Any) -> None:
    """Raise for rows that are in a file, on a cluster or on a device."""
    if isinstance(as_rows(X), DaskRows) or on_device(X):
        raise TypeError(
            "KernelCPCA needs rows in memory, as NumPy arrays: for example X[:] for a file, X.compute() for dask, "
            "X.cpu().numpy() for torch."
        )


def _kernel_values(tables: Tables, y: Any, background_label: Any) -> tuple[Tables, Groups[Indices]]:
    """A precomputed kernel as dense tables, and which columns the rows of each group are."""
    given = tables.rows.map(lambda rows, kept: int(rows.shape[0] if kept is None else kept.size), tables.kept)
    edges, D = np.cumsum([0, *given]), tables.n_features
    if edges[-1] != D:
        raise GroupError(
            f"kernel='precomputed' needs one row and one column for each case and control, but there are {edges[-1]} "
            f"rows ({' + '.join(map(str, given))}) and {D} columns. With the square matrix K of all cases, then all "
            "controls, pass fit(K[:n], background=K[n:])."
        )
    labelled = background_label is not None and y is not None
    order = np.argsort(label_groups(y, background_label, D)[0], kind="stable") if labelled else np.arange(D)
    columns = tables.rows.like(order[a:b] for a, b in pairwise(edges))
    columns = columns.map(lambda own, kept: own if kept is None else own[kept], tables.kept)
    return replace(tables, rows=tables.rows.map(lambda rows: rows.toarray() if is_sparse(rows) else rows)), columns


def map_of(tables: Tables, columns: Groups[Indices] | None, settings: KernelSettings) -> Map:
    """The map to coordinates of the landmarks' span.

    Parameters
    ----------
    tables : Tables
    columns : Groups of ndarray of int of shape (n_k,), or None
        For a precomputed kernel, which is dense: the columns that the rows of each group are.
    settings : KernelSettings
    """
    rows, given = tables.rows, columns is not None
    size = LANDMARKS if isinstance(settings.n_landmarks, str) else settings.n_landmarks
    counts = [table.shape[0] for table in rows]
    chosen = rows.like(choose_landmarks(counts, size, generator(settings.random_state)))
    units = _units_of_columns(tables) if given else collect(tables, 0, settings.scale, "lanczos").units
    nowhere = np.zeros(tables.n_features)
    sample = rows.map(lambda table, own, some: _dense(table[some], own, nowhere), units, chosen)
    origin = nowhere if given else _origin(settings.kernel, sample, units)
    sample = sample.map(lambda own: own - origin)
    weights = tables.weights.map(lambda own, some: None if own is None else own[some], chosen)
    width = _bandwidth(settings, sample, weights)
    kernel = Kernel(settings.kernel, width, int(settings.degree), float(settings.coef0))
    stacked = np.vstack(list(sample))
    if columns is None:
        return Map(FeatureSpace.spanned(kernel, kernel(stacked, stacked), stacked), units, origin)
    check_precomputed(np.vstack(list(rows))[:, np.concatenate(list(columns))])
    tolerance = FLOAT32_TOLERANCE if units.foreground.dtype == "float32" else KERNEL_TOLERANCE
    landmarks = np.hstack(list(columns.map(lambda own, some: own[some], chosen)))[:, None].astype(np.float64)
    gram = kernel(stacked, landmarks)
    found = Map(FeatureSpace.spanned(kernel, gram, landmarks, tolerance), units, origin)
    lengths = rows.map(lambda table, own: table[np.arange(own.size), own], columns)
    coordinates = np.vstack(list(rows.map(found.coordinates, units)))
    check_definite(np.concatenate(list(lengths)), coordinates, gram, tolerance)
    return found


def _origin(kernel: str, sample: Groups[Array], units: Groups[Units]) -> Array:
    """What rows are measured from: the mean of the groups' means; of "rbf", the median of the sample.

    Distances do not depend on it, but lose digits if it is far from the rows, as means are if there are outliers.
    """
    if kernel == "rbf":
        return np.asarray(np.median(np.vstack(list(sample)), axis=0))
    return np.mean([own.origin for own in units], axis=0)


def _units_of_columns(tables: Tables) -> Groups[Units]:
    """Of a precomputed kernel: its columns are no features, and are used as they are."""
    names, dtype = tables.names if tables.text_names else None, float_type(tables.rows.foreground)
    ones = np.ones(tables.n_features)
    return tables.totals.map(lambda total, mean: Units(total, mean, 0 * ones, ones, names, dtype), tables.means)


def _bandwidth(settings: KernelSettings, sample: Groups[Array], weights: Groups[Any]) -> float:
    """As given, or by the median rule; 1 where the kernel has none."""
    if settings.kernel not in ("rbf", "poly"):
        return 1.0
    given = settings.bandwidth
    return median_bandwidth(list(sample), list(weights)) if isinstance(given, str) else float(given)


def fit_kernel(
    tables: Tables, columns: Groups[Indices] | None, settings: KernelSettings, d: int, gamma: float | None
) -> KernelFit:
    """CPCA with d components in the feature space, at `gamma` (None: as F33 says)."""
    mapped = map_of(tables, columns, settings)
    if mapped.space.size <= d:
        raise RankError(d)
    moments = tables.rows.map(mapped.moments, mapped.units, tables.weights)
    with unwarned():  # of coordinates, which are no features
        data = collect(Tables.of_moments(moments, None, False), d, None)
    assert isinstance(data, Complete)
    try:
        fit = fit_complete(data, CPCA_METHOD, Latents.plain(d), AUTO_GAMMA if gamma is None else gamma)
    except InfeasibleGammaError as error:
        if gamma is not None:
            raise
        fit = fit_complete(data, CPCA_METHOD, Latents.plain(d), error.limit / 2)
    assert fit.eigenvalues is not None
    found = KernelFit(
        units=replace(mapped.units, mix=tables.rows.mix),
        kernel=mapped.space.kernel,
        origin=mapped.origin,
        landmarks=mapped.space.landmarks,
        coefficients=mapped.space.coefficients(fit.components),
        offsets=moments.map(lambda group: group.mean @ fit.components),
        variances=fit.variances,
        totals=fit.totals,
        gamma=fit.gamma,
        eigenvalues=fit.eigenvalues,
    )
    return _signed(found, found.latents(tables.rows.foreground, "foreground"))


def _signed(fit: KernelFit, latents: Array) -> KernelFit:
    """The fit with the case that is farthest from the mean on the positive side of each component."""
    far = np.abs(latents).argmax(axis=0)
    signs = np.where(latents[far, np.arange(far.size)] < 0, -1.0, 1.0)
    return replace(fit, coefficients=fit.coefficients * signs, offsets=fit.offsets.map(lambda own: own * signs))
