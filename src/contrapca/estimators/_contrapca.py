"""ContraPCA: PCPCA with defaults that find directions."""

from __future__ import annotations

from typing import Any

from ._pcpca import PCPCA


class ContraPCA(PCPCA):
    """PCPCA with contrast axes and automatic rank: finds what varies in the foreground but not in the background.

    The model has more latent dimensions than are shown, which leaves room for what both groups share. The axes shown
    are those with the largest ratio of foreground to background variance. It differs from `PCPCA` in three defaults:
    `n_latent="auto"`, `axes="contrast"`, and gamma at half its limit, which works for directions, densities, sampling
    and imputation. All attributes and methods are PCPCA's.

    Parameters
    ----------
    n_components : int, default 2
        Number of components to show.
    gamma, background_label, scale, solver, n_latent, axes, mean, n_init, max_iter, tol, random_state, progress
        As for `PCPCA`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, D)
        Unit vectors that rows are projected onto; not orthogonal.
    loadings_ : ndarray of shape (D, n_components)
        How much one unit of each latent adds to a row, in scaled units.
    axis_ratios_ : ndarray of shape (n_components,)
        Ratio of foreground to background variance along each axis; near 1 there is no contrast. Computed on the rows of
        the fit, so it is optimistic; `contrapca.held_out_contrast` is not.
    n_latent_ : int
        Number of latent dimensions of the model.

    Examples
    --------
    >>> from contrapca import ContraPCA
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> model = ContraPCA(n_components=2).fit(data.foreground, background=data.background)
    >>> model.transform(data.foreground).shape, model.n_latent_
    ((400, 2), 8)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        gamma: float | str | dict[str, float] = "auto",
        background_label: Any = None,
        scale: str | None = None,
        solver: str = "auto",
        n_latent: int | str | None = "auto",
        axes: str = "contrast",
        mean: str = "observed",
        n_init: int | str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
        progress: bool = True,
    ):
        self._keep(locals())
