"""The methods, with scikit-learn's interface."""

from ._base import Decomposition, FittedModel, packed
from ._clvm import CLVM
from ._contrapca import ContraPCA
from ._contrast_solver import ContrastSolver
from ._contrastive import Contrastive
from ._cpca import CPCA
from ._latent_model import LatentModel
from ._likelihood import Likelihood
from ._method import unfitted
from ._new_rows import latent_means
from ._pcpca import PCPCA
from ._ppca import PPCA
from ._ratio import RatioPCA
from ._sparse import SparseCPCA
from ._summary import facts
from ._whitener import BackgroundWhitener, FittedWhitener
