"""Text and tables as people see them: printed as text, shown as HTML in notebooks."""

from __future__ import annotations

import html

from .table import Table


class Display:
    """Sentences and tables, one below the other.

    Printed, they are text; a notebook shows them as HTML.

    Parameters
    ----------
    *parts : str or Table
    """

    def __init__(self, *parts: str | Table):
        self.parts = parts

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.parts))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(
            part._repr_html_() if isinstance(part, Table) else f"<p>{html.escape(part)}</p>" for part in self.parts
        )


def shown_as_html(*parts: str | Table) -> str:
    """Parts as HTML, user text escaped."""
    return Display(*parts)._repr_html_()
