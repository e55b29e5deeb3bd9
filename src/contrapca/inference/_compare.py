"""Comparison of all methods on the same two tables with the same folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._util.arrays import TINY, Array, Rows, spread_out
from .._util.checks import check_n_components, generator
from .._util.progress import Progress
from .._util.tables import Result, Table
from ..contrast import RANKED, Halves, Training, half_latents, many_problems, reproducible_contrast, unwarned
from ..data import Groups, encoded_of, refuse_devices, study_of, units_of, without_covariates
from ..data.checks import advice_on_values
from ..estimators import CLVM, CPCA, PCPCA, ContraPCA, Decomposition, RatioPCA, unfitted
from ..exceptions import GroupError, SolverError
from ..missing import filled_draws
from ..moments import MAX_DENSE
from ._held_out import measured_once, measured_tables, prepared, study_halves
from ._test import refuse_weights, verdict_on
from ._verdict import ContrastTest

SCALINGS = (None, "pooled")
GAMMAS = (2.0, 4.0)  # of CPCA, beside the one that is chosen
SPLITS = 5  # into halves
CERTAIN = 2.0  # differences of at least this many standard errors count
ROUGH = 1e-3  # tolerance of CLVM: the difference is smaller than between halves
SILHOUETTE_ROWS = 2000  # larger foregrounds are sampled


@dataclass(frozen=True)
class Entry:
    """One method with its settings and results in a `Comparison`.

    Attributes
    ----------
    method : str
    estimator : estimator
        Not fitted, with the settings that were used.
    scores : ndarray of shape (n_splits,) or None
        Reproducible contrast in each split into halves; None if the method could not be fitted.
    agreement : float
        Mean rank correlation of the cases' latents from both halves: 1 if they are the same.
    contrast : float
        How much more unseen cases vary than unseen controls, mean over the components, from -1 to 1; 0 is no contrast.
    shares : Groups of float
        Fraction of each group's variance along all components, on the rows of the fit.
    seconds : float
        Time to choose the settings and fit, from moments.
    silhouette : float
        Silhouette of the labels on unit-variance latents; nan without labels.
    failure : str
        Why the method could not be fitted; usually empty.
    """

    method: str
    estimator: Any
    scores: Array | None = None
    agreement: float = np.nan
    contrast: float = np.nan
    shares: Groups[float] = field(default_factory=lambda: Groups.of(np.nan, np.nan))
    seconds: float = np.nan
    silhouette: float = np.nan
    failure: str = ""

    @property
    def score(self) -> float:
        """Reproducible contrast, mean over the splits."""
        return np.nan if self.scores is None else float(self.scores.mean())

    @property
    def name(self) -> str:
        """Method and scaling."""
        return self.method + (f", scale={self.estimator.scale!r}" if self.estimator.scale else "")

    @property
    def settings(self) -> str:
        """The settings that were used."""
        name = self.estimator._decisive
        value = getattr(self.estimator, name)
        return f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"


@dataclass(frozen=True)
class Comparison(Result):
    """The result of `compare`.

    Attributes
    ----------
    entries : tuple of Entry
        Largest reproducible contrast first; failed methods last.
    n_splits : int
    test : ContrastTest or None
        Whether there is anything to find; None if that could not be tested, see `untested`.
    untested : str
        Why not.
    cautions : tuple of str
        Problems of the tables to fix first.
    """

    entries: tuple[Entry, ...]
    n_splits: int
    test: ContrastTest | None = None
    untested: str = ""
    cautions: tuple[str, ...] = ()

    @property
    def recommended(self) -> Entry | None:
        """ContraPCA unless another method is clearly better, else the best; None if the contrast test finds nothing."""
        found = [entry for entry in self.entries if not entry.failure]
        if not found or self.test is None or not self.test.n_components or not found[0].score > 0:
            return None
        return next((entry for entry in found if entry.method == "ContraPCA" and not self.is_behind(entry)), found[0])

    def is_behind(self, entry: Entry) -> bool:
        """Whether the best entry is better by more than two standard errors of the difference."""
        best = self.entries[0]
        if best.scores is None or entry.scores is None or entry is best:
            return False
        ahead = best.scores - entry.scores
        # The halves of a split judge each other, and splits share their rows (Nadeau and Bengio 2003).
        error = float(np.std(ahead, ddof=1)) * np.sqrt(1 + 1 / ahead.size) if ahead.size > 1 else np.inf
        return bool(ahead.mean() > CERTAIN * error)

    @property
    def recommendation(self) -> str:
        """The recommendation in words."""
        chosen = self.recommended
        if self.test is None:
            return f"Nothing is recommended: {self.untested}."
        if chosen is None:
            return f"Nothing is recommended. {self.test.verdict()}"
        best = chosen is self.entries[0]
        words = [
            f"Use {chosen.name}: what it finds in one half of the rows is {'clearest' if best else 'clear'} in the "
            f"other half (agreement {chosen.agreement:.2f}, contrast {chosen.contrast:.2f})"
            f"{'.' if best else ', within error as much as that of the best.'}"
        ]
        others = [entry for entry in self.entries if entry is not chosen and not entry.failure]
        # What the chosen one may be behind is not behind it.
        behind = [self.is_behind(entry) and entry.score < chosen.score for entry in others]
        alike = [entry.name for entry, worse in zip(others, behind, strict=True) if not worse]
        worse = [entry.name for entry, worse in zip(others, behind, strict=True) if worse]
        if alike:
            words.append(f"Not significantly different: {'; '.join(alike)}.")
        if worse:
            words.append(f"Clearly behind: {'; '.join(worse)}.")
        return " ".join(words)

    def table(self) -> Table:
        """One row per method and scaling."""
        every = self.entries
        columns: dict[str, Any] = {
            "method": np.array([entry.method for entry in every], dtype=object),
            "scale": np.array([entry.estimator.scale or "none" for entry in every], dtype=object),
            "settings": np.array([entry.settings for entry in every], dtype=object),
        }
        columns |= {
            name: np.array([getattr(entry, name) for entry in every], dtype=float)
            for name in ("score", "agreement", "contrast")
        }
        columns |= {
            "cases_share": np.array([entry.shares.foreground for entry in every]),
            "controls_share": np.array([entry.shares["background"] for entry in every]),
            "seconds": np.array([entry.seconds for entry in every]),
        }
        silhouettes = np.array([entry.silhouette for entry in every])
        return Table(columns if np.isnan(silhouettes).all() else columns | {"silhouette": silhouettes})

    def _parts(self) -> list[str | Table]:
        failures = [f"{entry.name} could not be fitted: {entry.failure}" for entry in self.entries if entry.failure]
        return [*self.cautions, self.table(), *failures, self.recommendation]


def compare(
    X: Any,
    *,
    background: Any = None,
    n_components: int = 2,
    estimators: Sequence[Any] = (),
    random_state: Any = 0,
    progress: bool = True,
) -> Comparison:
    """Compare all methods, unscaled and scaled, in halves of the same tables.

    The rows are split into halves, several times. A method is good if what it finds in one half is found again in the
    other, and if the cases of the other half vary more along it than its controls: the mean over the components of
    agreement times contrast. Contrast is bounded, and directions in which nothing varies count for nothing, so that no
    large ratio of small variances wins. CPCA and RatioPCA are tried at fixed strengths and at those that are best by
    the same measure, which also chooses the gamma of PCPCA; the shared dimensions of CLVM (at most 10) are counted. All
    methods use the same halves, so differences are more certain than single figures. Nothing is recommended unless
    `contrast_test` finds something.

    Parameters
    ----------
    X : Study, or array-like, data frame or sparse matrix of shape (n, D)
        A `Study`, or the foreground. Blocks are in one half as a whole; covariates and missing values as for
        `held_out_contrast`. The silhouette of the labels of the foreground is added to the table: they are not used to
        choose anything. There may be no weights.
    background : array-like, data frame or sparse matrix of shape (m, D), optional
        If `X` is not a Study.
    n_components : int, default 2
    estimators : sequence of estimators
        More estimators to compare, such as a ContraPCA with other settings, or one of your own.
    random_state : None, int, Generator or RandomState, default 0
        Random seed for the halves.
    progress : bool, default True
        Show a progress bar on a terminal or in a notebook if it takes longer than two seconds.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from contrapca import compare
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> found = compare(data.foreground, background=data.background)
    >>> found.recommended.method
    'ContraPCA'
    """
    for own in estimators:
        if not (isinstance(own, Decomposition) and own._contrasts):
            raise TypeError(f"compare takes estimators of contrapca that have a background, not {own!r}.")
    study = study_of(X, background, "compare")
    refuse_weights(study, "compare")
    tables = measured_tables(study, "compare").with_one_background("compare")
    refuse_devices(tables, "compare")
    k = check_n_components(n_components, tables.n_features)
    classes, kept = study.labels.foreground, tables.kept.foreground
    if classes is not None:  # those of the rows that are not left out
        classes = checked_classes(classes, tables.rows.foreground.shape[0] if kept is None else kept.size)
        classes = classes if kept is None else classes[kept]
        check_several(classes)
    unit_of = units_of(study, tables, least=2, what="splitting rows")
    rng = generator(random_state)
    measured, [tables] = tables, filled_draws(tables, 1, rng)
    encoded = encoded_of(study, measured)
    halves = study_halves(tables, unit_of, SPLITS, rng, encoded=encoded)
    whole, candidates = halves.whole[0], _candidates(k, tables.n_features)
    candidates += [(type(own).__name__, prepared(own)) for own in estimators]
    adjusted = tables if encoded is None else without_covariates(tables, encoded)[0]
    tested = measured if encoded is None else without_covariates(measured, encoded)[0]
    entries = []
    calm = many_problems(tables.n_features), unwarned(), np.errstate(divide="ignore", invalid="ignore")
    with Progress("compare", len(candidates), progress) as bar, calm[0], calm[1], calm[2]:
        warnings.simplefilter("ignore", ConvergenceWarning)
        for step, (method, model) in enumerate(candidates):
            bar.update(step, f"{method}, scale={model.scale!r}")
            entries.append(_entry(method, model, whole, adjusted.rows.foreground, halves, classes))
            bar.update(step + 1)
    order = sorted(entries, key=lambda entry: -entry.score if entry.scores is not None else np.inf)
    verdict = verdict_on(tested, n_shown=k, blocks=study.blocks, paired=study.paired, progress=False)
    return Comparison(
        entries=tuple(order),
        n_splits=len(halves.splits),
        test=verdict.test,
        untested="" if verdict.test else verdict.sentence,
        cautions=tuple(map(str, advice_on_values(tables.rows))),
    )


def _candidates(k: int, n_features: int) -> list[tuple[str, Any]]:
    """ContraPCA and every other method with every scaling, without those that the table is too large for."""
    found: list[tuple[str, Any]] = [("ContraPCA", ContraPCA(k))]
    for scale in SCALINGS:
        found += [("PCA", CPCA(k, gamma=0.0, scale=scale)), ("PCPCA", PCPCA(k, scale=scale))]
        found += [("CPCA", CPCA(k, gamma=gamma, scale=scale)) for gamma in ("auto", *GAMMAS)]
        found += [("RatioPCA", RatioPCA(k, ridge=ridge, scale=scale)) for ridge in ("auto", 1.0)]
        if k + 1 < n_features <= MAX_DENSE:
            found.append(("CLVM", CLVM(n_foreground=k, scale=scale)))
    return found


def _entry(method: str, model: Any, whole: Training, rows: Rows, halves: Halves, classes: Any) -> Entry:
    """One method: its settings, the fit to all rows, and what halves of the rows say of it."""
    start = time.perf_counter()
    fixed = model._strength() is not None
    try:
        data = model._trained(whole)
        model = model._tuned(data, halves)
        rough = measured_once(unfitted(model, tol=ROUGH) if isinstance(model, CLVM) else model, data)
        fit = rough._fit_to(data, lambda: halves)
        seconds = time.perf_counter() - start
        latents = half_latents(halves, rough._axes_of, RANKED)
    except (ValueError, SolverError) as error:
        return Entry(method, model, failure=str(error))
    found = reproducible_contrast(latents)
    if not np.isfinite(found.scores).all():
        return Entry(method, model, failure="half of the rows has no axes.")
    if fixed and model._decisive != "n_latent" and method != "PCA":
        method = f"{method} at {model._decisive} {getattr(model, model._decisive):g}"
    silhouette = np.nan
    if classes is not None:
        chosen = spread_out(rows.shape[0], SILHOUETTE_ROWS)
        Z = fit.scaling.foreground.project(rows[chosen], fit.projection)
        silhouette = unit_variance_silhouette(Z, classes[chosen])
    return Entry(
        method,
        model,
        scores=found.scores[:, 0],
        agreement=float(found.agreement.mean()),
        contrast=float(found.contrast.mean()),
        shares=fit.shares.map(lambda share: float(share.sum())),
        seconds=seconds,
        silhouette=silhouette,
    )


def checked_classes(labels: Any, n_rows: int) -> Any:
    """One class for each foreground row, as text, shape (n,)."""
    classes = np.asarray(labels).ravel().astype(str)
    if classes.size != n_rows:
        raise GroupError(f"labels has {classes.size} entries for {n_rows} foreground rows: pass one each.")
    return classes


def check_several(classes: Any) -> None:
    """Refuse classes that no silhouette exists for."""
    if not 1 < np.unique(classes).size < classes.size:
        raise GroupError("labels must contain at least two classes, and fewer classes than rows.")


def unit_variance_silhouette(latents: Array, classes: Any) -> float:
    """Silhouette of the classes on latents (n, d) of unit variance."""
    from sklearn.metrics import silhouette_score  # imported late, because it is slow

    return float(silhouette_score(latents / np.maximum(latents.std(axis=0), TINY), classes))
