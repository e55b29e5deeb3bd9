"""Tools, as scanpy names them: functions that store their results in an AnnData."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._util.arrays import Rows
from .._util.checks import check_option
from ..data import DEPTHS, Groups
from ..estimators import CLVM, CPCA, PCPCA, ContraPCA
from ..inference import at_equal_depth, contrast_test
from ..inference import compare as compare_tables
from ._cells import Cells, check_n_comps, choose, column
from ._fit import run_fit
from ._results import Results, check_key, check_writable, frame, plain, write
from ._warnings import matched, warn_of_depth, warn_of_donors, warn_of_values

TEST, COMPARISON = "contrapca_test", "contrapca_compare"  # keys of uns


def contrapca(
    adata: Any,
    *,
    groupby: str,
    background: Any,
    foreground: Any = None,
    n_comps: int = 10,
    gamma: float | str = "auto",
    scale: str | None = "auto",
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
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
    foreground : label, or list of labels, optional
        The value of the cases; by default all cells that are not background. Cells of neither group do not take part
        in the fit, but get latents.
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
        - `uns["contrapca"]`: `params`; `variance`, `variance_ratio` (of the cases along each component) and
          `background_variance`, shape (n_comps,), a dict if there are several backgrounds; `gamma` and `gamma_max`, its
          limit (nan if not computed); what unseen cells (with `blocks`, of unseen donors) say of each component, as
          `contrapca.held_out_contrast` finds it with at most 5000 cells of each group and, with more than 200 genes, in
          the 100 strongest directions of all: `held_out_ratio` (n_comps,),
          `held_out_interval` (n_comps, 2), `agreement`, `found_again` and `largest_share`, shape (n_comps,); and
          `model`, the arrays of the saved model, which `contrapca.get.model` reads.

    Examples
    --------
    >>> import contrapca
    >>> adata = contrapca.datasets.make_cells(random_state=0)
    >>> contrapca.tl.contrapca(adata, groupby="condition", background="ctrl", blocks="donor", n_comps=2)
    >>> adata.obsm["X_contrapca"].shape
    (600, 2)
    """
    model = ContraPCA(n_comps, gamma=gamma, scale=scale, random_state=_seed(random_state))
    choice = _choice(groupby, background, foreground, layer, obsm, mask_var, blocks)
    return run_fit(adata, model, choice, "ContraPCs", n_comps=n_comps, key_added=key_added, copy=copy, dtype=dtype)


def pcpca(
    adata: Any,
    *,
    groupby: str,
    background: Any,
    foreground: Any = None,
    n_comps: int = 10,
    gamma: float | str = "auto",
    scale: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
    dtype: Any = "float32",
    random_state: int | None = 0,
) -> Any:
    """Probabilistic contrastive PCA as in the paper (`PCPCA`).

    Parameters
    ----------
    adata, groupby, background, foreground, n_comps, scale, layer, obsm, mask_var, blocks, key_added, copy, dtype, \
random_state
        As for `contrapca.tl.contrapca`.
    gamma : float or "auto", default "auto"
        Strength of the contrast, below 1, as for `contrapca.PCPCA`.

    Returns
    -------
    AnnData or None
        As for `contrapca.tl.contrapca`, with the keys `obsm["X_pcpca"]`, `varm["PCPCs"]` and `uns["pcpca"]`.
    """
    model = PCPCA(n_comps, gamma=gamma, scale=scale, random_state=_seed(random_state))
    choice = _choice(groupby, background, foreground, layer, obsm, mask_var, blocks)
    return run_fit(adata, model, choice, "PCPCs", n_comps=n_comps, key_added=key_added, copy=copy, dtype=dtype)


def cpca(
    adata: Any,
    *,
    groupby: str,
    background: Any,
    foreground: Any = None,
    n_comps: int = 10,
    gamma: float | str = "auto",
    scale: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
    dtype: Any = "float32",
) -> Any:
    """Contrastive PCA (`CPCA`, Abid et al. 2018): directions only, without a probability model.

    Parameters
    ----------
    adata, groupby, background, foreground, n_comps, scale, layer, obsm, mask_var, key_added, copy, dtype
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
    model = CPCA(n_comps, gamma=gamma, scale=scale)
    choice = _choice(groupby, background, foreground, layer, obsm, mask_var, blocks)
    return run_fit(adata, model, choice, "CPCs", n_comps=n_comps, key_added=key_added, copy=copy, dtype=dtype)


def clvm(
    adata: Any,
    *,
    groupby: str,
    background: Any,
    foreground: Any = None,
    n_comps: int = 10,
    n_shared: int | str = "auto",
    scale: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
    dtype: Any = "float32",
) -> Any:
    """Contrastive latent variable model (`CLVM`, Severson et al. 2019): what both share, and what only the cases have.

    Parameters
    ----------
    adata, groupby, background, foreground, scale, layer, obsm, mask_var, blocks, key_added, copy, dtype
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
    choice = _choice(groupby, background, foreground, layer, obsm, mask_var, blocks)
    return run_fit(adata, model, choice, "CLVs", n_comps=n_comps, key_added=key_added, copy=copy, dtype=dtype)


def test(
    adata: Any,
    *,
    groupby: str,
    background: Any,
    foreground: Any = None,
    max_comps: int = 10,
    level: float = 0.05,
    scale: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    depth: str = "warn",
    key_added: str | None = None,
    copy: bool = False,
    random_state: int | None = 0,
) -> Any:
    """Test whether the cases vary more than the controls in any direction, and in how many (`contrast_test`).

    It compares how cells vary about the mean of their group. So it does not see a shift of the mean alone, a gene that
    is higher in all cases by the same amount: tests of differential expression do. And what it finds need not be new:
    another mixture of the same cell types, such as more of a rare one, also varies more. Compare the proportions of
    cell types, or test within each of them.

    Values may be missing (NaN) in dense tables, at any rates; `remarks` then has the rates of both groups.

    Parameters
    ----------
    adata, groupby, background, foreground, scale, layer, obsm, mask_var, copy
        As for `contrapca.tl.contrapca`, with one background.
    max_comps : int, default 10
        Maximum number of dimensions to test.
    level : float, default 0.05
    blocks : str, optional
        Column of `obs` with the donor of each cell. Whole donors are then compared; without it, p-values are far too
        small if several cells come from each donor.
    depth : {"warn", "match", "ignore"}, default "warn"
        What to do if cells of one group were sequenced less deeply, which alone makes the test reject: warn, or first
        thin the counts of both groups to equal depth (`contrapca.match_depth`). Totals over all genes are
        `obs["total_counts"]`, `obs["n_counts"]` or `obs["nCount_RNA"]`, or the sums of the counts in `raw`, in
        `layers["counts"]` or in the matrix that is used. That matrix holds counts or log-normalised values.
    key_added : str, optional
        The key of `uns` in place of "contrapca_test".
    random_state : int or None, default 0
        Random seed for the splits.

    Returns
    -------
    AnnData or None
        A copy with the results if `copy` is true; otherwise `adata.uns["contrapca_test"]` has `params`, `verdict` (a
        sentence), `remarks` (further sentences, usually none), `n_components` (dimensions found), `p_values` and
        `statistics`, `noise_ratio`, `level`, `units` (what was compared: cells or donors).
    """
    key = TEST if key_added is None else check_key(key_added)
    check_option(depth, "depth", DEPTHS)
    choice = _choice(groupby, background, foreground, layer, obsm, mask_var, blocks)
    cells, rows = _tables(adata, choice, copy, depth=depth)
    if depth == "match":
        cells, rows = matched(adata, cells, rows, _seed(random_state))
    found = contrast_test(
        cells.study(rows),
        max_components=max_comps,
        level=level,
        scale=scale,
        depth="ignore",
        random_state=_seed(random_state),
    )
    found = at_equal_depth(found) if depth == "match" else found
    given = {"max_comps": max_comps, "scale": scale, "depth": depth, "random_state": random_state}
    summary = {
        "params": plain(cells.params | given),
        "verdict": found.verdict(),
        "remarks": np.array(found.remarks(), dtype=np.str_),
        "n_components": found.n_components,
        "p_values": found.p_values,
        "statistics": found.statistics,
        "noise_ratio": found.noise_ratio,
        "level": found.level,
        "units": found.units,
    }
    return write(adata, Results({key: summary}), copy=copy)


def compare(
    adata: Any,
    *,
    groupby: str,
    background: Any,
    foreground: Any = None,
    n_comps: int = 2,
    labels: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
    random_state: int | None = 0,
) -> Any:
    """Compare all methods in halves of the cells, unscaled and scaled (`contrapca.compare`).

    Parameters
    ----------
    adata, groupby, background, foreground, layer, obsm, mask_var, copy
        As for `contrapca.tl.contrapca`, with one background.
    n_comps : int, default 2
    labels : str, optional
        Column of `obs` with known classes of the cases, whose silhouette is added to the table.
    blocks : str, optional
        Column of `obs` with the donor of each cell. Whole donors are then held out.
    key_added : str, optional
        The key of `uns` in place of "contrapca_compare".
    random_state : int or None, default 0
        Random seed for the folds.

    Returns
    -------
    AnnData or None
        A copy with the results if `copy` is true; otherwise `adata.uns["contrapca_compare"]` has `params`,
        `recommendation` (sentences) and `table` (a data frame with one row per method and scaling, the best first).
    """
    key = COMPARISON if key_added is None else check_key(key_added)
    choice = _choice(groupby, background, foreground, layer, obsm, mask_var, blocks)
    cells, rows = _tables(adata, choice, copy, labels=labels)
    check_n_comps(n_comps, len(cells.names))
    classes = None if labels is None else np.asarray(adata.obs[labels])[cells.groups.foreground]
    found = compare_tables(cells.study(rows, labels=classes), n_components=n_comps, random_state=_seed(random_state))
    params = plain(cells.params | {"n_comps": n_comps, "labels": labels, "random_state": random_state})
    summary = {"params": params, "recommendation": found.recommendation, "table": frame(found.table())}
    return write(adata, Results({key: summary}), copy=copy)


def _choice(
    groupby: Any, background: Any, foreground: Any, layer: Any, obsm: Any, mask_var: Any, blocks: Any
) -> dict[str, Any]:
    """The arguments of `choose`."""
    groups = {"groupby": groupby, "background": background, "foreground": foreground, "blocks": blocks}
    return groups | {"layer": layer, "obsm": obsm, "mask_var": mask_var}


def _tables(
    adata: Any, choice: dict[str, Any], copy: bool, labels: str | None = None, depth: str = "warn"
) -> tuple[Cells, Groups[Rows]]:
    """The chosen cells, and the rows of both groups in memory."""
    cells = choose(adata, **choice)
    if labels is not None:
        column(adata.obs, labels, "labels", "adata.obs")
    check_writable(adata, copy)
    warn_of_donors(adata.obs, cells)
    table = cells.read()
    if depth != "match":  # which takes logarithms
        warn_of_values(cells, table)
    if depth == "warn":
        warn_of_depth(adata, cells)
    return cells, cells.split(table)


def _seed(random_state: Any) -> int | None:
    """A random seed that can be stored."""
    if random_state is None or (isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)):
        return None if random_state is None else int(random_state)
    raise TypeError(f"random_state={random_state!r} must be a whole number or None: it is stored with the results.")
