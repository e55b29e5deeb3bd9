"""Results inside an AnnData: under which keys, in which form, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.checks import check_count
from .._util.text import did_you_mean, listed
from ..inference import HeldOutContrast
from ._cells import Choice

MODEL = "model"  # the arrays of a saved model, in uns


def check_key(key_added: Any) -> str:
    """A key that files can have."""
    if not isinstance(key_added, str) or not key_added or "/" in key_added:
        raise ValueError(
            f"key_added={key_added!r} cannot be a key: use a text that is not empty and has no '/', which files take "
            "for a folder."
        )
    return key_added


def check_writable(adata: Any, copy: bool) -> None:
    """Raise before the work if results could not be stored."""
    if adata.isbacked and (copy or adata.is_view):
        what = "copy=True" if copy else "This view"
        raise ValueError(
            f"{what} would need a new file, as this AnnData is backed by one: use adata.to_memory(), or store the "
            "results in the whole backed AnnData without a copy (they are kept in memory; the file stays as it is)."
        )


def write(adata: Any, copy: bool, **results: Mapping[str, Any]) -> Any:
    """Store results in places of the AnnData (returns None), or of a copy (returns it); None removes an older one."""
    target = adata.copy() if copy else adata
    for place, entries in results.items():
        for key, value in entries.items():
            if value is not None:
                getattr(target, place)[key] = value
            elif key in getattr(target, place):
                del getattr(target, place)[key]
    return target if copy else None


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


def stored_choice(adata: Any, key: str) -> Choice:
    """The choice of cells and genes that is stored with results."""
    params = stored(adata, key)["params"]
    choice = Choice(**{field.name: _as_given(params.get(field.name)) for field in fields(Choice)})
    mask = params.get("mask_var")
    return replace(choice, mask_var=mask if mask is None or isinstance(mask, str) else np.asarray(mask))


def _as_given(value: Any) -> Any:
    """A stored setting as it was given."""
    if isinstance(value, Mapping):
        return {name: _as_given(part) for name, part in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value
