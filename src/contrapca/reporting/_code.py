"""Python code for readers of a report who want to reproduce it."""

from __future__ import annotations

from typing import Any

from sklearn import config_context
from sklearn.base import clone

from ..estimators import unfitted
from ._subject import Subject

AGAIN = "report_again.html"  # beside the page, which stays


def python_code(subject: Subject, title: str | None, study: str, tested: bool, depth: str) -> str:
    """Python code that makes a report again; `study` is the code of one that a command has read, or empty."""
    names, path, drawn = {"report"}, subject.path, subject.uncertainty
    if study:
        lines = ["import contrapca"]
    else:
        study, used = _study(subject)
        names.add("Study")
        lines = [f"# {', '.join(used)}: your tables, rows being samples"]
    if subject.covariates is not None:
        names.add("regress_out")
        study = f"regress_out({study})"
    if subject.model is None:
        about = "path"
        fit = f"path = contrast_path({_shown(path.estimator)}, study, gammas={path.gammas.tolist()})"
        names.add("contrast_path")
    else:
        about, again = "model", clone(subject.model)
        if subject.model._contrasts:
            alike = unfitted(subject.model._path_estimator(), background_label=None)
            again = alike._with_strength(subject.model.fit_.gamma)
        fit = f"model = {_shown(again)}.fit(study)"
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


def _study(subject: Subject) -> tuple[str, list[str]]:
    """The call that makes the study of tables, and the names of what it takes."""
    study, used = subject.study, ["cases", "controls"]
    given = "cases, background=controls"
    if study.labels.foreground is not None:
        given, used = f"{given}, labels=labels", [*used, "labels"]
        given += "" if study.label_name is None else f", label_name={study.label_name!r}"
    for name, there in (("blocks", study.blocks), ("covariates", subject.covariates)):
        if there is not None:
            given, used = f"{given}, {name}=({name}, control_{name})", [*used, name, f"control_{name}"]
    return f"Study({given}{', paired=True' if study.paired else ''})", used


def _shown(estimator: Any) -> str:
    """The call that makes an estimator, on one line."""
    with config_context(print_changed_only=True):
        return " ".join(repr(estimator).split())
