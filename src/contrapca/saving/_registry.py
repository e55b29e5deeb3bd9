"""One registry and one reader for everything that can be saved."""

from __future__ import annotations

from typing import Any

from .._util.archive import Archive, OldFileError, read_archive
from ..exceptions import ModelFileError
from ..moments import STREAM, Moments
from ..uncertainty import ContrastPosterior
from ._fit import saved_fit
from ._groups import plain_parameters
from ._old_files import made_again

# What can be saved: the kind written in the file, and the class whose `from_saved` reads it. Estimators and paths
# register themselves.
REGISTRY: dict[str, Any] = {"moments": Moments, "posterior": ContrastPosterior}


def saved_model(estimator: Any) -> dict[str, Any]:
    """What is saved of a fitted estimator: the arguments of `write_archive` and `pack`."""
    kind, fit = type(estimator).__name__, estimator._state
    if REGISTRY.get(kind) is not type(estimator):
        raise TypeError(f"{type(estimator)} cannot be saved: only contrapca's own estimators can.")
    facts, arrays = saved_fit(fit)
    facts |= {"parameters": plain_parameters(estimator._parameters)}
    return {"kind": kind, "facts": facts, "arrays": arrays, "names": fit.units.foreground.names}


def load(path: Any) -> Any:
    """Load a model, path, moments or draws written by `save`.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    an estimator, ContrastPath, ContrastPosterior or Moments
        Models are fitted: they transform, score and sample exactly like the saved ones.

    Raises
    ------
    ModelFileError
        If the file was not written by contrapca, is damaged, or was written by another version.

    Examples
    --------
    >>> import contrapca
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> model = contrapca.PCPCA().fit(data.foreground, background=data.background)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(pathlib.Path(folder) / "model.npz")
    ...     again = contrapca.load(pathlib.Path(folder) / "model.npz")
    >>> again.gamma_ == model.gamma_
    True
    """
    try:
        archive = read_archive(path)
    except OldFileError as error:
        raise ModelFileError(f"{error} {made_again(error.header, error.arrays, REGISTRY)}") from None
    return restored(archive, path)


def restored(archive: Archive, source: Any) -> Any:
    """What an archive holds, checked; `source` says where it is from, for messages."""
    if archive.kind == STREAM:
        raise ModelFileError(
            f"{str(source)!r} is a checkpoint of fit_batches, not a model: fit_batches(batches, checkpoint=...) "
            "continues from it."
        )
    if archive.kind not in REGISTRY:
        raise ModelFileError(f"{str(source)!r} contains a {archive.kind!r}, which this version cannot read.")
    try:
        return REGISTRY[archive.kind].from_saved(archive.facts, archive.arrays, archive.names)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(
            f"{str(source)!r} does not describe a {archive.kind}: {error}. It may be damaged."
        ) from error
