"""A report in a real browser: the program to start, and a page that notes what it complains about and asks for."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import numpy as np

from conftest import skip

FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
NASTY = """<img src=x onerror=alert(1)> "quotes" & 'more' </script><b>bold</b>"""
PROGRAMS = {
    "chromium": ("CONTRAPCA_CHROMIUM", "chromium", "chromium-browser", "google-chrome"),
    "firefox": ("CONTRAPCA_FIREFOX", "firefox-esr", "firefox"),
}
MOVE_SLIDER = """([g, id]) => {
  const slider = document.getElementById(id);
  slider.value = g;
  slider.dispatchEvent(new Event('input'));
}"""
COORDINATES = "(k) => ['x', 'y'].map((name) => Array.from(contrapcaReport.pictures[k][name]))"
CATCH_SAVED = """() => {
  const create = URL.createObjectURL;
  window.contrapcaSaved = {
    async read() {
      const bytes = new Uint8Array(await this.blob.arrayBuffer());
      return [this.name, btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))];
    },
  };
  URL.createObjectURL = (blob) => { contrapcaSaved.blob = blob; return create.call(URL, blob); };
  HTMLAnchorElement.prototype.click = function () { contrapcaSaved.name = this.download; };
}"""
# The style of paper on the screen, where the browser cannot emulate it.
AS_ON_PAPER = """() => {
  for (const sheet of document.styleSheets) for (const rule of sheet.cssRules)
    if (rule.media) rule.media.mediaText = rule.media.mediaText.includes('print') ? 'all'
      : rule.media.mediaText.includes('screen') ? 'not all' : rule.media.mediaText;
}"""
PLACE = """([i, k]) => {
  const { root, frame, x, y } = contrapcaReport.pictures[k], box = root.getBoundingClientRect();
  return [box.left + frame.left + frame.across(x[i]), box.top + frame.top + frame.down(y[i])];
}"""


def program(engine):
    variable, *names = PROGRAMS[engine]
    found = next(
        (path for name in (os.environ.get(variable, ""), *names) if name and (path := shutil.which(name))), None
    )
    if found is None:
        skip(f"no {engine}: install it (Debian: apt-get install {names[0]}) or name it in {variable}")
    return found


class Page:
    """A page with what it complained about and asked for."""

    def __init__(self, browser, file, **options):
        self.page = browser.new_page(**options)
        self.complaints, self.requests = [], []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-ready=true]", timeout=60_000)

    def _hear(self, message):
        if message.type == "error":
            self.complaints.append(message.text)

    def __getattr__(self, name):  # click, evaluate and so on
        return getattr(self.page, name)

    def coordinates(self, picture=0):
        return np.array(self.page.evaluate(COORDINATES, picture), dtype=float).T

    def set_slider(self, g, slider="gamma"):
        self.page.evaluate(MOVE_SLIDER, [g, slider])

    def ranges(self, picture=0):
        """The ranges of both axes, (2, 2)."""
        return np.array(
            self.page.evaluate(
                "(k) => [contrapcaReport.pictures[k].frame.x, contrapcaReport.pictures[k].frame.y]", picture
            )
        )

    def place(self, i, picture=0):
        """The place of a point on the screen, which is scrolled there."""
        self.page.evaluate("document.getElementById('scatter').scrollIntoView({ block: 'center' })")
        return self.page.evaluate(PLACE, [i, picture])

    def on_paper(self):
        """Show the page as it is printed."""
        self.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        if self.page.context.browser.browser_type.name == "chromium":
            self.page.emulate_media(media="print")
        else:
            self.page.evaluate(AS_ON_PAPER)

    def until(self, condition, seconds=20):
        """Wait until a condition holds; the page's policy lets no library evaluate it there."""
        for _ in range(20 * seconds):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"not within {seconds} s: {condition}")

    def selected(self):
        return np.flatnonzero(self.page.evaluate("Array.from(contrapcaReport.state.selected)"))

    def saved(self, button):
        """What a button saves: the name of the file, and its bytes."""
        if self.page.context.browser.browser_type.name == "firefox":  # whose protocol tells nothing of downloads
            self.page.evaluate(CATCH_SAVED)
            self.page.click(button)
            self.until("contrapcaSaved.name !== undefined")
            name, text = self.page.evaluate("contrapcaSaved.read()")
            return name, base64.b64decode(text)
        with self.page.expect_download(timeout=20_000) as waiting:
            self.page.click(button)
        return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()
