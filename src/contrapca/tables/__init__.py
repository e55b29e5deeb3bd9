"""Tables in files: any supported format in, one kind of object out."""

from ._read import TEXT, read_table
from ._table import DataTable, align, align_to, with_names
from ._text import write_filled
