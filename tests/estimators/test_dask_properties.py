"""Dask arrays, chunked in any way, give what arrays in memory give."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from contrapca import PCPCA, Study

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 5)) * [4, 2, 1, 1, 1] + 3
Y = rng.standard_normal((30, 5)) + 2
WX, WY = rng.integers(0, 3, 40).astype(float), rng.random(30) + 0.1


@st.composite
def chunked(draw, rows):
    """A table as a dask array of any blocks, empty ones among them."""
    edges = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    sizes = tuple(int(size) for size in np.diff([0, *edges, len(rows)]))
    kind = draw(st.sampled_from([np.asarray, sp.csr_array, sp.csc_matrix]))
    found = da.from_array(rows, chunks=(sizes, 5)).map_blocks(kind, meta=kind(np.empty((0, 5))))
    assert found.chunks[0] == sizes
    return found


@settings(max_examples=8)
@given(chunked(X), chunked(Y), st.booleans(), st.sampled_from(["auto", "lanczos"]))
def test_chunks(left, right, weighted, solver):
    weights = (WX, WY) if weighted else None
    with dask.config.set(scheduler="synchronous"):
        model = PCPCA(2, gamma=0.3, solver=solver).fit(Study(left, background=right, weights=weights))
        latents, scores = model.transform(left).compute(), model.score_samples(left).compute()
    whole = PCPCA(2, gamma=0.3).fit(Study(X, background=Y, weights=weights))
    for name in ("components_", "mean_", "background_mean_", "noise_variance_", "objective_"):
        np.testing.assert_allclose(getattr(model, name), getattr(whole, name), rtol=1e-9, atol=1e-8, err_msg=name)
    np.testing.assert_allclose(latents, whole.transform(X), atol=1e-8)
    np.testing.assert_allclose(scores, whole.score_samples(X), atol=1e-8)
