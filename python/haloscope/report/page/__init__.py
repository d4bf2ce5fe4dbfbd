"""The page: one HTML file with the figures, tables and sentences of some records, which opens without a network."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haloscope import outputs
from haloscope.terminal import echo, shown

if TYPE_CHECKING:
    from haloscope.model.profile import Profile

MOST_TEXT = 2000  # characters of a sentence
MOST_LABEL = 80  # characters of a label in a figure
MOST_BYTES = 6_000_000  # of a page
MOST_LINES = (5000, 1000, 200, 50, 0)  # of a table: the largest number with which the page is small enough


@dataclass
class Table:
    """The numbers of a figure, or of a section: titles of columns, and lines of texts and numbers."""

    columns: Sequence[str]
    lines: list[list[Any]]

    def first(self, most: int) -> list[list[str]]:
        """Return the first lines as texts."""
        return [[_text(value) for value in line] for line in self.lines[:most]]


@dataclass
class Chart:
    """A figure: the traces and the layout of Plotly, a caption with its basis, and the table of its numbers.

    A filter selects points by the names in `customdata` of their trace.
    """

    title: str
    caption: str
    traces: list[dict]
    layout: dict
    table: Table
    height: int = 420


@dataclass
class Section:
    """A part of the page: its heading, sentences, and charts or tables."""

    title: str
    words: list[str] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The heading as a name for links."""
        return "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else ""
    return "" if value is None else shown(value, 300)


def label(text: object) -> str:
    """Return a text as a label of a figure: one line, without characters that Plotly takes for tags."""
    short = shown(text, MOST_LABEL)
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _finite(value: Any) -> Any:
    """Return JSON with null for each number that is not finite, which leaves a gap in a figure."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def _embedded(value: Any) -> str:
    """Return JSON that a script element may hold, whatever its texts are."""
    text = json.dumps(_finite(value), ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _drawable(value: Any) -> Any:
    """Return a text that goes into the page without characters that steer, and not longer than MOST_TEXT."""
    return shown(value, MOST_TEXT) if type(value) is str else value


def render(title: str, sections: Sequence[Section], refresh_s: int = 0) -> str:
    """Return the page. refresh_s: seconds after which an open page loads itself again; 0: never."""
    import jinja2
    from plotly.offline import get_plotlyjs

    made = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined, finalize=_drawable
    )
    source = (resources.files(__package__) / "page.html.jinja").read_text(encoding="utf-8")
    template, charts = made.from_string(source), [chart for section in sections for chart in section.charts]
    parts = {
        "written": outputs.PAGED,
        "title": shown(title, 200),
        "sections": sections,
        "data": _embedded([{"traces": c.traces, "layout": c.layout, "title": c.title} for c in charts]),
        "library": get_plotlyjs(),
        "refresh_s": refresh_s,
    }
    for most in MOST_LINES:
        text = template.render(parts, most=most)
        if len(text) <= MOST_BYTES:
            break
    return text


def write(path: Path, title: str, sections: Sequence[Section], refresh_s: int = 0) -> None:
    """Write the page. Errors: as `outputs.writing`."""
    outputs.write(path, outputs.PAGE, render(title, sections, refresh_s))


def write_requested(
    path: Path | None,
    found: Sequence[dict],
    profile: Profile | None = None,
    first: Sequence[Section] = (),
    err: bool = False,
) -> None:
    """Write the page that a command was asked for with --report, if any, and print the line that names it.

    first: sections that come before. err: print to the error output. Errors: as `outputs.writing`.
    """
    if path is not None:
        from haloscope.report.page import content

        echo(content.write_about(path, found, profile, first), err=err)
