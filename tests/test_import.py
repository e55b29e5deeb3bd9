"""What importing costs and loads."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import contrapca
from contrapca import exceptions

OPTIONAL = [
    "anndata",
    "matplotlib",
    "pandas",
    "polars",
    "jinja2",
    "dask",
    "numba",
    "torch",
    "hypothesis",
    "pyarrow",
    "array_api_compat",
]


def test_import_loads_no_optional_library():
    # scikit-learn itself loads pandas where it is installed: what counts is what we add.
    code = (
        "import sys, sklearn.decomposition; before = set(sys.modules)\n"
        f"from contrapca import PCPCA; print([name for name in {OPTIONAL!r} if name in set(sys.modules) - before])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def test_names_load_on_first_use():
    code = (
        "import sys, contrapca\n"
        "assert not {'numpy', 'scipy', 'sklearn'} & set(sys.modules)\n"
        "contrapca.PCPCA; assert 'sklearn' in sys.modules and 'PCPCA' in vars(contrapca)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_public_names_exist():
    for name in contrapca.__all__:
        assert getattr(contrapca, name) is not None
    assert dir(contrapca) == sorted(contrapca.__all__)
    with pytest.raises(AttributeError, match="no attribute 'PCA'"):
        _ = contrapca.PCA


def test_type_checkers_see_what_loads():
    tree = ast.parse(Path(contrapca.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.asname: node.module for node in block.body for alias in node.names}
    assert {name: home for name, home in seen.items() if home} == contrapca._HOMES
    assert {name for name, home in seen.items() if not home} == set(contrapca._MODULES)


def test_exceptions_are_errors_and_warnings_alone():
    found = {
        name for name, value in vars(exceptions).items() if isinstance(value, type) and issubclass(value, Exception)
    }
    assert found == set(exceptions.__all__) == set(dir(exceptions))


def test_plots_load_without_matplotlib():
    """Drawing needs it, their names do not."""
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import numpy, contrapca\n"
        "model = contrapca.PPCA(1).fit(numpy.random.default_rng(0).normal(size=(20, 4)))\n"
        "try: contrapca.plots.loadings(model)\n"
        "except contrapca.exceptions.MissingExtraError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('This needs matplotlib. Install it with: pip install "contrapca[plot]"')


def test_missing_extra_names_itself(tmp_path, monkeypatch):
    from contrapca._util.optional import require
    from contrapca.exceptions import MissingExtraError

    with pytest.raises(MissingExtraError, match=r'pip install "contrapca\[plot\]"'):
        require("no_such_library", extra="plot")
    # A library that is there but broken is not a missing extra.
    (tmp_path / "broken_library.py").write_text("import no_such_library")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_library") as error:
        require("broken_library", extra="plot")
    assert not isinstance(error.value, MissingExtraError)
