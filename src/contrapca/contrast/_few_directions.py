"""Fits inside few strong directions, for rows that are not a matrix (F49)."""

from __future__ import annotations

import numpy as np

from ..data import Groups
from ..moments import Complete, Moments, contrast, mixture
from ._axes import floor_share, ratio_axes, settled
from ._eigen import top_eigenpairs
from ._fit import Latents
from ._limits import pcpca_limit
from ._noise import CAP, SPARE
from ._rank import count_above_noise
from ._strongest import BLOCK, Equations, by_products, in_strongest, strongest

FLOOR_VALUES = 32  # eigenvalues of the background that may be so large that the floor depends on them


def few_directions(data: Complete, latents: Latents, gamma: float | None) -> Complete:
    """Data whose groups are rows and no matrix in the coordinates of few directions: those that are shown, and strong
    ones for the model (F49)."""
    latents = settled(data.plateau, latents)
    varies = any(group.total_variance() > 0 for group in data.groups.backgrounds)
    if not varies or not latents.contrast_axes or not by_products(data.groups):
        return data
    k, D = latents.n_shown, data.groups.foreground.mean.size
    found = list(data.strongest or count_above_noise(data.groups)[1])
    q = max(own.values.size for own in found)
    most = [k + CAP] * len(found) + [FLOOR_VALUES] * (len(data.groups) - len(found))
    for group in list(data.groups)[len(found) :]:  # the floor, too, depends on what is strong in the background
        found.append(strongest(group, FLOOR_VALUES, 5 * BLOCK))

    def ratios(groups: Groups[Moments]) -> Equations:
        share = floor_share(groups)
        axes = ratio_axes(groups, max(k, BLOCK), share)
        assert axes is not None
        floor = share * float(mixture(groups) @ [group.total_variance() for group in groups.backgrounds]) / D
        return Equations(axes[1], axes[0], floor, np.zeros(axes[0].size), k)

    def eigenvectors(groups: Groups[Moments]) -> Equations:
        r = latents.n_latent or max(q + SPARE + k, BLOCK)
        strength = latents.auto_fraction * pcpca_limit(groups, r)[0] if gamma is None else gamma
        top = top_eigenpairs(contrast(groups, strength), r)
        return Equations(top.vectors, np.full(r, strength), 0.0, top.values / groups.foreground.weight, max(q, 1))

    equations = ratios if latents.axes == "ratio" else eigenvectors
    return in_strongest(data, [own.first(count) for own, count in zip(found, most, strict=True)], equations)
