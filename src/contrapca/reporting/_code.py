"""Python code that fits the same again, for readers of a report."""

from __future__ import annotations

from sklearn import config_context
from sklearn.base import clone

from ..estimators import CPCA, PCPCA, PPCA
from ..paths import ContrastPath


def model_code(model: PPCA | PCPCA | CPCA) -> str:
    """Python that fits a model to `cases` and `controls` again, at its own gamma."""
    again = clone(model)
    if not isinstance(model, PPCA):
        again.set_params(gamma=float(model.gamma_), background_label=None)
    with config_context(print_changed_only=True):
        shown = " ".join(repr(again).split())
    given = "cases" if isinstance(model, PPCA) else "cases, background=controls"
    return f"from contrapca import {type(model).__name__}, report\n\nmodel = {shown}.fit({given})\n"


def path_code(path: ContrastPath) -> str:
    """Python that computes a path of `cases` and `controls` again."""
    settings = f"n_components={path.n_components}, gammas={path.gammas.tolist()}, method={path.method!r}"
    scale = f", scale={path.scale!r}" if path.scale else ""
    call = f"contrast_path(cases, background=controls, {settings}{scale})"
    return f"from contrapca import contrast_path, report\n\npath = {call}\n"
