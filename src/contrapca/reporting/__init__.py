"""One HTML file that shows a contrast: a summary as plain data first, then the page made from it."""

from ._export import Export, export
from ._html import check_libraries
from ._report import caveats, report, summarize
