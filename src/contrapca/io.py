"""Files: archives of arrays with a JSON header, and atomic writing. Never pickle."""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ._version import __version__
from .exceptions import ModelFileError

HEADER = "header"  # the archive's member that holds the JSON text, as bytes


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that appears under `path` complete or not at all."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(target.parent)!r} to write {target.name!r} into.")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            yield file
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_archive(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Write arrays and a JSON header as an uncompressed npz file."""
    text = json.dumps(header, allow_nan=True).encode()
    content = io.BytesIO()  # first: a zip file that cannot be finished complains when it is thrown away
    np.savez(content, **{HEADER: np.frombuffer(text, dtype=np.uint8)}, **arrays)  # type: ignore[arg-type]
    with atomic_write(path) as file:
        file.write(content.getbuffer())


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read what `write_archive` wrote; anything else gives a ModelFileError.

    Only stored (uncompressed) members of plain numbers or text are read, and each must be as long as
    it says, so that a small file cannot ask for much memory and no object is ever unpickled.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {info.filename.removesuffix(".npy"): _read_member(archive, info) for info in archive.infolist()}
        header = json.loads(arrays.pop(HEADER).tobytes().decode())
        if not isinstance(header, dict):
            raise ValueError("its header is not a JSON object")
    except FileNotFoundError:
        raise
    except Exception as error:  # damaged files make the parsers of zip, npy and JSON raise nearly anything
        reason = "it has no header" if isinstance(error, KeyError) else str(error)
        raise ModelFileError(
            f"{os.fspath(path)!r} is not a readable contrapca file: {reason}. "
            "It may be damaged, incomplete or of another kind."
        ) from error
    return header, arrays


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


def checked_array(
    arrays: Mapping[str, npt.NDArray[Any]], name: str, shape: tuple[int, ...], *, finite: bool = True
) -> npt.NDArray[Any]:
    """An array of floats of an archive, or a ValueError that names what it should be."""
    value = arrays[name]
    if value.dtype.kind != "f" or value.shape != shape or (finite and not np.isfinite(value).all()):
        raise ValueError(f"{name} is not {'a finite' if finite else 'an'} array of shape {shape}")
    return value


def checked_names(arrays: Mapping[str, npt.NDArray[Any]], name: str, n_features: int) -> npt.NDArray[Any]:
    """Feature names of an archive, one text each, or a ValueError."""
    names = arrays[name]
    if names.dtype.kind != "U" or names.shape != (n_features,):
        raise ValueError(f"{name} is not one text for each feature")
    return names


def check_version(path: Any, header: Mapping[str, Any], known: int) -> None:
    """Refuse a file of another version of its format."""
    if header.get("version") != known:
        raise ModelFileError(
            f"{str(path)!r} has format version {header.get('version')!r}; this contrapca {__version__} reads version "
            f"{known}. Update contrapca, or save again with this version."
        )
