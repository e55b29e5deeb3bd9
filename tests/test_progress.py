"""The progress bar: quiet at first, and wherever nobody watches."""

import io
import sys

import pytest

from contrapca._util import progress
from contrapca._util.progress import Progress


def shown(capsys, steps=3, visible=True):
    with Progress("work", steps, visible) as bar:
        for step in range(steps):
            bar.update(step + 1, "parts")
    return capsys.readouterr().err


def test_silent_in_a_log(capsys, monkeypatch):
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    assert shown(capsys) == ""


def test_silent_for_two_seconds(capsys, monkeypatch):
    monkeypatch.setattr(progress, "watched", lambda: True)
    assert shown(capsys) == ""


def test_line_of_text(capsys, watched):
    text = shown(capsys)
    assert "work: 1/3 parts" in text
    assert text.endswith("\r")  # the line is taken away
    assert "\n" not in text
    assert shown(capsys, visible=False) == ""


@pytest.mark.parametrize(("terminal", "notebook"), [(True, False), (False, True), (False, False)])
def test_who_watches(terminal, notebook, monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    if notebook:
        monkeypatch.setitem(sys.modules, "ipykernel", object())
    assert progress.watched() is (terminal or notebook)
