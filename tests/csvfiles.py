"""Text tables of tests, by the standard library alone."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np


def write_csv(path, names, rows, separator=","):
    """Rows of values as text; NaN as an empty cell."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([["" if value != value else value for value in row] for row in rows])
    return path


def read_csv(path, separator=","):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=separator))


def columns_of(path, names):
    """Columns of a CSV file as numbers, shape (n, len(names))."""
    header, *rows = read_csv(path)
    return np.array([[float(row[header.index(name)]) for name in names] for row in rows])
