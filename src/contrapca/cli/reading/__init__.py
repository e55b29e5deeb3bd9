"""Files of tables, read for people: any separator, header and spelling of numbers, as a study."""

from ._columns import covariates_of_model
from ._read import TEXT, read_table
from ._study import BY_PLACE, Inputs, code_of, read, read_inputs, reading_of
from ._table import align, align_to
from ._text import write_filled
