"""Tables in files: any supported format in, one kind of object out."""

from ._align import align, align_to
from ._data import DataTable, listed, with_names
from ._read import READABLE, TEXT, read_table
from ._text import write_filled

__all__ = ["READABLE", "TEXT", "DataTable", "align", "align_to", "listed", "read_table", "with_names", "write_filled"]
