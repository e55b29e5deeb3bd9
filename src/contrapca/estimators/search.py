"""Choosing gamma: one estimator, four criteria, the whole curve kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._array import Array, calm_threads
from .._table import Table
from .._validation import Groups, check_count, check_n_components, check_option, generator, split_groups
from ..exceptions import GroupError
from ..moments import Pair, accumulate, has_holes
from ..objective import relative_log_likelihood
from ..solvers import pcpca_limit, solve_path, solve_pcpca
from ._fit import AUTO_FRACTION
from ._path_build import path_of_groups
from .path import ContrastPath

CRITERIA = ("limit", "silhouette", "stability", "heldout")
SILHOUETTE_ROWS = 2000  # of larger foregrounds a seeded sample of this size is judged
CLUSTERS = range(2, 7)  # searched where their number is not given


class GammaSearch(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """PCPCA or CPCA with the gamma that a criterion likes best.

    Parameters
    ----------
    criterion : {"limit", "silhouette", "stability", "heldout"}, default "limit"
        "limit": 0.97 of PCPCA's exact limit, whatever the data: right for finding directions when nothing else is
        known. "silhouette": best separation of known `labels`, or of k-means clusters, on unit-variance latents: right
        when clusters are what is looked for, optimistic when the same labels judge the result. "stability": best
        agreement of the subspaces found in random halves of the rows: right when directions must replicate, blind to
        what they show. "heldout": largest held-out relative log-likelihood per row, divided by 1 - gamma: right for
        densities.
    n_components : int, default 2
    method : {"pcpca", "cpca"}, default "pcpca"
        "heldout" needs a likelihood, so PCPCA.
    gammas : array-like, optional
        Those to choose from; default as in `contrast_path`.
    n_clusters : int, optional
        For "silhouette" without labels; default the best of 2 to 6.
    n_splits : int, default 5
        Pairs of halves ("stability") or folds ("heldout").
    background_label : optional
        As for PCPCA.
    scale : False, "group" or "pooled", default False
    random_state : None, int, Generator or RandomState

    Attributes
    ----------
    best_estimator_ : PCPCA or CPCA
    best_gamma_, best_score_ : float
    path_ : ContrastPath
    scores_ : ndarray of shape (G,)
        The criterion at each of `path_.gammas`; the larger the better.
    best_n_clusters_ : int or None

    Examples
    --------
    >>> from contrapca import GammaSearch
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> search = GammaSearch("silhouette", random_state=0)
    >>> search.fit(data.foreground, background=data.background, labels=data.labels).best_score_ > 0.5
    True
    """

    def __init__(
        self,
        criterion: str = "limit",
        *,
        n_components: int = 2,
        method: str = "pcpca",
        gammas: Any = None,
        n_clusters: int | None = None,
        n_splits: int = 5,
        background_label: Any = None,
        scale: bool | str = False,
        random_state: Any = None,
    ):
        self.criterion = criterion
        self.n_components = n_components
        self.method = method
        self.gammas = gammas
        self.n_clusters = n_clusters
        self.n_splits = n_splits
        self.background_label = background_label
        self.scale = scale
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, background: Any = None, labels: Any = None) -> Self:
        """Compute the path and the criterion along it, and keep the best model.

        Parameters
        ----------
        X, y, background
            As for PCPCA.
        labels : array-like of shape (n,), optional
            Classes of the foreground rows, for "silhouette".

        Returns
        -------
        self
        """
        check_option(self.criterion, "criterion", CRITERIA)
        if self.criterion == "heldout" and self.method == "cpca":
            raise ValueError("criterion='heldout' needs a likelihood, which CPCA has not: use method='pcpca'.")
        check_count(self.n_splits, "n_splits")
        groups = split_groups(X, y, background, self.background_label, name="GammaSearch", needs_background=True)
        smallest = min(table.shape[0] for table in groups.tables)
        parts = {"stability": 2, "heldout": max(2, self.n_splits)}.get(self.criterion, 1)
        if smallest < 2 * parts:
            raise ValueError(
                f"{smallest} rows in one group are too few for {parts} parts of 2 or more: lower n_splits."
            )
        if self.criterion in ("stability", "heldout") and sum(map(has_holes, groups.tables)):
            raise ValueError(
                f"criterion={self.criterion!r} needs complete rows; use 'limit' or 'silhouette', or impute first."
            )
        d = check_n_components(self.n_components, groups.foreground.shape[1])
        check_option(self.method, "method", ("pcpca", "cpca"))
        check_option(self.scale, "scale", (False, "group", "pooled"))
        limit = path_of_groups(groups, d, [0.0], "pcpca", self.scale).limit if self.criterion == "limit" else np.nan
        gammas = self.gammas
        if self.criterion == "limit" and gammas is None:
            gammas = AUTO_FRACTION * limit * np.linspace(0, 1, 11)
        path = path_of_groups(groups, d, gammas, self.method, self.scale)
        random = generator(self.random_state)
        clusters = None
        if self.criterion == "limit":
            scores = -np.abs(path.gammas - AUTO_FRACTION * limit)
        elif self.criterion == "silhouette":
            scores, clusters = self._silhouettes(path, groups, labels, random)
        else:
            measure = _stability if self.criterion == "stability" else _heldout
            scores = np.mean(list(measure(groups, path, self.n_splits, random)), axis=0)
        best = int(np.argmax(scores))
        if not np.isfinite(scores[best]):
            raise ValueError(f"No gamma has a finite {self.criterion}: every split is infeasible. Use smaller gammas.")
        self.path_ = path
        self.scores_ = scores
        self.best_n_clusters_ = clusters
        self.best_gamma_ = float(path.gammas[best])
        self.best_score_ = float(scores[best])
        self.best_estimator_ = path.model(self.best_gamma_)
        validate_data(self, X, skip_check_array=True)
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the latents, those of the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.get_feature_names_out()

    def _silhouettes(
        self, path: ContrastPath, groups: Groups, labels: Any, random: np.random.Generator
    ) -> tuple[Array, int | None]:
        """Silhouette of labels or clusters at every gamma, on unit-variance latents."""
        from sklearn.cluster import KMeans  # late: these two take long to import
        from sklearn.metrics import silhouette_score

        rows = groups.foreground
        chosen = np.arange(rows.shape[0])
        if chosen.size > SILHOUETTE_ROWS:
            chosen = np.sort(random.choice(chosen, SILHOUETTE_ROWS, replace=False))
        latents = path.latents(rows[chosen])
        latents = latents / np.maximum(latents.std(axis=1, keepdims=True), np.finfo(float).tiny)
        if labels is not None:
            classes = np.asarray(labels).ravel().astype(str)
            if classes.size != rows.shape[0]:
                raise GroupError(
                    f"labels has {classes.size} entries for {rows.shape[0]} foreground rows: one for each."
                )
            if not 1 < np.unique(classes[chosen]).size < chosen.size:
                raise GroupError("labels must hold two classes or more, and fewer classes than rows.")
            return np.array([silhouette_score(Z, classes[chosen]) for Z in latents]), None
        seed = int(random.integers(2**31))
        numbers = list(CLUSTERS)
        if self.n_clusters is not None:
            check_count(self.n_clusters, "n_clusters")
            if not 1 < self.n_clusters < chosen.size:
                raise ValueError(f"n_clusters={self.n_clusters} must be 2 or more, and less than the number of rows.")
            numbers = [self.n_clusters]
        with calm_threads(0):  # many small clusterings
            curves = [
                [silhouette_score(Z, KMeans(k, n_init=1, random_state=seed).fit_predict(Z)) for Z in latents]
                for k in numbers
            ]
        best = int(np.argmax(np.max(curves, axis=1)))
        return np.array(curves[best]), numbers[best]

    def curve(self) -> Table:
        """gamma and score, one row for each gamma of the path."""
        check_is_fitted(self)
        return Table({"gamma": self.path_.gammas, "score": self.scores_})

    def transform(self, X: Any) -> Array:
        """Latents of the best model."""
        check_is_fitted(self)
        return self.best_estimator_.transform(X)


def _parts(table: Any, n_parts: int, random: np.random.Generator) -> list[Array]:
    """Row numbers in `n_parts` random parts of (almost) equal size."""
    return np.array_split(random.permutation(table.shape[0]), n_parts)


def _pair(groups: Groups, rows: list[Array], path: ContrastPath) -> Pair:
    """Moments of some rows of each group, in the units of the path."""
    scales = (path.scale, path.background_scale)
    tables = [table[index] for table, index in zip(groups.tables, rows, strict=True)]
    foreground, background = (accumulate(table).scaled(scale) for table, scale in zip(tables, scales, strict=True))
    return Pair(foreground, background)


def _stability(groups: Groups, path: ContrastPath, n_splits: int, random: np.random.Generator) -> Iterator[Array]:
    """Affinity of the subspaces of two halves of the rows at every gamma; -inf where a half has no solution."""
    for _ in range(n_splits):
        halves = [_parts(table, 2, random) for table in groups.tables]
        found, feasible = [], np.ones(len(path), dtype=bool)
        for half in (0, 1):
            pair = _pair(groups, [parts[half] for parts in halves], path)
            spectrum = solve_path(pair, path.gammas, path.n_components)
            found.append(np.einsum("Dk,gkd->gDd", spectrum.basis, spectrum.coordinates))
            if path.method == "pcpca":
                feasible &= path.gammas < pcpca_limit(pair, path.n_components)
            else:
                feasible &= spectrum.values[:, -1] > 0
        affinity = np.sum(np.einsum("gDd,gDe->gde", *found) ** 2, axis=(1, 2)) / path.n_components
        yield np.where(feasible, affinity, -np.inf)


def _heldout(groups: Groups, path: ContrastPath, n_splits: int, random: np.random.Generator) -> Iterator[Array]:
    """Held-out relative log-likelihood per foreground row over 1 - gamma; -inf where a fold has no solution."""
    folds = [_parts(table, max(2, n_splits), random) for table in groups.tables]
    for k in range(max(2, n_splits)):
        inside = [np.concatenate([part for j, part in enumerate(parts) if j != k]) for parts in folds]
        train, test = _pair(groups, inside, path), _pair(groups, [parts[k] for parts in folds], path)
        spectrum = solve_path(train, path.gammas, path.n_components)
        scores = np.full(len(path), -np.inf)
        for g, gamma in enumerate(path.gammas):
            solution = solve_pcpca(train.contrast(float(gamma)), spectrum.values[g] * train.foreground.weight)
            if solution.feasible:
                W = spectrum.basis @ spectrum.coordinates[g] * solution.lengths
                contrast = test.contrast(float(gamma))
                value = relative_log_likelihood(contrast, W, contrast.matmat(W), solution.sigma2)
                scores[g] = value / (contrast.terms[0][1].weight * (1 - gamma))
        yield scores
