"""Real tables with cases, controls and labels that no fit is shown: what a default is judged by."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from contrapca.datasets import load_mouse_protein

from ._data import Form, Source, load_arrays, load_corrupted_mnist, load_zheng_bmmc, read_npz

# Where the tables of the folder real_sets come from, for those who do not have it.
ORIGINS = {
    "bbbc021.csv": "BBBC021_feature_selected_mad_robustize.csv of broadinstitute/BBBC021_Morpheus_Exercise (GitHub)",
    "diet.npz": "the diets of David et al. (2014) in knights-lab/MLRepo (GitHub)",
    "glioblastoma.npz": "data/glioblastoma_example_data.rda of const-ae/lemur (GitHub)",
}
GLIOBLASTOMA = Source(
    folder="real_sets",
    forms=(Form(("glioblastoma.npz",), read_npz),),
    checksum="46218a2dc7657398e016a2ec3cb60eabf0670fcc865c9e76674a9c63fd2deed3",
)
FIVE_MECHANISMS = (
    "Microtubule destabilizers",
    "Eg5 inhibitors",
    "Aurora kinase inhibitors",
    "Microtubule stabilizers",
    "DNA damage",
)


@dataclass(frozen=True)
class RealSet:
    """Cases and controls, the hidden label of each case, and the block (donor, animal, plate) of each row, if known."""

    cases: Any
    controls: Any
    labels: Any
    blocks: Any = None
    control_blocks: Any = None


def _found(name: str) -> Path:
    path = Path(os.environ.get("CONTRAPCA_DATA", "")) / "real_sets" / name
    if not path.exists():
        raise FileNotFoundError(
            f"There is no real_sets/{name} in the folder that CONTRAPCA_DATA names; make it from {ORIGINS[name]}."
        )
    return path


def _mouse(kind: str) -> RealSet:
    data = load_mouse_protein()
    X, Y = data.foreground, data.background
    if kind != "missing":
        X, Y = np.nan_to_num(X), np.nan_to_num(Y)
    if kind == "standardised":
        X, Y = ((rows - rows.mean(axis=0)) / rows.std(axis=0) for rows in (X, Y))
    # Mice were measured 15 times each, and their rows follow each other.
    blocks, control_blocks = np.arange(len(X)) // 15, np.arange(len(Y)) // 15
    return RealSet(X, Y, data.labels, blocks, control_blocks + 1000)


def _cells() -> RealSet:
    data = load_zheng_bmmc()
    groups = [(rows - rows.mean(axis=0)) / rows.std(axis=0) for rows in (data.foreground, data.background)]
    return RealSet(*groups, data.labels)


def _digits() -> RealSet:
    data = load_corrupted_mnist(grass="grass700", random_state=0)
    groups = [(rows - rows.mean(axis=0)) / rows.std(axis=0) for rows in (data.foreground, data.background)]
    return RealSet(*groups, data.labels)


def _wells(mechanisms: tuple[str, ...] = ()) -> RealSet:
    """Treated wells (of some mechanisms) and DMSO wells, by plate."""
    with _found("bbbc021.csv").open(newline="", encoding="utf-8") as file:
        _, *lines = csv.reader(file)
    plates, compounds, labels = (np.array([line[k] for line in lines]) for k in (0, 2, 4))
    values = np.array([line[5:] for line in lines], dtype=float)
    controls = compounds == "DMSO"
    cases = np.isin(labels, mechanisms) if mechanisms else ~controls
    return RealSet(values[cases], values[controls], labels[cases], plates[cases], plates[controls])


def _diet() -> RealSet:
    """Bacteria of people in the first days of a diet, and before; by person."""
    with np.load(_found("diet.npz")) as file:
        counts, day, diet, subject = (file[name] for name in ("counts", "day", "diet", "subject"))
    values = np.log(counts[:, (counts > 0).mean(axis=0) >= 0.2] + 0.5)
    values -= values.mean(axis=1, keepdims=True)
    cases, controls = (day >= 1) & (day <= 5), day <= 0
    return RealSet(values[cases], values[controls], diet[cases], subject[cases], subject[controls])


def load_glioblastoma() -> Bunch:
    """Cells of glioblastoma slices with the drug panobinostat and without, from five patients (Zhao et al. 2021).

    It is the example of the R package lemur (const-ae/lemur on GitHub, MIT, data/glioblastoma_example_data.rda). The
    file has no names of genes.

    Returns
    -------
    Bunch
        `X` (5000 cells, 300 genes), log-normalised; `condition` ("ctrl" or "panobinostat") and `patient` of each cell,
        500 of each patient and condition; `feature_names` ("gene 1" to "gene 300").
    """
    _found("glioblastoma.npz")  # raises, with the origin
    arrays = load_arrays(GLIOBLASTOMA)
    return Bunch(**arrays, feature_names=[f"gene {j + 1}" for j in range(arrays["X"].shape[1])])


def _glioblastoma() -> RealSet:
    """Treated cells and half of the control cells, against the other half; by patient."""
    cells = load_glioblastoma()
    X, condition, patient = cells.X, cells.condition, cells.patient
    control = np.random.default_rng(0).permutation(np.flatnonzero(condition == "ctrl"))
    cases = np.concatenate([np.flatnonzero(condition != "ctrl"), control[: control.size // 2]])
    others = control[control.size // 2 :]
    return RealSet(X[cases].astype(float), X[others].astype(float), condition[cases], patient[cases], patient[others])


SETS: dict[str, Callable[[], RealSet]] = {
    "mouse proteins, NaN as 0": lambda: _mouse("zero"),
    "mouse proteins, standardised": lambda: _mouse("standardised"),
    "mouse proteins, NaN left in": lambda: _mouse("missing"),
    "bone-marrow cells (stand-in foreground)": _cells,
    "digits on grass": _digits,
    "wells, 5 mechanisms": lambda: _wells(FIVE_MECHANISMS),
    "wells, 12 mechanisms": _wells,
    "diets": _diet,
    "glioblastoma": _glioblastoma,
}
