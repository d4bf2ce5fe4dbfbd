"""`haloscope microbench`: messages of every transport, collective operations, memory; or what other programs
measured.
"""

from __future__ import annotations

from pathlib import Path

import click

from haloscope import errors, outputs, terminal
from haloscope.options.command import subcommand
from haloscope.options.hosts import starts_ranks
from haloscope.options.kinds import FileName, FiniteRange


@subcommand(short_help="Messages of every transport, collectives, memory; imports IMB, SKaMPI, STREAM.")
@click.option(
    "--pattern",
    "names",
    metavar="LIST",
    help="pingpong, pingping, batch, batches, exchange, multi-pair, allreduce, allgather, stream, cache; globs. "
    "[the first four]",
)
@click.option("--transport", default="*", metavar="LIST", help="Transports with options; globs as 'rma-*'. [all]")
@click.option("--ranks", "-n", default="2", metavar="LIST", help="Numbers of ranks, even where they work in pairs. [2]")
@click.option(
    "--gap",
    type=click.IntRange(1, 10**9),
    metavar="N",
    help="Rank i is paired with rank i + N; ranks per node here pair whole nodes. [half of the ranks]",
)
@click.option("--nodes", default="0", metavar="LIST", help="Emulated nodes, ranks in blocks; 0 = as MPI says. [0]")
@click.option("--threads", metavar="LIST", help="Threads of stream and cache. [stream: 1, 2, ... all cores; cache: 1]")
@click.option(
    "--bytes",
    "sizes",
    metavar="LIST",
    help="Sizes of messages, of what a rank gives to a collective, of arrays (stream), of working sets (cache). "
    "[1..4194304*2; arrays: 4 x the largest cache; working sets: 4096..536870912*2]",
)
@click.option("--quick", is_flag=True, help="Six sizes, short samples, 2 launches.")
@click.option("--seconds", type=FiniteRange(0, min_open=True), help="Length of one sample. [0.01; quick 0.002]")
@click.option("--repetitions", type=click.IntRange(1, 10**9), help="Samples per launch. [5; quick 3]")
@click.option("--launches", type=click.IntRange(1, 1000), help="Starts of the ranks. [3; quick 2]")
@click.option("--output", type=FileName(), help="Record file. [results/scratch/microbench-TIME.jsonl]")
@click.option("--resume", is_flag=True, help="Skip what the record file already holds.")
@click.option(
    "--figure",
    "stem",
    type=FileName(stem=True),
    metavar="STEM",
    help="Figure files without ending. [beside the records]",
)
@click.option(
    "--from",
    "recorded",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Show records of an earlier run.",
)
@click.option(
    "--import",
    "imported",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Turn the output of IMB, SKaMPI or STREAM into records and show them; may be repeated.",
)
@starts_ranks
def command(output, resume, stem, recorded, imported, launches, **wanted):
    """Measure single messages through the transports that exchanges use, collective operations, and memory.

    \b
    pingpong    half a round trip of one message: its latency
    pingping    one message each way at once
    batch       back-to-back messages and one reply: bandwidth, message rate
    batches     the same in both directions at once
    exchange    every rank with both neighbours of a ring at once
    multi-pair  pingpong of 1, 2, 4, ... pairs at once
    allreduce, allgather  without anything around them
    stream      copy, scale, add and triad over large arrays, by threads
    cache       reading, writing and updating working sets of growing size

    Every transport moves the same bytes, and everything that arrives or is computed is checked. Where one message alone
    is measured too, a table says how much longer several at once take.
    """
    from haloscope import records
    from haloscope.measure import campaign, foreign, microbench

    if recorded and imported:
        raise errors.UsageProblem("--from and --import both say what to show; give one of them")
    file = recorded or output or records.scratch("microbench")
    stem = stem or outputs.stem_of(file)
    outputs.refuse_foreign_figure(stem)
    if recorded or imported:
        found = records.read_aloud(recorded).records if recorded else foreign.import_files(imported, file)
        _report(found, file, stem)
        return errors.OK
    space = microbench.plan(microbench.wanted_of(wanted), wanted["seconds"], wanted["repetitions"])
    launches = launches or (2 if wanted["quick"] else 3)
    found = campaign.Campaign(space, file, launches=launches, resume=resume, what="microbench").run()
    _report(found, file, stem)
    return campaign.exit_code(found)


def _report(found: list[dict], file: Path, stem: Path) -> None:
    from haloscope.records.curves import group_curves
    from haloscope.report import microbench_report as report

    measured = group_curves(found)
    terminal.echo(f"\n{report.markdown(measured, found, file)}")
    if charts := report.charts(measured):
        files = report.figure(charts, report.title(measured), stem)
        terminal.echo(f"figure:  {files[0]}, {files[1]}")
