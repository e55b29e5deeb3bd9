"""Writing files: whole or not at all, with what was there respected."""

import os
import stat
import zipfile

import numpy as np
import pytest

from contrapca import PPCA, _files, load
from contrapca._files import atomic_write
from contrapca.exceptions import ModelFileError

POSIX = os.name == "posix"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def model():
    return PPCA(1).fit(np.random.default_rng(0).standard_normal((20, 4)))


@pytest.mark.skipif(not POSIX, reason="permissions of POSIX")
def test_permissions_are_kept(model, tmp_path):
    file = tmp_path / "model.npz"
    model.save(file)
    file.chmod(0o600)
    model.save(file)
    assert mode(file) == 0o600
    before = os.umask(0o027)
    try:
        model.save(tmp_path / "new.npz")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new.npz") == 0o640  # a new file follows the umask


@pytest.mark.skipif(not POSIX, reason="permissions of POSIX")
def test_a_private_file_is_private_while_it_is_written(tmp_path):
    file = tmp_path / "private"
    file.write_bytes(b"old")
    file.chmod(0o600)
    with atomic_write(file):
        (temporary,) = tmp_path.glob(".contrapca-*")
        assert mode(temporary) == 0o700  # a folder
    assert mode(file) == 0o600


def test_symbolic_links_are_followed(model, tmp_path):
    (tmp_path / "far").mkdir()
    link = tmp_path / "model.npz"
    try:
        link.symlink_to(tmp_path / "far" / "real.npz")
    except OSError:
        return  # Windows, without the right to make links
    model.save(link)
    assert link.is_symlink()
    assert isinstance(load(tmp_path / "far" / "real.npz"), PPCA)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["far", "model.npz", "real.npz"]


@pytest.mark.skipif(not POSIX, reason="devices and pipes of POSIX")
def test_devices_and_pipes_are_refused(model, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/null"):
        with pytest.raises(OSError, match="is a device or a pipe, not a file"):
            model.save(place)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        model.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_the_content_reaches_the_disk_before_the_name(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(_files.os, "fsync", lambda descriptor: done.append(os.fstat(descriptor).st_size))
    with atomic_write(tmp_path / "file") as file:
        file.write(b"12345")
        assert not (tmp_path / "file").exists()
    assert done == [5]


def test_overlapping_members_are_refused_before_they_are_read(model, tmp_path):
    """A few kB that say that they hold a hundred times as much: every name points at the same bytes."""
    file = tmp_path / "bomb.npz"
    model.save(file)
    with zipfile.ZipFile(file, "a") as archive:
        last = archive.infolist()[-1]
        for k in range(1000):
            twin = zipfile.ZipInfo(f"extra{k}.npy")
            for name in ("compress_type", "header_offset", "CRC", "compress_size", "file_size", "flag_bits"):
                setattr(twin, name, getattr(last, name))
            archive.filelist.append(twin)
        archive._didModify = True
    with pytest.raises(ModelFileError, match="together longer than the file"):
        load(file)
