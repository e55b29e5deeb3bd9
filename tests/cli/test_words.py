"""Help, and messages in the command line's own words."""

import re
import shlex

import numpy as np
import pytest

from contrapca import exceptions
from contrapca._util.text import as_command
from contrapca.cli import _saved
from contrapca.cli._parser import EXAMPLES, make_parsers, parse
from csvfiles import write_csv


def test_help_without_arguments(run):
    outcome = run()
    assert outcome.code == 0
    assert "examples:" in outcome.out
    alone = run("fit")
    assert alone.code == 2
    assert alone.out == ""
    assert "usage: contrapca fit" in alone.err


def test_every_help_has_examples_that_parse(run):
    _, commands = make_parsers()
    assert EXAMPLES.keys() == {"", *commands}
    for name in commands:
        assert "examples:\n  contrapca" in run(name, "--help").out
        for example in EXAMPLES[name]:
            assert parse(example.split()[1:]).command == name


# ---------------------------------------------------------------- words

# An argument of Python, or its classes and methods, in a sentence.
PYTHON = re.compile(r"\w+=[\w'\"\[(]|n_components|or CPCA|Pipeline|background_label|\w+\(\.*\)|\bnp\.")
ERRORS = [
    exceptions.RankError(2),
    exceptions.RankError(2, "background"),
    exceptions.InfeasibleGammaError(0.9, 0.5, 2, "the relative likelihood has no maximum", ", or CPCA, which is."),
    exceptions.UnboundedError(0.9, 0.5, 0.4, 2, "features run off"),
    exceptions.UnboundedError(0.9, float("nan"), None, 2, "features run off"),
]


@pytest.mark.parametrize("error", ERRORS, ids=str)
def test_errors_are_in_words_of_the_command_line(run, monkeypatch, error):
    def command(options):
        raise error

    monkeypatch.setattr(_saved, "info", command)
    assert PYTHON.search(str(error))  # the control
    outcome = run("info", "model.npz")
    assert outcome.code == 2
    assert "--components" in outcome.err
    assert not PYTHON.search(outcome.err), outcome.err


def test_results_are_in_words_of_the_command_line(folder, run, pair):
    """On the terminal there are cases and controls, options, and no names of Python."""
    holes = pair[0].copy()
    holes[::3, 1] = np.nan
    holes[5] *= 50  # a row that counts less
    write_csv(folder / "holes.csv", [f"gene{j}" for j in range(6)], holes)
    said = ""
    for cases in ("cases.csv", "holes.csv"):
        for method in ("contrapca", "pcpca", "cpca"):
            given = [cases, "--background", "controls.csv", "--method", method, "--components", "1", "-o", method]
            for command in (["fit", *given], ["path", *given, "--gammas", "3"]):
                outcome = run(*command, "--force")
                assert outcome.code == 0, outcome.err
                said += outcome.out + outcome.err
            said += run("info", f"{method}/model.npz").out + run("info", f"{method}/path.npz").out
        said += run("test", cases, "--background", "controls.csv").out
        said += run("impute", cases, "--background", "controls.csv", "-o", "filled.csv", "--force").out
    assert "count less." in said or "counts less." in said
    python = re.compile(rf"{PYTHON.pattern}|[Ff]oreground|(?<!--)[Bb]ackground|held_out|_\b")
    assert [line for line in said.splitlines() if python.search(line)] == []


def test_what_missing_values_allow_is_said_in_consistent_numbers(folder, run, pair):
    """One gamma that works, one bound, whatever was asked for; what is said to work does."""
    holes = pair[0].copy()
    holes[::3, 1] = np.nan
    write_csv(folder / "holes.csv", [f"gene{j}" for j in range(6)], holes)
    given = ["fit", "holes.csv", "--background", "controls.csv", "--no-test", "-o", "out", "--gamma"]
    found = set()
    for gamma in ("0.9", "5"):
        sentence = run(*given, gamma).err
        found.add(re.search(r"works is --gamma (\S+), and (\S+) is an upper bound", sentence).groups())
        assert len(set(re.findall(r"\d+\.\d+|--gamma 5", sentence)) - {"0.9", "--gamma 5"}) == 2, sentence
    ((works, bound),) = found
    assert float(works) < float(bound)
    assert run(*given, works).code == 0


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("age", "age"),
        ("patient id", '"patient id"'),
        ("größe", '"größe"'),
        ("it's", '"it\'s"'),
        (r"C:\data\x y.csv", r'"C:\data\x y.csv"'),
        ("$5", "'$5'"),
        ('5" pipe', "'5\" pipe'"),
        (r"\\server\x", r"'\\server\x'"),
        ("", '""'),
    ],
)
def test_words_are_quoted_for_every_shell(word, quoted):
    assert as_command([word]) == quoted
    assert shlex.split(f"contrapca {quoted}") == ["contrapca", word]


def test_what_goes_wrong_is_said_in_options(folder, run, pair):
    X, _ = pair
    holes = X.copy()
    holes[3, 2] = np.nan
    names = [f"gene{j}" for j in range(6)]
    write_csv(folder / "holes.csv", names, holes)
    write_csv(folder / "flat.csv", names, np.outer(X[:, 0], np.arange(1, 7)))
    write_csv(folder / "far.csv", names, X + 500)
    tables = {
        "cases.csv": "controls.csv",
        "flat.csv": "controls.csv",
        "holes.csv": "controls.csv",
        "far.csv": "cases.csv",
    }
    options = [
        ["--gamma", "3"],
        ["--components", "5"],
        ["--method", "cpca"],
        ["--scale", "pooled", "--method", "pcpca"],
    ]
    said = []
    for cases, controls in tables.items():
        for chosen in [["--method", "cpca"]] if cases == "holes.csv" else options:
            outcome = run("fit", cases, "--background", controls, *chosen, "-o", "results", "--force", "--no-test")
            assert outcome.code in (0, 2)
            said += outcome.err.splitlines()
    said += run("test", "holes.csv", "--background", "controls.csv").err.splitlines()
    assert len(said) > 8
    assert [line for line in said if PYTHON.search(line)] == []
