"""One HTML file that shows a contrast: a summary as plain data first, then the page made from it."""

from ._clusters import named_clusters
from ._export import RESULTS, coordinate_table
from ._html import check_libraries
from ._report import findings_of, report, summarize
from ._subject import label_texts
