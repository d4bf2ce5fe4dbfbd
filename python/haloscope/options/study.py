"""Options of a study: changes to its sizes and repetitions, and sources of its tables besides measuring."""

from __future__ import annotations

from pathlib import Path

import click

from haloscope.options.kinds import option, options_of
from haloscope.options.measuring import launches, repetitions, steps
from haloscope.options.output import PAGE, record_file, recorded

CHANGES = options_of(
    option(
        "--sizes",
        default="",
        metavar="LIST",
        help="Sizes instead of the study's, in its unit: cells per side, interlines, workloads 1 to 5.",
    ),
    option("--depths", default="", metavar="LIST", help="Halo depths instead of the study's."),
    option(
        "--nodes",
        type=click.IntRange(1, 10**6),
        detailed=True,
        help="Emulated nodes to spread the ranks over, if the study uses nodes.",
    ),
    option("--ranks", type=click.IntRange(1, 10**7), detailed=True, help="Ranks, if the study does not fix them."),
    option(
        "--device",
        metavar="NAME",
        help="Device of fields or blocks, if the study supports devices: none, cuda, hip, host. [a GPU, if available]",
    ),
    steps(detailed=True),
    repetitions(detailed=True),
    launches(detailed=True),
)
RECORDS = options_of(
    record_file("NAME"),
    recorded("Report on record files, from a cluster for example, instead of measuring.", multiple=True),
    option(
        "--slurm",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Write job scripts for Slurm instead of measuring, if the study has any.",
    ),
    option("--replay", is_flag=True, help="Recompute the paper's results from its published data; measure nothing."),
    option(
        "--figures",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Draw the paper's figures from its printed data, and records of --from where they may stand.",
    ),
    PAGE,
)
