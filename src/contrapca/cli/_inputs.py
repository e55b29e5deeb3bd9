"""The tables that a command names."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from typing import Any

from .._util.text import plural
from ..exceptions import TableFileError
from ..reading import Inputs, Request
from ..reading import read_inputs as read_request
from ._console import caution


def request_of(options: Namespace) -> Request:
    """What the options say of files and columns."""
    names = {own.name for own in dataclasses.fields(Request)} & vars(options).keys()
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    return Request(options.cases, **given)


def read_inputs(
    options: Namespace, *, needs_background: bool = True, features: tuple[list[str] | None, int] | None = None
) -> Inputs:
    """Read the tables that the options name, and print at once what looks like a mistake."""
    if needs_background and options.background is None and options.group is None:
        raise ValueError("--background is needed: the controls table (or --group, for one table).")
    silent = {"replicates"} if not hasattr(options, "blocks") else set()  # nothing could be done about it
    silent |= {"depth"} if getattr(options, "depth", "warn") != "warn" else set()  # known
    inputs = read_request(
        request_of(options), lambda finding: caution(finding.text("command")), features=features, silent=silent
    )
    width, unused = inputs.study.tables.n_features, [name for name in inputs.ignored if name]
    if features is None and options.components is not None and width <= options.components:
        raise TableFileError(
            f"{inputs.sources[0]!r} has {plural(width, 'usable numeric column')}"
            + (f" (not used: {', '.join(unused)})" if unused else "")
            + f": --components {options.components} needs more."
        )
    return inputs


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
    """The same for programs."""
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
