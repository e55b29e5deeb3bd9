"""What users say of samples: a tuple or dict with one entry for each group, or names of columns of their frames."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from .._util.arrays import is_sparse, library_of, on_device, put
from .._util.text import did_you_mean, listed, plural
from ..exceptions import GroupError
from ._blocks import Indices
from ._groups import Groups
from ._tables import aligned, column_names, distinct

MAX_LISTED = 10


def read_known(rows: Groups[Any], given: Mapping[str, Any]) -> tuple[Groups[Any], dict[str, Groups[Any]]]:
    """The tables without the columns that arguments name, and what was given for the samples of each group."""
    known = {argument: _by_group(own, rows.names, argument) for argument, own in given.items()}
    tables = []
    for k, (group, table) in enumerate(zip(rows.names, rows, strict=True)):
        used: dict[str, str] = {}
        for argument, own in known.items():
            names, columns = names_in(own[k], argument), column_names(table) or []
            if isinstance(own[k], list) and len(names) == n_rows_of(table) and not set(names) & set(columns):
                names = []  # text, one for each sample
            for name in names:
                check_column(table, name, argument, f"the {group}")
                if name in used:
                    raise GroupError(
                        f"The column {name!r} is used twice, as {used[name]}= and {argument}=: use it once."
                    )
                used[name] = argument
            if names:
                own[k] = select(distinct(table, f"the {group}"), names) if argument == "covariates" else table[own[k]]
            elif own[k] is not None:
                own[k] = aligned(own[k], table, f"{argument} of the {group}")
        tables.append(table if not used else select(table, [name for name in columns if name not in used]))
    return rows.like(tables), {argument: rows.like(own) for argument, own in known.items()}


def names_in(given: Any, argument: str) -> list[str]:
    """The columns that an argument names; only covariates may be several."""
    if isinstance(given, str):
        return [given]
    several = argument == "covariates" and isinstance(given, list) and len(given) > 0
    return given if several and all(isinstance(name, str) for name in given) else []


def _by_group(given: Any, groups: Sequence[str], argument: str) -> list[Any]:
    """What was given for each group: a tuple, a dict, column names for all of them, or something for the only one."""
    if given is None or names_in(given, argument):
        return [given] * len(groups)
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping):
        given = {"foreground": given[0]} | {str(name): own for name, own in given[1].items()}
    if isinstance(given, Mapping):
        own = {str(name): values for name, values in given.items()}
        check_known(list(own), list(groups), argument, "the study has no group")
        return [own.get(name) for name in groups]
    if isinstance(given, tuple) and len(given) == len(groups):
        return list(given)
    if not isinstance(given, tuple) and len(groups) == 1:
        return [given]
    if argument == "labels" and not isinstance(given, tuple):
        return [given, *[None] * (len(groups) - 1)]
    what = f"a tuple of {len(given)}" if isinstance(given, tuple) else f"one {type(given).__name__}"
    raise GroupError(
        f"{argument} is {what}, but there are {plural(len(groups), 'group')} ({listed(groups)}): pass a tuple with one "
        "entry for each, in this order, or the name of a column if the tables are frames."
    )


def check_column(table: Any, name: str, argument: str, where: str) -> None:
    columns = column_names(table)
    if columns is None:
        raise GroupError(
            f"{argument}={name!r} names a column, but {where} is of type {type(table).__name__}, without column "
            "names: pass a value for each sample, or data frames."
        )
    if name not in columns:
        raise GroupError(
            f"{argument}={name!r} is not a column of {where}, which has {listed(columns, MAX_LISTED)}."
            f"{did_you_mean(name, columns)}"
        )


def check_known(wanted: Sequence[Any], known: Sequence[Any], what: str, why: str = "the study has no") -> None:
    """Raise for values that do not occur, with a near one."""
    for value in wanted:
        if value not in known:
            texts = list(dict.fromkeys(map(str, known)))
            raise GroupError(
                f"{what}: {why} {value!r}, it has {listed(texts, MAX_LISTED) or 'none'}."
                f"{did_you_mean(str(value), texts)}"
            )


def n_rows_of(table: Any) -> int:
    """Rows of a table; only `len` counts those of a dask frame."""
    count = table.shape[0] if hasattr(table, "shape") else None
    return int(count) if isinstance(count, int | np.integer) else len(table)


def select(table: Any, names: list[Any]) -> Any:
    """Some columns of a frame."""
    return table.select(names) if hasattr(table, "column_names") else table[names]


def take(values: Any, rows: Indices) -> Any:
    """Some rows of a table, or of what stands beside one: a list, array, Series, dict of arrays, or None."""
    if values is None:
        return None
    if isinstance(values, dict) and not is_sparse(values):  # SciPy's dok_array is a dict, too
        return {name: own[rows] for name, own in values.items()}
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "column_names"):  # pyarrow
        return values.take(rows)
    if isinstance(values, list):
        return [values[k] for k in rows.tolist()]
    if hasattr(values, "format") and hasattr(values, "tocsr"):  # other sparse formats have no rows
        values = values.tocsr()
    return values[put(rows, values, "int64") if on_device(values) else rows]


def stacked(parts: Sequence[Any]) -> Any:
    """Tables of the same columns as one, or what stands beside them: lists, arrays, Series, dicts of arrays."""
    first = parts[0]
    if isinstance(first, dict) and not is_sparse(first):
        return {name: stacked([own[name] for own in parts]) for name in first}
    if isinstance(first, list):
        return [value for own in parts for value in own]
    library = library_of(type(first))
    if library == "pandas":
        return sys.modules["pandas"].concat(parts)
    if library == "polars":
        return sys.modules["polars"].concat(parts)
    if library == "pyarrow":
        return sys.modules["pyarrow"].concat_tables(parts)
    if is_sparse(first):
        return scipy.sparse.vstack(parts, format="csr")
    if on_device(first) or library == "dask":
        raise GroupError("Conditions are stacked in memory: pass their tables as NumPy arrays or data frames.")
    return np.concatenate([np.asarray(own) for own in parts])


def matrix_of(
    adata: Any, layer: str | None, obsm: str | None, mask_var: Any
) -> tuple[Any, npt.NDArray[np.bool_] | None, list[str]]:
    """The matrix of an AnnData, which of its columns are used, and their names."""
    by_default = isinstance(mask_var, str) and mask_var == "auto"
    if obsm is not None and (layer is not None or not (mask_var is None or by_default)):
        raise GroupError("obsm= takes the place of genes: leave layer= and mask_var= out.")
    for name, place, argument in ((layer, "layers", "layer"), (obsm, "obsm", "obsm")):
        if name is not None and name not in (known := list(getattr(adata, place).keys())):
            raise GroupError(
                f"{argument}={name!r} is not in adata.{place}, which has {listed(known, MAX_LISTED) or 'nothing'}."
                f"{did_you_mean(name, known)}"
            )
    if obsm is not None:
        matrix = adata.obsm[obsm]
        columns = column_names(matrix)
        names = [f"{obsm}_{j}" for j in range(matrix.shape[1])] if columns is None else list(map(str, columns))
        return np.asarray(matrix) if columns is not None else matrix, None, names
    matrix = adata.X if layer is None else adata.layers[layer]
    if matrix is None:
        raise GroupError("adata has no X: name a layer with layer=, or an array of obsm with obsm=.")
    names = list(map(str, adata.var_names))
    if by_default:
        mask_var = "highly_variable" if "highly_variable" in adata.var.columns else None
    if mask_var is None:
        return matrix, None, names
    what = f"adata.var[{mask_var!r}]" if isinstance(mask_var, str) else "mask_var"
    if isinstance(mask_var, str):
        if mask_var not in (known := list(adata.var.columns)):
            raise GroupError(
                f"mask_var={mask_var!r} is not a column of adata.var, which has "
                f"{listed(known, MAX_LISTED) or 'none'}.{did_you_mean(mask_var, known)}"
            )
        mask_var = adata.var[mask_var]
    mask = np.asarray(aligned(mask_var, adata.var, "mask_var"))  # a Series by the names of the genes
    if mask.shape != (len(names),) or not all(isinstance(own, bool) for own in mask.tolist()):
        raise GroupError(
            f"{what} has type {mask.dtype} and shape {mask.shape}: a mask is True or False for each of the "
            f"{len(names)} genes."
        )
    if not mask.any():
        raise GroupError(f"{what} is False for all {mask.size} genes: nothing is left to analyse.")
    mask = mask.astype(bool)
    return matrix, mask, [name for name, used in zip(names, mask, strict=True) if used]


def is_anndata(value: Any) -> bool:
    """Whether a value is an AnnData, without importing anndata."""
    return any(kind.__module__.startswith("anndata.") and kind.__name__ == "AnnData" for kind in type(value).__mro__)


def genes_of(adata: Any, names: Sequence[str], layer: str | None = None) -> Any:
    """The columns of an AnnData with the names of a fit's features, in the fit's order, shape (n_obs, D)."""
    places = {name: k for k, name in enumerate(map(str, adata.var_names))}
    if missing := [name for name in names if name not in places]:
        raise GroupError(
            f"{len(missing)} of the {len(names)} genes of the fit are not in adata.var_names ({listed(missing, 5)}), "
            f"which has {plural(len(places), 'gene')}. Fit the model to genes that both have, or rename these."
        )
    if len(places) < adata.n_vars:
        raise GroupError("Names of adata.var_names occur more than once: call adata.var_names_make_unique() first.")
    matrix = matrix_of(adata, layer, None, None)[0]
    columns = np.array([places[name] for name in names])
    if np.array_equal(columns, np.arange(adata.n_vars)) and not adata.isbacked:
        return matrix
    order = np.argsort(columns)  # files read ascending columns only
    return matrix[:, columns[order]][:, np.argsort(order)]


def checked_features(features: Sequence[str], table: Any) -> list[str]:
    """The names of the columns of a table that has none."""
    names, n_features = list(map(str, features)), table.shape[1]
    if column_names(table) not in (None, names):
        raise GroupError("features= is for arrays, but these tables have column names: leave it out.")
    if len(names) != n_features:
        raise GroupError(f"features has {plural(len(names), 'name')} for {plural(n_features, 'feature')}.")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise GroupError(
            f"Names of features occur more than once ({listed(twice, MAX_LISTED)}), so they cannot be told apart: name "
            "each feature once (of an AnnData, call adata.var_names_make_unique() first)."
        )
    return names
