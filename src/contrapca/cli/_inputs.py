"""The tables and the model that the options of a command ask for."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from typing import Any

import numpy as np

from .._util.arrays import is_sparse
from .._util.text import plural
from ..estimators import CPCA, PCPCA, PPCA, ContraPCA
from ..exceptions import TableFileError
from ..reading import Inputs, Request, read_inputs
from ._console import caution

METHODS: dict[str, Any] = {"contrapca": ContraPCA, "pcpca": PCPCA, "cpca": CPCA, "ppca": PPCA}
MOST_CELLS = 200_000  # of a table whose rank is counted beforehand
ROUNDING = 1e-12  # of the size of a feature


def request_of(options: Namespace) -> Request:
    """What the options say of files and columns."""
    names = {own.name for own in dataclasses.fields(Request)} & vars(options).keys()
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    return Request(options.cases, **given)


def inputs_of(
    options: Namespace, *, needs_background: bool = True, features: tuple[list[str] | None, int] | None = None
) -> Inputs:
    """Read the tables that the options name, and print at once what looks like a mistake."""
    if needs_background and options.background is None and options.group is None:
        raise ValueError("--background is needed: the controls table (or --group, for one table).")
    silent = {"replicates"} if not hasattr(options, "blocks") else set()  # nothing could be done about it
    silent |= {"depth"} if getattr(options, "depth", "warn") != "warn" else set()  # known
    inputs = read_inputs(
        request_of(options), lambda finding: caution(finding.text("command")), features=features, silent=silent
    )
    if features is None:
        needs_noise = options.command != "test" and getattr(options, "method", None) != "cpca"
        _check_enough(inputs, options.components, needs_noise=needs_noise)
    if len(inputs.study.rows) > 1:
        check_units(inputs, 2, "ratios on rows that the fit has not seen need")
    return inputs


def _check_enough(inputs: Inputs, components: int | None, *, needs_noise: bool) -> None:
    """Refuse tables with too few features for the components, or with cases that vary in too few directions."""
    rows, source = inputs.study.rows.foreground, inputs.sources[0]
    n, width = rows.shape
    unused = [name for name in inputs.ignored if name]
    not_used = f" (not used: {', '.join(unused)})" if unused else ""
    if width == 1:
        raise TableFileError(
            f"{source!r} has one usable numeric column, {inputs.columns[0]!r}{not_used}: at least 2 features are "
            "needed. To compare the spread of one feature in two groups, Levene's test (scipy.stats.levene) is enough."
        )
    if components is not None and width <= components:
        raise TableFileError(
            f"{source!r} has {plural(width, 'usable numeric column')}{not_used}: --components {components} needs more. "
            f"Use --components {width - 1}{' or less' * (width > 2)}, or more features."
        )
    if is_sparse(rows) or rows.size > MOST_CELLS or not np.isfinite(rows).all():
        return
    centred = rows - rows.mean(axis=0)
    varies = np.abs(centred).max(axis=0) > ROUNDING * np.abs(rows).max(axis=0)
    # In units of their own: features of different sizes are not rounding errors of each other.
    rank = int(np.linalg.matrix_rank(centred[:, varies] / centred[:, varies].std(axis=0))) if varies.any() else 0
    if rank == 0:
        raise TableFileError(f"No feature of {source!r} varies: the {n} cases are all the same.")
    if components is not None and needs_noise and rank <= components:
        raise TableFileError(
            f"The {n} cases of {source!r} vary in {plural(rank, 'direction')} only (beyond rounding), and --components "
            f"{components} needs more than {components}: use {'fewer --components, ' if rank > 1 else ''}more rows, or "
            "features that are not copies of each other."
        )


def check_units(inputs: Inputs, least: int, what: str) -> None:
    """Refuse tables with too few rows, pairs or blocks for something."""
    study = inputs.study
    kind = "row" if study.blocks is None else "pair" if study.paired else "block"
    units = study.counts if study.blocks is None else study.blocks.map(lambda own: len(set(own)))
    for group, source, count in zip(("cases", "controls"), (inputs.sources * 2)[:2], units, strict=True):
        if count < least:
            raise ValueError(f"{source!r} has {plural(count, kind)} of {group}: {what} at least {least} in each group.")


def described(inputs: Inputs) -> list[str]:
    """What was read, in lines for people."""
    n, *others = inputs.study.counts
    groups = f"{n} cases" + "".join(f" and {m} controls" for m in others)
    width = inputs.study.tables.n_features
    lines = ["; ".join([f"{' and '.join(inputs.sources)}: {groups}, {width} features", *inputs.notes])]
    if inputs.ignored:
        lines.append(f"Not used as features: {', '.join(name or '(no name)' for name in inputs.ignored)}")
    return lines


def input_facts(inputs: Inputs) -> dict[str, Any]:
    """What was read, for programs."""
    return {
        "sources": inputs.sources,
        "n_cases": inputs.study.counts.foreground,
        "n_controls": sum(inputs.study.counts.backgrounds),
        "n_features": inputs.study.tables.n_features,
        "not_features": inputs.ignored,
    }


def cautions_of(inputs: Inputs) -> list[str]:
    """Probable mistakes in the tables, each with a way out."""
    return [finding.text("command") for finding in inputs.findings]


def make_model(options: Namespace) -> Any:
    """The estimator that the options ask for."""
    kind = METHODS[options.method]
    given = {"gamma": options.gamma, "random_state": options.seed, "progress": options.progress}
    given["scale"] = scale_of(options, kind)
    return kind(options.components, **{name: value for name, value in given.items() if name in kind._get_param_names()})


def scale_of(options: Namespace, kind: Any = None) -> str | None:
    """The scaling that the options ask for; "auto" is none but for ContraPCA, which chooses it."""
    if options.scale == "auto":
        return "auto" if kind is ContraPCA else None
    return None if options.scale == "none" else str(options.scale)
