"""`haloscope run`: measure one app; lists and ranges make a space, every request in every launch."""

from __future__ import annotations

from typing import Any

import click

from haloscope import terminal
from haloscope.options.command import ChoiceOptions, named_options, subcommand
from haloscope.options.hosts import maps_ranks, starts_ranks
from haloscope.options.measuring import MEASURING
from haloscope.options.output import DETAILS, PAGE, record_file
from haloscope.options.request import APP, app_of, measured_space
from haloscope.studies import run_flags


@subcommand(
    short_help="Measure an app; lists and ranges make a space.",
    choice=ChoiceOptions(lists=True, usual={"ranks": "2"}),
    epilog=run_flags.examples(),
)
@APP
@MEASURING
@record_file("APP")
@DETAILS
@PAGE
@run_flags.add_options
@starts_ranks
@maps_ranks
@click.pass_context
def command(context: click.Context, /, app: str, **options: Any) -> int:
    """Measure APP and rank the results. APP is in the library (--help-all lists them) or in your --program.

    \b
    haloscope run laplace2d --cells 2048x2048 --depth 1,2,4,8 --schedule bulk,split
    haloscope run advection3d --cells 64..256*2 --strategy 'ordered/*' --ranks 1,2

    Options take lists (1,2,4), ranges (64..512*2, 1..8+1) and globs. Records go to a JSON Lines file; a table, fastest
    first, to the terminal. Exit code 1: bytes differ from `reference`; 2: no choice is legal; 3: none is supported.
    """
    from haloscope import records
    from haloscope.measure import campaign, run_request

    known, options = app_of(app, options), run_flags.translate(app, options, named_options(context))
    run_request.refuse_unfit(planned := measured_space(known, options), options)
    output = options["output"] or records.scratch(app)

    def show(found: list[dict]) -> None:
        from haloscope.report import page
        from haloscope.report import run as report  # imports NumPy, which is slow and which measuring does not need

        own = run_flags.report(found, options, output)
        for text in (*([] if own.replaces else report.texts(found, options)), *own.texts):
            terminal.echo(text)
        for text in [] if own.replaces == run_flags.ALL else report.notes(found, output):
            terminal.echo(text, err=bool(own.replaces))
        page.write_requested(options["page"], found, err=bool(own.replaces))

    return campaign.exit_code(run_request.campaign_of(planned, output, options, app).run_showing(show))
