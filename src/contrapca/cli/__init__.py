"""The command line `contrapca`. Nothing heavy is imported before a command runs."""

from ._main import main

__all__ = ["main"]
