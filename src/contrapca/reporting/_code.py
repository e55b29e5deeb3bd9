"""Python code for readers of a report who want to reproduce it."""

from __future__ import annotations

from typing import Any

from sklearn import config_context
from sklearn.base import clone

from ..estimators import unfitted
from ._subject import Subject


def python_code(subject: Subject, title: str | None, study: str, tested: bool, depth: str) -> str:
    """Python code that makes a report again; `study` is the code of one that a command has read, or empty."""
    names, lines = {"report"}, []
    if study:
        lines += ["import contrapca"]
    else:
        study, used = _study(subject)
        names |= {"Study"}
        lines += [f"# {', '.join(used)}: your tables, rows being samples"]
    if subject.adjusted:
        names |= {"regress_out"}
        study = f"regress_out({study})"
    fitted, about, used = _fitted(subject)
    draws = _draws(subject)
    names |= {*used, *(draws[:1])}
    kind = type(subject.path.estimator if subject.model is None else subject.model)
    if kind.__module__.partition(".")[0] != "contrapca":  # an estimator that users wrote
        names, lines = names - {kind.__name__}, [*lines, f"from {kind.__module__} import {kind.__name__}"]
    lines += [
        f"from contrapca import {', '.join(sorted(names, key=lambda name: (name[0].islower(), name)))}",
        "",
        f"study = {study}",
        fitted,
    ]
    lines += draws[1:]
    options = 'output="report.html"'
    options += "" if title is None else f", title={title!r}"
    options += "" if subject.points is None else f", gammas={subject.points}"
    options += "" if tested else ", test=False"
    options += "" if depth == "warn" else f", depth={depth!r}"
    options += ", uncertainty=draws" if draws else ""
    return "\n".join([*lines, f"report(study, {about}, {options})", ""])


def _study(subject: Subject) -> tuple[str, list[str]]:
    """The call that makes the study of tables, and the names of what it takes."""
    study, used = subject.study, ["cases", "controls"]
    given = "cases, background=controls"
    if study.labels.foreground is not None:
        given, used = f"{given}, labels=labels", [*used, "labels"]
        given += "" if study.label_name is None else f", label_name={study.label_name!r}"
    for name, argument, there in (
        ("blocks", "blocks", study.blocks is not None),
        ("covariates", "covariates", subject.adjusted),
    ):
        if there:
            given, used = f"{given}, {argument}=({name}, control_{name})", [*used, name, f"control_{name}"]
    return f"Study({given}{', paired=True' if study.paired else ''})", used


def _fitted(subject: Subject) -> tuple[str, str, list[str]]:
    """The line that fits the model, or computes the path, again; what the result is called; what is imported."""
    if subject.model is None:
        path = subject.path
        call = f"contrast_path({_shown(path.estimator)}, study, gammas={path.gammas.tolist()})"
        return f"path = {call}", "path", [type(path.estimator).__name__, "contrast_path"]
    again = clone(subject.model)
    if subject.model._contrasts:
        alike = unfitted(subject.model._path_estimator(), background_label=None)
        again = alike._with_strength(subject.model.fit_.gamma)
    return f"model = {_shown(again)}.fit(study)", "model", [type(subject.model).__name__]


def _draws(subject: Subject) -> list[str]:
    """The function that draws, and the line that calls it; empty without draws."""
    drawn = subject.uncertainty
    if drawn is None:
        return []
    how = "bootstrap" if drawn.kind == "bootstrap" else "posterior"
    given = "" if drawn.power == 1 else f", power={drawn.power!r}"
    given += "" if drawn.seed is None else f", random_state={drawn.seed}"
    whole = "study"
    if subject.study.blocks is not None and not drawn.by_blocks:
        whole = "study.rows.foreground, background=study.rows.backgrounds[0]"
    return [how, f"draws = {how}(model, {whole}{given}){'  # random' * (drawn.seed is None)}"]


def _shown(estimator: Any) -> str:
    """The call that makes an estimator, on one line."""
    with config_context(print_changed_only=True):
        return " ".join(repr(estimator).split())
