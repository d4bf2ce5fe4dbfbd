"""`haloscope advise`: all ways to exchange halos, priced from a machine profile and ranked, with reasons and code."""

from __future__ import annotations

from typing import Any

from haloscope import terminal
from haloscope.measure.devices import device_of
from haloscope.options.candidates import DECIDED, TRIED
from haloscope.options.command import ChoiceOptions, subcommand
from haloscope.options.kinds import option
from haloscope.options.machine import HERE, MACHINE, setting_of
from haloscope.options.output import JSON, PAGE, top
from haloscope.options.request import APP, app_of, one_choice


@subcommand(
    short_help="Rank strategies, schedules, depths from a profile, with reasons.",
    choice=ChoiceOptions(without=(*HERE, *DECIDED), usual={"ranks": "2"}),
)
@APP
@TRIED
@top("everyday")
@option("--members", is_flag=True, help="List the members of each row.")
@MACHINE
@JSON
@PAGE
def command(app: str, depth: str, reorder: str, process_grid: str, as_json: bool, **options: Any) -> None:
    """Recommend strategy, schedule and depth for the halo exchange of APP, with reasons and limits.

    \b
    haloscope advise advection3d --cells 420 --ranks 64 --profile machine.json
    haloscope advise laplace2d --cells 8192 --ranks 16 --depth 1,2,4 --profile machine.json
    haloscope advise laplace2d --cells 4096 --profile machine.json --refresh

    Only --refresh measures: the pace of this machine. A row represents all candidates that this profile cannot
    distinguish, and names the simplest within 5 % of its fastest: fewest options off default, then the simplest
    transport.
    """
    from haloscope.advice import advise as model
    from haloscope.measure import lists
    from haloscope.measure.pace import at_pace
    from haloscope.model import profile as profiles
    from haloscope.report import advise as report
    from haloscope.report.page import advice as page

    machine, pace = at_pace(profiles.load(options["profile"]), options["refresh"])
    choice = one_choice(app_of(app, options), options | {"device": device_of(options["device"], machine)})
    depths, samples = model.depths_of(depth), options["samples"]
    orders = lists.names(reorder, model.ORDERS, "--reorder")
    grids = [text for text in process_grid.split(",") if text]
    advice = model.advise(choice, machine, setting_of(options), depths, samples, orders, grids, as_json)
    if as_json:
        terminal.echo(terminal.json_text(report.document(advice)))
    else:
        terminal.echo(report.markdown(advice, machine, options["mapping"], pace, options["top"], options["members"]))
    page.write_requested_advice(options["page"], advice, machine)
