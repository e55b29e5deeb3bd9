"""Contrastive PCA, or contrast axes, with few features in each component."""

from __future__ import annotations

from typing import Any

from .._checks import check_few_features, check_n_components, check_option
from ..fitting import CONTRAST_FRACTION, Halves, Latents, contrast_gamma, gamma_with_contrast
from ..groups import Tables, refuse_devices
from ..methods import CPCA_METHOD, SparseAxes, SparseCpca
from ..moments import Complete, Incomplete, Moments, choose_solver, collect
from ._cpca import ContrastOfVariances

DEFAULT_SPARSITY = 10  # features of a component if there is no penalty


class SparseCPCA(ContrastOfVariances):
    """Contrastive PCA whose components have few features each: at most so many, or as a penalty allows.

    Each component is the direction of largest contrast, v'(cov_X - gamma cov_Y) v, among those with so few features and
    after what the components before have taken. Few features are easier to name, to check and to measure again; whether
    they are the same in other samples is what `contrapca.stability_selection` tells, and how much contrast they cost
    `contrapca.sparsity_path`.

    Parameters
    ----------
    n_components : int, default 2
        Number of components d, 1 <= d < D.
    sparsity : int, optional
        Largest number of features of a component, at most D; 10 if there is no penalty.
    penalty : float, optional
        Instead of `sparsity`, the weight of the sum of the loadings' magnitudes, above 0 and below 1: each component
        maximises `v'(cov_X - gamma cov_Y) v - 2 penalty lambda sum |v_j|`, where lambda is the eigenvalue of CPCA's
        component. Roughly, loadings that would be below the penalty become 0.
    axes : {"variance", "contrast"}, default "variance"
        "contrast" makes the axes of `ContraPCA` sparse instead of CPCA's: the features are those that hold most of
        these axes, and their weights show them best against the background's variance. It finds weaker directions
        than CPCA where both groups share strong ones.
    gamma : float or "auto", default "auto"
        As for `CPCA`; "auto" is that of CPCA with all features, or less, with a warning, where components of few
        features have no contrast left. With contrast axes as for `ContraPCA`: "auto" is half the limit.
    background_label, scale
        As for `PCPCA`.
    solver : {"auto", "eigh", "lanczos"}, default "auto"
        How the moments are stored: as matrices, or as the rows themselves, so that nothing of size D x D is formed.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Unit vectors with at most `sparsity` entries that are not 0; not orthogonal.
    eigenvalues_ : ndarray of shape (d,)
        v'(cov_X - gamma cov_Y) v of the part of each component that is orthogonal to those before, as a unit vector.
        With contrast axes, what the features of each component hold of the foreground's variances along the axes.
    explained_variance_, background_variance_, gamma_, mean_, scale_, solver_, n_iter_
        As for `PCPCA`, as are `background_mean_` and `background_scale_`.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import SparseCPCA
    >>> rng = np.random.default_rng(0)
    >>> controls = rng.normal(size=(200, 30))
    >>> cases = rng.normal(size=(200, 30))
    >>> cases[:, [3, 7, 11]] += 2 * rng.normal(size=(200, 1))
    >>> model = SparseCPCA(n_components=1, sparsity=3, gamma=1.0).fit(cases, background=controls)
    >>> np.flatnonzero(model.components_[0])
    array([ 3,  7, 11])
    >>> model = SparseCPCA(n_components=1, penalty=0.2, axes="contrast").fit(cases, background=controls)
    >>> np.flatnonzero(model.components_[0])
    array([ 3,  7, 11])
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        sparsity: int | None = None,
        penalty: float | None = None,
        axes: str = "variance",
        gamma: float | str = "auto",
        background_label: Any = None,
        scale: str | None = None,
        solver: str = "auto",
    ):
        self.n_components = n_components
        self.sparsity = sparsity
        self.penalty = penalty
        self.axes = axes
        self.gamma = gamma
        self.background_label = background_label
        self.scale = scale
        self.solver = solver

    _known_as = "contrastive principal component analysis with few features per component (SparseCPCA)"
    _is_sparse = True  # what `sparsity_path` and `stability_selection` ask
    _takes_missing = _takes_devices = False
    _resampled = False  # aligned refits would have all features; `stability_selection` is the answer here
    _reduced = _rotates = False  # features count one by one

    @property
    def _holds_out(self) -> bool:  # type: ignore[override]
        return self.axes == "variance"

    @property
    def _method(self) -> SparseCpca:  # type: ignore[override]
        if self.axes == "variance":
            return SparseCpca(size=self._size, penalty=self.penalty)
        return SparseAxes(size=self._size, penalty=self.penalty, shown=self.n_components)

    @property
    def _size(self) -> int | None:
        return DEFAULT_SPARSITY if self.sparsity is None and self.penalty is None else self.sparsity

    def _latents(self, n_features: int | None = None) -> Latents:
        if self.axes == "variance":
            return super()._latents()
        return Latents(self.n_components, None, fraction=CONTRAST_FRACTION)

    def _strength(self) -> float | None:
        check_option(self.axes, "axes", ("variance", "contrast"))
        return super()._strength()

    def _contrast_gamma(self, halves: Halves, data: Complete) -> tuple[float, float]:
        """That of all features, or less."""
        gamma, limit = contrast_gamma(halves, self._trained, data, CPCA_METHOD, self._latents())
        return gamma_with_contrast(data, self._method, self._latents(), gamma), limit

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        refuse_devices(tables, type(self).__name__)
        check_few_features(self._size, self.penalty, tables.n_features)
        check_option(self.solver, "solver", ("auto", "eigh", "lanczos"))
        d, solver = check_n_components(self.n_components, tables.n_features), self.solver
        if solver == "auto" and not isinstance(tables.rows.foreground, Moments):
            solver = "lanczos" if choose_solver(tables).name == "dual" else solver  # which would mix features
        return collect(tables, d, self._scaling, solver, reduced=False)
