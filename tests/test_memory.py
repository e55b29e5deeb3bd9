"""How much memory there is, on systems that say so in different ways."""

import os

import numpy as np

from contrapca._util import arrays


def test_memory_that_nobody_knows_refuses_nothing(monkeypatch):
    def unknown(name):
        raise ValueError(name)

    assert 2**20 < arrays.available_memory() < np.inf
    monkeypatch.setattr(arrays.Path, "exists", lambda path: False)
    whole = arrays.available_memory()
    assert whole == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(os, "sysconf", unknown)
    assert arrays.available_memory() == np.inf
    monkeypatch.delattr(os, "sysconf")
    assert arrays.available_memory() == np.inf
