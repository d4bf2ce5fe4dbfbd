"""Options of a machine profile, and of the mapping of ranks to its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from haloscope.options.kinds import Decorator, of_machine, option, options_of

if TYPE_CHECKING:
    from haloscope.model.predict import RunSettings

# Fields of a choice that a profile decides, or for which it has no prices.
HERE = ("isa", "stores", "ftz", "memory", "temporaries", "piece")


def profile(required: bool = True) -> Decorator:
    """Return the option that names a machine profile."""
    return option(
        "--profile", required=required, metavar="FILE|NAME", help="Machine profile: a JSON file or a shipped one."
    )


def samples(group: str) -> Decorator:
    """Return the option for the number of samples of a prediction's interval."""
    return option(
        "--samples",
        type=click.IntRange(0, 10_000),
        default=100,
        group=group,
        help="Parameter samples for the prediction interval; 0 = none. [100]",
    )


VARIED = options_of(
    option(
        "--against",
        metavar="FILE|NAME",
        help="Profile of a second machine: find the number of ranks from which it is faster or slower.",
    ),
    option("--active", metavar="LIST", help="Max cores in use per socket. [all]"),
    option(
        "--mapping",
        default="fill",
        metavar="LIST",
        help="Ranks to nodes and sockets: fill, balanced, by-socket, round-robin. [fill]",
    ),
)
WEAK = option("--weak", is_flag=True, help="--cells is the block of one rank: the grid grows with the ranks.")
PLACED = options_of(
    profile(),
    of_machine(
        "--mapping",
        default="fill",
        metavar="RULE",
        help="Ranks to the profile's nodes and sockets: fill, balanced, by-socket, round-robin. [fill]",
    ),
    of_machine("--active", type=click.IntRange(1, 100_000), help="Max cores in use per socket. [all]"),
    of_machine(
        "--reductions",
        type=click.IntRange(0, 1_000_000),
        default=0,
        help="All-reduces per time step in addition to the app's. [0]",
    ),
    of_machine(
        "--repeats",
        type=click.IntRange(0, 1_000_000),
        default=1,
        help="Executions per time step of a loop of stages. [1]",
    ),
)
MACHINE = options_of(
    PLACED,
    samples("machine"),
    of_machine(
        "--refresh",
        is_flag=True,
        help="Measure the current pace of this machine first, in a second, and predict for it.",
    ),
)


def setting_of(options: Mapping) -> RunSettings:
    """Return the settings of the model from the options in PLACED."""
    from haloscope.model import predict

    loops = {name: options[name] for name in ("reductions", "repeats")}
    return predict.RunSettings(options["mapping"], options["active"], **loops)
