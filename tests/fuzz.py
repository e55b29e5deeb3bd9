"""Random hostile tables and damaged model files: each must give a clear error, or a right answer.

As a program, for so many seconds: ``python tests/fuzz.py --seconds 60``. Every attempt has a number that makes all of
it; one that fails is printed, and ``python tests/fuzz.py --first NUMBER --seconds 0`` makes it again.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import multiprocessing
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

import contrapca
from contrapca import CLVM, CPCA, PCPCA, PPCA, Moments, cli, contrast_path
from contrapca.exceptions import ModelFileError, TableFileError
from contrapca.reading._formats import read_table

Random = np.random.Generator
PATIENCE = 30.0  # seconds for one attempt
SEPARATORS = [",", ";", "\t", "|"]
# Cells that tables in the wild have, and some that nobody would think of.
HOSTILE = [
    *("", " ", "NA", "nan", "inf", "-inf", "1e999", "-0", "1e-320", "0x1f", "1_000", "1,5", "1.2.3", "+-1", "12e"),
    *("\u0663", "\uff11", "\u22121", "½", "∞", "NaN(5)", "#REF!", "=1+1", "TRUE", "2020-01-01", "None", "<script>"),
    *('"', '""', "'", "a\nb", "a\r", "\x00", "\ufeff", "\u2028", "\x1a", "\u202e1", "é", "x" * 5000, "9" * 400),
]
SNIPPETS = [b"\x00", b'"', b"\n", b"\r", b",", b";", b"\xff\xfe", b"\xef\xbb\xbf", b"nan", b"1e999", b"PK\x03\x04"]


def damaged(random: Random, content: bytes) -> bytes:
    """Some bytes changed, inserted, removed or moved."""
    content = bytearray(content)
    for _ in range(random.integers(1, 6)):
        at, end = np.sort(random.integers(0, len(content) + 1, size=2)).tolist()
        match random.integers(6):
            case 0 if at < len(content):
                content[at] ^= 1 << int(random.integers(8))
            case 1 if at < len(content):
                content[at] = int(random.integers(256))
            case 2:
                content[at:at] = SNIPPETS[random.integers(len(SNIPPETS))]
            case 3:
                del content[at : min(end, at + int(random.integers(1, 64)))]
            case 4:
                content[at:at] = content[at:end][:200]
            case 5 if random.random() < 0.3:
                del content[end:]
    return bytes(content)


def packed(folder: Path, content: bytes, kind: str) -> Path:
    """The content as table.csv, or compressed."""
    path = folder / f"table.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("table.csv", content)
    else:
        path.write_bytes(gzip.compress(content) if kind.endswith("gz") else content)
    return path


def opened(read: Callable[[Path], Any], path: Path, refusal: type[Exception]) -> Any:
    """What was read; None where it was refused by a sentence that names the file."""
    try:
        return read(path)
    except refusal as error:
        said = str(error)
    assert path.name in said, said
    return None


# ---------------------------------------------------------------- attempts: each says what came of it


def a_plain_table(random: Random, folder: Path) -> str:
    """Numbers and missing values in any common style are read to the last bit."""
    shape = tuple(random.integers(2, 9, size=2))
    values = random.standard_normal(shape) * 10.0 ** random.integers(-300, 300, size=shape[1])
    values[random.random(shape) < 0.1] = np.nan
    values[:2] = random.standard_normal((2, shape[1]))  # no column is empty
    separator, line = str(random.choice(SEPARATORS)), str(random.choice(["\n", "\r\n", "\r"]))
    names = [f"g{j}" for j in range(shape[1])]
    rows = [["NA" if np.isnan(value) else repr(value) for value in row] for row in values.tolist()]
    content = line.join(separator.join(row) for row in [names, *rows]) + line * int(random.integers(2))
    mark = b"\xef\xbb\xbf" if random.random() < 0.3 else b""
    found = read_table(packed(folder, mark + content.encode(), str(random.choice(["csv", "txt", "csv.gz", "zip"]))))
    assert found.names == names
    np.testing.assert_array_equal(found.values, values)
    return "read"


def a_hostile_table(random: Random, folder: Path) -> str:
    """Cells and bytes of all kinds, through the command: results, or one sentence and nothing written."""
    n_rows, n_columns = random.integers(1, 16), random.integers(1, 7)
    cells = random.standard_normal((n_rows, n_columns)).round(3).astype(object)
    for _ in range(random.integers(0, 3)):
        cells[random.integers(n_rows), random.integers(n_columns)] = HOSTILE[random.integers(len(HOSTILE))]
    if random.random() < 0.2:
        cells[:, random.integers(n_columns)] = HOSTILE[random.integers(len(HOSTILE))]
    names = [f"gene{j}" if random.random() < 0.97 else HOSTILE[random.integers(len(HOSTILE))] for j in range(n_columns)]
    separator = SEPARATORS[0 if random.random() < 0.7 else random.integers(len(SEPARATORS))]
    lines = [separator.join(map(str, row)) for row in [names, *cells.tolist()]]
    content = "\n".join(lines).encode("utf-16" if random.random() < 0.03 else "utf-8") + b"\n"
    kind = str(random.choice(["csv", "tsv", "txt", "csv.gz", "zip"]))
    if random.random() < 0.3:
        content = damaged(random, content)
    path = packed(folder, content, kind)
    if kind not in ("csv", "tsv", "txt") and random.random() < 0.5:
        path.write_bytes(damaged(random, path.read_bytes()))
    controls = folder / "controls.csv"
    lines = [",".join(map(str, row)) for row in [names, *random.standard_normal((9, n_columns)).tolist()]]
    controls.write_text("\n".join(lines), encoding="utf-8", newline="\n")
    return command(["fit", str(path), "--background", str(controls), "--components", "1"], folder / "out")


def command(arguments: list[str], target: Path) -> str:
    """Run the command in this process; check what every answer and every refusal must be."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main([*arguments, "-o", str(target)])
    said = err.getvalue()
    assert code in (0, 2), f"exit code {code}: {said}"
    assert "Traceback" not in said
    if code == 2:
        remarks = ("contrapca: warning: ", "contrapca: caution: ")
        sentences = [line for line in said.splitlines() if not line.startswith(remarks)]
        assert len(sentences) == 1, said
        assert sentences[0].startswith("contrapca: "), said
        assert not target.exists()
        return "refused"
    model = contrapca.load(target / "model.npz")
    assert np.isfinite(model.components_).all()
    return "fitted"


def a_damaged_table(random: Random, folder: Path) -> str:
    """Damaged files of other formats: a table of numbers, or a sentence about the file."""
    values = random.standard_normal((6, 4))
    path = folder / str(random.choice(["table.npy", "table.npz", "table.mtx", "table.mtx.gz"]))
    if ".mtx" in path.name:
        content = io.BytesIO()
        scipy.io.mmwrite(content, values if random.random() < 0.5 else sp.coo_array(values * (values > 0)))
        damage = damaged(random, content.getvalue())  # before it is packed: else all damage is found by the checksum
        path.write_bytes(gzip.compress(damage) if path.suffix == ".gz" else damage)
    else:
        (np.save if path.suffix == ".npy" else np.savez)(path, values)
        path.write_bytes(damaged(random, path.read_bytes()))
    found = opened(read_table, path, TableFileError)
    if found is None:
        return "refused"
    assert found.values.shape[1] == len(found.names)
    return "read"


ROWS = np.random.default_rng(0).standard_normal((2, 30, 5)) * [[[3.0]], [[1.0]]]
THINGS: dict[str, Callable[[], object]] = {
    "PPCA": lambda: PPCA(2).fit(ROWS[0]),
    "CPCA": lambda: CPCA(2, gamma=0.4).fit(ROWS[0], background=ROWS[1]),
    "PCPCA": lambda: PCPCA(2, gamma=0.2, scale="group").fit(ROWS[0], background=ROWS[1]),
    "CLVM": lambda: CLVM(1, 1).fit(ROWS[0], background=ROWS[1]),
    "path": lambda: contrast_path(PCPCA(1), ROWS[0], background=ROWS[1], gammas=[0.0, 0.2]),
    "moments": lambda: Moments.from_rows(ROWS[0]),
}
SAVED: dict[str, tuple[object, bytes]] = {}  # name to what was saved, and the file


def saved(name: str) -> tuple[object, bytes]:
    if name not in SAVED:
        thing = THINGS[name]()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "saved.npz")
            thing.save(path)
            SAVED[name] = thing, path.read_bytes()
    return SAVED[name]


def a_damaged_model(random: Random, folder: Path) -> str:
    """Bytes of a saved file changed: it is refused, or what is loaded is what was saved."""
    thing, content = saved(str(random.choice(list(THINGS))))
    path = folder / "model.npz"
    path.write_bytes(damaged(random, content))
    found = opened(contrapca.load, path, ModelFileError)
    if found is None:
        return "refused"
    assert written(found) == written(thing), "another model was loaded"
    return "the same"


def written(thing: object) -> bytes:
    """All that a saved file holds, but for the time in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "again.npz")
        thing.save(path)
        with zipfile.ZipFile(path) as archive:
            return b"".join(name.encode() + archive.read(name) for name in archive.namelist())


def a_rewritten_model(random: Random, folder: Path) -> str:
    """Members damaged and sealed again with right checksums: refused, or an object that can be saved again."""
    _, content = saved(str(random.choice(list(THINGS))))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = str(random.choice(list(members)))
    members[name] = damaged(random, members[name])
    path = folder / "model.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for key, value in members.items():
            archive.writestr(key, value)
    found = opened(contrapca.load, path, ModelFileError)
    if found is None:
        return "refused"
    repr(found)
    return "loaded"


ATTEMPTS = [a_plain_table, a_hostile_table, a_damaged_table, a_damaged_model, a_rewritten_model]


def attempt(number: int) -> tuple[str, str]:
    """One attempt, everything about it made from its number: its kind, and what came of it."""
    kind = ATTEMPTS[number % len(ATTEMPTS)]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind.__name__, kind(np.random.default_rng(number), Path(folder))


def work(first: int, seconds: float, number: Any, failed: Any, ended: Any) -> None:
    """Attempts from a number on until the time is up, at least one. What is shared survives this process."""
    stop = time.monotonic() + seconds
    number.value = first
    while number.value == first or time.monotonic() < stop:
        try:
            kind, end = attempt(number.value)
            ended[f"{kind}: {end}"] = ended.get(f"{kind}: {end}", 0) + 1
        except Exception:
            failed.append(number.value)
            print(traceback.format_exc(), flush=True)
        number.value += 1


def run(first: int, seconds: float, worker: Callable[..., None] = work) -> tuple[dict[str, int], list[int]]:
    """How attempts ended, and the numbers of those that failed, killed their process or took longer than PATIENCE."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        number, failed, ended = manager.Value("i", first), manager.list(), manager.dict()
        stop = time.monotonic() + seconds
        while len(failed) < 10:
            child = context.Process(target=worker, args=(first, stop - time.monotonic(), number, failed, ended))
            child.start()
            while child.is_alive():
                before = number.value
                child.join(PATIENCE)
                if child.is_alive() and number.value == before:
                    child.terminate()
                    child.join()
            if child.exitcode == 0:
                break
            print(f"attempt {number.value}: the process ended with {child.exitcode}", flush=True)
            failed.append(number.value)
            first = number.value + 1
            if time.monotonic() > stop:
                break
        return dict(ended), list(failed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, help="number of the first attempt; a new one each time by default")
    options = parser.parse_args()
    first = int(np.random.default_rng().integers(10**9)) if options.first is None else options.first
    print(f"fuzzing from attempt {first} on", flush=True)
    ended, failed = run(first, options.seconds)
    for end, count in sorted(ended.items()):
        print(f"{count:6d} {end}")
    print(f"{sum(ended.values())} passed, {len(failed)} failed")
    raise SystemExit(f"Make them again with --seconds 0 --first: {failed}" if failed else 0)
