"""What users get wrong: each time one clear sentence, exit code 2, and nothing left behind."""

import gzip
import os
import shutil
import sys

import numpy as np
import pytest

from conftest import skip

FIT = ["fit", "{file}", "--background", "controls.csv", "-o", "results"]
GENES = [f"gene{j}" for j in range(6)]
HEADER = ",".join(GENES)
ROW = "1,2,3,4,5,6"


def text(name, content):
    """A builder of one file."""

    def build(folder):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return build


def rows(values, names=HEADER):
    return "\n".join([names, *(",".join(map(str, row)) for row in values)]) + "\n"


NUMBERS = np.random.default_rng(0).standard_normal((8, 6)).round(3).tolist()


def with_cell(cell):
    changed = [list(row) for row in NUMBERS]
    changed[4][2] = cell
    return rows(changed)


# What the file of the cases holds, and what the sentence must say.
FILES = {
    "there is no file": (lambda folder: "nothing.csv", "There is no file 'nothing.csv'"),
    "a folder": (lambda folder: (folder / "data.csv").mkdir() or "data.csv", "'data.csv' is a folder"),
    "unknown extension": (text("cases.xyz", b"PK"), "'cases.xyz' has no supported file extension: use one of .csv"),
    "damaged xlsx": (text("cases.xlsx", b"PK"), "'cases.xlsx' is not a readable Excel file: it may be damaged"),
    "damaged zip": (text("cases.zip", b"PK"), "'cases.zip' is not a complete compressed file"),
    "blank lines only": (text("bad.csv", "\n\n \n"), "'bad.csv' is empty"),
    "unknown separator": (text("bad.csv", "a:b:c\n1:2:3\n4:5:6\n"), "has only one column"),
    "a text column": (
        text("bad.csv", rows([[*row[:2], "x", *row[3:]] for row in NUMBERS])),
        "lacks 1 numeric column of 'controls.csv': 'gene2' ('gene2' not numeric there)",
    ),
    "a long line": (text("bad.csv", f"{HEADER}\n{ROW}\n{ROW},7\n"), "Line 3 of 'bad.csv' has 7 cells; expected 6"),
    "a huge cell": (text("bad.csv", f"{HEADER}\n{'x' * 200_000},2,3,4,5,6\n{ROW}\n"), "Line 2 of 'bad.csv' cannot be"),
    "commas in numbers": (
        text("bad.csv", "gene0;gene1\n1,500;2,500\n2,500;3,500\n"),
        "decimal commas or thousands separators, such as '1,500'",
    ),
    "a scale on top": (
        text("bad.csv", rows(NUMBERS, "100.5,101.5,103,104,106.5,107")),
        "in order, from 100.5 to 107, and those below are not. Add --header if they are names or --no-header",
    ),
    "not UTF-8": (text("bad.csv", f"{HEADER}\n{ROW}\n".encode() + b"\xe9\xff,1,2,3,4,5\n"), "not UTF-8 text"),
    "binary": (text("bad.csv", b"a,b\n\x00\x01,2\n"), "not a text file"),
    "no gzip": (text("bad.csv.gz", HEADER), "not a complete compressed file"),
    "half a gzip": (text("bad.csv.gz", gzip.compress(rows(NUMBERS).encode())[:-20]), "not a complete compressed file"),
    "missing columns": (
        text("bad.csv", rows([row[:4] for row in NUMBERS], ",".join(GENES[:4]))),
        "lacks 2 numeric columns of 'controls.csv': 'gene5', 'gene4'; correct the names, or add --common",
    ),
    "0-byte npz": (text("bad.npz", b""), "'bad.npz' is empty: it has 0 bytes"),
    "0-byte npy": (text("bad.npy", b""), "'bad.npy' is empty: it has 0 bytes"),
    "0-byte mtx": (text("bad.mtx", b""), "'bad.mtx' is empty: it has 0 bytes"),
    "damaged npz": (text("bad.npz", b"PK\x03\x04junk"), "not a readable NumPy file"),
    "damaged mtx": (text("bad.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n"), "Matrix Market"),
}  # fmt: skip


def arrays(name, *given, **named):
    def build(folder):
        (np.savez if name.endswith("z") else np.save)(folder / name, *given, **named)
        return name

    return build


OBJECTS = np.array([[1, "x"], [None, 2]], dtype=object)
FILES |= {
    "pickled objects": (arrays("bad.npy", OBJECTS), "NumPy file (it does not contain plain numbers or text)"),
    "two tables": (arrays("bad.npz", a=np.ones((3, 2)), b=np.ones((3, 2))), "contains 2 2-D arrays; expected 1"),
    "three axes": (arrays("bad.npy", np.ones((3, 2, 2))), "an array of shape (3, 2, 2), not rows and columns"),
    "complex numbers": (arrays("bad.npy", np.ones((3, 6), dtype=complex)), "type complex128, not numbers"),
    "too narrow": (arrays("bad.npy", np.ones((9, 4))), "has 6 numeric columns and 'bad.npy' has 4"),
}  # fmt: skip


@pytest.fixture
def refuses(folder, run, command, tree):
    """Run, in this process or in one of its own, and check what every refusal must be."""

    def check(arguments, says, *, real=False, **options):
        before = tree(folder)
        outcome = command(*arguments, cwd=folder, **options) if real else run(*arguments)
        assert outcome.code == 2, outcome.err
        assert outcome.out == ""
        assert outcome.err.startswith("contrapca: ")
        assert outcome.err.count("\n") == 1
        assert "Traceback" not in outcome.err
        assert says in outcome.err
        assert tree(folder) == before

    return check


@pytest.mark.parametrize("case", FILES)
def test_bad_files(folder, refuses, case):
    build, says = FILES[case]
    name = build(folder)
    refuses([part.format(file=name) for part in FIT], says)


@pytest.mark.parametrize(
    "case", ["a folder", *(pytest.param(case, marks=pytest.mark.slow) for case in ("half a gzip", "pickled objects"))]
)
def test_bad_files_of_the_real_command(folder, refuses, case):
    """In a process of its own."""
    build, says = FILES[case]
    name = build(folder)
    refuses([part.format(file=name) for part in FIT], says, real=True)


TABLES = ["cases.csv", "--background", "controls.csv"]
OPTIONS = {
    "no background": (["fit", "cases.csv", "-o", "r"], "--background is needed: the controls table (or --group"),
    "group without value": (["fit", "cases.csv", "--group", "stage", "-o", "r"], "the value that marks controls"),
    "unknown value": (
        ["fit", "cases.csv", "--group", "stage", "--background", "well", "-o", "r"],
        "'well' does not occur in column 'stage' of 'cases.csv', only 'mild', 'severe'",
    ),
    "unknown group column": (
        ["fit", "cases.csv", "--group", "diet", "--background", "x", "-o", "r"],
        "--group: 'cases.csv' has no column 'diet', only 'gene0'",
    ),
    "unknown label column": (["fit", *TABLES, "--labels", "diet", "-o", "r"], "--labels: 'cases.csv' has no column"),
    "unknown column to ignore": (["fit", *TABLES, "--ignore", "diet", "-o", "r"], "no table has a column 'diet'"),
    "a near background": (
        ["test", "cases.csv", "--background", "control.csv"],
        "There is no file 'control.csv'. Did you mean 'controls.csv'?",
    ),
    "near blocks": (["test", *TABLES, "--blocks", "gene_1"], "has no column 'gene_1'. Did you mean 'gene1'?"),
    "too many components": (["fit", *TABLES, "--components", "6", "-o", "r"], "--components 6 needs more. Use "),
    "too strong": (["fit", *TABLES, "--gamma", "1.5", "-o", "r"], "--gamma 1.5 is too large"),
    "gamma of one table": (["impute", "cases.csv", "--gamma", "0.1", "-o", "r.csv"], "--gamma needs --background"),
    "output in a file": (["fit", *TABLES, "-o", "cases.csv/results"], "'cases.csv' is a file"),
    "output is a file": (["fit", *TABLES, "-o", "cases.csv"], "'cases.csv' is a file"),
    "output exists": (["impute", "cases.csv", "-o", "controls.csv"], "'controls.csv' exists"),
    "output is a folder": (["impute", "cases.csv", "-o", ".", "--force"], "'.' is a folder"),
    "not a page": (["report", *TABLES, "-o", "report.pdf"], "must end in .html"),
    "settings of a saved model": (
        ["report", *TABLES, "--model", "model.npz", "--gamma", "0.1", "-o", "r.html"],
        "--gamma cannot be used with --model",
    ),
    "not a text table": (["sample", "model.npz", "-o", "new.xlsx"], "must end in .csv or .tsv"),
    "no model": (["info", "model.npz"], "'model.npz': No such file or directory."),
    "a table is no model": (["info", "cases.csv"], "is not a readable contrapca file: it is not an .npz archive"),
    "two models": (["transform", "cases.csv", "cases.csv", "-o", "z.csv"], "not a readable contrapca file"),
}  # fmt: skip


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options(refuses, case, need):
    if case in ("not a page", "settings of a saved model"):
        need("jinja2")
    refuses(*OPTIONS[case])


@pytest.mark.parametrize("case", ["output in a file", pytest.param("too strong", marks=pytest.mark.slow)])
def test_bad_options_of_the_real_command(refuses, case):
    refuses(*OPTIONS[case], real=True)


def test_groups_that_are_no_two(folder, refuses):
    content = rows([["a", *row] for row in NUMBERS], f"kind,{HEADER}")
    text("all.csv", content)(folder)
    one = ["fit", "all.csv", "--group", "kind", "-o", "r", "--background"]
    refuses([*one, "a"], "All rows of 'all.csv' have 'a' in column 'kind': there are no cases")
    text("all.csv", content.replace("a,", ",", 1).replace("a,", ",", 1))(folder)
    refuses([*one, "a"], "2 of 8 rows of 'all.csv' have no value in column 'kind'")
    text("all.csv", content.replace("a,", "NA,", 1).replace("\na,", "\nnan,", 1))(folder)
    refuses([*one, "a"], "2 of 8 rows of 'all.csv' have no value in column 'kind'")
    text("all.csv", rows([["b" if i else "a", *row] for i, row in enumerate(NUMBERS)], f"kind,{HEADER}"))(folder)
    refuses([*one, "a"], "'all.csv' has 1 row of controls")


def test_a_model_of_other_features(folder, refuses, run):
    assert run("fit", *TABLES, "-o", "results").code == 0
    text("fewer.csv", rows([row[:4] for row in NUMBERS], ",".join(GENES[:4])))(folder)
    arguments = ["transform", "results/model.npz", "fewer.csv", "-o", "z.csv"]
    refuses(arguments, "'fewer.csv' lacks 2 numeric columns of the model: 'gene4', 'gene5'")
    refuses(
        ["fit", "results/model.npz", "--background", "controls.csv", "-o", "r"],
        "is a model, path or posterior saved by contrapca",
    )
    model = (folder / "results" / "model.npz").read_bytes()
    (folder / "half.npz").write_bytes(model[: len(model) // 2])
    refuses(["info", "half.npz"], "'half.npz' is not a readable contrapca file")


def test_damaged_parquet(folder, refuses, need):
    need("polars")
    for content, says in ((b"", "0 bytes"), (b"PAR1junkPAR1", "not a readable Parquet file")):
        (folder / "bad.parquet").write_bytes(content)
        refuses([part.format(file="bad.parquet") for part in FIT], says)


def test_bad_h5ad(folder, refuses, need):
    anndata = need("anndata")
    arguments = [part.format(file="bad.h5ad") for part in FIT]
    for content, says in ((b"", "0 bytes"), (b"junk", "not a readable h5ad file")):
        (folder / "bad.h5ad").write_bytes(content)
        refuses(arguments, says)
    pandas = need("pandas")
    anndata.AnnData(obs=pandas.DataFrame(index=list("abc"))).write_h5ad(folder / "bad.h5ad")
    refuses(arguments, "'bad.h5ad' has no matrix X")


@pytest.mark.parametrize("library", ["polars", "fastexcel"])
def test_without_an_extra(folder, refuses, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    (folder / "cases.xlsx").write_bytes(b"PK")
    for name in ("cases.xlsx", "cases.csv") if library == "polars" else ("cases.xlsx",):
        refuses(
            [part.format(file=name) for part in FIT],
            f'needs {library}. Install it with: pip install "contrapca[tables]"',
        )


def test_no_permission_to_write(folder, refuses):
    if not hasattr(os, "geteuid"):
        skip("folders are closed in another way on Windows")
    if os.geteuid() == 0:  # permission bits do not bind root, but nobody can make folders there
        place, says = "/sys/contrapca-results", "cannot be written into"
    else:
        place, says = folder / "closed" / "results", "no permission to write into"
        place.parent.mkdir()
        place.parent.chmod(0o555)
    refuses(["fit", *TABLES, "-o", place], says, real=True)
    if os.geteuid() != 0:
        place.parent.chmod(0o755)


@pytest.fixture
def limit_files(need):
    """A disk that is full after so many bytes of a file."""
    resource = need("resource")  # which Windows has not
    return lambda size: lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        (["fit", *TABLES, "-o", "results"], 1000),  # in the middle of the first file
        (["fit", *TABLES, "-o", "new/deep/results", "--gamma", "0"], 2600),
        (["impute", "cases.csv", "-o", "filled.csv"], 1000),
    ],
)
def test_disk_full(refuses, limit_files, arguments, size):
    refuses(arguments, "File too large): nothing was written", real=True, preexec_fn=limit_files(size))


def test_disk_full_keeps_what_was_there(folder, refuses, run, limit_files):
    assert run("fit", *TABLES, "-o", "results").code == 0
    shutil.copy(folder / "results" / "model.npz", folder / "copy.npz")
    arguments = ["fit", *TABLES, "-o", "results", "--force"]
    refuses(arguments, "nothing was written", real=True, preexec_fn=limit_files(3000))
    assert (folder / "copy.npz").read_bytes() == (folder / "results" / "model.npz").read_bytes()
