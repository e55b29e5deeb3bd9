"""ContraPCA of large tables: few directions, found by products with blocks of vectors (F49)."""

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca import PCPCA, ContraPCA
from contrapca.contrast import _few_directions
from contrapca.contrast._few_directions import Directions, random_block
from contrapca.data.rows import _scipy
from contrapca.moments._scatter import InnerScatter, RowScatter
from oracle_contrapca import ratio_axes

K, ROWS, GENES = 3, (900, 700), 1000


@pytest.fixture(scope="module")
def cells():
    """Variances that fall off without a plateau, the same in both groups but for two directions of the cases; sparse
    storage, float32."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(GENES, GENES)))[0].T
    deviations = 6 / np.sqrt(np.arange(1, GENES + 1))
    X, Y = (rng.normal(size=(n, GENES)) * deviations for n in ROWS)
    X[:, [40, 60]] *= [4, 3]
    return [sp.csr_array((table @ axes).astype(np.float32)) for table in (X, Y)]


@pytest.fixture(scope="module")
def spikes():
    """White noise with three strong shared directions and two of the cases: a plateau; float64."""
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.normal(size=(GENES, 5)))[0].T
    X, Y = (rng.normal(size=(n, GENES)) for n in ROWS)
    X += rng.normal(size=(ROWS[0], 5)) * [9, 8, 7, 6, 5] @ axes
    Y += rng.normal(size=(ROWS[1], 3)) * [9, 8, 7] @ axes[:3]
    return [sp.csr_array(X), sp.csr_array(Y)]


@pytest.fixture
def few_products(monkeypatch):
    """As for tables that are large enough for it."""
    monkeypatch.setattr("contrapca.moments._solver.PRODUCTS", 0)


def fitted(tables, k=K, **settings):
    return ContraPCA(k, **settings).fit(tables[0], background=tables[1])


def cosines(one, other):
    return np.abs(np.sum(one.components_ * other.components_, axis=1))


def worst_ratio(model, exact):
    """Relative error of the ratios, but for a common factor, which is that of the floor."""
    found = model.axis_ratios_ / exact
    return np.max(np.abs(found / found[0] - 1))


def test_ratio_axes_are_those_of_the_whole_space(cells, few_products, monkeypatch):
    model = fitted(cells, shorten=False)
    assert (model.plateau_.axes, model.solver_.name) == ("ratio", "lanczos")
    tables = [(table.toarray() - model.mean_) / model.scale_ for table in cells]
    ratios, directions = ratio_axes(*(np.cov(table.T, ddof=0) for table in tables), K + 1)
    # A residual of eps, in parts of A v, turns an axis by eps over the gap between ratios, which change by its square.
    gap = np.min(-np.diff(ratios) / ratios[:K])
    assert worst_ratio(model, ratios[:K]) < 4 * _few_directions.ACCURACY**2 / gap
    assert model.axis_ratios_[0] == pytest.approx(ratios[0], rel=0.01)
    alike = np.abs(np.sum(model.components_ * directions[:, :K].T, axis=1))
    assert alike.min() > 1 - (_few_directions.ACCURACY / gap) ** 2 / 2
    # The control: what is strongest in the groups is not enough.
    monkeypatch.setattr(_few_directions, "ACCURACY", np.inf)
    assert worst_ratio(fitted(cells, shorten=False), ratios[:K]) > 1e-2


def test_contrast_axes_are_those_of_all_eigenpairs(spikes, few_products):
    model, exact = fitted(spikes, 2), fitted(spikes, 2, solver="eigh")
    assert (model.plateau_.axes, model.plateau_.counts) == ("contrast", exact.plateau_.counts)
    assert model.n_latent_ == exact.n_latent_
    np.testing.assert_allclose(model.axis_ratios_, exact.axis_ratios_, rtol=1e-2)
    assert np.min(cosines(model, exact)) > 0.999
    assert model.gamma_max_ == pytest.approx(exact.gamma_max_, rel=0.02)
    assert model.noise_variance_ == pytest.approx(exact.noise_variance_, rel=0.01)


def test_the_limit_is_a_bound_from_above(cells, few_products):
    """The trace outside few directions is at least that outside the best ones, so f of F3 is too large."""
    model, exact = fitted(cells), fitted(cells, solver="eigh")
    assert (model.gamma_max_is_bound_, exact.gamma_max_is_bound_) == (True, False)
    assert exact.gamma_max_ <= model.gamma_max_ * (1 + 1e-6) <= 1.1 * exact.gamma_max_


def test_large_matrices_are_searched_too(spikes, monkeypatch):
    dense = [table.toarray() for table in spikes]
    exact = fitted(dense, 2)
    monkeypatch.setattr(_few_directions, "LEAST_ORDER", 900)
    searched = []
    original = Directions.add
    monkeypatch.setattr(Directions, "add", lambda self, *given: searched.append(1) or original(self, *given))
    model = fitted(dense, 2)
    assert searched
    assert np.min(cosines(model, exact)) > 0.999


def test_few_rows_of_many_features_are_searched_in_their_span(monkeypatch):
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((90, 400)), rng.standard_normal((80, 400))
    X[:, :K] *= 20
    exact = fitted((X, Y), K)
    monkeypatch.setattr(_few_directions, "LEAST_ORDER", 100)
    model = fitted((X, Y), K)
    assert model.gamma_max_is_bound_
    assert model.components_.shape == (K, 400)
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    assert np.min(cosines(model, exact)) > 0.999
    assert model.transform(X).shape == (90, K)


def test_products_are_few_and_none_is_with_a_single_vector(cells, few_products, monkeypatch):
    """So float32 rows are never copied in float64, and nothing is of the order of the features."""
    columns = {"coarse": [], "exact": []}

    def counted(name, original):
        return lambda self, V: columns[name].append(V.shape[1]) or original(self, V)

    monkeypatch.setattr(RowScatter, "coarse_matmul", counted("coarse", RowScatter.coarse_matmul))
    monkeypatch.setattr(RowScatter, "matmul", counted("exact", RowScatter.matmul))
    monkeypatch.setattr(RowScatter, "dense", lambda self: pytest.fail("a matrix was formed"))
    fitted(cells)
    # The count of F16 in two units, and the axes of both groups: less than ten vectors for each of some 50 dimensions.
    assert sum(columns["coarse"]) < 10 * 2 * (50 + K)
    assert not columns["exact"]
    PCPCA(K, gamma=0.1).fit(cells[0], background=cells[1])  # the control: an exact solution needs single ones
    assert columns["exact"].count(1) > 20


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_directions_and_what_the_scatter_makes_of_them(kind):
    rng = np.random.default_rng(2)
    rows = sp.random_array((80, 40), density=0.3, format="csr", rng=rng, dtype=np.float64).astype(kind)
    mean, centred = np.asarray(rows.mean(axis=0)), rows.toarray() - np.asarray(rows.mean(axis=0))
    search = Directions([RowScatter(rows, mean, np.ones(40))])
    block = random_block(40)
    for _ in range(5):  # the last finds nothing new
        search.add(np.hstack([block, block[:, :1]]))  # a repeated vector adds nothing
        block = search.images[0][:, -16:]
    assert search.size == 40
    tolerance = 1e-4 if kind == np.float32 else 1e-10
    np.testing.assert_allclose(search.basis.T @ search.basis, np.eye(40), atol=1e-10)
    np.testing.assert_allclose(search.images[0], centred.T @ centred @ search.basis, atol=tolerance * 80)
    np.testing.assert_allclose(search.inner[0], search.basis.T @ search.images[0], atol=tolerance * 80)


def test_the_scatter_of_few_directions_knows_the_trace_of_all():
    assert InnerScatter(np.eye(2), 7.0).trace == 7.0
    assert InnerScatter(np.eye(2), 7.0).dense().trace() == 2.0


def test_products_in_another_type_convert_blocks(monkeypatch):
    rng = np.random.default_rng(3)
    rows, V = sp.random_array((90, 12), density=0.4, format="csr", rng=rng, dtype=np.float64), rng.normal(size=(12, 9))
    single, weights = rows.astype(np.float32), rng.random(90)
    mean = np.asarray(rows.mean(axis=0))
    centred = single.toarray().astype(float) - mean
    expected = centred.T @ (weights[:, None] * (centred @ V))
    monkeypatch.setattr(_scipy, "CONVERTED_BLOCK", 50)
    np.testing.assert_allclose(_scipy.product(single, mean, V, weights), expected, atol=1e-12)
    coarse = _scipy.product(single, mean, V.astype(np.float32), weights)
    error = np.abs(coarse - expected).max()
    assert 1e-12 < error < 1e-3  # in float32: the control of the line above


@pytest.mark.parametrize("shapes", [((12, 300), (10, 300)), ((30, 300), (20, 300))])
def test_few_rows_exhaust_their_space(shapes, few_products):
    """Then nothing is left to search, and the fit is nearly exact."""
    rng = np.random.default_rng(4)
    tables = [sp.random_array(shape, density=0.6, format="csr", rng=rng, dtype=np.float64) for shape in shapes]
    model, exact = fitted(tables, 1), fitted(tables, 1, solver="eigh")
    assert model.solver_.name == "lanczos"
    assert model.n_latent_ == exact.n_latent_
    np.testing.assert_allclose(model.axis_ratios_, exact.axis_ratios_, rtol=1e-4)
    np.testing.assert_allclose(model.gamma_max_, exact.gamma_max_, rtol=1e-4)
    assert cosines(model, exact).min() > 1 - 1e-4


def test_two_features_that_vary(few_products):
    rng = np.random.default_rng(5)
    tables = [sp.lil_array((50, 300)) for _ in range(2)]
    for table, scale in zip(tables, (3.0, 1.0), strict=True):
        table[:, [0]], table[:, [1]] = scale * rng.normal(size=(50, 1)), rng.normal(size=(50, 1))
    model = fitted([table.tocsr() for table in tables], 1)
    assert np.abs(model.components_[0, 0]) > 0.9
