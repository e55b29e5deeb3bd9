"""scikit-learn estimators: they connect the numerical layers and compute nothing themselves."""

from ._again import check_same_data
from ._base import Decomposition, answers
from ._clvm import CLVM
from ._contrapca import ContraPCA
from ._contrastive import Contrastive
from ._cpca import CPCA
from ._display import html_inner, mimebundle
from ._kernel import KernelCPCA
from ._pcpca import PCPCA
from ._persistence import (
    REGISTRY,
    UNIT_LENGTH,
    load,
    plain_parameters,
    prefixes,
    restored,
    restored_model,
    restored_totals,
    restored_units,
    save_model,
    saved_fit,
    saved_solver,
)
from ._ppca import PPCA
from ._ratio import RatioPCA
from ._sparse import SparseCPCA

WithStrength = Contrastive | RatioPCA  # for annotations: those with `_with_strength`, along which there are paths
