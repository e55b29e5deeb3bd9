"""Contrastive dimension reduction: what varies in the foreground and not in the background."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .estimators import (
        CLVM,
        CPCA,
        PCPCA,
        PPCA,
        ComponentTest,
        ContrastPath,
        GammaSearch,
        calibrate_learning_rate,
        choose_components,
        contrast_path,
        gamma_limits,
        load,
        loss_by_components,
        reconstruction_loss,
        remove_background,
        which_solver,
    )
    from .posterior import ContrastPosterior, divergence, risk, risk_minimizer
    from .reporting import report

__all__ = [
    "CLVM",
    "CPCA",
    "PCPCA",
    "PPCA",
    "ComponentTest",
    "ContrastPath",
    "ContrastPosterior",
    "GammaSearch",
    "__version__",
    "calibrate_learning_rate",
    "choose_components",
    "contrast_path",
    "datasets",
    "divergence",
    "gamma_limits",
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

# All names load on first use: scikit-learn takes a second, and `contrapca --help` needs none of it.
_MODULES = ("datasets", "estimators", "exceptions", "plots", "posterior", "reporting")
_HOMES = {"report": "reporting"} | dict.fromkeys(
    ("ContrastPosterior", "divergence", "risk", "risk_minimizer"), "posterior"
)  # of names that are not from `estimators`


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(f"{__name__}.{_HOMES.get(name, 'estimators')}")
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
