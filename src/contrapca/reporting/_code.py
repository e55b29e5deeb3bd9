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
        again = model._path_estimator().set_params(background_label=None)._with_strength(model._state.gamma)
        given = "cases, background=controls"
    return f"from contrapca import {type(model).__name__}, report\n\nmodel = {_shown(again)}.fit({given})\n"


def path_code(path: ContrastPath) -> str:
    """Python code that computes a path of `cases` and `controls` again."""
    call = f"contrast_path({_shown(path.estimator)}, cases, background=controls, gammas={path.gammas.tolist()})"
    return f"from contrapca import {type(path.estimator).__name__}, contrast_path, report\n\npath = {call}\n"


def _shown(estimator: Decomposition) -> str:
    """The call that makes an estimator, on one line."""
    with config_context(print_changed_only=True):
        return " ".join(repr(estimator).split())
