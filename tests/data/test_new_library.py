"""A kind of table that is new to the package needs one module in `rows` and a line in `STORAGES`, nothing else."""

import types

import numpy as np
import pytest

from contrapca import CPCA, PCPCA, PPCA, ContraPCA, RatioPCA, gamma_limits
from contrapca.data.rows import _numpy
from contrapca.data.rows._storage import STORAGES, Storage


class Table:
    """Columns that NumPy cannot read, with no more than rows need."""

    __array__ = None  # np.asarray raises

    def __init__(self, columns):
        self.columns_ = columns

    @property
    def shape(self):
        return len(self.columns_[0]), len(self.columns_)

    @property
    def dtype(self):
        return self.columns_[0].dtype

    def __getitem__(self, rows):
        rows, every = rows if isinstance(rows, tuple) else (rows, slice(None))
        assert every == slice(None)
        return Table([column[rows] for column in self.columns_])


def filled(rows):
    return np.column_stack(rows.columns_) if isinstance(rows, Table) else rows


def of_columns(function):
    return lambda rows, *args: function(filled(rows), *args)


@pytest.fixture
def library(monkeypatch):
    """The module that a contributor would write: NumPy's functions of the columns, side by side."""
    module = types.ModuleType("columns")
    for operation in (name for name in vars(Storage) if not name.startswith("_")):
        setattr(module, operation, of_columns(getattr(_numpy, operation)))
    module.prepared, module.view = filled, Table.__getitem__
    monkeypatch.setitem(STORAGES, module, lambda rows: isinstance(rows, Table))


def columns(X):
    return Table([np.ascontiguousarray(column) for column in X.T])


def groups(rows, features):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, rows, features))
    X[:, 0] *= 3
    return X, Y + 2


ESTIMATORS = [PCPCA(2, gamma=0.2), ContraPCA(2), CPCA(2, gamma=0.3), RatioPCA(2), PCPCA(2, gamma=0.2, scale="pooled")]


@pytest.mark.parametrize("shape", [(60, 6), (15, 40)], ids=["tall", "wide"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_its_tables_give_the_numbers_of_arrays(library, estimator, shape):
    X, Y = groups(*shape)
    with pytest.raises(TypeError):
        np.asarray(columns(X)).astype(float)
    expected = estimator.fit(X, background=Y)
    components, latents = expected.components_, expected.transform(Y, center="background")
    found = estimator.fit(columns(X), background=columns(Y))
    np.testing.assert_allclose(found.components_, components, atol=1e-12)
    np.testing.assert_allclose(found.transform(columns(Y), center="background"), latents, atol=1e-12)
    with pytest.raises(ValueError, match="features"):
        found.transform(columns(X[:, :-1]))


def test_so_do_weights_densities_and_limits(library):
    X, Y = groups(60, 6)
    weights = np.arange(60.0) % 3  # some of them 0
    expected = PCPCA(2, gamma=0.2).fit(X, background=Y, sample_weight=weights)
    found = PCPCA(2, gamma=0.2).fit(columns(X), background=columns(Y), sample_weight=weights)
    np.testing.assert_allclose(found.score_samples(columns(X)), expected.score_samples(X), rtol=1e-12)
    ours = gamma_limits(columns(X), background=columns(Y), n_components=2).pcpca
    assert ours == pytest.approx(gamma_limits(X, background=Y, n_components=2).pcpca, rel=1e-12)


@pytest.mark.parametrize("module", ["csr", "lazy", "parquet", "blocked", "numpy_like.core"])
def test_the_name_of_its_module_says_nothing(module):
    """A type is known by what it is; one from a module called like one of ours was taken for its rows."""
    kind = type("Rows", (np.ndarray,), {"__module__": module})
    X, Y = groups(60, 6)
    found = PCPCA(2, gamma=0.2).fit(X.view(kind), background=Y.view(kind))
    np.testing.assert_array_equal(found.components_, PCPCA(2, gamma=0.2).fit(X, background=Y).components_)
    like = type("Like", (), {"__module__": module, "__array__": lambda self, dtype=None, copy=None: X})
    np.testing.assert_array_equal(PPCA(2).fit(like()).components_, PPCA(2).fit(X).components_)


def test_a_table_of_no_known_library_is_refused():
    unknown = type("Unknown", (), {"shape": (4, 2), "dtype": np.dtype(float)})()
    with pytest.raises(ValueError, match="Expected 2D array"):
        PCPCA(1, gamma=0).fit(unknown)
