"""`haloscope report`: one self-contained HTML page about some records."""

from __future__ import annotations

import time
from pathlib import Path

import click

from haloscope import terminal
from haloscope.options import machine
from haloscope.options.kinds import EXISTING_FILE, option
from haloscope.options.output import PageName

WATCHED_S = 5  # seconds between two looks at the records


@click.command(short_help="One page of figures about some records, to look at and to send.")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="RECORDS...")
@machine.profile(required=False)
@option("-o", "--output", "page", type=PageName(), default="page.html", help="The page. [page.html]")
@option("--trace", type=EXISTING_FILE, metavar="TRACE", help="Also show a trace that haloscope run --trace wrote.")
@option("--watch", is_flag=True, help="Write the page again whenever the records grow, until Ctrl-C.")
def command(files: tuple[str, ...], profile: str | None, page: Path, trace: Path | None, watch: bool) -> None:
    """Write a page about the records in some files: what to use, ranked choices, phases, curves, machine, warnings.

    \b
    haloscope run laplace2d --cells 2048 --strategy '*/p2p,*/shared' --output records.jsonl
    haloscope report records.jsonl -o page.html

    The page is one HTML file of at most 6 MB that needs no network. Each figure has its numbers as a table and as CSV.
    """
    terminal.echo(write(files, profile, page, trace, WATCHED_S * watch))
    seen = _sizes(files)
    while watch:
        time.sleep(WATCHED_S)
        if (now := _sizes(files)) != seen:
            seen = now
            write(files, profile, page, trace, WATCHED_S)


def write(files: tuple[str, ...], profile: str | None, page: Path, trace: Path | None, refresh_s: int) -> str:
    """Write the page about some record files, and return the line that names it. Raises UsageError without records."""
    from haloscope import records
    from haloscope.model.profile import load
    from haloscope.records import traces
    from haloscope.report.page import content
    from haloscope.report.page import trace as timeline

    known = load(profile) if profile else None
    last = [timeline.section(traces.read(trace))] if trace else []
    return content.write_about(page, records.read_together(files), known, last=last, refresh_s=refresh_s)


def _sizes(files: tuple[str, ...]) -> list[int]:
    return [Path(file).stat().st_size for file in files]
