"""Rows in batches: moments are kept, and the model is solved from them.

These functions are methods of all estimators; `self._stream` has the moments so far.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sklearn.utils.validation import validate_data

from .._util.checks import check_option
from ..contrast import Fit
from ..data import distinct
from ..data.rows import DaskRows
from ..exceptions import GroupError, InfeasibleGammaError, RankError, warn
from ..moments import Moments, Stream, check_solver_of, read_batch, read_batches

NO_MOMENTS = (
    "This model has no moments of its rows: it was not fitted by partial_fit or fit_batches, or it was loaded from a "
    "file, which does not keep them (save moments_ with Moments.save)."
)


def partial_fit(
    self: Any,
    X: Any,
    y: Any = None,
    *,
    background: Any = None,
    sample_weight: Any = None,
    background_weight: Any = None,
) -> Any:
    """Add a batch of rows, and fit to all rows so far.

    Any order and size of batches gives the model that `fit` gives for all rows. The model is fitted as soon as each
    group has enough rows and gamma is below its limit for the rows so far; until then, only the moments grow.
    `moments_` has the moments so far, which can be saved.

    Parameters
    ----------
    X, y, background, sample_weight, background_weight
        As for `fit`, complete rows or Moments. A batch may have rows of one group only: `X` may be None.

    Returns
    -------
    self
    """
    check_option(self.scale, "scale", self._scales)
    gamma, before, fit = self._strength(), self._stream, None
    is_table = X is not None and not isinstance(X, Moments | DaskRows)
    first = before is None or "foreground" not in before.counts
    if is_table and not first:
        validate_data(self, distinct(X), reset=False, skip_check_array=True)  # names and number of features
    given = (X, y, background, self.background_label, sample_weight, background_weight)
    stream = (before or Stream()).plus(*read_batch(*given, type(self).__name__))
    if not stream.lacks(needs_background=gamma != 0):
        with contextlib.suppress(RankError):  # too few rows for so many components: wait for more
            try:
                fit = _fit_of(self, stream, gamma)
            except InfeasibleGammaError as error:  # so far: the batches after it may raise the limit
                warn(f"The batch is counted, but the model is not fitted to the rows so far. {error}")
                self.__dict__.pop("_state", None)
    if before is None and self.__sklearn_is_fitted__():
        warn(f"{NO_MOMENTS} partial_fit starts anew, without those rows.")
        del self.__dict__["_state"]
    if is_table and first:
        validate_data(self, X, skip_check_array=True)
    self._stream = stream  # a failure before this leaves everything as it was
    return self if fit is None else self._with_fit(fit)


def fit_batches(self: Any, batches: Iterable[Any], *, checkpoint: Any = None) -> Any:
    """Fit to rows that come in batches, of which one at a time is in memory.

    Parameters
    ----------
    batches : iterable
        Tables of the foreground, tuples (X, background), tuples (X, y) of stacked rows with `background_label`, or
        dicts of the arguments of `partial_fit`. Rows are complete.
    checkpoint : str or path-like, optional
        A file that has the moments after every batch. If it exists, as many batches as it counts are skipped: a run
        that was stopped, in whatever way, continues where it was. Remove it to start anew.

    Returns
    -------
    self
    """
    check_option(self.scale, "scale", self._scales)
    gamma = self._strength()
    stream = read_batches(batches, self.background_label, checkpoint, type(self).__name__)
    if lacking := stream.lacks(needs_background=gamma != 0):
        raise GroupError(f"There are too few rows after {stream.n_batches} batches: {lacking}.")
    fit = _fit_of(self, stream, gamma)
    self._stream = stream
    return self._with_fit(fit)


def _fit_of(self: Any, stream: Stream, gamma: float | None) -> Fit:
    """The fit to all rows of a stream."""
    check_solver_of(stream.moments["foreground"], getattr(self, "solver", "auto"))  # CLVM has one solver
    tables = stream.tables(name=type(self).__name__, needs_background=gamma != 0)
    fit = self._solve(self._collected(tables), gamma, tables)
    return replace(fit, units=fit.units.map(lambda units: replace(units, dtype=stream.dtype)))


def moments_(self: Any) -> dict[str, Moments]:
    """Moments of each group's rows so far, after `partial_fit` or `fit_batches`."""
    return dict(_seen(self).moments)


def n_samples_seen_(self: Any) -> int:
    """Number of foreground rows so far, after `partial_fit` or `fit_batches`."""
    return _seen(self).counts.get("foreground", 0)


def n_background_samples_seen_(self: Any) -> int | dict[str, int]:
    """The same for the background; a dict if there are several."""
    others = {name: count for name, count in _seen(self).counts.items() if name != "foreground"}
    return others if len(others) > 1 else next(iter(others.values()), 0)


def _seen(self: Any) -> Stream:
    if self._stream is None:
        raise AttributeError(NO_MOMENTS)
    return self._stream
