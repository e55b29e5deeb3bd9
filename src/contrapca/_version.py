"""The version, read from the installed distribution."""

from importlib.metadata import version

__version__ = version("contrapca")
