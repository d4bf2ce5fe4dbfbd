"""`haloscope validate`: predictions against the records of measurements."""

from __future__ import annotations

from typing import Any

import click

from haloscope import terminal
from haloscope.commands import external as external_command
from haloscope.options.command import subcommand
from haloscope.options.external import EXTERNAL, refuse_mixed
from haloscope.options.hosts import starts_ranks
from haloscope.options.output import PAGE
from haloscope.options.validation import VALIDATED


@subcommand(short_help="Compare predictions with records: errors, coverage, regret.")
@click.argument("files", nargs=-1, type=click.Path(), metavar="RECORDS...")
@VALIDATED
@EXTERNAL
@PAGE
@starts_ranks
def command(**options: Any) -> None:
    """Compare the times in record files with a machine profile's predictions for the same choices.

    \b
    haloscope run advection3d --cells 64,128 --strategy 'ordered/*' --output records.jsonl
    haloscope validate records.jsonl --profile machine.json -o out/validation
    haloscope validate records.jsonl --profile machine.json --keep-intervals
    haloscope validate --external theirs.csv --holdout nodes=64 --cross halo

    Errors are predicted over measured, minus 1; regret is the measured time of the model's pick over the best of its
    case. Records without a prediction are counted by reason. Times of kernels of three sizes are compared with a line.

    With --external, others timed the exchanges: costs are fitted to a part of them, and the rest is predicted.
    """
    from haloscope import records
    from haloscope.advice import validate as model
    from haloscope.measure import programs
    from haloscope.model.profile import load
    from haloscope.report import validate as report
    from haloscope.report.page import write_requested

    refuse_mixed(options)
    if options["external"]:
        external_command.validate(options)
        return
    machine, stem, keeps = load(profile := options["profile"]), options["stem"], options["keep_intervals"]
    if keeps:
        model.refuse_shipped(profile)
    report.refuse_foreign(stem)
    programs.use_for(measured := records.read_together(options["files"]), options["program"])
    found = model.validate(measured, machine, options["samples"])
    terminal.echo(text := report.markdown(found, machine, measured))
    if keeps:
        terminal.echo(f"\n{report.kept(model.keep(found.pairs, machine, profile), profile)}")
    if stem:
        terminal.echo(f"\nwritten: {', '.join(map(str, report.write(text, found, stem)))}")
    write_requested(options["page"], measured, machine)
