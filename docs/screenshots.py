"""Make the pictures of pages again: ``python docs/screenshots.py`` (needs Chromium and playwright)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from contrapca import ContraPCA, Study, report

IMAGES = Path(__file__).parent / "images"
PICTURES = IMAGES / "tutorial"
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
REPORT = (
    "contrapca report cases.csv --background controls.csv --labels subgroup --uncertainty bootstrap -o my_report.html"
)


def conditions() -> Study:
    """Three drugs: two move the same gene, by different amounts in each sample."""
    rng, names = np.random.default_rng(0), [f"gene{j}" for j in range(1, 21)]
    tables = {}
    for name, n, spread in (("drug A", 60, 2.4), ("drug B", 90, 0.0), ("drug C", 40, 2.4), ("DMSO", 80, 0.0)):
        tables[name] = rng.normal(size=(n, 20)) + spread * rng.normal(size=(n, 1)) * np.eye(20)[0]
    return Study(groups=tables, background=tables.pop("DMSO"), features=names)


def main() -> None:
    """Write the report as the tutorial does, and one of several conditions, and photograph them."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        for command in ("contrapca demo --quiet -o .", REPORT):
            subprocess.run(command.split(), cwd=folder, check=True)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 850})
        page.goto((Path(folder) / "my_report.html").as_uri())
        page.wait_for_selector("html[data-ready=true]")
        page.screenshot(path=PICTURES / "report.png")
        page.locator("#uncertainty").screenshot(path=PICTURES / "uncertainty.png")
        report(conditions(), ContraPCA(2, random_state=0), Path(folder) / "conditions.html", progress=False)
        page.goto((Path(folder) / "conditions.html").as_uri())
        page.wait_for_selector("html[data-ready=true]")
        page.screenshot(path=IMAGES / "conditions.png")
        browser.close()


if __name__ == "__main__":
    main()
