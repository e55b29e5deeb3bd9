"""Imports that do not keep a command waiting: what is put off is there when it is used."""

import gc
import subprocess
import sys

import numpy as np
import pytest

from contrapca.cli import _main
from contrapca.cli._imports import defer, quick_imports

START = """
import sys
from contrapca.cli._imports import defer
defer("scipy.stats")
import scipy.stats
assert "scipy.stats._stats_py" not in sys.modules
"""
USES = {
    "an attribute": "assert scipy.stats.norm.cdf(0) == 0.5",
    "a name": "from scipy.stats import norm; assert norm.cdf(0) == 0.5",
    "from its parent": "from scipy import stats; assert stats is scipy.stats and stats.norm.cdf(0) == 0.5",
    "a module": "import scipy.stats.mstats; assert scipy.stats.mstats.gmean([1, 1]) == 1",
    "a private module": "import scipy.stats._continuous_distns as d; assert d.norm.cdf(0) == 0.5",
    "what is not there": """
try:
    scipy.stats.nothing
except AttributeError as error:
    assert "nothing" in str(error) and scipy.stats.norm.cdf(0) == 0.5
else:
    raise AssertionError
""",
    "several threads": """
from concurrent.futures import ThreadPoolExecutor
def use(_):
    from scipy.stats import zscore
    return zscore([1.0, 3.0])[1]
with ThreadPoolExecutor(4) as pool:
    assert list(pool.map(use, range(4))) == [1.0] * 4
""",
}


@pytest.mark.parametrize("use", USES)
def test_what_is_put_off_is_executed_when_it_is_used(use):
    checked = "\nassert '_stats_py' in dir(scipy.stats) and '__getattr__' not in vars(scipy.stats)"
    subprocess.run([sys.executable, "-c", START + USES[use] + checked], check=True, timeout=120)


def test_a_command_does_not_execute_it(folder):
    fit = ["fit", "cases.csv", "--background", "controls.csv", "--labels", "stage", "-o", "results", "--quiet"]
    code = f"import sys; from contrapca.cli._main import main; assert main({fit}) == 0"
    hidden = ("numpy.f2py.", "numpy.testing.", "pandas", "scipy.fft.", "scipy.io.", "scipy.optimize.", "scipy.stats.")
    checked = f"; assert not [name for name in sys.modules if name.startswith({hidden})]"
    subprocess.run([sys.executable, "-c", code + checked], cwd=folder, check=True, timeout=120)


USED_LATER = """
from contrapca.cli._imports import quick_imports
with quick_imports():
    import contrapca.cli._report
import numpy, pandas, scipy
from contrapca import PCPCA
X = pandas.DataFrame(numpy.random.default_rng(0).standard_normal((20, 3)), columns=["a", "b", "c"])
assert list(PCPCA(1, gamma=0).fit(X).feature_names_in_) == ["a", "b", "c"]
numpy.testing.assert_allclose(scipy.fft.irfft(scipy.fft.rfft([1.0, 2.0])), [1, 2])
assert scipy.io.mmread and scipy.optimize.brentq and scipy.stats.norm and numpy.f2py.get_include()
assert not hasattr(numpy.f2py, "nothing")  # it has a __getattr__ of its own
"""


def test_what_a_command_put_off_or_hid_can_be_used_afterwards(need):
    need("pandas")
    subprocess.run([sys.executable, "-c", USED_LATER], check=True, timeout=120)


def test_a_package_that_fails_is_imported_again(tmp_path, monkeypatch):
    package = tmp_path / "put_off"
    package.mkdir()
    (package / "__init__.py").write_text("raise ValueError('not yet')")
    monkeypatch.syspath_prepend(tmp_path)
    defer("put_off")
    import put_off

    with pytest.raises(ValueError, match="not yet"):
        put_off.answer  # noqa: B018
    (package / "__init__.py").write_text("answer = 42  # of another length than before")
    import put_off

    assert put_off.answer == 42
    monkeypatch.delitem(sys.modules, "put_off")


def test_what_is_missing_or_imported_is_left_alone():
    defer("no_such_package")
    defer("numpy")
    assert "no_such_package" not in sys.modules
    assert sys.modules["numpy"] is np


def test_imports_that_are_stopped_leave_garbage_collection_on(monkeypatch):
    def stopped(*_):
        assert not gc.isenabled()
        raise KeyboardInterrupt

    monkeypatch.setattr(_main.importlib, "import_module", stopped)
    assert _main.main(["info", "model.npz"]) == 130
    assert gc.isenabled()


def test_garbage_collection_that_was_off_stays_off():
    gc.disable()
    try:
        with quick_imports():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
