"""Figures of finished data (matplotlib, extra "plot")."""

from ._latents import latents, save_figure, side_by_side

__all__ = ["latents", "save_figure", "side_by_side"]
