"""Options of a calibration: the parts of a machine that it measures, and the app of a program."""

from __future__ import annotations

import click

from haloscope.options.kinds import FileName, option, options_of
from haloscope.options.measuring import launches
from haloscope.options.output import recorded
from haloscope.options.request import program

CALIBRATED = options_of(
    option(
        "-o",
        "--output",
        type=FileName(),
        required=True,
        detailed=True,
        metavar="FILE.json",
        help="Profile to write; its records go to FILE.jsonl in the same folder.",
    ),
    option("--quick", is_flag=True, help="Fewer sizes and shorter samples: under a minute on 2 cores."),
    option(
        "--ranks", type=click.IntRange(1, 100_000), detailed=True, help="Max ranks that measure concurrently. [cores]"
    ),
    launches("5; quick 3", "Launches (separate mpiexec runs), the outer sample.", detailed=True),
    option(
        "--sections",
        default="*",
        metavar="LIST",
        help="network, pack, kernels, steps, transports, reductions, device; globs. [all]",
    ),
    option(
        "--device", default="", help="Device to measure too: cuda, hip, host (imitated), none. [a GPU, if available]"
    ),
    option("--name", default="", help="Name of the profile. [the host's]"),
    recorded("Fit records of an earlier calibration again; nothing is measured.", metavar="RECORDS"),
    option("--apps", metavar="LIST", help="Apps whose kernels are measured; globs. [apps with few sweeps per step]"),
)
OF_PROGRAM = options_of(
    option("--app", "app", metavar="APP", help="App of --program whose sweeps are measured too."),
    program(),
    option("--set", "given_set", multiple=True, metavar="NAME=VALUE", help="A parameter of this app."),
)
