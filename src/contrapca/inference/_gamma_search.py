"""`GammaSearch`: choose gamma by one of several criteria."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from .._util.arrays import Array
from .._util.checks import check_count, check_option, generator
from .._util.tables import Display, Table
from .._util.text import format_gamma
from ..contrast import Spectrum, held_out, one_error_rule, relative_log_likelihood, solve_path
from ..data import Groups, Indices, Study, Tables, fewer_folds, refuse, refuse_moments, study_of, table_units, tables_of
from ..estimators import ContrastSolver, Likelihood
from ..missing import any_folds
from ..moments import DenseScatter, assign_folds, contrast, make_folds
from ._compare import SILHOUETTE_ROWS, check_several, checked_classes, unit_variance_silhouette
from ._held_out import measured_once, prepared
from ._path import ContrastPath, check_estimator, path_of_data

CRITERIA = ("contrast", "likelihood", "silhouette")
HELD_OUT = ("contrast", "likelihood")  # criteria that hold rows out


class GammaSearch(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Choose gamma for ContraPCA, PCPCA or CPCA, or the ridge for RatioPCA, by a criterion.

    Parameters
    ----------
    estimator : ContraPCA, PCPCA, CPCA or RatioPCA
        Its own gamma is not used. For RatioPCA gamma is 1 / (1 + ridge).
    criterion : {"contrast", "likelihood", "silhouette"}, default "contrast"
        "contrast": the smallest gamma whose contrast on held-out rows (the mean log ratio of the groups' variances) is
        within one standard error of the best; use it to find directions. "likelihood": the largest relative
        log-likelihood of held-out rows, per row and divided by 1 - gamma; use it for densities (not for CPCA, which has
        no likelihood). "silhouette": the best separation of known `labels` on unit-variance latents; optimistic if the
        same labels judge the result.
    gammas : array-like, optional
        Values to choose from; default as in `contrast_path`.
    n_folds : int, default 5
        Number of folds; fewer, with a warning, if a group has fewer blocks.
    random_state : None, int, Generator or RandomState, default 0
        Random seed for the folds, and for the rows that "silhouette" samples.

    Attributes
    ----------
    best_estimator_ : ContraPCA, PCPCA, CPCA or RatioPCA
        Fitted to all rows.
    best_gamma_, best_score_ : float
    path_ : ContrastPath
    scores_ : ndarray of shape (G,)
        The criterion at each of `path_.gammas`; larger is better. -inf if a fold has no solution.
    score_errors_ : ndarray of shape (G,)
        Standard errors for "contrast"; nan for other criteria.

    Examples
    --------
    >>> from contrapca import CPCA, GammaSearch
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> search = GammaSearch(CPCA(2)).fit(data.foreground, background=data.background)
    >>> search.best_gamma_ > 0.9, search.best_score_ > 1.5
    (True, True)
    """

    def __init__(
        self,
        estimator: ContrastSolver,
        *,
        criterion: str = "contrast",
        gammas: Any = None,
        n_folds: int = 5,
        random_state: Any = 0,
    ):
        self.estimator = estimator
        self.criterion = criterion
        self.gammas = gammas
        self.n_folds = n_folds
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        background: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Compute the path, choose the best gamma by the criterion, and fit the best model.

        Parameters
        ----------
        X : Study, or array-like, data frame or sparse matrix of shape (n, D)
            A `Study`, whose blocks are held out as a whole, or the foreground. "silhouette" needs a Study with labels.
            Covariates are to be regressed out before (`regress_out`).
        y, background, sample_weight
            As for PCPCA, if `X` is not a Study; weights do not count for "silhouette".

        Returns
        -------
        self
        """
        check_estimator(self.estimator, "GammaSearch")
        check_option(self.criterion, "criterion", CRITERIA)
        check_count(self.n_folds, "n_folds", least=2)
        estimator = prepared(self.estimator) if self.criterion == "contrast" else clone(self.estimator)
        if self.criterion == "likelihood" and not isinstance(estimator, Likelihood):
            name = type(estimator).__name__
            raise ValueError(f"criterion='likelihood' needs a likelihood, which {name} does not have. Use ContraPCA.")
        labels = X.labels.foreground if isinstance(X, Study) else None
        if self.criterion == "silhouette" and labels is None:
            raise ValueError(
                "criterion='silhouette' needs a Study with labels=, the known classes of the foreground rows. "
                "(Clusters computed from the latents look separated at any gamma.) Without labels, use 'contrast'."
            )
        label = estimator.background_label
        study = study_of(X, background, "GammaSearch", y=y, background_label=label, sample_weight=sample_weight)
        refuse_moments(study, "GammaSearch")
        refuse(study, "GammaSearch", covariates="pass regress_out(study)")
        tables = tables_of(study, allow_missing=estimator._takes_missing)
        X = study.rows.foreground if isinstance(X, Study) else X
        folds = self._folds(tables, study.blocks)
        data = estimator._collected(tables)
        path = path_of_data(data, estimator, self.gammas)
        errors = np.full(len(path), np.nan)
        if self.criterion == "contrast":
            assert folds is not None
            settled = measured_once(estimator._settled(data), data)
            found = held_out(any_folds(tables, folds), lambda left: settled._axes_at(left, path.gammas))
            scores, errors = np.where(np.isnan(found.means), -np.inf, found.means), found.mean_errors
            best = one_error_rule(path.gammas, found)
        else:
            if self.criterion == "silhouette":
                scores = self._silhouettes(path, tables.rows.foreground, labels)
            else:
                scores = np.mean(list(_likelihoods(tables, folds, path)), axis=0)
            best = int(np.argmax(scores))
        if not np.isfinite(scores[best]):
            raise ValueError(f"No gamma has a finite {self.criterion}: every split is infeasible. Use smaller values.")
        self.path_ = path
        self.scores_ = scores
        self.score_errors_ = errors
        self.best_gamma_ = float(path.gammas[best])
        self.best_score_ = float(scores[best])
        self.best_estimator_ = path.model(self.best_gamma_)
        validate_data(self, X, skip_check_array=True)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = getattr(self.estimator, "_takes_missing", False) and self.criterion != "likelihood"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _folds(self, tables: Tables, blocks: Groups[Any] | None) -> Groups[Indices] | None:
        """The fold of each row; None if the criterion does not hold rows out."""
        if self.criterion not in HELD_OUT:
            return None
        if tables.incomplete and self.criterion == "likelihood":
            raise ValueError(
                f"criterion={self.criterion!r} needs complete rows, but values are missing (NaN): use 'contrast'."
            )
        counts = tables.rows.map(lambda rows: rows.shape[0])
        if min(counts) < 2 * self.n_folds and blocks is None:
            raise ValueError(
                f"{min(counts)} rows in one group are too few for {self.n_folds} folds of at least 2: lower n_folds."
            )
        random = generator(self.random_state)
        if blocks is None:
            folds = counts.map(lambda count: np.empty(count, dtype=np.intp))
            for own in folds:
                for k, rows in enumerate(np.array_split(random.permutation(own.size), self.n_folds)):
                    own[rows] = k
            return folds
        unit_of = table_units(tables, blocks, least=2, what="holding rows out")
        return assign_folds(unit_of, fewer_folds(unit_of, self.n_folds), random)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the latents of the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.get_feature_names_out()

    def _silhouettes(self, path: ContrastPath, rows: Any, labels: Any) -> Array:
        """Silhouette of the labels at every gamma, on unit-variance latents."""
        classes = checked_classes(labels, rows.shape[0])
        chosen = np.arange(rows.shape[0])
        if chosen.size > SILHOUETTE_ROWS:
            chosen = np.sort(generator(self.random_state).choice(chosen, SILHOUETTE_ROWS, replace=False))
        check_several(classes[chosen])
        return np.array([unit_variance_silhouette(Z, classes[chosen]) for Z in path.latents(rows[chosen])])

    def table(self) -> Table:
        """Gamma, score and standard error, one row per gamma of the path."""
        check_is_fitted(self)
        columns = {"gamma": self.path_.gammas, "score": self.scores_, "standard_error": self.score_errors_}
        return Table(dict(list(columns.items())[:2]) if np.isnan(self.score_errors_).all() else columns)

    def summary(self) -> Display:
        """The chosen gamma, the scores of all gammas, and what the best model found."""
        check_is_fitted(self)
        best = f"Best gamma: {format_gamma(self.best_gamma_)}, by {self.criterion}"
        return Display(best, self.table(), *self.best_estimator_.summary().parts)

    def transform(self, X: Any) -> Array:
        """Latents of the best model."""
        check_is_fitted(self)
        return self.best_estimator_.transform(X)


def _likelihoods(tables: Tables, folds: Groups[Indices] | None, path: ContrastPath) -> Iterator[Array]:
    """Held-out relative log-likelihood per foreground row, divided by 1 - gamma; -inf if a fold has no solution."""
    assert folds is not None
    rank = path.loading_coordinates.shape[2]
    for fold in make_folds(tables, folds):
        # The scales are those of the path.
        train, test = (
            side.map(
                lambda own, scaling: replace(own, scatter=DenseScatter(own.scatter.dense())).scaled(scaling.scale),
                path.scaling,
            )
            for side in (fold.left, fold.held)
        )
        scores, found = np.full(len(path), -np.inf), solve_path(train, path.gammas, rank)
        for g, gamma in enumerate(path.gammas):
            U, values = found.basis @ found.coordinates[g], found.values[g] * train.foreground.weight
            solution = path.estimator._solution(contrast(train, float(gamma)), Spectrum(values, U, images=[]))
            if solution.feasible:
                C, W = contrast(test, float(gamma)), U * solution.lengths
                scores[g] = relative_log_likelihood(C, W, C.matmul(W), solution.sigma2) / C.N
        yield scores
