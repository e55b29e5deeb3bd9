"""The methods, with scikit-learn's interface."""

from ._base import Choice, Contrastive, ContrastSolver, Decomposition, FittedModel, packed, unfitted
from ._clvm import CLVM
from ._contrapca import ContraPCA
from ._cpca import CPCA
from ._likelihood import LatentModel, Likelihood
from ._new_rows import latent_means
from ._pcpca import PCPCA
from ._ppca import PPCA
from ._ratio import RatioPCA
from ._sparse import SparseCPCA
from ._summary import facts
from ._whitener import BackgroundWhitener, FittedWhitener
