"""From an AnnData and an estimator to stored results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, spread_out
from .._util.checks import check_option
from .._util.text import default_names, is_missing, joined, plural
from ..data import Groups, encoded_of, tables_of, units_of
from ..data.checks import are_counts
from ..data.rows import DaskRows
from ..estimators import (
    CLVM,
    CPCA,
    PCPCA,
    ContraPCA,
    ContrastSolver,
    RatioPCA,
    SparseCPCA,
    latent_means,
    packed,
    unfitted,
)
from ..exceptions import InfeasibleGammaError, RankError, warn
from ..inference import GroupRows, HeldOutContrast, held_out_of, prepared
from ._cells import Cells, Choice, background_argument, check_n_comps, choose, labels_of
from ._results import MODEL, check_key, check_writable, evidence, storable, write
from ._warnings import warn_of_counts, warn_of_depth, warn_of_groups, warn_of_values

KEYS: dict[type, tuple[str, str]] = {  # of uns and, after "X_", of obsm; of varm
    ContraPCA: ("contrapca", "ContraPCs"),
    PCPCA: ("pcpca", "PCPCs"),
    CPCA: ("cpca", "CPCs"),
    CLVM: ("clvm", "CLVs"),
    RatioPCA: ("ratiopca", "RatioPCs"),
    SparseCPCA: ("sparse_cpca", "SparseCPCs"),
}
DTYPES = ("float32", "float64")
SETTINGS = ("gamma", "n_shared", "ridge", "sparsity", "scale", "solver", "random_state")  # stored of an estimator
MOST_CELLS, MIN_CELLS = 5000, 10  # of each group that judge the components

# More genes are judged in 100 directions, found by subspace iteration from at most 1000 cells of each group.
FEW_GENES, DIRECTIONS, FINDING_CELLS, ROUNDS = 200, 100, 1000, 2


def run_fit(
    adata: Any, estimator: Any, choice: Choice, *, n_comps: Any, key_added: str | None, copy: bool, dtype: Any
) -> Any:
    """Fit an estimator to the chosen cells, and store the results under its keys, or all of them under one."""
    cells = choose(adata, choice)
    check_n_comps(n_comps, len(cells.names))
    check_writable(adata, copy)
    check_option(str(np.dtype(dtype)), "dtype", DTYPES)
    function, varm = KEYS[type(estimator)]
    obsm = f"X_{function}"
    if key_added is not None:
        obsm = varm = function = check_key(key_added)
    asked = estimator.get_params(deep=False)
    params = vars(cells.choice) | {"n_comps": n_comps} | {name: asked[name] for name in SETTINGS if name in asked}
    warn_of_groups(adata.obs, cells)
    warn_of_depth(adata, cells)
    with in_own_words():
        model, latents, held_out = fitted(cells, estimator)
    fit = model.fit_
    summary: dict[str, Any] = {
        "params": storable(params),
        "variance": fit.variances.foreground,
        "variance_ratio": fit.shares.foreground,
        "background_variance": background_argument(fit.variances),
        "embedding": obsm,
        "cases": np.array(labels_of(adata.obs, cells.choice.groupby, cells.groups.foreground)),
        MODEL: packed(model),
    }
    if isinstance(model, ContrastSolver) and model._contrasts:
        summary |= {"gamma": float(fit.gamma), "gamma_max": np.nan if fit.limit is None else float(fit.limit)}
    if held_out is not None:
        summary |= evidence(held_out)
    loadings: Array | None = fit.loadings.astype(dtype)
    if not cells.of_genes:
        summary["loadings"], loadings = loadings, None  # and those of an older fit go
    elif cells.mask is not None:  # 0 for genes that were not used
        every = np.zeros((adata.n_vars, fit.n_shown), dtype=dtype)
        every[cells.mask] = loadings
        loadings = every
    return write(adata, copy, uns={function: summary}, obsm={obsm: latents.astype(dtype)}, varm={varm: loadings})


@contextmanager
def in_own_words() -> Iterator[None]:
    """Name what users of `tl` gave, n_comps, in errors of estimators."""
    try:
        yield
    except (RankError, InfeasibleGammaError) as error:
        if error.parameter != "n_components":
            raise
        raise error.naming("n_comps") from error


def fitted(cells: Cells, estimator: Any) -> tuple[Any, Array, HeldOutContrast | None]:
    """The fitted model, the latents of all cells, and what unseen cells say of each component."""
    searches = estimator._holds_rows_out  # halves of the cells, or of the donors
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
    study = cells.study(cells.split(table))
    model = estimator.fit(study)
    del study  # its rows are copies
    table, known = adjusted(model, table, cells.covariates)
    return model, latents_where(model, table, known), on_unseen_cells(cells, table, model)


def adjusted(model: Any, table: Rows, covariates: Any) -> tuple[Rows, npt.NDArray[np.bool_]]:
    """Cells without the effect of their covariates (nan if it is not known), and for which cells that is known."""
    known, regression = np.ones(table.shape[0], dtype=bool), model.fit_.covariates
    if regression is None:
        return table, known
    for column in regression.columns:
        values = covariates[column.name].tolist()
        here = [not is_missing(own) and (column.levels is None or str(own) in column.levels) for own in values]
        known &= np.array(here)
    if not known.all():
        warn(
            f"{plural(int(np.sum(~known)), 'cell')} took no part and have values of {joined(covariates.columns)} that "
            "the fit does not know, so their latents are NaN: leave them out before sc.pp.neighbors and the like."
        )
    found = np.full(table.shape, np.nan, dtype=table.dtype)
    found[known] = regression.adjusted(table[known], regression.encoded(covariates[known], None, int(known.sum())))
    return found, known


def on_unseen_cells(cells: Cells, table: Any, model: Any, *, by_all: bool = False) -> HeldOutContrast | None:
    """`held_out_contrast` of a fitted model with some of the cells, if both groups have enough and no value is missing.

    More than 200 genes are judged in the 100 strongest directions of both groups together. The effect of covariates has
    been taken out of the table.
    """
    places = cells.groups.map(lambda own: own[spread_out(own.size, None if by_all else MOST_CELLS)])
    if min(own.size for own in places) < MIN_CELLS:
        return None
    some = replace(cells, groups=places, covariates=None)
    if isinstance(table, DaskRows):
        inside = np.isin(np.arange(table.shape[0]), np.concatenate(list(places)))
        table, places = table[inside][:], places.map(lambda own: np.cumsum(inside)[own] - 1)
    rows = places.map(lambda own: table[own])
    if not all(np.isfinite(own.sum()) for own in rows):
        return None
    latents = latents_of(model, rows.foreground)
    if some.condition_of is not None:  # each is about its own mean
        condition_of = some.condition_of[some.groups.foreground]
        for own in (condition_of == name for name in some.choice.foreground):
            latents[own] -= latents[own].mean(axis=0)
    alike = model._path_estimator() if isinstance(model, ContrastSolver) else model  # with what all cells decided
    if len(cells.names) > FEW_GENES and not isinstance(model, SparseCPCA):
        alike, rows = _in_strongest_directions(model, alike, rows)
    alike = prepared(alike)
    if alike._holds_rows_out:
        alike._with_strength(model.fit_.gamma)
    study = replace(some, names=default_names(rows.foreground.shape[1])).study(rows)
    try:
        tables = tables_of(study, allow_missing=False)
        unit_of = units_of(study, tables, least=2, what="holding rows out")
        return held_out_of(alike, tables, unit_of, encoded_of(study, tables), shown=latents, design=study.design)
    except (InfeasibleGammaError, RankError):  # gamma or n_comps is too large for half of the cells
        return None


def _in_strongest_directions(model: Any, alike: Any, groups: Groups[Rows]) -> tuple[Any, Groups[Array]]:
    """The estimator without scaling, and cells in the strongest directions of both groups, in the model's units.

    These do not depend on which group a cell is in, and each of the fits to halves then costs a thousandth.
    """
    scaling = model.fit_.scaling
    rows = groups.map(lambda own, unit: GroupRows(own, unit.mean, unit.scale), scaling)
    D, k = scaling.foreground.mean.size, model.fit_.n_shown
    V = np.random.default_rng(0).standard_normal((D, min(max(DIRECTIONS, 2 * k), D)))
    some = rows.map(lambda own: replace(own, rows=own.rows[spread_out(own.rows.shape[0], FINDING_CELLS)]))
    for _ in range(ROUNDS):
        V = np.linalg.qr(np.sum([own.times(V) for own in some], axis=0))[0]
    return unfitted(alike, scale=None), rows.map(lambda own: own.coordinates(V))


def latents_of(model: Any, table: Rows) -> Array:
    """Latents of cells, from the mean of the foreground, shape (n, k)."""
    fit = model.fit_
    rows, missing = fit.scaling.foreground.check(table, allow_missing=fit.maps_missing)
    return latent_means(fit, rows, missing)


def latents_where(model: Any, table: Rows, known: npt.NDArray[np.bool_]) -> Array:
    """Latents of the cells that are `known`, shape (n, k); nan for the others."""
    if known.all():
        return latents_of(model, table)
    latents = np.full((table.shape[0], model.fit_.n_shown), np.nan, dtype=table.dtype)
    latents[known] = latents_of(model, table[known])
    return latents
