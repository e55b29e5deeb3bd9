"""The paper's real data sets but for the mouse proteins, which contrapca has: cells, digits and grass.

A set lies in a folder of its own in `contrapca.datasets.data_folder()`, in any of its forms; what is not there is
downloaded from its public source. The checksum is that of the arrays: a source may repack its archive, but not change a
number.
"""

from __future__ import annotations

import csv
import io
import itertools
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
from sklearn.utils import Bunch

from contrapca.datasets import Arrays, content_checksum, data_folder, fetched
from contrapca.exceptions import DatasetError

from ._generators import pixel_names, random_patches

N_DIGITS = 5000  # zeros and ones for training, and as many for the test
CELL_SAMPLES = ("healthy1", "aml027_pre", "aml035_post")


@dataclass(frozen=True)
class Form:
    """The files that make up a data set, and the function that parses them."""

    files: tuple[str, ...]
    read: Callable[[Sequence[Path]], Arrays]


@dataclass(frozen=True)
class Source:
    """A data set: its folder, the forms in which it may be stored, and its public source.

    Attributes
    ----------
    folder : str
    forms : tuple of Form
        In order of preference.
    checksum : str
        Result of `content_checksum` for its arrays.
    urls : tuple of str
        Public addresses of the files of the last form; empty for a set that cannot be downloaded.
    """

    folder: str
    forms: tuple[Form, ...]
    checksum: str
    urls: tuple[str, ...] = ()


def locate(source: Source) -> tuple[Form, list[Path]] | None:
    """The first form of a set whose files are all present."""
    for form in source.forms:
        paths = [data_folder() / source.folder / name for name in form.files]
        if all(path.is_file() for path in paths):
            return form, paths
    return None


def load_arrays(source: Source) -> Arrays:
    """The arrays of a data set, from its files or its public source."""
    found, folder = locate(source), data_folder() / source.folder
    if found is None and not source.urls:
        raise DatasetError(f"There is no {source.forms[-1].files[0]} in {str(folder)!r}, and it cannot be downloaded.")
    if found is None:
        form = source.forms[-1]
        found = form, [fetched(url, folder, name) for url, name in zip(source.urls, form.files, strict=True)]
    form, paths = found
    shown = ", ".join(repr(str(path)) for path in paths)
    try:
        arrays = form.read(paths)
        if (checksum := content_checksum(arrays)) != source.checksum:
            raise ValueError(f"the checksum of its content is {checksum}, not {source.checksum}")
    except Exception as error:  # damaged files make parsers raise nearly anything
        reason = f"({type(error).__name__}: {error})"
        raise DatasetError(f"{shown} is not the data set {source.folder!r} {reason}: delete it.") from error
    return arrays


def read_npz(paths: Sequence[Path]) -> Arrays:
    """Read all arrays of an npz file; pickled ones are refused."""
    with np.load(paths[0], allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def read_digits_arff(paths: Sequence[Path]) -> Arrays:
    """Read OpenML's mnist_784, in the order of MNIST: the first zeros and ones for training, the next for testing."""
    with paths[0].open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip().lower() == "@data":
                break
        rows = (row for row in csv.reader(lines, quotechar="'", skipinitialspace=True) if row)
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
    import PIL.Image  # late: comes with the extra "plot"

    with PIL.Image.open(paths[0], formats=["PNG"]) as picture:
        return {"images": np.array(picture.convert("L"))[None]}


def read_cells_npz(paths: Sequence[Path]) -> Arrays:
    """Read the counts of the 500 genes, one matrix for each sample; other samples are ignored."""
    arrays = read_npz(paths)
    return {name: arrays[name] for name in ("genes", "gene_symbols", *CELL_SAMPLES)}


def read_cells_tar(paths: Sequence[Path]) -> Arrays:
    """Read the archives of 10x Genomics with all genes, one for each of CELL_SAMPLES.

    No rule that was tried on the counts gives the paper's 500 genes (the best finds 283 of them), so their Ensembl ids
    lie beside this file.
    """
    wanted = Path(__file__).with_name("zheng_genes.txt").read_text().split()
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


_10X = "https://cf.10xgenomics.com/samples/cell-exp/1.1.0"
_10X_SAMPLES = ("frozen_bmmc_healthy_donor1", "aml027_pre_transplant", "aml035_post_transplant")
_10X_FILES = tuple(f"{sample}_filtered_gene_bc_matrices.tar.gz" for sample in _10X_SAMPLES)
CELLS = Source(
    folder="zheng_bmmc",
    forms=(Form(("zheng500.npz",), read_cells_npz), Form(_10X_FILES, read_cells_tar)),
    checksum="c952d22ed0e3dbf787ecfa28fa95f2df8437515a020ef6d52630d7698363177b",
    urls=tuple(f"{_10X}/{sample}/{file}" for sample, file in zip(_10X_SAMPLES, _10X_FILES, strict=True)),
)
DIGITS = Source(
    folder="corrupted_mnist",
    forms=(Form(("mnist01.npz",), read_npz), Form(("mnist_784.arff",), read_digits_arff)),
    checksum="01c80f84652f20323c7c38f05c892a7956b4100f66ab18dc51d2f283b4c683a8",
    urls=("https://www.openml.org/data/v1/download/52667/mnist_784.arff",),
)
PHOTOGRAPH = Source(
    folder="corrupted_mnist",
    forms=(
        Form(("grass.npz",), read_npz),
        Form(("skimage_grass_v0.19.3.png",), read_photograph),
        Form(("grass.png",), read_photograph),
    ),
    checksum="74630b2a4783546951df3e5e7ca47e8fb3297c97612dca08b99be3468f1025cb",
    urls=("https://raw.githubusercontent.com/scikit-image/scikit-image/v0.19.3/skimage/data/grass.png",),
)
GRASS700 = Source(
    folder="corrupted_mnist",
    forms=(Form(("grass700.npz",), read_grass700),),
    checksum="d27508b874866f66e7dcf08d985dfd3a2091f5566206a306d79b41bd620f30b0",
)
SIDE = 28  # pixels in a row of an MNIST digit
DIGIT_SHARE = 0.25  # of a digit's brightness, as in the paper
GRASS = ("auto", "photograph", "grass700")


def load_zheng_bmmc(*, log: bool = True) -> Bunch:
    """Single-cell gene expression of bone marrow (Zheng et al. 2017), with a STAND-IN for the paper's foreground.

    The paper's foreground is patient AML035 before and after a transplant. The cells before could not be obtained;
    those of patient AML027 replace them. Patient and label are thus confounded, and no result from this foreground can
    be compared with the paper. The background is that of the paper: healthy donor 1.

    Parameters
    ----------
    log : bool
        Return log(1 + count), as in the paper, instead of counts.

    Returns
    -------
    Bunch
        `foreground` (4842, 500), `background` (1985, 500), `labels` (of each foreground row: "pre" or "post" the
        transplant), `feature_names` (gene symbols), `gene_ids` (Ensembl), `description`.

    Notes
    -----
    The paper standardises each group separately: ``scale="group"``.
    """
    arrays = load_arrays(CELLS)
    before, after, healthy = (arrays[name].astype(np.float64) for name in ("aml027_pre", "aml035_post", "healthy1"))
    foreground = np.vstack([before, after])
    return Bunch(
        foreground=np.log1p(foreground) if log else foreground,
        background=np.log1p(healthy) if log else healthy,
        labels=np.repeat(["pre", "post"], [len(before), len(after)]),
        feature_names=arrays["gene_symbols"].tolist(),
        gene_ids=arrays["genes"].tolist(),
        description=(
            "STAND-IN FOREGROUND: AML027 before and AML035 after a transplant, where the paper has AML035 both times; "
            "patient and label are confounded. Background: healthy donor 1, as in the paper. Bone-marrow cells (10x "
            "Genomics, Zheng et al. 2017, CC BY 4.0), the paper's 500 genes, "
            f"{'log(1 + count)' if log else 'counts'}."
        ),
    )


def load_corrupted_mnist(*, n: int = 5000, grass: str = "auto", random_state: Any = 0) -> Bunch:
    """Handwritten zeros and ones, faint on grass, against grass alone.

    A foreground row is 0.25 digit + a random patch of grass. A background row is a patch from elsewhere: from other
    photographs, or from the other half of the same one.

    Parameters
    ----------
    n : int
        Number of rows of each group, at most 5000.
    grass : {"auto", "photograph", "grass700"}
        The CC0 photograph that comes with scikit-image (downloaded if needed), or a set of 700 photographs that cannot
        be downloaded and must be in the folder named by CONTRAPCA_DATA; "auto" uses the latter if it is there.
    random_state : None, int or Generator
        Determines the patches.

    Returns
    -------
    Bunch
        `foreground` (n, 784), `background` (n, 784), `labels` (the digit of each foreground row), `test` (5000, 784;
        further digits, clean and at full brightness, 0 to 255), `test_labels`, `grass` (which was used),
        `feature_names`, `image_shape`, `description`.

    Notes
    -----
    The paper standardises each group separately: ``scale="group"``. Its grass came from ImageNet.
    """
    if grass not in GRASS:
        raise ValueError(f"grass={grass!r} is not valid. Choose one of {', '.join(map(repr, GRASS))}.")
    if not 1 <= n <= N_DIGITS:
        raise ValueError(f"n={n} must be at least 1 and at most {N_DIGITS}, the number of digits.")
    rng = np.random.default_rng(random_state)
    many = grass == "grass700" or (grass == "auto" and locate(GRASS700) is not None)
    photographs = load_arrays(GRASS700 if many else PHOTOGRAPH)["images"]
    if many:
        of = "700 photographs of grass (licence unknown)"
        photographs = rng.permutation(photographs)
        ours, others = photographs[::2], photographs[1::2]
    else:
        of = "the CC0 photograph of grass that comes with scikit-image"
        ours, others = np.split(photographs, 2, axis=2)
    digits = load_arrays(DIGITS)
    flat = (-1, SIDE * SIDE)
    images = DIGIT_SHARE * digits["train_images"][:n].reshape(flat)
    return Bunch(
        foreground=images + random_patches(ours, n, SIDE, rng),
        background=random_patches(others, n, SIDE, rng),
        labels=digits["train_labels"][:n],
        test=digits["test_images"].reshape(flat).astype(np.float64),
        test_labels=digits["test_labels"],
        feature_names=pixel_names(SIDE, SIDE),
        image_shape=(SIDE, SIDE),
        grass="grass700" if many else "photograph",
        description=(
            f"MNIST's zeros and ones times {DIGIT_SHARE}, plus patches of {of}; background: patches from elsewhere. "
            "(The paper's grass came from ImageNet.)"
        ),
    )
