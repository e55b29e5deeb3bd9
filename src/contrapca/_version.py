"""The version; the package's metadata take it from here."""

__version__ = "0.2.0"
