"""Options of a simulation: its steps, noise and costs of messages, and the files that it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from haloscope import outputs
from haloscope.options.kinds import FileName, FiniteRange, of_machine, of_output, option, options_of
from haloscope.options.machine import WEAK
from haloscope.options.request import space_of

if TYPE_CHECKING:
    from haloscope.bridge import App
    from haloscope.measure.space import Space
    from haloscope.simulate.simulate import SimulationOptions

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
    of_machine("--seed", type=click.IntRange(0, 2**63 - 1), default=0, help="Seed of the noise. [0]"),
    of_machine(
        "--overhead",
        type=FiniteRange(0),
        default=0.0,
        help="Seconds of a message's latency that keep both ends busy. [0]",
    ),
    of_machine("--gap", type=FiniteRange(0), default=0.0, help="Min seconds between two sends of a rank. [0]"),
    of_machine("--offload", is_flag=True, help="Rendezvous messages travel once posted, without calls of MPI."),
)
WRITTEN = options_of(
    of_output("--goal", type=FileName(), help="Write the message schedule as GOAL, for LogGOPSim (one choice)."),
    of_output("--extrap", type=FileName(), help="Write the times as Extra-P JSON Lines."),
    of_output("--plot", type=FileName(stem=True), help="Draw time over ranks: STEM.svg, STEM.png."),
)


def simulation_options(options: Mapping[str, Any]) -> SimulationOptions:
    """Return the options of a simulation. Raises UsageError for a malformed noise."""
    from haloscope.simulate import simulate

    noise = simulate.noise_of(options["noise"])
    costs = options["overhead"], options["gap"], options["offload"]
    return simulate.SimulationOptions(options["steps"], *noise, options["seed"], *costs)


def simulated_space(app: App, options: Mapping[str, Any]) -> Space:
    """Return the space of requests to simulate, where the grid may grow with the ranks.

    Raises UsageError where none can run.
    """
    from haloscope.measure.space import Space, refuse_if_none_can_run
    from haloscope.simulate.simulate import weak_scalings

    blocks = options["cells"], options["ranks"], options["process_grid"]
    grids = weak_scalings(app, *blocks) if options["weak"] else [{}]
    planned = sum((space_of(app, {**options, **grid}, {}) for grid in grids), Space())
    refuse_if_none_can_run(planned)
    return planned


def refuse_foreign(options: Mapping[str, Any], requests: Sequence) -> None:
    """Raise UsageError where a file of WRITTEN would replace one of another program, or cannot hold all requests."""
    from haloscope.simulate import goal

    if options["goal"]:
        goal.refuse_file(options["goal"], requests)
    if options["extrap"]:
        outputs.refuse_foreign(options["extrap"], outputs.POINTS)
    if options["plot"]:
        outputs.refuse_foreign_figure(options["plot"])
