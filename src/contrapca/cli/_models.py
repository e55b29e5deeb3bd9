"""Models that the options ask for, or that a file holds."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from .._files import load
from ..estimators import CPCA, PCPCA, PPCA, ContraPCA
from ._console import Console

METHODS: dict[str, Any] = {"contrapca": ContraPCA, "pcpca": PCPCA, "cpca": CPCA, "ppca": PPCA}


def make_model(options: Namespace, console: Console) -> Any:
    """The estimator that the options ask for."""
    kind = METHODS[options.method]
    given = {"gamma": options.gamma, "random_state": options.seed, "progress": console.progress}
    given["scale"] = scale_of(options, kind)
    return kind(options.components, **{name: value for name, value in given.items() if name in kind._get_param_names()})


def scale_of(options: Namespace, kind: Any = None) -> str | None:
    """The scaling that the options ask for; "auto" is none but for a kind of estimator that chooses it."""
    if options.scale == "auto" and kind is not None and issubclass(kind, ContraPCA):
        return "auto"
    return None if options.scale in ("none", "auto") else options.scale


def load_model(path: Path) -> Any:
    """A saved estimator; a path or draws are refused."""
    found = load(path)
    if not hasattr(found, "transform"):
        raise ValueError(f"{str(path)!r} holds a {type(found).__name__}, and not a model as contrapca fit writes it.")
    return found


def feature_names(model: Any) -> list[str] | None:
    """Names of the features of a model, if it has them."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]
