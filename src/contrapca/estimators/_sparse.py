"""Contrastive PCA with few features in each component."""

from __future__ import annotations

from typing import Any

from .._checks import check_n_components, check_option, check_sparsity
from ..groups import Tables, refuse_devices
from ..methods import SparseCpca
from ..moments import Complete, Incomplete, Moments, choose_solver, collect
from ._cpca import ContrastOfVariances


class SparseCPCA(ContrastOfVariances):
    """Contrastive PCA whose components have at most `sparsity` features each.

    Each component is the direction of largest contrast, v'(cov_X - gamma cov_Y) v, among those with so few features and
    after what the components before have taken. Few features are easier to name, to check and to measure again; whether
    they are the same in other samples is what `contrapca.stability_selection` tells, and how much contrast they cost
    `contrapca.sparsity_path`.

    Parameters
    ----------
    n_components : int, default 2
        Number of components d, 1 <= d < D.
    sparsity : int, default 10
        Largest number of features of a component, at most D.
    gamma : float, dict, "auto" or "budget", default "auto"
        As for `CPCA`; "auto" and "budget" are those of CPCA with all features.
    background_label, scale
        As for `CPCA`.
    solver : {"auto", "eigh", "lanczos"}, default "auto"
        How the moments are stored: as matrices, or as the rows themselves, so that nothing of size D x D is formed.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Unit vectors with at most `sparsity` entries that are not 0; not orthogonal.
    eigenvalues_ : ndarray of shape (d,)
        v'(cov_X - gamma cov_Y) v of the part of each component that is orthogonal to those before, as a unit vector.
    explained_variance_, background_variance_ : ndarray of shape (d,)
        Variance (ddof 0) of each group along each component.
    gamma_, gamma_raw_, mean_, scale_, background_mean_, background_scale_, solver_, n_iter_
        As for `CPCA`.

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
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        sparsity: int = 10,
        gamma: float | str | dict[str, float] = "auto",
        background_label: Any = None,
        scale: str | None = None,
        solver: str = "auto",
    ):
        super().__init__(n_components, gamma=gamma, background_label=background_label, scale=scale, solver=solver)
        self.sparsity = sparsity

    _takes_devices = False
    _resampled = False  # aligned refits would have all features; `stability_selection` is the answer here

    @property
    def _method(self) -> SparseCpca:  # type: ignore[override]
        return SparseCpca(size=self.sparsity)

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        refuse_devices(tables, type(self).__name__)
        check_sparsity(self.sparsity, tables.n_features)
        check_option(self.solver, "solver", ("auto", "eigh", "lanczos"))
        solver = self.solver
        moments = isinstance(tables.rows.foreground, Moments)
        if solver == "auto" and not moments and choose_solver(tables).name == "dual":  # in coordinates of its own
            solver = "lanczos"
        return collect(tables, check_n_components(self.n_components, tables.n_features), self._scaling, solver)
