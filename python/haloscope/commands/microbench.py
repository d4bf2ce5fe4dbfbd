"""`haloscope microbench`: messages of every transport, collective operations, memory; or results of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from haloscope import errors, outputs, terminal
from haloscope.options.command import subcommand
from haloscope.options.hosts import starts_ranks
from haloscope.options.microbench import FILES, PATTERNS, wanted_of


@subcommand(short_help="Time messages of all transports, collectives, memory.")
@PATTERNS
@FILES
@starts_ranks
def command(output: Path | None, recorded: Path | None, imported: tuple[Path, ...], **options: Any) -> int:
    """Measure single messages through the transports that exchanges use, collective operations, and memory.

    \b
    pingpong    half a round trip of one message: its latency
    pingping    one message each way concurrently
    batch       back-to-back messages and one reply: bandwidth, message rate
    batches     the same in both directions concurrently
    put, get    one-sided operations with a flush alone: one, and a batch
    exchange    every rank with both neighbours of a ring concurrently
    multi-pair  pingpong of 1, 2, 4, ... concurrent pairs
    allreduce, allgather  the operation alone
    stream      copy, scale, add and triad over large arrays, by threads
    cache       reading, writing and updating working sets of growing size

    Every transport moves the same bytes, and everything that arrives or is computed is checked. Where one message alone
    is measured too, a table compares concurrent messages with it.
    """
    from haloscope import records
    from haloscope.measure import campaign, importers, microbench
    from haloscope.records.curves import group_curves
    from haloscope.report import microbench_report as report

    if recorded and imported:
        raise errors.UsageError("--from and --import both select the records to show; use one of them")
    file = recorded or output or records.scratch("microbench")
    stem = options["stem"] or outputs.stem_of(file)
    outputs.refuse_foreign_figure(stem)
    if recorded or imported:
        found = records.read_aloud(recorded).records if recorded else importers.import_files(imported, file)
    else:
        space, launches = microbench.plan(wanted_of(options)), options["launches"] or (2 if options["quick"] else 3)
        found = campaign.Campaign(space, file, launches=launches, resume=options["resume"], label="microbench").run()
    measured = group_curves(found)
    terminal.echo(f"\n{report.markdown(measured, found, file)}")
    if drawn := report.draw(measured, stem):
        terminal.echo(f"figure:  {drawn[0]}, {drawn[1]}")
    return errors.OK if recorded or imported else campaign.exit_code(found)
