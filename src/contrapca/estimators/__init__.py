"""scikit-learn estimators: they wire the numerics, and hold none."""

from ._base import Decomposition, check_same_data
from ._clvm import CLVM
from ._contrapca import ContraPCA
from ._cpca import CPCA
from ._losses import loss_by_components, reconstruction_loss
from ._pcpca import PCPCA
from ._persistence import REGISTRY, load
from ._ppca import PPCA
