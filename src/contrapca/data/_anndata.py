"""AnnData: which matrix and which genes are used; anndata itself is never imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.text import did_you_mean, listed, plural
from ..exceptions import GroupError
from ._groups import MAX_LISTED
from ._names import aligned, column_names
from ._samples import check_column


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
        check_column(adata.var, mask_var, "mask_var", "adata.var")
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
