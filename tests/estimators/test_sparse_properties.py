"""Penalised sparse components of any table fulfil the conditions of a maximum."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from conftest import make_groups
from contrapca import SparseCPCA


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), penalty=st.floats(0.01, 0.9), gamma=st.floats(0, 0.5))
def test_conditions_of_any_table(seed, penalty, gamma):
    X, Y = make_groups(40, 30, 9, seed=seed)
    model = SparseCPCA(1, penalty=penalty, gamma=gamma).fit(X, background=Y)
    C = oracles.contrast_matrix(X, Y, gamma) / len(X)
    assert oracles.penalty_conditions(C, model.components_[0], penalty * np.linalg.eigvalsh(C)[-1] / 2) < 1e-8
