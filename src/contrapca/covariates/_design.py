"""Covariates of all groups as numbers, from the arguments of `fit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, is_sparse
from .._util.devices import on_device
from .._util.text import listed, plural
from ..exceptions import GroupError
from ..groups import Groups, Tables
from ._columns import Column, Values, check_same, columns_of, levels_of, numbers_of, unnamed

Flags = npt.NDArray[np.bool_]

CONSTANT = 1e-12  # spread of a column, relative to its size, below which it is rounding
REDUNDANT = 1e-8  # part of a column that is left after those before it, below which it is a combination of them


@dataclass(frozen=True)
class Design:
    """Covariates of all groups as numbers.

    Attributes
    ----------
    columns : tuple of Column
    numbers : Groups of ndarray of shape (n_k, q)
    """

    columns: tuple[Column, ...]
    numbers: Groups[Array]

    @property
    def names(self) -> list[str]:
        """Names of the q columns."""
        return [name for column in self.columns for name in column.encoded]


def design_of(tables: Tables, covariates: Groups[dict[str, Values]]) -> Design:
    """Covariates as numbers; `covariates` has the columns of all rows of the tables as they were given."""
    given = covariates.map(
        lambda own, kept: [values if kept is None else values[kept] for values in own.values()], tables.kept
    )
    found = tuple(Column(name, levels_of([own[j] for own in given])) for j, name in enumerate(covariates.foreground))
    return _checked(Design(found, given.map(lambda own: numbers_of(found, own, "covariates"))), tables)


def checked_covariates(given: Groups[Any], rows: Groups[Any]) -> Groups[dict[str, Values]] | None:
    """The columns of covariates of all groups, by name; None if there are none.

    Parameters
    ----------
    given : Groups of array-like or data frame of shape (n_k, q), or of None
    rows : Groups of tables
        Rows that have names must have those of their covariates.
    """
    if all(own is None for own in given):
        return None
    found: list[dict[str, Values]] = []
    for group, own, table in zip(given.names, given, rows, strict=True):
        if own is None:
            raise GroupError(
                f"The {group} has no covariates, but the other group has: pass those of both, since both groups are "
                "adjusted alike."
            )
        names, values = columns_of(own, int(table.shape[0]), f"covariates of the {group}", table)
        if found:
            check_same(names, list(found[0]), f"covariates of the {group}")
        found.append(dict(zip(names, values, strict=True)))
    labels = next((list(own) for own in found if list(own) != unnamed(len(own))), list(found[0]))
    for j, name in enumerate(labels):
        if len({list(own.values())[j].dtype == object for own in found}) > 1:
            raise GroupError(f"covariates: {name!r} is text in one group, and a column of numbers in another.")
    return given.like(dict(zip(labels, own.values(), strict=True)) for own in found)


def check_dense(rows: Rows, group: str) -> None:
    """Raise unless rows are a NumPy array: adjusted rows are dense, and in memory."""
    if isinstance(rows, np.ndarray):
        return
    if is_sparse(rows):
        how = "is sparse: pass X.toarray(), of fewer features if that is too large"
    elif hasattr(rows, "scatter"):
        how = "was given as Moments: adjust the rows first (regress_out), and take the moments of the result"
    elif on_device(rows):
        how = "is on a device: pass it as a NumPy array, for example X.cpu().numpy() (torch) or cupy.asnumpy(X)"
    else:
        how = "is read in blocks: pass it as an array in memory, for example with numpy.asarray"
    raise TypeError(f"Adjusted rows are dense, but the {group} {how}.")


def _checked(design: Design, tables: Tables) -> Design:
    """The design; raise if it says nothing, or too much."""
    for column in design.columns:
        if not column.encoded:  # one level
            raise _constant(column.name)
    for name, numbers in zip(design.numbers.names, design.numbers, strict=True):
        if np.linalg.matrix_rank(numbers - numbers.mean(axis=0)) >= len(numbers) - 1:
            raise GroupError(
                f"The covariates explain the {name} entirely: {plural(len(design.names), 'column')} of numbers "
                f"({listed(design.names)}) for {plural(len(numbers), 'row')}. Use fewer covariates or levels; a "
                "category of its own for each row explains everything."
            )
    centred = about_means(design.numbers, tables.weights)
    size = np.abs(np.vstack(list(design.numbers))).max(axis=0)
    if np.any(same := np.abs(centred).max(axis=0) <= CONSTANT * size):
        raise _constant(design.names[int(np.argmax(same))])
    # The part of each column that is left after those before it.
    left = np.abs(np.diag(np.linalg.qr(centred / np.linalg.norm(centred, axis=0), mode="r")))
    if np.any(left < REDUNDANT):
        raise GroupError(
            f"The covariate {design.names[int(np.argmax(left < REDUNDANT))]!r} is a combination of those before it "
            f"({listed(design.names)}): leave it out."
        )
    return design


def _constant(name: str) -> GroupError:
    return GroupError(
        f"The covariate {name!r} is the same in all rows of each group, so it explains nothing within them, and means "
        "of groups are never compared: leave it out."
    )


def about_means(numbers: Groups[Array], weights: Groups[Array | None]) -> Array:
    """The design about the means of each group, times the square roots of the weights, stacked."""
    return np.vstack(list(numbers.map(about_mean, weights)))


def about_mean(table: Array, weights: Array | None) -> Array:
    """Rows about their mean, times the square roots of their weights."""
    centred: Array = table - np.average(table, axis=0, weights=weights)
    return centred if weights is None else centred * np.sqrt(weights)[:, None]
