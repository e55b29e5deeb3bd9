"""Contrast axes, to be held by few features (F37)."""

from __future__ import annotations

import numpy as np

from ..moments import Contrast, Moments, RowScatter
from ._contrast_axes import contrast_axes, noise_outside
from ._quotient import mean_of
from ._sparse import Metric, Target
from ._sparse_parts import Kept
from ._spectral import Spectrum, top_eigenpairs


def axes_target(contrast: Contrast, r: int, k: int) -> Target:
    """The k contrast axes V of an r-dimensional model, as n V diag(x) V', x being the foreground's variances along
    them."""
    (_, foreground), backgrounds = contrast.terms[0], mean_of(contrast.terms[1:])
    D, n = contrast.n_features, foreground.weight
    found = top_eigenpairs(contrast, r)
    images = [
        found.images[0] / n,
        np.sum([c * own for (c, _), own in zip(backgrounds, found.images[1:], strict=True)], axis=0),
    ]
    totals = [foreground.scatter.trace / n, sum(c * group.scatter.trace for c, group in backgrounds)]
    a, b = ((inner + inner.T) / 2 for inner in (found.vectors.T @ image for image in images))
    nu_x, nu_y = (noise_outside(total, inside, D) for total, inside in zip(totals, (a, b), strict=True))
    _, w = contrast_axes(a, b, nu_x, nu_y, k)
    L = found.vectors @ w * np.sqrt(n * np.sum(w * (a @ w), axis=0))
    U, lengths, _ = np.linalg.svd(L, full_matrices=False)
    rows = Moments(n, foreground.mean, RowScatter(np.ascontiguousarray(L.T), np.zeros(D), np.ones(D)))
    background = Contrast.of(*backgrounds)
    beyond = Contrast.of((1 / n, foreground), *((-c, group) for c, group in backgrounds))
    return Target(Kept(Contrast.of((1.0, rows))), Spectrum(lengths**2, U, []), Metric(beyond, background, nu_y))
