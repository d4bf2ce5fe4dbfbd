"""`haloscope microbench`: latency, bandwidth and message rate of every transport, message by message."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from haloscope import errors
from haloscope.options import FiniteRange, Stem


@click.command(short_help="Latency, bandwidth and message rate of the transports.")
@click.option("--transport", default="*", metavar="LIST", help="Transports with options; globs as 'rma-*'. [all]")
@click.option(
    "--ranks",
    "-n",
    default="2",
    metavar="LIST",
    help="Numbers of ranks, even: rank i is paired with rank i + half. [2]",
)
@click.option("--nodes", default="0", metavar="LIST", help="Emulated nodes, ranks in blocks; 0 = as MPI says. [0]")
@click.option("--bytes", "sizes", metavar="LIST", help="Message sizes. [1..4194304*2]")
@click.option("--quick", is_flag=True, help="Six sizes, short samples, 2 launches.")
@click.option("--seconds", type=FiniteRange(0, min_open=True), help="Length of one sample. [0.01; quick 0.002]")
@click.option("--repetitions", type=click.IntRange(1, 10**9), help="Samples per launch. [5; quick 3]")
@click.option("--launches", type=click.IntRange(1, 1000), help="Starts of the ranks. [3; quick 2]")
@click.option("--output", type=click.Path(path_type=Path), help="Record file. [results/scratch/microbench-TIME.jsonl]")
@click.option("--resume", is_flag=True, help="Skip what the record file already holds.")
@click.option(
    "--figure",
    "stem",
    type=Stem(),
    metavar="STEM",
    help="Figure files without ending. [beside the records]",
)
@click.option(
    "--from",
    "recorded",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Show records of an earlier run.",
)
def command(transport, ranks, nodes, sizes, quick, seconds, repetitions, launches, output, resume, stem, recorded):
    """Measure single messages between pairs of ranks through the transports that exchanges use.

    Latency is half a ping-pong; bandwidth and message rate come from a batch of back-to-back messages and one reply;
    "both ways" sends in both directions at once. Every transport moves the same bytes, and all of them are checked.
    """
    from haloscope.measure import campaign, lists, microbench
    from haloscope.report import outputs, records

    if stem:
        outputs.refuse_foreign_figure(stem)
    if recorded:
        _report(records.read(recorded).records, recorded, stem)
        return errors.OK
    chosen = microbench.QUICK_SIZES if quick else microbench.ALL_SIZES
    plain = microbench.Micro(
        "",
        sizes=tuple(lists.numbers(sizes, "--bytes")) if sizes else chosen,
        seconds=seconds or (0.002 if quick else 0.01),
        repetitions=repetitions or (3 if quick else 5),
    )
    planned = _plan(plain, transport, lists.numbers(ranks, "--ranks"), lists.numbers(nodes, "--nodes"))
    file = output or records.scratch("microbench")
    run = campaign.Campaign(planned, file, launches=launches or (2 if quick else 3), resume=resume, what="microbench")
    found = run.run()
    _report(found, file, stem)
    return campaign.exit_code(found)


def _plan(plain, transport: str, ranks: list[int], nodes: list[int]):
    from haloscope.measure import microbench, space

    for count in ranks:
        if count < 2 or count % 2:
            raise errors.UsageProblem(f"--ranks {count} is not possible: ranks work in pairs; use 2, 4, ...")
        for number in nodes:
            if not 0 <= number <= count:
                raise errors.UsageProblem(f"--nodes {number} is not possible with {count} ranks; use 0 to {count}")
    names = microbench.transports(transport)
    return space.Space(
        [dataclasses.replace(plain, transport=t, ranks=r, nodes=n) for t in names for r in ranks for n in nodes]
    )


def _report(found: list[dict], file: Path, stem: Path | None) -> None:
    from haloscope.measure import microbench
    from haloscope.report import tables

    groups = microbench.groups_of(microbench.curves(found))
    for key, group in groups.items():
        click.echo(f"\n### {microbench.heading(key)}\n\n{microbench.overview(group)}")
        for what, words in (("latency", "Latency, us"), ("bandwidth", "Bandwidth one way, GB/s")):
            click.echo(f"\n#### {words}: {microbench.heading(key)}\n\n{microbench.by_size(group, what)}")
    for line in tables.refusals(found):
        click.echo(f"\n{line}")
    click.echo(f"\nrecords: {file}")
    if groups:
        environment = next(r for r in found if r["kind"] == microbench.KIND)["environment"]
        title = f"{environment.get('cpu', 'CPU')}, {' '.join(environment['mpi_library'].split())[:60]}; medians over launches"
        files = microbench.figure(groups, title, stem or file.with_suffix(""))
        click.echo(f"figure:  {files[0]}, {files[1]}")
