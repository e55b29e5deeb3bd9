"""`contrapca transform`: the latents of the rows of a table, or whitened rows, by a saved model."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from .._util.text import component_names, listed
from ..estimators import BackgroundWhitener
from ..reading import BY_PLACE, align_to, covariate_columns, read_table
from ._console import Console
from ._models import feature_names, load_model
from ._outputs import check_outputs, check_text_output, staged, write_columns


def transform(options: Namespace, console: Console) -> None:
    """Write the latents of the rows of a table; of a whitener, the whitened rows."""
    check_text_output(options.output)
    check_outputs([options.output], force=options.force)
    model = load_model(options.model)
    table = read_table(
        options.table,
        sheet=options.sheet,
        mask="none",
        header=options.header,
        transpose=options.transpose,
        encoding=options.encoding,
        missing=options.missing,
        percent=options.percent,
        thousands=options.thousands,
    )
    names = feature_names(model)
    rows = align_to(names, model.n_features_in_, table)
    covariates = [column.name for column in model.fit_.covariates.columns] if hasattr(model, "covariate_names_") else []
    if unknown := [name for name in covariates if name not in table.columns]:
        raise ValueError(
            f"The model was fitted with the covariates {listed(covariates)}, but {table.path!r} has no column "
            f"{listed(unknown)}: add it."
        )
    given = {"covariates": covariate_columns(table, covariates)} if covariates else {}
    if isinstance(model, BackgroundWhitener):
        found, written, what = model.transform(rows), list(model.get_feature_names_out()), "whitened features"
    else:
        found, what = model.transform(rows, center=options.center, **given), "latents"
        written = component_names(found.shape[1])
    columns: dict[str, Any] = {"row": table.row_names or [str(i + 1) for i in range(len(table))]}
    columns |= dict(zip(written, found.T, strict=True))
    with staged([options.output], force=options.force) as places:
        write_columns(places[options.output.name], columns)
    notes = [*table.notes, *([BY_PLACE] if table.named != (names is not None) else [])]
    done = f"{table.path}: {len(table)} rows, {found.shape[1]} {what} each, written to {options.output}"
    console.say("; ".join([done, *notes]))
    console.summarise({"source": table.path, "n_rows": len(table), "written": str(options.output)})
