"""The methods: what they maximise, how, and up to which gamma."""

from ._cpca import Cpca
from ._method import Method
from ._pcpca import Pcpca
from ._sparse import SparseCpca

PCPCA_METHOD = Pcpca()
CPCA_METHOD = Cpca()
