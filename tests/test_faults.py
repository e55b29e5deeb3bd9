"""Faults while files are written: an error at every open, write, flush to disk and rename, and kill -9 at any moment.

Afterwards every target is absent, or what it was, or, after the last step, new; and nothing else lies around.
"""

import contextlib
import io
import os
import random
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from contrapca import CPCA, PCPCA, Moments, cli, contrast_path, report
from contrapca._files import read

pytestmark = pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((8, 5)) * [3, 1, 1, 1, 1], RNG.standard_normal((7, 5))
MODEL = PCPCA(1, gamma=0.3).fit(X, background=Y)


class Disk:
    """Counts what is done to files below a folder, and fails at one count."""

    def __init__(self, folder, failing):
        self.folder, self.failing, self.count = str(folder), failing, 0

    def step(self, *paths):
        if any(str(path).startswith(self.folder) for path in paths):
            self.count += 1
            if self.count == self.failing:
                raise OSError(28, "No space left on device")

    @contextlib.contextmanager
    def installed(self):
        """Every function by which Python writes, made to count."""
        real = {"open": io.open, "fsync": os.fsync, "replace": os.replace, "mkdir": os.mkdir, "chmod": os.chmod}

        def opened(file, mode="r", *others, **options):
            if not set(mode) & set("wxa+"):
                return real["open"](file, mode, *others, **options)
            self.step(file)
            return Counted(self, real["open"](file, mode, *others, **options), file)

        def counted(name):
            def function(path, *others, **options):
                self.step(self.folder if name == "fsync" else path)
                return real[name](path, *others, **options)

            return function

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(io, "open", opened)
            patch.setattr("builtins.open", opened)
            for name in ("fsync", "replace", "mkdir", "chmod"):
                patch.setattr(os, name, counted(name))
            yield


class Counted:
    """An open file whose writes and closing count."""

    def __init__(self, disk, file, path):
        self.disk, self.file, self.path = disk, file, path

    def write(self, content):
        self.disk.step(self.path)
        return self.file.write(content)

    def __enter__(self):
        self.file.__enter__()
        return self

    def __exit__(self, *error):
        return self.file.__exit__(*error)

    def __iter__(self):
        return iter(self.file)

    def __getattr__(self, name):
        return getattr(self.file, name)


def command(*arguments):
    """Run the command line; an exit code other than 0 is an OSError here."""
    if cli.main([*map(str, arguments)]):
        raise OSError("refused")


def table(path, rows):
    if not path.exists():
        lines = [",".join("abcde"), *(",".join(map(repr, row)) for row in rows.tolist())]
        path.write_text("\n".join(lines) + "\n")
    return path


def fit_command(folder):
    cases, controls = table(folder.parent / "cases.csv", X), table(folder.parent / "controls.csv", Y)
    return command("fit", cases, "--background", controls, "--no-test", "--force", "-o", folder / "results")


SAVING = {
    "model": lambda folder: MODEL.save(folder / "model.npz"),
    "path": lambda folder: contrast_path(CPCA(1), X, background=Y, gammas=[0.0, 1.0]).save(folder / "path.npz"),
    "moments": lambda folder: Moments.from_rows(X).save(folder / "moments.npz"),
    "report": lambda folder: report(X, MODEL, background=Y, output=folder / "report.html", gammas=3, test=False),
    "contrapca fit": fit_command,
}


def content(folder):
    """Every file below a folder, and every folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


SLOW = ("report", "contrapca fit")  # each step begins anew


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SAVING]
)
def test_an_error_at_every_step(name, existing, tmp_path, need, capsys):
    for library in ("polars", "jinja2", "matplotlib"):
        need(library)
    folder = tmp_path / "folder"
    folder.mkdir()
    save = SAVING[name]
    if existing:
        save(folder)
        for path in folder.rglob("*.*"):
            path.write_bytes(b"old")
    before = content(folder)
    other = tmp_path / "other" / "folder"
    other.mkdir(parents=True)
    save(other)
    whole, failing = content(other), 0
    while True:
        failing += 1
        disk = Disk(folder, failing)
        with disk.installed():
            try:
                save(folder)
            except OSError:
                failed = True
            else:
                failed = False
        if not failed:
            break
        left = content(folder)
        if name == "contrapca fit":  # renames one file after the other, once all are written
            assert all(data in (before.get(path), whole[path]) for path, data in left.items()), f"step {failing}"
            shutil.rmtree(folder / "results", ignore_errors=True)
            for path, data in before.items():
                (folder / path).mkdir() if data is None else (folder / path).write_bytes(data)
        assert content(folder) == before, f"step {failing}"
    assert disk.count < failing  # it ended because there was nothing left to fail
    assert failing > 4  # open, write, flush, rename
    after = content(folder)
    assert not any(".contrapca-" in path for path in after)
    assert set(before) <= set(after)
    assert all(data != b"old" for data in after.values())


def test_the_faults_are_noticed(tmp_path):
    """The control: writing in place leaves half a file."""

    def careless(folder):
        with open(folder / "model.npz", "wb") as file:  # noqa: PTH123
            file.write(b"first half")
            file.write(b"second half")

    disk = Disk(tmp_path, 3)
    with disk.installed(), pytest.raises(OSError, match="No space"):
        careless(tmp_path)
    assert content(tmp_path) == {"model.npz": b"first half"}


# ---------------------------------------------------------------------- kill -9

SAVER = """
import sys
from pathlib import Path
import numpy as np
from contrapca._files import write
from contrapca.cli._outputs import staged

folder, number = Path(sys.argv[1]), 0
names = [folder / name for name in ("a.txt", "b.txt", "c.txt")]
while True:
    number += 1
    write(folder / "model.npz", {"x": np.full(20000, float(number))})
    with staged(names, force=True) as places:
        for place in places.values():
            place.write_text(str(number % 10) * 50000)
    print(number, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX")
def test_killed_at_any_moment(tmp_path):
    """Every file is whole afterwards, whenever that was: a random part of the time that a round took before."""
    times = random.Random(0)
    middle = 0
    for _ in range(8):
        saver = subprocess.Popen([sys.executable, "-c", SAVER, tmp_path], stdout=subprocess.PIPE)
        saver.stdout.readline()
        start = time.monotonic()
        saver.stdout.readline()  # however long it takes on this machine
        time.sleep(times.random() * (time.monotonic() - start))
        saver.kill()
        saver.communicate()
        middle += len(list(tmp_path.glob(".contrapca-*")))
        assert len(set(read(tmp_path / "model.npz")["x"])) == 1
        for name in ("a.txt", "b.txt", "c.txt"):
            text = (tmp_path / name).read_text()
            assert text == text[0] * 50000
    assert middle > 0  # some were killed in the middle of it
