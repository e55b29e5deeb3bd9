"""The points of the scatter, packed for the browser: it multiplies two small tables to place them at any gamma."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from .._array import Array
from ..estimators import has_holes
from ..plots._latents import BACKGROUND_COLOUR, COLOURS
from ._subject import MAX_CLASSES, Subject

MAX_POINTS = 20_000
SEED = 0  # of the sample that is drawn where there are more rows
# Of the largest coordinate: what packing into 32 bits may cost before 64 are used.
PACKING_ERROR = 3e-7
SYMBOLS = ("circle", "diamond", "square", "triangle-up")
OTHER = "other labels"


def choose_points(subject: Subject) -> dict[str, Any]:
    """Plain values for the page: which rows are drawn, their group, name and packed coordinates.

    Coordinates at gamma g are `inside` (N, k) times `maps[g]` (k, d). Controls come first, so that cases lie over them.
    """
    tables = subject.tables
    chosen = [_sample(table.shape[0], sum(t.shape[0] for t in tables)) for table in tables]
    inside, maps = _packed(subject, [table[rows] for table, rows in zip(tables, chosen, strict=True)])
    groups, codes = _groups(subject, chosen)
    names = [
        None if given is None else [given[i] for i in rows]
        for given, rows in zip(subject.row_names, chosen, strict=True)
    ]
    values = None if subject.values is None else subject.values[chosen[0]]
    return {
        "n": sum(map(len, chosen)),
        "n_background": len(chosen[1]),
        "k": inside.shape[1],
        "inside": _base64(inside),
        "bytes": inside.dtype.itemsize,
        "maps": _base64(maps),
        "groups": groups,
        "codes": _base64(codes.astype(np.uint8)),
        "rows": _base64(np.concatenate(chosen[::-1]).astype(np.uint32)),
        "names": {"foreground": names[0], "background": names[1]},
        "values": None if values is None else _base64(values.astype(np.float32)),
    }


def _base64(array: npt.NDArray[Any]) -> str:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)  # as browsers read them
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode()


def _sample(n: int, both: int) -> npt.NDArray[np.intp]:
    """Rows to draw: all, or a random sample in proportion, in their order."""
    if both <= MAX_POINTS:
        return np.arange(n)
    keep = max(1, n * MAX_POINTS // both)
    return np.sort(np.random.default_rng(SEED).choice(n, keep, replace=False))


def _packed(subject: Subject, rows: list[Any]) -> tuple[Array, Array]:
    """Background above foreground: rows in a small basis (N, k), and maps (G, k, d) to the aligned latents.

    The path's own basis is small; where values are missing, the latents of all gammas side by side take its place.
    """
    path, turns = subject.path, subject.path.turns(subject.start)
    order = [(rows[1], "background"), (rows[0], "foreground")]
    if any(map(has_holes, rows)):
        G, d = len(path), path.n_components
        latents = np.concatenate([path.latents(part, center=center) for part, center in order], axis=1) @ turns
        side_by_side = latents.transpose(1, 0, 2).reshape(-1, G * d)
        return side_by_side.astype(np.float32), np.eye(G * d).reshape(G * d, G, d).swapaxes(0, 1)
    inside = np.concatenate([path.inside(part, center=center) for part, center in order])
    maps, packed = path.projections() @ turns, inside.astype(np.float32)
    exact = inside @ maps
    error = np.abs(packed.astype(np.float64) @ maps - exact).max(axis=(1, 2)) / np.abs(exact).max(axis=(1, 2))
    return packed if error.max() <= PACKING_ERROR else inside, maps


def _groups(subject: Subject, chosen: list[npt.NDArray[np.intp]]) -> tuple[list[dict[str, Any]], npt.NDArray[np.int64]]:
    """The entries of the legend, and for each drawn row, background first, which one it belongs to."""
    classes = subject.classes
    if classes is None:
        names, of_row = ["cases"], np.zeros(len(chosen[0]), dtype=np.int64)
    else:
        names, of_row = _classes(classes[chosen[0]])
    looks = [(COLOURS[k % len(COLOURS)], SYMBOLS[k // len(COLOURS) % len(SYMBOLS)]) for k in range(len(names))]
    entries = [{"name": "controls", "colour": BACKGROUND_COLOUR, "symbol": SYMBOLS[0], "count": len(chosen[1])}]
    entries += [
        {"name": name, "colour": colour, "symbol": symbol, "count": int(np.sum(of_row == k))}
        for k, (name, (colour, symbol)) in enumerate(zip(names, looks, strict=True))
    ]
    return entries, np.concatenate([np.zeros(len(chosen[1]), dtype=np.int64), of_row + 1])


def _classes(labels: npt.NDArray[np.str_]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Names of at most 20 classes, the rarest ones together, and the class of each row."""
    names, of_row, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if names.size <= MAX_CLASSES:
        return names.tolist(), of_row
    frequent = np.sort(np.argsort(-counts, kind="stable")[: MAX_CLASSES - 1])
    place = np.full(names.size, MAX_CLASSES - 1)
    place[frequent] = np.arange(frequent.size)
    return [*names[frequent].tolist(), OTHER], place[of_row]
