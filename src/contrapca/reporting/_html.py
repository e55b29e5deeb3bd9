"""The HTML page: template, style, script, plotting library and data in one text."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from .._util.optional import require

# The page cannot send requests, whatever its content. The plotting library compiles its WebGL code from text.
POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"


def check_libraries() -> None:
    """Raise if a library is missing, before anything is computed."""
    require("jinja2", extra="report")
    require("plotly", extra="report")


def render(summary: dict[str, Any], points: dict[str, Any]) -> str:
    """The report as one HTML text.

    Text from users is escaped by the template, or is in JSON that the script shows as text.
    """
    jinja2 = require("jinja2", extra="report")
    plotly = require("plotly.offline", extra="report").get_plotlyjs()
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters |= {"number": _number, "percent": _percent, "count": _count}
    return environment.from_string(_asset("report.html")).render(
        summary=summary,
        policy=POLICY,
        style=_asset("report.css"),
        script=_asset("report.js"),
        plotly=plotly,
        summary_json=_inert(summary),
        points_json=_inert(points),
    )


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _inert(values: dict[str, Any]) -> str:
    """JSON that no HTML parser can mistake for markup."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _count(value: int) -> str:
    return f"{value:,}"
