"""What is saved of a `Fit`, and read again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._util.archive import LARGEST, ROUNDING, check_arrays, check_count_of, check_number, check_switch
from .._util.arrays import Array
from ..covariates import Regression
from ..fitting import AXES, Fit
from ..groups import Groups
from ..moments import Plateau
from ._groups import (
    prefixes,
    restored_arrays,
    restored_model,
    restored_totals,
    restored_units,
    save_model,
    saved_groups,
    saved_solver,
)

# Arrays of a fit, axis by axis: features D, components k, latent dimensions r.
ARRAYS = {"components": "Dk", "eigenvalues?": "k", "axis_ratios?": "k", "history": "*"}
MODELS = {"model": "r", "background_model": "b"}  # with their latent dimensions
PLAIN = [name.removesuffix("?") for name in ARRAYS]
UNIT_LENGTH = 1e-5  # how far a component's length may be from 1


def saved_fit(fit: Fit) -> tuple[dict[str, Any], dict[str, Array]]:
    """The facts and arrays to save."""
    arrays: dict[str, Any] = {name: value for name in PLAIN if (value := getattr(fit, name)) is not None}
    facts: dict[str, Any] = {name: getattr(fit, name) for name in ("gamma", "objective", "n_iter", "limit")}
    for name in MODELS:
        save_model(name, getattr(fit, name), facts, arrays)
    groups, of_groups = saved_groups(fit.units, {"total": fit.totals, "inside": fit.inside}, {"along": fit.variances})
    arrays |= of_groups
    if fit.covariates is not None:
        arrays |= fit.covariates.arrays()
    facts["shortened"] = None if fit.shortened is None else [own.tolist() for own in fit.shortened]
    with np.errstate(over="ignore"):  # in the float type of the attributes
        dtype = fit.units.foreground.dtype
        overflowed = [name for name, value in arrays.items() if not np.isfinite(value.astype(dtype)).all()]
    if overflowed:
        raise ValueError(f"{', '.join(overflowed)} overflowed, so the model cannot be saved: rescale the data.")
    facts |= {"covariates": None if fit.covariates is None else fit.covariates.facts()}
    facts |= groups | {"solver": [fit.solver.name, fit.solver.reason], "axes": fit.axes}
    facts["plateau"] = None if fit.plateau is None else {"counts": fit.plateau.counts, "bound": fit.plateau.bound}
    return facts | {name: getattr(fit, name) for name in ("limit_is_bound", "at_limit", "gamma_search")}, arrays


def fit_from_saved(facts: Mapping[str, Any], arrays: Mapping[str, Array], names: tuple[str, ...] | None) -> Fit:
    """The checked fit of a saved estimator."""
    groups = facts["groups"]
    labels = prefixes(len(groups))
    shapes = ARRAYS | {f"{label}.along": "k" for label in labels}
    for name, letter in MODELS.items():
        shapes |= {f"{name}.mean?": "D", f"{name}.W?": f"D{letter}"}
    may_not = ("axis_ratios", *(f"{label}.along" for label in labels))
    found = check_arrays(arrays, shapes, names, not_negative=may_not)
    D, k = found["components"].shape
    if not k < D or facts["parameters"].get("n_components", k) != k:
        raise ValueError("its sizes are impossible")
    if not np.allclose(np.linalg.norm(found["components"], axis=0), 1, rtol=0, atol=UNIT_LENGTH):
        raise ValueError("its components are not of unit length")
    units = restored_units(facts, arrays, names, D)
    models = {name: restored_model(name, found, facts) for name in MODELS}
    if models["model"] is not None and not k <= models["model"].W.shape[1] < D:
        raise ValueError("its components do not fit its model")
    largest = max(float(group["total"]) for group in groups)
    axes = facts.get("axes", "variance" if found.get("axis_ratios") is None else "contrast")
    if axes not in AXES or (axes == "variance") != (found.get("axis_ratios") is None):
        raise ValueError(f"its axes {axes!r} do not fit what it holds")
    return Fit(
        units=units,
        variances=restored_arrays("along", found, units),
        totals=restored_totals(facts, units),
        inside=units.like(_inside(group, largest) for group in groups),
        solver=saved_solver(facts),
        gamma=check_number(facts, "gamma", 0, LARGEST),
        objective=check_number(facts, "objective", -LARGEST, LARGEST),
        n_iter=check_count_of(facts, "n_iter"),
        limit=None if facts["limit"] is None else check_number(facts, "limit", 0),
        limit_is_bound=check_switch(facts, "limit_is_bound"),
        at_limit=check_switch(facts, "at_limit"),
        gamma_search=[
            {"gamma": float(check_number(step, "gamma", 0)), "outcome": str(step["outcome"])}
            for step in facts["gamma_search"]
        ],
        axes=axes,
        plateau=_restored_plateau(facts.get("plateau")),
        shortened=_restored_rows(facts.get("shortened"), units),
        covariates=Regression.restored(facts.get("covariates"), arrays, D),
        **{name: found.get(name) for name in PLAIN},  # type: ignore[arg-type]
        **models,  # type: ignore[arg-type]
    )


def _restored_rows(numbers: Any, groups: Groups[Any]) -> Groups[Any] | None:
    """Numbers of rows of each group, checked; None if there are none."""
    if numbers is None:
        return None
    rows = [row for own in numbers for row in own]
    if len(numbers) != len(groups) or not all(type(row) is int and row >= 0 for row in rows):
        raise ValueError("its shortened rows are impossible")
    return groups.like(np.array(own, dtype=np.intp) for own in numbers)


def _restored_plateau(facts: Mapping[str, Any] | None) -> Plateau | None:
    """What decided on units and axes, checked."""
    if facts is None:
        return None
    counts = tuple(int(check_number({"counts": count}, "counts", 0, LARGEST)) for count in facts["counts"])
    if not 1 <= len(counts) <= 2:
        raise ValueError("its plateau is impossible")
    return Plateau(counts, float(check_number(facts, "bound", -LARGEST, LARGEST)))


def _inside(group: Mapping[str, Any], largest: float) -> float:
    """Variance inside the model's subspace: part of the total, up to rounding of the `largest` group's."""
    reach = ROUNDING * largest
    return float(check_number(group, "inside", -reach, float(group["total"]) + reach))
