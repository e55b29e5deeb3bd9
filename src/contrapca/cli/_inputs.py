"""The tables of a command: two files, or one file with a column that tells the groups apart."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Rows, is_sparse
from .._util.text import as_command, listed, plural, spelling
from ..data import Groups, Study, regress_out, with_names
from ..data.checks import IMPUTED, Finding, Given, check_groups, imputed_values
from ..exceptions import TableFileError
from ..plots import on_a_scale
from ._columns import block_labels, check_column, check_pairs, covariate_columns, covariate_names, ignored_columns
from ._console import caution
from ._findings import block_findings, check_mixed, findings_of_tables, identifiers_of, not_analysed
from .reading import DataTable, align, align_to, read_table

BY_PLACE = "columns matched by position, because one file has no column names"


MAX_VALUES_LISTED = 10


@dataclass(frozen=True)
class Group:
    """The rows of one group.

    Attributes
    ----------
    values : ndarray or CSR matrix of shape (n, D)
    row_names : list of str
        Those of the file, or the number of each row in it, counted from 1.
    labels : ndarray of shape (n,) or None
    blocks : ndarray of str, shape (n,), or None
        The donor, animal or plate of each row.
    covariates : ndarray of shape (n, q), or None
        What was regressed out of the values.
    as_read : ndarray of shape (n, D), or None
        The values before that.
    """

    values: Rows
    row_names: list[str]
    labels: npt.NDArray[Any] | None
    blocks: npt.NDArray[Any] | None = None
    covariates: Any = None
    as_read: Rows | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])


@dataclass(frozen=True)
class Inputs:
    """Checked tables of both groups, with the same columns.

    Attributes
    ----------
    names : list of str or None
        Feature names; None if the files have none.
    cases : Group
    controls : Group or None
    table : DataTable
        The file of the cases.
    columns : list of str
        Names of the features in that file.
    rows : ndarray of int
        Rows of that file that are cases.
    sources : list of str
        The files.
    notes : list of str
        What was decided while reading, in words.
    findings : list of Finding
        What is probably a mistake in the tables.
    """

    names: list[str] | None
    cases: Group
    controls: Group | None
    table: DataTable
    columns: list[str]
    rows: npt.NDArray[np.intp]
    sources: list[str]
    notes: list[str]
    findings: list[Finding]

    @property
    def X(self) -> Rows:
        """Values of the cases."""
        return self.cases.values

    @property
    def Y(self) -> Rows | None:
        """Values of the controls."""
        return None if self.controls is None else self.controls.values

    @property
    def blocks(self) -> tuple[Any, Any] | None:
        """The block, or pair, of each case and each control; None if there are none."""
        if self.controls is None or self.cases.blocks is None:
            return None
        return self.cases.blocks, self.controls.blocks

    @property
    def ignored(self) -> list[str]:
        """Columns of the cases' file that are not features, in the order of the file."""
        used = set(self.columns)
        every = self.table.columns if self.table.source is None else self.table.source.columns
        return [name for name in every if name not in used]

    @property
    def cautions(self) -> list[str]:
        """What is probably a mistake, with its way out."""
        return [finding.text("command") for finding in self.findings]

    def describe(self) -> list[str]:
        """What was read, in lines for people."""
        groups = f"{len(self.cases)} cases"
        if self.controls is not None:
            groups += f" and {len(self.controls)} controls"
        lines = ["; ".join([f"{' and '.join(self.sources)}: {groups}, {self.X.shape[1]} features", *self.notes])]
        if self.ignored:
            lines.append(f"Not used as features: {', '.join(name or '(no name)' for name in self.ignored)}")
        return lines

    def summary(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "sources": self.sources,
            "n_cases": len(self.cases),
            "n_controls": 0 if self.controls is None else len(self.controls),
            "n_features": self.X.shape[1],
            "not_features": self.ignored,
        }


def reading_of(options: Namespace) -> dict[str, Any]:
    """How the options say that tables are to be read, as arguments of `read_table`."""
    names = ("header", "transpose", "encoding", "missing", "percent", "thousands")
    return {name: getattr(options, name) for name in names}


def read_inputs(
    options: Namespace, *, needs_background: bool = True, features: tuple[list[str] | None, int] | None = None
) -> Inputs:
    """Read the tables named by the options, check them together, and say at once what looks like a mistake.

    Parameters
    ----------
    options : Namespace
    needs_background : bool
    features : (names or None, number), optional
        Features of a model to be used, in its order.
    """
    if options.background is None and (needs_background or options.group is not None):
        how = "the value that marks controls" if options.group else "the controls table (or --group, for one table)"
        raise ValueError(f"--background is needed: {how}.")
    sheets = options.sheet or [None]
    # The genes of a model are found by name among all.
    mask = options.mask or (None if features is None else "none")
    reading = reading_of(options) | {"layer": options.layer, "mask": mask}
    table = read_table(options.cases, sheet=sheets[0], **reading)
    two_files = options.background is not None and options.group is None
    if two_files and not Path(options.background).exists():
        _check_group(options.background, table)
    other = read_table(options.background, sheet=sheets[-1], **reading) if two_files else None
    tables = [table] if other is None else [table, other]
    label, block, pair = (getattr(options, name, None) for name in ("labels", "blocks", "pairs"))
    if block is not None and pair is not None:
        raise ValueError("--pairs and --blocks cannot be used together: pairs are blocks with rows in both groups.")
    covariates = covariate_names(tables, getattr(options, "covariates", None) or [])
    without = _columns_without(options, label, block or pair, tables) | set(covariates)
    imputed = _imputed(tables)
    without |= {IMPUTED} if imputed else set()
    blocks, decided = block_labels(tables, block or pair, "pairs" if pair else "blocks")
    numbered = [] if features is not None else identifiers_of(tables, without)
    without |= set(numbered)
    kept = [name for name in table.names if name not in without]
    if features is not None:
        names, values = features[0], [align_to(*features, given, without=without) for given in tables]
    elif other is not None:
        names, *values = align(table, other, without=without, common=options.common)
    else:
        names, values = kept if table.named else None, [table.select(kept)]
    notes = [*dict.fromkeys(note for given in tables for note in given.notes), *decided]
    # Which table has the rows of each group, and which of its rows they are.
    where = [(k, np.arange(len(given))) for k, given in enumerate(tables)]
    if options.group is not None:
        marks = table.as_text(options.group)
        is_control = _controls_mask(table, marks, options.group, options.background)
        where = [(0, np.flatnonzero(~is_control)), (0, np.flatnonzero(is_control))]
        if len(others := np.unique(marks[~is_control]).tolist()) > 1:
            notes.append(f"cases are all rows except {options.background!r}: {listed(others)}")
    groups = [_group(tables[k], values[k], names, rows, label, blocks[k]) for k, rows in where]
    columns = kept if names is None or not table.named else names
    if other is not None and table.named != other.named:
        notes.append(BY_PLACE)
    named = zip(tables, (sheets[0], sheets[-1]), strict=False)
    sources = [given.path if sheet is None else f"{given.path} (sheet {sheet})" for given, sheet in named]
    findings = [*findings_of_tables(tables, options, without), *not_analysed(numbered), *imputed]
    if pair is not None and len(groups) > 1:
        check_pairs(groups[0].blocks, groups[1].blocks)
    if covariates:
        groups = _adjusted(groups, [covariate_columns(tables[k], covariates, rows) for k, rows in where], table.path)
        notes.append(f"without the effect of {listed(covariates)}")
    if len(groups) > 1 and block is None and pair is None and hasattr(options, "blocks"):
        findings += block_findings(tables)
    controls = groups[1] if len(groups) > 1 else None
    inputs = Inputs(names, groups[0], controls, table, columns, where[0][1], sources, notes, findings)
    _check_values(inputs, None if features is not None else options.components)
    told = getattr(options, "depth", "warn") != "warn"  # of unequal depth
    findings += [found for found in _findings_of_values(inputs) if not (told and found.check == "depth")]
    caution(*inputs.cautions)
    return inputs


def _imputed(tables: list[DataTable]) -> list[Finding]:
    """Tables with the column that `contrapca impute` writes: how many values of each row were imputed."""
    found = []
    for given in tables:
        if IMPUTED in given.names and not is_sparse(given.values):
            counts = np.asarray(given.select([IMPUTED]), dtype=np.float64)[:, 0]
            if np.all((counts >= 0) & (counts == np.round(counts))) and counts.any():
                found.append(imputed_values(int(counts.sum()), repr(given.path)))
    return found


def _adjusted(groups: list[Group], beside: list[Any], path: str) -> list[Group]:
    """The groups without the effect of the covariates `beside` their rows."""
    if any(is_sparse(group.values) for group in groups):
        raise ValueError(
            f"--covariates: {path!r} is sparse, and what covariates leave of it is dense: store the genes that you use "
            "as a dense table, or regress the covariates out first."
        )
    X, *others = (np.asarray(group.values) for group in groups)
    study = Study(X, background=others[0] if others else None, covariates=tuple(beside))
    values = list(regress_out(study).rows)
    features = getattr(groups[0].values, "columns", None)
    return [
        replace(group, values=with_names(np.asarray(table), features), covariates=own, as_read=group.values)
        for group, table, own in zip(groups, values, beside, strict=True)
    ]


def _findings_of_values(inputs: Inputs) -> list[Finding]:
    """What the values show."""
    groups = Groups.of(inputs.cases, inputs.controls)
    # Repetitions and replicates among the names of rows were looked for in the whole tables.
    names: Groups[Any] = groups.map(lambda group: list(dict.fromkeys(group.row_names)))
    return check_groups(Given(groups.map(lambda group: group.values), inputs.names, names, has_blocks=True))


def _check_group(background: str, table: DataTable) -> None:
    """Refuse a value of a column in place of the controls' file."""
    for name in table.texts:
        if background in table.texts[name].tolist():
            raise ValueError(
                f"--background: there is no file {background!r}, but column {name!r} of {table.path!r} has this value: "
                f"add --group {as_command([name])} if it marks the controls."
            )


def _columns_without(options: Namespace, label: str | None, block: str | None, tables: list[DataTable]) -> set[str]:
    """Columns that the options exclude from the features; a spoilt column must be among them."""
    for option, name in (("group", options.group), ("labels", label)):
        if name is not None:
            check_column(option, name, tables[0])
    without = ignored_columns(options.ignore, tables) | {
        name for name in (options.group, label, block) if name is not None
    }
    check_mixed(tables, without)
    return without


def _group(
    table: DataTable,
    values: Rows,
    names: list[str] | None,
    rows: npt.NDArray[np.intp],
    label: str | None,
    blocks: npt.NDArray[Any] | None,
) -> Group:
    all_names = table.row_names or [str(i + 1) for i in range(len(table))]
    labels = None
    if label is not None and label in table.columns:
        labels = _labels(table.as_text(label))[rows]
    own = None if blocks is None else blocks[rows]
    values = values if len(rows) == len(table) else values[rows]  # no copy of all rows
    return Group(with_names(values, names), [all_names[i] for i in rows], labels, own)


def _labels(texts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels as numbers if they are a scale, else as they are written."""
    try:
        values = on_a_scale([float(text or "nan") for text in texts.tolist()])
    except ValueError:
        return texts
    return texts if values is None else values


def _controls_mask(table: DataTable, groups: npt.NDArray[Any], column: str, value: str) -> npt.NDArray[np.bool_]:
    """Which rows are controls, by their value in the group column."""
    missing = int(np.sum(groups == ""))
    if missing:
        raise ValueError(
            f"{missing} of {len(table)} rows of {table.path!r} have no value in column {column!r}: remove them or fill "
            "in their group."
        )
    mask = groups == value
    alike = sorted(
        set(groups[~mask].tolist()) & {label for label in groups.tolist() if spelling(label) == spelling(value)}
    )
    if mask.any() and alike:
        raise ValueError(
            f"--background: column {column!r} of {table.path!r} has {value!r} ({plural(int(mask.sum()), 'row')}) and "
            f"also {listed(alike)} ({plural(int(np.isin(groups, alike).sum()), 'row')}), which would become cases: "
            "spell the controls alike."
        )
    if not mask.any():
        values, counts = np.unique(groups, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MAX_VALUES_LISTED]
        more = f" and {values.size - order.size} more" if values.size > order.size else ""
        raise ValueError(
            f"--background: {value!r} does not occur in column {column!r} of {table.path!r}, only "
            f"{', '.join(repr(str(values[k])) for k in order)}{more}."
        )
    if mask.all():
        raise ValueError(f"All rows of {table.path!r} have {value!r} in column {column!r}: there are no cases.")
    return np.asarray(mask)


def _check_values(inputs: Inputs, components: int | None) -> None:
    """Check for enough rows, enough features for the components, and infinity."""
    names = inputs.names
    groups = [("cases", inputs.cases, inputs.sources[0])]
    if inputs.controls is not None:
        groups.append(("controls", inputs.controls, inputs.sources[-1]))
    for what, group, path in groups:
        if len(group) < 2:
            raise TableFileError(f"{path!r} has {plural(len(group), 'row')} of {what}: at least 2 are needed.")
        if not is_sparse(group.values) and np.isinf(group.values).any():
            infinite = np.flatnonzero(np.isinf(group.values).any(axis=0)).tolist()
            found = listed([names[j] if names else j + 1 for j in infinite])
            what = "Column" if len(infinite) == 1 else "Columns"
            has = "has" if len(infinite) == 1 else "have"
            raise TableFileError(f"{what} {found} of {path!r} {has} infinite values: correct them, or use --ignore.")
    width = inputs.X.shape[1]
    if components is not None and width <= components:
        found = ", ".join(name for name in inputs.ignored if name)
        raise TableFileError(
            f"{inputs.sources[0]!r} has {plural(width, 'usable numeric column')}"
            + (f" (not used: {found})" if found else "")
            + f": --components {components} needs more."
        )
