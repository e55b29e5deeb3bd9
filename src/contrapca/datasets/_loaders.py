"""The real data sets of the paper, from a folder, the cache or their public source."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._checks import check_option, generator
from . import _parsers
from ._fetch import Form, Source, load_arrays, locate
from ._images import pixel_names, random_patches

MOUSE = Source(
    folder="mouse_protein",
    forms=(
        Form(("mouse_protein.npz",), _parsers.read_npz),
        Form(("Data_Cortex_Nuclear.csv",), _parsers.read_mouse_csv),
        Form(("MiceProtein.arff",), _parsers.read_mouse_arff),
    ),
    checksum="f2101602588111325b0742091339a0c409c02f304c8b3c446869e185f67e623d",
    urls=("https://www.openml.org/data/v1/download/17928620/MiceProtein.arff",),
)
_10X = "https://cf.10xgenomics.com/samples/cell-exp/1.1.0"
_10X_SAMPLES = ("frozen_bmmc_healthy_donor1", "aml027_pre_transplant", "aml035_post_transplant")
_10X_FILES = tuple(f"{sample}_filtered_gene_bc_matrices.tar.gz" for sample in _10X_SAMPLES)
CELLS = Source(
    folder="zheng_bmmc",
    forms=(Form(("zheng500.npz",), _parsers.read_cells_npz), Form(_10X_FILES, _parsers.read_cells_tar)),
    checksum="c952d22ed0e3dbf787ecfa28fa95f2df8437515a020ef6d52630d7698363177b",
    urls=tuple(f"{_10X}/{sample}/{file}" for sample, file in zip(_10X_SAMPLES, _10X_FILES, strict=True)),
)
DIGITS = Source(
    folder="corrupted_mnist",
    forms=(Form(("mnist01.npz",), _parsers.read_npz), Form(("mnist_784.arff",), _parsers.read_digits_arff)),
    checksum="01c80f84652f20323c7c38f05c892a7956b4100f66ab18dc51d2f283b4c683a8",
    urls=("https://www.openml.org/data/v1/download/52667/mnist_784.arff",),
)
PHOTOGRAPH = Source(
    folder="corrupted_mnist",
    forms=(
        Form(("grass.npz",), _parsers.read_npz),
        Form(("skimage_grass_v0.19.3.png",), _parsers.read_photograph),
        Form(("grass.png",), _parsers.read_photograph),
    ),
    checksum="74630b2a4783546951df3e5e7ca47e8fb3297c97612dca08b99be3468f1025cb",
    urls=("https://raw.githubusercontent.com/scikit-image/scikit-image/v0.19.3/skimage/data/grass.png",),
)
GRASS700 = Source(
    folder="corrupted_mnist",
    forms=(Form(("grass700.npz",), _parsers.read_grass700),),
    checksum="d27508b874866f66e7dcf08d985dfd3a2091f5566206a306d79b41bd620f30b0",
)
SIDE = 28  # pixels in a row of an MNIST digit
DIGIT_SHARE = 0.25  # of a digit's brightness, as in the paper
GRASS = ("auto", "photograph", "grass700")


def load_mouse_protein() -> Bunch:
    """Protein expression in the cortex of mice (Higuera et al. 2015), in the paper's two groups.

    All received saline. Foreground: 270 measurements of mice with behaviour S/C (shocked on entering the cage), half of
    them trisomic (genotype Ts65Dn, a model of Down syndrome). Background: 135 measurements of control mice with
    behaviour C/S (left to explore the cage first).

    Returns
    -------
    Bunch
        `foreground` (270, 77), `background` (135, 77), with NaN where a value is missing (324 and 199); `labels`
        (genotype of each foreground row: "Control" or "Ts65Dn"), `feature_names` (proteins), `description`.

    Notes
    -----
    The paper replaces NaN by 0 and then standardises each group separately: ``np.nan_to_num`` and ``scale="group"``.
    """
    arrays = load_arrays(MOUSE)
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
    random_state : None, int, Generator or RandomState
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
    check_option(grass, "grass", GRASS)
    if not 1 <= n <= _parsers.N_DIGITS:
        raise ValueError(f"n={n} must be at least 1 and at most {_parsers.N_DIGITS}, the number of digits.")
    rng = generator(random_state)
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
