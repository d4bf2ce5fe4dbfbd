"""`haloscope simulate`: a step's time on 10^3 to 10^6 ranks, each message simulated at a profile's prices. No MPI."""

from __future__ import annotations

import click

from haloscope import outputs, terminal
from haloscope.commands import predict
from haloscope.measure.devices import device_of
from haloscope.options.command import ChoiceOptions, subcommand
from haloscope.options.kinds import FileName, FiniteRange, option, options_of
from haloscope.options.request import app_of, space_of

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
    option("--weak", is_flag=True, help="--cells are those of one rank: the grid grows with the ranks."),
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
    option("--json", "as_json", is_flag=True, group="output", help="One JSON document instead of a table."),
)


@subcommand(
    short_help="Time per step on up to 10^6 ranks, simulated message by message.",
    choice=ChoiceOptions(lists=True, without=predict.HERE, usual={"ranks": "2"}),
)
@click.argument("app")
@predict.PLACED
@SIMULATED
def command(app, profile, steps, noise, weak, seed, overhead, gap, offload, goal, extrap, plot, as_json, **options):
    """Simulate APP on many ranks, message by message; lists and ranges make a space as in `haloscope run`.

    \b
    haloscope simulate laplace2d --cells 65536 -n 1024..131072*2 --profile machine.json --plot strong
    haloscope simulate advection3d --cells 64 --weak -n 1000,100000 --noise 1% --profile machine.json

    What an operation costs is what `haloscope predict` says; a simulation adds queues for what ranks share, delays that
    travel from rank to rank, and noise. All times are simulated.
    """
    from haloscope.measure.space import Space, refuse_if_none_can_run
    from haloscope.model import profile as profiles
    from haloscope.report import simulate as report
    from haloscope.simulate import extrap as points
    from haloscope.simulate import goal as schedules
    from haloscope.simulate import simulate

    machine = profiles.load(profile)
    how = simulate.How(steps, *simulate.noise_of(noise), seed, overhead, gap, offload)
    setting = predict.setting_of(options)
    found, options["device"] = app_of(app, options), device_of(options["device"], machine)
    blocks = options["cells"], options["ranks"], options["process_grid"]
    grids = simulate.weak_scalings(found, *blocks) if weak else [{}]
    planned = sum((space_of(found, options | grid, {}) for grid in grids), Space())
    refuse_if_none_can_run(planned)
    if goal:
        schedules.refuse_file(goal, planned.requests)
    if extrap:
        outputs.refuse_foreign(extrap, outputs.POINTS)
    if plot:
        outputs.refuse_foreign_figure(plot)
    made = [(r, simulate.simulate(r.choice, machine, setting, how)) for r in planned.requests]
    if goal:
        [(request, simulated)] = made
        lines = schedules.write_file(goal, request.choice, machine, setting, simulated.rounds)
        terminal.say(f"wrote {goal}: GOAL, {lines} lines, {request.choice.ranks} ranks")
    terminal.echo(terminal.json_text(report.document(made)) if as_json else report.markdown(made, weak))
    if extrap:
        points.write(made, extrap)
        terminal.say(f"wrote {extrap}")
    for file in report.draw(made, weak, plot) if plot else ():
        terminal.say(f"wrote {file}")
