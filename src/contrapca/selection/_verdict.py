"""The verdict on a contrast that is shown: the test's, or why there is none. Commands and reports begin with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..groups import Tables
from ._significance import ContrastTest, significance_of
from ._splits import MIN_UNITS

SEED = 0  # the same tables give the same page
N_TESTED = 10  # dimensions, or as many as are shown


@dataclass(frozen=True)
class Verdict:
    """What the test says of the components that are shown.

    Attributes
    ----------
    sentence : str
    remarks : list of str
        Further sentences; none as a rule.
    test : ContrastTest or None
        None where the tables cannot be tested, for the reason that the sentence gives.
    n_shown : int
        Components.
    """

    sentence: str
    remarks: list[str]
    test: ContrastTest | None
    n_shown: int

    @classmethod
    def of(cls, test: ContrastTest, n_shown: int) -> Verdict:
        """That of a finished test."""
        return cls(test.verdict(n_shown), test.remarks(n_shown), test, n_shown)

    def summary(self) -> dict[str, Any]:
        """Plain values: "verdict", the sentence, and "test", what was found or None."""
        test = self.test
        if test is None:
            return {"verdict": self.sentence, "test": None}
        facts = {
            "n_components": test.n_components,
            "n_shown": self.n_shown,
            "p_values": test.p_values.tolist(),
            "noise_ratio": None if test.noise_ratio != test.noise_ratio else test.noise_ratio,
            "level": test.level,
            "method": test.method,
            "units": test.units,
            "remarks": self.remarks,
        }
        return {"verdict": self.sentence, "test": facts}


def verdict_on(
    tables: Tables,
    *,
    n_shown: int,
    blocks: tuple[Any, Any] | None = None,
    scale: bool | str = False,
    random_state: Any = SEED,
    progress: bool = False,
) -> Verdict:
    """Test the tables of a model with so many components; say so where that is not possible.

    Parameters
    ----------
    tables : Tables
    n_shown : int
    blocks : pair of array-like of shape (n,), (m,), optional
        The block of each row; what is wrong with them is an error.
    scale : False, "group" or "pooled"
        Of the model.
    random_state : None, int, Generator or RandomState
    progress : bool
    """
    least = min(rows.shape[0] for rows in tables.rows)
    if tables.incomplete:
        reason = "the test needs complete rows, and values are missing. Impute them first, or drop those rows"
    elif least < MIN_UNITS:
        reason = f"one group has {least} rows, and the test needs {MIN_UNITS} or more in each"
    elif tables.n_features < 2:
        reason = "there is one feature"
    else:
        test = significance_of(
            tables,
            blocks=blocks,
            max_components=max(n_shown, N_TESTED),
            scale=scale,
            random_state=random_state,
            progress=progress,
        )
        return Verdict.of(test, n_shown)
    return Verdict(f"Not tested whether this is more than chance: {reason}.", [], None, n_shown)
