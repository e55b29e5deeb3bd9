"""The version, which the package's metadata take from here, and where the documentation is."""

__version__ = "0.2.0"
DOCUMENTATION = ""  # its address, once it has one: estimators in notebooks then link to their page
