"""Data with known truth, made on the spot, and the paper's real data sets."""

from ._cells import make_cells
from ._generators import make_contraction_mixture, make_hidden_clusters, make_toy, make_two_ppca
from ._images import make_corrupted_digits
from ._loaders import load_corrupted_mnist, load_mouse_protein, load_zheng_bmmc

__all__ = [
    "load_corrupted_mnist",
    "load_mouse_protein",
    "load_zheng_bmmc",
    "make_cells",
    "make_contraction_mixture",
    "make_corrupted_digits",
    "make_hidden_clusters",
    "make_toy",
    "make_two_ppca",
]
