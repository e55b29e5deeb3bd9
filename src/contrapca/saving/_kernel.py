"""What is saved of a `KernelFit`, and read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .._checks import check_option
from .._util.archive import LARGEST, SMALLEST, check_arrays, check_count_of, check_number
from .._util.arrays import Array
from ..fitting import KernelFit
from ..moments import KERNELS, Kernel
from ._groups import prefixes, restored_arrays, restored_totals, restored_units, saved_groups

ARRAYS = {"landmarks": "r*", "coefficients": "rk", "origin": "D", "eigenvalues": "k"}  # axis by axis


def saved_kernel_fit(fit: KernelFit) -> tuple[dict[str, Any], dict[str, Array]]:
    """The facts and arrays to save."""
    groups, arrays = saved_groups(fit.units, {"total": fit.totals}, {"along": fit.variances, "offset": fit.offsets})
    facts = {"kernel": asdict(fit.kernel), "gamma": fit.gamma} | groups
    return facts, {name: getattr(fit, name) for name in ARRAYS} | arrays


def kernel_fit_from_saved(
    facts: Mapping[str, Any], arrays: Mapping[str, Array], names: tuple[str, ...] | None
) -> KernelFit:
    """The checked fit of a saved model."""
    kernel, labels = facts["kernel"], prefixes(len(facts["groups"]))
    shapes = ARRAYS | {f"{label}.{name}": "k" for label in labels for name in ("along", "offset")}
    found = check_arrays(arrays, shapes, names, not_negative=[f"{label}.along" for label in labels])
    check_option(kernel["name"], "kernel", KERNELS)
    D, width, k = found["origin"].size, found["landmarks"].shape[1], found["coefficients"].shape[1]
    given, degree = kernel["name"] == "precomputed", check_count_of(kernel, "degree")
    if facts["parameters"]["n_components"] != k or facts["parameters"]["kernel"] != kernel["name"] or degree < 1:
        raise ValueError("its sizes or its kernel are impossible")
    if width != (1 if given else D) or (given and not set(found["landmarks"].ravel()) <= set(range(D))):
        raise ValueError("its landmarks are impossible")
    units = restored_units(facts, arrays, names, D)
    return KernelFit(
        units=units,
        kernel=Kernel(
            kernel["name"],
            float(check_number(kernel, "bandwidth", SMALLEST, LARGEST)),
            degree,
            float(check_number(kernel, "coef0", 0, LARGEST)),
        ),
        **{name: found[name] for name in ARRAYS},
        offsets=restored_arrays("offset", found, units),
        variances=restored_arrays("along", found, units),
        totals=restored_totals(facts, units),
        gamma=float(check_number(facts, "gamma", 0, LARGEST)),
    )
