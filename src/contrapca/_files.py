"""Files that appear whole or not at all, and one codec for everything that is saved: no pickle, no eval.

A file is an uncompressed .npz with a JSON header, which has the fields of frozen dataclasses, nested; an array is a
member of its own, and its place in the header has the member's name. What is read is decided by the declared types of
the fields, never by the file, which only names one of KINDS. A dataclass whose values can be impossible says so in
`_check_values`, which is called for every one that is read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import json
import os
import stat
import tempfile
import types
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from ._version import __version__
from .exceptions import ModelFileError

FORMAT, VERSION = "contrapca", 4
HEADER = "header"  # the member that holds the JSON text, as bytes
ROUNDING = 1e-9  # of the largest entry: how far below 0 a variance may be
SAVED_AS = "saved_as"  # in the metadata of a field: the type to read, where the declared one has many forms

# What a file may hold, and the part of this package where it is; estimators only inside a FittedModel.
KINDS = {
    "ContrastPath": "inference",
    "ContrastPosterior": "inference",
    "FittedModel": "estimators",
    "FittedWhitener": "estimators",
    "Moments": "moments",
    "Stream": "moments",
}
ESTIMATORS = dict.fromkeys(
    ("BackgroundWhitener", "CLVM", "CPCA", "ContraPCA", "PCPCA", "PPCA", "RatioPCA", "SparseCPCA"), "estimators"
)

Members = dict[str, npt.NDArray[Any]]


# ---------------------------------------------------------------------- whole files


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that appears under `path` complete, or leaves what is there as it is."""
    target = checked_target(path)
    with tempfile.TemporaryDirectory(prefix=".contrapca-", dir=target.parent, ignore_cleanup_errors=True) as folder:
        temporary = Path(folder, "part")
        with temporary.open("wb") as file:
            yield file
        put_in_place(temporary, target)


def checked_target(path: str | os.PathLike[str]) -> Path:
    """The regular file that a path, perhaps a link, stands for; it need not exist yet."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(target.parent)!r} to write {target.name!r} into.")
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)!r} is a folder: name a file in it.")
    if target.exists() and not target.is_file():
        raise OSError(f"{os.fspath(path)!r} is a device or a pipe, not a file: choose another name.")
    return target


def put_in_place(temporary: Path, target: Path) -> None:
    """Rename a finished file; one that is replaced keeps its permissions."""
    with temporary.open("r+b") as file:
        os.fsync(file.fileno())  # a rename that reaches the disk before the content would leave an empty file
    if target.exists():
        temporary.chmod(stat.S_IMODE(target.stat().st_mode))
    temporary.replace(target)


# ---------------------------------------------------------------------- values to arrays, and back


def save(path: str | os.PathLike[str], value: Any) -> None:
    """Write a dataclass of KINDS."""
    write(path, pack(value))


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
    value = unpack(read(path), path)
    if type(value).__name__ == "Stream":
        raise ModelFileError(
            f"{str(path)!r} is a checkpoint of fit_batches, not a model: fit_batches(batches, checkpoint=...) "
            "continues from it."
        )
    return value


def pack(value: Any) -> Members:
    """The arrays that a file of a dataclass has, the first of them the header; `unpack` reads them."""
    arrays: Members = {}
    header = {"format": FORMAT, "version": VERSION, "written_by": f"contrapca {__version__}"}
    header |= {"kind": type(value).__name__, "value": _encoded(value, "", arrays)}
    return {HEADER: np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays}


def unpack(members: Mapping[str, npt.NDArray[Any]], source: Any) -> Any:
    """What `pack` packed, checked; of a fitted model, the estimator. `source` says where it is from, for messages."""
    try:
        header = json.loads(members[HEADER].tobytes())
        form, version, kind = (header[name] for name in ("format", "version", "kind"))
        if (form, version) == (FORMAT, VERSION):
            value = _decoded(_found(kind, KINDS), header["value"], "", members)
            return value.model if kind.startswith("Fitted") else value
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise _unreadable(source, f"{error} is missing" if isinstance(error, KeyError) else str(error)) from error
    raise ModelFileError(
        f"{str(source)!r} has format {form!r}, version {version!r}, of {header.get('written_by')}; this contrapca "
        f"{__version__} reads format {FORMAT!r}, version {VERSION}. Update contrapca, or save again with this version."
    )


def _unreadable(source: Any, reason: str) -> ModelFileError:
    return ModelFileError(
        f"{str(source)!r} is not a readable contrapca file: {reason}. It may be damaged, incomplete or of another kind."
    )


def _found(name: Any, homes: Mapping[str, str]) -> Any:
    """A class of this package, by one of the names that files may have."""
    if not isinstance(name, str) or name not in homes:
        raise ValueError(f"this version knows no {name!r}")
    return getattr(importlib.import_module(f"{__package__}.{homes[name]}"), name)


def _encoded(value: Any, place: str, arrays: Members) -> Any:
    """A value as JSON can hold it; arrays are put aside under the name of their place."""
    if isinstance(value, np.ndarray):
        arrays[place] = value
        return place
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_encoded(one, f"{place}.{k}", arrays) for k, one in enumerate(value)]
    if isinstance(value, Mapping):
        found = {str(name): one for name, one in value.items()}
    elif dataclasses.is_dataclass(value):
        found = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif type(value).__name__ in ESTIMATORS and type(value) is _found(type(value).__name__, ESTIMATORS):
        return {"name": type(value).__name__, "parameters": _parameters(value)}
    elif hasattr(value, "get_params"):
        raise TypeError(f"{type(value)} cannot be saved: only contrapca's own estimators can.")
    else:
        raise TypeError(f"{place}={value!r} cannot be saved: only text, numbers and None can, and lists of them.")
    return {name: _encoded(one, f"{place}.{name}".lstrip("."), arrays) for name, one in found.items()}


def _parameters(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator, without random generators, which are of use for another fit only."""
    given = estimator.get_params(deep=False)
    if not isinstance(given.get("random_state"), int | np.integer | None):
        given["random_state"] = None
    plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in given.items()}
    return {name: _encoded(value, name, {}) for name, value in plain.items()}


def _decoded(hint: Any, value: Any, place: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
    """A value of the declared type, or a ValueError or KeyError."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if hint is Any or (hint in (bool, str) and isinstance(value, hint)) or (hint is None and value is None):
        return value
    if hint in (int, float) and isinstance(value, hint | int) and not isinstance(value, bool):
        return value
    if kind in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        options = [one for one in inner if one is not type(None)]
        for option in options[:-1]:
            with contextlib.suppress(ValueError):
                return _decoded(option, value, place, arrays)
        return _decoded(options[-1], value, place, arrays)
    if kind is np.ndarray and isinstance(value, str):
        return arrays[value]
    if kind in (list, tuple) and isinstance(value, list):
        return kind(_decoded(inner[0], one, f"{place}.{k}", arrays) for k, one in enumerate(value))
    if isinstance(value, dict):
        if kind is dict:
            return {name: _decoded(inner[1], one, f"{place}.{name}", arrays) for name, one in value.items()}
        if dataclasses.is_dataclass(kind):
            return _decoded_dataclass(kind, inner, value, place, arrays)
        if hasattr(kind, "get_params") and isinstance(estimator := _estimator(**value), kind):
            return estimator
    raise ValueError(f"{place or 'its content'} is impossible")


def _estimator(name: Any, parameters: Any) -> Any:
    return _found(name, ESTIMATORS)(**parameters)


def _decoded_dataclass(
    kind: Any, inner: tuple[Any, ...], value: dict[str, Any], place: str, arrays: Mapping[str, npt.NDArray[Any]]
) -> Any:
    fields, declared = dataclasses.fields(kind), get_type_hints(kind)
    given = dict(zip(getattr(kind, "__parameters__", ()), inner, strict=True))  # T of Groups[T], and what it stands for
    if unknown := value.keys() - {field.name for field in fields}:
        raise ValueError(f"{place or 'it'} has {sorted(unknown)[0]!r}")
    found = {}
    for field in fields:
        hint = _filled_in(field.metadata.get(SAVED_AS, declared[field.name]), given)
        found[field.name] = _decoded(hint, value[field.name], f"{place}.{field.name}".lstrip("."), arrays)
    made = kind(**found)
    if hasattr(made, "_check_values"):
        made._check_values()
    return made


def _filled_in(hint: Any, given: Mapping[Any, Any]) -> Any:
    """A type with its variables replaced by what they stand for."""
    if isinstance(hint, TypeVar):
        return given[hint]
    return hint[tuple(given[one] for one in hint.__parameters__)] if getattr(hint, "__parameters__", ()) else hint


# ---------------------------------------------------------------------- arrays to files, and back


def write(path: str | os.PathLike[str], members: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays as an uncompressed .npz."""
    content = io.BytesIO()  # first: a zip file that cannot be finished complains when it is thrown away
    np.savez(content, **members)  # type: ignore[arg-type]
    with atomic_write(path) as file:
        file.write(content.getbuffer())


def read(path: str | os.PathLike[str]) -> Members:
    """The arrays of an uncompressed .npz, whose sizes are checked first: a small file cannot ask for much memory."""
    try:
        with Path(path).open("rb") as file:
            with zipfile.ZipFile(file) as archive:
                infos = archive.infolist()
                if len({info.filename for info in infos}) < len(infos):
                    raise ValueError("a name occurs twice in it")
                if sum(info.file_size for info in infos) > os.fstat(file.fileno()).st_size:
                    raise ValueError("its parts are together longer than the file")
                for info in infos:
                    _check_size(archive, info)
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                return dict(arrays)
    except FileNotFoundError:
        raise
    except Exception as error:  # damaged files make the parsers of zip and npy raise nearly anything
        no_archive = "it is not an .npz archive, such as the model.npz that contrapca fit writes"
        raise _unreadable(path, no_archive if isinstance(error, zipfile.BadZipFile) else str(error)) from error


def _check_size(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """Raise unless a member is a stored array of numbers that is as long as it says."""
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise ValueError(f"its member {info.filename!r} is compressed")
    with archive.open(info) as member:
        headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = headers[np.lib.format.read_magic(member)](member)
        # Kinds of numbers have a size above 0: text of length 0 could have any number of entries.
        if dtype.kind not in "fiub":
            raise ValueError(f"its member {info.filename!r} holds {dtype} instead of numbers")
        if dtype.itemsize * int(np.prod(shape, dtype=object)) != info.file_size - member.tell():
            raise ValueError(f"its member {info.filename!r} is not as long as it says")


# ---------------------------------------------------------------------- checks of values


def check_values(
    owner: Any,
    shapes: Mapping[str, str],
    *,
    finite: Collection[str] = (),
    positive: Collection[str] = (),
    not_negative: Collection[str] = (),
    may_be_nan: Collection[str] = (),
) -> dict[str, int]:
    """Raise a ValueError if fields of a dataclass cannot be what they should be; return the length of each axis.

    Parameters
    ----------
    owner : dataclass
        With fields that are numbers, arrays, or several of them; None is not checked.
    shapes : mapping from name to str
        Arrays of floats: one letter for each axis; axes of one letter have one length, "*" has any. They are finite.
    finite, positive, not_negative : collection of str
        Other fields that are finite, and fields that are above 0, or 0 or more up to rounding.
    may_be_nan : collection of str
        Arrays that need not be finite.
    """
    sizes: dict[str, int] = {}
    for name in dict.fromkeys((*shapes, *finite, *positive, *not_negative)):
        value = getattr(owner, name)
        alone = isinstance(value, np.ndarray | int | float | None)
        for one in (value,) if alone else value:
            if one is None:
                continue
            if name in shapes:
                if getattr(one, "dtype", np.dtype("O")).kind != "f" or one.ndim != len(shapes[name]):
                    raise ValueError(f"{name} is not a {len(shapes[name])}-dimensional array of floats")
                axes = zip(shapes[name], one.shape, strict=True)
                if not all(letter == "*" or sizes.setdefault(letter, n) == n for letter, n in axes):
                    raise ValueError(f"{name} has the shape {one.shape}, which does not fit the others")
            if name not in may_be_nan and not np.isfinite(one).all():
                raise ValueError(f"{name} is not finite")
            if name in positive and np.any(np.less_equal(one, 0)):
                raise ValueError(f"{name} is not positive")
            if name in not_negative and np.any(one < -ROUNDING * np.max(np.abs(one), initial=0.0)):
                raise ValueError(f"{name} is negative")
    return sizes
