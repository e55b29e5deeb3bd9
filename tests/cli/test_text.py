"""Text tables: separators, headers, names of rows, numbers and what is none."""

import gzip
import io
import zipfile

import numpy as np
import pytest

from contrapca.exceptions import TableFileError
from contrapca.reading._formats import read_table
from contrapca.reading._text import write_filled


@pytest.fixture
def table(tmp_path, need):
    need("polars")

    def reader(content, name="table.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(path, **options)

    return reader


@pytest.mark.parametrize(
    "content",
    [
        "a,b,c\n1,2,3\n4,5,6\n",
        "\ufeffa,b,c\r\n1,2,3\r\n4,5,6\r\n",
        "a\tb\tc\n1\t2\t3\n4\t5\t6",
        "a;b;c\n1;2;3\n4;5;6\n",
        "a|b|c\n1|2|3\n4|5|6\n",
        "a b c\n1  2 3\n 4 5 6\n",
        '"a","b",c\n"1",2,3\n4,"5",6\n',
        " a , b,c\n 1, 2 ,3\n4,5 ,6\n",
        "a,b,c\n\n1,2,3\n \n4,5,6\n\n",
        "a,b,c,\n1,2,3,\n4,5,6,\n",
        "a,b,c\n1,2,3,\n4,5,6,\n",
        "a,b,c\n1,2,3\n,,\n4,5,6\n,,,,\n",
        ",,\na,b,c\n1,2,3\n4,5,6\n",
        'a,b,c\n1,2,3\n"","",""\n4,5,6\n',
        "sep=,\na,b,c\n1,2,3\n4,5,6\n",
        '"sep=:"\na:b:c\n1:2:3\n4:5:6\n',
        gzip.compress(b"a,b,c\n1,2,3\n4,5,6\n", mtime=0),  # part of the name of the test
    ],
)
def test_ways_to_write_one_table(table, content):
    found = table(content, "table.csv.gz" if content[:2] == b"\x1f\x8b" else "table.txt")
    assert found.names == ["a", "b", "c"]
    np.testing.assert_array_equal(found.values, [[1, 2, 3], [4, 5, 6]])
    assert found.named
    assert found.row_names is None
    assert found.texts == {}


def test_a_separator_in_quotes_or_cells_is_none(table):
    assert table('"a;x";b\n1;2\n3;4\n').names == ["a;x", "b"]
    found = table("a,b,terms\n1,2,G1;G2\n3,4,G3;G4\n")
    assert found.names == ["a", "b"]
    assert found.texts["terms"].tolist() == ["G1;G2", "G3;G4"]


def test_quotes_in_odd_places(table):
    found = table('id,note,a\n5" pipe,"x, y",1\n"6"" pipe","",2\n"7","two\nlines","3"\n')
    assert found.texts["id"].tolist() == ['5" pipe', '6" pipe', "7"]
    assert found.texts["note"].tolist() == ["x, y", "", "two\nlines"]
    np.testing.assert_array_equal(found.values, [[1], [2], [3]])


@pytest.mark.parametrize(
    ("content", "names", "row_names"),
    [
        (",a,b\n10,1,2\n11,3,4\n", ["a", "b"], ["10", "11"]),  # as pandas writes an index
        ("a,b\nr1,1,2\nr2,3,4\n", ["a", "b"], ["r1", "r2"]),  # as R writes names of rows
        ("id,a,b\nr1,1,2\nr2,3,4\n", ["a", "b"], ["r1", "r2"]),
        ("sex,a,b\nf,1,2\nf,3,4\n", ["a", "b"], None),  # not distinct
        ("r1,1.5,2\nr2,3.5,4\n", ["x1", "x2"], ["r1", "r2"]),  # a fraction: no header
        ("gene,2019,2020\nx,1,2\ny,3,4\n", ["2019", "2020"], ["x", "y"]),
        ("2019,2020\n1980,1\n3,4\n", ["x0", "x1"], None),  # a year below
        ("age,100.5,98.5\n1,2,3\n4,,6\n", ["age", "100.5", "98.5"], None),  # text over numbers
        ("a,inf,b\n1,2,3\n4,5,6\n", ["a", "inf", "b"], None),
        ("inf,2.5\n1,3\n", ["x0", "x1"], None),  # a value that is refused later
        (",100.5,98.5\nr1,2,3\nr2,5,6\n", ["100.5", "98.5"], ["r1", "r2"]),
        (",100.5,98.5\n0,2,3\n1,5,6\n", ["100.5", "98.5"], ["0", "1"]),
        (",100.5,98.5\n4,2,3\n2,5,6\n", ["x0", "x1", "x2"], None),  # a missing value
        ("100.5 98.5\nr1 1 2\nr2 3 4\n", ["100.5", "98.5"], ["r1", "r2"]),
        ("r1,1.5,2,3,4,5\nr2,2.5,3,4,5,6\n", [f"x{j}" for j in range(1, 6)], ["r1", "r2"]),  # all rows in order
    ],
)
def test_headers_and_names_of_rows(table, content, names, row_names):
    found = table(content)
    assert found.names == names
    assert found.row_names == row_names


def test_the_header_can_be_told(table):
    content = "2019,2020\n1,2\n3,4\n"
    assert table(content, header=True).names == ["2019", "2020"]
    found = table("a,b\n1,2\n3,4\n", header=False)
    assert found.names == []  # mostly numbers, but for the names
    assert found.mixed == {"x0": "'a' on line 1", "x1": "'b' on line 1"}


@pytest.mark.parametrize(
    "content",
    ["a;b;c\n1,5;-2;1e3\n.;2,25E-1;0,125\n", "a\tb\tc\n1,5\t-2\t1e3\nNA\t,225\t0,125\n"],
)
def test_decimal_commas(table, content):
    found = table(content)
    np.testing.assert_array_equal(found.values, [[1.5, -2, 1000], [np.nan, 0.225, 0.125]])
    assert found.notes == ["numbers with decimal commas"]
    file = io.BytesIO()
    write_filled(found, file, ["a"], np.array([[9.0], [0.75]]))
    assert file.getvalue().decode() == content.replace(".;", "0,75;").replace("NA", "0,75")


def test_points_beside_decimal_commas_are_no_numbers(table):
    rows = "\n".join(f"{i},5;2" for i in range(30))  # the point is below the rows that tell the decimal sign
    found = table(f"a;b\n{rows}\n1.500;3\n")
    assert found.names == ["b"]
    assert found.mixed == {"a": "'1.500' on line 32"}


def test_kinds_of_columns(table):
    found = table("n,t,e,m\n1,x,,1\nNA,y,.,2\n 3 ,,?,bad\nnull,z,N/A,4\n")
    assert found.names == ["n"]
    np.testing.assert_array_equal(found.values[:, 0], [1, np.nan, 3, np.nan])
    assert found.texts["t"].tolist() == ["x", "y", "", "z"]
    assert found.empty == ["e"]
    assert found.mixed == {"m": "'bad' on line 4"}
    assert found.as_text("n").tolist() == ["1", "", "3", ""]
    assert found.as_text("e").tolist() == [""] * 4
    assert found.columns == ["n", "t", "m", "e"]
    assert table("a,b,c\n1,3_1,2\n2,3_2,4\n").names == ["a", "c"]  # Python's 3_1 is no number


def test_words_for_missing_values_in_text(table):
    found = table("g,a\nx,1\nNA,2\n NaN ,3\nnull,4\nn/a,5\nnone,6\n")
    assert found.as_text("g").tolist() == ["x", "", "", "", "", "none"]  # none is a group as well
    assert found.texts["g"].tolist() == ["x", "NA", "NaN", "null", "n/a", "none"]


def test_text_that_shows_late(table):
    """Columns are read in blocks: what the first blocks take for numbers may be text."""
    rows = [["1", str(i), "x" if i > 4 else "7"] for i in range(9)]
    found = table("a,b,c\n" + "\n".join(",".join(row) for row in rows))
    assert found.names == ["a", "b"]
    np.testing.assert_array_equal(found.values[:, 1], np.arange(9))
    assert found.texts["c"].tolist() == ["7"] * 5 + ["x"] * 4
    assert found.mixed == {"c": ", ".join(f"'x' on line {line}" for line in range(7, 11))}


def test_a_bad_cell_far_down(table):
    """In a later block, with rows that take several lines, blank and empty lines before it."""
    lines = [f"{i},{i / 8},{-i}" for i in range(2000)]
    lines[10] = '1,2,"3"'
    lines[20:20] = ["", ",,", '4,5,"\n6\n"']
    bad = next(i for i, line in enumerate(lines) if line.startswith("1500,"))
    lines[bad] = "1500,<0.5,-1500"
    text = "a,b,c\n" + "\n".join(lines)
    found = table(text)
    assert found.names == ["a", "c"]
    assert found.values.shape == (2001, 2)
    place = next(number for number, line in enumerate(text.split("\n"), 1) if "<0.5" in line)  # as an editor counts
    assert found.mixed == {"b": f"'<0.5' on line {place}"}
    lines[bad] = "1500,1"
    with pytest.raises(TableFileError, match=f"Line {place} of .* has 2 cells; expected 3"):
        table("a,b,c\n" + "\n".join(lines))
    lines[bad] = 'x,"open,1'
    with pytest.raises(TableFileError, match=f"Line {place} of .* is a quote not closed"):
        table("a,b,c\n" + "\n".join(lines))


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2.5", "-3e5", "+4", ".5", "5."], "numbers"),
        (["1", "", "NA", " 2 ", "nan", "3"], "numbers"),
        (["\t1", "2\u00a0", '" 3 "', '"4"', "NULL", "?"], "numbers"),
        (["inf", "1", "-inf", "2", "1e400", "3"], "numbers"),
        (["", "NA", ".", "?", "null", "None"], "empty"),
        (["x", "y", "x", "", "NA", "x"], "text"),
        (["1", "x", "2", "y", "3", "z"], "text"),
        (["1", "2", "3", "4", "n.d.", "6"], "mixed"),
        (["1", "2", "3_1", "4", "5", "6"], "mixed"),
        (["10%", "20%", "30%", "1", "50%", "60%"], "text"),
        (["2024-01-01"] * 6, "text"),
        (["true", "false", "true", "true", "NA", "false"], "text"),
    ],
)
def test_mixtures_in_a_column(table, cells, kind):
    found = table("a,b\n" + "\n".join(f"{i},{cell}" for i, cell in enumerate(cells)))
    where = {"numbers": found.names, "empty": found.empty, "text": found.texts, "mixed": found.mixed}
    assert [name for name, columns in where.items() if "b" in columns] == (
        ["text", "mixed"] if kind == "mixed" else [kind]
    )
    if kind == "numbers":
        expected = [
            cell.strip('" ') if cell.strip('" ').lower() not in ("na", "null", "?", "") else "nan" for cell in cells
        ]
        np.testing.assert_array_equal(found.values[:, 1], np.array(expected, dtype=float))


def test_zip(tmp_path, need):
    need("polars")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name, text in {"data/": "", "data/a.csv": "a;b\n1;2\n", "__MACOSX/._a.csv": "junk", "read.md": ""}.items():
            archive.writestr(name, text)
    found = read_table(tmp_path / "x.zip")
    assert found.names == ["a", "b"]
    content = (tmp_path / "x.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "x.zip", "a") as archive:
        archive.writestr("b.txt", "a,b\n1,2\n")
    with pytest.raises(TableFileError, match=r"x.zip' contains 2 tables \('data/a.csv', 'b.txt'\): extract the one"):
        read_table(tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.png", "")
    with pytest.raises(TableFileError, match=r"x.zip' contains no .csv, .tsv, .txt file \(it contains 'a.png'\)"):
        read_table(tmp_path / "x.zip")
    marked = content.replace(b"PK\x01\x02\x14\x03\x14\0\0\0", b"PK\x01\x02\x14\x03\x14\0\1\0")  # encrypted
    (tmp_path / "x.zip").write_bytes(marked)
    with pytest.raises(TableFileError, match=r"x.zip' cannot be decompressed \(.*password.*\): extract it first"):
        read_table(tmp_path / "x.zip")


def test_numbers_are_those_of_the_text(table):
    X = np.random.default_rng(0).standard_normal((300, 40)) * 10.0 ** np.arange(-20, 20)
    text = ",".join(f"g{j}" for j in range(40)) + "\n" + "\n".join(",".join(map(repr, row)) for row in X.tolist())
    np.testing.assert_array_equal(table(text).values, X)


def test_write_filled_changes_holes_only(table):
    content = 'sep=;\nid; a;b\n"x;1"; 1.50;NA\n;;\ny;;2\n;\n'
    found, file = table(content), io.BytesIO()
    assert found.notes == ["2 empty rows left out"]
    write_filled(found, file, ["a", "b"], np.array([[9, 0.25], [np.nan, 9]]))
    assert file.getvalue().decode() == content.replace("NA", "0.25")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("1,234;2,345\n2,500;3,500\n", "decimal commas or thousands separators, such as '2,500'"),
        ('a,b\n"1,5","2,5"\n"2,5","3,5"\n', "decimal commas"),
        ("a;b\n1,5;2.5\n2,5;3.5\n", "decimal commas"),  # which of the two separates thousands?
        (
            "id,1.5,2.5,3,4.5,6\nr1,3,1,2,5,4\nr2,2,2,1,1,1\n",
            "unclear whether the first line of '.*' contains names: .* from 1.5 to 6,",
        ),
        ("2019,2020\n1,2\n3,4\n", "from 2019 to 2020, and those below are not. Add header=True"),
        ("9.5,8,7.5,6,5\n3,1,2,5,4\n2,2,1,1,1\n", "from 9.5 to 5, and those below are not. Add header=True"),
        ("sep=,\na,b\n1,2\n3\n", "Line 4 of .* has 1 cell; expected 2"),
        ("1.5\n2.5\n", "only one column"),
        ('a,b\n1,"2\n', "is a quote not closed"),
    ],
)
def test_refusals(table, content, says):
    with pytest.raises(TableFileError, match=says):
        table(content)


def test_a_cell_that_is_only_a_byte_order_mark(table):
    """Found by fuzzing: neither a number nor a text that could be named."""
    found = table("gene0,gene1\n\ufeff,0.284\n-1.083,2.547\n")
    assert "gene1" in found.names


def test_points_between_thousands(table):
    found = table("a;b\n1.545.018;225.438\n2.000.000;3.500,5\n", thousands=True)
    np.testing.assert_array_equal(found.values, [[1545018, 225438], [2000000, 3500.5]])
    found = table("a;b\n12,345;0.567\n1,000;0.125\n", thousands=True)
    np.testing.assert_array_equal(found.values, [[12345, 0.567], [1000, 0.125]])


@pytest.mark.parametrize("comment", ["# end", "# a, b", "# a, b, c, d", '#, "x', "#"])
def test_comments_in_and_below_a_table(table, comment):
    lines = ["a,b,c", "1,2,3", comment, "4,5,", comment]
    found = table("\n".join(lines) + "\n")
    np.testing.assert_array_equal(found.values, [[1, 2, 3], [4, 5, np.nan]])
    assert found.notes == ["2 lines that begin with # skipped"]
    filled = io.BytesIO()
    write_filled(found, filled, ["c"], np.array([[np.nan], [6.0]]))
    assert filled.getvalue().decode().split() == ["a,b,c", "1,2,3", "4,5,6"]


def test_names_of_rows_may_begin_with_the_sign_of_comments(table):
    found = table('id,a,b\n#1,"1",2\n#2,3,4\n')
    assert found.row_names == ["#1", "#2"]
    assert found.notes == []


@pytest.mark.parametrize(
    "content",
    ["f0,f1,\ns0,1,2,\ns1,3,4,\n", "f0\tf1\t\ns0\t1\t2\t\ns1\t3\t4\t\n"],  # each line ends in a separator
)
def test_columns_below_the_header_of_row_names_are_not_shifted(table, content):
    found = table(content)
    assert found.names == ["f0", "f1"]
    np.testing.assert_array_equal(found.values, [[1, 2], [3, 4]])
    assert found.row_names == ["s0", "s1"]


@pytest.mark.parametrize("content", ['x\n""\n', 'x\n""\n""\n', '""\n', '"a"\n'])
def test_one_column_is_refused_whatever_its_cells(table, content):
    with pytest.raises(TableFileError, match=r"only one column|is empty"):
        table(content)


def test_points_that_only_can_separate_thousands(table):
    found = table("a;b\n1.234;815\n2.500;900\n", thousands=True)
    np.testing.assert_array_equal(found.values, [[1234, 815], [2500, 900]])
    np.testing.assert_array_equal(table("a;b\n1.234;815\n2.500;900\n").values[:, 0], [1.234, 2.5])
    found = table("a;b\n1.234;0.5\n2.500;900\n", thousands=True)
    np.testing.assert_array_equal(found.values, [[1.234, 0.5], [2.5, 900]])


def test_a_comment_of_as_many_cells_as_the_header_is_none(table):
    found = table("# exported, 2020\na,b\n1,2\n3,4\n")
    assert found.names == ["a", "b"]
    years = "# exported, 2020\n1990,1991\n1,2\n3,4\n"
    assert table(years, header=True).names == ["1990", "1991"]
    with pytest.raises(TableFileError, match="Add header=True if they are names"):
        table(years)
    assert table("#a,b\n1,2\n3,4\n").names == ["a", "b"]
    assert table("#id,a\ns0,1\ns1,3\n").names == ["a"]
    assert table("#a,b,c,d,e\n1,2,3,4,5\n3,1,2,5,4\n2,1,3,5,4\n").names == list("abcde")  # in order by chance
    assert table("#a,b\nND,1\n2,3\n4,5\n6,7\n").mixed == {"a": "'ND' on line 2"}
