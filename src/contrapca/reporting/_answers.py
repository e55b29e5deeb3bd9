"""What the first screen says of each component: what it is, who carries it, and whether it can be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special

from .._util.arrays import Array
from .._util.text import joined, listed
from ._subject import Subject, shown_name

BETWEEN, CHANCE = 0.5, 0.001  # part of a component between the means of labels, and how likely that is by chance
SEPARATED, LEVEL = 0.1, 0.05  # the same for the words "differs by"
MOST = 0.5  # part of a component's variance above which it is that of one block or row
SUPPORT = ("holds up", "uncertain", "not confirmed", "not known")


def between_classes(Z: Array, own: npt.NDArray[np.intp]) -> Array:
    """The part of the variance of each column that lies between the means of classes, eta squared, shape (k,)."""
    Z = Z - Z.mean(axis=0)
    means = np.stack([np.bincount(own, z) for z in Z.T], axis=1) / np.bincount(own)[:, None]
    return np.sum(means[own] ** 2, axis=0) / np.maximum(np.sum(Z**2, axis=0), 1e-300)  # type: ignore[no-any-return]


def chance_of(Z: Array, own: npt.NDArray[np.intp]) -> Array:
    """How likely classes without meaning lie as far apart: the test of Kruskal and Wallis, whatever the tails."""
    ranks = Z.argsort(axis=0).argsort(axis=0).astype(float)
    H = (len(Z) - 1) * between_classes(ranks, own)
    return np.asarray(scipy.special.chdtrc(own.max(), H))


def separations(subject: Subject) -> list[dict[str, Any] | None]:
    """What labels say of each component; None without labels that were given.

    Of classes: `share`, the part of the cases' variance that lies between them (eta squared), the classes that are
    `highest` and `lowest`, and whether that is `clear`. Of numbers: their rank `correlation`, and whether it is clear.
    """
    Z = subject.latents
    nothing: list[dict[str, Any] | None] = [None] * Z.shape[1]
    if subject.values is not None:
        known = np.isfinite(subject.values)
        Z, values = Z[known], subject.values[known]
        ranks = np.column_stack([values, Z]).argsort(axis=0).argsort(axis=0)
        if len(Z) < 4 or not ranks[:, 0].any():
            return nothing
        found = np.asarray(np.corrcoef(ranks.T))[0, 1:]
        clear = np.abs(np.arctanh(np.clip(found, -0.999999, 0.999999))) * np.sqrt(len(Z) - 3) > 1.96
        return [
            {"name": subject.label_name, "correlation": float(r), "is_clear": bool(sure)}
            for r, sure in zip(found, clear, strict=True)
        ]
    if subject.classes is None or subject.clustered:
        return nothing
    known = subject.classes != ""
    names, own = np.unique(subject.classes[known], return_inverse=True)
    if names.size < 2 or names.size == own.size:
        return nothing
    Z = Z[known]
    share, means = between_classes(Z, own), np.stack([np.bincount(own, z) for z in Z.T]) / np.bincount(own)
    clear = (share > SEPARATED) & (_chance_in_units(subject, Z, own, known) < LEVEL)
    return [
        {
            "name": subject.label_name,
            "share": float(share[k]),
            "highest": str(names[np.argmax(means[k])]),
            "lowest": str(names[np.argmin(means[k])]),
            "n_labels": int(names.size),
            "is_clear": bool(clear[k]),
        }
        for k in range(Z.shape[1])
    ]


def _chance_in_units(subject: Subject, Z: Array, own: npt.NDArray[np.intp], known: npt.NDArray[np.bool_]) -> Array:
    """`chance_of` rows, or of the means of blocks where several whole blocks have the same label."""
    if subject.study.blocks is None:
        return chance_of(Z, own)
    blocks = np.unique(np.asarray(subject.study.blocks.foreground)[known], return_inverse=True)[1]
    pairs = np.unique(np.column_stack([blocks, own]), axis=0)
    if len(pairs) != blocks.max() + 1 or len(pairs) == own.max() + 1:  # labels differ within blocks, or name them
        return chance_of(Z, own)
    means = np.stack([np.bincount(blocks, z) for z in Z.T], axis=1) / np.bincount(blocks)[:, None]
    return chance_of(means, pairs[:, 1])


def carriers(subject: Subject) -> list[dict[str, Any]]:
    """The block, or without blocks the case, that holds most of each component's variance, and how much that is."""
    Z, weights, blocks = subject.latents, subject.tables.weights.foreground, subject.study.blocks
    squares = (Z - np.average(Z, axis=0, weights=weights)) ** 2
    squares *= 1.0 if weights is None else weights[:, None]
    if blocks is None:
        given = subject.row_names.foreground
        names = [f"row {i + 1}" for i in range(len(Z))] if given is None else given
        sums = squares
    else:
        labels, own = np.unique(np.asarray(blocks.foreground), return_inverse=True)
        names = [shown_name(str(label)) for label in labels.tolist()]
        sums = np.stack([np.bincount(own, column) for column in squares.T], axis=1)
    shares = sums / np.maximum(sums.sum(axis=0), 1e-300)
    return [{"name": names[i], "share": float(shares[i, k])} for k, i in enumerate(np.argmax(shares, axis=0).tolist())]


def support_of(entry: dict[str, Any], rejected: bool | None, *, ignores_replicates: bool = False) -> str:
    """One of SUPPORT: whether unseen rows confirm a component.

    It does not hold up if one block or row holds most of it, nor if there was a test that found nothing (`rejected`),
    nor if rows that look like replicates were taken for independent: then the rows held out are not really unseen.
    """
    interval = entry["held_out_interval"]
    if interval is None or interval[0] is None:
        return SUPPORT[3]
    more, again = interval[0] > 1, entry["found_again"]
    if not (more or again):
        return SUPPORT[2]
    doubtful = entry["carrier"]["share"] > MOST or rejected is False or ignores_replicates
    return SUPPORT[0] if more and again and not doubtful else SUPPORT[1]


def remarks(subject: Subject) -> list[str]:
    """What labels explain: components that lie between the means of labelled cases, which are pooled under one mean."""
    if subject.classes is None or subject.clustered:
        return []
    known = subject.classes != ""
    names, own = np.unique(subject.classes[known], return_inverse=True)
    if names.size < 2:
        return []
    Z = subject.latents[known]
    between = between_classes(Z, own)
    found = np.flatnonzero((between > BETWEEN) & (chance_of(Z, own) < CHANCE)).tolist()
    if not found:
        return []
    parts, are = joined(f"{between[k]:.0%} of component {k + 1}" for k in found), "are" * (len(found) > 1)
    return [
        f"{parts} {are or 'is'} the difference between the means of {listed(names.tolist(), 3)}. "
        "Such a shift counts as variation of the cases, also where none of these groups varies more than the controls: "
        "contrast each alone to see that."
    ]
