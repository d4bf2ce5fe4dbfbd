"""`haloscope info`: features of this machine and build, and the reasons for missing ones."""

from __future__ import annotations

from haloscope import terminal
from haloscope.options.command import subcommand
from haloscope.options.hosts import starts_ranks
from haloscope.options.kinds import option


@subcommand(short_help="List MPI, CPU, devices, transports; reasons for missing ones.")
@option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@starts_ranks
def command(as_json: bool) -> None:
    """Show MPI, compilers, CPU and GPUs, and the devices, transports, schedules and apps that work here; for others,
    the reason.
    """
    from haloscope.measure import inventory
    from haloscope.report import info as report

    facts = inventory.gather()
    terminal.echo(terminal.json_text(facts) if as_json else report.markdown(facts))
