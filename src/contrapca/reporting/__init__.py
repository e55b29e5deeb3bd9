"""One HTML file that shows a contrast: a summary as plain data first, then the page made from it."""

from ._clusters import named_clusters
from ._html import check_libraries
from ._report import RESULTS, Report, coordinate_table, report, summarize
from ._subject import label_texts
from ._summary import Origin
