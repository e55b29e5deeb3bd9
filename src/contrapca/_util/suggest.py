"""Misspelt arguments: an error that names the one that was probably meant, on every version of Python."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from .text import did_you_mean

T = TypeVar("T", bound=Callable[..., Any])


def suggesting(known: T) -> T:
    """The same function, or the same class with all its public methods.

    An unknown keyword argument raises a TypeError that lists the known ones.
    """
    if not isinstance(known, type):
        return _suggesting(known)
    for name, method in list(vars(known).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(method, FunctionType):
            setattr(known, name, _suggesting(method))
        elif isinstance(method, classmethod | staticmethod):
            setattr(known, name, type(method)(_suggesting(method.__func__)))
    return known


def without(function: T, name: str) -> T:
    """The same function without one of its keyword arguments, which keeps its default."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    kept = [parameter for key, parameter in signature.parameters.items() if key != name]
    call.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return _suggesting(call)  # type: ignore[no-any-return]


def _suggesting(function: Any) -> Any:
    signature = inspect.signature(function)
    parameters = signature.parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for key in kwargs:
            if key not in parameters:
                raise TypeError(_unknown(key, function, list(parameters), args))
        return function(*args, **kwargs)

    call.__signature__ = signature  # type: ignore[attr-defined]  # scikit-learn asks for it in every fit
    return call


def _unknown(key: str, function: Any, known: list[str], args: tuple[Any, ...]) -> str:
    """What is said of an argument that does not exist; a method is called by the class of its object."""
    name = function.__name__
    if known[:1] in (["self"], ["cls"]):
        known, owner = known[1:], args[0] if isinstance(args[0], type) else type(args[0])
        name = owner.__name__ if name == "__init__" else f"{owner.__name__}.{name}"
    hint = did_you_mean(key, known) or "."
    arguments = f"Its arguments are {', '.join(known)}." if known else "It takes no arguments."
    return f"{name}() got an unexpected keyword argument {key!r}{hint} {arguments}"
