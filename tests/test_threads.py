"""The threads of BLAS and OpenMP: held back while they would be in the way, and never left so."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import Queue

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from conftest import make_groups, skip
from contrapca import CLVM, CPCA, PCPCA, bootstrap, contrast_path, gamma_limits
from contrapca._util import threads
from contrapca._util.threads import calm_threads, single_thread
from contrapca.contrast import _eigen as _spectral
from contrapca.contrast._eigen import top_eigenpairs
from contrapca.data._groups import Groups
from contrapca.data.rows import _scipy
from contrapca.moments._contrast import contrast
from contrapca.moments._moments import Moments
from contrapca.moments._scatter import DenseScatter

POOLS = ThreadpoolController()  # looked for once, which takes long; all libraries are loaded by now


def settings(api=None):
    """(library, threads) of all pools as the calling thread sees them, or of those of one kind."""
    return sorted((pool["filepath"], pool["num_threads"]) for pool in POOLS.info() if api in (None, pool["user_api"]))


def release():
    """threadpoolctl 3.8 lets only one thread set the BLAS; from here on any may become that one."""
    for library in POOLS.lib_controllers:
        getattr(library, "clear_controlling_thread", lambda: None)()


@pytest.fixture(autouse=True)
def several_threads():
    """BLAS with three threads, whatever the machine and the environment say."""
    before = threadpool_limits(3)
    release()
    if not settings("blas"):
        skip("threadpoolctl sees no BLAS here")
    assert {count for _, count in settings("blas")} == {3}
    yield
    before.restore_original_limits()
    release()


class Visitor:
    """A thread that enters and leaves `single_thread` when it is told to."""

    def __init__(self):
        self._orders, self._done = Queue(), Queue()
        threading.Thread(target=self._work, daemon=True).start()
        self._done.get()

    def _work(self):
        self.before = settings("openmp")
        self._done.put(None)
        stack = ExitStack()
        for act in (lambda: stack.enter_context(single_thread()), stack.close):
            self._orders.get()
            act()
            self.seen = settings("openmp")
            self._done.put(None)

    def step(self):
        """Enter; the second time, leave."""
        self._orders.put(None)
        self._done.get(timeout=10)


def interleavings(counts):
    """All orders in which visitor k takes counts[k] steps."""
    if not any(counts):
        yield ()
    for k, left in enumerate(counts):
        if left:
            for rest in interleavings([*counts[:k], left - 1, *counts[k + 1 :]]):
                yield (k, *rest)


def test_any_interleaving_of_three_threads_leaves_things_as_they_were():
    orders = list(interleavings([2, 2, 2]))
    assert len(orders) == 90
    before = settings()
    for order in orders:
        visitors, inside = [Visitor() for _ in range(3)], set()
        for k in order:
            visitors[k].step()
            inside ^= {k}
            assert {count for _, count in settings("blas")} == ({1} if inside else {3}), order
        assert settings() == before, order
        assert all(visitor.seen == visitor.before for visitor in visitors)


def test_saving_and_restoring_by_everyone_would_not_do():
    """The control: what two users of threadpoolctl itself leave behind when they overlap, and why users are counted."""
    first, second = threadpool_limits(1), threadpool_limits(1)
    first.restore_original_limits()
    second.restore_original_limits()
    assert {count for _, count in settings("blas")} == {1}


def test_other_threads_may_set_limits_afterwards():
    """Ours are not the only limits: a user's, in any thread, still work once we are done, and are kept."""
    with single_thread():
        pass
    with ThreadPoolExecutor(2) as pool:
        assert {count for _, count in pool.submit(limited_to, 2).result()} == {2}
        pool.submit(PCPCA(2, gamma=0.3).fit, HOLES, background=Y).result()
        with threadpool_limits(2):
            assert {count for _, count in settings("blas")} == {2}
            pool.submit(PCPCA(2, gamma=0.3).fit, HOLES, background=Y).result()
            assert {count for _, count in settings("blas")} == {2}
    assert {count for _, count in settings("blas")} == {3}


def limited_to(count):
    with threadpool_limits(count):
        return settings("blas")


def test_limits_of_others_that_end_while_ours_last_are_not_brought_back():
    """Scikit-learn's k-means holds the BLAS to one thread, too; what we did not change is not ours to restore."""
    theirs = threadpool_limits(1)
    release()
    with single_thread():
        theirs.restore_original_limits()
        release()
        assert {count for _, count in settings("blas")} == {3}
    assert {count for _, count in settings("blas")} == {3}


def test_nested_and_failing_users_leave_things_as_they_were():
    before = settings()
    with single_thread(), single_thread():
        pass
    assert settings() == before
    with pytest.raises(KeyboardInterrupt), single_thread():
        raise KeyboardInterrupt
    assert settings() == before


def test_large_products_keep_their_threads():
    with calm_threads(10 * threads.SMALL_PRODUCT):
        assert {count for _, count in settings("blas")} == {3}
    with calm_threads(0.1 * threads.SMALL_PRODUCT):
        assert {count for _, count in settings()} == {1}


@pytest.mark.parametrize(("order", "expected"), [(199, 3), (200, 1), (400, 1), (1000, 3)])
def test_direct_solutions_of_middling_order_use_one_thread(monkeypatch, order, expected):
    seen = []

    def watched(matrix, **_):
        seen.extend(count for _, count in settings("blas"))
        return np.zeros(2), np.zeros((order, 2))

    monkeypatch.setattr(_spectral.scipy.linalg, "eigh", watched)
    scatter = DenseScatter(np.diag(np.arange(1.0, order + 1)))
    C = contrast(Groups.of(*(Moments(order, np.zeros(order), scatter) for _ in "xy")), 0.5)
    top_eigenpairs(C, 2, iterate=False)
    assert set(seen) == {expected}
    assert {count for _, count in settings("blas")} == {3}


def test_a_users_limit_binds_our_own_threads():
    many = 2 * threads.PARALLEL_MIN_VALUES
    assert threads.worker_count(many) <= 3
    with threadpool_limits(1):
        assert threads.worker_count(many) == 1
    assert threads.worker_count(10) == 1


def test_solvers_that_hold_the_blas_share_rows_among_our_threads(monkeypatch):
    sizes, of_rows = set(), _scipy.product

    def product(rows, *given):
        sizes.add(rows.shape[0])
        return of_rows(rows, *given)

    monkeypatch.setattr(_scipy, "product", product)
    monkeypatch.setattr(_scipy, "worker_count", lambda nnz: 1 if threads.one_blas_thread._users else 4)
    cases, controls = (sp.random(200, 50, 0.2, format="csr", random_state=seed) for seed in (0, 1))
    PCPCA(2, gamma=0.3, solver="lanczos").fit(cases, background=controls)
    assert max(sizes) < 100  # in four parts of about 50
    sizes.clear()
    with single_thread():  # one of several fits at once
        PCPCA(2, gamma=0.3, solver="lanczos").fit(cases, background=controls)
    assert sizes == {200}


X, Y = make_groups(60, 50, 6)
WIDE = np.random.default_rng(0).standard_normal((2, 20, 40))
HOLES = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)


@single_thread()
def clustered():
    """scikit-learn limits the BLAS by itself, inside our own limit."""
    return KMeans(3, n_init=1, random_state=0).fit(X)


TASKS = {
    "closed form": lambda: PCPCA(2).fit(X, background=Y).components_,
    "more features than rows": lambda: PCPCA(1, gamma=0.2).fit(WIDE[0], background=WIDE[1]).components_,
    "sparse": lambda: CPCA(2, gamma=0.5, solver="lanczos").fit(sp.csr_array(X), background=sp.csr_array(Y)).components_,
    "missing values": lambda: PCPCA(2, gamma=0.3).fit(HOLES, background=Y).components_,
    "CLVM": lambda: CLVM(1, 1).fit(X, background=Y).components_,
    "limits": lambda: np.array(list(gamma_limits(X, background=Y).gamma.values())),
    "path": lambda: contrast_path(PCPCA(2), X, background=Y, gammas=8).eigenvalues,
    "k-means": lambda: clustered().cluster_centers_,
    "bootstrap": lambda: (
        bootstrap(
            PCPCA(1, gamma=0.3).fit(X, background=Y), X, background=Y, n_resamples=20, random_state=0
        ).noise_variance
    ),
}


@pytest.fixture
def restless():
    """Python changes threads a thousand times as often as it would."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("restless")
def test_fits_in_several_threads_leave_things_as_they_were(monkeypatch):
    """And give what they give alone. Rows are split to threads of ours as well, as those of large tables are."""
    monkeypatch.setattr(threads, "PARALLEL_MIN_VALUES", 1)
    alone = {name: task() for name, task in TASKS.items()}
    before = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    jobs = [name for _ in range(6) for name in TASKS]
    np.random.default_rng(0).shuffle(jobs)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda name: TASKS[name](), jobs))
    assert {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()} == before
    for name, value in zip(jobs, found, strict=True):
        np.testing.assert_allclose(value, alone[name], rtol=1e-7, atol=1e-9, err_msg=name)
