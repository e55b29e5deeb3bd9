"""Files of contrapca 0.1: they are not read, but the error says how to make a new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def made_again(header: Mapping[str, Any], arrays: Mapping[str, Any], classes: Mapping[str, Any]) -> str:
    """A sentence with the call that makes what a file holds, as far as it tells.

    Parameters
    ----------
    header : mapping
        What the file says of itself; nothing in it can be trusted.
    arrays : mapping from name to ndarray
    classes : mapping from name to class
        The estimators of today.
    """
    found, parameters = str(header.get("format")), header.get("parameters")
    name = str(header.get("estimator", "CLVM") if isinstance(parameters, dict) else header.get("method")).upper()
    if (estimator := classes.get(name)) is None:
        return "Make it again from its tables, and save."
    if isinstance(parameters, dict):
        call = _call(estimator, _translated(estimator, parameters, header))
        return f"Fit again with the same settings, {call}, and save."
    table = arrays.get("eigenvalues" if found.endswith("path") else "loadings")
    size = {} if table is None or table.ndim == 0 else {"n_components": table.shape[-1]}
    call = _call(estimator, size | {"scale": header.get("scaling", False)})
    tables = "X, background=Y" if estimator._contrasts else "X"
    if found.endswith("path"):
        return f"Compute it again with contrast_path({call}, {tables}), and save."
    draws = "bootstrap" if header.get("kind") == "bootstrap" else "posterior"
    return f"Fit the model again, {call} with its gamma and scale, draw with its {draws}({tables}), and save."


def _translated(estimator: Any, parameters: Mapping[str, Any], header: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of 0.1 in the words of today: those that mean the same."""
    given, numbers = dict(parameters), header.get("numbers")
    if given.get("solver") == "adam":  # "auto" finds the same maximum
        del given["solver"]
    if given.get("gamma") == "auto" and estimator._holds_out and isinstance(numbers, dict):  # chosen so since 0.2
        given["gamma"] = numbers.get("gamma_", "auto")
    return given


def _call(estimator: Any, settings: Mapping[str, Any]) -> str:
    """The call with the settings that exist and are not the defaults."""
    defaults = estimator().get_params(deep=False)
    changed = {
        name: value
        for name, value in settings.items()
        if name in defaults and value != defaults[name] and not (defaults[name] is None and value is False)
    }
    return f"{estimator.__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"
