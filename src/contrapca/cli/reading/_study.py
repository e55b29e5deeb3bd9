"""The tables of a command: two files, or one file with a column that tells the groups apart."""

from __future__ import annotations

import inspect
import os
import re
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._util.arrays import Rows, is_sparse
from ..._util.text import as_command, listed, plural, spelling
from ...data import Groups, Study, regress_out
from ...data.checks import IMPUTED, Finding, Given, check_groups, imputed_values
from ...exceptions import GroupError, TableFileError, TableWarning, warn
from ...plots import on_a_scale
from .._console import caution
from ._columns import block_labels, check_column, check_ignored, covariate_columns, covariate_names
from ._findings import block_findings, check_mixed, findings_of_tables, identifiers_of, not_analysed
from ._read import read_table
from ._table import DataTable, align, align_to

BY_PLACE = "columns matched by position, because one file has no column names"
MAX_VALUES_LISTED = 10
OPTION = re.compile(r"(?<![\w-])([Aa]dd )?--(no-)?([a-z]+)(?![\w-])(:| (?=\S)|)")  # of a command, in a message
FLAGS = ("header", "common", "transpose", "percent", "thousands")


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
    def X(self) -> Rows:
        """Values of the cases."""
        return self.study.rows.foreground

    @property
    def ignored(self) -> list[str]:
        """Columns of the cases' file that are not features, in the order of the file."""
        used = set(self.columns)
        return [name for name in _every(self.table) if name not in used]

    @property
    def cautions(self) -> list[str]:
        """Probable mistakes, each with a way out."""
        return [finding.text("command") for finding in self.findings]

    def describe(self) -> list[str]:
        """What was read, in lines for people."""
        n, *others = self.study.counts
        groups = f"{n} cases" + "".join(f" and {m} controls" for m in others)
        lines = ["; ".join([f"{' and '.join(self.sources)}: {groups}, {self.X.shape[1]} features", *self.notes])]
        if self.ignored:
            lines.append(f"Not used as features: {', '.join(name or '(no name)' for name in self.ignored)}")
        return lines

    def summary(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "sources": self.sources,
            "n_cases": self.study.counts.foreground,
            "n_controls": sum(self.study.counts.backgrounds),
            "n_features": self.X.shape[1],
            "not_features": self.ignored,
        }


def reading_of(options: Namespace) -> dict[str, Any]:
    """How the options say that tables are to be read, as arguments of `read_table`."""
    names = ("header", "transpose", "encoding", "missing", "percent", "thousands")
    return {name: getattr(options, name) for name in names}


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
    options = Namespace(
        cases=Path(path),
        background=background
        if background is None
        else str(background)
        if group is not None
        else os.fspath(background),
        group=group,
        blocks=blocks,
        pairs=pairs,
        covariates=_as_list(covariates),
        labels=labels,
        weights=weights,
        ignore=_as_list(ignore),
        common=common,
        sheet=None if sheet is None else _as_list(sheet),
        layer=layer,
        mask=mask,
        header=header,
        transpose=transpose,
        encoding=encoding,
        missing=_as_list(missing),
        percent=percent,
        thousands=thousands,
        components=None,
    )

    def tell(findings: Sequence[Finding]) -> None:
        for finding in findings:
            warn(in_python(finding.text("python")), TableWarning)

    try:
        return _inputs(options, tell, needs_background=False).as_read
    except (TableFileError, GroupError, ValueError) as error:
        raise type(error)(in_python(str(error))) from None


def _as_list(given: Any) -> list[Any]:
    return [given] if isinstance(given, str) else list(given)


def in_python(text: str) -> str:
    """A message about the options of a command in the words of `read`: --missing NA is missing=NA."""

    def argument(found: re.Match[str]) -> str:
        add, no, name, end = found.groups(default="")
        if end == ":":
            return f"{name}:"
        value = "False" if no else "True" if name in FLAGS else ""
        return f"{add}{name}={value}{'' if add and not value else end}"

    return OPTION.sub(argument, text)


def code_of(options: Namespace) -> str:
    """Python code that reads what a command has read."""
    defaults = {name: own.default for name, own in inspect.signature(read).parameters.items()}
    given = {name: getattr(options, name, None) for name in defaults if name != "path"}
    given["background"] = None if options.background is None else str(options.background)
    arguments = ""
    for name, value in given.items():
        if value is None or value in (defaults[name], []):
            continue
        if isinstance(value, list):
            value = value[0] if len(value) == 1 else tuple(value) if name == "sheet" else value
        arguments += f", {name}={value!r}"
    return f"contrapca.read({str(options.cases)!r}{arguments})"


def read_inputs(
    options: Namespace, *, needs_background: bool = True, features: tuple[list[str] | None, int] | None = None
) -> Inputs:
    """Read the tables named by the options, check them together, and say at once what looks like a mistake."""

    def tell(findings: Sequence[Finding]) -> None:
        caution(*(finding.text("command") for finding in findings))

    return _inputs(options, tell, needs_background=needs_background, features=features)


def _inputs(
    options: Namespace,
    tell: Callable[[Sequence[Finding]], None],
    *,
    needs_background: bool,
    features: tuple[list[str] | None, int] | None = None,
) -> Inputs:
    """Read the tables named by the options, and check them together.

    Parameters
    ----------
    options : Namespace
    tell : callable
        Called with what looks like a mistake, before the tables are checked any further.
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
        for name, cells in table.texts.items():
            if options.background in cells.tolist():
                raise ValueError(
                    f"--background: there is no file {options.background!r}, but column {name!r} of {table.path!r} has "
                    f"this value: add --group {as_command([name])} if it marks the controls."
                )
    other = read_table(options.background, sheet=sheets[-1], **reading) if two_files else None
    tables = [table] if other is None else [table, other]
    label, block, pair, weight = (getattr(options, name, None) for name in ("labels", "blocks", "pairs", "weights"))
    if block is not None and pair is not None:
        raise ValueError("--pairs and --blocks cannot be used together: pairs are blocks with rows in both groups.")
    covariates = covariate_names(tables, getattr(options, "covariates", None) or [])
    for option, column in (("group", options.group), ("labels", label)):
        if column is not None:
            check_column(option, column, table)
    check_ignored(options.ignore, tables)
    named = (options.group, label, block or pair, weight)
    without = {*options.ignore, *(name for name in named if name is not None)}
    check_mixed(tables, without)
    without |= set(covariates)
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
    columns = kept if names is None or not table.named else names
    if other is not None and table.named != other.named:
        notes.append(BY_PLACE)
    opened = zip(tables, (sheets[0], sheets[-1]), strict=False)
    sources = [given.path if sheet is None else f"{given.path} (sheet {sheet})" for given, sheet in opened]
    findings = [*findings_of_tables(tables, options, without), *not_analysed(numbered), *imputed]
    groups = Groups.from_items(where, ("foreground", "background")[: len(where)])
    names_of = [given.row_names or [str(i + 1) for i in range(len(given))] for given in tables]
    beside = {
        "blocks": groups.map(lambda of: None if blocks[of[0]] is None else blocks[of[0]][of[1]]),
        "labels": groups.map(lambda of: _labels_of(tables[of[0]], label, of[1])),
        "weights": groups.map(lambda of: None if weight is None else _numbers(tables[of[0]], weight)[of[1]]),
        "names": groups.map(lambda of: [names_of[of[0]][i] for i in of[1].tolist()]),
        "covariates": groups.map(
            lambda of: covariate_columns(tables[of[0]], covariates, of[1]) if covariates else None
        ),
    }
    given: dict[str, Any] = {what: tuple(own) for what, own in beside.items() if any(one is not None for one in own)}
    given |= {"paired": pair is not None and len(groups) > 1, "features": names, "label_name": label}
    # No copy of all rows.
    rows = groups.map(lambda of: values[of[0]] if len(of[1]) == len(tables[of[0]]) else values[of[0]][of[1]])
    as_read = study = None
    if covariates:
        if any(map(is_sparse, rows)):
            raise ValueError(
                f"--covariates: {table.path!r} is sparse, and what covariates leave of it is dense: store the genes "
                "that you use as a dense table, or regress the covariates out first."
            )
        as_read = _study(rows, given)
        study = regress_out(as_read)
        rows = study.rows
        notes.append(f"without the effect of {listed(covariates)}")
    if len(groups) > 1 and block is None and pair is None and hasattr(options, "blocks"):
        findings += block_findings(tables)
    unused = [name for name in _every(table) if name and name not in set(columns)]
    _check_values(rows, names, sources, unused, None if features is not None else options.components)
    told = getattr(options, "depth", "warn") != "warn"  # of unequal depth
    # Repetitions and replicates among the names of rows were looked for in the whole tables.
    distinct: Groups[Any] = beside["names"].map(lambda own: list(dict.fromkeys(own)))
    about = check_groups(Given(rows, names, distinct, has_blocks=True))
    findings += [found for found in about if not (told and found.check == "depth")]
    tell(findings)
    study = _study(rows, given) if study is None else study
    return Inputs(study, as_read or study, table, columns, where[0][1], sources, notes, findings)


def _study(rows: Groups[Rows], given: dict[str, Any]) -> Study:
    return Study(rows.foreground, background=rows.backgrounds[0] if len(rows) > 1 else None, **given)


def _every(table: DataTable) -> list[str]:
    """All columns of a file, in its order."""
    return list(table.columns if table.source is None else table.source.columns)


def _imputed(tables: list[DataTable]) -> list[Finding]:
    """Tables with the column that `contrapca impute` writes: how many values of each row were imputed."""
    found = []
    for given in tables:
        if IMPUTED in given.names and not is_sparse(given.values):
            counts = np.asarray(given.select([IMPUTED]), dtype=np.float64)[:, 0]
            if np.all((counts >= 0) & (counts == np.round(counts))) and counts.any():
                found.append(imputed_values(int(counts.sum()), repr(given.path)))
    return found


def _labels_of(table: DataTable, label: str | None, rows: npt.NDArray[np.intp]) -> Any:
    return None if label is None or label not in table.columns else _labels(table.as_text(label))[rows]


def _numbers(table: DataTable, column: str) -> npt.NDArray[Any]:
    """A column of weights."""
    check_column("weights", column, table)
    try:
        return table.as_text(column).astype(np.float64)
    except ValueError:
        raise ValueError(f"--weights: column {column!r} of {table.path!r} has values that are not numbers.") from None


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


def _check_values(
    rows: Groups[Rows], names: list[str] | None, sources: list[str], unused: list[str], components: int | None
) -> None:
    """Check for enough rows, enough features for the components, and infinity."""
    for what, values, path in zip(("cases", "controls"), rows, (sources[0], sources[-1]), strict=False):
        if values.shape[0] < 2:
            raise TableFileError(f"{path!r} has {plural(values.shape[0], 'row')} of {what}: at least 2 are needed.")
        if not is_sparse(values) and np.isinf(values).any():
            infinite = np.flatnonzero(np.isinf(values).any(axis=0)).tolist()
            found = listed([names[j] if names else j + 1 for j in infinite])
            what = "Column" if len(infinite) == 1 else "Columns"
            has = "has" if len(infinite) == 1 else "have"
            raise TableFileError(f"{what} {found} of {path!r} {has} infinite values: correct them, or use --ignore.")
    width = rows.foreground.shape[1]
    if components is not None and width <= components:
        raise TableFileError(
            f"{sources[0]!r} has {plural(width, 'usable numeric column')}"
            + (f" (not used: {', '.join(unused)})" if unused else "")
            + f": --components {components} needs more."
        )
