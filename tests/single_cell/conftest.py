"""A small AnnData with donors, and a slow, obvious way to the results."""

from __future__ import annotations

import numpy as np
import pytest

from contrapca import ContraPCA
from contrapca.datasets import make_cells

CHOICE = {"groupby": "condition", "background": "ctrl", "blocks": "donor"}
PLAIN = {"groupby": "arm", "background": "ctrl", "n_comps": 3, "dtype": "float64"}


@pytest.fixture(scope="session")
def made(need):
    """120 cells, 40 genes, 12 donors; "arm" has three values in place of the two of "condition", and no donors."""
    need("anndata")
    data = make_cells(12, 10, 40, random_state=0)
    data.X = data.X.astype(np.float64)
    arm = data.obs["condition"].astype(str).to_numpy()
    arm[::9] = "treated"
    data.obs["arm"] = arm
    data.var["highly"] = np.arange(40) % 3 > 0
    data.var["few"] = np.arange(40) % 6 == 0
    return data


@pytest.fixture
def adata(made):
    """A copy that a test may change."""
    return made.copy()


@pytest.fixture
def unnamed(adata):
    """The same without a column that looks like donors."""
    adata.obs = adata.obs.rename(columns={"donor": "whose"})
    return adata


def dense(adata, layer=None):
    matrix = adata.X if layer is None else adata.layers[layer]
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)


def by_hand(adata, *, genes=slice(None), case="case", k=3):
    """Model, latents of all cells, from dense tables that are split by hand."""
    table = dense(adata)[:, genes]
    arm = adata.obs["arm"].to_numpy()
    cases = arm == case if case else arm != "ctrl"
    model = ContraPCA(k, random_state=0).fit(table[cases], background=table[arm == "ctrl"])
    return model, model.transform(table)


def snapshot(adata):
    """Everything in an AnnData as comparable values."""
    parts = {name: dict(getattr(adata, name)) for name in ("obsm", "varm", "uns", "layers")}
    shown = {name: {key: repr(value) for key, value in items.items()} for name, items in parts.items()}
    return shown | {"obs": adata.obs.to_csv(), "var": adata.var.to_csv(), "X": repr(adata.X), "view": adata.is_view}
