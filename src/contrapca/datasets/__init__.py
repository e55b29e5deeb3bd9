"""Data with known truth, made on the spot."""

from ._generators import make_hidden_clusters, make_toy

__all__ = ["make_hidden_clusters", "make_toy"]
