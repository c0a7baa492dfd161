"""report.html: one file that opens offline, with the verdict, tables, plots and live panes.

Its content security policy lets nothing out of the page and runs our one script only, known by its
hash, so that no name in a scenario can become code.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING

from specsim.report.figures import Plot
from specsim.report.palette import STYLE
from specsim.report.what_if import WhatIf

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SCRIPTS = ("theory.js", "rounds.js", "chart.js", "panel.js", "wide.js")
_WIDTH_IN = 4.8


@dataclass(frozen=True, slots=True)
class HtmlTable:
    """A table in words."""

    caption: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class HtmlFigure:
    """A drawn plot."""

    name: str
    title: str
    reading: str
    """What it shows, in a line."""
    svg: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page under a heading."""

    anchor: str
    title: str
    tables: Sequence[HtmlTable] = ()
    figures: Sequence[HtmlFigure] = ()
    lines: Sequence[str] = ()
    """Notes below the tables."""
    remarks: Sequence[str] = ()
    """Sentences, one an item."""


@dataclass(frozen=True, slots=True)
class Page:
    """All that a report says; the template only lays it out."""

    title: str
    description: str
    verdict: str
    sections: Sequence[Section]
    what_if: WhatIf | None
    what_if_note: str
    """What the panel opens at."""
    provenance: Sequence[tuple[str, str]]
    notes: Sequence[tuple[str, Sequence[str]]] = ()
    """Headings with their sentences."""
    configurations: Sequence[tuple[str, str]] = ()
    """Titles with YAML texts, folded."""
    version: str = field(kw_only=True)


def render(page: Page) -> str:
    """Return the page as one HTML text that loads nothing.

    Parameters
    ----------
    page
        What it says.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    folder = files("specsim.report") / "templates"
    environment = Environment(
        loader=FileSystemLoader(str(folder)), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    script = "\n".join((folder / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    sections = [
        {
            "anchor": section.anchor,
            "title": section.title,
            "tables": section.tables,
            "lines": section.lines,
            "remarks": section.remarks,
            "is_filled": any((section.tables, section.figures, section.lines, section.remarks)),
            # Drawn by matplotlib from our own tables; text in it is escaped there.
            "figures": [
                {
                    "name": figure.name,
                    "title": figure.title,
                    "reading": figure.reading,
                    "svg": Markup(figure.svg),
                }
                for figure in section.figures
            ],
        }
        for section in page.sections
    ]
    return environment.get_template("report.html.j2").render(
        title=page.title,
        description=page.description,
        verdict=page.verdict,
        sections=sections,
        what_if=page.what_if,
        what_if_note=page.what_if_note,
        what_if_json=Markup(_json_in_html(page.what_if)),
        provenance=page.provenance,
        notes=page.notes,
        configurations=page.configurations,
        version=page.version,
        css=Markup((folder / "report.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )


def draw(plots: Iterable[Plot]) -> list[HtmlFigure]:
    """Draw plots as inline SVG, each with its reading below."""
    return [HtmlFigure(plot.name, plot.title, plot.reading, _svg(plot)) for plot in plots]


def _svg(plot: Plot) -> str:
    import matplotlib.style
    from matplotlib.figure import Figure

    with matplotlib.style.context({**STYLE, "svg.hashsalt": plot.name}):
        figure = Figure(figsize=(_WIDTH_IN, plot.height_in))
        axes: Axes = figure.subplots()
        plot.draw(axes)
        text = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(text, format="svg", metadata=nothing)
    return _inline(text.getvalue(), prefix=plot.name, title=plot.title)


def _inline(svg: str, *, prefix: str, title: str) -> str:
    """Return an SVG file as an element of a page: no prologue, ids of its own, a name that is spoken."""
    from markupsafe import escape

    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'(\bid="|url\(#|xlink:href="#)', rf"\g<1>{prefix}-", body)
    return body.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1).strip()


def _json_in_html(data: WhatIf | None) -> str:
    """Return JSON that cannot end the script element it stands in."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
