"""Text and tables as people see them: printed as text, shown as HTML in notebooks."""

from __future__ import annotations

import html
from typing import Any, TypeVar

from .table import Table

T = TypeVar("T", bound=type)


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


def showing_summary(kind: T) -> T:
    """The same class of estimators, whose HTML also says what a fit found; the plain repr stays scikit-learn's."""
    inner, mimebundle = kind._repr_html_inner, kind._repr_mimebundle_  # type: ignore[attr-defined]

    def found(self: Any) -> str:
        return self.summary()._repr_html_() if self.__sklearn_is_fitted__() else ""

    def with_summary(self: Any, **options: Any) -> dict[str, str]:
        bundle = mimebundle(self, **options)
        return bundle | {"text/html": bundle["text/html"] + found(self)} if "text/html" in bundle else bundle

    kind._repr_html_inner = lambda self: inner(self) + found(self)  # type: ignore[attr-defined]
    kind._repr_mimebundle_ = with_summary  # type: ignore[attr-defined]
    return kind
