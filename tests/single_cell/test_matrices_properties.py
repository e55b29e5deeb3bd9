"""Chunks of any sizes give the same results."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrapca import tl
from contrapca.anndata import _cells
from single_cell.conftest import PLAIN, by_hand
from single_cell.test_matrices import chunked

pytestmark = pytest.mark.filterwarnings("ignore:The cases are all cells with")  # in "arm"


@pytest.mark.slow
@settings(max_examples=12)
@given(cuts=st.lists(st.integers(1, 119), max_size=6, unique=True), sparse=st.booleans(), keep=st.booleans())
def test_any_chunks(made, need, cuts, sparse, keep):
    adata = made[:, ::3].copy()
    del adata.obs["donor"]
    _, Z = by_hand(adata, case=None)
    table = adata.X if sparse else adata.X.toarray()
    adata.X = chunked(table, np.diff([0, *sorted(cuts), 120]).tolist(), need)
    limits = {"KEEP_BYTES": 2**30 if keep else 0, "MOMENTS_AT_ONCE": 0}
    with patch.multiple(_cells, **limits):
        tl.contrapca(adata, **PLAIN)
    assert np.allclose(adata.obsm["X_contrapca"], Z, rtol=1e-6, atol=1e-6)
