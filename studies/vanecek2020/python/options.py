"""Options of exchanges of blocks: their variants, sizes, sides and device."""

from __future__ import annotations

import click

from haloscope.options.kinds import FileName, option, options_of
from haloscope.options.measuring import launches
from haloscope.options.output import record_file, recorded
from haloscope_studies.vanecek2020.variants import TYPES

USUAL_VARIANTS = ("baseline:*,coherent", "taskqueue:*")

EXCHANGED = options_of(
    option(
        "--variant",
        multiple=True,
        metavar="LIST",
        help="Variants as 'taskqueue:queue,chunks=4', and globs of full names, cut at semicolons; all; may be "
        f"repeated. ['{';'.join(USUAL_VARIANTS)}']",
    ),
    option("--bytes", "sizes", metavar="LIST", help="Sizes of the blocks' buffers instead of the workload's."),
    option("--threads", type=click.IntRange(1, 1024), detailed=True, help="Threads of a block. [the workload's]"),
    option("--type", type=click.Choice(TYPES), default=TYPES[0], detailed=True, help="Elements of buffers. [double]"),
    option("--scheme", default="pairs", metavar="LIST", help="Peers of the sides: pairs, ring, mixed. [pairs]"),
    option("--ranks", "-n", metavar="LIST", help="Numbers of ranks. [2 if each can have a device, else 1]"),
    option(
        "--sides",
        type=click.IntRange(1, 1024),
        detailed=True,
        help="Sides of each rank, on one device. [2 of 1 rank, else 1]",
    ),
    option("--device", default="auto", metavar="NAME", help="auto, cuda, hip, host (imitated). [auto]"),
)
MEASURED = options_of(
    option("--check", type=click.Choice(["sampled", "full"]), default="sampled", help="Elements checked. [sampled]"),
    option("--detail", type=click.Choice(["off", "on", "posting"]), help="Logged events. [off; on with --timeline]"),
    option(
        "--warmup",
        type=click.IntRange(0, 10**6),
        default=3,
        detailed=True,
        help="Iterations of a test that do not count. [3]",
    ),
    option(
        "--iterations",
        type=click.IntRange(1, 10**6),
        default=10,
        detailed=True,
        help="Iterations of a test that count. [10]",
    ),
    option("--repetitions", type=click.IntRange(1, 10**6), default=5, detailed=True, help="Tests per launch. [5]"),
    launches("3", default=3, detailed=True),
    record_file("blocks"),
)
SHOWN = options_of(
    option(
        "--timeline",
        type=FileName(),
        metavar="FILE",
        help="Trace of each variant's last iteration for Perfetto or chrome://tracing, and a figure next to it.",
    ),
    recorded(),
)
