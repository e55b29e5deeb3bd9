"""Covariates on the command line: columns whose effect is taken out of the features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import is_sparse
from .._util.text import listed
from ..tables import DataTable, with_names


def covariate_names(tables: Sequence[DataTable], given: Sequence[str]) -> list[str]:
    """The columns that --covariates names; age,sex are two unless a column is called that."""
    first = tables[0].columns
    names = [name for text in given for name in ([text] if text in first else text.split(","))]
    for table in tables:
        if unknown := [name for name in names if name not in table.columns]:
            raise ValueError(
                f"--covariates: {table.path!r} has no column {listed(unknown)}, only {listed(table.columns)}."
            )
    return list(dict.fromkeys(names))


def covariate_columns(table: DataTable, names: Sequence[str], rows: npt.NDArray[np.intp] | None = None) -> Any:
    """These columns of a table, numbers or text, with their names; all rows or some."""
    values = np.column_stack([_column(table, name).astype(object) for name in names])
    return with_names(values if rows is None else values[rows], list(names))


def _column(table: DataTable, name: str) -> npt.NDArray[Any]:
    """A column as numbers where all of it are, also if they are among the annotations of an h5ad file; else as text."""
    if name in table.names and not is_sparse(table.values):
        return np.asarray(table.select([name])[:, 0])
    texts = table.as_text(name)
    try:
        return texts.astype(np.float64)
    except ValueError:
        return texts


def covariates_of_model(model: Any, table: DataTable) -> dict[str, Any]:
    """The columns of a table that a fitted model needs, as arguments of its methods."""
    names = [column.name for column in model._state.covariates.columns] if hasattr(model, "covariate_names_") else []
    if not names:
        return {}
    if unknown := [name for name in names if name not in table.columns]:
        raise ValueError(
            f"The model was fitted with the covariates {listed(names)}, but {table.path!r} has no column "
            f"{listed(unknown)}: add it."
        )
    return {"covariates": covariate_columns(table, names)}
