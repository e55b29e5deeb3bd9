"""Two generators with known truth, and one real table."""

from __future__ import annotations

import csv
import hashlib
import http.client
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.io.arff
import scipy.sparse as sp
from sklearn.utils import Bunch

from ._util.checks import check_count, generator
from ._util.optional import require
from ._util.text import default_names
from .exceptions import DatasetError

__all__ = ["load_mouse_protein", "make_cells", "make_hidden_clusters"]


Arrays = dict[str, npt.NDArray[Any]]
CELL_TYPES = ("B", "Mono", "T")
PROGRAMME = 15  # genes of the programme that some cells of the cases have switched on
MEAN_COUNT = 1.0  # of a typical gene in a typical cell
TYPE_SD, SIZE_SD = 1.0, 0.3  # of log means between cell types, and of log library sizes
ACTIVE = 0.4  # fraction of the cases' cells with the programme
MOUSE_FILES = ("Data_Cortex_Nuclear.csv", "MiceProtein.arff")  # UCI's table, saved as CSV, and OpenML's
MOUSE_URL = "https://www.openml.org/data/v1/download/17928620/MiceProtein.arff"
MOUSE_SHA256 = (
    "f2101602588111325b0742091339a0c409c02f304c8b3c446869e185f67e623d"  # of the content, by `content_checksum`
)
N_PROTEINS = 77


def make_hidden_clusters(
    n_foreground: int = 400,
    n_background: int = 400,
    n_features: int = 30,
    *,
    separation: float = 4.0,
    nuisance: float = 4.0,
    random_state: Any = None,
) -> Bunch:
    """Four clusters of cases, hidden under stronger variation that cases and controls share.

    Rows are centre + nuisance + noise. The centres (foreground only) are the corners of a square of side
    2 `separation` / sqrt(2) in a random plane; the nuisance varies with standard deviation `nuisance` along each
    of three random directions orthogonal to it, in both groups; the noise has variance 1.

    Parameters
    ----------
    n_foreground, n_background, n_features : int
        Sizes; at least 6 features.
    separation : float
        Distance of a cluster's centre from the mean.
    nuisance : float
        Standard deviation along each nuisance direction.
    random_state : None, int, Generator or RandomState

    Returns
    -------
    Bunch
        `foreground`, `background` (tables), `labels` (cluster of each foreground row), `feature_names`,
        `plane` (n_features, 2; the true contrastive directions), `description`.
    """
    if n_features < 6:
        raise ValueError(f"n_features={n_features} must be at least 6: five directions are planted.")
    rng = generator(random_state)
    directions = np.linalg.qr(rng.standard_normal((n_features, 5)))[0]
    plane, shared = directions[:, :2], directions[:, 2:]

    def rows(n: int) -> Any:
        return nuisance * rng.standard_normal((n, 3)) @ shared.T + rng.standard_normal((n, n_features))

    labels = np.arange(n_foreground) % 4
    angle = np.pi / 4 + labels * np.pi / 2
    centres = separation * np.column_stack([np.cos(angle), np.sin(angle)]) @ plane.T
    return Bunch(
        foreground=rows(n_foreground) + centres,
        background=rows(n_background),
        labels=labels,
        feature_names=default_names(n_features),
        plane=plane,
        description="Four clusters of cases, hidden under variation that cases and controls share.",
    )


def make_cells(
    n_donors: int = 24,
    n_cells: int = 25,
    n_genes: int = 100,
    *,
    effect: float = 1.5,
    donor_effect: float = 0.3,
    random_state: Any = None,
) -> Any:
    """Counts of single cells from patients and controls, with donors (extra `anndata`).

    Half of the donors are patients. All have cells of three types. A part of the patients' cells, of every type, has a
    programme of 15 genes switched on: that is what a contrast should find. Donors differ too, and equally in both
    groups.

    Parameters
    ----------
    n_donors : int, default 24
        Donors of both groups together, at least 4.
    n_cells : int, default 25
        Cells of each donor.
    n_genes : int, default 100
        At least 40.
    effect : float, default 1.5
        By how much the programme raises the logarithm of its genes' means; 0 for no difference between the groups.
    donor_effect : float, default 0.3
        Standard deviation of the logarithm of each gene's mean between donors.
    random_state : None, int, Generator or RandomState

    Returns
    -------
    AnnData
        `X` (log(1 + count) after normalisation to equal totals) and `layers["counts"]`, sparse; `obs`: "condition"
        ("case" or "ctrl"), "donor", "cell_type", "programme" (whether it is on); `var`: "programme" (whether the gene
        is part of it).

    Examples
    --------
    >>> from contrapca.datasets import make_cells
    >>> make_cells(random_state=0).obs["condition"].value_counts().to_dict()
    {'case': 300, 'ctrl': 300}
    """
    check_count(n_donors, "n_donors", least=4)
    check_count(n_cells, "n_cells")
    check_count(n_genes, "n_genes", least=40)
    rng, anndata, pandas = (
        generator(random_state),
        require("anndata", extra="anndata"),
        require("pandas", extra="anndata"),
    )
    donor = np.repeat(np.arange(n_donors), n_cells)
    is_case = donor < n_donors // 2
    cell_type = rng.integers(0, len(CELL_TYPES), donor.size)
    in_programme = np.arange(n_genes) < PROGRAMME
    active = is_case & (rng.random(donor.size) < ACTIVE)
    log_mean = np.log(MEAN_COUNT) + rng.normal(0, 1, n_genes)
    log_mean = log_mean + (TYPE_SD * rng.normal(size=(len(CELL_TYPES), n_genes)))[cell_type]
    log_mean += (donor_effect * rng.normal(size=(n_donors, n_genes)))[donor]
    log_mean += effect * np.outer(active, in_programme) + rng.normal(0, SIZE_SD, (donor.size, 1))
    counts = sp.csr_matrix(rng.poisson(np.exp(log_mean)).astype(np.float32))
    totals = np.maximum(np.ravel(counts.sum(axis=1)), 1)
    values = sp.csr_matrix(sp.diags_array((np.median(totals) / totals).astype(np.float32)) @ counts).log1p()
    obs = {
        "condition": pandas.Categorical(np.where(is_case, "case", "ctrl")),
        "donor": pandas.Categorical([f"donor{k + 1}" for k in donor]),
        "cell_type": pandas.Categorical(np.array(CELL_TYPES)[cell_type]),
        "programme": active,
    }
    return anndata.AnnData(
        values,
        obs=pandas.DataFrame(obs, index=[f"cell{i}" for i in range(donor.size)]),
        var=pandas.DataFrame({"programme": in_programme}, index=[f"gene{j}" for j in range(n_genes)]),
        layers={"counts": counts},
    )


def load_mouse_protein(*, data_home: Any = None) -> Bunch:
    """Protein expression in the cortex of mice (Higuera et al. 2015), in the paper's two groups.

    All received saline. Foreground: 270 measurements of mice with behaviour S/C (shocked on entering the cage), half of
    them trisomic (genotype Ts65Dn, a model of Down syndrome). Background: 135 measurements of control mice with
    behaviour C/S (left to explore the cage first).

    Parameters
    ----------
    data_home : path, optional
        The folder whose `mouse_protein` has the table, or gets it: it is downloaded once, from OpenML. By default the
        folder named by the environment variable CONTRAPCA_DATA, or `contrapca` in scikit-learn's data folder.

    Returns
    -------
    Bunch
        `foreground` (270, 77), `background` (135, 77), with NaN where a value is missing (324 and 199); `labels`
        (genotype of each foreground row: "Control" or "Ts65Dn"), `feature_names` (proteins), `description`.

    Notes
    -----
    The paper replaces NaN by 0 and then standardises each group separately: ``np.nan_to_num`` and ``scale="group"``.
    """
    arrays = mouse_arrays(data_home)
    genotype, saline = arrays["genotype"], arrays["treatment"] == "Saline"
    cases = saline & (arrays["behavior"] == "S/C")
    controls = saline & (arrays["behavior"] == "C/S") & (genotype == "Control")
    return Bunch(
        foreground=arrays["values"][cases],
        background=arrays["values"][controls],
        labels=genotype[cases],
        feature_names=arrays["proteins"].tolist(),
        description=(
            "77 proteins in the cortex of mice on saline (UCI data set 342, Higuera et al. 2015, CC BY 4.0). "
            "Foreground: behaviour S/C, genotypes Control and Ts65Dn. Background: behaviour C/S, genotype Control. "
            "NaN is missing."
        ),
    )


def mouse_arrays(data_home: Any = None) -> Arrays:
    """All 1080 measurements: the proteins' names and values, and the three properties that define the groups."""
    folder = data_folder(data_home) / "mouse_protein"
    path = next((folder / name for name in MOUSE_FILES if (folder / name).is_file()), None)
    if path is None:
        path = fetched(MOUSE_URL, folder, MOUSE_FILES[-1])
    try:
        arrays = _mouse_table(path)
        if (found := content_checksum(arrays)) != MOUSE_SHA256:
            raise ValueError(f"the checksum of its content is {found}, not {MOUSE_SHA256}")
    except Exception as error:  # damaged files make parsers raise nearly anything
        reason = f"({type(error).__name__}: {error})"
        raise DatasetError(f"{str(path)!r} is not the table of mouse proteins {reason}: delete it.") from error
    return arrays


def _mouse_table(path: Path) -> Arrays:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = csv.reader(file)
        columns = dict(zip(header, zip(*rows, strict=True), strict=True))
        proteins = [[float(cell or "nan") for cell in columns[name]] for name in header[1 : 1 + N_PROTEINS]]
    else:
        table, about = scipy.io.arff.loadarff(path)
        header = about.names()
        columns = {name: table[name].astype(str) for name in ("Genotype", "Treatment", "Behavior")}
        proteins = [table[name] for name in header[1 : 1 + N_PROTEINS]]
    arrays = {"values": np.transpose(proteins), "proteins": np.array(header[1 : 1 + N_PROTEINS])}
    return arrays | {name.lower(): np.array(columns[name]) for name in ("Genotype", "Treatment", "Behavior")}


def data_folder(data_home: Any = None) -> Path:
    """The folder for data sets, with one folder for each: `data_home`, CONTRAPCA_DATA, or in that of scikit-learn."""
    from sklearn.datasets import get_data_home  # late: it is slow, and the generators do without

    named = data_home or os.environ.get("CONTRAPCA_DATA")
    return Path(named) if named else Path(get_data_home()) / "contrapca"


def fetched(url: str, folder: Path, name: str) -> Path:
    """A file that is downloaded into a folder, or one sentence about why it is not and what to do."""
    from sklearn.datasets import fetch_file

    try:
        folder.mkdir(parents=True, exist_ok=True)
        return Path(fetch_file(url, folder, name))
    except (OSError, http.client.HTTPException) as error:
        raise DatasetError(
            f"There is no {str(folder / name)!r}, and {url} could not be downloaded ({error}): download it where there "
            f"is a network, put it into a folder {folder.name!r} and set CONTRAPCA_DATA to the folder that contains it."
        ) from error


def content_checksum(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """SHA-256 of names, types, shapes and values; does not depend on the machine or the order of the arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        values = arrays[name]
        if values.dtype.kind == "U":  # the width of NumPy's text depends on the longest
            kind, content = "text", "\0".join(values.ravel().tolist()).encode()
        else:
            values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
            kind, content = values.dtype.str, values.tobytes()
        digest.update(f"{name} {kind} {values.shape} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
