"""Python code for readers of a report who want to reproduce it."""

from __future__ import annotations

from sklearn import config_context
from sklearn.base import clone

from ..estimators import Decomposition
from ..inference import ContrastPath


def model_code(model: Decomposition) -> str:
    """Python code that fits a model to `cases` and `controls` again, at its own gamma."""
    again, given = clone(model), "cases"
    if model._contrasts:
        again = model._path_estimator()._with(background_label=None)._with_strength(model._state.gamma)
        given = "cases, background=controls"
    return f"{_imports(model, 'report')}\n\nmodel = {_shown(again)}.fit({given})\n"


def path_code(path: ContrastPath) -> str:
    """Python code that computes a path of `cases` and `controls` again."""
    call = f"contrast_path({_shown(path.estimator)}, cases, background=controls, gammas={path.gammas.tolist()})"
    return f"{_imports(path.estimator, 'contrast_path, report')}\n\npath = {call}\n"


def _imports(estimator: Decomposition, functions: str) -> str:
    """The lines that import an estimator, of ours or not, and functions."""
    name, home = type(estimator).__name__, type(estimator).__module__
    if home.partition(".")[0] == "contrapca":
        return f"from contrapca import {name}, {functions}"
    return f"from contrapca import {functions}\nfrom {home} import {name}"


def _shown(estimator: Decomposition) -> str:
    """The call that makes an estimator, on one line."""
    with config_context(print_changed_only=True):
        return " ".join(repr(estimator).split())
