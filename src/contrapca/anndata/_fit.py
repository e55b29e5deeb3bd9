"""From an AnnData and an estimator to stored results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import add
from typing import Any

import numpy as np

from .._util.arrays import Array, Rows
from .._util.checks import check_option
from ..data import (
    Groups,
    study_of,
    table_units,
    tables_of,
)
from ..data.checks import are_counts
from ..data.rows import DaskRows
from ..estimators import ContrastSolver, latent_means, unfitted
from ..exceptions import InfeasibleGammaError, RankError
from ..inference import GroupRows, HeldOutContrast, held_out_contrast, held_out_of, prepared
from ..moments import spread_out
from ._cells import Cells, background_argument, check_n_comps, choose
from ._results import Keys, check_writable, fit_results, write
from ._warnings import warn_of_counts, warn_of_depth, warn_of_donors, warn_of_values

DTYPES = ("float32", "float64")
SETTINGS = ("gamma", "n_shared", "scale", "random_state")  # of an estimator, which are stored
MOST_CELLS, MIN_CELLS = 5000, 10  # of each group that judge the components

# More genes are judged in 100 directions, found by subspace iteration from at most 1000 cells of each group.
FEW_GENES, DIRECTIONS, FINDING_CELLS, ROUNDS = 200, 100, 1000, 2


def run_fit(
    adata: Any,
    estimator: Any,
    choice: Mapping[str, Any],
    varm: str,
    *,
    n_comps: Any,
    key_added: str | None,
    copy: bool,
    dtype: Any,
) -> Any:
    """Fit an estimator to the cells of `choice` (arguments of `choose`), and store the results.

    `varm` is what scanpy would call the loadings; the other arguments are as users give them.
    """
    keys = Keys.of(type(estimator).__name__.lower(), varm, key_added)
    cells = choose(adata, **choice)
    check_n_comps(n_comps, len(cells.names))
    check_writable(adata, copy)
    check_option(str(np.dtype(dtype)), "dtype", DTYPES)
    asked = estimator.get_params(deep=False)
    settings = {"n_comps": n_comps} | {name: asked[name] for name in SETTINGS if name in asked}
    warn_of_donors(adata.obs, cells)
    warn_of_depth(adata, cells)
    model, latents, held_out = fitted(cells, estimator)
    results = fit_results(cells, model, latents, keys, adata.n_vars, dtype, settings, held_out)
    return write(adata, results, copy=copy)


def fitted(cells: Cells, estimator: Any) -> tuple[Any, Array, HeldOutContrast | None]:
    """The fitted model, the latents of all cells, and what unseen cells say of each component."""
    searches = estimator._holds_rows_out  # halves of the cells
    if cells.is_large and not searches:  # from moments: one pass for the fit, and one for the latents
        moments = cells.moments()
        model = estimator.fit(moments.foreground, background=background_argument(moments))
        parts = cells.lazy().reduce(lambda block: [(latents_of(model, block), are_counts(block))], add)
        if cells.of_genes and all(counted for _, counted in parts):
            warn_of_counts()
        latents = np.concatenate([found for found, _ in parts])
        return model, latents, on_unseen_cells(cells, cells.lazy(), model)
    table = cells.read()
    warn_of_values(cells, table)
    rows = cells.split(table)
    if searches and cells.blocks is not None:  # by halves of the donors
        estimator.set_params(gamma=held_out_contrast(estimator, cells.study(rows)).gamma)
    model = estimator.fit(cells.study(rows))
    return model, latents_of(model, table), on_unseen_cells(cells, table, model)


def on_unseen_cells(cells: Cells, table: Any, model: Any) -> HeldOutContrast | None:
    """`held_out_contrast` of a fitted model with some of the cells, if both groups have enough and no value is missing.

    More than 200 genes are judged in the 100 strongest directions of both groups together.
    """
    chosen = cells.groups.map(lambda own: spread_out(own.size, MOST_CELLS))
    if min(own.size for own in chosen) < MIN_CELLS:
        return None
    some = cells.groups.map(lambda own, k: own[k], chosen)
    if isinstance(table, DaskRows):
        inside = np.isin(np.arange(table.shape[0]), np.concatenate(list(some)))
        table, some = table[inside][:], some.map(lambda own: np.cumsum(inside)[own] - 1)
    groups = some.map(lambda own: table[own])
    if not all(np.isfinite(own.sum()) for own in groups):
        return None
    alike, rows = _in_strongest_directions(model, groups) if len(cells.names) > FEW_GENES else (model, groups)
    alike = prepared(alike)
    if alike._holds_rows_out:
        alike._with_strength(model.gamma_)
    background = background_argument(rows)
    tables = tables_of(study_of(rows.foreground, background, "held_out_contrast"), allow_missing=False)
    blocks = None if cells.blocks is None else cells.blocks.map(lambda every, k: every[k], chosen)
    unit_of = table_units(tables, blocks, least=2, what="holding rows out")
    try:
        return held_out_of(alike, tables, unit_of, shown=latents_of(model, groups.foreground))
    except (InfeasibleGammaError, RankError):  # gamma or n_comps is too large for half of the cells
        return None


def _in_strongest_directions(model: Any, groups: Groups[Rows]) -> tuple[Any, Groups[Array]]:
    """An estimator like the model's, and cells in the strongest directions of both groups together, in its units.

    These do not depend on which group a cell is in, and each of the fits to halves then costs a thousandth.
    """
    scaling = model.fit_.scaling
    rows = groups.map(lambda own, unit: GroupRows(own, unit.mean, unit.scale), scaling)
    D, k = scaling.foreground.mean.size, model.fit_.n_shown
    V = np.random.default_rng(0).standard_normal((D, min(max(DIRECTIONS, 2 * k), D)))
    some = rows.map(lambda own: replace(own, rows=own.rows[spread_out(own.rows.shape[0], FINDING_CELLS)]))
    for _ in range(ROUNDS):
        V = np.linalg.qr(np.sum([own.times(V) for own in some], axis=0))[0]
    settled = model._path_estimator() if isinstance(model, ContrastSolver) else model
    alike = unfitted(settled, scale=None)
    return alike, rows.map(lambda own: own.coordinates(V))


def latents_of(model: Any, table: Rows) -> Array:
    """Latents of cells, from the mean of the foreground, shape (n, k)."""
    fit = model.fit_
    rows, missing = fit.scaling.foreground.check(table, allow_missing=fit.maps_missing)
    return latent_means(fit, rows, missing)
