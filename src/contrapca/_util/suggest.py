"""Misspelt arguments: an error that names the one that was probably meant, on every version of Python."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from .text import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])


def suggesting(function: F) -> F:
    """The same function; an unknown keyword argument raises a TypeError that lists the known ones."""
    signature = inspect.signature(function)
    parameters = signature.parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return function
    known = [name for name in parameters if name != "self"]
    name = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for key in kwargs:
            if key not in parameters:
                hint = did_you_mean(key, known) or "."
                raise TypeError(
                    f"{name}() got an unexpected keyword argument {key!r}{hint} Its arguments are {', '.join(known)}."
                )
        return function(*args, **kwargs)

    call.__signature__ = signature  # type: ignore[attr-defined]  # scikit-learn asks for it in every fit
    return call  # type: ignore[return-value]
