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
    from .data import Study as Study
    from .data import match_depth as match_depth
    from .data import regress_out as regress_out
    from .data import within_pairs as within_pairs
    from .data.checks import check_tables as check_tables
    from .estimators import CLVM as CLVM
    from .estimators import CPCA as CPCA
    from .estimators import PCPCA as PCPCA
    from .estimators import PPCA as PPCA
    from .estimators import BackgroundWhitener as BackgroundWhitener
    from .estimators import ContraPCA as ContraPCA
    from .estimators import RatioPCA as RatioPCA
    from .estimators import SparseCPCA as SparseCPCA
    from .inference import GammaSearch as GammaSearch
    from .inference import bootstrap as bootstrap
    from .inference import calibrate_power as calibrate_power
    from .inference import check_background as check_background
    from .inference import compare as compare
    from .inference import condition_similarity as condition_similarity
    from .inference import contrast_path as contrast_path
    from .inference import contrast_test as contrast_test
    from .inference import gamma_limits as gamma_limits
    from .inference import held_out_contrast as held_out_contrast
    from .inference import posterior as posterior
    from .inference import stability_selection as stability_selection
    from .moments import Moments as Moments
    from .reading import read as read
    from .reporting import report as report

# All names load on first use: importing scikit-learn takes a second, and `contrapca --help` does not need it. Type
# checkers read the block above, which a test compares with what loads.
_MODULES = ("datasets", "exceptions", "get", "pl", "plots", "tl")
_HOMES = {
    "BackgroundWhitener": "estimators",
    "CLVM": "estimators",
    "CPCA": "estimators",
    "ContraPCA": "estimators",
    "GammaSearch": "inference",
    "Moments": "moments",
    "PCPCA": "estimators",
    "PPCA": "estimators",
    "RatioPCA": "estimators",
    "SparseCPCA": "estimators",
    "Study": "data",
    "bootstrap": "inference",
    "calibrate_power": "inference",
    "check_background": "inference",
    "check_tables": "data.checks",
    "compare": "inference",
    "condition_similarity": "inference",
    "contrast_path": "inference",
    "contrast_test": "inference",
    "gamma_limits": "inference",
    "held_out_contrast": "inference",
    "load": "_files",
    "match_depth": "data",
    "posterior": "inference",
    "read": "reading",
    "regress_out": "data",
    "report": "reporting",
    "stability_selection": "inference",
    "within_pairs": "data",
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
