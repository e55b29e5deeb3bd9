"""The methods, with scikit-learn's interface."""

from ._base import Decomposition, FittedModel
from ._clvm import CLVM
from ._cpca import CPCA, Contrastive
from ._pcpca import PCPCA, ContraPCA
from ._ppca import PPCA
from ._ratio import RatioPCA
from ._rows import check_same_data, latent_means, maps_missing
from ._solve import ContrastSolver
from ._sparse import SparseCPCA
from ._whitener import BackgroundWhitener, FittedWhitener
