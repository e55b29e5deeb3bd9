"""Saving and loading: one registry and one reader for everything that can be saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._util.archive import (
    LARGEST,
    ROUNDING,
    SMALLEST,
    Archive,
    OldFileError,
    check_arrays,
    check_count_of,
    check_number,
    check_switch,
    read_archive,
)
from .._util.arrays import Array
from .._util.suggest import suggesting
from ..covariates import Regression
from ..exceptions import ModelFileError
from ..fitting import Fit
from ..gaussian import LatentGaussian
from ..groups import Groups
from ..moments import SPECTRAL, STREAM, Moments, SolverChoice
from ..uncertainty import ContrastPosterior
from ..units import Units
from ._old_files import made_again

# What can be saved: the kind written in the file, and the class whose `from_saved` reads it. Estimators register
# themselves.
REGISTRY: dict[str, Any] = {"moments": Moments, "posterior": ContrastPosterior}

# Arrays of a fit, axis by axis: features D, components k, latent dimensions r.
ARRAYS = {"components": "Dk", "eigenvalues?": "k", "axis_ratios?": "k", "history": "*", "init_objectives": "*"}
MODELS = {"model": "r", "background_model": "b"}  # with their latent dimensions
NUMBERS = ("gamma", "objective", "n_iter")
UNIT_LENGTH = 1e-5  # how far a component's length may be from 1


def saved_fit(estimator: Any, fit: Fit) -> dict[str, Any]:
    """What is saved of a fitted estimator: the arguments of `write_archive` and `pack`."""
    if REGISTRY.get(type(estimator).__name__) is not type(estimator):
        raise TypeError(f"{type(estimator)} cannot be saved: only contrapca's own estimators can.")
    arrays: dict[str, Any] = {}
    for key in ARRAYS:
        name = key.removesuffix("?")
        if getattr(fit, name) is not None:
            arrays[name] = getattr(fit, name)
    facts: dict[str, Any] = {name: getattr(fit, name) for name in (*NUMBERS, "limit")}
    for name in MODELS:
        save_model(name, getattr(fit, name), facts, arrays)
    for prefix, units, along in zip(prefixes(len(fit.units)), fit.units, fit.variances, strict=True):
        arrays |= units.arrays(prefix) | {f"{prefix}.along": along}
    if fit.covariates is not None:
        arrays |= fit.covariates.arrays()
    with np.errstate(over="ignore"):  # in the float type of the attributes
        dtype = fit.units.foreground.dtype
        overflowed = [name for name, value in arrays.items() if not np.isfinite(value.astype(dtype)).all()]
    if overflowed:
        raise ValueError(f"{', '.join(overflowed)} overflowed, so the model cannot be saved: rescale the data.")
    facts |= {
        "covariates": None if fit.covariates is None else fit.covariates.facts(),
        "groups": [
            {"name": name, "total": total, "inside": inside} | units.facts()
            for name, total, inside, units in zip(fit.units.names, fit.totals, fit.inside, fit.units, strict=True)
        ],
        "mix": fit.units.mix,
        "solver": [fit.solver.name, fit.solver.reason],
        "limit_is_bound": fit.limit_is_bound,
        "at_limit": fit.at_limit,
        "gamma_search": fit.gamma_search,
        "parameters": plain_parameters(estimator._parameters),
    }
    return {
        "kind": type(estimator).__name__,
        "facts": facts,
        "arrays": arrays,
        "names": fit.units.foreground.names,
    }


def save_model(name: str, model: LatentGaussian | None, facts: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Add a distribution to the facts and arrays of a file, for `restored_model`."""
    if model is not None:
        arrays |= {f"{name}.mean": model.mean, f"{name}.W": model.W}
        facts[f"{name}.sigma2"] = model.sigma2


def prefixes(n_groups: int) -> list[str]:
    """The beginnings of the names of each group's arrays in a file, whatever the groups are called."""
    return ["foreground", "background", *(f"background{k}" for k in range(2, n_groups))][:n_groups]


def restored_units(
    facts: Mapping[str, Any], arrays: Mapping[str, Array], features: tuple[str, ...] | None, n_features: int
) -> Groups[Units]:
    """The units of the groups of a file, checked."""
    names = tuple(group["name"] for group in facts["groups"])
    mix = None if facts["mix"] is None else tuple(float(part) for part in facts["mix"])
    if names[:1] != ("foreground",) or len(set(names)) < len(names) or not all(isinstance(n, str) for n in names):
        raise ValueError("its groups are impossible")
    if mix is not None and (len(mix) != len(names) - 1 or min(mix) < 0 or not np.isclose(sum(mix), 1.0)):
        raise ValueError("the parts of its backgrounds are impossible")
    labelled = zip(facts["groups"], prefixes(len(names)), strict=True)
    units = [Units.restored(group, arrays, label, features, n_features) for group, label in labelled]
    return Groups.from_items(units, names, mix)


def restored_totals(facts: Mapping[str, Any], units: Groups[Units]) -> Groups[float]:
    """The total variance of each group of a file, checked."""
    return units.like(float(check_number(group, "total", 0, LARGEST)) for group in facts["groups"])


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
    return Fit(
        units=units,
        variances=units.like(found[f"{label}.along"] for label in labels),
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
        **{name: found.get(name.removesuffix("?")) for name in ("components", "axis_ratios", "eigenvalues")},  # type: ignore[arg-type]
        history=found["history"],
        covariates=Regression.restored(facts.get("covariates"), arrays, D),
        init_objectives=found["init_objectives"],
        **models,  # type: ignore[arg-type]
    )


def saved_solver(facts: Mapping[str, Any]) -> SolverChoice:
    """The solver in the facts of a file, checked."""
    name, reason = facts["solver"]
    if name not in (*SPECTRAL, "lbfgs") or not isinstance(reason, str):
        raise ValueError(f"its solver {name!r} does not exist")
    return SolverChoice(name, reason)


def _inside(group: Mapping[str, Any], largest: float) -> float:
    """Variance inside the model's subspace: part of the total, up to rounding of the `largest` group's."""
    reach = ROUNDING * largest
    return float(check_number(group, "inside", -reach, float(group["total"]) + reach))


def restored_model(name: str, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> LatentGaussian | None:
    """A distribution of a file, checked; None if the file has none of that name."""
    if f"{name}.W" not in arrays:
        return None
    sigma2 = check_number(facts, f"{name}.sigma2", SMALLEST, LARGEST)
    return LatentGaussian(arrays[f"{name}.mean"], arrays[f"{name}.W"], sigma2)


@suggesting
def load(path: Any) -> Any:
    """Load a model, path, moments or draws written by `save`.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    an estimator, ContrastPath, ContrastPosterior or Moments
        Models are fitted: they transform, score and sample exactly like the saved ones.

    Raises
    ------
    ModelFileError
        If the file was not written by contrapca, is damaged, or was written by another version.

    Examples
    --------
    >>> import contrapca
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> model = contrapca.PCPCA().fit(data.foreground, background=data.background)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(pathlib.Path(folder) / "model.npz")
    ...     again = contrapca.load(pathlib.Path(folder) / "model.npz")
    >>> again.gamma_ == model.gamma_
    True
    """
    try:
        archive = read_archive(path)
    except OldFileError as error:
        raise ModelFileError(f"{error} {made_again(error.header, error.arrays, REGISTRY)}") from None
    return restored(archive, path)


def restored(archive: Archive, source: Any) -> Any:
    """What an archive holds, checked; `source` says where it is from, for messages."""
    if archive.kind == STREAM:
        raise ModelFileError(
            f"{str(source)!r} is a checkpoint of fit_batches, not a model: fit_batches(batches, checkpoint=...) "
            "continues from it."
        )
    if archive.kind not in REGISTRY:
        raise ModelFileError(f"{str(source)!r} contains a {archive.kind!r}, which this version cannot read.")
    try:
        return REGISTRY[archive.kind].from_saved(archive.facts, archive.arrays, archive.names)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(
            f"{str(source)!r} does not describe a {archive.kind}: {error}. It may be damaged."
        ) from error
