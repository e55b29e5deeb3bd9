"""Python code for readers of a report who want to reproduce it."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone

from .._util.text import joined, listed
from ..data import Study
from ..estimators import unfitted
from ._design import labels_of
from ._subject import Subject

AGAIN = "report_again.html"  # beside the page, which stays


def python_code(subject: Subject, title: str | None, study: str, tested: bool, depth: str) -> str:
    """Python code that makes a report again; `study` is the code of one that a command has read, or empty."""
    names, path, drawn = {"report"}, subject.path, subject.uncertainty
    if study:
        lines = ["import contrapca"]
    else:
        study, *lines = _study(subject) if subject.study.design is None else _study_of_design(subject.study)
        names.add("Study")
    adjusted = subject.study.covariates is not None
    if adjusted and subject.study.design is None:
        names.add("regress_out")
        study = f"regress_out({study})"
    if subject.model is None:
        about = "path"
        fit = f"path = contrast_path({_shown(path.estimator)}, study, gammas={path.gammas.tolist()})"
        names.add("contrast_path")
    else:
        about, again = "model", unfitted(clone(subject.model), background_label=None)
        if subject.model._contrasts:
            settled = unfitted(subject.model._path_estimator(), background_label=None)
            # The test is in the units that the parameters name: those that a fit chose must not become parameters.
            if settled._scaling == subject.scale:
                again = settled._with_strength(subject.model.fit_.gamma)
        # A report takes no model that was fitted with covariates; of a design they are part of the study.
        fit = f"model = {_shown(again)}{'' if adjusted and subject.study.design is not None else '.fit(study)'}"
    kind = type(path.estimator if subject.model is None else subject.model)
    if kind.__module__.partition(".")[0] == "contrapca":
        names.add(kind.__name__)
    else:  # an estimator that users wrote
        lines.append(f"from {kind.__module__} import {kind.__name__}")
    draws = []
    if drawn is not None:
        how = "bootstrap" if drawn.kind == "bootstrap" else "posterior"
        names.add(how)
        settings = "" if drawn.power == 1 else f", power={drawn.power!r}"
        settings += "" if drawn.seed is None else f", random_state={drawn.seed}"
        whole = "study"
        if subject.study.blocks is not None and not drawn.by_blocks:
            whole = "study.rows.foreground, background=study.rows.backgrounds[0]"
        draws = [f"draws = {how}(model, {whole}{settings}){'  # random' * (drawn.seed is None)}"]
    options = f'"{AGAIN}"'
    options += "" if title is None else f", title={title!r}"
    options += "" if subject.points is None else f", gammas={subject.points}"
    options += "" if tested else ", test=False"
    options += "" if depth == "warn" else f", depth={depth!r}"
    options += ", uncertainty=draws" if draws else ""
    imports = f"from contrapca import {', '.join(sorted(names, key=lambda name: (name[0].islower(), name)))}"
    return "\n".join([*lines, imports, "", f"study = {study}", fit, *draws, f"report(study, {about}, {options})", ""])


def _study(subject: Subject) -> list[str]:
    """The call that makes the study of tables, and a comment on what it takes."""
    study, used = subject.study, ["cases", "controls"]
    given = "cases, background=controls"
    if study.labels.foreground is not None:
        given, used = f"{given}, labels=labels", [*used, "labels"]
        given += "" if study.label_name is None else f", label_name={study.label_name!r}"
    for name, there in (("blocks", study.blocks), ("covariates", study.covariates)):
        if there is not None:
            given, used = f"{given}, {name}=({name}, control_{name})", [*used, name, f"control_{name}"]
    call = f"Study({given}{', paired=True' if study.paired else ''})"
    return [call, f"# {', '.join(used)}: your tables, rows being samples"]


def _study_of_design(study: Study) -> list[str]:
    """The call that makes the study of a design, of tables or from one frame, and comments on what it takes."""
    design = study.design
    assert design is not None
    if design.kind == "conditions" and design.name == "condition" and np.all(np.diff(design.cell_of.foreground) >= 0):
        beside = {"labels": labels_of(study).foreground, "blocks": study.blocks, "covariates": study.covariates}
        used = [name for name, own in beside.items() if own is not None]
        given = "".join(f", {name}=(*{name}, control_{name})" for name in used)
        tables = f"# tables: the table of each condition by its name, {listed(design.cells[:-1])}; controls: a table"
        more = f"# {joined(used)}: a list with those of each condition; those of the controls" if used else ""
        return [f"Study(groups=tables, background=controls{given})", tables, *([more] if more else [])]
    comments = ["# frame: your table of all samples, whose other columns are features"]
    if design.kind == "conditions":
        conditions = list(map(_level, design.cells[:-1]))
        given = f'groupby={design.name!r}, background="background", foreground={conditions}, conditions=True'
        comments.append(f"# in its column {design.name!r}, replace 'background' by what the controls are called there")
    elif design.kind == "interaction":
        first, second = design.name.split(" x ", 1)
        case = tuple(map(_level, design.cells[0].split(", ", 1)))
        given = f"interaction={(first, second)!r}, case={case!r}"
    else:
        given = f"dose={design.name!r}" + ("" if design.strata is None else ', strata="stratum"')
    if study.blocks is not None:
        given += ', blocks="block"'
    if study.covariates is not None:
        given += f", covariates={list(study.covariates.foreground)}"
    if labels_of(study).foreground is not None:
        given += f", labels={study.label_name or 'label'!r}"
    return [f"Study.from_frame(frame, {given})", *comments]


def _level(text: str) -> Any:
    """A value of a column from its text: a number where it looks like one."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return {"True": True, "False": False}.get(text, text)


def _shown(estimator: Any) -> str:
    """The call that makes an estimator, on one line."""
    with config_context(print_changed_only=True):
        return " ".join(repr(estimator).split())
