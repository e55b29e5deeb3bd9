"""Errors and warnings, with the sentences users read.

Every sentence names what was given, what is allowed and what to do.
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ._util.text import Worded, Words, format_gamma, plural, worded

__all__ = [
    "ContrastWarning",
    "DatasetError",
    "GroupError",
    "ImproperPosteriorError",
    "InfeasibleGammaError",
    "MissingExtraError",
    "ModelFileError",
    "NonFiniteError",
    "RankError",
    "SingularGroupError",
    "SolverError",
    "TableFileError",
    "TableWarning",
    "UnboundedError",
]


def __dir__() -> list[str]:
    return __all__


class InBothWords:
    """An error or warning whose arguments are its sentence, as texts and what Python and the command line call things.

    Python writes "labels='stage'" and "the foreground", the command line "--labels stage" and "the cases".
    """

    args: tuple[Any, ...]

    def text(self, words: Words) -> str:
        """The sentence in the words of one of them."""
        return worded(self.args, words)

    def __str__(self) -> str:
        return self.text("python")


class ContrastWarning(InBothWords, UserWarning):
    """Something about the data is probably not what the user intended."""


class TableWarning(ContrastWarning):
    """A check of the tables, one of those of `check_tables`, has found something."""


class GroupError(InBothWords, ValueError):
    """The groups are missing, ambiguous or incompatible."""


class NonFiniteError(ValueError):
    """A table contains NaN or infinity.

    Attributes
    ----------
    feature : int
        The first affected column.
    """

    def __init__(self, message: str, feature: int):
        self.feature = feature
        super().__init__(message)

    def within(self, place: str) -> NonFiniteError:
        """The same error with the group and feature added."""
        return NonFiniteError(f"{self} {place}", self.feature)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.feature)


class RankError(ValueError):
    """A group does not vary in more than `size` directions.

    Attributes
    ----------
    size : int
        The value of `parameter`.
    group : str
        "foreground" or "background".
    parameter : str
        "n_components" or "n_latent".
    """

    def __init__(self, size: int, group: str = "foreground", parameter: str = "n_components"):
        self.size, self.group, self.parameter = size, group, parameter
        consequence = {
            "foreground": "so components cannot be distinguished from noise at any gamma",
            "background": "so no PPCA can be fitted to it",
        }[group]
        super().__init__(
            f"The {group} varies in at most {plural(size, 'direction')} (beyond rounding), but {parameter}={size} "
            f"needs more, {consequence}. Use a smaller {parameter} or more {group} rows; if a few features are many "
            "orders of magnitude larger than the others, use scale='pooled'."
        )

    def naming(self, parameter: str) -> RankError:
        """The same error in the words of a function whose parameter has another name."""
        return type(self)(self.size, self.group, parameter)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.size, self.group, self.parameter)


class InfeasibleGammaError(ValueError):
    """`gamma` is at or above its exact limit for `size` dimensions, the value of `parameter`.

    Attributes
    ----------
    gamma, limit : float
        The requested gamma and its exact limit, both in gamma' units.
    size : int
        The value of `parameter`, "n_components" or "n_latent".
    parameter : str
    """

    def __init__(
        self, gamma: float, limit: float, size: int, reason: str, advice: str, parameter: str = "n_components"
    ):
        self.gamma, self.limit, self.size, self.parameter = gamma, limit, size, parameter
        super().__init__(
            f"gamma={gamma:.6g} is too large: at or above the limit {format_gamma(limit)}, {reason} "
            f"with {parameter}={size}. Use a gamma in [0, {format_gamma(limit)}), gamma='auto', "
            f"or a smaller {parameter}{advice}"
        )
        self._arguments: tuple[Any, ...] = (gamma, limit, size, reason, advice, parameter)

    def naming(self, parameter: str) -> InfeasibleGammaError:
        """The same error in the words of a function whose parameter has another name."""
        return type(self)(*(*self._arguments[:-1], parameter))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._arguments


class SingularGroupError(InfeasibleGammaError):
    """A ratio of variances is infinite, because one group does not vary where the other does."""

    parameter = ""  # it does not depend on the number of components

    def __init__(self, gamma: float, varying: str, constant: str, hint: str = ""):
        self.gamma, self.limit = gamma, 1.0
        ValueError.__init__(
            self,
            f"The {varying} varies in directions in which the {constant} does not vary at all (beyond rounding), so "
            f"ratios of their variances without a ridge are infinite. Use ridge='auto' or a number above 0, such as "
            f"ridge=0.1; or use fewer features than there are {constant} rows.{hint}",
        )
        self._arguments = (gamma, varying, constant, hint)


class UnboundedError(InfeasibleGammaError):
    """With these missing values the objective has no maximum at `gamma`.

    Attributes
    ----------
    gamma : float
        The requested gamma, in gamma' units.
    limit : float
        An upper bound on feasible gammas; nan if there is no contrast.
    works : float or None
        A gamma that was tried and works; None if none was found.
    size : int
        The value of `parameter`, "n_components" or "n_latent".
    parameter : str
    reason : str
    """

    def __init__(
        self,
        gamma: float,
        limit: float,
        works: float | None,
        size: int,
        reason: str,
        parameter: str = "n_components",
    ):
        self.gamma, self.limit, self.works = gamma, limit, works
        self.size, self.parameter, self.reason = size, parameter, reason
        at = "" if math.isnan(limit) else f" at gamma={gamma:.6g}"
        message = f"The objective has no maximum{at} with {parameter}={size} and these rows: {reason}. "
        if works is not None:
            message += (
                f"gamma={format_gamma(works)} works; no gamma at or above {format_gamma(limit)} does. Use "
                f"that, gamma='auto', or a smaller {parameter}."
            )
        else:
            message += f"Use a smaller {parameter}, or rows and features with more observed values."
        ValueError.__init__(self, message)
        self._arguments = (gamma, limit, works, size, reason, parameter)


class ImproperPosteriorError(ValueError):
    """The requested Gibbs posterior has infinite mass."""


class SolverError(RuntimeError):
    """An eigensolver failed, and no other solver fits into memory."""


class ModelFileError(ValueError):
    """A file cannot be read by this version of contrapca."""


class TableFileError(InBothWords, ValueError):
    """A file does not contain a usable table, or not the columns that it should have.

    Attributes
    ----------
    option : str
        The option that is wrong; empty if none is.
    """

    def __init__(self, *parts: str | Worded, option: str = ""):
        super().__init__(*parts)
        self.option = option

    def text(self, words: Words) -> str:
        """The sentence, after the option that is wrong."""
        about = f"{'--' if words == 'command' else ''}{self.option}: " if self.option else ""
        return about + super().text(words)


class DatasetError(RuntimeError):
    """A data set could not be found, or a file is not the expected data set."""


class MissingExtraError(ImportError):
    """An optional library is not installed."""

    def __init__(self, library: str, extra: str | None):
        what = library if extra is None else f'"contrapca[{extra}]"'
        super().__init__(f"This needs {library}. Install it with: pip install {what}")
        self._arguments = (library, extra)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._arguments


def warn(message: str | Iterable[str | Worded], category: type[Warning] = ContrastWarning) -> None:
    """Issue a warning, a sentence or its parts, that points at the user's call, not at this package."""
    pattern = rf"^{re.escape(str(Path(__file__).parent))}|[/\\\\](?:sklearn|joblib)[/\\\\]"
    level, frame = 1, sys._getframe(0)
    # scikit-learn wraps our methods (set_output, cross-validation), so its frames are skipped as well.
    while frame.f_back is not None and re.search(pattern, frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(category(*([message] if isinstance(message, str) else message)), stacklevel=level)
