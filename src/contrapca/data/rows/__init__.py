"""Where rows are read: reducing them to moments, and applying a model to them, block by block."""

from ._array_api import centred_on_device
from ._dask import DaskRows, labelled_moments, map_rows, merged, row_chunks
from ._numpy import centred
from ._storage import as_rows, blocks, is_kept, storage
