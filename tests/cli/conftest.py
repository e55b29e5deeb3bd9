"""Two small tables, and the command as a function."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from conftest import make_groups
from contrapca import cli
from csvfiles import write_csv

NAMES = [f"gene{j}" for j in range(6)]


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def pair():
    return make_groups(40, 30, 6, seed=3)


@pytest.fixture
def folder(tmp_path, monkeypatch, pair, need):
    """A working folder with cases.csv (with sample names and a label) and controls.csv (columns in another order)."""
    need("polars")
    monkeypatch.chdir(tmp_path)
    X, Y = pair
    rows = [[f"s{i}", ["mild", "severe"][i % 2], *row] for i, row in enumerate(X.tolist())]
    write_csv(tmp_path / "cases.csv", ["sample", "stage", *NAMES], rows)
    write_csv(tmp_path / "controls.csv", NAMES[::-1], Y[:, ::-1].tolist())
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run the command in this process."""

    def runner(*arguments):
        capsys.readouterr()
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as leaving:  # argparse
            code = leaving.code
        return Outcome(code, *capsys.readouterr())

    return runner


@pytest.fixture
def command():
    """Run the command in a process of its own."""

    def runner(*arguments, **options):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        arguments = [sys.executable, "-m", "contrapca", *map(str, arguments)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment, **options)
        return Outcome(done.returncode, done.stdout, done.stderr)

    return runner


@pytest.fixture
def tree():
    """What lies in a folder, hidden files and contents included."""

    def lister(folder):
        return {
            str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
        }

    return lister
