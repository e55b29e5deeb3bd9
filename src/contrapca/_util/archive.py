"""Archives of arrays with a JSON header. Never pickle."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._version import __version__
from ..exceptions import ModelFileError
from .files import atomic_write

FORMAT, VERSION = "contrapca", 3
HEADER = "header"  # the archive's member that holds the JSON text, as bytes
NAMES = "feature_names"
ROUNDING = 1e-9  # of the largest entry: how far below 0 a variance may be
LARGEST = float(np.finfo(np.float64).max)
SMALLEST = float(np.finfo(np.float64).smallest_subnormal)


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    facts: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    names: Sequence[str] | None,
) -> None:
    """Write arrays, plain facts and the names of features as an uncompressed npz file.

    Parameters
    ----------
    path : str or path-like
    kind : str
        What is saved: the name that `read_archive` gives back.
    facts : mapping
        Text, numbers and lists of them.
    arrays : mapping from name to ndarray
    names : sequence of str, or None
        Of the features.
    """
    content = io.BytesIO()  # first: a zip file that cannot be finished complains when it is thrown away
    np.savez(content, **pack(kind, facts, arrays, names))  # type: ignore[arg-type]
    with atomic_write(path) as file:
        file.write(content.getbuffer())


def pack(
    kind: str, facts: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], names: Sequence[str] | None
) -> dict[str, npt.NDArray[Any]]:
    """The same as arrays only: facts as the bytes of a JSON text, names as text. `unpack` reads them."""
    header = {"format": FORMAT, "version": VERSION, "written_by": f"contrapca {__version__}", "kind": kind}
    text = json.dumps(header | {"facts": dict(facts)}, allow_nan=True).encode()
    members = {HEADER: np.frombuffer(text, dtype=np.uint8), **arrays}
    return members if names is None else members | {NAMES: np.asarray(names, dtype=np.str_)}


class OldFileError(ModelFileError):
    """A file of version 0.1, with what it holds."""

    def __init__(self, message: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]):
        super().__init__(message)
        self.header, self.arrays = header, arrays


@dataclass(frozen=True)
class Archive:
    """What a file holds."""

    kind: str
    facts: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]
    names: tuple[str, ...] | None


def read_archive(path: str | os.PathLike[str]) -> Archive:
    """Read what `write_archive` wrote; anything else gives a ModelFileError.

    Only stored (uncompressed) members of plain numbers or text are read. Each must be as long as it says, and all
    together no longer than the file: a small file cannot ask for much memory, and no object is ever unpickled.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_sizes(members, Path(path).stat().st_size)
            arrays = {info.filename.removesuffix(".npy"): _read_member(archive, info) for info in members}
    except FileNotFoundError:
        raise
    except zipfile.BadZipFile as error:
        raise _unreadable(path, "it is no .npz archive, such as the model.npz that contrapca fit writes") from error
    except Exception as error:  # damaged files make the parsers of zip and npy raise nearly anything
        raise _unreadable(path, str(error)) from error
    return unpack(arrays, os.fspath(path))


def unpack(members: Mapping[str, npt.NDArray[Any]], source: str | os.PathLike[str]) -> Archive:
    """What `pack` packed; `source` says where the arrays are from, for messages."""
    arrays = dict(members)
    try:
        header = json.loads(arrays.pop(HEADER).tobytes().decode())
        if not isinstance(header, dict):
            raise ValueError("its header is not a JSON object")
    except KeyError as error:
        raise _unreadable(source, "it has no header") from error
    except Exception as error:  # damaged bytes make the parser of JSON raise nearly anything
        raise _unreadable(source, str(error)) from error
    _check_version(source, header, arrays)
    names = arrays.pop(NAMES, None)
    if not isinstance(header.get("facts"), dict) or (
        names is not None and (names.dtype.kind != "U" or names.ndim != 1)
    ):
        raise ModelFileError(f"{str(source)!r} is damaged: its facts or its names are not what they should be.")
    return Archive(str(header.get("kind")), header["facts"], arrays, None if names is None else tuple(names.tolist()))


def _unreadable(source: str | os.PathLike[str], reason: str) -> ModelFileError:
    return ModelFileError(
        f"{str(source)!r} is not a readable contrapca file: {reason}. It may be damaged, incomplete or of another kind."
    )


def _check_version(path: Any, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuse a file of another format, or another version of it."""
    found, version = str(header.get("format")), header.get("version")
    if not found.startswith(FORMAT):
        raise ModelFileError(f"{str(path)!r} is not a contrapca file: its format is {header.get('format')!r}.")
    if found != FORMAT:
        message = (
            f"{str(path)!r} was written by {header.get('written_by', 'contrapca 0.1')}, whose files this contrapca "
            f"{__version__} does not read."
        )
        raise OldFileError(message, header, arrays)
    if version != VERSION:
        raise ModelFileError(
            f"{str(path)!r} has format version {version!r}; this contrapca {__version__} reads version {VERSION}. "
            "Update contrapca, or save again with this version."
        )


def _check_sizes(members: Sequence[zipfile.ZipInfo], file_size: int) -> None:
    """Before anything is read: members that overlap could ask for much more memory than the file has."""
    if len({info.filename for info in members}) < len(members):
        raise ValueError("a name occurs twice in it")
    if sum(info.file_size for info in members) > file_size:
        raise ValueError("its parts are together longer than the file")


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise ValueError(f"its member {info.filename!r} is compressed")
    content = io.BytesIO(archive.read(info))  # also checks the member's CRC
    version = np.lib.format.read_magic(content)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read_header:
        raise ValueError(f"its member {info.filename!r} has the unknown array format {version}")
    shape, _, dtype = read_header[version](content)
    if dtype.kind not in "fiuUb":
        raise ValueError(f"its member {info.filename!r} holds {dtype} instead of numbers or text")
    if dtype.itemsize * int(np.prod(shape, dtype=object)) != len(content.getbuffer()) - content.tell():
        raise ValueError(f"its member {info.filename!r} is not as long as it says")
    content.seek(0)
    return np.lib.format.read_array(content, allow_pickle=False)


def check_arrays(
    arrays: Mapping[str, npt.NDArray[Any]],
    shapes: Mapping[str, str],
    names: Sequence[str] | None = None,
    *,
    may_be_nan: Collection[str] = (),
    not_negative: Collection[str] = (),
) -> dict[str, npt.NDArray[Any]]:
    """The arrays of floats of an archive that belong to an object, or a ValueError that says what is wrong.

    Parameters
    ----------
    arrays : mapping from name to ndarray
    shapes : mapping from name to str
        One letter for each axis; axes of one letter have one length. "*" is an axis of any length, a name that ends in
        "?" may be absent. "D" is the number of features.
    names : sequence of str, optional
        Of the features.
    may_be_nan : collection of str
        Arrays that need not be finite.
    not_negative : collection of str
        Arrays that are 0 or more, up to rounding.
    """
    sizes = {} if names is None else {"D": len(names)}
    found = {}
    for key, letters in shapes.items():
        name = key.removesuffix("?")
        if name not in arrays:
            if key.endswith("?"):
                continue
            raise ValueError(f"{name} is missing")
        value = arrays[name]
        if value.dtype.kind != "f" or value.ndim != len(letters):
            raise ValueError(f"{name} is not a {len(letters)}-dimensional array of floats")
        axes = zip(letters, value.shape, strict=True)
        if not all(letter == "*" or sizes.setdefault(letter, n) == n for letter, n in axes):
            raise ValueError(f"{name} has the shape {value.shape}, which does not fit the others")
        if name not in may_be_nan and not np.isfinite(value).all():
            raise ValueError(f"{name} is not finite")
        if name in not_negative and np.any(value < -ROUNDING * np.max(np.abs(value), initial=0.0)):
            raise ValueError(f"{name} is negative")
        found[name] = value
    return found


def check_number(facts: Mapping[str, Any], name: str, least: float = -np.inf, most: float = np.inf) -> Any:
    """A number of the facts, from `least` to `most`, as it was written, or a ValueError that says what is wrong."""
    value = facts[name]
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name} = {value!r} is impossible")
    return value


def check_count_of(facts: Mapping[str, Any], name: str) -> int:
    """A whole number of the facts, 0 or more, or a ValueError."""
    value = check_number(facts, name, 0)
    if not isinstance(value, int):
        raise ValueError(f"{name} = {value!r} is not a whole number")
    return value


def check_switch(facts: Mapping[str, Any], name: str) -> bool:
    """True or False of the facts, or a ValueError."""
    if not isinstance(facts[name], bool):
        raise ValueError(f"{name} = {facts[name]!r} is neither true nor false")
    return bool(facts[name])
