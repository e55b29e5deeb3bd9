"""Contrastive dimension reduction: what varies in the foreground and not in the background."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .estimators import CLVM, CPCA, PCPCA, PPCA, ContraPCA, loss_by_components, reconstruction_loss
    from .limits import gamma_limits
    from .moments import Moments, which_solver
    from .paths import ContrastPath, contrast_path, load
    from .reporting import report
    from .selection import (
        Comparison,
        ContrastTest,
        GammaSearch,
        HeldOutContrast,
        compare,
        contrast_test,
        held_out_contrast,
        remove_background,
    )
    from .uncertainty import ContrastPosterior, calibrate_learning_rate, divergence, risk, risk_minimizer

# All names load on first use: scikit-learn takes a second, and `contrapca --help` needs none of it.
_MODULES = ("datasets", "exceptions", "plots", "reporting")
_HOMES = {
    "estimators": ("CLVM", "CPCA", "PCPCA", "PPCA", "ContraPCA", "loss_by_components", "reconstruction_loss"),
    "limits": ("gamma_limits",),
    "moments": ("Moments", "which_solver"),
    "paths": ("ContrastPath", "contrast_path", "load"),
    "reporting": ("report",),
    "selection": (
        "ContrastTest",
        "Comparison",
        "GammaSearch",
        "HeldOutContrast",
        "compare",
        "contrast_test",
        "held_out_contrast",
        "remove_background",
    ),
    "uncertainty": ("ContrastPosterior", "calibrate_learning_rate", "divergence", "risk", "risk_minimizer"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CLVM",
    "CPCA",
    "PCPCA",
    "PPCA",
    "Comparison",
    "ContraPCA",
    "ContrastPath",
    "ContrastPosterior",
    "ContrastTest",
    "GammaSearch",
    "HeldOutContrast",
    "Moments",
    "__version__",
    "calibrate_learning_rate",
    "compare",
    "contrast_path",
    "contrast_test",
    "datasets",
    "divergence",
    "gamma_limits",
    "held_out_contrast",
    "load",
    "loss_by_components",
    "plots",
    "reconstruction_loss",
    "remove_background",
    "report",
    "reporting",
    "risk",
    "risk_minimizer",
    "which_solver",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(f"{__name__}.{_HOME_OF[name]}")
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
