"""ContraPCA: PCPCA with the defaults that find things."""

from __future__ import annotations

from typing import Any

from ._pcpca import PCPCA


class ContraPCA(PCPCA):
    """What varies in the foreground and not in the background: PCPCA with contrast axes and automatic rank.

    The model is PCPCA's, with more latent dimensions than are shown, so that it has room for what both groups share.
    What is shown are the directions of it in which the foreground varies most for what the background varies. It
    differs from `PCPCA` in three defaults: `n_latent="auto"`, `axes="contrast"` and gamma at half its limit, which
    serves directions, densities, sampling and imputation alike. All attributes and methods are PCPCA's.

    Parameters
    ----------
    n_components : int, default 2
        Number of components that are shown.
    gamma, background_label, scale, solver, n_latent, axes, mean, n_init, max_iter, tol, random_state, verbose
        As for `PCPCA`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, D)
        Unit directions that rows are projected on; not orthogonal.
    loadings_ : ndarray of shape (D, n_components)
        What a unit of each latent adds to a row, in scaled units.
    axis_ratios_ : ndarray of shape (n_components,)
        How many times more the foreground varies along each axis than the background: near 1 there is nothing. On the
        rows of the fit, so optimistic: `contrapca.held_out_contrast` is not.
    n_latent_ : int
        Latent dimensions of the model.

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
        gamma: float | str = "auto",
        background_label: Any = None,
        scale: bool | str = False,
        solver: str = "auto",
        n_latent: int | str | None = "auto",
        axes: str = "contrast",
        mean: str = "observed",
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int = 0,
    ):
        super().__init__(
            n_components,
            gamma=gamma,
            background_label=background_label,
            scale=scale,
            solver=solver,
            n_latent=n_latent,
            axes=axes,
            mean=mean,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
            verbose=verbose,
        )
