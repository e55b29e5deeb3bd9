"""Every kind of messy table that docs/messy.md names ends as it says."""

import csv
import gzip
import io
import re
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import contrapca
from conftest import make_groups
from contrapca.cli import _fit
from contrapca.cli._inputs import request_of
from contrapca.cli._parser import parse

PAGE = Path(__file__).parents[2] / "docs" / "messy.md"
ROW = re.compile(r"^\| (?P<kind>[^|]+) \| (?P<outcome>read|note|caution|refused) \| (?:`(?P<says>[^|]+)`)? *\|$", re.M)
PROMISED = {row["kind"]: (row["outcome"], row["says"]) for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}
NAMES = [f"gene{j}" for j in range(6)]
X, Y = (rows.round(3).tolist() for rows in make_groups(40, 30, 6, seed=3))


def table(rows=X, names=NAMES, *, separator=",", index=None, end="\n", **columns):
    """A table as text, perhaps with an index and further columns."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    first = [] if index is None else [index[0]]
    writer.writerow([*first, *columns, *names])
    for i, row in enumerate(rows):
        writer.writerow([*([] if index is None else [index[1][i]]), *(cells[i] for cells in columns.values()), *row])
    return text.getvalue().replace("\n", end)


def with_cells(cells, rows=X):
    """The rows with other cells: (row, column) to its text."""
    changed = [list(row) for row in rows]
    for (i, j), cell in cells.items():
        changed[i][j] = cell
    return changed


def with_column(j, function, rows):
    return [[*row[:j], function(i, row[j]), *row[j + 1 :]] for i, row in enumerate(rows)]


def described(text):
    """With words about each row of the file, in its second column."""
    head, *lines = (line.split(",") for line in text.splitlines())
    beside = [[head[0], "about", *head[1:]], *([name, f"about {name}", *cells] for name, *cells in lines)]
    return "".join(f"{','.join(cells)}\n" for cells in beside)


def turned(text):
    rows = list(csv.reader(io.StringIO(text)))
    return "\n".join(",".join(column) for column in zip(*rows, strict=True)) + "\n"


def cells(transform):
    """Counts per 10,000 of 20 genes, of half as many molecules in the cases."""
    rng = np.random.default_rng(0)
    tables = [rng.poisson(rng.gamma(3, mean, size=(40, 20))) + 0.0 for mean in (2, 4)]
    values = [transform(1e4 * counts / counts.sum(axis=1, keepdims=True)).tolist() for counts in tables]
    names = [f"gene{j}" for j in range(20)]
    return {"cases.csv": table(values[0], names), "controls.csv": table(values[1], names)}


def both(function, names=NAMES):
    """The same change in both files."""
    return {"cases.csv": table(function(X), names), "controls.csv": table(function(Y), names)}


def one_file(groups):
    return {"cases.csv": table(X + Y, group=groups)}


def archive(**files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for name, text in files.items():
            packed.writestr(name.replace("_", "."), text)
    return content.getvalue()


def workbook(*above):
    """A function that writes the cases into an Excel file, below some lines."""

    def write(path, need):
        with need("xlsxwriter").Workbook(path) as book:
            need("fastexcel")
            sheet = book.add_worksheet("cases")
            for i, row in enumerate([[line] for line in above] + [NAMES, *X]):
                sheet.write_row(i, 0, row)

    return write


SAMPLES = [f"s{i}" for i in range(40)]
GROUP = ["--group", "group", "--background", "control"]
CODES = np.random.default_rng(0).choice(900_000, 70, replace=False).tolist()
DECIMAL_COMMAS = table(with_column(0, lambda i, value: value, X), separator=";").replace(".", ",")
SPACED = table(names=[f" {name} " for name in NAMES])
POSITIVE = [[abs(value) * 9 for value in row] for row in X]
EUROPEAN = [
    table([[f"{value * 900 + 9e3:,.2f}".translate(str.maketrans(",.", ".,")) for value in row] for row in rows],
          separator=";") for rows in (X, Y)
]  # fmt: skip
LIKERT = [[i // (j + 1) % 4 for j in range(6)] for i in range(40)]
# Files (text or bytes by name), further arguments.
KINDS = {
    "byte-order mark": {"cases.csv": "\ufeff" + table()},
    "semicolons and decimal commas": {"cases.csv": DECIMAL_COMMAS},
    "tabs": {"cases.csv": table(separator="\t")},
    "vertical bars": {"cases.csv": table(separator="|")},
    "spaces between columns": {"cases.csv": table(separator=" ")},
    "Windows line ends": {"cases.csv": table(end="\r\n")},
    "old Macintosh line ends": {"cases.csv": table(end="\r")},
    "commas at the end of lines": {"cases.csv": table().replace("\n", ",\n")},
    "empty rows from a spreadsheet": {"cases.csv": table() + ",,,,,\n,,,,,\n"},
    "a line `sep=;` for Excel": {"cases.csv": "sep=;\n" + table(separator=";")},
    "gzip": {"cases.csv.gz": gzip.compress(table().encode())},
    "a zip archive with one table": {"cases.zip": archive(a_csv=table())},
    "a zip archive with two tables": {"cases.zip": archive(a_csv=table(), b_csv=table())},
    "Excel": {"cases.xlsx": workbook()},
    "a title and an empty row in Excel": {"cases.xlsx": workbook("My study", "")},
    "the old Excel format (.xls)": {"cases.xls": b"\xd0\xcf\x11\xe0"},
    "a file name with other letters": {"cases.größe 漢.csv": table()},
    "a folder in place of a file": {"cases.csv": None},
    "a damaged gzip file": {"cases.csv.gz": gzip.compress(table().encode())[:-9]},
    "columns in another order": {"cases.csv": table([row[::-1] for row in X], NAMES[::-1])},
    "blanks around names": {"cases.csv": SPACED},
    "a plus sign before numbers": {"cases.csv": re.sub(r"(?<=[,\n])(\d)", r"+\1", table())},
    "line breaks in quotes": {"cases.csv": table(note=["two\nlines", *["x"] * 39])},
    "an index without a name, from pandas": {"cases.csv": table(index=("", range(40)))},
    "row names as R writes them": {"cases.csv": table(index=("", SAMPLES)).removeprefix(",")},
    "row names as R writes them, and commas at the end of lines": {
        "cases.csv": table(index=("", SAMPLES)).removeprefix(",").replace("\n", ",\n")
    },
    "dates as text": {"cases.csv": table(day=[f"2024-01-{i % 28 + 1:02}" for i in range(40)])},
    "a first column of labels": {"cases.csv": table(index=("site", [f"centre {i % 4}" for i in range(40)]))},
    "words for missing values (NA, N/A, #N/A, NaN, null, ., ?)": {
        "cases.csv": table(with_cells({(i, i): word for i, word in enumerate(["NA", "N/A", "#N/A", "", "?"])})[:15])
    },
    "columns without any value": {"cases.csv": table(empty=[""] * 40)},
    "comment lines on top": {"cases.csv": "# made by\n# a program, in 2021\n" + table()},
    "a comment with as many commas as the header": {"cases.csv": "# made by, a, program, in, June, 2021\n" + table()},
    "comment lines that begin with // or %": {"cases.csv": "// made by\n% a program, in 2021\n" + table()},
    "a header that begins with %": both(lambda rows: rows, ["% fat", *NAMES[1:]]),
    "comment lines in and below the table": {
        "cases.csv": "\n".join([*table().splitlines()[:9], "# batch 2, day 1", *table().splitlines()[9:], "# end", ""])
    },
    "row names that begin with #": {"cases.csv": table(index=("sample", [f"#{i}" for i in range(40)]))},
    "a header that begins with #": {"cases.csv": "#" + table(index=("sample", SAMPLES))},
    "a title on top": {"cases.csv": "My study\n" + table()},
    "a title with commas on top": {"cases.csv": "My study, batch 2\n" + table()},
    "Latin-1": {"cases.csv": table(site=["Zürich"] * 40).encode("latin-1")},
    "Latin-1 with --encoding": {"cases.csv": table(site=["Zürich"] * 40).encode("latin-1"), "--encoding": ["latin-1"]},
    "UTF-16": {"cases.csv": table().encode("utf-16")},
    "UTF-16 with --encoding": {**{n: table(r).encode("utf-16") for n, r in (("cases.csv", X), ("controls.csv", Y))},
                               "--encoding": ["utf-16"]},
    "an unknown encoding": {"--encoding": ["klingon"]},
    "years as names of three columns": {"cases.csv": table([row[:3] for row in X], ["2019", "2020", "2021"])},
    "years as names with --header": {
        **{name: table([row[:3] for row in rows], ["2019", "2020", "2021"])
           for name, rows in (("cases.csv", X), ("controls.csv", Y))}, "--header": []
    },
    "no header": {name: table(rows).partition("\n")[2] for name, rows in (("cases.csv", X), ("controls.csv", Y))},
    "a row that is too short": {"cases.csv": table([*X[:2], X[2][:3], *X[3:]])},
    "an open quote": {"cases.csv": table() + '"1,2,3\n'},
    "only a header": {"cases.csv": table([])},
    "an empty file": {"cases.csv": ""},
    "two columns of one name": {"cases.csv": table(names=[*NAMES[:5], "gene1"])},
    "names that differ in case": {"controls.csv": table(Y, [NAMES[0], "Gene1", *NAMES[2:]])},
    "samples as columns": {"cases.csv": turned(table(index=("", SAMPLES))),
                           "controls.csv": turned(table(Y, index=("", [f"c{i}" for i in range(30)])))},
    "samples as columns with --transpose": {
        "cases.csv": turned(table(index=("", SAMPLES))),
        "controls.csv": turned(table(Y, index=("", [f"c{i}" for i in range(30)]))), "--transpose": []
    },
    "samples as columns beside descriptions of the features, with --transpose": {
        "cases.csv": described(turned(table(index=("", SAMPLES)))),
        "controls.csv": described(turned(table(Y, index=("", [f"c{i}" for i in range(30)])))), "--transpose": []
    },
    "samples as columns, with the same names in both files": {
        name: turned(table(with_column(0, lambda i, v: v + 20, with_column(3, lambda i, v: v - 30, rows[:30])),
                           index=("", SAMPLES[:30]))) for name, rows in (("cases.csv", X), ("controls.csv", Y))
    },
    # cells
    "a word in a column of numbers": {"cases.csv": table(with_cells({(2, 2): "n.d."}))},
    "several words in several columns": {"cases.csv": table(with_cells({(1, 0): "x", (3, 0): "y", (5, 2): "z"}))},
    "words in both files": {"cases.csv": table(with_cells({(1, 0): "x"})),
                            "controls.csv": table(with_cells({(3, 2): "y"}, Y))},
    "a word declared with --missing": {"cases.csv": table(with_cells({(2, 2): "n.d."})[:15]), "--missing": ["n.d."]},
    "999 for missing values": {"cases.csv": table(with_cells({(2, 2): 999, (9, 2): 999}))},
    "-999 for missing values": {"cases.csv": table(with_cells({(2, 2): -999, (9, 2): -999}))},
    "-1 for missing values": {"cases.csv": table(with_cells({(2, 2): -1, (9, 2): -1}, POSITIVE)),
                              "controls.csv": table([[abs(value) * 9 for value in row] for row in Y])},
    "-1 and 9 for missing values on a small scale": {
        "cases.csv": table(with_cells({(i, j): code for i in (2, 7, 9) for j, code in ((2, -1), (3, 9))}, LIKERT)),
        "controls.csv": table([[i * j % 4 for j in range(1, 7)] for i in range(30)]),
    },
    "-999 with --missing": {"cases.csv": table(with_cells({(2, 2): -999, (9, 2): "-999."})[:15]),
                            "--missing": ["-999"]},
    "percent signs": {"cases.csv": table(share=["12%", "7.5%"] * 20)},
    "percent signs with --percent": {
        **both(lambda rows: with_column(0, lambda i, v: f"{v}%" if i else "0", rows)), "--percent": []
    },
    "percent signs in some cells, with --percent": {
        **both(lambda rows: with_column(0, lambda i, v: f"{v}%" if i % 4 else v, rows)), "--percent": []
    },
    "thousands separators": both(lambda rows: with_column(0, lambda i, v: f"{int(1e4 + 99 * v):,}", rows)),
    "thousands separators with --thousands": {
        **both(lambda rows: with_column(0, lambda i, v: f"{int(1e4 + 99 * v):,}", rows)), "--thousands": [],
        "--scale": ["pooled"]
    },
    "thousands separators in an extra column": {"cases.csv": table(cost=["1 234", "900"] * 20)},
    "points between thousands, and decimal commas": {"cases.csv": EUROPEAN[0], "controls.csv": EUROPEAN[1]},
    "points between thousands and no other sign, with --thousands": {
        name: table(with_column(0, lambda i, v: f"{int(1e5 + 999 * v):,}".replace(",", "."),
                                [[round(9 * v) for v in row] for row in rows]), separator=";")
        for name, rows in (("cases.csv", X), ("controls.csv", Y))
    } | {"--thousands": [], "--scale": ["pooled"]},
    "points between thousands with --thousands": {
        "cases.csv": EUROPEAN[0], "controls.csv": EUROPEAN[1], "--thousands": [], "--scale": ["pooled"]
    },
    "units in the cases only": {"cases.csv": table(with_column(2, lambda i, v: f"{v} mg", X))},
    "units": {"cases.csv": table(dose=["5 mg", "7.5 mg"] * 20)},
    "currency signs": {"cases.csv": table(price=["$5.10", "$1,200"] * 20)},
    "numbers with ±": {"cases.csv": table(dose=["5.1±0.2", "7±0.3"] * 20)},
    "brackets for negative numbers": {"cases.csv": table(change=["(5.1)", "2"] * 20)},
    "yes and no": {"cases.csv": table(smoker=["yes", "no"] * 20)},
    "less-than signs (<0.5)": {"cases.csv": table(with_cells({(2, 2): "<0.5"}))},
    "#DIV/0!": {"cases.csv": table(with_cells({(2, 2): "#DIV/0!"}))},
    "infinity": {"cases.csv": table(with_cells({(2, 2): "inf"}))},
    "a row of units below the header": {"cases.csv": table([["mg/l"] * 6, *X])},
    "a Unicode minus sign": {"cases.csv": table(with_cells({(2, 2): "\N{MINUS SIGN}1.5"}))},
    "a number that is too large (1e400)": {"cases.csv": table(with_cells({(2, 2): "1e400"}))},
    "quoted decimal commas": {"cases.csv": table(with_column(0, lambda i, v: "1,5" if i % 2 else "2,25", X))},
    "a lost decimal point in one cell": {"cases.csv": table(with_cells({(2, 2): "15000"}))},
    "a constant column": both(lambda rows: with_column(2, lambda i, v: 7, rows)),
    "a column twice under two names": both(lambda rows: [[*row[:5], row[1]] for row in rows]),
    "a patient number as a feature": both(lambda rows: [[i % 9 + 1, *row] for i, row in enumerate(rows)],
                                          ["patient", *NAMES]),
    "a patient number with an empty cell": both(
        lambda rows: [["" if i == 5 else i % 9 + 1, *row] for i, row in enumerate(rows)], ["patient", *NAMES]
    ),
    "a mouse number, several rows each": both(
        lambda rows: [[300 + i // 5, *row] for i, row in enumerate(rows)], ["MouseID", *NAMES]
    ),
    "a column that counts the rows": both(lambda rows: [[i, *row] for i, row in enumerate(rows)], ["column", *NAMES]),
    "random identifiers": {
        "cases.csv": table([[code, *row] for code, row in zip(CODES, X, strict=False)], ["code", *NAMES]),
        "controls.csv": table([[code, *row] for code, row in zip(CODES[40:], Y, strict=True)], ["code", *NAMES]),
    },
    # groups
    "group labels that differ in case": {
        **one_file(["case"] * 40 + ["control"] * 20 + ["Control"] * 10), "instead": GROUP
    },
    "other labels that differ in case": {"cases.csv": table(stage=["mild", "Mild"] * 20), "--labels": ["stage"]},
    "a label with a letter missing": {
        "cases.csv": table(stage=["mild", "sever"] + ["severe", "mild"] * 19), "--labels": ["stage"]
    },
    "a label that occurs once": {
        "cases.csv": table(stage=["mild", "unknown"] + ["severe", "mild"] * 19), "--labels": ["stage"]
    },
    "an empty group cell": {**one_file(["case"] * 39 + [""] + ["control"] * 30), "instead": GROUP},
    "a wrong name of the group": {**one_file(["case"] * 40 + ["healthy"] * 30), "instead": GROUP},
    "0 and 1 as groups": {**one_file([1] * 40 + [0] * 30), "instead": ["--group", "group", "--background", "0"]},
    "files named the other way round": {"controls.csv": table(), "cases.csv": table(Y),
                                        "instead": ["--background", "cases.csv"], "first": "controls.csv"},
    "tables swapped": {"cases.csv": table(Y * 3), "controls.csv": table(X * 3)},
    "the same table twice": {"controls.csv": table()},
    "some rows in both tables": {"controls.csv": table([*Y, *X[:3]])},
    "repeated row names": {"cases.csv": table(index=("id", [*SAMPLES[:39], "s3"]))},
    "row names that all occur twice": {"cases.csv": table(index=("id", [f"s{i % 20}" for i in range(40)]))},
    "rows in two replicates": {"cases.csv": table(index=("culture", [f"k{i % 20}" for i in range(40)]))},
    "a row of means below the samples": {
        "cases.csv": table([*X, np.mean(X, axis=0).tolist()], index=("id", [*SAMPLES, "Mean"]))
    },
    "names such as 309_1, 309_2": {"cases.csv": table(index=("id", [f"{300 + i // 4}_{i % 4}" for i in range(40)]))},
    "numbers as row names": {"cases.csv": table(index=("", [f"{row[0]:.3f}" for row in X]))},
    "a shift of all means, as between batches": {"controls.csv": table([[value + 25 for value in row] for row in Y])},
    "cells of the cases sequenced half as deep": cells(np.log1p),
    "counts divided by totals, without logarithms": cells(np.asarray),
    "one row": {"cases.csv": table(X[:1])},
    "constant cases": {"cases.csv": table([[1.5] * 6] * 40)},
    "cases that are multiples of each other": {"cases.csv": table(np.outer(range(1, 41), range(1, 7)).tolist())},
    "one column of numbers": both(lambda rows: [[row[0], "x" * (i % 3 + 1)] for i, row in enumerate(rows)],
                                  ["gene0", "code"]),
    "no common column": {"cases.csv": table(names=list("abcdef"))},
    "a missing column": {"cases.csv": table([row[:5] for row in X], NAMES[:5])},
}  # fmt: skip


# A study is made of them, but no model.
OF_COMMANDS = ("constant cases", "cases that are multiples of each other", "one column of numbers")


def test_the_page_names_what_is_tested():
    assert len(PROMISED) == PAGE.read_text(encoding="utf-8").count("\n| ") - 3  # all rows but the three headers
    assert PROMISED.keys() == KINDS.keys()


def arguments(kind, need):
    """Write the files of one kind, and return what a command is given to read them."""
    given = {"cases.csv": table(), "controls.csv": table(Y)} | KINDS[kind]
    options = {name: given.pop(name) for name in list(given) if name.startswith("--")}
    background = given.pop("instead", ["--background", "controls.csv"])
    first = given.pop("first", next(name for name in reversed(given) if name.startswith("cases.")))
    for name, content in given.items():
        if callable(content):
            content(Path(name), need)
        elif content is None:
            Path(name).mkdir()
        else:
            Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return [first, *background, *(word for name, values in options.items() for word in (name, *values))]


@pytest.mark.parametrize("kind", KINDS)
def test_kind_in_python(tmp_path, monkeypatch, need, kind):
    """`contrapca.read` says the same of it in its own words, called as the report shows."""
    need("polars")
    monkeypatch.chdir(tmp_path)
    options = parse(["fit", *arguments(kind, need), "-o", "out"])
    said, study = [], None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            study = eval(request_of(options).code(), {"contrapca": contrapca})
        except ValueError as error:
            said.append(str(error))
    said += [str(warning.message) for warning in caught]
    assert not [line for line in said if re.search(r"(?<![\w-])--[a-z]", line)]
    outcome, _ = PROMISED[kind]
    if outcome in ("read", "note"):
        assert said == []
    assert (study is None) == (outcome == "refused" and kind not in OF_COMMANDS)


@pytest.mark.parametrize("kind", KINDS)
def test_kind(tmp_path, monkeypatch, need, run, tree, kind):
    need("polars")
    monkeypatch.chdir(tmp_path)
    given = arguments(kind, need)
    before = tree(tmp_path)
    # What the model itself shows has tests of its own.
    quick = []
    if kind != "tables swapped":  # which the verdict says
        monkeypatch.setattr(
            _fit,
            "summarize",
            lambda *_, origin, **__: {"cautions": [found.text("command") for found in origin.findings]},
        )
        quick = ["--no-test", "--gamma", "0.1"]
    done = run("fit", *given, "--components", "1", "-o", "results", *quick)
    outcome, says = PROMISED[kind]
    assert "Traceback" not in done.err
    assert done.code == (2 if outcome == "refused" else 0), done.err
    if outcome == "refused":
        assert done.out == ""
        assert tree(tmp_path) == before
    cautions = [line for line in done.err.splitlines() if line.startswith("contrapca: caution: ")]
    where = {"read": "", "note": done.out, "caution": done.err + done.out, "refused": done.err}[outcome]
    assert (says or "") in where
    if outcome in ("read", "note"):
        assert cautions == []
        assert done.err == ""
