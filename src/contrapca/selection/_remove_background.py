"""A foreground without the background's directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import check_count
from .._util.arrays import is_sparse
from .._util.devices import cast, float_type, put
from ..groups import like_table, split_groups
from ..moments import Complete, alone, collect
from ..rows import storage
from ..solvers import top_eigenpairs


def remove_background(X: Any, *, background: Any, n_directions: int = 2) -> Any:
    """The foreground with the background's dominant directions removed, in original units.

    Computes x - B B'(x - mean), where B are the `n_directions` leading principal directions of the background and mean
    is the foreground's. The result has the foreground's mean and no variance along B. Use it for exploration, or for
    methods that take one table. It does not estimate what the foreground would be without the background's causes:
    everything the foreground has along B is lost, shared or not, and everything orthogonal to B stays, even if the
    background varies there too.

    Parameters
    ----------
    X : array-like or data frame of shape (n, D)
    background : array-like or data frame of shape (m, D)
    n_directions : int, default 2, less than D

    Returns
    -------
    ndarray or data frame like `X`

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import remove_background
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> cleaned = remove_background(data.foreground, background=data.background, n_directions=3)
    >>> np.allclose(cleaned.mean(axis=0), data.foreground.mean(axis=0))
    True
    >>> bool(cleaned.var(axis=0).sum() < 0.5 * data.foreground.var(axis=0).sum())
    True
    """
    check_count(n_directions, "n_directions")
    tables = split_groups(X, None, background, None, name="remove_background", needs_background=True)
    tables.with_one_background("remove_background")
    if n_directions >= tables.n_features:
        raise ValueError(f"n_directions={n_directions} must be less than the number of features, {tables.n_features}.")
    data = collect(tables, n_directions, None)
    assert isinstance(data, Complete)
    own = data.background_alone()
    C = alone(own.groups.foreground)
    spectrum = top_eigenpairs(C, n_directions)
    rank = int(np.count_nonzero(spectrum.values > C.rounding))
    if n_directions > rank:
        raise ValueError(f"n_directions={n_directions} is too large: the background varies in only {rank} directions.")
    B, rows = own.lift(C, spectrum.vectors, spectrum.values), tables.rows.foreground
    along = storage(rows).centred_product(rows, tables.means.foreground, B)
    dense = rows.toarray() if is_sparse(rows) else rows
    return like_table(cast(dense - along @ put(B, rows, float_type(rows)).T, rows), X)
