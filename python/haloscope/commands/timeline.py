"""`haloscope timeline`: the ranks of a run over time, in the terminal, or as an OTF2 archive."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from haloscope import errors, terminal
from haloscope.options.kinds import EXISTING_FILE, option

LABELS = 24  # columns of the terminal for names


@click.command(short_help="The ranks of a run over time; traces as OTF2.")
@click.argument("file", type=EXISTING_FILE, metavar="RECORDS|TRACE")
@option("--otf2", "archive", type=click.Path(path_type=Path), metavar="DIR", help="Write a trace as an OTF2 archive.")
@option("--width", type=click.IntRange(10, 1000), metavar="N", help="Columns of a bar. [as wide as the terminal]")
def command(file: Path, archive: Path | None, width: int | None) -> None:
    """Show the ranks of a run as bars: the phases of records with timelines, the operations of a trace over time.

    \b
    haloscope run laplace2d --cells 512 --timeline --trace trace.json --output records.jsonl
    haloscope timeline records.jsonl
    haloscope timeline trace.json --otf2 archive

    Traces are in the format of Chrome and Perfetto (ui.perfetto.dev). An OTF2 archive is for Vampir and Scalasca.
    """
    from haloscope import records
    from haloscope.records import traces
    from haloscope.report import bars, otf2_archive

    columns = width or max(10, shutil.get_terminal_size().columns - LABELS)
    if archive or file.suffix == ".json":
        spans = traces.read(file)
        terminal.echo(bars.of_trace(spans, columns))
        if archive:
            terminal.echo(f"\narchive: {otf2_archive.write(spans, archive)}")
        return
    text = bars.of_records(records.read_aloud(file).records, columns)
    if not text:
        raise errors.UsageError(f"{file} has no timelines; measure with haloscope run --timeline")
    terminal.echo(text)
