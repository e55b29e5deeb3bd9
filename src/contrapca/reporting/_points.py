"""The points of the scatter plot, packed for the browser, which multiplies two small tables to place them at any
gamma."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array
from .._util.palette import BACKGROUND_COLOUR, COLOURS
from ..groups import Groups
from ._subject import MAX_CLASSES, Subject

MAX_POINTS = 20_000
SEED = 0  # random seed of the sample if there are more rows
# Rounding error of 32 bits, relative to the largest coordinate, above which 64 bits are used.
PACKING_ERROR = 3e-7
SYMBOLS = ("circle", "diamond", "square", "triangle-up")
OTHER, NO_LABEL = "all other labels", "no label"
NO_LABEL_LOOK = ("#7A5195", "circle-open")


def choose_points(subject: Subject) -> dict[str, Any]:
    """Plain values for the page: which rows are drawn, their group, name and packed coordinates.

    Coordinates at gamma g are `inside` (N, k) times `maps[g]` (k, d). Points are sorted by group; controls come first,
    so cases are drawn over them.
    """
    both = sum(table.shape[0] for table in subject.rows)
    chosen = subject.rows.map(lambda table: _sample(table.shape[0], both))
    cases, order = _classes(subject, chosen.foreground)
    chosen = replace(chosen, foreground=chosen.foreground[order])
    inside, maps = _packed(subject, subject.rows.map(lambda table, rows: table[rows], chosen))
    names = subject.row_names.map(lambda given, rows: None if given is None else [given[i] for i in rows], chosen)
    values = None if subject.values is None else subject.values[chosen.foreground]
    drawn, there = len(chosen["background"]), subject.rows["background"].shape[0]
    return {
        "n": len(inside),
        "n_background": drawn,
        "k": inside.shape[1],
        "inside": _base64(inside),
        "bytes": inside.dtype.itemsize,
        "maps": _base64(maps),
        "groups": _legend(drawn, there, cases, subject.values is not None),
        "rows": _base64(np.concatenate(list(chosen)[::-1]).astype(np.uint32)),
        "names": {"foreground": names.foreground, "background": names["background"]},
        "values": None if values is None else _base64(values),
    }


def _base64(array: npt.NDArray[Any]) -> str:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)  # as browsers read them
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode()


def _sample(n: int, both: int) -> npt.NDArray[np.intp]:
    """Rows to draw: all, or a proportional random sample, in order."""
    if both <= MAX_POINTS:
        return np.arange(n)
    keep = max(1, n * MAX_POINTS // both)
    return np.sort(np.random.default_rng(SEED).choice(n, keep, replace=False))


def _packed(subject: Subject, rows: Groups[Any]) -> tuple[Array, Array]:
    """Background above foreground: rows in a small basis (N, k), and maps (G, k, d) to the aligned latents.

    The path's own basis is small; with missing values, the latents of all gammas side by side are used instead.
    """
    path, turns = subject.path, subject.path.turns(subject.start)
    order = [(rows[name], name) for name in reversed(rows.names)]
    if subject.tables.incomplete:
        G, d = len(path), path.n_components
        latents = np.concatenate([path.latents(part, center=center) for part, center in order], axis=1) @ turns
        side_by_side = latents.transpose(1, 0, 2).reshape(-1, G * d)
        return side_by_side.astype(np.float32), np.eye(G * d).reshape(G * d, G, d).swapaxes(0, 1)
    inside = np.concatenate([path.inside(part, center=center) for part, center in order])
    maps, packed = path.projections() @ turns, inside.astype(np.float32)
    exact = inside @ maps
    error = np.abs(packed.astype(np.float64) @ maps - exact).max(axis=(1, 2)) / np.abs(exact).max(axis=(1, 2))
    return packed if error.max() <= PACKING_ERROR else inside, maps


def _classes(subject: Subject, rows: npt.NDArray[np.intp]) -> tuple[list[tuple[str, int, int]], Any]:
    """For at most 20 classes of cases: name, points drawn and rows in total; and the order of the rows by class.

    If there are more, the rarest are combined; cases without a label come last.
    """
    labels = subject.classes
    if subject.values is not None:
        labels = np.where(np.isnan(subject.values), "", subject.label_name)
    if labels is None:
        return [("cases", len(rows), subject.rows.foreground.shape[0])], slice(None)
    names, of_row, counts = np.unique(labels, return_inverse=True, return_counts=True)
    named = np.flatnonzero(names != "")
    frequent = named if named.size <= MAX_CLASSES else np.sort(named[np.argsort(-counts[named])[: MAX_CLASSES - 1]])
    place = np.full(names.size, frequent.size)  # of the others together
    place[frequent] = np.arange(frequent.size)
    place[names == ""] = frequent.size + 1
    shown = [*names[frequent].tolist(), OTHER, NO_LABEL]
    totals, drawn = (np.bincount(place[codes], minlength=len(shown)) for codes in (of_row, of_row[rows]))
    found = [(name, int(some), int(every)) for name, some, every in zip(shown, drawn, totals, strict=True) if every]
    return found, np.argsort(place[of_row[rows]], kind="stable")


def _legend(drawn: int, there: int, cases: list[tuple[str, int, int]], scale: bool) -> list[dict[str, Any]]:
    """One entry per group of points, in the order of the points; `count` of its `rows` are drawn."""
    entries = [{"name": "controls", "colour": BACKGROUND_COLOUR, "symbol": SYMBOLS[0], "count": drawn, "rows": there}]
    for k, (name, count, rows) in enumerate(cases):
        colour, symbol = COLOURS[k % len(COLOURS)], SYMBOLS[k // len(COLOURS) % len(SYMBOLS)]
        if name == NO_LABEL:
            colour, symbol = NO_LABEL_LOOK
        on_scale = scale and name != NO_LABEL
        entries.append(
            {"name": name, "colour": colour, "symbol": symbol, "count": count, "rows": rows, "on_scale": on_scale}
        )
    return entries
