"""Contrastive PCA with few features in each component."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from .._util.arrays import Array
from .._util.checks import check_n_components, one_of
from ..contrast import (
    RANKED,
    TOLERANCE,
    Fit,
    Halves,
    PathSpectrum,
    Solution,
    Training,
    half_latents,
    in_original_units,
    path_of_solutions,
    reproducible_contrast,
    solve_sparse,
)
from ..data import Groups, Study, Tables, refuse_devices
from ..exceptions import warn
from ..missing import Incomplete, collect
from ..moments import Complete, Contrast, Moments, choose_solver, contrast
from ._base import Choice, Contrastive, unfitted
from ._cpca import CPCA

SIZES = (1, 2, 5, 10, 20, 50, 100)  # features of a component that sparsity="auto" tries, as the table has them
LOST = 0.05  # part of the best score that fewer features may lose
HALVINGS = 30  # of a gamma that leaves few features no contrast


def check_sparsity(sparsity: Any, _: str) -> None:
    """Raise unless it is "auto" or a whole number, 1 or more."""
    if isinstance(sparsity, str) and sparsity == "auto":
        return
    if not isinstance(sparsity, numbers.Integral) or isinstance(sparsity, bool) or int(sparsity) < 1:
        raise ValueError(f"sparsity={sparsity!r} must be a whole number of features, 1 or more, or 'auto'.")


class SparseCPCA(Contrastive):
    """Contrastive PCA whose components have few features each.

    Each component is the direction of largest contrast, v'(cov_X - gamma cov_Y) v, among those with so few features and
    after what the components before have taken. Few features are easier to name, to check and to measure again; whether
    they are the same in other samples is what `contrapca.stability_selection` tells.

    Parameters
    ----------
    n_components : int, default 2
        Number of components d, 1 <= d < D.
    sparsity : int or "auto", default 10
        Largest number of features of a component, at most D. "auto" tries 1, 2, 5, 10, 20, 50 and 100, and takes the
        smallest number that keeps nearly all of the contrast that is reproducible: components of one half of the rows
        along which the cases of the other half vary more than its controls, and that the other half finds again. It
        needs rows, not Moments. The blocks of a `Study` are in one half as a whole; each group needs at least 2.
    gamma : float or "auto", default "auto"
        As for `CPCA`; "auto" is that of CPCA with all features, or less, with a warning, where components of few
        features have no contrast left.
    background_label, scale
        As for `PCPCA`.
    solver : {"auto", "eigh", "lanczos"}, default "auto"
        How the moments are stored: as matrices, or as the rows themselves, so that nothing of size D x D is formed.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Unit vectors with at most `sparsity` entries that are not 0; not orthogonal.
    sparsity_ : int
        Largest number of features of a component.
    eigenvalues_ : ndarray of shape (d,)
        v'(cov_X - gamma cov_Y) v of the part of each component that is orthogonal to those before, as a unit vector.
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
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        sparsity: int | str = 10,
        gamma: float | str = "auto",
        background_label: Any = None,
        scale: str | None = None,
        solver: str = "auto",
    ):
        self.n_components = n_components
        self.sparsity = sparsity
        self.gamma = gamma
        self.background_label = background_label
        self.scale = scale
        self.solver = solver

    sparsity_: int

    _known_as = "contrastive principal component analysis with few features per component (SparseCPCA)"
    _source = "Abid 2018"
    _takes_missing = _takes_devices = False
    _parameter_checks: ClassVar = Contrastive._parameter_checks | {
        "sparsity": check_sparsity,
        "solver": one_of("auto", "eigh", "lanczos"),
    }
    _rotates = False  # features count one by one

    def _maximum(self, C: Contrast, r: int, start: Array | None = None) -> Solution:
        if self._counts:
            raise ValueError(
                "sparsity='auto' is for fit, held_out_contrast and stability_selection: pass a number of features "
                "here, such as the sparsity_ of a fit."
            )
        return solve_sparse(C, r, [int(self.sparsity)])[0]

    def _path(self, groups: Groups[Moments], gammas: Array, r: int, tolerance: float = TOLERANCE) -> PathSpectrum:
        # As a fit finds them: from the solution before, the search might come to another maximum.
        return path_of_solutions(groups, gammas, lambda C, _: replace(self._maximum(C, r), feasible=True))

    @property
    def _counts(self) -> bool:
        """Whether the number of features is chosen by halves of the rows."""
        return isinstance(self.sparsity, str)

    def _path_estimator(self) -> Self:
        return unfitted(self, sparsity=self.sparsity_) if self._counts else unfitted(self)

    # ------------------------------------------------------------------ the fit

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        refuse_devices(tables, type(self).__name__)
        if not self._counts and int(self.sparsity) > tables.n_features:
            raise ValueError(
                f"sparsity={self.sparsity} is more than the {tables.n_features} features of the table. It limits how "
                "many features a component uses: for no limit, use CPCA."
            )
        d, solver = check_n_components(self.n_components, tables.n_features), self.solver
        if solver == "auto" and not isinstance(tables.rows.foreground, Moments):
            solver = "lanczos" if choose_solver(tables).name == "dual" else solver  # which would mix features
        return collect(tables, d, self._scaling, solver, reduced=False)

    @property
    def _holds_rows_out(self) -> bool:
        return self._counts or super()._holds_rows_out

    def _halves_of(self, tables: Tables, study: Study | None) -> Halves:
        if self._counts and (len(tables.rows) == 1 or isinstance(tables.rows.foreground, Moments)):
            raise ValueError(
                "sparsity='auto' compares halves of the rows of cases and controls: pass both tables, not Moments, or "
                "a number of features, such as sparsity=10."
            )
        return super()._halves_of(tables, study)

    def _fit_to(self, data: Complete | Incomplete, halves: Callable[[], Halves]) -> Fit:
        if not self._holds_rows_out:
            return super()._fit_to(data, halves)
        assert isinstance(data, Complete)
        chosen, limit = self._chosen(data, halves())
        return replace(chosen._fit_to(data, halves), limit=limit)

    def _tuned(self, data: Complete | Incomplete, halves: Halves) -> Self:
        assert isinstance(data, Complete)
        return self._chosen(data, halves)[0]

    def _chosen(self, data: Complete, halves: Halves) -> tuple[Self, float | None]:
        """A copy with the gamma and the number of features that halves of the rows choose; and the limit of gamma, if
        that was needed."""
        gamma, chosen = self._strength(), unfitted(self)
        automatic = gamma is None
        all_features = CPCA(self.n_components, scale=self.scale, solver=self.solver)
        choice = all_features._gamma_by_halves(data, halves) if gamma is None else Choice(gamma)
        if self._counts:
            chosen.sparsity = self._reproducible_size(halves, choice.gamma, data.groups.foreground.mean.size)
        gamma = chosen._gamma_with_contrast(data, choice.gamma) if automatic else choice.gamma
        return chosen._with_strength(gamma), choice.limit

    def _gamma_with_contrast(self, data: Complete, gamma: float) -> float:
        """`gamma`, or less, with a warning, where components of few features have no contrast left (F29)."""
        tried = gamma * 0.5 ** np.arange(HALVINGS) if gamma > 0 else np.empty(0)
        d = self.n_components
        solved = (s for s in tried if self._maximum(contrast(data.groups, float(s)), d).feasible)
        if (smaller := next(solved, gamma)) == gamma:
            return gamma
        used = float(smaller) / 2  # a contrast that barely exists is chance
        warn(
            f"gamma={gamma:.6g}, chosen for CPCA with all features, leaves no contrast to components of few features: "
            f"gamma={used:.6g} is used instead."
        )
        return used

    def _reproducible_size(self, halves: Halves, gamma: float, n_features: int) -> int:
        """The number of features that "auto" takes at a gamma."""
        sizes = [size for size in SIZES if size <= n_features]

        def directions(half: Training) -> Groups[Array]:
            data = self._trained(half)
            found = solve_sparse(contrast(data.groups, gamma), self.n_components, sizes)
            return in_original_units(np.array([data.vectors(one.spectrum.vectors) for one in found]), data)

        found = half_latents(halves, directions, RANKED)
        scores = np.nan_to_num(reproducible_contrast(found).scores.mean(axis=0), nan=-1.0)  # nan: half has no such axis
        best = scores.max()  # differences of the same halves are so certain that a standard error would ask for more
        return sizes[int(np.argmax(scores >= best - LOST * abs(best)))]

    def _attributes(self, fit: Fit) -> dict[str, Any]:
        return super()._attributes(fit) | {"sparsity_": int(np.count_nonzero(fit.components, axis=0).max())}
