"""`haloscope demo`: run and compare the exchange strategies on this machine, in about a minute."""

from __future__ import annotations

import time
from pathlib import Path

from haloscope import errors, outputs, terminal
from haloscope.options.command import subcommand
from haloscope.options.hosts import starts_ranks
from haloscope.options.kinds import ANY_PATH, option
from haloscope.options.measuring import launches
from haloscope.options.output import PAGE, recorded


@subcommand(short_help="Compare the strategies on this machine, about a minute.")
@option(
    "--output",
    type=ANY_PATH,
    default=Path("out/demo"),
    show_default=True,
    detailed=True,
    help="Folder for records and figure.",
)
@recorded("Show the records of an earlier demo instead of measuring.")
@PAGE
@launches("8", detailed=True)
@option("--cells", default="", metavar="XxYxZ,XxY,XxY", hidden=True)
@starts_ranks
def command(output: Path, recorded: Path | None, page: Path | None, launches: int | None, cells: str) -> int:
    """Measure about two dozen choices on 2 ranks: patterns, transports, schedules and halo depths, on a small 3D grid,
    a small 2D grid and a large 2D grid. Ends with recommendations, as far as the measurements support any.

    Every choice is in every launch, in random order, and its result is compared byte for byte with the simplest
    correct exchange. Leaves the records, a figure (SVG and PNG) and a page about them (page.html) in out/demo.
    """
    from haloscope import records
    from haloscope.measure import campaign, demo, launch, space
    from haloscope.report import demo as report
    from haloscope.report.page import write_requested

    begin, page = time.monotonic(), page or output / "page.html"
    if recorded:
        file, found = recorded, records.read_aloud(recorded).records
    else:
        outputs.refuse_foreign_figure(output / report.FIGURE)
        outputs.refuse_foreign(page, outputs.PAGE)
        demo.refuse_few_cores(launch.cores())
        planned = demo.plan(launch.cores(), demo.sizes_of(cells))
        space.refuse_if_none_can_run(planned)
        file = output / f"records-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
        number = launches or demo.LAUNCHES
        found = campaign.Campaign(planned, file, launches=number, seed=int(begin), label="demo", resumable=False).run()
    for text in report.texts(found, file, output):
        terminal.echo(f"\n{text}")
    if not recorded:
        terminal.echo(f"took {time.monotonic() - begin:.0f} s")
    write_requested(page, found)
    return errors.OK if recorded else campaign.exit_code(found)
