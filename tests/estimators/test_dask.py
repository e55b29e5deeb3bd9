"""Dask arrays: the same answers, each block read once, lazy where a model is applied, faults included."""

import os
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import make_groups
from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    bootstrap,
    check_background,
    contrast_path,
    contrast_test,
    gamma_limits,
    held_out_contrast,
)
from contrapca.exceptions import GroupError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pytestmark = pytest.mark.filterwarnings("ignore:PCPCA still shows")

X, Y = make_groups(150, 120, 6)
DX, DY = da.from_array(X, chunks=(40, 6)), da.from_array(Y, chunks=(70, 6))
HOLED_X, HOLED_Y = (np.where(np.random.default_rng(0).random(rows.shape) < 0.1, np.nan, rows) for rows in (X, Y))


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize(
    "model",
    [ContraPCA(2), PCPCA(2, scale="group"), CPCA(2, gamma=1.2), CPCA(2), CLVM(2, 1, tol=1e-10)],
    ids=str,
)
def test_every_estimator(model):
    found = type(model)(**model.get_params()).fit(DX, background=DY)
    whole = model.fit(X, background=Y)
    np.testing.assert_allclose(found.transform(DX).compute(), whole.transform(X), rtol=1e-6, atol=1e-7)
    assert found.get_params() == whole.get_params()


def test_float32_in_and_out():
    left, right = DX.astype(np.float32), DY.astype(np.float16)
    model = ContraPCA(2).fit(left, background=right)
    assert model.components_.dtype == model.transform(left).dtype == model.transform(left).compute().dtype == np.float32
    whole = ContraPCA(2).fit(X.astype(np.float32), background=Y.astype(np.float16))
    np.testing.assert_allclose(model.components_, whole.components_, atol=1e-4)


def test_all_else():
    assert gamma_limits(DX, background=DY).pcpca == pytest.approx(gamma_limits(X, background=Y).pcpca, rel=1e-9)
    found, expected = (contrast_path(PCPCA(2), a, background=b, gammas=4) for a, b in ((DX, DY), (X, Y)))
    np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, rtol=1e-8)
    np.testing.assert_allclose(found.latents(DX), expected.latents(X), atol=1e-8)
    found, expected = (contrast_test(a, background=b, random_state=0) for a, b in ((DX, DY), (X, Y)))
    np.testing.assert_allclose(found.p_values, expected.p_values, rtol=1e-8)
    found, expected = (held_out_contrast(PCPCA(1), a, background=b) for a, b in ((DX, DY), (X, Y)))
    np.testing.assert_allclose(found.log_ratios, expected.log_ratios, rtol=1e-8)
    model, whole = (PCPCA(1, gamma=0.2).fit(a, background=b) for a, b in ((DX, DY), (X, Y)))
    refits = bootstrap(model, DX, background=DY, n_resamples=20, random_state=0)
    plain = bootstrap(whole, X, background=Y, n_resamples=20, random_state=0)
    np.testing.assert_allclose(refits.W, plain.W, atol=1e-8)
    assert model.score(DX) == pytest.approx(whole.score(X))
    both = {"first": DY[:50], "second": Y[50:]}
    several = PCPCA(1, gamma=0.2).fit(DX, background=both, sample_weight=np.arange(150) % 3)
    plain = PCPCA(1, gamma=0.2).fit(X, background={"first": Y[:50], "second": Y[50:]}, sample_weight=np.arange(150) % 3)
    np.testing.assert_allclose(several.components_, plain.components_, atol=1e-9)
    y = np.arange(150) % 2
    stacked, plain = (PCPCA(1, gamma=0.2, background_label=1).fit(rows, y) for rows in (DX, X))
    np.testing.assert_allclose(stacked.components_, plain.components_, atol=1e-9)
    assert PCPCA(1, gamma=0.2).partial_fit(DX[:99], background=DY).partial_fit(DX[99:]).n_samples_seen_ == 150


@pytest.mark.parametrize("model", [PPCA(2, tol=1e-7), PCPCA(1, gamma=0.1, scale="pooled", tol=1e-6)], ids=str)
def test_missing_values(model):
    """Value and gradient come from the blocks."""
    left, right = (da.from_array(rows, chunks=(40, 6)) for rows in (HOLED_X, HOLED_Y))
    groups = ({}, {}) if isinstance(model, PPCA) else ({"background": right}, {"background": HOLED_Y})
    found = type(model)(**model.get_params()).fit(left, **groups[0])
    whole = model.fit(HOLED_X, **groups[1])
    close = 1e-4
    np.testing.assert_allclose(found.get_covariance(), whole.get_covariance(), rtol=close, atol=close)
    np.testing.assert_allclose(found.explained_variance_, whole.explained_variance_, rtol=close)
    np.testing.assert_allclose(found.transform(left).compute(), found.transform(HOLED_X), atol=1e-9)
    if isinstance(model, PPCA):
        weights = (np.arange(150) % 3).astype(float)
        found, whole = (PPCA(1).fit(rows, sample_weight=weights) for rows in (left, HOLED_X))
        np.testing.assert_allclose(found.get_covariance(), whole.get_covariance(), rtol=close, atol=close)


def test_resamples_of_incomplete_rows():
    """They failed with an error of operands."""
    model = PCPCA(1, gamma=0.1).fit(HOLED_X, background=HOLED_Y)
    left, right = (da.from_array(rows, chunks=(80, 6)) for rows in (HOLED_X, HOLED_Y))
    found, plain = (
        bootstrap(model, a, background=b, n_resamples=3, random_state=0) for a, b in ((left, right), (HOLED_X, HOLED_Y))
    )
    np.testing.assert_allclose(found.W, plain.W, atol=1e-3)


def test_means_by_generalised_least_squares():
    """Each product of their system is a sum over blocks."""
    left, right = (da.from_array(rows, chunks=(40, 6)) for rows in (HOLED_X, HOLED_Y))
    settings = {"n_components": 1, "gamma": 0.1, "mean": "gls", "tol": 1e-7}
    found, whole = (PCPCA(**settings).fit(a, background=b) for a, b in ((left, right), (HOLED_X, HOLED_Y)))
    np.testing.assert_allclose(found.mean_, whole.mean_, atol=1e-6)
    np.testing.assert_allclose(found.background_mean_, whole.background_mean_, atol=1e-6)
    np.testing.assert_allclose(found.get_covariance(), whole.get_covariance(), rtol=1e-4, atol=1e-4)
    assert np.abs(whole.mean_ - np.nanmean(HOLED_X, axis=0)).max() > 1e-3  # the control: they differ from the observed


def test_check_background():
    """Tables of equal shape are compared; the control is a table with itself."""
    other = da.from_array(Y[np.arange(150) % 120], chunks=(70, 6))
    assert not any("the same table" in line for line in check_background(DX, background=other).problems)
    assert any("the same table" in line for line in check_background(DX, background=DX.rechunk((70, 6))).problems)


# ---------------------------------------------------------------------- reading and laziness


def counted(rows, chunks, counts):
    """A dask array that counts how often each of its blocks is made."""

    def block(part, number):
        counts[number] = counts.get(number, 0) + 1
        return part

    parts = np.split(rows, np.cumsum(chunks)[:-1])
    made = [dask.delayed(block, pure=False)(part, k) for k, part in enumerate(parts)]
    return da.concatenate(
        [da.from_delayed(one, part.shape, meta=part[:0]) for one, part in zip(made, parts, strict=True)]
    )


def test_sparse_blocks_stay_sparse(monkeypatch):
    whole = [sp.csr_array(np.where(np.abs(rows) > 1, rows, 0)) for rows in (X, Y)]
    chunked = [da.from_array(rows, chunks=(40, 6), asarray=False, meta=rows[:0]) for rows in whole]
    with monkeypatch.context() as patch:
        patch.setattr("contrapca.data.rows._numpy.scatter", None)  # that of dense blocks
        model = PCPCA(2, gamma=0.2).fit(chunked[0], background=chunked[1])
    plain = PCPCA(2, gamma=0.2).fit(whole[0], background=whole[1])
    np.testing.assert_allclose(model.components_, plain.components_, atol=1e-9)
    np.testing.assert_allclose(model.transform(chunked[0]), plain.transform(whole[0]), atol=1e-9)


def test_transform_multiplies_no_rows_with_each_other(monkeypatch):
    model = PCPCA(2, gamma=0.2).fit(X, background=Y)
    monkeypatch.setattr("contrapca.data.rows._dask.block_moments", None)
    np.testing.assert_allclose(model.transform(DX), model.transform(X), atol=1e-10)


def test_masked_arrays():
    """Masked values are missing, whatever is below the mask (they were read)."""
    masked = np.ma.masked_array(np.where(np.isnan(HOLED_X), 1e6, HOLED_X), mask=np.isnan(HOLED_X))
    model = PPCA(1).fit(da.from_array(masked, chunks=(40, 6)))
    whole = PPCA(1).fit(masked)
    np.testing.assert_allclose(model.get_covariance(), whole.get_covariance(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.transform(da.from_array(masked, chunks=(40, 6))), model.transform(HOLED_X))


def test_each_block_is_read_once():
    left, right = {}, {}
    table, controls = counted(X, [50, 1, 0, 99], left), counted(Y, [20, 100], right)
    model = ContraPCA(2, shorten=False).fit(table, background=controls)
    assert set(left.values()) == set(right.values()) == {1}
    latents = model.transform(table)
    assert set(left.values()) == {1}  # nothing is computed yet
    latents.compute()
    assert set(left.values()) == {2}
    left.clear()
    ContraPCA(2).fit(table, background=controls)
    assert max(left.values()) <= 4  # means, medians of some rows, lengths, and moments of what counts less
    left.clear()
    CPCA(2).fit(table, background=controls)
    assert set(left.values()) == {3}  # once more for the moments of halves, and once for their latents
    lanczos = {}
    PCPCA(2, gamma=0.2, solver="lanczos").fit(counted(X, [70, 80], lanczos), background=Y)
    assert max(lanczos.values()) <= 2  # once for the means, once to persist it


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (DX.rechunk((40, 3)), GroupError, r"features of the dask array are in 2 chunks.*X.rechunk\({1: -1}\)"),
        (DX[DX[:, 0] > 0], GroupError, r"chunks of unknown size: call X.compute_chunk_sizes\(\) first"),
        (DX[:, 0], ValueError, "has 1 dimensions: a table has two"),
        (DX + 1j, ValueError, "Complex data not supported"),
        (DX.astype(str), ValueError, "values of type .*, not numbers"),
        (DX.astype("M8[ns]"), ValueError, "values of type datetime64"),
        (DX[:1], ValueError, "Found array with 1 sample"),
        (da.where(DX > 3, np.inf, DX), ValueError, "Input contains infinity"),
        (da.where(DX > 3, np.nan, DX), GroupError, "CPCA needs rows with missing values in memory"),
        (DX[:, :5], GroupError, "The foreground has 5 features and the background 6"),
    ],
)
def test_bad_arrays(table, error, message):
    model = CPCA(2, gamma=0.5).fit(X, background=Y)
    before = model.components_
    with pytest.raises(error, match=f"(?s){message}"):
        model.fit(table, background=DY)
    assert model.components_ is before


def test_bad_arrays_to_transform():
    model = PCPCA(2, gamma=0.2).fit(DX, background=DY)
    with pytest.raises(ValueError, match="X has 5 features, but 6 were fitted"):
        model.transform(DX[:, :5])
    with pytest.raises(GroupError, match="rechunk"):
        model.transform(DX.rechunk((40, 3)))
    with pytest.raises(ValueError, match="solver='dual' would read all rows into memory"):
        PCPCA(2, solver="dual").fit(DX, background=DY)


def test_blocks_that_fail():
    def fail(block, error):
        raise error

    for error, expected, message in (
        (MemoryError("too much"), MemoryError, r"A worker ran out.*largest block has 40 rows.*X.rechunk\(\(10, -1\)\)"),
        (OSError("no such disk"), OSError, "no such disk"),
    ):
        model = PPCA(2).fit(X)
        with pytest.raises(expected, match=message):
            model.fit(DX.map_blocks(fail, error, meta=X[:0]))
        assert model.n_effective_ == 150


# ---------------------------------------------------------------------- a cluster of processes


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        dask.config.set({"distributed.worker.daemon": False}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as found,
    ):
        yield found


def slow_block(block_info=None):
    time.sleep(0.2)
    (first, last), _ = block_info[None]["array-location"]
    rng = np.random.default_rng(first)
    return rng.standard_normal((last - first, 6)) * [3, 1, 1, 1, 1, 1] + rng.standard_normal(6)


def remote_table(n_blocks=24):
    chunks = ((50,) * n_blocks, (6,))
    return da.map_blocks(slow_block, chunks=chunks, dtype=np.float64, meta=np.empty((0, 6)))


@pytest.mark.cluster
def test_on_a_cluster(cluster):
    """Workers are processes of their own; one of them is killed, by its id, while it computes."""
    from distributed import Client

    with Client(cluster) as client, dask.config.set(scheduler=None):
        table = remote_table()
        expected = PCPCA(2, gamma=0.2).fit(table.compute(scheduler="synchronous"), background=Y)
        pids = list(client.run(os.getpid).values())
        assert os.getpid() not in pids
        assert len(set(pids)) == 2
        running = PCPCA(2, gamma=0.2)
        import threading

        worker = threading.Timer(1.0, os.kill, (pids[0], getattr(signal, "SIGKILL", signal.SIGTERM)))
        worker.start()
        running.fit(table, background=Y)
        worker.join()
        assert pids[0] not in client.run(os.getpid).values()  # it was killed, and replaced
        np.testing.assert_allclose(running.components_, expected.components_, atol=1e-10)
        np.testing.assert_allclose(running.transform(table[:120]).compute(), expected.transform(table[:120].compute()))
        left = da.from_array(HOLED_X, chunks=(80, 6))
        found, whole = (PPCA(2, tol=1e-8).fit(rows) for rows in (left, HOLED_X))
        np.testing.assert_allclose(found.get_covariance(), whole.get_covariance(), rtol=1e-5, atol=1e-5)
        sparse = da.from_array(X, chunks=(40, 6)).map_blocks(sp.csr_array, meta=sp.csr_array((0, 6)))
        lanczos = PCPCA(2, gamma=0.2, solver="lanczos").fit(sparse, background=Y)
        np.testing.assert_allclose(lanczos.components_, PCPCA(2, gamma=0.2).fit(X, background=Y).components_, atol=1e-7)


def greedy(rows):
    """A block that takes more memory than a worker has."""
    held = np.ones(2**26)  # 512 MB, of which every page is touched
    time.sleep(10)
    return rows + held[0]


@pytest.mark.cluster
def test_workers_out_of_memory():
    """Their nanny kills them, and the estimator stays as it was; the next fit finds a new one."""
    distributed = pytest.importorskip("distributed")
    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.worker.daemon": False}
    local = {"n_workers": 1, "threads_per_worker": 1, "memory_limit": "400 MB", "dashboard_address": ":0"}
    model = PCPCA(2, gamma=0.2).fit(X, background=Y)
    before = model.components_
    with (
        dask.config.set(settings),
        distributed.LocalCluster(**local) as cluster,
        distributed.Client(cluster),
        dask.config.set(scheduler=None),
    ):
        with pytest.raises(MemoryError, match=r"Workers died, most likely.*X.rechunk\(\(10, -1\)\)"):
            model.fit(DX.map_blocks(greedy, meta=X[:0]), background=DY)
        assert model.components_ is before
        model.fit(DX, background=DY)
    np.testing.assert_allclose(model.components_, before, atol=1e-10)
