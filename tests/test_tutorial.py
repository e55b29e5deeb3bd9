"""The tutorial's commands run as they stand, and print what it shows."""

import os
import shutil
import sys
from pathlib import Path

import pytest

import tutorial
from conftest import skip

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"


@pytest.mark.slow
def test_tutorial(tmp_path, need, monkeypatch):
    for library in ("matplotlib", "jinja2"):
        need(library)
    programs = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", programs, prepend=os.pathsep)
    if shutil.which("contrapca") is None:
        skip("the command contrapca is not installed")
    assert tutorial.run(PAGE, tmp_path) >= 3
    assert (tmp_path / "my_report.html").stat().st_size > 1e5


def test_commands_are_those_of_every_system():
    """No pipes, other programs, line breaks or quotes that only some shells understand."""
    commands = [command for command, _ in tutorial.steps(PAGE)]
    assert len(commands) >= 4
    for command in commands:
        assert command.startswith("contrapca ")
        assert not set(command) & set("|<>&;\\$`'*~\n")


def test_other_output_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo gamma 0.91\ngamma 0.95\n```\n")
    assert tutorial.steps(page) == [("echo gamma 0.91", "gamma 0.95")]
    assert not tutorial.same_text("gamma 0.91", "gamma 0.95")
    assert tutorial.same_text("gamma 0.912,\n[1. 2.]", "gamma  0.913, [1.  2. ]")
    assert not tutorial.same_text("1 2", "1 2 3")
