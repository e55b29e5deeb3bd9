"""Data sets as files: where they are looked for, how they are downloaded, and how their content is checked.

A set is looked for in the folder named by CONTRAPCA_DATA, then in the cache, then at its public source. All its forms
are parsed into the same arrays, and the checksum is that of the arrays: a source may repack its archive, but not change
a number. Only checked arrays are written to the cache.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from .._files import atomic_write
from ..exceptions import DatasetError, warn

Arrays = dict[str, npt.NDArray[Any]]

RETRIES, DELAY, TIMEOUT = 3, 2, 30.0  # of a download; in seconds the pause and the patience with a silent server
MAX_BYTES = 500_000_000  # of one file; the largest has 130 MB
CHUNK = 1 << 20


@dataclass(frozen=True)
class Form:
    """The files that make up a data set, and the function that parses them."""

    files: tuple[str, ...]
    read: Callable[[Sequence[Path]], Arrays]


@dataclass(frozen=True)
class Source:
    """A data set: the forms in which it may be stored, and its public source.

    Attributes
    ----------
    folder : str
        Its folder below CONTRAPCA_DATA and the cache.
    forms : tuple of Form
        In order of preference. The first is an npz file, which is also what the cache stores.
    checksum : str
        Result of `content_checksum` for its arrays.
    urls : tuple of str
        Public addresses of the files of the last form; empty for a set that cannot be downloaded.
    """

    folder: str
    forms: tuple[Form, ...]
    checksum: str
    urls: tuple[str, ...] = ()


def load_arrays(source: Source) -> Arrays:
    """Load the arrays of a data set from the first place that has it."""
    found = locate(source)
    return _from_origin(source) if found is None else _checked(source, *found)


def locate(source: Source) -> tuple[Form, list[Path]] | None:
    """Find the first form of a set whose files are all present."""
    for folder in folders():
        for form in source.forms:
            paths = [folder / source.folder / name for name in form.files]
            if all(path.is_file() for path in paths):
                return form, paths
    return None


def folders() -> list[Path]:
    """Folders in which data sets are looked for: the one named by CONTRAPCA_DATA, if any, and the cache."""
    named = os.environ.get("CONTRAPCA_DATA")
    return ([Path(named)] if named else []) + [cache_folder()]


def cache_folder() -> Path:
    """The folder named by CONTRAPCA_CACHE, or the usual place of the platform."""
    named = os.environ.get("CONTRAPCA_CACHE")
    if named:
        return Path(named)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "contrapca"


def content_checksum(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """SHA-256 of names, types, shapes and values; does not depend on the machine or the order of the arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        values = arrays[name]
        if values.dtype.kind == "U":  # the width of NumPy's text depends on the longest
            kind, content = "text", "\0".join(values.ravel().tolist()).encode()
        else:
            values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
            kind, content = values.dtype.str, values.tobytes()
        digest.update(f"{name} {kind} {values.shape} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _checked(source: Source, form: Form, paths: Sequence[Path], advice: str = "Delete or replace it.") -> Arrays:
    """Parse the files, or say why they are not the data set."""
    shown = ", ".join(repr(str(path)) for path in paths)
    try:
        arrays = form.read(paths)
    except ImportError:
        raise
    except Exception as error:  # damaged files make parsers raise nearly anything
        reason = f"it cannot be read ({type(error).__name__}: {error})"
        raise DatasetError(f"{shown} is not the data set {source.folder!r}: {reason}. {advice}") from error
    found = content_checksum(arrays)
    if found != source.checksum:
        reason = f"the checksum of its content is {found}, not {source.checksum}"
        raise DatasetError(f"{shown} is not the data set {source.folder!r}: {reason}. {advice}")
    return arrays


def _from_origin(source: Source) -> Arrays:
    """Download, parse and check the files, and store the arrays in the cache."""
    form, target = source.forms[-1], cache_folder() / source.folder / source.forms[0].files[0]
    if not source.urls:
        raise DatasetError(_not_found(source, "it cannot be downloaded"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        place = tempfile.TemporaryDirectory(prefix=".download-", dir=target.parent)
    except OSError as error:
        reason = f"there is no folder to download it to ({error})"
        raise DatasetError(f"{_not_found(source, reason)} Or set CONTRAPCA_CACHE to a writable folder.") from error
    with place as folder:  # the downloaded files are removed in any case
        paths = [_download(source, url, folder, name) for url, name in zip(source.urls, form.files, strict=True)]
        advice = f"It came from {' and '.join(source.urls)} and was not kept; {_remedy(source)}."
        arrays = _checked(source, form, paths, advice)
    try:
        with atomic_write(target) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        warn(f"The data set {source.folder!r} was downloaded but could not be stored in {str(target)!r} ({error}).")
    return arrays


def _download(source: Source, url: str, folder: str, name: str) -> Path:
    if sys.stderr.isatty():
        print(f"Downloading {url}", file=sys.stderr)
    try:
        return fetch_file(url, folder, name)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DatasetError(_not_found(source, f"{url} could not be downloaded ({error})")) from error


def fetch_file(url: str, folder: str, name: str) -> Path:
    """Download a file, up to a size that none of ours has; what fails is tried again, but for too large a file."""
    target, left = Path(folder) / name, RETRIES
    while True:
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as answer, target.open("wb") as file:
                _copy(answer, file)
            return target
        except (OSError, http.client.HTTPException):
            if not left:
                raise
            left -= 1
            time.sleep(DELAY)


def _copy(answer: Any, file: IO[bytes]) -> None:
    announced = answer.headers.get("Content-Length")
    size = 0
    while chunk := answer.read(CHUNK):
        size += len(chunk)
        if size > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES / 1e6:.0f} MB, and so is not the file that was expected")
        file.write(chunk)
    if announced is not None and size < int(announced):
        raise OSError(f"got only {size} out of {announced} bytes")


def _not_found(source: Source, reason: str) -> str:
    looked = " or ".join(repr(str(folder / source.folder)) for folder in folders())
    return f"The data set {source.folder!r} is not in {looked}, and {reason}: {_remedy(source)}."


def _remedy(source: Source) -> str:
    files = " or ".join(" with ".join(form.files) for form in source.forms)
    return f"put {files} into a folder {source.folder!r} and set CONTRAPCA_DATA to the folder that contains it"
