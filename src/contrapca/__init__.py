"""Contrastive dimension reduction: what varies in the foreground and not in the background."""

from __future__ import annotations

import importlib
from typing import Any

from ._version import __version__
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

_LAZY = ("datasets", "plots", "reporting")  # loaded on first use


def __getattr__(name: str) -> Any:
    if name == "report":
        return importlib.import_module(f"{__name__}.reporting").report
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
