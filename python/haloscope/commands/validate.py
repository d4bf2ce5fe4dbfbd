"""`haloscope validate`: predictions against the records of measurements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from haloscope import errors, terminal
from haloscope.commands import external as external_command
from haloscope.options.command import subcommand
from haloscope.options.hosts import starts_ranks
from haloscope.options.kinds import FileName, option, options_of

EXTERNAL = options_of(
    option(
        "--external",
        type=click.Path(),
        metavar="FILE",
        help="Instead of RECORDS: a CSV file of exchanges that others have timed, see docs/external.md.",
    ),
    option(
        "--fit",
        "fitted_file",
        type=click.Path(),
        metavar="FILE",
        help="Fit costs to this CSV file, predict all of --external that is not in it. [a part of --external]",
    ),
    option(
        "--fit-on",
        multiple=True,
        metavar="AXIS=VALUE,...",
        help="Fit to rows that meet all such conditions (nodes=1 fields=1,4). [half of the cases]",
    ),
    option(
        "--holdout",
        multiple=True,
        metavar="AXIS=VALUE,...",
        help="Fit to all rows but those that meet all such conditions.",
    ),
    option(
        "--cross",
        multiple=True,
        metavar="AXIS",
        help="Also fit without each value of this axis in turn, and predict the rows that have it.",
    ),
    option(
        "--profiles",
        type=FileName(stem=True),
        metavar="STEM",
        group="output",
        help="With --external: write the fitted profiles as STEM-PROGRAM.json.",
    ),
    option(
        "--json", "as_json", is_flag=True, group="output", help="With --external: one JSON document instead of tables."
    ),
)


@subcommand(short_help="Predicted against measured: errors, coverage, order, regret of the pick.")
@click.argument("files", nargs=-1, type=click.Path(), metavar="RECORDS...")
@click.option("--profile", metavar="FILE|NAME", help="Machine profile: a JSON file or a shipped one.")
@click.option(
    "--samples",
    type=click.IntRange(0, 10_000),
    default=100,
    show_default=True,
    help="Draws of the profile's parameters for the intervals; 0 = none.",
)
@click.option(
    "--keep-intervals",
    is_flag=True,
    help="Write into the profile how far these measurements are off: its 90 % intervals from now on.",
)
@click.option(
    "-o",
    "--output",
    "stem",
    type=FileName(stem=True),
    metavar="STEM",
    help="Write STEM.md, and a plot of predicted against measured times as STEM.svg and STEM.png.",
)
@click.option(
    "--program",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Program with the app that the records are of, linked with haloscope::rank_main.",
)
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
