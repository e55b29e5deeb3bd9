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
OTHER = "all other labels"


def choose_points(subject: Subject) -> dict[str, Any]:
    """Plain values for the page: which rows are drawn, their group, name and packed coordinates.

    Coordinates at gamma g are `inside` (N, k) times `maps[g]` (k, d). Points of a group stand together; controls come
    first, so that cases lie over them.
    """
    tables = subject.tables
    both = sum(table.shape[0] for table in tables)
    chosen = [_sample(table.shape[0], both) for table in tables]
    cases, order = _classes(subject.classes, chosen[0])
    chosen[0] = chosen[0][order]
    inside, maps = _packed(subject, [table[rows] for table, rows in zip(tables, chosen, strict=True)])
    names = [
        None if given is None else [given[i] for i in rows]
        for given, rows in zip(subject.row_names, chosen, strict=True)
    ]
    values = None if subject.values is None else subject.values[chosen[0]]
    return {
        "n": len(inside),
        "n_background": len(chosen[1]),
        "k": inside.shape[1],
        "inside": _base64(inside),
        "bytes": inside.dtype.itemsize,
        "maps": _base64(maps),
        "groups": _legend(len(chosen[1]), cases),
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


def _classes(labels: npt.NDArray[np.str_] | None, rows: npt.NDArray[np.intp]) -> tuple[dict[str, int], Any]:
    """Names of at most 20 classes of cases with their numbers of rows, and the rows' order by class.

    The rarest of more classes are taken together.
    """
    if labels is None:
        return {"cases": len(rows)}, slice(None)
    names, of_row, counts = np.unique(labels[rows], return_inverse=True, return_counts=True)
    if names.size <= MAX_CLASSES:
        return dict(zip(names.tolist(), counts.tolist(), strict=True)), np.argsort(of_row, kind="stable")
    frequent = np.sort(np.argsort(-counts, kind="stable")[: MAX_CLASSES - 1])
    place = np.full(names.size, frequent.size)
    place[frequent] = np.arange(frequent.size)
    found = dict(zip(names[frequent].tolist(), counts[frequent].tolist(), strict=True))
    return found | {OTHER: int(len(rows) - counts[frequent].sum())}, np.argsort(place[of_row], kind="stable")


def _legend(n_background: int, cases: dict[str, int]) -> list[dict[str, Any]]:
    """One entry for each group of points, in the order of the points."""
    entries = [{"name": "controls", "colour": BACKGROUND_COLOUR, "symbol": SYMBOLS[0], "count": n_background}]
    for k, (name, count) in enumerate(cases.items()):
        colour, symbol = COLOURS[k % len(COLOURS)], SYMBOLS[k // len(COLOURS) % len(SYMBOLS)]
        entries.append({"name": name, "colour": colour, "symbol": symbol, "count": count})
    return entries
