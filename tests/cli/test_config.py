"""Options in files, help, completion, and messages in the command line's own words."""

import re
import shlex
import shutil
import subprocess
import tomllib

import numpy as np
import pytest

from conftest import skip
from contrapca import exceptions
from contrapca._util.text import as_command
from contrapca.cli._parser import EXAMPLES, make_parser
from contrapca.cli._words import in_command_words
from csvfiles import read_csv, write_csv

FIT = ["fit", "cases.csv", "--background", "controls.csv", "--labels", "stage", "--components", "1", "--no-test"]


def test_a_saved_configuration_repeats_the_run(folder, run):
    options = ["--gamma", "0.2", "--ignore", "gene1", "gene2", "--missing", "-999", "ND", "--seed", "3", "--header"]
    assert run(*FIT, *options, "-o", "first", "--save-config", "run.toml").code == 0
    facts = tomllib.loads((folder / "run.toml").read_text())
    assert facts["command"] == "fit"
    assert facts["missing"] == ["-999", "ND"]
    assert (facts["gamma"], facts["ignore"], facts["header"]) == (0.2, ["gene1", "gene2"], True)
    assert run("fit", "--config", "run.toml", "-o", "second").code == 0
    for name in ("latents.csv", "loadings.csv"):
        assert (folder / "first" / name).read_bytes() == (folder / "second" / name).read_bytes()
    # What is given beside it comes first; positions, too.
    assert run("fit", "controls.csv", "--config=run.toml", "--gamma", "0", "--labels", "gene0", "-o", "third").code == 0
    assert len(read_csv(folder / "third" / "latents.csv")) == 61
    outcome = run(*FIT, "-o", "fourth", "--save-config", "run.toml")
    assert outcome.code == 2
    assert "'run.toml' exists" in outcome.err
    assert not (folder / "fourth").exists()


def test_a_configuration_of_an_export_has_options_of_exports_only(folder, run, need):
    need("matplotlib")
    assert run("export", *FIT[1:], "-o", "first", "--save-config", "run.toml").code == 0
    assert run("export", "--config", "run.toml", "-o", "second").code == 0
    assert (folder / "first" / "methods.txt").read_bytes() == (folder / "second" / "methods.txt").read_bytes()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gama = 1", "has no option 'gama'. Did you mean 'gamma'?\n"),
        ("gamma = ", "is not a TOML file"),
        ('command = "report"', "is of contrapca report, not of contrapca fit"),
        ("components = 0", "'0' is not a whole number, 1 or more"),
        ("save-config = 'x'", "has no option 'save-config'"),
        (None, "No such file"),
    ],
)
def test_bad_configurations(folder, run, text, says):
    if text is not None:
        (folder / "run.toml").write_text(text)
    outcome = run("fit", "cases.csv", "--background", "controls.csv", "--config", "run.toml", "-o", "results")
    assert outcome.code == 2
    assert says in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (folder / "results").exists()


def test_help_without_arguments(run):
    outcome = run()
    assert outcome.code == 0
    assert "examples:" in outcome.out
    alone = run("fit")
    assert alone.code == 2
    assert alone.out == ""
    assert "usage: contrapca fit" in alone.err


def test_every_help_has_examples_that_parse(run):
    parser = make_parser()
    commands = parser.commands
    assert EXAMPLES.keys() == {"", *commands}
    for name in commands:
        assert "examples:\n  contrapca" in run(name, "--help").out or name == "completion"
        for example in EXAMPLES[name]:
            if name != "completion" and "--config" not in example:
                assert parser.parse_args(example.split()[1:]).command == name


def test_completion_of_bash(run, tmp_path):
    bash = shutil.which("bash")
    if bash is None:
        skip("there is no bash")
    script = run("completion", "bash").out

    def complete(*words):
        listing = " ".join(f"'{word}'" for word in words)
        code = f"{script}\nCOMP_WORDS=({listing}); COMP_CWORD={len(words) - 1}; _contrapca; echo ${{COMPREPLY[@]}}"
        done = subprocess.run([bash, "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert complete("contrapca", "re") == ["report"]
    assert complete("contrapca", "fit", "--comp") == ["--components"]
    assert complete("contrapca", "fit", "--method", "p") == ["pcpca", "ppca"]
    assert complete("contrapca", "completion", "z") == ["zsh"]


@pytest.mark.parametrize("shell", ["zsh", "fish", "powershell"])
def test_completion_of_other_shells(run, shell):
    script = run("completion", shell).out
    for name, command in make_parser().commands.items():
        assert name in script
        for option in command._option_string_actions:
            if option.startswith("--"):
                assert (option if shell != "fish" else f"-l {option.removeprefix('--')}") in script
    if shell == "fish":  # whose -a takes one word, a list in quotes
        assert all(shlex.split(line)[-2] == "-a" for line in script.splitlines() if " -a " in line)


# ---------------------------------------------------------------- words

# An argument of Python, or its classes and methods, in a sentence.
PYTHON = re.compile(
    r"\w+=[\w'\"\[(]|n_components|or CPCA|contrast_test|Pipeline|background_label|\w+\(\.*\)|\bforeground\b|\bnp\."
)
ERRORS = [
    exceptions.RankError(2),
    exceptions.RankError(2, "background"),
    exceptions.InfeasibleGammaError(0.9, 0.5, 2, "the relative likelihood has no maximum", ", or CPCA, which is."),
    exceptions.UnboundedError(0.9, 0.5, 0.4, 2, "features run off"),
    exceptions.UnboundedError(0.9, float("nan"), None, 2, "features run off"),
]


@pytest.mark.parametrize("error", ERRORS, ids=str)
def test_errors_are_in_words_of_the_command_line(error):
    assert PYTHON.search(str(error))  # the control
    assert not PYTHON.search(in_command_words(str(error))), in_command_words(str(error))


def test_sentences_read_well_in_words_of_the_command_line(run):
    few = in_command_words(str(exceptions.RankError(1)))
    assert few.startswith("The cases vary in at most 1 direction (beyond rounding), but --components 1 needs more")
    assert run("repot", "cases.csv").err.endswith("Did you mean 'report'? See contrapca --help.\n")


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
