"""From an AnnData and an estimator to stored results."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add
from typing import Any

import numpy as np

from .._checks import check_option
from .._util.arrays import Array, Rows
from ..exceptions import InfeasibleGammaError, RankError
from ..fitting import latent_means
from ..moments import spread_out
from ..rows import Blocked
from ..selection import HeldOutContrast, held_out_contrast
from ..tables import with_names
from ._cells import Cells, check_n_comps, choose, looks_like_counts, warn_of_counts
from ._donors import warn_of_donors
from ._obs import background_argument
from ._results import Keys, check_writable, fit_results, write

DTYPES = ("float32", "float64")
MOST_CELLS, MIN_CELLS = 5000, 10  # of each group that judge the components
SPLITS, FEW_GENES = 5, 500  # splits of the cells into halves, if there are so few genes


def run_fit(
    adata: Any,
    estimator: Any,
    keys: Keys,
    choice: Mapping[str, Any],
    settings: Mapping[str, Any],
    *,
    n_comps: Any,
    copy: bool,
    dtype: Any,
) -> Any:
    """Fit an estimator to the chosen cells, and store the results.

    Parameters
    ----------
    adata : AnnData
    estimator : estimator
        Not fitted.
    keys : Keys
    choice : mapping
        Arguments of `choose`.
    settings : mapping
        Settings of the fit, to be stored.
    n_comps, copy, dtype
        As users give them.
    """
    cells = choose(adata, **choice)
    check_n_comps(n_comps, len(cells.names))
    check_writable(adata, copy)
    check_option(str(np.dtype(dtype)), "dtype", DTYPES)
    warn_of_donors(adata.obs, cells)
    model, latents, held_out = fitted(cells, estimator)
    results = fit_results(cells, model, latents, keys, adata.n_vars, dtype, settings, held_out)
    return write(adata, results, copy=copy)


def fitted(cells: Cells, estimator: Any) -> tuple[Any, Array, HeldOutContrast | None]:
    """The fitted model, the latents of all cells, and what unseen cells say of each component."""
    searches = estimator._holds_out and estimator.gamma == "auto"  # by halves of the cells
    if cells.is_large and not searches:
        model, latents = _fitted_in_blocks(cells, estimator)
        return model, latents, on_unseen_cells(cells, cells.lazy(), model)
    table = cells.read()
    if cells.of_genes and looks_like_counts(table):
        warn_of_counts()
    rows = cells.split(table)
    if searches and cells.blocks is not None:  # by halves of the donors
        given = {"background": background_argument(rows)} | cells.given_blocks
        estimator.set_params(gamma=held_out_contrast(estimator, rows.foreground, **given).gamma)
    model = estimator.fit(rows.foreground, background=background_argument(rows))
    return model, latents_of(model, table), on_unseen_cells(cells, table, model)


def on_unseen_cells(cells: Cells, table: Any, model: Any) -> HeldOutContrast | None:
    """`held_out_contrast` of a fitted model with some of the cells, if both groups have enough and no value is missing.

    With many genes a fit costs much more than all cells' latents: then the cells are split only once.
    """
    chosen = cells.groups.map(lambda own: spread_out(own.size, MOST_CELLS))
    if min(own.size for own in chosen) < MIN_CELLS:
        return None
    some = cells.groups.map(lambda own, k: own[k], chosen)
    if isinstance(table, Blocked):
        inside = np.isin(np.arange(table.shape[0]), np.concatenate(list(some)))
        table, some = table[inside][:], some.map(lambda own: np.cumsum(inside)[own] - 1)
    groups = some.map(lambda own: with_names(table[own], cells.names))
    if not all(np.isfinite(own.sum()) for own in groups):
        return None
    given: dict[str, Any] = {"n_splits": SPLITS if len(cells.names) <= FEW_GENES else 1}
    if cells.blocks is not None:
        blocks = cells.blocks.map(lambda own, k: own[k], chosen)
        given |= {"blocks": blocks.foreground, "background_blocks": background_argument(blocks)}
    fixed = model._path_estimator()._with_strength(model.gamma_) if model._holds_out else model
    try:
        return held_out_contrast(fixed, groups.foreground, background=background_argument(groups), **given)
    except (InfeasibleGammaError, RankError):  # gamma or n_comps is too large for half of the cells
        return None


def _fitted_in_blocks(cells: Cells, estimator: Any) -> tuple[Any, Array]:
    """The same from moments: one pass for the fit, and one for the latents."""
    moments = cells.moments()
    model = estimator.fit(moments.foreground, background=background_argument(moments))
    parts = cells.lazy().reduce(lambda block: [(latents_of(model, block), looks_like_counts(block))], add)
    if cells.of_genes and all(are_counts for _, are_counts in parts):
        warn_of_counts()
    return model, np.concatenate([latents for latents, _ in parts])


def latents_of(model: Any, table: Rows) -> Array:
    """Latents of cells, from the mean of the foreground, shape (n, k)."""
    fit = model._state
    rows, missing = fit.units.foreground.check(table, allow_missing=fit.model is not None)
    return latent_means(fit, rows, missing)
