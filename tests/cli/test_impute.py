"""The command line, as a user runs it."""

import csv
import re
import subprocess
import sys

import numpy as np
import pytest

from contrapca import __version__, cli


def test_demo(tmp_path, capsys, need):
    need("matplotlib")
    assert cli.main(["demo", "--out", str(tmp_path / "new" / "folder")]) == 0
    out = capsys.readouterr().out
    before, after = (re.search(rf"{name}.*?(-?[\d.]+)\s*$", out, re.M)[1] for name in ("before", "after"))
    assert float(before) < 0.1 < 0.4 < float(after)
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == ["before_after.png", "latents.csv"]
    assert (folder / "before_after.png").read_bytes().startswith(b"\x89PNG")
    with (folder / "latents.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["group"] for row in rows] == ["case"] * 400 + ["control"] * 400
    latents = np.array([[float(row["pcpca0"]), float(row["pcpca1"])] for row in rows])
    np.testing.assert_allclose(latents[400:].mean(axis=0), 0, atol=1e-12)  # controls about their own mean
    first = (folder / "latents.csv").read_bytes()
    assert cli.main(["demo", "--out", str(folder)]) == 0
    assert (folder / "latents.csv").read_bytes() == first
    assert cli.main(["demo", "--out", str(folder), "--seed", "1"]) == 0
    assert (folder / "latents.csv").read_bytes() != first


def test_errors_are_one_sentence(tmp_path, capsys, need):
    need("matplotlib")
    (tmp_path / "file").write_text("")
    assert cli.main(["demo", "--out", str(tmp_path / "file")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("contrapca: ")
    assert "Traceback" not in error
    assert len(error.splitlines()) == 1


def test_version_and_usage(capsys):
    with pytest.raises(SystemExit) as leaving:
        cli.main(["--version"])
    assert leaving.value.code == 0
    assert capsys.readouterr().out == f"contrapca {__version__}\n"
    with pytest.raises(SystemExit) as leaving:
        cli.main([])
    assert leaving.value.code == 2


def test_without_matplotlib_the_extra_is_named(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        f"from contrapca import cli; sys.exit(cli.main(['demo', '--out', {str(tmp_path)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'pip install "contrapca[plot]"' in done.stderr
    assert "Traceback" not in done.stderr


# ---------------------------------------------------------------------- impute


def write(path, text):
    path.write_text(text)
    return str(path)


@pytest.fixture
def two_files(tmp_path):
    """Cases with holes, an identifier and a reordered background, as text."""
    rng = np.random.default_rng(0)
    tables = {}
    for name, rows, columns in (("cases", 60, ["a", "b", "c", "d"]), ("controls", 50, ["d", "c", "b", "a"])):
        values = {column: rng.standard_normal(rows) for column in "abcd"}
        values["b"] = 2 * values["a"] + 0.1 * rng.standard_normal(rows)
        lines = [",".join(["id", *columns])]
        for i in range(rows):
            hole = rng.integers(0, 6)
            cells = [f"{values[column][i]:.4f}" for column in columns]
            if hole < 4:
                cells[hole] = ["", "NA", "nan", "."][i % 4]
            lines.append(",".join([f"{name} {i}", *cells]))
        tables[name] = write(tmp_path / f"{name}.csv", "\n".join(lines) + "\n")
    return tables


def read(path, separator=","):
    with open(path, newline="") as file:  # noqa: PTH123
        return list(csv.reader(file, delimiter=separator))


@pytest.mark.parametrize("with_background", [True, False])
def test_impute(two_files, tmp_path, capsys, with_background):
    out = tmp_path / "filled.csv"
    background = ["--background", two_files["controls"]] if with_background else []
    assert cli.main(["impute", two_files["cases"], *background, "-o", str(out)]) == 0
    before, after = read(two_files["cases"]), read(out)
    assert before[0] == after[0] == ["id", "a", "b", "c", "d"]
    filled = 0
    for old, new in zip(before[1:], after[1:], strict=True):
        for old_cell, new_cell in zip(old, new, strict=True):
            if old_cell in ("", "NA", "nan", "."):
                float(new_cell)
                filled += 1
            else:
                assert new_cell == old_cell  # as it was written
    shown = capsys.readouterr().out
    assert f"{filled} of 240 values" in shown
    assert "left alone: id" in shown
    assert ("PCPCA" in shown) == with_background
    a, b = np.array([[float(row[1]), float(row[2])] for row in after[1:]]).T
    assert np.corrcoef(a, b)[0, 1] > 0.9  # what one tells about the other was used


def test_impute_takes_gamma_and_other_separators(two_files, tmp_path, capsys):
    text = "\n".join("\t".join(row) for row in read(two_files["cases"]))
    path = write(tmp_path / "cases.tsv", text)
    out = tmp_path / "filled.tsv"
    arguments = ["impute", path, "--background", two_files["controls"], "--gamma", "0.1", "--components", "1"]
    assert cli.main([*arguments, "-o", str(out)]) == 0
    assert "1 components, gamma = 0.1000" in capsys.readouterr().out
    assert all(len(row) == 5 for row in read(out, "\t"))
    numbers = write(tmp_path / "bare.csv", "1,2,3\n2,,4\n3,5,5\n4,7,7\n5,9,8.5\n")  # no header
    assert cli.main(["impute", numbers, "--components", "1", "-o", str(tmp_path / "bare_filled.csv")]) == 0
    assert read(tmp_path / "bare_filled.csv")[0] == ["1", "2", "3"]
    assert len(read(tmp_path / "bare_filled.csv")) == 5


def test_impute_refuses(two_files, tmp_path, capsys):
    cases, out = two_files["cases"], str(tmp_path / "out.csv")

    def says(*arguments, code=1):
        assert cli.main(["impute", *arguments]) == code
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        assert "Traceback" not in message
        return message

    assert "exists" in says(cases, "-o", write(tmp_path / "there.csv", "x"))
    assert (tmp_path / "there.csv").read_text() == "x"
    assert cli.main(["impute", cases, "-o", str(tmp_path / "there.csv"), "--force"]) == 0
    capsys.readouterr()
    assert "No such file" in says(str(tmp_path / "nothing.csv"), "-o", out)
    assert "more than --components=7" in says(cases, "-o", out, "--components", "7")
    other = write(tmp_path / "other.csv", "id,a,b,c\n1,2,3,4\n2,2,3,5\n")
    assert "lacks 1 numeric columns" in says(cases, "--background", other, "-o", out)
    text = write(tmp_path / "text.csv", "a,b,c,d\n1,2,3,x\n2,2,3,y\n")
    assert "do not hold numbers: 'd'" in says(cases, "--background", text, "-o", out)
    ragged = write(tmp_path / "ragged.csv", "a,b\n1,2\n1,2,3\n")
    assert "Line 3" in says(ragged, "-o", out)
    assert "more than one column named 'a'" in says(write(tmp_path / "twice.csv", "a,a\n1,2\n"), "-o", out)
    assert "has 1 rows" in says(write(tmp_path / "short.csv", "a,b\n"), "-o", out)
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x01")
    assert "not a text file" in says(str(tmp_path / "binary.csv"), "-o", out)
    assert "nothing to contrast with" in says(cases, "--gamma", "0.1", "-o", out)
    assert "is a folder" in says(cases, "-o", str(tmp_path), "--force")
    assert "no column 'zz'" in says(cases, "-o", out, "--ignore", "zz")
    comma = write(tmp_path / "comma.csv", "a;b;c\n1,5;2,5;1\n2,5;3,5;2\n")
    assert "decimal commas" in says(comma, "-o", out)
    assert "Line 2" in says(write(tmp_path / "long.csv", "a,b\n" + "x" * 200_000 + ",1\n"), "-o", out)
    strong = says(cases, "--background", two_files["controls"], "--gamma", "0.99", "-o", out)
    assert "gamma=0.99" in strong
    assert "works" in strong
    assert not (tmp_path / "out.csv").exists()


def test_impute_leaves_identifiers_alone(tmp_path, capsys):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 5))
    lines = [",plate,a,b,c,never,code"]
    for i, row in enumerate(values):
        cells = [f"{x:.3f}" for x in row[:3]]
        cells[i % 3] = ["#N/A", "<NA>", "-nan"][i % 3]
        lines.append(",".join([str(i), str(100 + i), *cells, "", f"3_{i}"]))
    path, out = write(tmp_path / "t.csv", "\n".join(lines)), tmp_path / "o.csv"
    assert cli.main(["impute", path, "--ignore", "plate", "--components", "1", "-o", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "left alone: (no name), plate, never, code" in shown
    assert "cannot be filled: never" in shown
    before, after = read(path), read(out)
    for column in (0, 1, 5, 6):
        assert [row[column] for row in before] == [row[column] for row in after]
    assert all(np.isfinite([float(cell) for cell in row[2:5]]).all() for row in after[1:])
    years = write(tmp_path / "years.csv", "2019,2020,2021\n" + "\n".join(f"{i},{i * 2},{i**2}" for i in range(9)))
    assert cli.main(["impute", years, "--components", "1", "-o", str(tmp_path / "y.csv")]) == 0
    assert "10 rows, 3 numeric columns (no header)" in capsys.readouterr().out


@pytest.mark.filterwarnings("default::contrapca.exceptions.ContrastWarning")
def test_warnings_are_sentences(tmp_path, capsys):
    rows = "\n".join(f"{i},{i**2 % 7},{i * 3 % 5}" for i in range(20)) + "\n,,\n"
    path = write(tmp_path / "t.csv", "a,b,c\n" + rows)
    assert cli.main(["impute", path, "--components", "1", "-o", str(tmp_path / "o.csv")]) == 0
    message = capsys.readouterr().err
    assert message == "contrapca: warning: 1 of the 21 foreground rows have no observed value; they are ignored.\n"
