"""Models to files and back: an explicit list of what belongs to which estimator."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from .._version import __version__
from ..exceptions import ModelFileError
from ..gaussian import LatentGaussian
from ..io import check_version, checked_array, checked_names, read_archive, write_archive
from ..posterior import POSTERIOR_FORMAT, restore_posterior
from ..solvers import SolverChoice

if TYPE_CHECKING:
    from ._base import ContrastEstimator

FORMAT, FORMAT_VERSION = "contrapca-model", 2
PATH_FORMAT, CLVM_FORMAT = "contrapca-path", "contrapca-clvm"

# Arrays by name with their shape in terms of d and D. `background_...` are absent without a background.
COMMON = {
    "components_": "dD",
    "eigenvalues_": "d",
    "mean_": "D",
    "scale_": "D",
    "feature_variance_": "D",
    "explained_variance_": "d",
    "explained_variance_ratio_": "d",
}
BACKGROUND = {
    "background_mean_": "D",
    "background_scale_": "D",
    "background_feature_variance_": "D",
}
LIKELIHOOD = {"loadings_": "Dd", "objective_history_": "*", "init_objectives_": "*"}  # *: any length
CONTRASTIVE = BACKGROUND | {"background_variance_": "d", "background_variance_ratio_": "d"}
ARRAYS = {
    "PPCA": COMMON | LIKELIHOOD,
    "CPCA": COMMON | CONTRASTIVE,
    "PCPCA": COMMON | CONTRASTIVE | LIKELIHOOD,
}
COMMON_NUMBERS = ["n_effective_", "n_iter_", "_objective"]
GAMMA_NUMBERS = ["gamma_", "gamma_raw_", "_gamma_max", "_loss"]
NUMBERS = {
    "PPCA": [*COMMON_NUMBERS, "noise_variance_"],
    "CPCA": COMMON_NUMBERS + GAMMA_NUMBERS,
    "PCPCA": [*COMMON_NUMBERS, *GAMMA_NUMBERS, "noise_variance_"],
}
MODELS = {"PPCA": ["model_"], "CPCA": [], "PCPCA": ["model_", "_background_model"]}
MODEL_ARRAYS = {"mean": "D", "W": "Dd"}


def save_model(model: ContrastEstimator, path: Any) -> None:
    """Write a fitted estimator whose postponed results are resolved."""
    kind = type(model).__name__
    if _classes().get(kind) is not type(model):
        raise TypeError(f"{type(model)} cannot be saved: only contrapca's own {', '.join(ARRAYS)} can.")
    arrays = {name: value for name in ARRAYS[kind] if (value := getattr(model, name)) is not None}
    overflowed = [name for name, value in arrays.items() if not np.isfinite(value).all()]
    if overflowed:
        raise ValueError(f"{', '.join(overflowed)} overflowed, so the model cannot be saved: rescale the data.")
    gaussians = {name: value for name in MODELS[kind] if (value := getattr(model, name)) is not None}
    for name, gaussian in gaussians.items():
        arrays |= {f"{name}.{part}": getattr(gaussian, part) for part in MODEL_ARRAYS}
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names_in_"] = np.asarray(model.feature_names_in_, dtype=np.str_)
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "written_by": f"contrapca {__version__}",
        "estimator": kind,
        "parameters": {name: plain_parameter(name, value) for name, value in model.get_params(deep=False).items()},
        "numbers": {name: getattr(model, name) for name in NUMBERS[kind]}
        | {f"{name}.sigma2": gaussian.sigma2 for name, gaussian in gaussians.items()},
        "solver": {"name": model.solver_.name, "reason": model.solver_.reason},
    }
    if kind == "PCPCA":
        header["gamma_search"] = model.gamma_search_  # type: ignore[attr-defined]
    write_archive(path, header, arrays)


def _classes() -> dict[str, type]:
    from . import CPCA, PCPCA, PPCA  # late: they import this module

    return {"PPCA": PPCA, "CPCA": CPCA, "PCPCA": PCPCA}


def plain_parameter(name: str, value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(
        f"{name}={value!r} cannot be saved: only text, numbers and None can. Use set_params({name}=None) before save."
    )


def load(path: Any) -> Any:
    """Read a model, a path or the draws of a posterior that `save` wrote.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    PPCA, CPCA, PCPCA, CLVM, ContrastPath or ContrastPosterior
        A model is fitted; it transforms, scores and samples as the saved one did.

    Raises
    ------
    ModelFileError
        If the file is not such a model, is damaged, or was written by a newer version.

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
    header, arrays = read_archive(path)
    if header.get("format") == POSTERIOR_FORMAT:
        return restore_posterior(path, header, arrays)
    if header.get("format") == PATH_FORMAT:
        from .path import restore_path  # late: it imports the estimators, which import this module

        return restore_path(path, header, arrays)
    if header.get("format") == CLVM_FORMAT:
        from .clvm import restore_clvm

        return restore_clvm(path, header, arrays)
    if header.get("format") != FORMAT:
        raise ModelFileError(f"{str(path)!r} is not a contrapca model: its format is {header.get('format')!r}.")
    check_version(path, header, FORMAT_VERSION)
    try:
        kind = header["estimator"]
        model = _classes()[kind](**header["parameters"])
        _restore(model, kind, header, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{str(path)!r} does not describe a model: {error}. It may be damaged.") from error
    return model


def shape_of(value: Any, letters: str, sizes: dict[str, int]) -> tuple[int, ...]:
    """The shape that letters stand for; "*" is one axis of any length."""
    return (value.size,) if letters == "*" else tuple(sizes[letter] for letter in letters)


def _restore(model: Any, kind: str, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Set the fitted attributes, each checked for its shape and for being finite."""
    d, D = arrays["components_"].shape
    sizes = {"d": d, "D": D}

    def array(name: str, shape: str) -> Any:
        return checked_array(arrays, name, shape_of(arrays[name], shape, sizes))

    def number(name: str) -> float:
        value = header["numbers"][name]
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            raise ValueError(f"{name} is not a number")
        return value  # type: ignore[return-value]

    with_background = "background_mean_" in arrays
    for name, shape in ARRAYS[kind].items():
        absent = name.startswith("background_") and not with_background
        setattr(model, name, None if absent else array(name, shape))
    for name in BACKGROUND:  # PPCA has them too, always without a value
        model.__dict__.setdefault(name, None)
    for name in NUMBERS[kind]:
        setattr(model, name, number(name))
    for name in MODELS[kind]:
        gaussian = None
        if name == "model_" or f"{name}.W" in arrays:
            parts = {part: array(f"{name}.{part}", shape) for part, shape in MODEL_ARRAYS.items()}
            gaussian = LatentGaussian(**parts, sigma2=number(f"{name}.sigma2"))
            if not 0 < gaussian.sigma2 < math.inf:
                raise ValueError(f"{name}.sigma2 is not positive")
        setattr(model, name, gaussian)
    if not 1 <= d < D or np.any(model.scale_ <= 0):
        raise ValueError("its sizes or scales are impossible")
    solver = header["solver"]
    model.solver_ = SolverChoice(str(solver["name"]), str(solver["reason"]))  # type: ignore[arg-type]
    model.n_features_in_ = D
    if kind == "PCPCA":
        model.gamma_search_ = [
            {"gamma": float(step["gamma"]), "outcome": str(step["outcome"])} for step in header["gamma_search"]
        ]
    if "feature_names_in_" in arrays:
        model.feature_names_in_ = checked_names(arrays, "feature_names_in_", D).astype(object)
    model._source = None
