"""Files of tables, read for people: any separator, header and spelling of numbers, as a study."""

from ._formats import TEXT, read_table
from ._study import BY_PLACE, Inputs, Request, align_to, covariate_columns, read, read_inputs
from ._text import write_filled
