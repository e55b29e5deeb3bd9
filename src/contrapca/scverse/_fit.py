"""From an AnnData and an estimator to stored results."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add
from typing import Any

import numpy as np

from .._checks import check_option
from .._util.arrays import Array, Rows
from ..fitting import latent_means
from ..selection import HeldOutContrast, held_out_contrast
from ._cells import Cells, check_n_comps, choose, looks_like_counts, warn_of_counts, warn_of_values
from ._depth import warn_of_depth
from ._donors import warn_of_donors
from ._obs import background_argument
from ._results import Keys, check_writable, fit_results, write

DTYPES = ("float32", "float64")


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
    warn_of_depth(adata, cells)
    model, latents, held_out = fitted(cells, estimator)
    results = fit_results(cells, model, latents, keys, adata.n_vars, dtype, settings, held_out)
    return write(adata, results, copy=copy)


def fitted(cells: Cells, estimator: Any) -> tuple[Any, Array, HeldOutContrast | None]:
    """The fitted model, the latents of all cells, and ratios on unseen donors if there are blocks."""
    searches = estimator._holds_out and estimator.gamma == "auto"  # on held-out cells, as ratios are computed
    if cells.is_large and not searches and cells.blocks is None:
        return *_fitted_in_blocks(cells, estimator), None
    table = cells.read()
    warn_of_values(cells, table)
    rows, held_out = cells.split(table), None
    if cells.blocks is not None:
        given = {"background": background_argument(rows)} | cells.given_blocks
        held_out = held_out_contrast(estimator, rows.foreground, **given)
        if searches:
            estimator.set_params(gamma=held_out.gamma)
    model = estimator.fit(rows.foreground, background=background_argument(rows))
    return model, latents_of(model, table), held_out


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
