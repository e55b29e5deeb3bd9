"""How the command behaves whatever it does: help, exit codes, what goes where."""

import contextlib
import importlib
import json
import os
import subprocess
import sys

import pytest

from contrapca import __version__
from contrapca.cli._main import module_of
from contrapca.cli._parser import COMMANDS
from contrapca.exceptions import warn


def test_help_loads_nothing_heavy():
    """What keeps `contrapca --help` far under a second."""
    code = (
        "import sys, contrapca.cli\n"
        "try: contrapca.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'scipy', 'sklearn', 'matplotlib', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert "contrapca report cases.csv --background controls.csv -o report.html" in done.stdout


def test_every_command_has_help_and_a_module(run):
    for name in COMMANDS:
        assert callable(getattr(importlib.import_module(f"contrapca.cli.{module_of(name)}"), name))
        outcome = run(name, "--help")
        assert outcome.code == 0
        assert all(option in outcome.out for option in ("--quiet", "--json", "--debug"))
    assert run("--version") == (0, f"contrapca {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fti"], "there is no command 'fti'. Did you mean 'fit'?"),
        (["fit", "a.csv", "-o", "x", "--gama", "0.1"], "'--gamma'?"),
        (["repot"], "Did you mean 'report'? See contrapca --help.\n"),
        (["test", "a.csv", "--controls", "b.csv"], "--controls b.csv. Did you mean '--background'?"),
        (["report", "a.csv", "--background", "b.csv", "--color", "sex"], "Did you mean '--labels'?"),
        (["fit", "-o", "x"], "required: cases"),
        (["test", "a.csv", "my b.csv"], 'need --background: contrapca test a.csv --background "my b.csv"'),
        (["fit", "a.csv"], "required: -o/--output"),
        (["fit", "a.csv", "-o", "x", "--gamma", "much"], "'much' is not a finite number, 0 or more"),
        (["fit", "a.csv", "-o", "x", "--components", "0"], "'0' is not a whole number, 1 or more"),
        (["path", "a.csv", "-o", "x", "--gammas", "1"], "'1' is not a whole number, 2 or more"),
        (["fit", "a.csv", "-o", "x", "--seed", "-1"], "'-1' is not a whole number, 0 or more"),
        (["fit", "a.csv", "-o", "x", "--gam", "0.1"], "unrecognized arguments"),
    ],
)
def test_usage_errors_are_one_line(run, arguments, says):
    outcome = run(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert says in outcome.err
    assert outcome.err.startswith("contrapca: ")
    assert outcome.err.count("\n") == 1


def raising(error):
    def command(options):
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (KeyboardInterrupt(), 130, "stopped; nothing was written."),
        (ZeroDivisionError("oh"), 1, "a bug (ZeroDivisionError: oh); please run it again with --debug"),
        (MemoryError(), 2, "not enough memory"),
        (ValueError("two\nlines"), 2, "two lines"),
        (OSError(28, "No space left on device", "x.csv"), 2, "'x.csv': No space left on device."),
    ],
)
def test_exit_codes(run, monkeypatch, error, code, says):
    from contrapca.cli import _saved

    monkeypatch.setattr(_saved, "info", raising(error))
    outcome = run("info", "model.npz")
    assert outcome.code == code
    assert outcome.out == ""
    assert outcome.err.startswith("contrapca: ")
    assert says in outcome.err
    assert outcome.err.count("\n") == 1
    traced = run("info", "model.npz", "--debug")
    assert traced.code == code
    assert "Traceback" in traced.err


def test_ctrl_c_while_the_command_is_imported(run, monkeypatch):
    class Interrupted:
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "contrapca.cli._main", Interrupted())
    assert run("info", "model.npz") == (130, "", "contrapca: stopped; nothing was written.\n")


def test_warnings_are_lines(run, monkeypatch):
    from contrapca.cli import _saved

    def command(options):
        warn("look\n  here")
        return ["done"], {}

    monkeypatch.setattr(_saved, "info", command)
    assert run("info", "model.npz") == (0, "done\n", "contrapca: warning: look here\n")


def test_json_is_all_there_is(folder, run):
    arguments = ["fit", "cases.csv", "--background", "controls.csv", "-o", "results"]
    outcome = run(*arguments, "--json")
    summary = json.loads(outcome.out)
    assert outcome.err == ""
    assert summary["inputs"] == {
        "sources": ["cases.csv", "controls.csv"],
        "n_cases": 40,
        "n_controls": 30,
        "n_features": 6,
        "not_features": ["sample", "stage"],
    }
    assert summary["written"]["model"] == str(folder.relative_to(folder) / "results" / "model.npz")
    assert run(*arguments, "--force", "--quiet") == (0, "", "")
    assert "Not used as features: sample, stage" in run(*arguments, "--force").out


def test_numbers_that_json_lacks_are_null():
    import numpy as np

    from contrapca.cli._console import plain

    given = {"a": np.array([1.0, np.nan]), "b": np.float64(np.inf), "c": (np.int64(3), "x"), "d": np.bool_(True)}
    assert plain(given) == {"a": [1.0, None], "b": None, "c": [3, "x"], "d": True}


def test_names_that_the_terminal_cannot_show(folder, run):
    import io

    from contrapca import cli

    text = (folder / "controls.csv").read_text().replace("gene0", "gène0")
    (folder / "controls.csv").write_text(text, encoding="utf-8")
    written = io.BytesIO()
    with io.TextIOWrapper(written, encoding="ascii", write_through=True) as narrow, contextlib.redirect_stdout(narrow):
        assert cli.main(["fit", "controls.csv", "--method", "ppca", "-o", "results"]) == 0
        assert rb"g\xe8ne0" in written.getvalue()
    summary = run("info", "results/model.npz", "--json").out
    assert summary.isascii()
    assert "gène0" in json.loads(summary)["features"]


@pytest.mark.parametrize("quiet", [False, True])
def test_quiet_commands_show_no_progress(run, monkeypatch, quiet):
    from contrapca.cli import _saved

    monkeypatch.setattr(_saved, "info", lambda options: ([str(options.progress)], {"progress": options.progress}))
    assert run("info", "model.npz", *["--quiet"] * quiet).out == ("" if quiet else "True\n")
    assert json.loads(run("info", "model.npz", "--json", *["--quiet"] * quiet).out) == {"progress": not quiet}


def test_a_closed_pipe_is_no_error(folder, run):
    assert run("fit", "cases.csv", "--background", "controls.csv", "-o", "results").code == 0
    reading, writing = os.pipe()
    os.close(reading)
    arguments = [sys.executable, "-m", "contrapca", "info", "results/model.npz"]
    with os.fdopen(writing) as pipe:
        done = subprocess.run(arguments, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_escape_sequences_in_names_are_shown_not_obeyed(folder, run):
    """A name such as this one would clear the screen."""
    text = (folder / "cases.csv").read_text().replace("gene0", "\x1b[2Jgene0", 1)
    (folder / "cases.csv").write_text(text)
    (folder / "controls.csv").write_text((folder / "controls.csv").read_text().replace("gene0", "\x1b[2Jgene0", 1))
    outcome = run("fit", "cases.csv", "--background", "controls.csv", "-o", "results")
    assert outcome.code == 0
    for shown in (outcome.out, outcome.err, run("info", "results/model.npz").out):
        assert "\x1b" not in shown
    assert r"\x1b[2Jgene0" in outcome.out
