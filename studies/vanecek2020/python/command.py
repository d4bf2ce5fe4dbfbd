"""`haloscope blocks`: GPU blocks exchange separate buffers, by the variants of Vanecek 2020."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from haloscope import errors, terminal
from haloscope_studies.vanecek2020.options import EXCHANGED, MEASURED, SHOWN, USUAL_VARIANTS


@click.command(short_help="Blocks of a GPU exchange buffers: phased, or each once packed.")
@click.argument("workloads", default="M", metavar="[WORKLOADS]")
@EXCHANGED
@MEASURED
@SHOWN
def command(
    workloads: str,
    variant: tuple[str, ...],
    timeline: Path | None,
    recorded: Path | None,
    launches: int,
    output: Path | None,
    resume: bool,
    **options: Any,
) -> int:
    """Exchange the buffers of a GPU's blocks between two sides, WORKLOADS (XS, S, M, L, XL; lists, globs), by many
    variants.

    \b
    baseline   a kernel packs all blocks, messages, a kernel unpacks them
    taskqueue  one kernel signals packed blocks to the CPU, which signals arrivals to the kernel
    kernels    a kernel for each block to pack it, and one to unpack it

    Variants, schemes and columns of the table: studies/vanecek2020/docs/blocks.md. A launch measures all variants, in
    random order, so that they are compared close in time. Every block checks its unpacked values; a wrong value ends
    the run with code 1.
    """
    from haloscope import records
    from haloscope.measure import campaign
    from haloscope_studies.vanecek2020 import blocks as report
    from haloscope_studies.vanecek2020 import blocks_timeline, requests

    if timeline:
        blocks_timeline.refuse_foreign(timeline)
    if recorded:
        file, found = recorded, records.read_aloud(recorded).records
    else:
        space = requests.plan(workloads, variant or USUAL_VARIANTS, timeline is not None, options)
        file = output or records.scratch("blocks")
        found = campaign.Campaign(space, file, launches=launches, resume=resume, label="blocks").run()
    terminal.echo(report.markdown(found, file))
    if timeline:
        terminal.echo(blocks_timeline.draw(report.rows(found), timeline))
    return errors.OK if recorded else campaign.exit_code(found)
