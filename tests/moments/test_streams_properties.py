"""Any order and size of batches, and any cut of a table into chunks, gives the model of one fit (F21)."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from contrapca import PCPCA
from contrapca.data.rows._dask import DaskRows
from contrapca.data.rows._storage import storage
from contrapca.moments._batches import Stream, read_batch

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 5)) * [4, 2, 1, 1, 1] + 100
Y = rng.standard_normal((45, 5)) + 99
WX = rng.integers(0, 3, 60).astype(float)


@st.composite
def batches(draw):
    """Batches of the rows of both groups, as tuples (rows of X, rows of Y), in any order."""
    rows = draw(st.permutations(range(len(X) + len(Y))))
    edges = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=8)))
    parts = [part for part in np.split(np.array(rows), edges) if part.size]
    return [(part[part < len(X)], part[part >= len(X)] - len(X)) for part in parts]


@pytest.mark.filterwarnings("ignore:The batch is counted")
@settings(max_examples=12)
@given(batches(), st.booleans(), st.booleans(), st.sampled_from([np.asarray, sp.csr_array]))
def test_batches(parts, weighted, one_by_one, kind):
    given_weights = {"sample_weight": WX} if weighted else {}
    whole = PCPCA(2, gamma=0.3).fit(kind(X), background=kind(Y), **given_weights)
    batches = []
    for left, right in parts:
        batch = {"X": kind(X[left])} if left.size else {}
        batch |= {"background": kind(Y[right])} if right.size else {}
        batch |= {"sample_weight": WX[left]} if weighted and left.size else {}
        batches.append(batch)
    model = PCPCA(2, gamma=0.3)
    if one_by_one:
        for batch in batches:
            model.partial_fit(**{"X": None, **batch})
    else:
        model.fit_batches(batches)
    assert (model.n_samples_seen_, model.n_background_samples_seen_) == (60, 45)
    for name in ("components_", "mean_", "background_mean_", "loadings_", "noise_variance_", "objective_"):
        np.testing.assert_allclose(getattr(model, name), getattr(whole, name), rtol=1e-10, atol=1e-10, err_msg=name)


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 60), max_size=6),
    st.lists(st.booleans(), min_size=60, max_size=60).filter(lambda kept: sum(kept) > 1),
    st.sampled_from([None, WX + 0.5]),
)
def test_chunks(edges, kept, weights):
    """All that is done with rows, of a dask array cut anywhere, some rows left out."""
    sizes = tuple(np.diff([0, *sorted(edges), 60]).tolist())
    rows = DaskRows(pytest.importorskip("dask.array").from_array(X, chunks=(sizes, (5,))))[np.array(kept)]
    dense, w = X[kept], None if weights is None else weights[kept]
    ours, plain = storage(rows), storage(dense)
    mean, V = dense.mean(axis=0), np.eye(5)[:, :2]
    for name, arguments in (
        ("column_sums", (w,)),
        ("scatter", (mean, w)),
        ("squares", (mean, w)),
        ("product", (mean, V, w)),
        ("centred_product", (mean, V)),
        ("gram", (mean, np.ones(5))),
        ("non_finite", ()),
    ):
        found, expected = getattr(ours, name)(rows, *arguments), getattr(plain, name)(dense, *arguments)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-8, err_msg=name)
    resamples = rng.integers(0, 3, (len(dense), 2)).astype(float) + 0.1
    for k in range(2):
        for found, expected in zip(ours.weighted(rows, resamples)(k), plain.weighted(dense, resamples)(k), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)


@settings(max_examples=15)
@given(batches())
def test_checkpoints_are_exact(tmp_path_factory, parts):
    path = tmp_path_factory.mktemp("stream") / "checkpoint.npz"
    stream = Stream()
    for left, right in parts:
        cases, controls = X[left] if left.size else None, Y[right] if right.size else None
        batch = read_batch(cases, background=controls, name="test")
        stream = stream.plus(*batch)
        stream.save(path)
        again = Stream.load(path)
        assert again.counts == stream.counts
        for name, moments in stream.moments.items():
            np.testing.assert_array_equal(again.moments[name].scatter.dense(), moments.scatter.dense())
            np.testing.assert_array_equal(again.moments[name].mean, moments.mean)
