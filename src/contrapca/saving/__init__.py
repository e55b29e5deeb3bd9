"""Files of models, paths, moments and draws: what is written, and checked when it is read."""

from ._fit import UNIT_LENGTH, fit_from_saved
from ._groups import (
    plain_parameters,
    prefixes,
    restored_arrays,
    restored_model,
    restored_totals,
    restored_units,
    save_model,
    saved_groups,
    saved_solver,
)
from ._registry import REGISTRY, load, restored, saved_model
