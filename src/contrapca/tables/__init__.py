"""Tables in files: any supported format in, one kind of object out."""

from ._align import align, align_to
from ._data import DataTable, with_names
from ._read import TEXT, read_table
from ._text import write_filled
