"""`haloscope predict`: the time of a step with breakdown and uncertainty, from a machine profile. No MPI."""

from __future__ import annotations

import click

from haloscope import terminal
from haloscope.measure.devices import device_of
from haloscope.options.command import ChoiceOptions, subcommand
from haloscope.options.kinds import option, options_of
from haloscope.options.request import app_of, space_of

# Fields that a profile decides, or has no prices for.
HERE = ("isa", "stores", "ftz", "memory", "temporaries", "piece")

PLACED = options_of(
    option("--profile", required=True, metavar="FILE|NAME", help="Machine profile: a JSON file or a shipped one."),
    option(
        "--mapping",
        default="fill",
        group="machine",
        metavar="RULE",
        help="Ranks to the profile's nodes and sockets: fill, balanced, by-socket, round-robin. [fill]",
    ),
    option("--active", type=click.IntRange(1, 100_000), group="machine", help="Most cores in use per socket. [all]"),
    option(
        "--reductions",
        type=click.IntRange(0, 1_000_000),
        default=0,
        group="machine",
        help="All-reduces per time step beside the app's own. [0]",
    ),
    option(
        "--repeats",
        type=click.IntRange(0, 1_000_000),
        default=1,
        group="machine",
        help="Executions per time step of a loop of stages. [1]",
    ),
)
MACHINE = options_of(
    PLACED,
    option(
        "--samples",
        type=click.IntRange(0, 10_000),
        default=100,
        group="machine",
        help="Draws of the profile's parameters for the interval; 0 = none. [100]",
    ),
    option(
        "--refresh",
        is_flag=True,
        group="machine",
        help="Time the pace of this machine first, in a second, and predict for that.",
    ),
    option("--json", "as_json", is_flag=True, group="output", help="One JSON document instead of a table."),
)


@subcommand(
    short_help="Time per step, interval and breakdown, from a machine profile.",
    choice=ChoiceOptions(lists=True, without=HERE, usual={"ranks": "2"}),
)
@click.argument("app")
@MACHINE
def command(app, profile, samples, refresh, as_json, **options):
    """Predict APP's time per step without running it; lists and ranges make a space as in `haloscope run`.

    \b
    haloscope predict laplace2d --cells 8192 --ranks 4..2048*2 --profile machine.json
    haloscope predict advection3d --cells 420 -n 64 --strategy 'ordered/*' --profile machine.json

    The table says for each choice the time of a step in step with all ranks, its 90 % interval (how sure the
    parameters are, and how far calibrated steps were off), and what the slowest rank spends it on. --nodes N splits
    the ranks over N of the profile's nodes.
    """
    from haloscope.measure.pace import at_pace
    from haloscope.measure.space import refuse_if_none_can_run
    from haloscope.model.predict import predict_all
    from haloscope.model.profile import load
    from haloscope.report import predict as report

    machine, pace = at_pace(load(profile), refresh)
    planned = space_of(app_of(app, options), options | {"device": device_of(options["device"], machine)}, {})
    refuse_if_none_can_run(planned)
    made = predict_all(planned.requests, machine, setting_of(options), samples)
    terminal.echo(terminal.json_text(report.document(made)) if as_json else report.markdown(made, pace))


def setting_of(options: dict):
    """Return the setting of the model from the options."""
    from haloscope.model import predict

    return predict.Setting(
        options["mapping"], options["active"], reductions=options["reductions"], repeats=options["repeats"]
    )
