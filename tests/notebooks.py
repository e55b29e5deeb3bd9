"""Run notebooks from scratch, and compare what they print with what they show.

``python tests/notebooks.py NOTEBOOK ...``; with ``--write``, store what they print instead. Words must be the same,
numbers may differ by 2 %; pictures and what is printed on standard error are not compared. A notebook that needs the
real data is skipped without them, unless everything is required.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from tutorial import same_text

NEEDS_DATA = "from experiments."  # real data, not to be downloaded by a check
ADDRESS = re.compile(r"0x[0-9a-f]+")


def outputs(cell: Any) -> str:
    """The text that a cell shows, as printed or as the value of its last line."""
    texts = []
    for output in cell.get("outputs", []):
        if output["output_type"] == "stream" and output["name"] == "stdout":
            texts.append(output["text"])
        elif output["output_type"] in ("execute_result", "display_data"):
            texts.append(output["data"].get("text/plain", ""))
    return ADDRESS.sub("", "\n".join("".join(text) for text in texts))


def run(path: Path, *, write: bool) -> int:
    """Run one notebook; returns how many outputs were compared."""
    import nbformat
    from nbclient import NotebookClient

    shown = nbformat.read(path, as_version=4)
    found = nbformat.read(path, as_version=4)
    NotebookClient(found, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    if write:
        for cell in found.cells:
            cell.metadata.pop("execution", None)  # when each cell ran
            kept = [output for output in cell.get("outputs", []) if output.get("name") != "stderr"]
            if cell.cell_type == "code":
                cell.outputs = kept
        nbformat.write(found, path)
        return 0
    compared = 0
    for left, right in zip(shown.cells, found.cells, strict=True):
        texts = outputs(left), outputs(right)
        if any(texts):
            compared += 1
            assert same_text(*texts), f"{path}:\n{left.source}\nshows:\n{texts[0]}\nprints:\n{texts[1]}"
    return compared


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Run notebooks, and compare what they print with what they show.")
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="store what they print")
    options = parser.parse_args()
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    for path in options.notebooks:
        has_data = Path(os.environ.get("CONTRAPCA_DATA") or "no folder").is_dir()
        if NEEDS_DATA in path.read_text(encoding="utf-8") and not has_data:
            print(f"{path}: skipped, CONTRAPCA_DATA does not name a folder with the real data")
            if os.environ.get("CONTRAPCA_REQUIRE_ALL") == "1":
                sys.exit(1)
            continue
        start = time.perf_counter()
        compared = run(path, write=options.write)
        done = "stored" if options.write else f"{compared} outputs as shown"
        print(f"{path}: {done}, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
