"""The command line, as a user runs it."""

import csv
import re
import subprocess
import sys

import numpy as np
import pytest

from contrapca import __version__, cli


def test_demo(tmp_path, capsys, need):
    need("matplotlib")
    assert cli.main(["demo", "--out", str(tmp_path / "new" / "folder")]) == 0
    out = capsys.readouterr().out
    before, after = (re.search(rf"{name}.*?(-?[\d.]+)\s*$", out, re.M)[1] for name in ("before", "after"))
    assert float(before) < 0.1 < 0.4 < float(after)
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == ["before_after.png", "latents.csv"]
    assert (folder / "before_after.png").read_bytes().startswith(b"\x89PNG")
    with (folder / "latents.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["group"] for row in rows] == ["case"] * 400 + ["control"] * 400
    latents = np.array([[float(row["pcpca0"]), float(row["pcpca1"])] for row in rows])
    np.testing.assert_allclose(latents[400:].mean(axis=0), 0, atol=1e-12)  # controls about their own mean
    first = (folder / "latents.csv").read_bytes()
    assert cli.main(["demo", "--out", str(folder)]) == 0
    assert (folder / "latents.csv").read_bytes() == first
    assert cli.main(["demo", "--out", str(folder), "--seed", "1"]) == 0
    assert (folder / "latents.csv").read_bytes() != first


def test_errors_are_one_sentence(tmp_path, capsys, need):
    need("matplotlib")
    (tmp_path / "file").write_text("")
    assert cli.main(["demo", "--out", str(tmp_path / "file")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("contrapca: ")
    assert "Traceback" not in error
    assert len(error.splitlines()) == 1


def test_version_and_usage(capsys):
    with pytest.raises(SystemExit) as leaving:
        cli.main(["--version"])
    assert leaving.value.code == 0
    assert capsys.readouterr().out == f"contrapca {__version__}\n"
    with pytest.raises(SystemExit) as leaving:
        cli.main([])
    assert leaving.value.code == 2


def test_without_matplotlib_the_extra_is_named(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        f"from contrapca import cli; sys.exit(cli.main(['demo', '--out', {str(tmp_path)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'pip install "contrapca[plot]"' in done.stderr
    assert "Traceback" not in done.stderr
