"""Comparison of all methods on the same two tables with the same folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._checks import check_n_components
from .._util.arrays import Array, Rows
from .._util.display import shown_as_html
from .._util.progress import Progress
from .._util.suggest import suggesting
from .._util.table import Table
from ..blocks import table_units
from ..covariates import design_of, without_covariates
from ..estimators import CLVM, CPCA, PCPCA, ContraPCA, RatioPCA
from ..fitting import Fit, HeldOut, Training, fold_error, held_out, many_problems, unwarned
from ..groups import Groups, Tables, refuse_devices
from ..moments import MAX_DENSE, Fold
from ..sanity import advice_on_values
from ..subspaces import affinity
from ._filled import filled
from ._held_out import folds_of, measured_tables, merged
from ._silhouette import SILHOUETTE_ROWS, check_several, checked_classes, unit_variance_silhouette

SCALINGS = (None, "pooled")
CERTAIN = 2.0  # differences of at least this many standard errors count


@dataclass(frozen=True)
class Entry:
    """One method with its settings and results in a `Comparison`.

    Attributes
    ----------
    method : str
    estimator : estimator
        Not fitted, with the settings that were used.
    held_out : HeldOut or None
        None if the method could not be fitted.
    shares : Groups of float
        Fraction of each group's variance along all components, on the rows of the fit.
    stability : float
        Affinity of the subspaces from two halves of the rows: 1 if they are the same, about k / D by chance.
    seconds : float
        Time to choose the settings and fit, from moments.
    silhouette : float
        Silhouette of the labels on unit-variance latents; nan without labels.
    failure : str
        Why the method could not be fitted; usually empty.
    """

    method: str
    estimator: Any
    held_out: HeldOut | None = None
    shares: Groups[float] = field(default_factory=lambda: Groups.of(np.nan, np.nan))
    stability: float = np.nan
    seconds: float = np.nan
    silhouette: float = np.nan
    failure: str = ""

    @property
    def mean(self) -> float:
        """Mean log ratio on held-out rows."""
        return np.nan if self.held_out is None else float(self.held_out.means)

    @property
    def error(self) -> float:
        """Its standard error."""
        return np.nan if self.held_out is None else float(self.held_out.mean_errors)

    @property
    def name(self) -> str:
        """Method and scaling."""
        return self.method + (f", scale={self.estimator.scale!r}" if self.estimator.scale else "")

    @property
    def settings(self) -> str:
        """The settings that were chosen."""
        name = self.estimator._tuned
        value = getattr(self.estimator, name)
        return f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"


@suggesting
@dataclass(frozen=True)
class Comparison:
    """The result of `compare`.

    Attributes
    ----------
    entries : tuple of Entry
        Largest held-out contrast first; failed methods last.
    n_folds : int
    cautions : tuple of str
        Problems of the tables to fix first.
    """

    entries: tuple[Entry, ...]
    n_folds: int
    cautions: tuple[str, ...] = ()

    @property
    def recommended(self) -> Entry | None:
        """ContraPCA unless another method is significantly better, else the best; None if nothing was found."""
        found = [entry for entry in self.entries if not entry.failure]
        if not found or not found[0].mean > CERTAIN * _known(found[0].error):
            return None
        default = [entry for entry in found if entry.estimator._preferred and self.difference(entry) is None]
        return min(default, key=lambda entry: bool(entry.estimator.scale)) if default else found[0]

    def difference(self, entry: Entry) -> tuple[float, float] | None:
        """Lead of the best entry in log ratios, and its standard error; None if it is within error."""
        best = self.entries[0]
        if best.held_out is None or entry.held_out is None or entry is best:
            return None
        ahead = best.mean - entry.mean
        error = float(fold_error(best.held_out.left_out - entry.held_out.left_out))
        return (ahead, error) if not ahead <= CERTAIN * _known(error) else None

    @property
    def recommendation(self) -> str:
        """The recommendation in words."""
        chosen = self.recommended
        if chosen is None:
            return (
                "Nothing found: no method finds directions along which unseen cases vary more than unseen controls, "
                "beyond chance. Whatever they show is probably noise."
            )
        ratio = np.exp(chosen.mean)
        words = [f"Use {chosen.name}: unseen cases vary {ratio:.2g} times as much as unseen controls along its axes."]
        others = [entry for entry in self.entries if entry is not chosen and not entry.failure]
        alike = [entry.name for entry in others if self.difference(entry) is None]
        worse = [entry.name for entry in others if self.difference(entry) is not None]
        if alike:
            words.append(f"Within error as good: {'; '.join(alike)}.")
        if worse:
            words.append(f"Clearly behind: {'; '.join(worse)}.")
        return " ".join(words)

    def table(self) -> Table:
        """One row per method and scaling."""
        every = self.entries
        mean, error = (np.array([getattr(entry, name) for entry in every]) for name in ("mean", "error"))
        columns: dict[str, Any] = {
            "method": np.array([entry.method for entry in every], dtype=object),
            "scale": np.array([entry.estimator.scale or "none" for entry in every], dtype=object),
            "settings": np.array([entry.settings for entry in every], dtype=object),
            "held_out_ratio": np.exp(mean),
            "from": np.exp(mean - CERTAIN * error),
            "to": np.exp(mean + CERTAIN * error),
            "cases_share": np.array([entry.shares.foreground for entry in every]),
            "controls_share": np.array([entry.shares["background"] for entry in every]),
            "stability": np.array([entry.stability for entry in every]),
            "seconds": np.array([entry.seconds for entry in every]),
        }
        silhouettes = np.array([entry.silhouette for entry in every])
        return Table(columns if np.isnan(silhouettes).all() else columns | {"silhouette": silhouettes})

    def _repr_html_(self) -> str:
        return shown_as_html(*self._parts())

    def _parts(self) -> list[str | Table]:
        failures = [f"{entry.name} could not be fitted: {entry.failure}" for entry in self.entries if entry.failure]
        return [*self.cautions, self.table(), *failures, self.recommendation]

    def __str__(self) -> str:
        return "\n".join(map(str, self._parts()))


def _known(error: float) -> float:
    """A standard error, or 0 if it is not finite (for infinite ratios)."""
    return error if np.isfinite(error) else 0.0


@suggesting
def compare(
    X: Any,
    *,
    background: Any,
    covariates: Any = None,
    background_covariates: Any = None,
    blocks: Any = None,
    background_blocks: Any = None,
    pairs: Any = None,
    background_pairs: Any = None,
    labels: Any = None,
    n_components: int = 2,
    random_state: Any = 0,
    progress: bool = True,
) -> Comparison:
    """Compare all methods, unscaled and scaled, on held-out rows of the same tables.

    Settings are chosen from the rows: gamma of PCPCA and CPCA and the ridge of RatioPCA by held-out contrast, the
    latent dimensions of ContraPCA and the shared dimensions of CLVM (at most 10) by the rank rule. All methods use the
    same folds, so differences are more certain than single figures.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, D)
        The foreground. Missing values (NaN), in either group, as for `held_out_contrast`.
    background : array-like, data frame or sparse matrix of shape (m, D)
    covariates, background_covariates : array-like or data frame of shape (n, q), (m, q), optional
        As for `held_out_contrast`.
    blocks, background_blocks : array-like of shape (n,) and (m,), optional
        The donor, animal or plate of each row: rows of a block are held out together.
    pairs, background_pairs : array-like of shape (n,) and (m,), optional
        The same for pairs, such as a donor before and after treatment: every label must be in both groups.
    labels : array-like of shape (n,), optional
        Known classes of the foreground rows, to add their silhouette to the table. They are not used to choose
        anything.
    n_components : int, default 2
    random_state : None, int, Generator or RandomState, default 0
        Random seed for folds and halves.
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
    tables = measured_tables(X, background, "compare").with_one_background("compare")
    refuse_devices(tables, "compare")
    k = check_n_components(n_components, tables.n_features)
    classes = _checked_labels(labels, tables)
    together = (blocks, background_blocks, (pairs, background_pairs))
    unit_of = table_units(tables, *together, least=2, what="holding rows out")
    design = design_of(tables, X, background, covariates, background_covariates)
    folds, halves = (folds_of(tables, unit_of, number, random_state, design=design) for number in (5, 2))
    whole, candidates = merged(folds, tables, design), _candidates(k, tables.n_features)
    adjusted = tables if design is None else without_covariates(tables, design)[0]
    cases = (filled(adjusted) if adjusted.incomplete and classes is not None else adjusted).rows.foreground
    entries = []
    with Progress("compare", len(candidates), progress) as bar, many_problems(tables.n_features), unwarned():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for step, (method, model) in enumerate(candidates):
            bar.update(step, f"{method}, scale={model.scale!r}")
            entries.append(_entry(method, model, whole, cases, folds, halves, classes))
            bar.update(step + 1)
    order = sorted(entries, key=lambda entry: -entry.mean if entry.held_out is not None else np.inf)
    return Comparison(tuple(order), len(folds), tuple(map(str, advice_on_values(tables.rows))))


def _candidates(k: int, n_features: int) -> list[tuple[str, Any]]:
    """Every method with every scaling, without those that the table is too large for."""
    found: list[tuple[str, Any]] = []
    for scale in SCALINGS:
        found.append(("PCA", CPCA(k, gamma=0.0, scale=scale)))
        found += [(kind.__name__, kind(k, scale=scale)) for kind in (PCPCA, ContraPCA, CPCA, RatioPCA)]
        if k + 1 < n_features <= MAX_DENSE:
            found.append(("CLVM", CLVM(1, k, scale=scale)))
    return found


def _checked_labels(labels: Any, tables: Tables) -> Any:
    """The class of each foreground row, without those that were left out."""
    if labels is None:
        return None
    kept = tables.kept.foreground
    classes = checked_classes(labels, tables.rows.foreground.shape[0] if kept is None else kept.size)
    classes = classes if kept is None else classes[kept]
    check_several(classes)
    return classes


def _entry(
    method: str, model: Any, whole: Training, rows: Rows, folds: Sequence[Fold], halves: Sequence[Fold], classes: Any
) -> Entry:
    """One method: its settings, the fit to all rows, and the held-out results."""
    start = time.perf_counter()
    try:
        data = model._trained(whole)
        model._tune(folds, data)
        rough, gamma = clone(model).set_params(**model._rough), model._strength()
        fit = rough._solve(data, gamma)
        seconds = time.perf_counter() - start
        axes = rough._directions(data, gamma)
        found = held_out(folds, axes)
        stability = _agreement([axes(half.training).foreground for half in halves])
    except ValueError as error:
        return Entry(method, model, failure=str(error))
    silhouette = np.nan if classes is None else _silhouette(fit, rows, classes)
    return Entry(method, model, found, fit.shares.map(lambda share: float(share.sum())), stability, seconds, silhouette)


def _agreement(axes: list[Array]) -> float:
    """Affinity of the spans of two sets of axes, in original units."""
    left, right = (np.linalg.qr(V)[0] for V in axes)
    return float(affinity(left, right))


def _silhouette(fit: Fit, rows: Rows, classes: Any) -> float:
    """Silhouette of the classes on unit-variance latents, of at most 2000 rows, evenly spread."""
    chosen = np.unique(np.linspace(0, rows.shape[0] - 1, min(rows.shape[0], SILHOUETTE_ROWS)).astype(int))
    return unit_variance_silhouette(fit.units.foreground.project(rows[chosen], fit.projection), classes[chosen])
