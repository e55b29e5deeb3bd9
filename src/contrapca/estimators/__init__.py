"""scikit-learn estimators: they connect the numerical layers and compute nothing themselves."""

from ._base import Decomposition, html_inner, mimebundle
from ._clvm import CLVM
from ._cpca import CPCA
from ._kernel import KernelCPCA
from ._pcpca import PCPCA, ContraPCA
from ._ppca import PPCA
from ._ratio import RatioPCA
from ._sparse import SparseCPCA

WithStrength = (
    PCPCA | CPCA | SparseCPCA | RatioPCA
)  # those with a strength of the contrast, along which there are paths
