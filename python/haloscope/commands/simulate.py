"""`haloscope simulate`: a step's time on 10^3 to 10^6 ranks, each message simulated at a profile's prices. No MPI."""

from __future__ import annotations

from typing import Any

from haloscope import terminal
from haloscope.measure.devices import device_of
from haloscope.options.command import ChoiceOptions, subcommand
from haloscope.options.machine import HERE, PLACED, setting_of
from haloscope.options.output import JSON
from haloscope.options.request import APP, app_of
from haloscope.options.simulation import SIMULATED, WRITTEN, refuse_foreign, simulated_space, simulation_options


@subcommand(
    short_help="Time per step on up to 10^6 ranks, simulated message by message.",
    choice=ChoiceOptions(lists=True, without=HERE, usual={"ranks": "2"}),
)
@APP
@PLACED
@SIMULATED
@WRITTEN
@JSON
def command(app: str, profile: str, as_json: bool, **options: Any) -> None:
    """Simulate APP on many ranks, message by message; lists and ranges make a space as in `haloscope run`.

    \b
    haloscope simulate laplace2d --cells 65536 -n 1024..131072*2 --profile machine.json --plot strong
    haloscope simulate advection3d --cells 64 --weak -n 1000,100000 --noise 1% --profile machine.json

    Operations cost the same as in `haloscope predict`; a simulation adds queues for shared resources, delays that
    travel from rank to rank, and noise. All times are simulated.
    """
    from haloscope.model import profile as profiles
    from haloscope.report import simulate as report
    from haloscope.simulate import extrap as points
    from haloscope.simulate import goal as schedules
    from haloscope.simulate.simulate import simulate_all

    machine, simulation, setting = profiles.load(profile), simulation_options(options), setting_of(options)
    found, options["device"] = app_of(app, options), device_of(options["device"], machine)
    requests = simulated_space(found, options).requests
    refuse_foreign(options, requests)
    goal, extrap, plot, weak = (options[name] for name in ("goal", "extrap", "plot", "weak"))
    made = simulate_all(requests, machine, setting, simulation)
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
