"""`haloscope blocks`: GPU blocks exchange buffers of their own, by the variants of Vanecek 2020."""

from __future__ import annotations

import itertools
from pathlib import Path

import click

from haloscope import errors, outputs, terminal
from haloscope.options.blocks import EXCHANGED, MEASURED, SHOWN, USUAL_VARIANTS


@click.command(short_help="Blocks of a GPU exchange buffers: phased, or as soon as each is packed.")
@click.argument("workloads", default="M", metavar="[WORKLOADS]")
@EXCHANGED
@MEASURED
@SHOWN
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
