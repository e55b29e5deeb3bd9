"""Make the tutorial's pictures again: ``python docs/screenshots.py`` (needs Chromium and playwright)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).parent / "images" / "tutorial"
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
REPORT = (
    "contrapca report cases.csv --background controls.csv --labels subgroup --uncertainty bootstrap -o my_report.html"
)


def main() -> None:
    """Write the report as the tutorial does, and photograph it."""
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
        browser.close()


if __name__ == "__main__":
    main()
