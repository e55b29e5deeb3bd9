"""What is saved of a path, and read again."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.archive import check_arrays, check_count_of, check_number, check_switch
from ..estimators import answers
from ..saving import (
    REGISTRY,
    UNIT_LENGTH,
    plain_parameters,
    prefixes,
    restored_arrays,
    restored_model,
    restored_totals,
    restored_units,
    save_model,
    saved_groups,
    saved_solver,
)

ARRAYS = {
    "gammas": "G",
    "eigenvalues": "Gd",
    "noise_variance": "G",
    "objective": "G",
    "basis": "Dk",
    "coordinates": "Gkd",
    "loading_coordinates": "Gkr",
    "axis_ratios?": "Gd",
    "background_model.mean?": "D",
    "background_model.W?": "Db",
}
PLAIN = [name.removesuffix("?") for name in ARRAYS if "." not in name]  # attributes of a path


def saved_path(path: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The facts and arrays to save of a ContrastPath."""
    arrays = {name: value for name in PLAIN if (value := getattr(path, name)) is not None}
    of_groups = {"along": path.variances, "inside": path.subspace_variance}
    facts, found = saved_groups(path.units, {"total": path.totals}, of_groups)
    arrays |= found
    save_model("background_model", path.background_model, facts, arrays)
    facts |= {"solver": [path.solver.name, path.solver.reason]}
    facts |= {"gamma_max_is_bound": path.gamma_max_is_bound, "solved": path.solved}
    parameters = plain_parameters(path.estimator.get_params(deep=False))
    facts |= {"estimator": type(path.estimator).__name__, "parameters": parameters}
    for name in ("gamma_max", "auto_gamma"):
        facts[name] = getattr(path, name) if np.isfinite(getattr(path, name)) else None
    return facts, arrays


def fields_of_saved(facts: dict[str, Any], arrays: dict[str, Any], names: tuple[str, ...] | None) -> dict[str, Any]:
    """The fields of a ContrastPath from the contents of a saved file, checked."""
    estimator = REGISTRY[facts["estimator"]](**facts["parameters"])
    if not answers(estimator, "_with_strength"):
        raise ValueError("its estimator has no path")
    labels, has_noise = prefixes(len(facts["groups"])), estimator._method.has_likelihood
    shapes = ARRAYS | {f"{label}.along": "Gd" for label in labels} | {f"{label}.inside": "G" for label in labels}
    may_not = ("gammas", "axis_ratios", *(name for name in shapes if name.endswith((".along", ".inside"))))
    unknown = () if has_noise else ("noise_variance",)
    found = check_arrays(arrays, shapes, names, may_be_nan=unknown, not_negative=may_not)
    if np.any(np.diff(found["gammas"]) <= 0) or np.any(found["noise_variance"] <= 0):
        raise ValueError("its gammas or noise variances are impossible")
    basis = found["basis"]
    if estimator.n_components != found["eigenvalues"].shape[1]:
        raise ValueError("its number of components is impossible")
    if not np.allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=UNIT_LENGTH):
        raise ValueError("its basis is not orthonormal")
    background = restored_model("background_model", found, facts)
    units = restored_units(facts, arrays, names, basis.shape[0])
    return {name: found.get(name) for name in PLAIN} | {
        "subspace_variance": restored_arrays("inside", found, units),
        "variances": restored_arrays("along", found, units),
        "units": units,
        "totals": restored_totals(facts, units),
        "gamma_max": np.inf if facts["gamma_max"] is None else float(check_number(facts, "gamma_max", 0)),
        "auto_gamma": np.nan if facts["auto_gamma"] is None else float(check_number(facts, "auto_gamma", 0)),
        "gamma_max_is_bound": check_switch(facts, "gamma_max_is_bound"),
        "estimator": estimator,
        "solver": saved_solver(facts),
        "solved": check_count_of(facts, "solved"),
        "background_model": background,
    }
