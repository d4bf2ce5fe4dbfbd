"""`haloscope validate`: predictions against the records of measurements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from haloscope import errors, terminal
from haloscope.commands import external as external_command
from haloscope.options.command import subcommand
from haloscope.options.external import EXTERNAL
from haloscope.options.hosts import starts_ranks
from haloscope.options.kinds import FileName, option
from haloscope.options.machine import profile, samples
from haloscope.options.request import program


@subcommand(short_help="Predicted against measured: errors, coverage, order, regret of the pick.")
@click.argument("files", nargs=-1, type=click.Path(), metavar="RECORDS...")
@profile(required=False)
@samples("everyday")
@option(
    "--keep-intervals",
    is_flag=True,
    help="Write into the profile how far these measurements are off: its 90 % intervals from now on.",
)
@option(
    "-o",
    "--output",
    "stem",
    type=FileName(stem=True),
    metavar="STEM",
    help="Write STEM.md, and a plot of predicted against measured times as STEM.svg and STEM.png.",
)
@program(help="Program with the app that the records are of, linked with haloscope::rank_main.")
@EXTERNAL
@starts_ranks
def command(files, profile, samples, keep_intervals, stem, program, external, **others):
    """Compare the times in record files with what a machine profile predicts for the same choices.

    \b
    haloscope run advection3d --cells 64,128 --strategy 'ordered/*' --output records.jsonl
    haloscope validate records.jsonl --profile machine.json -o out/validation
    haloscope validate records.jsonl --profile machine.json --keep-intervals
    haloscope validate --external theirs.csv --holdout nodes=64 --cross halo
    haloscope validate --external theirs.csv --fit part.csv

    Errors are predicted over measured, less 1. Regret is the measured time of the model's pick over the measured best
    of the same case. Records without a prediction are counted with the reason; the exit code stays 0. Kernels that were
    measured at three sizes or more are held against one line: where a time leaves it, the kernel is worth a look.

    With --external, exchanges that others have timed: costs of the network, of packing and of the memory are fitted to
    a part of them, and the rest is predicted. RECORDS and --profile are then not given.
    """
    given = [name for name, value in others.items() if value]
    if external:
        if files or profile or program or keep_intervals:
            raise errors.UsageProblem(
                "--external fits its own profile; leave out RECORDS, --profile, --program and --keep-intervals"
            )
        external_command.validate(external, stem=stem, **others)
        return
    if given:
        option_name = {"fitted_file": "--fit", "as_json": "--json"}.get(given[0], "--" + given[0].replace("_", "-"))
        raise errors.UsageProblem(f"{option_name} belongs to --external; give --external FILE, or leave it out")
    if not files:
        raise errors.UsageProblem("give record files, or --external FILE")
    if not profile:
        raise errors.UsageProblem("give the machine profile of the records with --profile")
    _validate(files, profile, samples, keep_intervals, stem, program)


def _validate(
    files: Sequence[str], profile: str, samples: int, keep_intervals: bool, stem: Path | None, program: Path | None
) -> None:
    from haloscope import records
    from haloscope.advice import validate as model
    from haloscope.measure import programs
    from haloscope.model import profile as profiles
    from haloscope.report import validate as report

    machine = profiles.load(profile)
    if keep_intervals:
        model.refuse_shipped(profile)
    if stem:
        report.refuse_foreign(stem)
    measured = records.read_together(files)
    if program:
        programs.use_for(measured, program)
    found = model.validate(measured, machine, samples)
    text = report.markdown(found, machine, measured)
    terminal.echo(text)
    if keep_intervals:
        terminal.echo(f"\n{report.kept(model.keep(found.pairs, machine, profile), profile)}")
    if stem:
        terminal.echo(f"\nwritten: {', '.join(map(str, report.write(text, found, stem)))}")
