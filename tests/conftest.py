"""Shared fixtures, and the rule that in CI nothing may be skipped."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:  # processes side by side: threads of theirs would fight for the same cores
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")

import numpy as np
import pytest

from contrapca._util import progress
from contrapca.data._tables import column_means
from contrapca.datasets import load_mouse_protein, mouse_arrays
from contrapca.moments._moments import row_moments

REQUIRE_ALL = os.environ.get("CONTRAPCA_REQUIRE_ALL") == "1"


def pytest_runtest_teardown() -> None:
    """Figures of one test, scanpy's with rows of no height among them, are not the current ones of the next."""
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


def _installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


# Without hypothesis (the core-only job) its modules cannot even be imported.
collect_ignore_glob = [] if REQUIRE_ALL or _installed("hypothesis") else ["*_properties.py", "strategies.py"]

if _installed("hypothesis"):
    from hypothesis import settings

    settings.register_profile("contrapca", deadline=None, derandomize=True, print_blob=True)
    settings.load_profile("contrapca")


def skip(reason: str) -> None:
    """Skip the test, or fail where everything is required."""
    (pytest.fail if REQUIRE_ALL else pytest.skip)(reason)


@pytest.fixture(scope="session")
def need():
    """Import a library that the core does not need, or skip."""

    def importer(library: str):
        if not _installed(library.partition(".")[0]):
            skip(f"{library} is not installed")
        return importlib.import_module(library)

    return importer


@pytest.fixture
def watched(monkeypatch):
    """As if somebody watched standard error, without two seconds of patience."""
    monkeypatch.setattr(progress, "watched", lambda: True)
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = os.environ.get("CONTRAPCA_DATA")
    if not folder or not Path(folder).is_dir():
        skip("CONTRAPCA_DATA does not name a folder with the real data")
    return Path(folder)


@pytest.fixture(scope="session")
def mouse_raw(data_folder):
    """Mouse proteins as in the file, NaN where missing: (foreground, background, genotype, feature names)."""
    data = load_mouse_protein()
    return data.foreground, data.background, data.labels, data.feature_names


@pytest.fixture(scope="session")
def mouse(mouse_raw):
    """The same as the reference prepares them: missing values as 0, then standardised."""
    X, Y, genotype, names = mouse_raw

    def standardised(table):
        table = np.nan_to_num(table)
        return (table - table.mean(axis=0)) / table.std(axis=0)

    return standardised(X), standardised(Y), genotype, names


@pytest.fixture(scope="session")
def mouse_classes(data_folder):
    """All mouse proteins, missing values as 0, without the second of two equal columns: by genotype, treatment, ..."""
    arrays = mouse_arrays()
    values = np.nan_to_num(arrays["values"])
    values = values[:, np.sort(np.unique(values, axis=1, return_index=True)[1])]
    columns = (arrays[name] for name in ("genotype", "treatment", "behavior"))
    names = np.array([" ".join(row) for row in zip(*columns, strict=True)])
    return {str(name): values[names == name] for name in np.unique(names)}


def make_groups(n, m, D, seed=0, signal=3.0, nuisance=5.0):
    """Foreground with a planted direction, both groups with a nuisance direction; (X, Y)."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.standard_normal((D, 3)))[0]
    X, Y = rng.standard_normal((n, D)), rng.standard_normal((m, D))
    X += nuisance * np.outer(rng.standard_normal(n), directions[:, 0]) + rng.standard_normal(D)
    Y += nuisance * np.outer(rng.standard_normal(m), directions[:, 0]) + rng.standard_normal(D)
    X += signal * np.outer(rng.standard_normal(n), directions[:, 1])
    X += 0.7 * signal * np.outer(rng.standard_normal(n), directions[:, 2])
    return X, Y


def planted_features(n, m, D, size, strength, seed, shared=3):
    """Foreground with a direction of `size` features over shared dense directions; (X, Y, the features)."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, D)), rng.standard_normal((m, D))
    nuisance = 15 * rng.standard_normal((D, shared)) / np.sqrt(D)
    X += rng.standard_normal((n, shared)) @ nuisance.T
    Y += rng.standard_normal((m, shared)) @ nuisance.T
    support = np.sort(rng.choice(D, size, replace=False))
    v = np.zeros(D)
    v[support] = rng.choice([-1, 1], size) / np.sqrt(size)
    return X + strength * np.outer(rng.standard_normal(n), v), Y, support


def implicit_moments(rows):
    """Moments whose scatter matrix is never formed: the rows are kept."""
    return row_moments(rows, column_means(rows))


@pytest.fixture(scope="session")
def groups():
    """One ordinary pair of tables: 150 + 120 rows, 12 features."""
    return make_groups(150, 120, 12)
