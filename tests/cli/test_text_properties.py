"""A table written in any style is read back as it was."""

import csv
import gzip
import io
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contrapca.reading._formats import read_table

MISSING = ["", "NA", "nan", "NULL", "n/a", "?", " NA "]
ALPHABET = "aBz 09é漢\"'\u00a0_-#%"  # other separators, in every row, would be fair doubts
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-1000, 1000).map(float)


@st.composite
def tables(draw):
    """Names, columns of numbers (NaN: missing) or texts, rows of cells, and the style in which they are written."""
    separator = draw(st.sampled_from(",;\t| "))
    style = {
        "separator": separator,
        "decimal": draw(st.sampled_from(".,")) if separator in ";\t|" else ".",
        "quoting": draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])),
        "line": draw(st.sampled_from(["\n", "\r\n", "\r"])),
        "mark": draw(st.sampled_from(["", "\ufeff"])),
        "packing": draw(st.sampled_from(["csv", "csv.gz", "zip"])),
    }
    # Several spaces separate once, so empty cells cannot be written with them.
    missing = [word for word in MISSING if separator != " " or word.isalpha()]
    alphabet = ALPHABET + ("" if separator == " " else separator + "\n")
    texts = st.text(alphabet, max_size=6).map(lambda text: f"t{text}")
    n_rows = draw(st.integers(1, 12))
    columns = [np.resize([0.5, 0.25], n_rows).tolist()]  # at least one fraction shows the decimal sign
    for kind in draw(st.lists(st.sampled_from([NUMBERS, NUMBERS | st.just(np.nan), texts]), min_size=1, max_size=6)):
        columns.append(draw(st.lists(kind, min_size=n_rows, max_size=n_rows)))
    names = [f"{draw(texts).strip()}{j}" for j in range(len(columns))]
    cells = [[draw(st.sampled_from(missing)) if x != x else _written(x, draw, style) for x in c] for c in columns]
    return names, columns, list(zip(*cells, strict=True)), style


def _written(value, draw, style):
    if isinstance(value, str):
        return value
    text = repr(value) if draw(st.booleans()) or value != int(value) else str(int(value))
    return text.replace(".", style["decimal"])


def write(folder, names, rows, style):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=style["separator"], quoting=style["quoting"], lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    content = (style["mark"] + text.getvalue().replace("\n", style["line"])).encode()
    path = folder / f"table.{style['packing']}"
    match style["packing"]:
        case "csv.gz":
            path.write_bytes(gzip.compress(content))
        case "zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("folder/table.csv", content)
        case _:
            path.write_bytes(content)
    return path


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=300)
@given(table=tables())
def test_round_trip(tmp_path, need, table):
    need("polars")
    names, columns, rows, style = table
    found = read_table(write(tmp_path, names, rows, style), header=True)
    is_text = [isinstance(column[0], str) for column in columns]
    is_empty = [not text and bool(np.isnan(column).all()) for text, column in zip(is_text, columns, strict=True)]
    numeric = [j for j in range(len(columns)) if not is_text[j] and not is_empty[j]]
    assert found.names == [names[j] for j in numeric]
    np.testing.assert_array_equal(found.values, np.array([columns[j] for j in numeric]).T)
    assert found.empty == [name for name, empty in zip(names, is_empty, strict=True) if empty]
    assert {name: cells.tolist() for name, cells in found.texts.items()} == {
        name: [cell.strip() for cell in column]
        for name, column, text in zip(names, columns, is_text, strict=True)
        if text
    }
    assert found.mixed == {}
