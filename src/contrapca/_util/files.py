"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

MARK = ".contrapca-"  # what temporary names begin with; host, process and a random part follow


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that appears under `path` complete or not at all.

    A symbolic link is kept and its target replaced; a file that is replaced keeps its permissions. Devices and pipes
    are refused. What a killed process left behind is removed.
    """
    target = checked_target(path)
    remove_leftovers(target.parent)
    temporary = target.parent / temporary_name()
    try:
        with temporary.open("xb") as file:
            if target.exists():  # nobody else may read a private file while it is being written
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            yield file
        put_in_place({temporary: target})
    finally:
        temporary.unlink(missing_ok=True)


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


def put_in_place(moves: Mapping[Path, Path]) -> None:
    """Rename finished files to their targets, all of them or none; targets that exist keep their permissions."""
    kept: dict[Path, Path] = {}  # target to a copy of what it was
    done: list[Path] = []
    try:
        for source, target in moves.items():
            with source.open("r+b") as file:
                os.fsync(file.fileno())  # a rename that reaches the disk before the content would leave an empty file
            if target.exists():
                source.chmod(stat.S_IMODE(target.stat().st_mode))
                if len(moves) > 1:
                    kept[target] = Path(shutil.copy2(target, source.with_name(f"{source.name}.old")))
        for source, target in moves.items():
            source.replace(target)
            done.append(target)
    except BaseException:
        for target in done:
            if target in kept:
                kept.pop(target).replace(target)
            else:
                target.unlink(missing_ok=True)
        raise
    finally:
        for old in kept.values():
            old.unlink(missing_ok=True)


def temporary_name() -> str:
    """A new name that says which process of which machine uses it."""
    return f"{MARK}{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(8)}"


def remove_leftovers(folder: Path) -> None:
    """Remove what processes of this machine that no longer run have left in a folder."""
    if os.name != "posix":  # elsewhere a process cannot be asked whether it runs without being stopped
        return
    for left in folder.glob(f"{MARK}{socket.gethostname()}-*"):
        process = left.name.rsplit("-", 2)[1]
        if process.isdigit() and not _runs(int(process)):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        pass
    return True
