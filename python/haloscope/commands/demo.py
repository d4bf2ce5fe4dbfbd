"""`haloscope demo`: run and compare the exchange strategies on this machine, in about a minute."""

from __future__ import annotations

import time
from pathlib import Path

import click

from haloscope import outputs, terminal
from haloscope.options.command import subcommand
from haloscope.options.hosts import starts_ranks

FIGURE = "demo"  # name of its files


@subcommand(short_help="Compare the strategies on this machine, about a minute.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    help="Folder for records and figure.",
)
@click.option(
    "--from",
    "recorded",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Show the records of an earlier demo instead of measuring.",
)
@click.option("--launches", type=click.IntRange(1, 1000), help="Starts of the ranks. [8]")
@click.option("--cells", default="", metavar="XxYxZ,XxY,XxY", hidden=True)
@starts_ranks
def command(output, recorded, launches, cells):
    """Measure about two dozen choices on 2 ranks: patterns, transports, schedules and halo depths, on a small 3D grid,
    a small 2D grid and a large 2D grid. Ends with what to use here, as far as the measurements can tell.

    Every choice is in every launch, in random order, and its result is compared byte for byte with the simplest
    correct exchange. Leaves the records and a figure (SVG and PNG) in out/demo.
    """
    from haloscope import records
    from haloscope.measure import campaign, launch, space
    from haloscope.studies import demo

    if recorded:
        _report(records.read_aloud(recorded).records, recorded, output)
        return 0
    outputs.refuse_foreign_figure(output / FIGURE)
    begin = time.monotonic()
    demo.refuse_few_cores(launch.cores())
    planned = demo.plan(launch.cores(), demo.sizes_of(cells))
    space.refuse_if_none_can_run(planned)
    file = output / f"records-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
    run = campaign.Campaign(planned, file, launches=launches or demo.LAUNCHES, seed=int(begin), what="demo")
    found = run.run()
    _report(found, file, output)
    terminal.echo(f"took {time.monotonic() - begin:.0f} s")
    return campaign.exit_code(found)


def _report(found: list[dict], file: Path, folder: Path) -> None:
    from haloscope.report import demo as report
    from haloscope.report import tables

    groups = []
    for group in report.groups_of(found, file):
        terminal.echo(f"\n{report.section(*group)}")
        groups.append(group)
    for line in tables.refusals(found):
        terminal.echo(f"\n{line}")
    files = report.draw(groups, found, folder / FIGURE)
    terminal.echo(f"\n{report.ending(groups, file, files)}")
