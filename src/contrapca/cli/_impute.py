"""`contrapca impute`: missing values of a table of cases, filled from a model of its rows."""

from __future__ import annotations

import gzip
import io
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, is_sparse
from .._util.tables import Table
from .._util.text import format_gamma, percent, plural
from ..data.checks import IMPUTED
from ..estimators import PCPCA, PPCA
from ..exceptions import TableFileError, UnboundedError
from ..inference import gamma_limits
from ..reading import TEXT, Inputs, write_filled
from ._inputs import described, input_facts, inputs_of
from ._outputs import SEPARATORS, OutputError, check_outputs, check_text_output, staged, write_columns
from ._results import records

MAX_COLUMNS_SHOWN = 15
Flags = npt.NDArray[np.bool_]


def impute(options: Namespace) -> tuple[list[Any], dict[str, Any]]:
    """Fill the missing values of a table and say how much was filled."""
    if options.mask_out:
        check_text_output(options.mask_out, "--mask-out")
    outputs = [options.output, *([options.mask_out] if options.mask_out else [])]
    check_outputs(outputs, force=options.force)
    if options.gamma is not None and options.background is None:
        raise ValueError("--gamma needs --background: without controls there is nothing to contrast with.")
    inputs = inputs_of(options, needs_background=False)
    if is_sparse(inputs.study.rows.foreground):
        raise TableFileError(
            f"{inputs.table.path!r} is sparse: it has zeros where it holds nothing, and no missing values."
        )
    endings = (*(SEPARATORS if inputs.table.source is None else TEXT), ".npy")
    if not options.output.name.lower().endswith(endings):
        raise OutputError(f"--output {str(options.output)!r} must end in {', '.join(endings[:-1])} or {endings[-1]}.")
    X = np.asarray(inputs.study.rows.foreground)
    model, how = _model(inputs, options.components, options.gamma)
    filled, std = model.impute(X, return_std=True)
    absent = np.isnan(X)
    with staged([options.output], force=options.force) as places:
        _write(places[options.output.name], inputs, filled, absent)
    if options.mask_out:
        with staged([options.mask_out], force=options.force) as places:
            columns: dict[str, Any] = {"row": inputs.study.sample_names.foreground}
            columns |= dict(zip(inputs.columns, absent.T.astype(int), strict=True)) | {IMPUTED: absent.sum(axis=1)}
            write_columns(places[options.mask_out.name], columns)
    table = _filled_table(inputs.columns, X, filled, std)
    lines: list[Any] = described(inputs)
    if inputs.table.empty:
        lines.append(f"Columns without any value, which cannot be filled: {', '.join(inputs.table.empty)}")
    if len(inputs.rows) < len(inputs.table):
        lines.append("The rows of controls stay as they are.")
    given = plural(options.components, "component")
    lines += [f"Model: {type(model).__name__} with {given}{how}.", "", *([table, ""] if absent.any() else [])]
    if absent.any():
        share = percent(absent.mean())
        lines += [
            f"{absent.sum()} of {X.size} values ({share}) were missing and are filled in: {options.output}",
            "Test the table as it was: contrapca test takes missing values, and filled ones would look measured.",
        ]
    else:
        lines.append(f"No value was missing, so nothing was filled in: {options.output}")
    facts: dict[str, Any] = {"inputs": input_facts(inputs), "method": type(model).__name__.lower()}
    facts |= {"gamma": getattr(model, "gamma_", None), "missing": absent.sum(), "values": X.size}
    return lines, facts | {"columns": records(table), "written": str(options.output)}


def _model(inputs: Inputs, components: int, gamma: float | None) -> tuple[Any, str]:
    """A fitted model, by default at half of the largest gamma, and how gamma was chosen."""
    study = inputs.study
    if len(study.rows) == 1:
        return PPCA(components).fit(study), ""
    if gamma is not None:
        return PCPCA(components, gamma=gamma).fit(study), f", gamma = {format_gamma(gamma)} (as asked for)"
    limits = gamma_limits(study, n_components=components)
    half, what = 0.5 * limits.pcpca, "the upper bound" if limits.is_bound else "its limit"
    try:
        model = PCPCA(components, gamma=half).fit(study)
        return model, f", gamma = {format_gamma(half)} (half of {what} {format_gamma(limits.pcpca)})"
    except UnboundedError as error:
        if error.works is None:
            raise
        model = PCPCA(components, gamma=error.works).fit(study)
        return model, f", gamma = {format_gamma(error.works)} (the largest tried that works)"


def _write(place: Path, inputs: Inputs, filled: Array, absent: Flags) -> None:
    """The table of the cases with its missing values filled: a text table as it was, others by their names."""
    table, names = inputs.table, inputs.columns
    everywhere = np.array(table.select(names), dtype=np.float64)
    everywhere[inputs.rows] = filled
    counts = np.zeros(len(table), dtype=int)
    counts[inputs.rows] = absent.sum(axis=1)
    if place.suffix.lower() == ".npy":
        with place.open("wb") as file:
            np.save(file, everywhere, allow_pickle=False)
    elif table.source is not None:
        text = io.BytesIO()
        write_filled(table, text, names, everywhere, (IMPUTED, counts.tolist()) if counts.any() else None)
        packed = place.suffix.lower() == ".gz"
        # Without the time in it the same table gives the same bytes.
        place.write_bytes(gzip.compress(text.getvalue(), mtime=0) if packed else text.getvalue())
    else:
        columns: dict[str, Any] = {"row": table.row_names} if table.row_names else {}
        columns |= table.texts | dict(zip(names, everywhere.T, strict=True))
        write_columns(place, columns | ({IMPUTED: counts} if counts.any() else {}))


def _filled_table(names: list[str], X: Array, filled: Array, std: Array) -> Table:
    """What was filled into each column, those with the most missing values first."""
    absent = np.isnan(X)
    missing = absent.sum(axis=0)
    order = [j for j in np.argsort(-missing, kind="stable") if missing[j]][:MAX_COLUMNS_SHOWN]

    def mean(values: Array) -> Array:
        return np.array([values[absent[:, j], j].mean() for j in order])

    return Table(
        {
            "column": np.array([names[j] for j in order]),
            "missing": missing[order],
            "share": missing[order] / len(X),
            "observed mean": np.array([np.nanmean(X[:, j]) for j in order]),
            "filled mean": mean(filled),
            "filled sd": mean(std),
        }
    )
