"""Simulated single cells of patients and controls, as an AnnData."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._checks import check_count, generator
from .._util.optional import require

CELL_TYPES = ("B", "Mono", "T")
PROGRAMME = 15  # genes of the programme that some cells of the cases have switched on
MEAN_COUNT = 1.0  # of a typical gene in a typical cell
TYPE_SD, SIZE_SD = 1.0, 0.3  # of log means between cell types, and of log library sizes
ACTIVE = 0.4  # fraction of the cases' cells with the programme


def make_cells(
    n_donors: int = 24,
    n_cells: int = 25,
    n_genes: int = 100,
    *,
    effect: float = 1.5,
    donor_effect: float = 0.3,
    random_state: Any = None,
) -> Any:
    """Counts of single cells from patients and controls, with donors (extra `anndata`).

    Half of the donors are patients. All have cells of three types. A part of the patients' cells, of every type, has a
    programme of 15 genes switched on: that is what a contrast should find. Donors differ too, and equally in both
    groups.

    Parameters
    ----------
    n_donors : int, default 24
        Donors of both groups together, at least 4.
    n_cells : int, default 25
        Cells of each donor.
    n_genes : int, default 100
        At least 40.
    effect : float, default 1.5
        By how much the programme raises the logarithm of its genes' means; 0 for no difference between the groups.
    donor_effect : float, default 0.3
        Standard deviation of the logarithm of each gene's mean between donors.
    random_state : None, int, Generator or RandomState

    Returns
    -------
    AnnData
        `X` (log(1 + count) after normalisation to equal totals) and `layers["counts"]`, sparse; `obs`: "condition"
        ("case" or "ctrl"), "donor", "cell_type", "programme" (whether it is on); `var`: "programme" (whether the gene
        is part of it).

    Examples
    --------
    >>> from contrapca.datasets import make_cells
    >>> make_cells(random_state=0).obs["condition"].value_counts().to_dict()
    {'case': 300, 'ctrl': 300}
    """
    check_count(n_donors, "n_donors", least=4)
    check_count(n_cells, "n_cells")
    check_count(n_genes, "n_genes", least=40)
    rng, anndata, pandas = (
        generator(random_state),
        require("anndata", extra="anndata"),
        require("pandas", extra="anndata"),
    )
    donor = np.repeat(np.arange(n_donors), n_cells)
    is_case = donor < n_donors // 2
    cell_type = rng.integers(0, len(CELL_TYPES), donor.size)
    in_programme = np.arange(n_genes) < PROGRAMME
    active = is_case & (rng.random(donor.size) < ACTIVE)
    log_mean = np.log(MEAN_COUNT) + rng.normal(0, 1, n_genes)
    log_mean = log_mean + (TYPE_SD * rng.normal(size=(len(CELL_TYPES), n_genes)))[cell_type]
    log_mean += (donor_effect * rng.normal(size=(n_donors, n_genes)))[donor]
    log_mean += effect * np.outer(active, in_programme) + rng.normal(0, SIZE_SD, (donor.size, 1))
    counts = sp.csr_matrix(rng.poisson(np.exp(log_mean)).astype(np.float32))
    totals = np.maximum(np.ravel(counts.sum(axis=1)), 1)
    values = sp.csr_matrix(sp.diags_array((np.median(totals) / totals).astype(np.float32)) @ counts).log1p()
    obs = {
        "condition": pandas.Categorical(np.where(is_case, "case", "ctrl")),
        "donor": pandas.Categorical([f"donor{k + 1}" for k in donor]),
        "cell_type": pandas.Categorical(np.array(CELL_TYPES)[cell_type]),
        "programme": active,
    }
    return anndata.AnnData(
        values,
        obs=pandas.DataFrame(obs, index=[f"cell{i}" for i in range(donor.size)]),
        var=pandas.DataFrame({"programme": in_programme}, index=[f"gene{j}" for j in range(n_genes)]),
        layers={"counts": counts},
    )
