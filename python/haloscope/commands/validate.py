"""`haloscope validate`: predictions against the records of measurements."""

from __future__ import annotations

from typing import Any

import click

from haloscope import terminal
from haloscope.commands import external as external_command
from haloscope.options.command import subcommand
from haloscope.options.external import EXTERNAL, refuse_mixed
from haloscope.options.hosts import starts_ranks
from haloscope.options.validation import VALIDATED


@subcommand(short_help="Compare predictions with records: errors, coverage, regret.")
@click.argument("files", nargs=-1, type=click.Path(), metavar="RECORDS...")
@VALIDATED
@EXTERNAL
@starts_ranks
def command(**options: Any) -> None:
    """Compare the times in record files with a machine profile's predictions for the same choices.

    \b
    haloscope run advection3d --cells 64,128 --strategy 'ordered/*' --output records.jsonl
    haloscope validate records.jsonl --profile machine.json -o out/validation
    haloscope validate records.jsonl --profile machine.json --keep-intervals
    haloscope validate --external theirs.csv --holdout nodes=64 --cross halo
    haloscope validate --external theirs.csv --fit part.csv

    Errors are predicted over measured, minus 1. Regret is the measured time of the model's recommendation over the
    measured best of the same case. Records without a prediction are counted with the reason; the exit code stays 0.
    Times of kernels that were measured at three sizes or more are compared with a line; departures are reported.

    With --external, the exchanges were timed by others: costs of the network, of packing and of the memory are fitted
    to a part of them, and the rest is predicted. RECORDS and --profile are then omitted.
    """
    from haloscope import records
    from haloscope.advice import validate as model
    from haloscope.measure import programs
    from haloscope.model.profile import load
    from haloscope.report import validate as report

    refuse_mixed(options)
    if options["external"]:
        external_command.validate(options)
        return
    machine, stem, keeps = load(profile := options["profile"]), options["stem"], options["keep_intervals"]
    if keeps:
        model.refuse_shipped(profile)
    if stem:
        report.refuse_foreign(stem)
    programs.use_for(measured := records.read_together(options["files"]), options["program"])
    found = model.validate(measured, machine, options["samples"])
    terminal.echo(text := report.markdown(found, machine, measured))
    if keeps:
        terminal.echo(f"\n{report.kept(model.keep(found.pairs, machine, profile), profile)}")
    if stem:
        terminal.echo(f"\nwritten: {', '.join(map(str, report.write(text, found, stem)))}")
