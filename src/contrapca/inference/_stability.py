"""Stability selection: which features of sparse components come back in other halves of the rows? (F30)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
from sklearn.base import clone

from .._util.arrays import Array
from .._util.checks import check_count, generator
from .._util.progress import Progress
from .._util.tables import Result, Table
from ..contrast import unwarned
from ..data import adjusted_tables, refuse, study_of, units_of
from ..estimators import SparseCPCA
from ..moments import assign_folds, contrast, make_folds

THRESHOLD = 0.75  # frequency from which a feature counts as stable, and what the bound is stated for


@dataclass(frozen=True, eq=False)
class StabilitySelection(Result):
    """The result of `stability_selection`.

    Attributes
    ----------
    frequencies : ndarray of shape (D, d)
        In which part of the halves each feature is in each component, components being matched with those of all rows.
    in_any : ndarray of shape (D,)
        In which part of the halves it is in any component.
    names : list of str
        Feature names.
    n_halves : int
    n_selected : float
        Mean number of features in any component of a half.
    model : SparseCPCA
        Fitted to all rows.
    """

    frequencies: Array
    in_any: Array
    names: list[str]
    n_halves: int
    n_selected: float
    model: SparseCPCA

    def stable(self, threshold: float = THRESHOLD) -> list[str]:
        """Names of the features that are in some component of at least this part of the halves, the most stable first.

        Parameters
        ----------
        threshold : float, default 0.75
            Above 0.5.
        """
        _check_threshold(threshold)
        order = np.argsort(-self.in_any, kind="stable")
        return [self.names[j] for j in order if self.in_any[j] >= threshold]

    def expected_false(self, threshold: float = THRESHOLD) -> float:
        """Upper bound on the expected number of stable features that are only noise (Meinshausen and Buehlmann 2010).

        q^2 / ((2 threshold - 1) D), if q features are in the components of a half and noise features are exchangeable.
        """
        _check_threshold(threshold)
        return self.n_selected**2 / ((2 * threshold - 1) * len(self.names))

    def table(self) -> Table:
        """One row for each feature that was ever selected, the most stable first."""
        order = [j for j in np.argsort(-self.in_any, kind="stable") if self.in_any[j] > 0]
        columns: dict[str, Any] = {"feature": np.array([self.names[j] for j in order], dtype=object)}
        columns["frequency"] = self.in_any[order]
        for k in range(self.frequencies.shape[1]):
            columns[f"component_{k + 1}"] = self.frequencies[order, k]
        for k, component in enumerate(self.model.components_):
            columns[f"loading_{k + 1}"] = component[order]
        return Table(columns)

    def _parts(self) -> list[str | Table]:
        bound = f"at most {self.expected_false():.2g} of them expected by chance"
        found = f"{len(self.stable())} features are in {THRESHOLD:.0%} of {self.n_halves} halves or more"
        return [f"{found}, {bound}", self.table()]


def stability_selection(
    estimator: SparseCPCA,
    X: Any,
    *,
    background: Any = None,
    n_splits: int = 25,
    random_state: Any = 0,
    progress: bool = True,
) -> StabilitySelection:
    """How often sparse components of random halves of the rows have each feature.

    Which few features are best depends on the rows. Here the rows of both groups are split at random into two halves,
    many times, and components are found in each half; a feature that comes back nearly always is not chance. gamma and
    the number of features are those of all rows.

    Parameters
    ----------
    estimator : SparseCPCA
        Fitted or not: it is cloned.
    X : Study, or array-like, data frame or sparse matrix of shape (n, D)
        A `Study`, or the foreground. Blocks are put into one half as a whole: without them, replicates make every
        feature look stable. Covariates are regressed out of all rows.
    background : array-like, data frame or sparse matrix of shape (m, D), or a dict of them, optional
        If `X` is not a Study.
    n_splits : int, default 25
        Number of splits, each of two halves.
    random_state : None, int, Generator or RandomState, default 0
    progress : bool, default True
        Show a progress bar on a terminal or in a notebook if it takes longer than two seconds.

    Returns
    -------
    StabilitySelection

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import SparseCPCA, stability_selection
    >>> rng = np.random.default_rng(0)
    >>> controls, cases = rng.normal(size=(2, 200, 30))
    >>> cases[:, [3, 7, 11]] += 2 * rng.normal(size=(200, 1))
    >>> found = stability_selection(SparseCPCA(1, sparsity=5, gamma=1.0), cases, background=controls)
    >>> sorted(found.stable(0.9))
    ['x11', 'x3', 'x7']
    """
    if not isinstance(estimator, SparseCPCA):
        raise TypeError(f"stability_selection needs a SparseCPCA; got {type(estimator).__name__}.")
    check_count(n_splits, "n_splits")
    study = study_of(X, background, "stability_selection")
    refuse(study, "stability_selection", missing=True)
    unit_of = units_of(study, least=2, what="splitting rows")
    model, tables = clone(estimator).fit(study), adjusted_tables(study)
    fixed, d = model._path_estimator()._with_strength(model.gamma_), model.n_components
    random, all_rows = generator(random_state), model.fit_
    found = []
    with Progress("stability selection", n_splits, progress) as bar, unwarned():
        for split in range(n_splits):
            bar.update(split, "splits")
            for half in make_folds(tables, assign_folds(unit_of, 2, random)):
                data = fixed._trained(half.training)
                # Not by a fit, which has no components where a half has no contrast.
                solution = fixed._maximum(contrast(data.groups, model.gamma_), d)
                V = data.vectors(solution.spectrum.vectors)
                order = scipy.optimize.linear_sum_assignment(-np.abs(all_rows.components.T @ V))[1]
                found.append(V[:, order] != 0)  # in the order of the components of all rows
    chosen = np.array(found)
    in_any = chosen.any(axis=2)
    return StabilitySelection(
        frequencies=chosen.mean(axis=0),
        in_any=in_any.mean(axis=0),
        names=all_rows.scaling.foreground.labels,
        n_halves=len(found),
        n_selected=float(in_any.sum(axis=1).mean()),
        model=model,
    )


def _check_threshold(threshold: Any) -> None:
    if not 0.5 < threshold <= 1:
        raise ValueError(f"threshold={threshold!r} must be above 0.5 and at most 1.")
