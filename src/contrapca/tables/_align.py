"""Put the columns of one table into the order of another, by name."""

from __future__ import annotations

from collections.abc import Collection

from .._util.arrays import Rows
from .._util.text import listed, plural, spelling
from ..exceptions import TableFileError
from ..sanity import dropped_columns, hidden_by, same_row_names
from ._data import DataTable


def align(
    cases: DataTable, controls: DataTable, *, without: Collection[str] = (), common: bool = False
) -> tuple[list[str] | None, Rows, Rows]:
    """Find the features of two tables, and the values of both in the same order.

    Parameters
    ----------
    cases, controls : DataTable
    without : collection of str
        Columns that are not features.
    common : bool
        Use the columns that both tables have, instead of raising an error if one lacks some.

    Returns
    -------
    names : list of str, or None if neither file has names
    X, Y : ndarray or CSR matrix
    """
    left = [name for name in cases.names if name not in without]
    right = [name for name in controls.names if name not in without]
    if not (cases.named and controls.named):
        _check_widths(controls, len(right), f"{cases.path!r}", len(left))
        own = left if cases.named else right if controls.named else None
        return own, cases.select(left), controls.select(right)
    in_left, in_right = set(left), set(right)
    names = [name for name in left if name in in_right]
    if not names:
        texts = {name: table.as_text(name).tolist() for table in (cases, controls) for name in table.texts}
        hidden = dropped_columns({name: cells for name, cells in texts.items() if name not in without})
        raise TableFileError(
            f"{cases.path!r} and {controls.path!r} have no numeric columns in common{_if_transposed(cases, controls)}."
            + "".join(f" {found.text('command')}" for found in hidden)
        )
    if not common:
        for table, other, lacking in ((controls, cases, in_left - in_right), (cases, controls, in_right - in_left)):
            if lacking:
                way_out = f"or add --common to continue without them{_if_transposed(cases, controls)}"
                raise _lacks(table, [name for name in other.names if name in lacking], f"{other.path!r}", way_out)
    return names, cases.select(names), controls.select(names)


def _if_transposed(cases: DataTable, controls: DataTable) -> str:
    """What to do if samples are columns: then the rows of both tables have the same names."""
    if cases.row_names is None or not same_row_names(cases.row_names, controls.row_names):
        return ""
    return (
        f". The rows of both have the same names ({listed(cases.row_names, 3)}): if these are features, add --transpose"
    )


def align_to(names: list[str] | None, n_features: int, table: DataTable, *, without: Collection[str] = ()) -> Rows:
    """The values of a table in the order of a model's features, by name or, if one has no names, by position."""
    given = [name for name in table.names if name not in without]
    if names is None or not table.named:
        _check_widths(table, len(given), "the model", n_features)
        return table.select(given)
    present = set(given)
    if lacking := [name for name in names if name not in present]:
        raise _lacks(table, lacking, "the model", "all are needed", without)
    return table.select(names)


def _check_widths(table: DataTable, width: int, whose: str, wanted: int) -> None:
    if width != wanted:
        raise TableFileError(
            f"{table.path!r} has {plural(width, 'numeric column')} and {whose} has {wanted}: unless both have column "
            "names, they need the same number of columns."
        )


def _lacks(
    table: DataTable, names: list[str], whose: str, way_out: str, without: Collection[str] = ()
) -> TableFileError:
    """An error about columns that a table lacks: which of them it has, but not as numbers, and what to do about it."""
    left_out = [name for name in names if name in without and name in table.columns]
    others = [name for name in names if name not in left_out and (name in table.texts or name in table.empty)]
    hidden = {name: found for name in others if (found := hidden_by(table.as_text(name).tolist()))}
    spelt = {spelling(column): column for column in table.columns if column not in left_out}
    alike = [spelt[spelling(name)] for name in names if name not in others and spelling(name) in spelt]
    why = f" ({listed(left_out)} left out by --ignore or the like)" if left_out else ""
    if others:
        because = f", {next(iter(hidden.values())).reason}" if hidden else ""
        why += f" ({listed(others)} not numeric there{because})"
    if alike:
        differs = "differs" if len(alike) == 1 else "differ"
        why += f" ({listed(alike)} there {differs} only in case or blanks)"
    to_do = ["correct the names"] if len(left_out) + len(others) < len(names) else []
    to_do += ["write such cells as numbers"] if others else []
    to_do += [found.way_out for found in hidden.values() if found.kind == "thousands separators"][:1]
    return TableFileError(
        f"{table.path!r} lacks {plural(len(names), 'numeric column')} of {whose}: {listed(names)}{why}; "
        f"{', '.join([*to_do, way_out])}."
    )
