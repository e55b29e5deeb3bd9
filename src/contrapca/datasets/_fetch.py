"""Data sets as files: where they are looked for, how they are downloaded, and how their content is checked.

A set is looked for in the folder that CONTRAPCA_DATA names, then in the cache, then at its public origin. Whatever its
form (the project's own file, a file of the origin), it is parsed into the same arrays, and the checksum is of these: an
archive may be packed anew without harm, a changed number may not. Only checked arrays are written into the cache.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.archive import atomic_write
from .._util.progress import Progress
from ..exceptions import DatasetError, warn

Arrays = dict[str, npt.NDArray[Any]]

ATTEMPTS, BACKOFF, TIMEOUT = 4, 1.0, 30.0  # downloads; first pause and patience with a silent server in seconds
CHUNK = 1 << 16  # bytes
WORTH_ANOTHER_ATTEMPT = {408, 429, 500, 502, 503, 504}  # of HTTP's answers


@dataclass(frozen=True)
class Form:
    """Files that hold a data set together, and the function that parses them."""

    files: tuple[str, ...]
    read: Callable[[Sequence[Path]], Arrays]


@dataclass(frozen=True)
class Source:
    """A data set: the forms in which it may lie in a folder, and its public origin.

    Attributes
    ----------
    folder : str
        Its folder below CONTRAPCA_DATA and the cache.
    forms : tuple of Form
        In the order of preference. The first is an npz file: that is also how the cache keeps it.
    checksum : str
        What `content_checksum` gives for its arrays.
    urls : tuple of str
        The public addresses of the files of the last form; empty for a set that nobody hands out.
    """

    folder: str
    forms: tuple[Form, ...]
    checksum: str
    urls: tuple[str, ...] = ()


def load_arrays(source: Source) -> Arrays:
    """The arrays of a data set, from the first place that has it."""
    found = locate(source)
    return _from_origin(source) if found is None else _checked(source, *found)


def locate(source: Source) -> tuple[Form, list[Path]] | None:
    """The first form of a set that lies in a folder with all its files."""
    for folder in folders():
        for form in source.forms:
            paths = [folder / source.folder / name for name in form.files]
            if all(path.is_file() for path in paths):
                return form, paths
    return None


def folders() -> list[Path]:
    """Where data sets are looked for: the folder that CONTRAPCA_DATA names, if it does, and the cache."""
    named = os.environ.get("CONTRAPCA_DATA")
    return ([Path(named)] if named else []) + [cache_folder()]


def cache_folder() -> Path:
    """The folder that CONTRAPCA_CACHE names, or the platform's usual place."""
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
    """SHA-256 of names, types, shapes and values, in the order of the names and the same on every machine."""
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
    """The parsed files, or an error that says that they are not what they should be."""
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
    """Download, parse, check, and keep the arrays in the cache."""
    form, target = source.forms[-1], cache_folder() / source.folder / source.forms[0].files[0]
    if not source.urls:
        raise DatasetError(_wanted(source, "it has no public origin"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        place = tempfile.TemporaryDirectory(prefix=".download-", dir=target.parent)
    except OSError as error:
        reason = f"there is no folder to download it into ({error})"
        raise DatasetError(f"{_wanted(source, reason)} Or let CONTRAPCA_CACHE name a folder to write to.") from error
    with place as folder:  # the downloaded files are gone at the end, whatever happens
        paths = [Path(folder) / name for name in form.files]
        for url, path in zip(source.urls, paths, strict=True):
            try:
                download(url, path)
            except OSError as error:
                raise DatasetError(_wanted(source, f"{url} could not be downloaded ({error})")) from error
        advice = f"It came from {' and '.join(source.urls)} and was not kept; {_remedy(source)}."
        arrays = _checked(source, form, paths, advice)
    try:
        with atomic_write(target) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        warn(f"The data set {source.folder!r} was downloaded, but could not be kept in {str(target)!r} ({error}).")
    return arrays


def _wanted(source: Source, reason: str) -> str:
    """The one sentence for a set that is nowhere."""
    looked = " and ".join(repr(str(folder / source.folder)) for folder in folders())
    return f"The data set {source.folder!r} is not in {looked}, and {reason}: {_remedy(source)}."


def _remedy(source: Source) -> str:
    files = " or ".join(" with ".join(form.files) for form in source.forms)
    return f"put {files} into a folder {source.folder!r} and let CONTRAPCA_DATA name the folder above it"


def download(url: str, path: Path) -> None:
    """Fetch a file, several times if the server is busy, silent or stops half-way; an OSError says why it failed."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _download_once(url, path)
        except urllib.error.HTTPError as error:
            error.close()  # it holds the connection
            failure: OSError = error
            if error.code not in WORTH_ANOTHER_ATTEMPT:
                break
        except http.client.HTTPException as error:  # no answer in the language of HTTP
            failure = OSError(f"{type(error).__name__}: {error}")
        except OSError as error:  # also urllib's, time-outs and closed connections
            failure = error
            if isinstance(getattr(error, "reason", None), socket.gaierror):
                break  # no such name: there is no network
        if attempt < ATTEMPTS:
            time.sleep(BACKOFF * 2 ** (attempt - 1))
    raise failure


def _download_once(url: str, path: Path) -> None:
    # Text is a tenth as long where the server packs it.
    request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip", "User-Agent": "contrapca"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, path.open("wb") as file:
        length = int(answer.headers.get("Content-Length") or 0)
        packed = answer.headers.get("Content-Encoding", "").strip().lower() == "gzip"
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16) if packed else None  # 16: of gzip's format
        done, megabytes = 0, max(1, round(length / 1e6))
        with Progress(f"Downloading {path.name}", megabytes, visible=sys.stderr.isatty()) as progress:
            while block := answer.read(CHUNK):
                file.write(block if unpacker is None else unpacker.decompress(block))
                done += len(block)
                progress.update(round(done / 1e6) if length else 0, "MB" if length else f"{done / 1e6:.0f} MB so far")
    if done < length or (unpacker is not None and not unpacker.eof):
        raise OSError(f"the connection ended after {done} of {length or 'more'} bytes")
