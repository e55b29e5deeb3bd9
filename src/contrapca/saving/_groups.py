"""What files of fits and paths have in common: groups with their units, distributions, the solver, parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._util.archive import LARGEST, SMALLEST, check_number
from .._util.arrays import Array
from ..gaussian import LatentGaussian
from ..groups import Groups
from ..moments import SPECTRAL, SolverChoice
from ..units import Units


def prefixes(n_groups: int) -> list[str]:
    """The beginnings of the names of each group's arrays in a file, whatever the groups are called."""
    return ["foreground", "background", *(f"background{k}" for k in range(2, n_groups))][:n_groups]


def saved_groups(
    units: Groups[Units], numbers: Mapping[str, Groups[float]], arrays: Mapping[str, Groups[Array]]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The facts and arrays to save of groups: their units, and numbers and arrays by name."""
    facts: list[dict[str, Any]] = []
    found: dict[str, Array] = {}
    for prefix, group in zip(prefixes(len(units)), units.names, strict=True):
        own = {name: values[group] for name, values in numbers.items()}
        facts.append({"name": group} | own | units[group].facts())
        found |= units[group].arrays(prefix) | {f"{prefix}.{name}": values[group] for name, values in arrays.items()}
    return {"groups": facts}, found


def restored_units(
    facts: Mapping[str, Any], arrays: Mapping[str, Array], features: tuple[str, ...] | None, n_features: int
) -> Groups[Units]:
    """The units of the groups of a file, checked."""
    names = tuple(group["name"] for group in facts["groups"])
    if names[:1] != ("foreground",) or len(set(names)) < len(names) or not all(isinstance(n, str) for n in names):
        raise ValueError("its groups are impossible")
    labelled = zip(facts["groups"], prefixes(len(names)), strict=True)
    units = [Units.restored(group, arrays, label, features, n_features) for group, label in labelled]
    return Groups.from_items(units, names)


def restored_arrays(name: str, arrays: Mapping[str, Array], units: Groups[Units]) -> Groups[Array]:
    """The arrays of that name of each group."""
    return units.like(arrays[f"{label}.{name}"] for label in prefixes(len(units)))


def restored_totals(facts: Mapping[str, Any], units: Groups[Units]) -> Groups[float]:
    """The total variance of each group of a file, checked."""
    return units.like(float(check_number(group, "total", 0, LARGEST)) for group in facts["groups"])


def save_model(name: str, model: LatentGaussian | None, facts: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Add a distribution to the facts and arrays of a file, for `restored_model`."""
    if model is not None:
        arrays |= {f"{name}.mean": model.mean, f"{name}.W": model.W}
        facts[f"{name}.sigma2"] = model.sigma2


def restored_model(name: str, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> LatentGaussian | None:
    """A distribution of a file, checked; None if the file has none of that name."""
    if f"{name}.W" not in arrays:
        return None
    sigma2 = check_number(facts, f"{name}.sigma2", SMALLEST, LARGEST)
    return LatentGaussian(arrays[f"{name}.mean"], arrays[f"{name}.W"], sigma2)


def saved_solver(facts: Mapping[str, Any]) -> SolverChoice:
    """The solver in the facts of a file, checked."""
    name, reason = facts["solver"]
    if name not in (*SPECTRAL, "lbfgs") or not isinstance(reason, str):
        raise ValueError(f"its solver {name!r} does not exist")
    return SolverChoice(name, reason)


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an estimator as JSON-compatible values."""
    return {name: _plain(name, value) for name, value in parameters.items()}


def _plain(name: str, value: Any) -> Any:
    """A parameter as a JSON-compatible value; None for a random generator, which is of use for another fit only."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(name, inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(name, inner) for inner in value]
    if name == "random_state":
        return None
    raise TypeError(f"{name}={value!r} cannot be saved: only text, numbers and None can, and lists and dicts of them.")
