"""Results inside an AnnData: under which keys, in which form, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array
from .._util.checks import check_count
from .._util.text import did_you_mean, listed
from ..estimators import ContrastSolver, packed
from ..inference import HeldOutContrast
from ._cells import Cells, background_argument

MODEL = "model"  # the arrays of a saved model, in uns


@dataclass(frozen=True)
class Keys:
    """Where the results of a function are stored."""

    obsm: str
    varm: str
    uns: str

    @classmethod
    def of(cls, function: str, varm: str, key_added: str | None) -> Keys:
        """The keys of a function, as scanpy names them; `key_added` takes the place of all three."""
        if key_added is None:
            return cls(f"X_{function}", varm, function)
        return cls(*[check_key(key_added)] * 3)


def check_key(key_added: Any) -> str:
    """A key that files can have."""
    if not isinstance(key_added, str) or not key_added or "/" in key_added:
        raise ValueError(
            f"key_added={key_added!r} cannot be a key: use a text that is not empty and has no '/', which files take "
            "for a folder."
        )
    return key_added


@dataclass(frozen=True)
class Results:
    """What is written: arrays of cells and genes, and a dict of plain values."""

    uns: dict[str, Any]
    obsm: dict[str, Array] = field(default_factory=dict)
    varm: dict[str, Array | None] = field(default_factory=dict)  # None removes what was stored before


def check_writable(adata: Any, copy: bool) -> None:
    """Raise before the work if results could not be stored."""
    if adata.isbacked and (copy or adata.is_view):
        what = "copy=True" if copy else "This view"
        raise ValueError(
            f"{what} would need a new file, as this AnnData is backed by one: use adata.to_memory(), or store the "
            "results in the whole backed AnnData without a copy (they are kept in memory; the file stays as it is)."
        )


def write(adata: Any, results: Results, *, copy: bool) -> Any:
    """Store results in the AnnData (returns None), or in a copy (returns it)."""
    target = adata.copy() if copy else adata
    for place in ("obsm", "varm", "uns"):
        for key, value in getattr(results, place).items():
            if value is not None:
                getattr(target, place)[key] = value
            elif key in getattr(target, place):
                del getattr(target, place)[key]
    return target if copy else None


def fit_results(
    cells: Cells,
    model: Any,
    latents: Array,
    keys: Keys,
    n_genes: int,
    dtype: Any,
    params: Mapping[str, Any],
    held_out: HeldOutContrast | None,
) -> Results:
    """The results of a fitted model; `n_genes` are all genes of the AnnData, also those that were not used."""
    fit = model.fit_
    summary: dict[str, Any] = {
        "params": storable(cells.params | dict(params)),
        "variance": fit.variances.foreground,
        "variance_ratio": fit.shares.foreground,
        "background_variance": background_argument(fit.variances),
        "embedding": keys.obsm,
        MODEL: packed(model),
    }
    if isinstance(model, ContrastSolver) and model._contrasts:
        summary |= {"gamma": float(fit.gamma), "gamma_max": np.nan if fit.limit is None else float(fit.limit)}
    if held_out is not None:
        summary |= evidence(held_out)
    loadings = fit.loadings.astype(dtype)
    varm: dict[str, Array | None] = {keys.varm: None}
    if not cells.of_genes:
        summary["loadings"] = loadings
    elif cells.mask is None:
        varm = {keys.varm: loadings}
    else:
        every = np.zeros((n_genes, loadings.shape[1]), dtype=dtype)
        every[cells.mask] = loadings
        varm = {keys.varm: every}
    return Results({keys.uns: summary}, {keys.obsm: latents.astype(dtype)}, varm)


def evidence(held_out: HeldOutContrast) -> dict[str, Any]:
    """What unseen cells say of each component, as `uns` holds it; and of each condition, if there are several."""
    of_conditions = held_out.cells and {
        "conditions": np.array(held_out.cells.cells),
        "condition_ratio": np.exp(held_out.cells.log_ratios),
        "condition_interval": held_out.cells.intervals,
    }
    return (of_conditions or {}) | {
        "held_out_ratio": held_out.ratios,
        "held_out_interval": held_out.intervals,
        "held_out_p": held_out.p_values,
        "agreement": held_out.agreement,
        "found_again": held_out.found_again,
        "largest_share": held_out.largest_share,
    }


def supported(entry: Mapping[str, Any]) -> npt.NDArray[np.bool_] | None:
    """Which components unseen cells vary more along and other halves find again, shape (k,); None if nothing is known.

    None of them is if a test of the same cells has found nothing.
    """
    if "held_out_interval" not in entry:
        return None
    found = np.asarray(entry["found_again"], dtype=bool) & (np.asarray(entry["held_out_interval"])[:, 0] > 1)
    return found & (int(entry.get("test_n_components", 1)) > 0)


def storable(params: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as h5ad and zarr files can hold them: None is left out, lists become arrays, also inside dicts."""
    kept: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(value, Mapping):
            kept[str(name)] = storable(value)
        elif value is not None:
            kept[str(name)] = np.array(list(value)) if isinstance(value, list | tuple | set) else value
    return kept


def stored(adata: Any, key: str, *, what: str = MODEL, by: str = "tl.contrapca") -> dict[str, Any]:
    """What a function stored under a key of `uns`."""
    entry = adata.uns.get(key) if hasattr(adata, "uns") else None
    if not isinstance(entry, Mapping) or what not in entry:
        known = [name for name, value in adata.uns.items() if isinstance(value, Mapping) and what in value]
        have = f"only {listed(known)}" if known else f"run contrapca.{by} first"
        raise ValueError(f"There are no such results in adata.uns[{key!r}], {have}.{did_you_mean(key, known)}")
    return dict(entry)


def check_component(component: Any, n_components: int) -> None:
    """Raise unless it is one of the components, counting from 1."""
    if check_count(component, "component") > n_components:
        raise ValueError(f"component={component} must be one of the {n_components} components, counting from 1.")


def stored_choice(adata: Any, key: str) -> dict[str, Any]:
    """The arguments of `choose` that are stored with results."""
    names = (
        "groupby",
        "background",
        "foreground",
        "layer",
        "obsm",
        "mask_var",
        "blocks",
        "pairs",
        "regress_out",
        "within",
    )
    params = {name: stored(adata, key)["params"].get(name) for name in names}
    mask = params.pop("mask_var")
    found = {name: _read_value(value) for name, value in params.items()}
    return found | {"mask_var": mask if mask is None or isinstance(mask, str) else np.asarray(mask)}


def _read_value(value: Any) -> Any:
    """A stored setting as it was given."""
    if isinstance(value, Mapping):
        return {name: _read_value(part) for name, part in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value
