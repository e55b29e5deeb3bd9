"""Optional libraries, imported when they are first needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from ..exceptions import MissingExtraError


def require(library: str, *, extra: str | None) -> ModuleType:
    """Import `library`, or say which extra of contrapca brings it (None: none does)."""
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != library.partition(".")[0]:
            raise  # the library is there, but something it needs is not
        raise MissingExtraError(library.partition(".")[0], extra) from error
