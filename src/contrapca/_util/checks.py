"""Checks of the numbers and options that users give."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from .text import did_you_mean

SCALES = (None, "group", "pooled")


def check_n_components(n_components: Any, n_features: int) -> int:
    """Return d as an int with 1 <= d < D."""
    if not isinstance(n_components, numbers.Integral) or isinstance(n_components, bool):
        raise TypeError(f"n_components={n_components!r} must be a whole number, 1 or more.")
    if not 1 <= int(n_components) < n_features:
        raise ValueError(
            f"n_components={n_components} is not possible with n_features={n_features}: it must be at least 1 and "
            "less than the number of features."
        )
    return int(n_components)


def check_count(value: Any, name: str, *, least: int = 1) -> int:
    """Return an int that is at least `least`, or raise."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number, {least} or more.")
    return int(value)


def check_positive(value: Any, name: str) -> None:
    """Raise unless the value is a finite number above 0."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name}={value!r} must be a finite number above 0.")


def check_gamma(gamma: Any) -> float | None:
    """Return gamma' as a float, or None for "auto"."""
    if isinstance(gamma, str) and gamma == "auto":
        return None
    if not isinstance(gamma, numbers.Real) or isinstance(gamma, bool):
        raise TypeError(f"gamma={gamma!r} must be 'auto' or a number, 0 or more, which all backgrounds share.")
    if not 0 <= float(gamma) < np.inf:
        raise ValueError(f"gamma={gamma} must be 'auto' or a finite number, 0 or more (0: no contrast).")
    return float(gamma)


def check_fixed_gamma(gamma: Any) -> float:
    """Return gamma' as a float; "auto" raises."""
    if isinstance(gamma, str) and gamma == "auto":
        raise ValueError("gamma='auto' is for estimators; pass a number here, below the limit from gamma_limits.")
    if not isinstance(gamma, numbers.Real):
        raise TypeError(f"gamma={gamma!r} must be a number, 0 or more.")
    value = check_gamma(gamma)
    assert value is not None
    return value


def check_option(value: Any, name: str, allowed: tuple[Any, ...]) -> None:
    """Raise unless the value is one of `allowed`."""
    if not any(value is option or (isinstance(option, str) and value == option) for option in allowed):
        hint = did_you_mean(value, filter(None, allowed)) if isinstance(value, str) else ""
        raise ValueError(f"{name}={value!r} is not valid.{hint} Choose one of {', '.join(map(repr, allowed))}.")


def check_flag(value: Any, name: str) -> None:
    """Raise unless the value is True or False: text such as "no" would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r} must be True or False.")


Check = Callable[[Any, str], Any]  # of a parameter's value and name: raises for what it cannot be


def one_of(*allowed: Any) -> Check:
    """A check for one of some options."""
    return lambda value, name: check_option(value, name, allowed)


def count(least: int = 1) -> Check:
    """A check for a whole number."""
    return lambda value, name: check_count(value, name, least=least)


def auto_or(check: Check) -> Check:
    """A check that lets "auto" pass."""
    return lambda value, name: None if isinstance(value, str) and value == "auto" else check(value, name)


def generator(random_state: Any) -> np.random.Generator:
    """A NumPy Generator from None, a seed, a Generator or scikit-learn's RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
