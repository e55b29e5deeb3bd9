"""What the page draws: points and loadings at every gamma, groups of points, and values of features, all packed."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, is_sparse
from ..data import Groups
from ..plots import BACKGROUND_COLOUR, COLOURS, NO_LABEL, for_legend
from ._subject import Subject

MAX_POINTS = 50_000
MAX_VALUES = 1_500_000  # values of features in a page, one byte each
SEED = 0  # random seed of the sample if there are more rows
SHADES = 255  # colours of a scale; the last byte stands for a missing value
TAILS = 0.01  # fraction of the values beyond each end of a feature's scale, so that no outlier takes it all
SYMBOLS = ("circle", "square", "triangle")
NO_LABEL_LOOK = ("#80611A", "ring")
# Error, relative to the largest number at a gamma, above which more columns or 64 bits are used.
PACKING_ERROR = 3e-7


def choose_points(subject: Subject) -> dict[str, Any]:
    """Plain values for the page: which rows are drawn, their group, name, coordinates and values of features.

    Points are sorted by group; controls come first, so cases are drawn over them.
    """
    both = sum(table.shape[0] for table in subject.rows)
    chosen = subject.rows.map(lambda table: np.arange(table.shape[0]))
    if both > MAX_POINTS:  # a sample of each group, in order
        sizes = chosen.map(lambda every: max(1, every.size * MAX_POINTS // both))
        chosen = chosen.map(
            lambda every, n: np.sort(np.random.default_rng(SEED).choice(every.size, n, replace=False)), sizes
        )
    legend, order = _legend(subject, chosen)
    chosen = replace(chosen, foreground=chosen.foreground[order])
    names = subject.row_names.map(lambda given, own: None if given is None else [given[i] for i in own], chosen)
    values = None if subject.values is None else subject.values[chosen.foreground]
    latents = list(subject.drawn(chosen))[::-1]
    return {
        "n_background": len(chosen.backgrounds[0]),
        "positions": pack(np.concatenate(latents, axis=1)),
        "loadings": pack(subject.loadings) | {"features": subject.features},
        "groups": legend,
        "rows": to_base64(np.concatenate(list(chosen)[::-1]).astype(np.uint32)),
        "names": {"foreground": names.foreground, "background": names.backgrounds[0]},
        "labels": _labels(subject, chosen),
        "values": None if values is None else to_base64(values),
        "features": _features(subject.rows, chosen, subject.loadings),
    }


def _labels(subject: Subject, chosen: Groups[npt.NDArray[np.intp]]) -> dict[str, Any] | None:
    """What the labels are, every one that occurs, and which of them each point has; None without labels."""
    given = subject.labels
    if not given:
        return None
    [(what, labels)] = given.items()
    texts = labels.map(lambda every, own: np.array(every)[own], chosen)
    names, codes = np.unique(np.concatenate(list(texts)[::-1]), return_inverse=True)
    return {"what": what, "names": names.tolist(), "codes": to_base64(codes.astype(np.uint16))}  # of MAX_POINTS


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


def _legend(subject: Subject, chosen: Groups[npt.NDArray[np.intp]]) -> tuple[list[dict[str, Any]], Any]:
    """One entry per group of points, in the order of the points; and the order of the cases drawn, by class.

    `count` of the `rows` of a group are drawn. No two classes have the same colour and the same symbol.
    """
    labels, rows, (n, m) = subject.classes, chosen.foreground, subject.rows.map(lambda table: table.shape[0])
    names, place = ["cases"], np.zeros(n, dtype=np.intp)
    if subject.values is not None:
        labels = np.where(np.isnan(subject.values), "", subject.label_name)
    if labels is not None:
        names, place = for_legend(labels)
    totals, drawn = (np.bincount(codes, minlength=len(names)).tolist() for codes in (place, place[rows]))
    controls = {"name": "controls", "colour": BACKGROUND_COLOUR, "symbol": "cross"}
    entries = [controls | {"count": len(chosen.backgrounds[0]), "rows": m, "on_scale": False}]
    for k, name in enumerate(names):
        colour, symbol = COLOURS[k % len(COLOURS)], SYMBOLS[k // len(COLOURS) % len(SYMBOLS)]
        if name == NO_LABEL:
            colour, symbol = NO_LABEL_LOOK
        on_scale = subject.values is not None and name != NO_LABEL
        look = {"name": name, "colour": colour, "symbol": symbol}
        entries.append(look | {"count": drawn[k], "rows": totals[k], "on_scale": on_scale})
    return entries, np.argsort(place[rows], kind="stable")


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
