"""A study from files: two tables, or one with a column that tells the groups apart."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Rows, is_sparse
from .._util.text import Option, Worded, did_you_mean, listed, plural, spelling
from ..data import Groups, Study, looks_like_replicates, regress_out
from ..data.checks import IMPUTED, Finding, Given, check_groups, same_row_names, swapped_names
from ..exceptions import TableFileError, TableWarning, warn
from ..plots import on_a_scale
from ._findings import (
    block_findings,
    check_mixed,
    dropped_columns,
    findings_of_tables,
    hidden_by,
    identifiers_of,
    imputed_in,
)
from ._formats import EXCEL, read_table
from ._table import DataTable

BY_PLACE = "columns matched by position, because one file has no column names"
MAX_VALUES_LISTED = 10
Features = tuple[list[str] | None, int]  # of a model: their names, if it has them, and number


@dataclass(frozen=True)
class Request:
    """Which files to read and what is said of their columns: the arguments of `read`, which explains them."""

    path: Path
    background: Any = None
    group: str | None = None
    blocks: str | None = None
    pairs: str | None = None
    covariates: Sequence[str] = ()
    labels: str | None = None
    weights: str | None = None
    ignore: Sequence[str] = ()
    common: bool = False
    sheet: Sequence[str] = ()
    layer: str | None = None
    mask: str | None = None
    header: bool | None = None
    transpose: bool = False
    encoding: str | None = None
    missing: Sequence[str] = ()
    percent: bool = False
    thousands: bool = False

    def code(self) -> str:
        """Python code that reads the same."""
        arguments = [repr(str(self.path))]
        for own in dataclasses.fields(self)[1:]:
            value = getattr(self, own.name)
            if value is None or value == own.default or value == []:
                continue
            if isinstance(value, list | tuple):
                value = value[0] if len(value) == 1 else tuple(value)
            arguments.append(f"{own.name}={str(value) if isinstance(value, Path) else value!r}")
        return f"contrapca.read({', '.join(arguments)})"


@dataclass(frozen=True)
class Part:
    """The rows of a file that are one group."""

    table: DataTable
    rows: npt.NDArray[np.intp]  # which rows of the file
    values: Rows  # of its features, in these rows

    @property
    def names(self) -> list[str]:
        """Names of the rows, or their numbers in the file."""
        names = self.table.row_names
        return [names[i] if names else str(i + 1) for i in self.rows.tolist()]


@dataclass(frozen=True)
class Inputs:
    """Checked tables of both groups, with the same columns."""

    study: Study  # the groups; covariates are taken out
    as_read: Study  # the same with them
    table: DataTable  # the file of the cases
    columns: list[str]  # names of the features in that file
    rows: npt.NDArray[np.intp]  # rows of that file that are cases
    sources: list[str]  # the files
    notes: list[str]  # what was decided while reading, in words
    findings: list[Finding]  # probable mistakes in the tables

    @property
    def ignored(self) -> list[str]:
        """Columns of the cases' file that are not features, in the order of the file."""
        used, table = set(self.columns), self.table
        every = table.columns if table.source is None else table.source.columns
        return [name for name in every if name not in used]


def read(
    path: str | os.PathLike[str],
    *,
    background: Any = None,
    group: str | None = None,
    blocks: str | None = None,
    pairs: str | None = None,
    covariates: str | Sequence[str] = (),
    labels: str | None = None,
    weights: str | None = None,
    ignore: str | Sequence[str] = (),
    common: bool = False,
    sheet: str | tuple[str, str] | None = None,
    layer: str | None = None,
    mask: str | None = None,
    header: bool | None = None,
    transpose: bool = False,
    encoding: str | None = None,
    missing: str | Sequence[str] = (),
    percent: bool = False,
    thousands: bool = False,
) -> Study:
    """Read a study from files, as the command line does: any separator, header and spelling of numbers.

    Features are the numeric columns, without those named here and without numbers that only identify rows.
    What is probably a mistake in the tables is a warning (`TableWarning`), as `check_tables` has it.

    Parameters
    ----------
    path : str or path-like
        The cases, or all samples: text (.csv, .tsv, .txt; also with .gz, or alone in a .zip), .xlsx, .parquet, .npy,
        .npz, .mtx, .mtx.gz or .h5ad. Rows are samples.
    background : str or path-like, optional
        The file of the controls; with `group`, the value of that column that marks them.
    group : str, optional
        The column that tells the groups apart, in one file of all samples.
    blocks, pairs, labels, weights : str, optional
        Columns, as for `Study`; pairs are blocks with `paired=True`. Block labels such as 309_1 and 309_2, one for each
        row, name replicates: the block is the part before the last separator.
    covariates : str or sequence of str, optional
        Columns, numbers or text.
    ignore : str or sequence of str, optional
        Columns to leave out.
    common : bool, default False
        Use only the columns that both files have.
    sheet : str, or tuple of two, optional
        Sheets of an Excel file; the first by default.
    layer, mask : str, optional
        Of an .h5ad file: a layer instead of X, and the column of `var` that says which genes to read ("none" for all;
        by default "highly_variable", if that is there).
    header : bool, optional
        Whether the first line has names; detected by default.
    transpose : bool, default False
        Whether samples are columns in the file.
    encoding : str, optional
        Of text; UTF-8 by default.
    missing : str or sequence of str, optional
        Words that mean a missing value, besides NA and the like.
    percent, thousands : bool, default False
        Whether 12% is 0.12, and 1,234 is 1234.

    Returns
    -------
    Study

    Examples
    --------
    >>> import contrapca
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> lines = [f"{'ill' if k % 2 else 'well'},{k % 7},{k % 5}" for k in range(20)]
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "all.csv")
    ...     _ = file.write_text("\\n".join(["state,a,b", *lines]))
    ...     study = contrapca.read(file, group="state", background="well")
    >>> study
    Study of 10 foreground + 10 background samples x 2 features
    """

    def several(given: Any) -> tuple[str, ...]:
        return () if given is None else (given,) if isinstance(given, str) else tuple(given)

    request = Request(
        Path(path),
        background=str(background) if group is not None and background is not None else background,
        group=group,
        blocks=blocks,
        pairs=pairs,
        covariates=several(covariates),
        labels=labels,
        weights=weights,
        ignore=several(ignore),
        common=common,
        sheet=several(sheet),
        layer=layer,
        mask=mask,
        header=header,
        transpose=transpose,
        encoding=encoding,
        missing=several(missing),
        percent=percent,
        thousands=thousands,
    )
    return read_inputs(request, lambda finding: warn(finding.text("python"), TableWarning)).as_read


def read_inputs(
    request: Request, tell: Callable[[Finding], None], *, features: Features | None = None, silent: Collection[str] = ()
) -> Inputs:
    """Read the tables, and check them together; `tell` gets what looks like a mistake, unless its check is silent.

    The steps: open the files, tell features from other columns, bring the features into one order (that of a model, if
    its features are given), split the rows into groups, and take from the other columns what is known of each row.
    """
    tables = _opened(request, every_gene=features is not None)
    table, notes = tables[0], list(dict.fromkeys(note for given in tables for note in given.notes))
    without, covariates, about_columns = _not_features(request, tables, find_numbered=features is None)
    columns = [name for name in table.names if name not in without]
    if features is not None:
        names, values = features[0], [align_to(*features, given, without=without) for given in tables]
    elif len(tables) > 1:
        names, *values = align(tables[0], tables[1], without=without, common=request.common)
    else:
        names, values = columns if table.named else None, [table.select(columns)]
    groups = _groups(request, tables, values, names, notes)
    beside: dict[str, Groups[Any]] = {
        "blocks": _blocks(request, tables, groups, notes),
        "labels": groups.map(lambda part: _labels(part, request.labels)),
        "weights": groups.map(lambda part: _weights(part, request.weights)),
        "names": groups.map(lambda part: part.names),
        "covariates": groups.map(lambda part: covariate_columns(part.table, covariates, part.rows)),
    }
    if len({given.named for given in tables}) > 1:
        notes.append(BY_PLACE)
    findings: list[Finding] = []

    def say(found: list[Finding]) -> None:
        for finding in found:
            if finding.check not in silent:
                findings.append(finding)
                tell(finding)

    classes, blocks = (request.group, request.labels), (request.blocks, request.pairs)
    say([*findings_of_tables(tables, without, classes=classes, blocks=blocks), *_swapped(request, table)])
    say(about_columns)
    if len(groups) > 1 and not any(blocks):
        say(block_findings(tables))
    as_read = study = Study(
        groups.foreground.values,
        background=groups.backgrounds[0].values if groups.backgrounds else None,
        paired=request.pairs is not None and len(groups) > 1,
        features=names,
        label_name=request.labels,
        **{what: tuple(own) for what, own in beside.items() if any(one is not None for one in own)},
    )
    rows = groups.map(lambda part: part.values)
    if covariates:
        study = regress_out(as_read)
        rows = study.rows
        notes.append(f"without the effect of {listed(covariates)}")
    # Repetitions and replicates among the names of rows were looked for in the whole tables.
    distinct: Groups[Any] = beside["names"].map(lambda own: list(dict.fromkeys(own)))
    say(check_groups(Given(rows, names, distinct, has_blocks=True)))
    columns = columns if names is None or not table.named else names
    return Inputs(
        study=study,
        as_read=as_read,
        table=table,
        columns=columns,
        rows=groups.foreground.rows,
        sources=[given.path for given in tables],
        notes=notes,
        findings=findings,
    )


def _opened(request: Request, *, every_gene: bool) -> list[DataTable]:
    """The file of the cases, or of all samples, and that of the controls, if there is one."""
    if request.group is not None and request.background is None:
        raise TableFileError(Option("background"), " is needed: the value that marks controls.")
    sheets: Sequence[str | None] = request.sheet or [None]
    are_excel = [str(file).lower().endswith(EXCEL) for file in (request.path, request.background)]
    if len(request.sheet) == 1 and any(are_excel):
        sheets = [request.sheet[0] if is_excel else None for is_excel in are_excel]  # other files have no sheets
    reading: dict[str, Any] = {
        "layer": request.layer,
        "mask": request.mask or ("none" if every_gene else None),  # a model's genes are found by name among all
        "header": request.header,
        "transpose": request.transpose,
        "encoding": request.encoding,
        "missing": request.missing,
        "percent": request.percent,
        "thousands": request.thousands,
    }
    table = read_table(request.path, sheet=sheets[0], **reading)
    if request.background is None or request.group is not None:
        return [table]
    if not Path(request.background).exists():
        for name, cells in table.texts.items():
            if str(request.background) in cells.tolist():
                raise TableFileError(
                    f"there is no file {str(request.background)!r}, but column {name!r} of {table.path!r} has this "
                    "value: add ",
                    Option("group", name),
                    " if it marks the controls.",
                    option="background",
                )
    return [table, read_table(request.background, sheet=sheets[-1], **reading)]


def _not_features(
    request: Request, tables: list[DataTable], *, find_numbered: bool
) -> tuple[set[str], list[str], list[Finding]]:
    """The columns that are not features, those that are covariates, and what looks like a mistake among them."""
    if request.blocks is not None and request.pairs is not None:
        both = (Option("pairs"), " and ", Option("blocks"))
        raise TableFileError(*both, " cannot be used together: pairs are blocks with rows in both groups.")
    first = tables[0].columns
    # age,sex are two columns unless one is called that; so are "age, sex", unless one is called " sex".
    parts = [name for text in request.covariates for name in ([text] if text in first else text.split(","))]
    covariates = [name if name in first else name.strip() for name in parts]
    for table in tables:
        table.check_has(covariates, "covariates")
    named = {"group": request.group, "labels": request.labels}
    for option, column in named.items():
        if column is not None:
            tables[0].check_has([column], option)
    every = {name for table in tables for name in table.columns}
    if unknown := [name for name in request.ignore if name not in every]:
        hint = did_you_mean(unknown[0], every)
        have = "." if hint else f", only {listed(first)}."
        raise TableFileError(f"no table has a column {listed(unknown)}{have}{hint}", option="ignore")
    others = (*named.values(), request.weights, request.blocks, request.pairs)
    without = {*request.ignore, *(column for column in others if column is not None)}
    check_mixed(tables, without)
    without |= set(covariates)
    imputed = imputed_in(tables)
    without |= {IMPUTED} if imputed else set()
    numbered, findings = identifiers_of(tables, without) if find_numbered else ([], [])
    return without | set(numbered), list(dict.fromkeys(covariates)), [*findings, *imputed]


def align(
    cases: DataTable, controls: DataTable, *, without: Collection[str] = (), common: bool = False
) -> tuple[list[str] | None, Rows, Rows]:
    """The features of two tables (None if neither has names), and the values of both in the order of the cases.

    All columns must be in both, unless only the common ones are asked for.
    """
    left = [name for name in cases.names if name not in without]
    right = [name for name in controls.names if name not in without]
    if not (cases.named and controls.named):
        _check_widths(controls, len(right), f"{cases.path!r}", len(left))
        own = left if cases.named else right if controls.named else None
        return own, cases.select(left), controls.select(right)
    names = [name for name in left if name in set(right)]
    if_transposed: list[str | Worded] = []  # then the rows of both tables have the same names
    if cases.row_names is not None and same_row_names(cases.row_names, controls.row_names):
        alike = listed(cases.row_names, 3)
        add = f". The rows of both have the same names ({alike}): if these are features, add "
        if_transposed = [add, Option("transpose", True)]
    if not names:
        texts = {name: table.as_text(name).tolist() for table in (cases, controls) for name in table.texts}
        hidden = dropped_columns({name: cells for name, cells in texts.items() if name not in without})
        about = [part for finding in hidden for part in (" ", finding)]
        neither = f"{cases.path!r} and {controls.path!r} have no numeric columns in common"
        raise TableFileError(neither, *if_transposed, ".", *about)
    for table, other, lacking in ((controls, cases, {*left} - {*right}), (cases, controls, {*right} - {*left})):
        if lacking and not common:
            way_out = ["or add ", Option("common", True), " to continue without them", *if_transposed]
            raise _lacks(table, [name for name in other.names if name in lacking], f"{other.path!r}", way_out)
    return names, cases.select(names), controls.select(names)


def align_to(names: list[str] | None, n_features: int, table: DataTable, *, without: Collection[str] = ()) -> Rows:
    """The values of a table in the order of a model's features, by name or, if one has no names, by position."""
    given = [name for name in table.names if name not in without]
    if names is None or not table.named:
        _check_widths(table, len(given), "the model", n_features)
        return table.select(given)
    if lacking := [name for name in names if name not in set(given)]:
        raise _lacks(table, lacking, "the model", ["all are needed"], without)
    return table.select(names)


def _check_widths(table: DataTable, width: int, whose: str, wanted: int) -> None:
    if width != wanted:
        raise TableFileError(
            f"{table.path!r} has {plural(width, 'numeric column')} and {whose} has {wanted}: unless both have column "
            "names, they need the same number of columns."
        )


def _lacks(
    table: DataTable, names: list[str], whose: str, way_out: list[str | Worded], without: Collection[str] = ()
) -> TableFileError:
    """An error about columns that a table lacks: which of them it has, but not as numbers, and what to do about it."""
    left_out = [name for name in names if name in without and name in table.columns]
    others = [name for name in names if name not in left_out and (name in table.texts or name in table.empty)]
    hidden = [found for name in others if (found := hidden_by(table.as_text(name).tolist()))]
    spelt = {spelling(column): column for column in table.columns if column not in left_out}
    alike = [spelt[spelling(name)] for name in names if name not in others and spelling(name) in spelt]
    why: list[str | Worded] = []
    if left_out:
        why += [f" ({listed(left_out)} left out by ", Option("ignore"), " or the like)"]
    if others:
        why += [f" ({listed(others)} not numeric there{f', {hidden[0].reason}' if hidden else ''})"]
    if alike:
        differs = "differs" if len(alike) == 1 else "differ"
        why += [f" ({listed(alike)} there {differs} only in case or blanks)"]
    to_do: list[str | Worded] = ["correct the names, "] if len(left_out) + len(others) < len(names) else []
    to_do += ["write such cells as numbers, "] if others else []
    thousands = next((found for found in hidden if found.kind == "thousands separators"), None)
    to_do += [*thousands.way_out, ", "] if thousands else []
    lacks = f"{table.path!r} lacks {plural(len(names), 'numeric column')} of {whose}: {listed(names)}"
    return TableFileError(lacks, *why, "; ", *to_do, *way_out, ".")


def _groups(
    request: Request, tables: list[DataTable], values: list[Rows], names: list[str] | None, notes: list[str]
) -> Groups[Part]:
    """The rows of each group: one file each, or those of one file by the values of a column."""
    parts = [Part(given, np.arange(len(given)), own) for given, own in zip(tables, values, strict=True)]
    if request.group is not None:
        (whole,) = parts
        marks = whole.table.as_text(request.group)
        is_control = _controls_mask(whole.table, marks, request.group, request.background)
        both = [np.flatnonzero(~is_control), np.flatnonzero(is_control)]
        parts = [Part(whole.table, rows, whole.values[rows]) for rows in both]
        if len(others := np.unique(marks[~is_control]).tolist()) > 1:
            notes.append(f"cases are all rows except {request.background!r}: {listed(others)}")
    for part, group in zip(parts, ("cases", "controls"), strict=False):
        path, size = part.table.path, len(part.rows)
        if size < 2:
            raise TableFileError(f"{path!r} has {plural(size, 'row')} of {group}: at least 2 are needed.")
        if not is_sparse(part.values) and np.isinf(part.values).any():
            infinite = np.flatnonzero(np.isinf(part.values).any(axis=0)).tolist()
            found = listed([names[j] if names else j + 1 for j in infinite])
            what, has = ("Column", "has") if len(infinite) == 1 else ("Columns", "have")
            way_out = (": correct them, or use ", Option("ignore"), ".")
            raise TableFileError(f"{what} {found} of {path!r} {has} infinite values", *way_out)
        if request.covariates and is_sparse(part.values):
            raise TableFileError(
                f"{path!r} is sparse, and what covariates leave of it is dense: store the genes that you use as a "
                "dense table, or regress the covariates out first.",
                option="covariates",
            )
    return Groups.from_items(parts, ("foreground", "background")[: len(parts)])


def _controls_mask(table: DataTable, groups: npt.NDArray[Any], column: str, value: str) -> npt.NDArray[np.bool_]:
    """Which rows are controls, by their value in the group column."""
    missing = int(np.sum(groups == ""))
    if missing:
        raise TableFileError(
            f"{missing} of {len(table)} rows of {table.path!r} have no value in column {column!r}: remove them or fill "
            "in their group."
        )
    mask = np.asarray(groups == value)
    alike = sorted({label for label in groups[~mask].tolist() if spelling(label) == spelling(value)})
    if mask.any() and alike:
        raise TableFileError(
            f"column {column!r} of {table.path!r} has {value!r} ({plural(int(mask.sum()), 'row')}) and also "
            f"{listed(alike)} ({plural(int(np.isin(groups, alike).sum()), 'row')}), which would become cases: spell "
            "the controls alike.",
            option="background",
        )
    if not mask.any():
        values, counts = np.unique(groups, return_counts=True)
        common = values[np.argsort(-counts, kind="stable")].tolist()
        hint = did_you_mean(value, common)
        have = "." if hint else f", only {listed(common, MAX_VALUES_LISTED)}."
        raise TableFileError(
            f"{value!r} does not occur in column {column!r} of {table.path!r}{have}{hint}", option="background"
        )
    if mask.all():
        raise TableFileError(f"All rows of {table.path!r} have {value!r} in column {column!r}: there are no cases.")
    return mask


def _blocks(request: Request, tables: list[DataTable], groups: Groups[Part], notes: list[str]) -> Groups[Any]:
    """The block or pair of each row; None without a column for them.

    Labels such as 309_1, 309_2, one for each row, name replicates: the part before the last separator is the block.
    """
    column, what = request.blocks or request.pairs, "blocks" if request.blocks else "pairs"
    if column is None:
        return groups.map(lambda _: None)
    for table in tables:
        table.check_has([column], what)
        missing = int(np.sum(table.as_text(column) == ""))
        if missing:
            raise TableFileError(
                f"{missing} of {len(table)} rows of {table.path!r} have nothing in the column {column!r}: remove them, "
                f"or fill in their {what[:-1]}.",
                option=what,
            )
    labels: Groups[Any] = groups.map(lambda part: part.table.as_text(column)[part.rows])
    every = [label for own in labels for label in own.tolist()]
    stems = looks_like_replicates(every)
    if stems is None:
        notes.append(f"{what} are the {len(set(every))} values of {column!r}")
    else:
        notes.append(f"{what} are the {len(set(stems))} beginnings of {column!r}, such as {stems[0]!r} of {every[0]!r}")
        labels = labels.like(np.split(np.array(stems), [len(labels.foreground)])[: len(labels)])
    if request.pairs and len(labels) > 1:
        cases, controls = ({*own.tolist()} for own in labels)
        for own, other, group in ((cases, controls, "cases"), (controls, cases, "controls")):
            if alone := sorted(own - other):
                verb = "is" if len(alone) == 1 else "are"
                raise TableFileError(
                    f"{listed(alone)} of column {column!r} {verb} only among the {group}, and a pair has rows in both "
                    f"groups. Spell them alike, leave these rows out, or use ",
                    Option("blocks", column),
                    ", which may be in one group only.",
                    option="pairs",
                )
    return labels


def _swapped(request: Request, table: DataTable) -> list[Finding]:
    """Whether names of groups, or of files, say that they should be the other way round."""
    if request.group is not None:
        others = set(table.as_text(request.group).tolist()) - {request.background}
        return swapped_names(others.pop(), request.background) if len(others) == 1 else []
    if request.background is None or request.path == Path(request.background):
        return []
    return swapped_names(request.path.stem, Path(request.background).stem)


def _labels(part: Part, column: str | None) -> Any:
    """The labels of some rows, as numbers if those of the file are a scale, else as they are written."""
    if column is None or column not in part.table.columns:
        return None
    texts = part.table.as_text(column)
    try:
        values = on_a_scale([float(text or "nan") for text in texts.tolist()])
    except ValueError:
        values = None
    return (texts if values is None else values)[part.rows]


def _weights(part: Part, column: str | None) -> Any:
    if column is None:
        return None
    part.table.check_has([column], "weights")
    weights = part.table.as_numbers(column)
    if weights.dtype.kind != "f":
        raise TableFileError(
            f"column {column!r} of {part.table.path!r} has values that are not numbers.", option="weights"
        )
    return weights[part.rows]


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


def covariate_columns(
    table: DataTable, names: Sequence[str], rows: npt.NDArray[np.intp] | None = None
) -> Columns | None:
    """These columns of a table, numbers or text, of all rows or some; None if there are none."""
    if not names:
        return None
    values = np.column_stack([table.as_numbers(name).astype(object) for name in names])
    return Columns(list(names), values if rows is None else values[rows])
