"""Fifteen mistakes of people at the command line, and the sentence that each is answered with."""

import re
import sys

import numpy as np
import pytest

from contrapca._util.tables import Table
from contrapca.reading._findings import rare_labels
from csvfiles import write_csv

GENES = ["pS6_N", "pCAMKII_N", "BDNF_N", "GluR3_N", "SOD1_N", "pERK_N"]
TWO = ["cases.csv", "--background", "controls.csv"]


@pytest.fixture
def study(tmp_path, monkeypatch, need):
    """Mice: two files with a genotype and a mouse for each row, one file of both, and some that are wrong."""
    need("polars")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(40, 6)) * [1, 3, 1, 1, 1, 1], rng.normal(size=(30, 6))
    genotypes = ["Ts65Dn", "Control"] * 20
    rows = [[g, f"m{i // 5}", *row] for i, (g, row) in enumerate(zip(genotypes, X.tolist(), strict=True))]
    write_csv(tmp_path / "cases.csv", ["genotype", "mouse", *GENES], rows)
    rows[3] = ["Contrl", *rows[3][1:]]
    write_csv(tmp_path / "slip.csv", ["genotype", "mouse", *GENES], rows)
    rows[3] = ["unknown", *rows[3][1:]]
    write_csv(tmp_path / "once.csv", ["genotype", "mouse", *GENES], rows)
    write_csv(tmp_path / "controls.csv", ["mouse", *GENES], [[f"k{i // 5}", *row] for i, row in enumerate(Y.tolist())])
    both = [["saline", *row] for row in Y.tolist()] + [["drug", *row] for row in X.tolist()]
    write_csv(tmp_path / "all.csv", ["treatment", *GENES], both)
    write_csv(tmp_path / "few.csv", GENES, X[:3])
    write_csv(tmp_path / "constant.csv", GENES, np.ones((40, 6)))
    write_csv(tmp_path / "copies.csv", GENES, np.outer(X[:, 0], np.arange(1, 7)))
    for name, table in (("one", X), ("one_too", Y)):
        write_csv(
            tmp_path / f"{name}.csv",
            ["stage", "BDNF_N"],
            [["x" if i % 2 else "y", v] for i, v in enumerate(table[:, 2])],
        )
    words = X.tolist()
    words[4][2] = "n.d."
    write_csv(tmp_path / "words.csv", GENES, words)
    return tmp_path


REFUSED = {
    "a file by a near name": (
        ["test", "casse.csv", *TWO[1:]],
        "There is no file 'casse.csv'. Did you mean 'cases.csv'?",
    ),
    "a column by a near name": (
        ["fit", *TWO, "--labels", "genotpe", "-o", "out"],
        "--labels: 'cases.csv' has no column 'genotpe'. Did you mean 'genotype'?",
    ),
    "a column in other letters": (
        ["test", "all.csv", "--group", "Treatment", "--background", "saline"],
        "--group: 'all.csv' has no column 'Treatment'. Did you mean 'treatment'?",
    ),
    "a group by a near name": (
        ["test", "all.csv", "--group", "treatment", "--background", "Salin"],
        "--background: 'Salin' does not occur in column 'treatment' of 'all.csv'. Did you mean 'saline'?",
    ),
    "a column to leave out": (
        ["test", *TWO, "--ignore", "pS6_n"],
        "--ignore: no table has a column 'pS6_n'. Did you mean 'pS6_N'?",
    ),
    "controls without their option": (
        ["test", "cases.csv", "controls.csv"],
        "the controls need --background: contrapca test cases.csv --background controls.csv ...; see contrapca test "
        "--help.",
    ),
    "a group in place of a file": (
        ["test", "all.csv", "--background", "saline"],
        "--background: there is no file 'saline', but column 'treatment' of 'all.csv' has this value: add --group "
        "treatment if it marks the controls.",
    ),
    "an option of another command": (
        ["test", *TWO, "--labels", "genotype"],
        "test has no --labels, which belongs to fit and report; see contrapca test --help.",
    ),
    "a word among numbers": (
        ["test", "words.csv", *TWO[1:]],
        "Column 'BDNF_N' of 'words.csv' is numeric except for 'n.d.' on line 6. Correct the file, add --missing n.d. "
        "if a word means a missing value, or --ignore BDNF_N if that is not a feature.",
    ),
    "too few rows to test": (
        ["test", "few.csv", *TWO[1:], "--ignore", "mouse"],
        "'few.csv' has 3 rows of cases: the test needs at least 6 in each group.",
    ),
    "three rows": (
        ["fit", "few.csv", *TWO[1:], "--ignore", "mouse", "-o", "out"],
        "The 3 cases of 'few.csv' vary in 2 directions only (beyond rounding), and --components 2 needs more than 2: "
        "use fewer --components, more rows, or features that are not copies of each other.",
    ),
    "a constant table": (
        ["report", "constant.csv", *TWO[1:], "--ignore", "mouse"],
        "No feature of 'constant.csv' varies: the 40 cases are all the same.",
    ),
    "copies of one feature": (
        ["fit", "copies.csv", *TWO[1:], "--ignore", "mouse", "-o", "out"],
        "The 40 cases of 'copies.csv' vary in 1 direction only (beyond rounding), and --components 2 needs more than "
        "2: use more rows, or features that are not copies of each other.",
    ),
    "one feature": (
        ["test", "one.csv", "--background", "one_too.csv"],
        "'one.csv' has one usable numeric column, 'BDNF_N' (not used: stage): at least 2 features are needed. To "
        "compare the spread of one feature in two groups, Levene's test (scipy.stats.levene) is enough.",
    ),
    "pairs that are none": (
        ["test", *TWO, "--pairs", "mouse"],
        "--pairs: 'm0', 'm1', 'm2', 'm3', 'm4' and 3 more of column 'mouse' are only among the cases, and a pair has "
        "rows in both groups. Spell them alike, leave these rows out, or use --blocks mouse, which may be in one group "
        "only.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_refused_in_one_sentence(study, run, need, mistake):
    arguments, says = REFUSED[mistake]
    if arguments[0] == "report":
        need("jinja2")
    before = sorted(study.iterdir())
    outcome = run(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert [line for line in outcome.err.splitlines() if "caution: " not in line] == [f"contrapca: {says}"]
    assert sorted(study.iterdir()) == before


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (
            "slip.csv",
            "'Contrl' in the column 'genotype' (1 row) nearly spells 'Control' (19 rows). If they mean the same",
        ),
        ("once.csv", "'unknown' occurs in the column 'genotype' in one row only, and every other label in 19 or more."),
        ("cases.csv", None),
    ],
)
def test_labels_that_may_be_slips(study, run, file, says):
    outcome = run("fit", file, *TWO[1:], "--labels", "genotype", "--blocks", "mouse", "--no-test", "-o", "out")
    assert outcome.code == 0, outcome.err
    about = [line for line in outcome.err.splitlines() if "in the column 'genotype'" in line]
    assert len(about) == (says is not None)
    assert says is None or says in about[0]


@pytest.mark.parametrize(
    ("rare", "common", "is_slip"),
    [
        ("Contrl", "Control", True),
        ("Contorl", "Control", True),
        ("controls", "Control", True),
        ("Kontrol", "Control", True),
        ("wk12", "wk13", False),  # digits, and last letters, tell codes apart
        ("day 1a", "day 1b", False),
        ("untreated", "treated", False),
        ("mutant", "wild type", False),
        ("F", "M", False),
    ],
)
def test_what_nearly_spells_another_label(rare, common, is_slip):
    labels = [common] * 20 + ["something else"] * 20
    found = [finding.check for finding in rare_labels([*labels, rare], "state")]
    assert found == (["spelling"] if is_slip else ["rare label"] if not rare[-1].isdigit() else [])
    assert rare_labels([*labels, *[rare] * 10], "state") == []  # often enough to be meant
    assert rare_labels(labels, "state") == []


def test_the_core_alone_names_both_extras(study, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    outcome = run("test", *TWO)
    assert outcome.code == 2
    assert 'pip install "contrapca[tables]"' in outcome.err
    assert 'reports and figures need, too: pip install "contrapca[report]".' in outcome.err


def test_numbers_look_as_on_the_page(study, run):
    """Shares are percentages, and tails that nobody knows have no digits."""
    outcome = run("fit", *TWO, "--blocks", "mouse", "--no-test", "-o", "out")
    assert re.search(r"^ +1 +\S+ +\d+\.\d% +\S+ +\d+\.\d%$", outcome.out, re.M)
    p_values = np.array([1e-70, 0.012345, 0.5])
    assert str(Table({"p": p_values})).split() == ["p", "<", "1e-06", "0.012", "0.5"]
    assert "1e-70" in Table({"p": p_values}).to_csv()  # files have every digit
    assert str(Table({"share": np.array([1e-5, 0.0, 0.123])})).split() == ["share", "<0.1%", "0.0%", "12.3%"]
    digits = [re.fullmatch(r" +\d +(\S+) +(\S+) +(\S+) +(?:yes|no) +\S+%", line) for line in outcome.out.splitlines()]
    numbers = [number for match in filter(None, digits) for number in match.groups()]
    assert len(numbers) == 6
    assert all(len(number.replace(".", "").lstrip("0")) <= 2 for number in numbers)  # as in the verdict
