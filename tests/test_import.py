"""What importing costs and loads."""

import subprocess
import sys

import pytest

import contrapca

OPTIONAL = ["matplotlib", "pandas", "polars", "plotly", "dask", "numba", "torch", "hypothesis", "pyarrow"]


def test_import_loads_no_optional_library():
    code = f"import sys, contrapca; print([name for name in {OPTIONAL!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def test_public_names_exist():
    for name in contrapca.__all__:
        if name != "plots":  # needs matplotlib
            assert getattr(contrapca, name) is not None
    assert dir(contrapca) == sorted(contrapca.__all__)
    with pytest.raises(AttributeError, match="no attribute 'PCA'"):
        _ = contrapca.PCA


def test_missing_extra_names_itself(monkeypatch):
    from contrapca._optional import require
    from contrapca.exceptions import MissingExtraError

    with pytest.raises(MissingExtraError, match=r'pip install "contrapca\[plot\]"'):
        require("no_such_library", extra="plot")
    # A library that is there but broken is not a missing extra.
    monkeypatch.setitem(sys.modules, "json", None)
    with pytest.raises(ModuleNotFoundError):
        require("http.server.none", extra="plot")
