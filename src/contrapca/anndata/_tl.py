"""Tools, as scanpy names them: functions that store their results in an AnnData."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._util.arrays import is_sparse
from .._util.checks import check_option
from ..data import genes_of
from ..estimators import CLVM, CPCA, PCPCA, ContraPCA, RatioPCA, SparseCPCA
from ._cells import Choice, covariates_of, loaded, stored_seed
from ._fit import DTYPES, adjusted, latents_where, run_fit
from ._results import check_key, check_writable, stored, stored_choice, write
from ._results import model as stored_model


def contrapca(
    adata: Any,
    groupby: str,
    background: Any,
    *,
    foreground: Any = None,
    n_comps: int = 10,
    gamma: float | str = "auto",
    scale: str | None = "auto",
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    pairs: str | None = None,
    regress_out: str | Sequence[str] | None = None,
    within: str | None = None,
    solver: str = "auto",
    key_added: str | None = None,
    copy: bool = False,
    dtype: Any = "float32",
    random_state: int | None = 0,
) -> Any:
    """Contrastive PCA with the defaults of `ContraPCA`: finds what varies in the cases but not in the controls.

    Sparse matrices stay sparse. Matrices that are read lazily (`backed="r"`, `read_lazy`, dask) are read once for the
    fit and once, if they are too large to be kept, for the latents.

    Parameters
    ----------
    adata : AnnData
        Log-normalised values; cells are rows.
    groupby : str
        Column of `obs` that tells cases from controls.
    background : label, list of labels, or a dict of them
        The value of `groupby` that marks the controls, for example "ctrl". The values of a list are one group with one
        mean; a dict has several backgrounds by name, {"old": "ctrl1", "new": ["ctrl2", "ctrl3"]}, each centred by its
        own mean.
    foreground : label, list of labels, or a dict of either, optional
        The value of the cases; by default all cells that are not background. Cells of neither group do not take part
        in the fit, but get latents. A dict names several conditions, {"A": "drug a", "B": ["drug b", "drug c"]}: each
        is about its own mean, and all count alike. Sparse values are filled in for it.
    n_comps : int, default 10
        Number of components.
    gamma : float or "auto", default "auto"
        Strength of the contrast, as for `contrapca.ContraPCA`.
    scale : {"auto", None, "group", "pooled"}, default "auto"
        Whether to divide genes by their standard deviation in each group, or within groups; sparse matrices stay
        sparse. "auto" is None or "pooled", as the noise asks for (see `contrapca.ContraPCA`).
    layer : str, optional
        The layer to use instead of X.
    obsm : str, optional
        An array of `obsm` to use instead of X, such as another embedding. Loadings are then stored in `uns`.
    mask_var : str, array of bool, None or "auto", default "auto"
        The genes to use: a column of `var`, or one value for each gene; None means all. "auto" is the column
        "highly_variable" if there is one.
    blocks : str, optional
        Column of `obs` with the donor (patient, animal, batch, plate) of each cell. The ratios on unseen cells are then
        on cells of unseen donors.
    pairs : str, optional
        The same, in place of `blocks`, if every donor has cells in both groups, such as before and after treatment.
    regress_out : str or list of str, optional
        Columns of `obs`, numbers or categories, whose linear effect on each gene is taken out (`contrapca.Study`).
        Sparse values are filled in for it.
    within : str, optional
        Column of `obs` with the type of each cell. Cells are then compared with cells of their type: differences
        between types are taken out, as by `regress_out`, and in each group a type counts as much as in the group where
        its share is smallest, so that another composition alone does not look like a contrast. Cells of types that one
        group lacks do not take part. Differences between types have one effect in both groups: if types shift by
        different amounts and cases are far fewer than controls, part of that remains, which `contrapca.tl.by_group`,
        with each type by itself, does not have.
    solver : str, default "auto"
        The eigensolver, as for `contrapca.ContraPCA`.
    key_added : str, optional
        The key of all results, in place of the names below.
    copy : bool, default False
        Store the results in a copy, and return it.
    dtype : {"float32", "float64"}, default "float32"
        Type of latents and loadings.
    random_state : int or None, default 0
        Random seed, used only if values are missing.

    Returns
    -------
    AnnData or None
        A copy with the results if `copy` is true; otherwise they are stored in `adata`:

        - `obsm["X_contrapca"]`, shape (n_obs, n_comps): the latents of all cells, from the mean of the foreground.
          Those of controls tell where they lie along the axes of the cases.
        - `varm["ContraPCs"]`, shape (n_vars, n_comps): loadings, how much one unit of each latent adds to each gene; 0
          for genes that were not used.
        - `uns["contrapca"]`: `params`; `cases`, the values of `groupby` that are cases; `variance`, `variance_ratio`
          (of the cases along each component) and `background_variance`, shape (n_comps,), a dict if there are several
          backgrounds; `gamma` and `gamma_max`, its limit (nan if not computed); what unseen cells (with `blocks`, of
          unseen donors) say of each component, as `contrapca.held_out_contrast` finds it with at most 5000 cells of
          each group and, with more than 200 genes, in the 100 strongest directions of all: `held_out_ratio` (n_comps,),
          `held_out_interval` (n_comps, 2), `held_out_p`, `agreement`, `found_again` and `largest_share`, shape
          (n_comps,), which `contrapca.get.components` returns as a table; of several conditions, `conditions`,
          `condition_ratio` and `condition_interval`, shape (conditions, n_comps, ...); and `model`, the arrays of the
          saved model, which `contrapca.get.model` reads.

    Examples
    --------
    >>> import contrapca
    >>> adata = contrapca.datasets.make_cells(random_state=0)
    >>> contrapca.tl.contrapca(adata, groupby="condition", background="ctrl", blocks="donor", n_comps=2)
    >>> adata.obsm["X_contrapca"].shape
    (600, 2)
    """
    model = ContraPCA(n_comps, gamma=gamma, scale=scale, solver=solver, random_state=stored_seed(random_state))
    choice = Choice(
        groupby=groupby,
        background=background,
        foreground=foreground,
        layer=layer,
        obsm=obsm,
        mask_var=mask_var,
        blocks=blocks,
        pairs=pairs,
        regress_out=regress_out,
        within=within,
    )
    return run_fit(adata, model, choice, n_comps=n_comps, key_added=key_added, copy=copy, dtype=dtype)


def pcpca(
    adata: Any,
    groupby: str,
    background: Any,
    *,
    foreground: Any = None,
    n_comps: int = 10,
    gamma: float | str = "auto",
    scale: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    pairs: str | None = None,
    regress_out: str | Sequence[str] | None = None,
    within: str | None = None,
    solver: str = "auto",
    key_added: str | None = None,
    copy: bool = False,
    dtype: Any = "float32",
    random_state: int | None = 0,
) -> Any:
    """Probabilistic contrastive PCA as in the paper (`PCPCA`).

    Parameters
    ----------
    adata, groupby, background, foreground, n_comps, scale, layer, obsm, mask_var, blocks, pairs, regress_out, within, \
solver, key_added, copy, dtype, random_state
        As for `contrapca.tl.contrapca`.
    gamma : float or "auto", default "auto"
        Strength of the contrast, below 1, as for `contrapca.PCPCA`.

    Returns
    -------
    AnnData or None
        As for `contrapca.tl.contrapca`, with the keys `obsm["X_pcpca"]`, `varm["PCPCs"]` and `uns["pcpca"]`.
    """
    model = PCPCA(n_comps, gamma=gamma, scale=scale, solver=solver, random_state=stored_seed(random_state))
    choice = Choice(
        groupby=groupby,
        background=background,
        foreground=foreground,
        layer=layer,
        obsm=obsm,
        mask_var=mask_var,
        blocks=blocks,
        pairs=pairs,
        regress_out=regress_out,
        within=within,
    )
    return run_fit(adata, model, choice, n_comps=n_comps, key_added=key_added, copy=copy, dtype=dtype)


def cpca(
    adata: Any,
    groupby: str,
    background: Any,
    *,
    foreground: Any = None,
    n_comps: int = 10,
    gamma: float | str = "auto",
    scale: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    pairs: str | None = None,
    regress_out: str | Sequence[str] | None = None,
    within: str | None = None,
    solver: str = "auto",
    key_added: str | None = None,
    copy: bool = False,
    dtype: Any = "float32",
) -> Any:
    """Contrastive PCA (`CPCA`, Abid et al. 2018): directions only, without a probability model.

    Parameters
    ----------
    adata, groupby, background, foreground, n_comps, scale, layer, obsm, mask_var, pairs, regress_out, within, solver, \
key_added, copy, dtype
        As for `contrapca.tl.contrapca`.
    gamma : float or "auto", default "auto"
        Strength of the contrast, 0 or more; elsewhere called alpha. "auto" takes the gamma whose contrast is most
        reproducible in halves of the cells, as for `contrapca.CPCA`.
    blocks : str, optional
        Column of `obs` with the donor of each cell. Halves are then of donors, also for "auto".

    Returns
    -------
    AnnData or None
        As for `contrapca.tl.contrapca`, with the keys `obsm["X_cpca"]`, `varm["CPCs"]` and `uns["cpca"]`.
    """
    model = CPCA(n_comps, gamma=gamma, scale=scale, solver=solver)
    choice = Choice(
        groupby=groupby,
        background=background,
        foreground=foreground,
        layer=layer,
        obsm=obsm,
        mask_var=mask_var,
        blocks=blocks,
        pairs=pairs,
        regress_out=regress_out,
        within=within,
    )
    return run_fit(adata, model, choice, n_comps=n_comps, key_added=key_added, copy=copy, dtype=dtype)


def clvm(
    adata: Any,
    groupby: str,
    background: Any,
    *,
    foreground: Any = None,
    n_comps: int = 10,
    n_shared: int | str = "auto",
    scale: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    pairs: str | None = None,
    regress_out: str | Sequence[str] | None = None,
    within: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
    dtype: Any = "float32",
) -> Any:
    """Contrastive latent variable model (`CLVM`, Severson et al. 2019): what both share, and what only the cases have.

    Parameters
    ----------
    adata, groupby, background, foreground, scale, layer, obsm, mask_var, blocks, pairs, regress_out, within, \
key_added, copy, dtype
        As for `contrapca.tl.contrapca`. At most 8000 genes.
    n_comps : int, default 10
        Number of dimensions that only the cases have.
    n_shared : int or "auto", default "auto"
        Number of dimensions that both groups share, as for `contrapca.CLVM`.

    Returns
    -------
    AnnData or None
        As for `contrapca.tl.contrapca`, with the keys `obsm["X_clvm"]`, `varm["CLVs"]` and `uns["clvm"]`; there is no
        gamma.
    """
    model = CLVM(n_shared, n_comps, scale=scale)
    choice = Choice(
        groupby=groupby,
        background=background,
        foreground=foreground,
        layer=layer,
        obsm=obsm,
        mask_var=mask_var,
        blocks=blocks,
        pairs=pairs,
        regress_out=regress_out,
        within=within,
    )
    return run_fit(adata, model, choice, n_comps=n_comps, key_added=key_added, copy=copy, dtype=dtype)


def ratiopca(
    adata: Any,
    groupby: str,
    background: Any,
    *,
    foreground: Any = None,
    n_comps: int = 10,
    ridge: float | str = "auto",
    scale: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    pairs: str | None = None,
    regress_out: str | Sequence[str] | None = None,
    within: str | None = None,
    solver: str = "auto",
    key_added: str | None = None,
    copy: bool = False,
    dtype: Any = "float32",
) -> Any:
    """Directions in which the cases' variance is the largest multiple of the controls' (`RatioPCA`).

    Parameters
    ----------
    adata, groupby, background, foreground, n_comps, scale, layer, obsm, mask_var, blocks, pairs, regress_out, within, \
solver, key_added, copy, dtype
        As for `contrapca.tl.contrapca`.
    ridge : float or "auto", default "auto"
        Added to the variances of the controls, as for `contrapca.RatioPCA`.

    Returns
    -------
    AnnData or None
        As for `contrapca.tl.contrapca`, with the keys `obsm["X_ratiopca"]`, `varm["RatioPCs"]` and `uns["ratiopca"]`;
        there is no gamma.
    """
    model = RatioPCA(n_comps, ridge=ridge, scale=scale, solver=solver)
    choice = Choice(
        groupby=groupby,
        background=background,
        foreground=foreground,
        layer=layer,
        obsm=obsm,
        mask_var=mask_var,
        blocks=blocks,
        pairs=pairs,
        regress_out=regress_out,
        within=within,
    )
    return run_fit(adata, model, choice, n_comps=n_comps, key_added=key_added, copy=copy, dtype=dtype)


def sparse_cpca(
    adata: Any,
    groupby: str,
    background: Any,
    *,
    foreground: Any = None,
    n_comps: int = 10,
    n_genes: int | str = 10,
    gamma: float | str = "auto",
    scale: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    pairs: str | None = None,
    regress_out: str | Sequence[str] | None = None,
    within: str | None = None,
    solver: str = "auto",
    key_added: str | None = None,
    copy: bool = False,
    dtype: Any = "float32",
) -> Any:
    """Contrastive PCA whose components have few genes each (`SparseCPCA`).

    Parameters
    ----------
    adata, groupby, background, foreground, n_comps, scale, layer, obsm, mask_var, blocks, pairs, regress_out, within, \
solver, key_added, copy, dtype
        As for `contrapca.tl.contrapca`.
    n_genes : int or "auto", default 10
        Genes of each component, as `sparsity` of `contrapca.SparseCPCA`.
    gamma : float or "auto", default "auto"
        As for `contrapca.tl.cpca`. It takes minutes for thousands of genes; a number takes seconds.

    Returns
    -------
    AnnData or None
        As for `contrapca.tl.contrapca`, with the keys `obsm["X_sparse_cpca"]`, `varm["SparseCPCs"]` and
        `uns["sparse_cpca"]`.
    """
    model = SparseCPCA(n_comps, sparsity=n_genes, gamma=gamma, scale=scale, solver=solver)
    choice = Choice(
        groupby=groupby,
        background=background,
        foreground=foreground,
        layer=layer,
        obsm=obsm,
        mask_var=mask_var,
        blocks=blocks,
        pairs=pairs,
        regress_out=regress_out,
        within=within,
    )
    return run_fit(adata, model, choice, n_comps=n_comps, key_added=key_added, copy=copy, dtype=dtype)


def project(
    adata: Any,
    reference: Any,
    key: str = "contrapca",
    *,
    layer: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
    dtype: Any = "float32",
) -> Any:
    """Latents of new cells along the components of a reference: its fitted model, applied to other cells.

    Parameters
    ----------
    adata : AnnData
        The new cells. They have the genes of the fit, by name, in any order and among others, normalised alike, and
        the columns of `obs` that the fit took out (`regress_out`, `within`).
    reference : AnnData
        With the results of a function of `contrapca.tl`.
    key : str, default "contrapca"
        Key of `reference.uns`.
    layer : str, optional
        The layer to use; by default that of the fit.
    key_added : str, optional
        The key of `obsm`; by default that of the reference.
    copy, dtype
        As for `contrapca.tl.contrapca`.

    Returns
    -------
    AnnData or None
        A copy with the results if `copy` is true; otherwise `adata.obsm["X_contrapca"]` has the latents, measured from
        the mean of the reference's cases. Batches that differ from the reference are not corrected for.

    Examples
    --------
    >>> import contrapca
    >>> adata, new = (contrapca.datasets.make_cells(random_state=seed) for seed in (0, 1))
    >>> contrapca.tl.contrapca(adata, groupby="condition", background="ctrl", blocks="donor", n_comps=2)
    >>> contrapca.tl.project(new[:, ::-1].copy(), adata, copy=True).obsm["X_contrapca"].shape
    (600, 2)
    """
    model, choice = stored_model(reference, key), stored_choice(reference, key)
    check_writable(adata, copy)
    check_option(str(np.dtype(dtype)), "dtype", DTYPES)
    if choice.obsm is not None:
        raise ValueError(
            f"{key!r} was fitted to obsm[{choice.obsm!r}], not to genes: project the new cells into that embedding, "
            "and use get.model(reference).transform on it."
        )
    table = loaded(genes_of(adata, model.fit_.scaling.foreground.labels, layer or choice.layer))
    covariates = covariates_of(adata.obs, choice.regress_out or [], choice.within)
    if covariates is not None and is_sparse(table):
        table = table.toarray()
    latents = latents_where(model, *adjusted(model, table, covariates)).astype(dtype)
    place = str(stored(reference, key)["embedding"]) if key_added is None else check_key(key_added)
    return write(adata, copy, obsm={place: latents})
