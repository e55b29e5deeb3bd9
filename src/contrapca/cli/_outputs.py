"""Output files: written when all are complete, and over existing ones only with --force."""

from __future__ import annotations

import contextlib
import csv
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._files import checked_target, put_in_place
from .._util.text import listed

SEPARATORS = {".csv": ",", ".tsv": "\t"}


class OutputError(OSError):
    """Results cannot be written."""


def check_outputs(files: Sequence[Path], *, force: bool) -> None:
    """Before anything is computed: refuse files that exist, and places where no file can be."""
    for file in files:
        if file.is_dir():
            raise OutputError(f"{str(file)!r} is a folder: name a file as --output.")
        if file.exists() and not file.is_file():
            raise OutputError(f"{str(file)!r} is a device or a pipe, not a file: choose another --output.")
        if file.exists() and not force:
            raise OutputError(f"{str(file)!r} exists: choose another --output, or add --force to replace it.")
        place = next(place for place in file.parents if place.exists() or place == place.parent)
        if not place.is_dir():
            raise OutputError(f"{str(place)!r} is a file, so nothing can be written into it: choose another --output.")
        if not os.access(place, os.W_OK | os.X_OK):
            raise OutputError(f"No permission to write into {str(place)!r}: choose another --output.")


@contextlib.contextmanager
def staged(files: Sequence[Path], *, force: bool) -> Iterator[dict[str, Path]]:
    """Places to write to, by the names of files of one folder; these appear at the end, or not at all.

    Folders that are missing are made, and removed again if nothing is written.
    """
    check_outputs(files, force=force)
    folder = files[0].parent
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    done: list[str] = []
    try:
        if missing:
            folder.mkdir(parents=True)
        with tempfile.TemporaryDirectory(prefix=".contrapca-", dir=folder, ignore_cleanup_errors=True) as stage:
            yield {file.name: Path(stage, file.name) for file in files}
            check_outputs(files, force=force)  # what others have written meanwhile stays, too
            for file in files:
                put_in_place(Path(stage, file.name), checked_target(file))
                done.append(file.name)
    except BaseException as error:
        for place in missing:
            with contextlib.suppress(OSError):
                place.rmdir()
        if isinstance(error, OSError) and error.strerror:
            written = f"only {listed(done)} was written" if done else "nothing was written"
            raise OutputError(f"{str(folder)!r} cannot be written into ({error.strerror}): {written}.") from error
        raise


def write_columns(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns of equal length as text, numbers in full precision; the ending tells the separator."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=SEPARATORS[path.suffix.lower()], lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True))


def check_text_output(path: Path, name: str = "--output") -> None:
    """Refuse an ending that names another format than text."""
    if path.suffix.lower() not in SEPARATORS:
        raise OutputError(f"{name} {str(path)!r} must end in {' or '.join(SEPARATORS)}.")
