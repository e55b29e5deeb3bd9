"""The HTML page: template, style, script and data in one text."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from importlib import resources
from typing import Any

from .._util.optional import require
from .._util.text import percent, times
from ._answers import MOST, SEPARATED

# Files of the script, in the order in which they build on each other. They share one scope.
SCRIPTS = ("data", "ink", "axes", "picture", "pointer", "groups", "features", "rows", "strength", "takeaway", "main")

SHOWN_CARDS = 3  # components on the first screen
SHOWN_CELLS = 3  # conditions that a card names
MOST_TIMES = 100.0  # ends of bars

# What the script needs of the summary.
SHOWN = ("title", "model", "path", "components", "words", "date")


def check_libraries(*, figures: bool = False) -> None:
    """Raise if a library is missing, before anything is computed; figures need one more of the same extra."""
    require("jinja2", extra="report")
    if figures:
        require("matplotlib", extra="report")


def render(summary: dict[str, Any], points: dict[str, Any]) -> str:
    """The report as one HTML text.

    Text from users is escaped by the template, or is in JSON that the script shows as text.
    """
    jinja2 = require("jinja2", extra="report")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters |= {
        "number": lambda value: "" if value is None else f"{value:.4g}",
        "times": times,
        "percent": percent,
        "count": "{:,}".format,
        "along": _along,
        "farthest": lambda cells: max(abs(_log(end)) for cell in cells for end in (*cell["interval"], cell["ratio"])),
    }
    parts = "\n".join(asset(f"{name}.js") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'
    ours = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # JSON that no HTML parser can mistake for markup.
    inert = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&"})
    values = ({name: summary[name] for name in SHOWN}, points)
    texts = [json.dumps(own, allow_nan=False, separators=(",", ":")).translate(inert) for own in values]
    return environment.from_string(asset("report.html")).render(
        summary=summary,
        SHOWN_CARDS=SHOWN_CARDS,
        SHOWN_CELLS=SHOWN_CELLS,
        MOST=MOST,
        SEPARATED=SEPARATED,
        # Nothing is fetched or sent, no form can be submitted, and no script runs but ours.
        policy=f"default-src 'none'; script-src 'sha256-{ours}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "form-action 'none'; base-uri 'none'",
        style=asset("report.css"),
        script=script,
        summary_json=texts[0],
        points_json=texts[1],
    )


def _log(ratio: float | None) -> float:
    """The logarithm of a ratio, at most that of `MOST_TIMES`; None is infinite."""
    most = math.log(MOST_TIMES)
    return most if ratio is None else min(most, max(-most, math.log(max(ratio, 1e-300))))


def _along(ratio: float | None, reach: float) -> float:
    """Where a ratio is on a bar from 0 to 100, whose middle is 1."""
    return 50 + 50 * _log(ratio) / max(reach, 1e-300)


def asset(name: str) -> str:
    return resources.files(__package__).joinpath("page", name).read_text(encoding="utf-8")
