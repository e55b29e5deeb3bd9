"""Parsers of data files: each turns one form of a data set into its arrays."""

from __future__ import annotations

import csv
import importlib.resources
import io
import itertools
import re
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse

from .._util.optional import require
from ._fetch import Arrays

ATTRIBUTE = re.compile(r"@attribute\s+('[^']*'|\"[^\"]*\"|\S+)", re.IGNORECASE)
MISSING = {"", "?"}
N_PROTEINS = 77
N_DIGITS = 5000  # zeros and ones for training, and as many for the test
CELL_SAMPLES = ("healthy1", "aml027_pre", "aml035_post")


def read_npz(paths: Sequence[Path]) -> Arrays:
    """Read all arrays of an npz file; pickled ones are refused."""
    with np.load(paths[0], allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def read_arff(path: Path) -> tuple[list[str], Iterator[list[str]]]:
    """Read the names and rows of a dense ARFF file; cells as text."""
    names: list[str] = []
    lines = _lines(path)
    for line in lines:
        if found := ATTRIBUTE.match(line.strip()):
            names.append(found.group(1).strip("'\""))
        elif line.strip().lower() == "@data":
            return names, csv.reader(lines, quotechar="'", skipinitialspace=True)
    raise ValueError("it has no @data line")


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file without comments and blank lines."""
    with path.open(encoding="utf-8") as text:
        yield from (line for line in text if line.strip() and not line.startswith("%"))


def read_mouse_csv(paths: Sequence[Path]) -> Arrays:
    """Read the table of the UCI repository, saved as CSV."""
    with paths[0].open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    return _mouse(header, rows)


def read_mouse_arff(paths: Sequence[Path]) -> Arrays:
    """Read the same table as OpenML provides it."""
    return _mouse(*read_arff(paths[0]))


def _mouse(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Arrays:
    """Proteins as numbers, NaN if missing, and the three properties that define the groups."""
    rows, numbers = list(rows), slice(1, 1 + N_PROTEINS)
    values = [[np.nan if cell in MISSING else float(cell) for cell in row[numbers]] for row in rows]
    arrays = {"values": np.array(values), "proteins": np.array(header[numbers])}
    for name in ("Genotype", "Treatment", "Behavior"):
        arrays[name.lower()] = np.array([row[header.index(name)] for row in rows])
    return arrays


def read_digits_arff(paths: Sequence[Path]) -> Arrays:
    """Read OpenML's mnist_784, in the order of MNIST: the first zeros and ones for training, the next for testing."""
    names, rows = read_arff(paths[0])
    if len(names) != 785 or names[-1] != "class":
        raise ValueError("its columns are not 784 pixels and the class")
    wanted = itertools.islice((row for row in rows if row[-1] in {"0", "1"}), 2 * N_DIGITS)
    table = np.array([np.array(row, dtype=np.uint8) for row in wanted])
    if len(table) != 2 * N_DIGITS:
        raise ValueError(f"it has {len(table)} zeros and ones; expected {2 * N_DIGITS}")
    images, labels = table[:, :-1].reshape(-1, 28, 28), table[:, -1]
    return {
        "train_images": images[:N_DIGITS],
        "train_labels": labels[:N_DIGITS],
        "test_images": images[N_DIGITS:],
        "test_labels": labels[N_DIGITS:],
    }


def read_grass700(paths: Sequence[Path]) -> Arrays:
    """Read grey crops, one from each of 700 photographs."""
    return {"images": read_npz(paths)["images"]}


def read_photograph(paths: Sequence[Path]) -> Arrays:
    """Read a PNG picture as grey levels."""
    with require("PIL.Image", extra="plot").open(paths[0], formats=["PNG"]) as picture:
        return {"images": np.array(picture.convert("L"))[None]}


def read_cells_npz(paths: Sequence[Path]) -> Arrays:
    """Read the counts of the 500 genes, one matrix for each sample; other samples are ignored."""
    arrays = read_npz(paths)
    return {name: arrays[name] for name in ("genes", "gene_symbols", *CELL_SAMPLES)}


def read_cells_tar(paths: Sequence[Path]) -> Arrays:
    """Read the archives of 10x Genomics with all genes, one for each of CELL_SAMPLES.

    No rule that was tried on the counts gives the paper's 500 genes (the best finds 283 of them), so their Ensembl ids
    come with the package.
    """
    wanted = importlib.resources.files(__package__).joinpath("zheng_genes.txt").read_text().split()
    arrays: Arrays = {"genes": np.array(wanted)}
    for name, path in zip(CELL_SAMPLES, paths, strict=True):
        files = _members(path, {"genes.tsv", "matrix.mtx"})
        symbol_of = dict(line.split("\t")[:2] for line in files["genes.tsv"].decode().splitlines())
        place = {gene: row for row, gene in enumerate(symbol_of)}
        counts = scipy.sparse.csr_array(scipy.io.mmread(io.BytesIO(files["matrix.mtx"])))  # genes in rows
        arrays[name] = counts[[place[gene] for gene in wanted]].toarray().T.astype(np.int32)
        arrays["gene_symbols"] = np.array([symbol_of[gene] for gene in wanted])
    return arrays


def _members(path: Path, wanted: set[str]) -> dict[str, bytes]:
    """The content of some files of a tar archive, by name without folder; nothing is extracted to disk."""
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name, file = Path(member.name).name, archive.extractfile(member)
            if name in wanted and file is not None:
                found[name] = file.read()
    return found
