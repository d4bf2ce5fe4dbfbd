"""`haloscope run`: measure one app; lists and ranges make a space, every request in every launch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import click

from haloscope import errors, outputs, terminal
from haloscope.options.command import ChoiceOptions, subcommand
from haloscope.options.hosts import starts_ranks
from haloscope.options.measuring import MEASURING
from haloscope.options.output import DETAILS, record_file
from haloscope.options.request import app_of, measured_space
from haloscope.studies.schroeter2021 import partdiff
from haloscope.studies.valen2023 import flags as valen2023


@subcommand(
    short_help="Measure an app; lists and ranges make a space.", choice=ChoiceOptions(lists=True, usual={"ranks": "2"})
)
@click.argument("app")
@MEASURING
@record_file("APP")
@DETAILS
@valen2023.OPTIONS
@partdiff.OPTIONS
@starts_ranks
@click.pass_context
def command(context, app, **options):
    """Measure APP, one of the library (--help-all shows them) or of --program, and rank what was measured.

    \b
    haloscope run laplace2d --cells 2048x2048 --depth 1,2,4,8 --schedule bulk,split
    haloscope run advection3d --cells 64..256*2 --strategy 'ordered/*' --ranks 1,2
    haloscope run laplace2d -h 20000 -l 20000 -d 8 -i 100 -s 1      (the 2023 study's own flags)
    haloscope run poisson2d --partdiff "1 2 512 1 2 5000"           (the 2021 study's own program)

    Options take lists (1,2,4), ranges (64..512*2, 1..8+1) and globs. Records go to a JSON Lines file; a table, fastest
    first, to the terminal. Exit code 1 when a result is not byte-identical to `reference`, 2 when nothing asked for can
    work, 3 when this machine or MPI cannot do it.
    """
    from haloscope import records
    from haloscope.core import build
    from haloscope.measure import campaign, devices, space

    known = app_of(app, options)
    given = [name for name in options if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    options = valen2023.translated(options)
    options = partdiff.translated(app, options, given)
    planned = measured_space(known, options | {"device": devices.resolve(options["device"])})
    if options["trace"] and len(planned.requests) > 1:
        raise errors.UsageProblem("--trace writes one file, and this is a space; ask for one choice")
    if options["trace"]:
        outputs.refuse_foreign(options["trace"], outputs.TRACE)
    space.refuse_if_none_can_run(planned)
    _check_injection(options["inject"], planned)
    build.rank_program()  # is it there? asked before a record file is made
    _refuse_lacking(options["strategy"] or "")
    output = options["output"] or records.scratch(app)
    run = campaign.Campaign(
        planned,
        output,
        launches=options["launches"],
        seed=options["order_seed"],
        resume=options["resume"],
        watchdog_s=options["watchdog"],
        inject=options["inject"],
        what=app,
    )
    try:
        found = run.run()
    except (KeyboardInterrupt, errors.HaloscopeError):
        found = run.results() if output.is_file() else []
        if found:
            _report(found, options, output)
        raise
    _report(found, options, output)
    return campaign.exit_code(found)


def _check_injection(inject: str, planned) -> None:
    """Raise UsageProblem for a fault in a rank that some request does not have."""
    rank = re.search(r"\brank=(\d+)", inject)
    fewest = min(request.ranks for request in planned.requests)
    if rank and int(rank[1]) >= fewest:
        raise errors.UsageProblem(f"--inject names rank {rank[1]}, and ranks are 0 to {fewest - 1}; name one of these")


def _refuse_lacking(strategies: str) -> None:
    """A strategy requested by name must run; the campaign leaves out one that a glob found."""
    from haloscope.measure import lists, probes

    for strategy in lists.named_strategies(strategies) if strategies else ():
        reason = probes.lacking(strategy)
        if reason:
            raise errors.NotAvailable(f"{reason}; 'haloscope info' shows what works here")


def _show_components(table) -> None:
    from haloscope.report import components

    timed = [row for row in table if all("timers" in record for record in row.records)]
    if not timed:
        return terminal.echo("\nNothing was timed; use --timers on.")
    terminal.echo(f"\n### Components, ms per step\n\n{components.overview(timed)}")
    for row in timed:
        terminal.echo(f"\n### Timers of {row.id}, ms per step over ranks\n\n{components.timers(row.records)}")
        for line in components.counted(row.records):
            terminal.echo(f"\n{line}")
    return None


def _report(found: list[dict], options: Mapping, output: Path) -> None:
    from haloscope.records.rows import group_rows
    from haloscope.report import tables, timeline

    measured = [record for record in found if record["kind"] == "measurement"]
    if measured and (text := partdiff.own_report(measured[-1], options)):
        terminal.echo(text if options["find_precision"] else f"{text}\n\nrecords: {output}")
        return
    table = group_rows(found)
    if options["sparse"]:
        terminal.echo(tables.terse(table))
    elif table:
        terminal.echo(tables.ranking(table, tables.baseline(table, options["baseline"])))
        if options["statistic"]:
            terminal.echo("\n" + tables.phases(table, options["statistic"]))
        if options["components"]:
            _show_components(table)
        if options["timeline"]:
            for row in table:
                terminal.echo(f"\n### Timeline of {row.id}\n\n{timeline.summary(row.records)}")
    for record in measured[-1:] if options["work_blocks"] else []:
        terminal.echo(f"\n{partdiff.slow_table(record)}")
    for line in [*tables.refusals(found), *tables.networks(found)]:
        terminal.echo(f"\n{line}", err=bool(options["sparse"]))
    terminal.echo(f"\nrecords: {output}", err=bool(options["sparse"]))
