"""`contrapca impute`: holes are filled, everything else stays."""

import gzip
import json

import numpy as np
import pytest

from contrapca import PPCA
from csvfiles import read_csv as read


def write(path, text):
    path.write_text(text)
    return str(path)


@pytest.fixture
def two_files(tmp_path, need):
    """Cases with holes, an identifier and a reordered background, as text."""
    need("polars")
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


@pytest.mark.parametrize("with_background", [True, False])
def test_impute(two_files, tmp_path, run, with_background):
    out = tmp_path / "filled.csv"
    background = ["--background", two_files["controls"]] if with_background else []
    outcome = run("impute", two_files["cases"], *background, "-o", out)
    assert outcome.code == 0
    shown = outcome.out
    before, after = read(two_files["cases"]), read(out)
    assert before[0] == after[0][:5] == ["id", "a", "b", "c", "d"]
    assert after[0][5:] == ["imputed"]
    filled = 0
    for old, (*new, count) in zip(before[1:], after[1:], strict=True):
        assert int(count) == sum(cell in ("", "NA", "nan", ".") for cell in old)
        for old_cell, new_cell in zip(old, new, strict=True):
            if old_cell in ("", "NA", "nan", "."):
                float(new_cell)
                filled += 1
            else:
                assert new_cell == old_cell  # as it was written
    assert f"{filled} of 240 values" in shown
    assert "Not used as features: id" in shown
    assert ("PCPCA" in shown) == with_background
    a, b = np.array([[float(row[1]), float(row[2])] for row in after[1:]]).T
    assert np.corrcoef(a, b)[0, 1] > 0.9  # what one tells about the other was used


def test_impute_takes_gamma_and_other_separators(two_files, tmp_path, run):
    text = "\n".join("\t".join(row) for row in read(two_files["cases"]))
    path, out = write(tmp_path / "cases.tsv", text), tmp_path / "filled.tsv"
    arguments = ["impute", path, "--background", two_files["controls"], "--gamma", "0.1", "--components", "1"]
    assert "1 component, gamma = 0.1000" in run(*arguments, "-o", out).out
    assert all(len(row) == 6 for row in read(out, "\t"))
    numbers = write(tmp_path / "bare.csv", "1,2,3\n2,,4\n3,5,5\n4,7,7\n5,9,8.5\n")
    outcome = run("impute", numbers, "--components", "1", "-o", tmp_path / "bare_filled.csv")
    assert "5 cases, 3 features; no header" in outcome.out
    assert read(tmp_path / "bare_filled.csv")[0] == ["1", "2", "3"]
    assert len(read(tmp_path / "bare_filled.csv")) == 5


def test_impute_leaves_identifiers_alone(tmp_path, run, need):
    need("polars")
    rng = np.random.default_rng(0)
    values = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 5))
    lines = [",plate,a,b,c,never,code"]
    for i, row in enumerate(values):
        cells = [f"{x:.3f}" for x in row[:3]]
        cells[i % 3] = ["#N/A", "<NA>", "-nan"][i % 3]
        lines.append(",".join([str(i), str(100 + i), *cells, "", f"3_{i}"]))
    path, out = write(tmp_path / "t.csv", "\n".join(lines)), tmp_path / "o.csv"
    shown = run("impute", path, "--ignore", "plate", "--components", "1", "-o", out).out
    assert "Not used as features: (no name), plate, never, code" in shown
    assert "cannot be filled: never" in shown
    before, after = read(path), read(out)
    for column in (0, 1, 5, 6):
        assert [row[column] for row in before] == [row[column] for row in after]
    assert all(np.isfinite([float(cell) for cell in row[2:5]]).all() for row in after[1:])


def test_impute_of_one_file_leaves_the_controls(two_files, tmp_path, run):
    cases, controls = (read(two_files[name]) for name in ("cases", "controls"))
    back = [controls[0].index(name) for name in cases[0]]
    rows = [["ill", *row] for row in cases[1:]] + [["well", *(row[j] for j in back)] for row in controls[1:]]
    both = write(tmp_path / "both.csv", "\n".join(",".join(row) for row in [["status", *cases[0]], *rows]))
    outcome = run("impute", both, "--group", "status", "--background", "well", "-o", tmp_path / "one.csv")
    assert "The rows of controls stay as they are." in outcome.out
    assert (
        run("impute", two_files["cases"], "--background", two_files["controls"], "-o", tmp_path / "two.csv").code == 0
    )
    one, two = read(tmp_path / "one.csv"), read(tmp_path / "two.csv")
    found, expected = (np.array([row[-5:] for row in part], dtype=float) for part in (one[1:61], two[1:]))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert [row[:-1] for row in one[61:]] == rows[60:]
    assert {row[-1] for row in one[61:]} == {"0"}


def test_impute_of_a_table_without_names(two_files, tmp_path, run):
    """Columns are matched by position, those to be left alone included."""
    rows = read(two_files["cases"])[1:]
    bare = write(tmp_path / "bare.csv", "\n".join(",".join([str(i / 7), *row[1:]]) for i, row in enumerate(rows)))
    controls = [[row[j] for j in (4, 3, 2, 1)] for row in read(two_files["controls"])]
    named = write(tmp_path / "named.csv", "\n".join(map(",".join, controls)))
    arguments = ["impute", bare, "--background", named, "--ignore", "x0", "-o", tmp_path / "filled.csv"]
    outcome = run(*arguments)
    assert outcome.code == 0, outcome.err
    assert "columns matched by position" in outcome.out
    assert "Not used as features: x0" in outcome.out
    assert run("impute", two_files["cases"], "--background", named, "-o", tmp_path / "by_name.csv").code == 0
    found, expected = read(tmp_path / "filled.csv"), read(tmp_path / "by_name.csv")[1:]
    assert [row[0] for row in found] == [str(i / 7) for i in range(60)]
    np.testing.assert_allclose(
        *(np.array([r[1:5] for r in part], dtype=float) for part in (found, expected)), rtol=1e-6
    )


@pytest.mark.parametrize("ending", ["csv", "npy"])
def test_impute_of_arrays(tmp_path, run, ending):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 5)) + 0.1 * rng.standard_normal((30, 5))
    X[::4, 2] = np.nan
    np.save(tmp_path / "x.npy", X)
    out = tmp_path / f"filled.{ending}"
    summary = json.loads(run("impute", tmp_path / "x.npy", "-o", out, "--json").out)
    assert summary["missing"] == 8
    assert summary["columns"][0]["column"] == "x2"
    found = np.load(out) if ending == "npy" else np.array(read(out)[1:], dtype=float)[:, :5]
    np.testing.assert_allclose(found, PPCA(2).fit(X).impute(X), atol=1e-10)


def test_impute_writes_what_the_ending_says(two_files, tmp_path, run):
    impute = ["impute", two_files["cases"], "-o"]
    assert run(*impute, tmp_path / "filled.csv").code == 0
    text = (tmp_path / "filled.csv").read_bytes()
    packed = tmp_path / "filled.csv.gz"
    assert run(*impute, packed).code == 0
    assert gzip.decompress(packed.read_bytes()) == text
    assert packed.read_bytes()[4:8] == bytes(4)  # no time: the same table gives the same bytes
    assert run(*impute, tmp_path / "filled.npy").code == 0
    expected = [[float(cell) for cell in row[1:5]] for row in read(tmp_path / "filled.csv")[1:]]
    np.testing.assert_allclose(np.load(tmp_path / "filled.npy"), expected, rtol=1e-6)
    for name in ("filled.parquet", "filled.npz", "filled", "filled.npy.gz"):
        outcome = run(*impute, tmp_path / name)
        assert outcome.code == 2
        assert "must end in .csv, .tsv, .txt, .csv.gz, .tsv.gz, .txt.gz or .npy." in outcome.err
        assert not (tmp_path / name).exists()


def test_rows_without_values_are_a_warning(tmp_path, run, need):
    need("polars")
    rows = "\n".join(f"{i / 3},{i**2 % 7},{i * 3 % 5}" for i in range(20)) + "\nNA,NA,\n"
    path = write(tmp_path / "t.csv", "a,b,c\n" + rows)
    outcome = run("impute", path, "--components", "1", "-o", tmp_path / "o.csv")
    assert outcome.code == 0
    said = "contrapca: warning: 1 of the 21 rows of the cases have no observed value; they are ignored.\n"
    assert outcome.err == said


def test_what_was_imputed_is_said_and_is_no_feature(two_files, tmp_path, run):
    out, mask = tmp_path / "filled.csv", tmp_path / "mask.csv"
    assert run("impute", two_files["cases"], "-o", out, "--mask-out", mask).code == 0
    rows, before = read(mask), read(two_files["cases"])
    assert rows[0] == ["row", "a", "b", "c", "d", "imputed"]
    assert [row[0] for row in rows] == ["row", *(row[0] for row in before[1:])]
    for given, row in zip(before[1:], rows[1:], strict=True):
        absent = [cell in ("", "NA", "nan", ".") for cell in given[1:]]
        assert list(map(int, row[1:])) == [*absent, sum(absent)]
    total = sum(int(row[-1]) for row in rows[1:])
    outcome = run("test", str(out), "--background", two_files["controls"])
    assert f"caution: {total} values of {str(out)!r} were imputed." in outcome.err
    assert "60 cases and 50 controls, 4 features" in outcome.out
    assert "imputed" not in run("test", two_files["cases"], "--background", two_files["controls"]).err
    outcome = run("impute", two_files["cases"], "-o", tmp_path / "again.csv", "--mask-out", tmp_path / "mask.npy")
    assert "--mask-out" in outcome.err
    assert not (tmp_path / "again.csv").exists()


def test_a_complete_table_has_nothing_to_list(tmp_path, run, need):
    need("polars")
    path = write(tmp_path / "t.csv", "a,b,c\n" + "\n".join(f"{i / 3},{i**2 % 7},{i * 3 % 5}" for i in range(20)))
    outcome = run("impute", path, "--components", "1", "-o", tmp_path / "o.csv")
    assert "No value was missing, so nothing was filled in: " in outcome.out
    assert "filled mean" not in outcome.out
