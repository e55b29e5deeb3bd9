"""Files of tables, read for people: any separator, header and spelling of numbers."""

from ._hidden import dropped_columns, hidden_by
from ._read import TEXT, read_table
from ._table import DataTable, align, align_to
from ._text import write_filled
