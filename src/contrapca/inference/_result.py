"""What the printed results of inference have in common."""

from __future__ import annotations

from .._util.tables import Table, shown_as_html


class Result:
    """A result of sentences and a table, printed line by line, or as HTML in a notebook."""

    def _parts(self) -> list[str | Table]:
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(map(str, self._parts()))

    def _repr_html_(self) -> str:
        return shown_as_html(*self._parts())
