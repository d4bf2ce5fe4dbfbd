"""`haloscope doctor`: checks of MPI, memory and devices on this allocation, with remedies."""

from __future__ import annotations

import click

from haloscope import errors, terminal
from haloscope.options.command import subcommand
from haloscope.options.hosts import starts_ranks
from haloscope.options.kinds import option

MOST_RANKS = 4  # started by default: enough for neighbours on both sides


@subcommand(short_help="Check MPI, memory and devices of this allocation; with remedies.")
@option("--ranks", "-n", type=click.IntRange(1, 1024), detailed=True, help="Ranks to start. [cores, up to 4]")
@option("--device", metavar="NAME", help="Device to try: auto, cuda, hip, host (imitated). [a GPU, if available]")
@option("--json", "as_json", is_flag=True, help="Print one JSON list of checks.")
@starts_ranks
def command(ranks: int | None, device: str | None, as_json: bool) -> int:
    """Try this allocation: launcher, pinning, shared memory, huge pages, clocks, MPI functions, devices, messages.

    \b
    ok        tried, and it works
    warning   it works, but slowly or not everything
    broken    wrong values, a crash, a hang, or ranks that do not find each other
    not here  could not be tried, for the reason in the row

    Every row has the finding and its remedy. Exit code 1 when something is broken. Details: docs/use/doctor.md.
    """
    from haloscope.bridge import build
    from haloscope.measure import devices, doctor, launch, progress
    from haloscope.report import doctor as report

    build.rank_program()  # all checks need this program and mpiexec
    launch.mpiexec()
    if device:
        devices.default_device(device)
    planned = doctor.plan(ranks or min(launch.cores(), MOST_RANKS), device or "")
    checks: list[doctor.Check] = []
    with progress.Line(len(planned), "doctor") as line:
        for name, examination in planned.items():
            checks += doctor.carry_out(name, examination)
            line.step(name)
    terminal.echo(terminal.json_text(report.document(checks)) if as_json else report.markdown(checks))
    return errors.FAILED if any(check.verdict == doctor.BROKEN for check in checks) else errors.OK
