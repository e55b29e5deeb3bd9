"""Contrastive dimension reduction: what varies in the foreground but not in the background."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import datasets, exceptions, get, pl, plots, results, theory, tl
    from .depth import match_depth
    from .estimators import CLVM, CPCA, PCPCA, PPCA, ContraPCA, KernelCPCA, RatioPCA, SparseCPCA
    from .limits import gamma_limits
    from .moments import Moments, memory_estimate
    from .paths import contrast_path, load, sparsity_path
    from .reporting import report
    from .sanity import check_tables
    from .selection import (
        GammaSearch,
        check_background,
        compare,
        contrast_test,
        held_out_contrast,
        remove_background,
        stability_selection,
        subgroup_ratios,
    )
    from .study import Study, regress_out, within_pairs
    from .uncertainty import bootstrap, calibrate_power, posterior

# All names load on first use: importing scikit-learn takes a second, and `contrapca --help` does not need it.
_MODULES = ("datasets", "exceptions", "get", "pl", "plots", "results", "theory", "tl")
_HOMES = {
    "CLVM": "estimators",
    "CPCA": "estimators",
    "ContraPCA": "estimators",
    "GammaSearch": "selection",
    "KernelCPCA": "estimators",
    "Moments": "moments",
    "PCPCA": "estimators",
    "PPCA": "estimators",
    "RatioPCA": "estimators",
    "SparseCPCA": "estimators",
    "Study": "study",
    "bootstrap": "uncertainty",
    "calibrate_power": "uncertainty",
    "check_background": "selection",
    "check_tables": "sanity",
    "compare": "selection",
    "contrast_path": "paths",
    "contrast_test": "selection",
    "gamma_limits": "limits",
    "held_out_contrast": "selection",
    "load": "paths",
    "match_depth": "depth",
    "memory_estimate": "moments",
    "posterior": "uncertainty",
    "regress_out": "study",
    "remove_background": "selection",
    "report": "reporting",
    "sparsity_path": "paths",
    "stability_selection": "selection",
    "subgroup_ratios": "selection",
    "within_pairs": "study",
}

__all__ = [
    "CLVM",
    "CPCA",
    "PCPCA",
    "PPCA",
    "ContraPCA",
    "GammaSearch",
    "KernelCPCA",
    "Moments",
    "RatioPCA",
    "SparseCPCA",
    "Study",
    "__version__",
    "bootstrap",
    "calibrate_power",
    "check_background",
    "check_tables",
    "compare",
    "contrast_path",
    "contrast_test",
    "datasets",
    "exceptions",
    "gamma_limits",
    "get",
    "held_out_contrast",
    "load",
    "match_depth",
    "memory_estimate",
    "pl",
    "plots",
    "posterior",
    "regress_out",
    "remove_background",
    "report",
    "results",
    "sparsity_path",
    "stability_selection",
    "subgroup_ratios",
    "theory",
    "tl",
    "within_pairs",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
