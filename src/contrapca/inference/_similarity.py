"""How alike the axes of several conditions are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.tables import Table
from ..contrast import affinity
from ..data import Study
from ..estimators import Decomposition, unfitted
from ..exceptions import GroupError
from ._result import Result


@dataclass(frozen=True)
class ConditionSimilarity(Result):
    """The outcome of `condition_similarity`.

    Attributes
    ----------
    conditions : tuple of str
    similarity : ndarray of shape (G, G)
        Mean squared cosine of the angles between the axes of two conditions: 1 if they are the same, 0 if they are
        orthogonal. Axes without any relation have about k / D.
    by_chance : float
        That k / D.
    """

    conditions: tuple[str, ...]
    similarity: Array
    by_chance: float

    @property
    def angles(self) -> Array:
        """The same as mean angles in degrees, shape (G, G)."""
        return np.degrees(np.arccos(np.sqrt(np.clip(self.similarity, 0.0, 1.0))))

    def table(self) -> Table:
        """One row and one column for each condition."""
        columns = {"condition": np.array(self.conditions, dtype=object)}
        return Table(columns | dict(zip(self.conditions, self.similarity.T, strict=True)))

    def _parts(self) -> list[str | Table]:
        about = f"similarity of the conditions' own axes: 1 is the same, {self.by_chance:.2g} is chance"
        return [about, self.table()]


def condition_similarity(estimator: Any, study: Study) -> ConditionSimilarity:
    """How alike the axes are that an estimator finds in each condition alone, against the same background.

    Axes of few rows differ by chance: look at `held_out_contrast` of each condition first.

    Parameters
    ----------
    estimator : PCPCA, ContraPCA, CPCA, SparseCPCA or RatioPCA
        Fitted or not: it is cloned.
    study : Study
        Of several conditions: `Study(groups={"A": XA, "B": XB}, background=Y)`.

    Returns
    -------
    ConditionSimilarity

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import ContraPCA, Study, condition_similarity
    >>> rng = np.random.default_rng(0)
    >>> scales = {"A": [3, 1, 1, 1, 1], "B": [3, 1, 1, 1, 1], "C": [1, 1, 1, 1, 3]}
    >>> tables = {name: rng.normal(size=(100, 5)) * scale for name, scale in scales.items()}
    >>> study = Study(groups=tables, background=rng.normal(size=(100, 5)))
    >>> condition_similarity(ContraPCA(1), study).similarity.round(1)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    if not (isinstance(estimator, Decomposition) and estimator._contrasts):
        raise TypeError(f"condition_similarity takes an estimator that has a background, not {estimator!r}.")
    if not isinstance(study, Study) or study.design is None or study.design.kind != "conditions":
        raise GroupError(
            'condition_similarity needs a study of several conditions: Study(groups={"A": XA, "B": XB}, background=Y).'
        )
    cells = np.concatenate(list(study.design.cell_of))
    *names, _ = study.design.cells
    background = cells == len(names)
    axes = []
    for g in range(len(names)):
        model = unfitted(estimator).fit(study[(cells == g) | background])
        axes.append(np.linalg.qr(model.fit_.components)[0])
    every = np.array(axes)
    D, k = every.shape[1:]
    return ConditionSimilarity(tuple(names), affinity(every[:, None], every[None]), k / D)
