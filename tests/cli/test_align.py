"""Columns of two tables, matched by name."""

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca import Study
from contrapca.exceptions import GroupError, NonFiniteError, TableFileError
from contrapca.reading._study import align, align_to
from contrapca.reading._table import DataTable

LEFT = DataTable("l.csv", ["a", "b", "c"], np.arange(6.0).reshape(2, 3))


def right(names, **parts):
    values = np.array([[ord(name[0]) for name in names]] * 2, dtype=float)
    return DataTable("r.csv", names, values, **parts)


def test_order_and_common_columns():
    names, X, Y = align(LEFT, right(["c", "a", "b"]))
    assert names == ["a", "b", "c"]
    assert X is LEFT.values
    np.testing.assert_array_equal(Y[0], [97, 98, 99])
    names, X, Y = align(LEFT, right(["d", "c", "a"]), common=True)
    assert names == ["a", "c"]
    np.testing.assert_array_equal(X, LEFT.values[:, [0, 2]])
    np.testing.assert_array_equal(Y[0], [97, 99])
    names, X, _ = align(LEFT, right(["b", "a"]), without=["c"])
    assert (names, X.shape) == (["a", "b"], (2, 2))


def test_sparse_tables():
    sparse = DataTable("s.mtx", ["b", "c", "a"], sp.csr_array(np.array([[1.0, 0, 2], [0, 3, 0]])))
    _, _, Y = align(LEFT, sparse)
    np.testing.assert_array_equal(Y.toarray(), [[2, 1, 0], [0, 0, 3]])
    assert sparse.as_text("c").tolist() == ["0", "3"]


def test_what_is_lacking_is_listed():
    with pytest.raises(TableFileError, match=r"'r.csv' lacks 2 numeric columns of 'l.csv': 'b', 'c'; .* common=True"):
        align(LEFT, right(["a"]))
    with pytest.raises(TableFileError, match=r"'l.csv' lacks 1 numeric column of 'r.csv': 'd'"):
        align(LEFT, right(["a", "b", "c", "d"]))
    with pytest.raises(TableFileError, match=r"'b' \('b' not numeric there\)"):
        align(LEFT, right(["a", "c"], texts={"b": np.array(["x", "y"])}))
    with pytest.raises(TableFileError, match="no numeric columns in common"):
        align(LEFT, right(["d"]), common=True)
    many = DataTable("m.csv", [f"g{j}" for j in range(9)], np.ones((2, 9)))
    with pytest.raises(TableFileError, match="'g4' and 4 more"):
        align_to(many.names, 9, LEFT)


def test_reasons_for_what_is_lacking():
    with pytest.raises(TableFileError, match=r"'b' \('b' left out by ignore= or the like\); all are needed"):
        align_to(["a", "b"], 2, LEFT, without=["b"])
    with pytest.raises(TableFileError, match=r"because of units \(such as '5 mg'\)\); write such cells as numbers, or"):
        align(LEFT, right(["a", "c"], texts={"b": np.array(["5 mg", "7 mg"])}))
    with pytest.raises(TableFileError, match=r"in common\. 'b' is not used .* add thousands=True"):
        align(right(["d"]), right(["e"], texts={"b": np.array(["1.649,00", "2.005,50"])}))


def test_by_place_where_there_are_no_names():
    unnamed = right(["x0", "x1", "x2"], named=False)
    names, _, Y = align(LEFT, unnamed)
    assert names == ["a", "b", "c"]
    assert Y is unnamed.values
    assert align(unnamed, unnamed)[0] is None
    assert align_to(["p", "q", "r"], 3, unnamed) is unnamed.values
    with pytest.raises(TableFileError, match="2 numeric columns and the model has 3"):
        align_to(None, 3, right(["a", "b"]))


def test_names_reach_the_sentences_of_the_library():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 20, 3))
    X[0, 1] = np.inf
    with pytest.raises(NonFiniteError, match="'b'"):
        Study(X, background=Y, features=list("abc"))
    assert Study(sp.csr_array(Y), background=Y, features=list("abc")).features == ("a", "b", "c")
    for wrong, message in ((list("ab"), "2 names for 3 features"), (list("aba"), "more than once")):
        with pytest.raises(GroupError, match=message):
            Study(Y, background=Y[::-1], features=wrong)
