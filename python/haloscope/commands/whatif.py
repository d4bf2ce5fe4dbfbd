"""`haloscope whatif`: time, nodes and node-hours with other mappings, decompositions and machines. No MPI."""

from __future__ import annotations

from typing import Any

from haloscope import terminal
from haloscope.measure.devices import device_of
from haloscope.options.command import ChoiceOptions, subcommand
from haloscope.options.machine import HERE, VARIED, WEAK, profile
from haloscope.options.output import JSON
from haloscope.options.request import APP, app_of, space_of


@subcommand(
    short_help="Fewer cores, other mappings, grids, machines: time, node-hours.",
    choice=ChoiceOptions(lists=True, without=HERE, usual={"ranks": "2"}),
)
@APP
@profile()
@VARIED
@WEAK
@JSON
def command(app: str, profile: str, against: str | None, weak: bool, as_json: bool, **options: Any) -> None:
    """Predict APP with other mappings, decompositions or machines. The other rows are compared with the first.

    \b
    haloscope whatif laplace3d --cells 512 -n 256 --profile machine.json --active 6,4,2,1
    haloscope whatif laplace3d --cells 512 -n 64 --profile machine.json --mapping fill,by-socket
    haloscope whatif laplace3d --cells 512 -n 64 --profile machine.json --process-grid all
    haloscope whatif laplace3d --cells 64 --weak -n 2..4096*2 --profile a.json --against b.json

    Lists make a space as in `haloscope predict`; --process-grid also takes `all`. Nodes are counted whole. Pairs are
    the neighbour pairs of the worst node. A command makes 2000 predictions at most.
    """
    from haloscope.advice import whatif
    from haloscope.measure.space import refuse_if_none_can_run
    from haloscope.model import profile as profiles
    from haloscope.report import whatif as report

    machine, found = profiles.load(profile), app_of(app, options)
    options["device"] = device_of(options["device"], machine)
    wanted, ranks = whatif.space_options(found, options, weak)
    planned = space_of(found, wanted, {})
    refuse_if_none_can_run(planned)
    choices = whatif.choices_of(planned.requests, ranks)
    settings = whatif.settings(options["active"], options["mapping"])
    if against:
        both = whatif.compared(choices, (machine, profiles.load(against)), settings)
        terminal.echo(terminal.json_text(report.crossover_document(both)) if as_json else report.crossover_text(both))
    else:
        made = whatif.variants(choices, machine, settings)
        terminal.echo(terminal.json_text(report.document(made)) if as_json else report.markdown(made))
