"""The likelihood of the contrastive latent variable model (Severson, Ghosh and Ng 2019), from two scatter matrices.

Background rows are N(mean_Y, S S' + sigma2 I), foreground rows N(mean_X, S S' + W W' + sigma2 I): S is what both groups
share, W what only the foreground has. Both groups are PPCA models, the foreground's with the loadings [S W], so value
and gradient are sums of those of PPCA.
"""

from __future__ import annotations

import numpy as np

from .._util.arrays import Array
from ..groups import Groups
from ..moments import Moments
from ._complete import Evaluation, moments_log_likelihood


def clvm_log_likelihood(groups: Groups[Moments], S: Array, W: Array, sigma2: float) -> Evaluation:
    """log p(X, Y | S, W, sigma2), each group centred by its own mean; `gradient_W` is the gradient in [S W]."""
    foreground = moments_log_likelihood(groups.foreground, np.hstack([S, W]), sigma2)
    value, gradient, noise = foreground.value, foreground.gradient_W.copy(), foreground.gradient_sigma2
    quadratics = foreground.quadratics
    for group in groups.backgrounds:
        background = moments_log_likelihood(group, S, sigma2)
        value += background.value
        gradient[:, : S.shape[1]] += background.gradient_W
        noise += background.gradient_sigma2
        quadratics = quadratics + background.quadratics
    return Evaluation(value, gradient, noise, quadratics)
