"""Figures of finished data (matplotlib, extra "plot")."""

from ._latents import latents, save_figure, side_by_side
from ._posterior import (
    loading_intervals,
    loading_intervals_data,
    subspace_draws,
    subspace_draws_data,
    trace,
    trace_data,
)

__all__ = [
    "latents",
    "loading_intervals",
    "loading_intervals_data",
    "save_figure",
    "side_by_side",
    "subspace_draws",
    "subspace_draws_data",
    "trace",
    "trace_data",
]
