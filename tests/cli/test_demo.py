"""`contrapca demo`: what a new user runs first."""

import re
import subprocess
import sys

import numpy as np
import pytest

from csvfiles import columns_of, read_csv


@pytest.fixture
def _libraries(need):
    for library in ("jinja2", "matplotlib", "polars"):
        need(library)


@pytest.mark.usefixtures("_libraries")
def test_demo(tmp_path, run):
    folder = tmp_path / "new" / "folder"
    outcome = run("demo", "--out", folder)
    assert outcome.code == 0
    before, after = (re.search(rf"{name}.*?(-?[\d.]+)\s*$", outcome.out, re.M)[1] for name in ("before", "after"))
    assert float(before) < 0.1 < 0.4 < float(after)
    assert re.search(r"^The cases vary more than chance allows in 2 directions \(p .*Component 1 \(", outcome.out, re.M)
    assert outcome.out.splitlines()[-1] == f"Now open the report in a browser: {folder / 'report.html'}"
    files = ["before_after.png", "cases.csv", "controls.csv", "latents.csv", "report.html"]
    assert sorted(path.name for path in folder.iterdir()) == files
    assert (folder / "before_after.png").read_bytes().startswith(b"\x89PNG")
    rows = read_csv(folder / "latents.csv")
    assert [row[1] for row in rows[1:]] == ["case"] * 400 + ["control"] * 400
    axes = ["component_1", "component_2"]
    latents = columns_of(folder / "latents.csv", axes)
    np.testing.assert_allclose(latents[400:].mean(axis=0), 0, atol=0.01)  # controls about their own mean
    # What it wrote serves the other commands, with the same result.
    tables = [folder / "cases.csv", "--background", folder / "controls.csv", "--labels", "subgroup"]
    assert run("fit", *tables, "-o", tmp_path / "fit").code == 0
    np.testing.assert_allclose(columns_of(tmp_path / "fit" / "latents.csv", axes), latents, atol=1e-9)
    assert "exists" in run("demo", "--out", folder).err
    first = (folder / "latents.csv").read_bytes()
    assert run("demo", "--out", folder, "--force", "--seed", "1").code == 0
    assert (folder / "latents.csv").read_bytes() != first


def test_without_matplotlib_the_extra_that_reports_need_is_named(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        f"from contrapca import cli; sys.exit(cli.main(['demo', '--out', {str(tmp_path / 'demo')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert 'pip install "contrapca[report]"' in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "demo").exists()
