"""Data with known truth, made on the spot, and the paper's real data sets."""

from ._generators import make_hidden_clusters, make_toy
from ._loaders import load_corrupted_mnist, load_mouse_protein, load_zheng_bmmc

__all__ = [
    "load_corrupted_mnist",
    "load_mouse_protein",
    "load_zheng_bmmc",
    "make_hidden_clusters",
    "make_toy",
]
