"""Options of a simulation: its steps, noise and costs of messages, and the files that it writes."""

from __future__ import annotations

import click

from haloscope.options.kinds import FileName, FiniteRange, option, options_of
from haloscope.options.machine import WEAK

SIMULATED = options_of(
    option(
        "--steps",
        "-i",
        type=click.IntRange(1, 1_000_000),
        default=10,
        help="Time steps, at least two exchanges; the second half counts. [10]",
    ),
    option(
        "--noise",
        default="0",
        metavar="SECONDS|PERCENT%",
        help="Mean of an exponential delay of each operation: 2e-6, or 1% of its own time. [none]",
    ),
    WEAK,
    option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, group="machine", help="Of the noise. [0]"),
    option(
        "--overhead",
        type=FiniteRange(0),
        default=0.0,
        group="machine",
        help="Seconds that both ends are busy with a message, taken out of its latency. [0]",
    ),
    option(
        "--gap",
        type=FiniteRange(0),
        default=0.0,
        group="machine",
        help="Least seconds between two sends of a rank. [0]",
    ),
    option("--offload", is_flag=True, group="machine", help="Rendezvous messages travel once posted, without calls."),
)
WRITTEN = options_of(
    option(
        "--goal",
        type=FileName(),
        metavar="FILE",
        group="output",
        help="Write the message schedule as GOAL, for LogGOPSim (one choice).",
    ),
    option("--extrap", type=FileName(), metavar="FILE", group="output", help="Write the times as Extra-P JSON Lines."),
    option(
        "--plot",
        type=FileName(stem=True),
        metavar="STEM",
        group="output",
        help="Draw time over ranks: STEM.svg, STEM.png.",
    ),
)
