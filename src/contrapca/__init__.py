"""Contrastive dimension reduction: what varies in the foreground but not in the background."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import exceptions as exceptions
    from . import get as get
    from . import pl as pl
    from . import plots as plots
    from . import tl as tl
    from ._files import load as load
    from .depth import match_depth as match_depth
    from .estimators import CLVM as CLVM
    from .estimators import CPCA as CPCA
    from .estimators import PCPCA as PCPCA
    from .estimators import PPCA as PPCA
    from .estimators import ContraPCA as ContraPCA
    from .estimators import RatioPCA as RatioPCA
    from .estimators import SparseCPCA as SparseCPCA
    from .limits import gamma_limits as gamma_limits
    from .moments import Moments as Moments
    from .paths import contrast_path as contrast_path
    from .reporting import report as report
    from .sanity import check_tables as check_tables
    from .selection import GammaSearch as GammaSearch
    from .selection import check_background as check_background
    from .selection import compare as compare
    from .selection import contrast_test as contrast_test
    from .selection import held_out_contrast as held_out_contrast
    from .selection import stability_selection as stability_selection
    from .study import Study as Study
    from .study import regress_out as regress_out
    from .study import within_pairs as within_pairs
    from .uncertainty import bootstrap as bootstrap
    from .uncertainty import calibrate_power as calibrate_power
    from .uncertainty import posterior as posterior

# All names load on first use: importing scikit-learn takes a second, and `contrapca --help` does not need it. Type
# checkers read the block above, which a test compares with what loads.
_MODULES = ("datasets", "exceptions", "get", "pl", "plots", "tl")
_HOMES = {
    "CLVM": "estimators",
    "CPCA": "estimators",
    "ContraPCA": "estimators",
    "GammaSearch": "selection",
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
    "load": "_files",
    "match_depth": "depth",
    "posterior": "uncertainty",
    "regress_out": "study",
    "report": "reporting",
    "stability_selection": "selection",
    "within_pairs": "study",
}

__all__ = sorted([*_MODULES, *_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
