"""scikit-learn estimators: they connect the numerical layers and compute nothing themselves."""

from ._base import Decomposition, FittedModel, answers
from ._clvm import CLVM
from ._cpca import CPCA, Contrastive
from ._pcpca import PCPCA, ContraPCA
from ._ppca import PPCA
from ._ratio import RatioPCA
from ._sparse import SparseCPCA

WithStrength = Contrastive | RatioPCA  # for annotations: those with `_with_strength`, along which there are paths
