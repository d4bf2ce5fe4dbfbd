"""`haloscope blocks`: GPU blocks exchange buffers of their own, by the variants of Vanecek 2020."""

from __future__ import annotations

import itertools
from pathlib import Path

import click

from haloscope import errors, outputs, terminal
from haloscope.options.kinds import FileName

USUAL_VARIANTS = ("baseline:*,coherent", "taskqueue:*")


@click.command(short_help="Blocks of a GPU exchange buffers: phased, or as soon as each is packed.")
@click.argument("workloads", default="M", metavar="[WORKLOADS]")
@click.option(
    "--variant",
    multiple=True,
    metavar="LIST",
    help="Variants as 'taskqueue:queue,chunks=4', and globs of full names, cut at semicolons; all; may be repeated. "
    f"['{';'.join(USUAL_VARIANTS)}']",
)
@click.option("--bytes", "sizes", metavar="LIST", help="Sizes of the blocks' buffers instead of the workload's.")
@click.option("--threads", type=click.IntRange(1, 1024), help="Threads of a block. [the workload's]")
@click.option("--scheme", default="pairs", metavar="LIST", help="Who sends to whom: pairs, ring, mixed. [pairs]")
@click.option("--ranks", "-n", metavar="LIST", help="Numbers of ranks. [2 where each can have a device, else 1]")
@click.option("--sides", type=click.IntRange(1, 1024), help="Sides of each rank, on one device. [2 of 1 rank, else 1]")
@click.option("--device", default="auto", metavar="NAME", help="auto, cuda, hip, host (imitated). [auto]")
@click.option("--check", type=click.Choice(["sampled", "full"]), default="sampled", help="Elements checked. [sampled]")
@click.option("--detail", type=click.Choice(["off", "on", "posting"]), help="What is logged. [off; on with --timeline]")
@click.option("--warmup", type=click.IntRange(0, 10**6), default=3, help="Iterations of a test that do not count. [3]")
@click.option("--iterations", type=click.IntRange(1, 10**6), default=10, help="Iterations of a test that count. [10]")
@click.option("--repetitions", type=click.IntRange(1, 10**6), default=5, help="Tests per launch. [5]")
@click.option("--launches", type=click.IntRange(1, 1000), default=3, help="Starts of the ranks. [3]")
@click.option("--output", type=FileName(), help="Record file. [results/scratch/blocks-TIME.jsonl]")
@click.option("--resume", is_flag=True, help="Skip what the record file already holds.")
@click.option(
    "--timeline",
    type=FileName(),
    metavar="FILE",
    help="Trace of each variant's last iteration for Perfetto or chrome://tracing, and a figure beside it.",
)
@click.option(
    "--from",
    "recorded",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Show records of an earlier run.",
)
def command(workloads, variant, timeline, recorded, launches, output, resume, **options):
    """Exchange the buffers of a GPU's blocks between two sides, WORKLOADS (XS, S, M, L, XL; lists, globs), by many
    variants.

    \b
    baseline   a kernel packs all blocks, messages, a kernel unpacks them
    taskqueue  one kernel tells the CPU which block is packed, and is told what has arrived
    kernels    a kernel for each block to pack it, and one to unpack it

    Variants, schemes and what the table shows: docs/blocks.md. A launch measures all variants, in random order, so that
    they are compared close in time. Every block checks what it unpacks; a wrong value ends the run with code 1.
    """
    from haloscope import records
    from haloscope.measure import campaign

    if timeline:
        outputs.refuse_foreign(timeline, outputs.TRACE)
        outputs.refuse_foreign_figure(outputs.stem_of(timeline))
    if recorded:
        _report(records.read_aloud(recorded).records, recorded, timeline)
        return errors.OK
    space = _plan(workloads, variant or USUAL_VARIANTS, timeline is not None, options)
    file = output or records.scratch("blocks")
    found = campaign.Campaign(space, file, launches=launches, resume=resume, what="blocks").run()
    _report(found, file, timeline)
    return campaign.exit_code(found)


def _plan(workloads: str, texts, with_timeline: bool, options: dict):
    from haloscope.measure import blocks, lists
    from haloscope.measure.space import Space

    sizes = _sizes(options["sizes"])
    names = lists.names(workloads, blocks.WORKLOADS, "workload")
    chosen, schemes = blocks.variant_list(texts), lists.names(options["scheme"], blocks.SCHEMES, "scheme")
    detail = options["detail"] or ("on" if with_timeline else "off")
    if with_timeline and detail == "off":
        raise errors.UsageProblem("--timeline shows what --detail logs; use --detail on or posting")
    if sizes and len(names) > 1:
        raise errors.UsageProblem("--bytes takes the place of a workload's sizes; name one workload, for its threads")
    how = {name: options[name] for name in ("warmup", "iterations", "repetitions")}
    how |= {
        "device": _device(options["device"]),
        "check": options["check"],
        "detail": detail,
        "timeline": with_timeline,
    }
    ranks = lists.numbers(options["ranks"], "--ranks") if options["ranks"] else [blocks.usual_ranks(how["device"])]
    return Space(
        [
            blocks.Blocks(
                variant,
                name,
                sizes,
                options["threads"] or 0,
                scheme,
                count,
                options["sides"] or (2 if count == 1 else 1),
                **how,
            )
            for count, name, scheme, variant in itertools.product(ranks, names, schemes, chosen)
        ]
    )


def _sizes(text: str | None) -> tuple[int, ...]:
    from haloscope.measure import blocks, lists

    sizes = tuple(lists.numbers(text, "--bytes", repeated=True)) if text else ()
    blocks.check_sizes(sizes)
    return sizes


def _device(asked: str) -> str:
    from haloscope.measure import devices

    found = devices.resolve(asked)
    if "," in found or found == devices.NONE:
        raise errors.UsageProblem(f"--device '{asked}': blocks are of one device; use auto, cuda, hip or host")
    return found


def _report(found: list[dict], file: Path, timeline: Path | None) -> None:
    from haloscope.report import blocks, tables

    table = blocks.rows(found)
    for heading, members in blocks.groups(table).items():
        terminal.echo(f"\n### {heading}\n\n{blocks.table(members)}")
    if blocks.is_imitated(table):
        terminal.echo(f"\n{blocks.IMITATED}")
    for line in tables.refusals(found):
        terminal.echo(f"\n{line}")
    terminal.echo(f"\nrecords: {file}")
    if timeline:
        _show_timelines(table, timeline)


def _show_timelines(table, file: Path) -> None:
    from haloscope.report import blocks_timeline

    shown = blocks_timeline.with_timeline(table)
    if not shown:
        raise errors.UsageProblem("these records have no timelines; measure with --timeline")
    blocks_timeline.write_trace(shown, file)
    drawn = blocks_timeline.figure(shown, outputs.stem_of(file))
    terminal.echo(f"trace:   {file}\nfigure:  {', '.join(map(str, drawn))}")
