"""What the page draws: points and loadings at every gamma, groups of points, and values of features, all packed."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, is_sparse
from ..data import Groups
from ..plots import BACKGROUND_COLOUR, COLOURS, NO_LABEL, for_legend
from ._design import words_for
from ._subject import Column, Subject

MAX_POINTS = 50_000
MAX_VALUES = 1_500_000  # values of features in a page, one byte each
SEED = 0  # random seed of the sample if there are more rows
SHADES = 255  # colours of a scale; the last byte stands for a missing value
TAILS = 0.01  # fraction of the values beyond each end of a feature's scale, so that no outlier takes it all
SYMBOLS = ("circle", "square", "triangle")
NO_LABEL_LOOK = ("#80611A", "ring")
CONTROLS_LOOK = {"colour": BACKGROUND_COLOUR, "symbol": "cross"}
# Error, relative to the largest number at a gamma, above which more columns or 64 bits are used.
PACKING_ERROR = 3e-7


def choose_points(subject: Subject) -> dict[str, Any]:
    """Plain values for the page: which rows are drawn, controls first, with all that is known and shown of them."""
    both = sum(table.shape[0] for table in subject.rows)
    chosen = subject.rows.map(lambda table: np.arange(table.shape[0]))
    if both > MAX_POINTS:  # a sample of each group, in order
        sizes = chosen.map(lambda every: max(1, every.size * MAX_POINTS // both))
        chosen = chosen.map(
            lambda every, n: np.sort(np.random.default_rng(SEED).choice(every.size, n, replace=False)), sizes
        )
    names = subject.row_names.map(lambda given, own: None if given is None else [given[i] for i in own], chosen)
    words = words_for(subject.study.design)
    alone = subject.rows.like([words["cases"]] * n for n in subject.study.counts)
    groups = Column(f"{words['cases']} and {words['controls']}", alone, plain=True)
    columns = [_column(own, chosen, words) for own in (*subject.columns, groups)]
    columns[-1]["texts"] = None  # its legend says it all
    return {
        "n_background": len(chosen.backgrounds[0]),
        "n_rows": list(subject.rows.map(lambda table: table.shape[0]))[::-1],
        "positions": pack(np.concatenate(list(subject.drawn(chosen))[::-1], axis=1)),
        "loadings": pack(subject.loadings) | {"features": subject.features},
        "columns": columns,
        "rows": to_base64(np.concatenate(list(chosen)[::-1]).astype(np.uint32)),
        "names": {"foreground": names.foreground, "background": names.backgrounds[0]},
        "features": _features(subject.rows, chosen, subject.loadings),
        "about": _about_features(subject),
    }


def _column(column: Column, chosen: Groups[npt.NDArray[np.intp]], words: dict[str, str]) -> dict[str, Any]:
    """The entries of a column's legend, which of them each point has, its numbers and its texts.

    Entries are those of the cases, after one for the controls, unless the column is about both alike. No two have the
    same colour and the same symbol.
    """
    own = column.texts.map(np.array)
    if column.values is not None:  # those with a number have its shade
        own = column.values.map(lambda values: np.where(np.isnan(values), "", column.name))
    classes = np.concatenate(list(own)[::-1]) if column.whole else own.foreground
    names, place = for_legend(classes)
    totals, entries = np.bincount(place, minlength=len(names)).tolist(), []
    for k, name in enumerate(names):
        colour, symbol = COLOURS[k % len(COLOURS)], SYMBOLS[k // len(COLOURS) % len(SYMBOLS)]
        if name == NO_LABEL:
            colour, symbol = NO_LABEL_LOOK
        legend = words["cases"] if column.values is not None and name == column.name else name
        if not (column.plain or legend == words["cases"]):
            legend = f"{words['cases']}: {name}"
        entries.append({"name": legend, "colour": colour, "symbol": symbol, "rows": totals[k]})
    n_others = len(column.texts.backgrounds[0])
    if not column.whole:
        entries.insert(0, {"name": words["controls"], "rows": n_others} | CONTROLS_LOOK)
        place = np.concatenate([np.zeros(n_others, dtype=np.intp), place + 1])
    drawn = np.concatenate([chosen.backgrounds[0], n_others + chosen.foreground])
    numbers = texts = None
    if column.values is not None:
        numbers = to_base64(np.concatenate(list(column.values)[::-1])[drawn].astype(np.float64))
    if numbers is None or column.heading:  # the page writes other numbers itself
        every = np.concatenate([np.array(text, dtype=object) for text in list(column.texts)[::-1]])
        known, codes = np.unique(every[drawn].astype(str), return_inverse=True)
        kind = np.uint8 if known.size <= 256 else np.uint16  # MAX_POINTS are fewer
        texts = {"names": known.tolist(), "codes": to_base64(codes.astype(kind))}
    return {
        "name": column.name,
        "heading": column.heading,
        "is_dose": column.is_dose,
        "entries": entries,
        "codes": to_base64(place[drawn].astype(np.uint8)),
        "numbers": numbers,
        "texts": texts,
    }


def _features(rows: Groups[Any], chosen: Groups[npt.NDArray[np.intp]], loadings: Array) -> dict[str, Any]:
    """Values of the features with the largest loadings, as many as there is room for, as shades from `low` to `high`.

    `shades` has one row of bytes for each of `index`, in the order of the points.
    """
    n = sum(map(len, chosen))
    importance = np.max(np.abs(loadings) / np.maximum(np.abs(loadings).max(axis=1, keepdims=True), 1e-300), axis=(0, 2))
    index = np.sort(np.argsort(-importance, kind="stable")[: max(1, MAX_VALUES // n)])
    parts = rows.map(lambda table, own: table[own][:, index], chosen)
    table = np.concatenate([part.toarray() if is_sparse(part) else part for part in parts][::-1]).astype(np.float64)
    empty = np.isnan(table).all(axis=0)
    index, table = index[~empty], table[:, ~empty]
    quantiles = np.nanquantile if np.isnan(table).any() else np.quantile  # which is much faster
    low, high = quantiles(table, [TAILS, 1 - TAILS], axis=0)
    width = np.where(high > low, high - low, 1.0)
    shades = np.clip(np.rint((table - low) / width * (SHADES - 1)), 0, SHADES - 1)
    shades = np.where(np.isnan(table), SHADES, shades).astype(np.uint8)
    return {
        "index": index.tolist(),
        "low": [float(f"{value:.4g}") for value in low],
        "high": [float(f"{value:.4g}") for value in high],
        "shades": to_base64(shades.T),
    }


def _about_features(subject: Subject) -> dict[str, Any]:
    """Of every feature: by how many standard deviations within groups the cases' mean is higher, and how many values
    are missing in each group; None if none are."""
    rows = subject.rows
    within = np.sqrt(np.mean([scaling.variance for scaling in subject.path.scaling], axis=0))
    own, other = subject.means
    shift = (own - other) / np.where(within > 0, within, 1.0)
    missing = None
    if subject.tables.incomplete:
        counts = [np.isnan(table).sum(axis=0) for table in rows]
        missing = {"cases": counts[0].tolist(), "controls": counts[1].tolist()}
    return {"shift": to_base64(np.asarray(shift, dtype=np.float32)), "missing": missing}


def pack(numbers: Array) -> dict[str, Any]:
    """A table of each gamma, shape (G, n, d), as `scores` (n, rank) times `maps[g]` (rank, d).

    Neighbouring gammas are much alike, so the rank is far below G d. Each gamma counts alike, on any scale.
    """
    G, n, d = numbers.shape
    largest = np.abs(numbers).max(axis=(1, 2))
    largest[largest == 0] = 1.0
    side_by_side = (numbers / largest[:, None, None]).transpose(1, 0, 2).reshape(n, G * d)
    directions = np.linalg.eigh(side_by_side.T @ side_by_side)[1][:, ::-1]  # orthonormal, the strongest first
    scores = side_by_side @ directions
    # No number changes by more than the length of the scores that are left out, because directions are orthonormal.
    left_out = np.sqrt(np.max(np.cumsum(scores[:, ::-1] ** 2, axis=1), axis=0)[::-1])
    rank = max(1, int(np.count_nonzero(left_out > PACKING_ERROR / 2)))
    scores, directions = scores[:, :rank], directions[:, :rank]
    coarse = scores.astype(np.float32)
    error = np.abs(coarse.astype(np.float64) @ directions.T - side_by_side).max()
    maps = directions.T.reshape(rank, G, d).swapaxes(0, 1) * largest[:, None, None]
    return {
        "n": n,
        "rank": rank,
        "bytes": 4 if error <= PACKING_ERROR else 8,
        "scores": to_base64(coarse if error <= PACKING_ERROR else scores),
        "maps": to_base64(maps),
    }


def to_base64(array: npt.NDArray[Any]) -> str:
    """The bytes of an array, little-endian as browsers read them."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode()
