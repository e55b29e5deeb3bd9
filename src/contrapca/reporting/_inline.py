"""A report where a notebook shows results: the page itself, in a frame."""

from __future__ import annotations

import html
from typing import Any

HEIGHT = 820  # pixels
# The page runs its own script and may save files; it can reach neither the notebook nor a network.
ALLOWED = "allow-scripts allow-downloads"


class Report(dict[str, Any]):
    """The summary of a report; a notebook shows the page.

    Attributes
    ----------
    page : str
        The HTML of the page.
    """

    page: str

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" sandbox="{ALLOWED}" title="Report of a contrast" '
            f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
        )
