"""`haloscope predict`: the time of a step with breakdown and uncertainty, from a machine profile. No MPI."""

from __future__ import annotations

from typing import Any

from haloscope import terminal
from haloscope.measure.devices import device_of
from haloscope.options.command import ChoiceOptions, subcommand
from haloscope.options.machine import HERE, MACHINE, setting_of
from haloscope.options.output import JSON
from haloscope.options.request import APP, app_of, space_of


@subcommand(
    short_help="Time per step, interval and breakdown, from a machine profile.",
    choice=ChoiceOptions(lists=True, without=HERE, usual={"ranks": "2"}),
)
@APP
@MACHINE
@JSON
def command(app: str, profile: str, samples: int, refresh: bool, as_json: bool, **options: Any) -> None:
    """Predict APP's time per step without running it; lists and ranges make a space as in `haloscope run`.

    \b
    haloscope predict laplace2d --cells 8192 --ranks 4..2048*2 --profile machine.json
    haloscope predict advection3d --cells 420 -n 64 --strategy 'ordered/*' --profile machine.json

    The table shows for each choice the time of a step with all ranks in step, its 90 % interval (from the uncertainty
    of parameters and the errors of calibrated steps), and its parts on the slowest rank. --nodes N splits the ranks
    over N of the profile's nodes.
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
