"""Data with known truth, made on the spot."""

from ._generators import make_hidden_clusters

__all__ = ["make_hidden_clusters"]
