"""Columns of a table that options name: blocks, pairs and covariates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._util.arrays import is_sparse
from ..._util.text import did_you_mean, listed
from ...data import looks_like_replicates
from ._table import DataTable


def check_column(option: str, name: str, *tables: DataTable) -> None:
    """Refuse a column that a table lacks, with the one that was probably meant."""
    for table in tables:
        if name not in table.columns:
            raise _no_column(option, [name], table)


def _no_column(option: str, names: Sequence[str], table: DataTable) -> ValueError:
    hint = did_you_mean(names[0], table.columns)
    have = "." if hint else f", only {listed(table.columns)}."
    return ValueError(f"--{option}: {table.path!r} has no column {listed(names)}{have}{hint}")


def check_ignored(names: Sequence[str], tables: Sequence[DataTable]) -> None:
    """Refuse a column that --ignore names and no table has."""
    every = {name for table in tables for name in table.columns}
    if unknown := [name for name in names if name not in every]:
        hint = did_you_mean(unknown[0], every)
        have = "." if hint else f", only {listed(tables[0].columns)}."
        raise ValueError(f"--ignore: no table has a column {listed(unknown)}{have}{hint}")


def block_labels(
    tables: Sequence[DataTable], column: str | None, what: str = "blocks"
) -> tuple[list[npt.NDArray[Any] | None], list[str]]:
    """The block or pair of each row of every table (None without a column for them), and what was decided, in words.

    Labels such as 309_1, 309_2, one for each row, name replicates: the part before the last separator is the block.
    """
    if column is None:
        return [None] * len(tables), []
    found = []
    for table in tables:
        check_column(what, column, table)
        labels = table.as_text(column)
        missing = int(np.sum(labels == ""))
        if missing:
            raise ValueError(
                f"--{what}: {missing} of {len(table)} rows of {table.path!r} have nothing in the column {column!r}: "
                f"remove them, or fill in their {what[:-1]}."
            )
        found.append(labels)
    every = [label for labels in found for label in labels.tolist()]
    stems = looks_like_replicates(every)
    if stems is None:
        return [*found], [f"{what} are the {len(set(every))} values of {column!r}"]
    note = f"{what} are the {len(set(stems))} beginnings of {column!r}, such as {stems[0]!r} of {every[0]!r}"
    return [*np.split(np.array(stems), np.cumsum([len(labels) for labels in found])[:-1])], [note]


def covariate_names(tables: Sequence[DataTable], given: Sequence[str]) -> list[str]:
    """The columns that --covariates names; age,sex are two unless a column is called that."""
    first = tables[0].columns
    names = [name for text in given for name in ([text] if text in first else text.split(","))]
    for table in tables:
        if unknown := [name for name in names if name not in table.columns]:
            raise _no_column("covariates", unknown, table)
    return list(dict.fromkeys(names))


@dataclass(frozen=True)
class Columns:
    """Columns of a file, with their names as a data frame has them."""

    columns: list[str]
    values: npt.NDArray[Any]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self.values, dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape


def covariate_columns(table: DataTable, names: Sequence[str], rows: npt.NDArray[np.intp] | None = None) -> Columns:
    """These columns of a table, numbers or text; all rows or some."""
    values = np.column_stack([_column(table, name).astype(object) for name in names])
    return Columns(list(names), values if rows is None else values[rows])


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
    names = [column.name for column in model.fit_.covariates.columns] if hasattr(model, "covariate_names_") else []
    if not names:
        return {}
    if unknown := [name for name in names if name not in table.columns]:
        raise ValueError(
            f"The model was fitted with the covariates {listed(names)}, but {table.path!r} has no column "
            f"{listed(unknown)}: add it."
        )
    return {"covariates": covariate_columns(table, names)}
