"""Where data sets are looked for, and how they are downloaded, against a server on this machine."""

import dataclasses
import http.client
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from contrapca.datasets import _fetch
from contrapca.datasets._fetch import RETRIES, Form, Source, cache_folder, content_checksum, load_arrays
from contrapca.datasets._parsers import read_npz
from contrapca.exceptions import ContrastWarning, DatasetError

NUMBERS = np.arange(6.0)
GOOD = b"\n".join(b"%d" % value for value in NUMBERS)
PAGE = b"<!DOCTYPE html><html><body>Please log in to the network of this hotel.</body></html>"


def read_text(paths):
    return {"numbers": np.array([float(line) for line in paths[0].read_text().splitlines()])}


FORMS = (Form(("small.npz",), read_npz), Form(("small.txt",), read_text))
SMALL = Source("small_set", FORMS, content_checksum({"numbers": NUMBERS}))


@pytest.fixture
def small(server, cache):
    """A set whose origin is the server's /small.txt, with nothing in the cache."""
    return dataclasses.replace(SMALL, urls=(server.url("/small.txt"),))


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_downloaded_once_then_from_the_cache(server, small, cache):
    server.answer("/small.txt", GOOD)
    first = load_arrays(small)
    server.close()  # no network from here on
    second = load_arrays(small)
    for arrays in (first, second):
        np.testing.assert_array_equal(arrays["numbers"], NUMBERS)
    assert server.asked == ["/small.txt"]
    assert files(cache) == ["small.npz"]


def test_an_answer_without_length_is_taken(server, small):
    server.answer("/small.txt", GOOD, length=False)
    np.testing.assert_array_equal(load_arrays(small)["numbers"], NUMBERS)


@pytest.mark.parametrize(
    "failure",
    [{"status": 500}, {"status": 503}, {"status": 429}, {"body": GOOD[:5], "missing": 6}, {"body": b"", "missing": 11}],
    ids=lambda failure: f"{failure.get('status', 'truncated')}-{failure.get('missing', 0)}",
)
def test_a_passing_failure_is_tried_again(server, small, cache, failure):
    server.answer("/small.txt", **failure)
    server.answer("/small.txt", GOOD)
    np.testing.assert_array_equal(load_arrays(small)["numbers"], NUMBERS)
    assert server.asked == ["/small.txt"] * 2
    assert files(cache) == ["small.npz"]


def test_a_silent_server_is_given_up_and_tried_again(server, small, monkeypatch):
    monkeypatch.setattr(_fetch, "TIMEOUT", 0.2)
    server.answer("/small.txt", GOOD, delay=0.6)
    server.answer("/small.txt", GOOD)
    np.testing.assert_array_equal(load_arrays(small)["numbers"], NUMBERS)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        ({"status": 404}, r"HTTP Error 404"),
        ({"status": 500}, r"HTTP Error 500"),
        ({"body": GOOD[:5], "missing": 6}, r"got only 5 out of 11 bytes"),
    ],
)
def test_a_lasting_failure_is_one_sentence(server, small, cache, failure, said):
    url = server.answer("/small.txt", **failure)
    with pytest.raises(DatasetError, match=said) as error:
        load_arrays(small)
    assert len(server.asked) == 1 + RETRIES
    text = str(error.value)
    assert url in text
    assert "put small.npz or small.txt into a folder 'small_set' and set CONTRAPCA_DATA to the folder that" in text
    assert files(cache) == []


def test_offline_without_data_is_one_sentence(server, small, cache, tmp_path, monkeypatch):
    server.close()
    monkeypatch.setenv("CONTRAPCA_DATA", str(tmp_path / "data"))
    with pytest.raises(DatasetError, match="could not be downloaded") as error:
        load_arrays(small)
    text = str(error.value)
    assert text.startswith("The data set 'small_set' is not in ")
    assert repr(str(tmp_path / "data" / "small_set")) in text
    assert repr(str(cache / "small_set")) in text
    assert ". " not in text  # one sentence
    assert files(tmp_path) == []


def test_a_server_that_does_not_exist(server, cache):
    with pytest.raises(DatasetError, match=r"no-such-host\.invalid/small\.txt could not be downloaded"):
        load_arrays(dataclasses.replace(SMALL, urls=("http://no-such-host.invalid/small.txt",)))


def test_a_server_that_speaks_no_http(small, monkeypatch):
    def bad(*arguments, **options):
        raise http.client.BadStatusLine("hello")

    monkeypatch.setattr(_fetch, "fetch_file", bad)
    with pytest.raises(DatasetError, match=r"could not be downloaded \(hello\)"):
        load_arrays(small)


@pytest.mark.parametrize("length", [True, False])
def test_a_file_that_is_too_large_is_given_up(server, small, cache, monkeypatch, length):
    monkeypatch.setattr(_fetch, "MAX_BYTES", 1000)
    monkeypatch.setattr(_fetch, "CHUNK", 100)
    server.answer("/small.txt", b"1\n" * 5000, length=length)
    with pytest.raises(DatasetError, match=r"could not be downloaded \(it has more than 0 MB, and so is not"):
        load_arrays(small)
    assert server.asked == ["/small.txt"]  # the same again would not help
    assert files(cache) == []


def test_an_address_that_is_none(small):
    with pytest.raises(DatasetError, match="nonsense could not be downloaded"):
        load_arrays(dataclasses.replace(SMALL, urls=("nonsense",)))


def test_the_time_limit_is_for_downloads_only(server, small):
    server.answer("/small.txt", GOOD)
    load_arrays(small)
    assert socket.getdefaulttimeout() is None


def test_a_cache_that_cannot_be_written(server, small, cache):
    cache.write_text("a file where the folder should be")
    with pytest.raises(DatasetError, match=r"no folder to download it to .* set CONTRAPCA_CACHE to a writable folder"):
        load_arrays(small)
    assert server.asked == []


def test_a_full_disk_costs_the_cache_only(server, small, cache, monkeypatch):
    def full(file, **arrays):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    server.answer("/small.txt", GOOD)
    monkeypatch.setattr(_fetch.np, "savez_compressed", full)
    with pytest.warns(ContrastWarning, match="was downloaded but could not be stored in"):
        arrays = load_arrays(small)
    np.testing.assert_array_equal(arrays["numbers"], NUMBERS)
    assert files(cache) == []


def test_without_an_origin_nothing_is_asked(cache):
    with pytest.raises(DatasetError, match=r"it cannot be downloaded: put small\.npz"):
        load_arrays(SMALL)
    assert not cache.exists()


@pytest.mark.parametrize(
    ("body", "reason"), [(PAGE, r"it cannot be read \(ValueError"), (GOOD + b"\n7", r"the checksum of its content is")]
)
def test_wrong_content_is_refused_and_not_kept(server, small, cache, body, reason):
    url = server.answer("/small.txt", body)
    with pytest.raises(DatasetError, match=reason) as error:
        load_arrays(small)
    assert f"It came from {url} and was not kept; put small.npz" in str(error.value)
    assert server.asked == ["/small.txt"]  # the same again would not help
    assert files(cache) == []


def test_interrupted_download_leaves_nothing(server, small, cache, monkeypatch):
    def interrupted(url, folder, name, **options):
        (Path(folder) / name).write_bytes(GOOD[:3])
        raise KeyboardInterrupt

    monkeypatch.setattr(_fetch, "fetch_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_arrays(small)
    assert [path.name for path in cache.rglob("*")] == ["small_set"]


def test_interrupted_writing_leaves_nothing(server, small, cache, monkeypatch):
    def interrupted(file, **arrays):
        file.write(b"half of it")
        raise KeyboardInterrupt

    server.answer("/small.txt", GOOD)
    monkeypatch.setattr(_fetch.np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_arrays(small)
    assert files(cache) == []


def test_downloads_are_announced_on_a_terminal_only(server, small, cache, capsys, monkeypatch):
    server.answer("/small.txt", GOOD)
    load_arrays(small)
    assert capsys.readouterr().err == ""
    (cache / "small_set" / "small.npz").unlink()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    load_arrays(small)
    assert capsys.readouterr().err == f"Downloading {small.urls[0]}\n"


def test_folders_in_order(cache, tmp_path, monkeypatch):
    """The folder that CONTRAPCA_DATA names, then the cache; within a folder the first form."""

    def put(folder, name, content):
        (folder / "small_set").mkdir(parents=True, exist_ok=True)
        (folder / "small_set" / name).write_bytes(content)

    def found():
        form, paths = _fetch.locate(SMALL)
        assert tuple(path.name for path in paths) == form.files
        return paths[0].relative_to(tmp_path).as_posix()

    monkeypatch.setenv("CONTRAPCA_DATA", str(tmp_path / "data"))
    assert _fetch.locate(SMALL) is None
    put(cache, "small.txt", GOOD)
    assert found() == "cache/small_set/small.txt"
    put(tmp_path / "data", "small.txt", GOOD)
    assert found() == "data/small_set/small.txt"
    put(tmp_path / "data", "small.npz", b"")
    assert found() == "data/small_set/small.npz"


@pytest.mark.parametrize("content", [b"", b"no npz file", GOOD])
def test_a_damaged_file_is_named(cache, content):
    path = cache / "small_set" / "small.npz"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=r"is not the data set 'small_set'.*Delete or replace it\.") as error:
        load_arrays(SMALL)
    assert repr(str(path)) in str(error.value)
    assert path.exists()


def test_pickled_arrays_are_refused(cache):
    path = cache / "small_set" / "small.npz"
    path.parent.mkdir(parents=True)
    np.savez(path, numbers=np.array([{}], dtype=object))
    with pytest.raises(DatasetError, match="allow_pickle=False"):
        load_arrays(SMALL)


def test_cache_folder_of_the_platform(monkeypatch, tmp_path):
    monkeypatch.delenv("CONTRAPCA_CACHE", raising=False)
    monkeypatch.setattr(_fetch.Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "contrapca"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "contrapca"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "contrapca"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert cache_folder() == tmp_path / "AppData" / "Local" / "contrapca"


def test_checksum_is_of_the_content():
    arrays = {"a": np.arange(6.0).reshape(2, 3), "names": np.array(["x", "yy"])}
    known = content_checksum(arrays)
    stored = np.asfortranarray(arrays["a"]).astype(">f8")
    assert content_checksum({"names": arrays["names"].astype("U9"), "a": stored}) == known
    changes = [
        {"a": arrays["a"].reshape(3, 2)},
        {"a": arrays["a"].astype(np.float32)},
        {"a": arrays["a"] + np.eye(2, 3) * 1e-15},
        {"names": np.array(["xy", "y"])},
        {"b": arrays["a"]},
    ]
    for change in changes:
        assert content_checksum(arrays | change) != known
