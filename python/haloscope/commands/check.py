"""`haloscope check`: a user's own MPI program on several numbers of ranks; which is the first that gives other
results.
"""

from __future__ import annotations

from pathlib import Path

import click

from haloscope import errors, terminal
from haloscope.options.command import subcommand
from haloscope.options.kinds import FiniteRange, option


@subcommand(
    short_help="Your own MPI program on 1, 2, 3, ... ranks: are its results the same?",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("program", nargs=-1, required=True, metavar="-- PROGRAM [ARGS]...")
@option(
    "--ranks", "-n", default="1,2,3,4,6", metavar="LIST", help="Numbers of ranks; the first is the base. [1,2,3,4,6]"
)
@option(
    "--file",
    "files",
    multiple=True,
    metavar="PATTERN",
    help="Compare these files that it writes, instead of what it prints; may be repeated.",
)
@option("--printed", is_flag=True, help="With --file: compare what it prints, too.")
@option("--type", type=click.Choice(["f8", "f4", "i4", "i8"]), help="What raw binary files hold.")
@option("--shape", metavar="XxYxZ", help="Points of raw binary files, x contiguous.")
@option("--numbers-only", is_flag=True, help="Of texts, compare the numbers alone.")
@option("--ignore", multiple=True, metavar="REGEX", help="Leave out lines in which this occurs; may be repeated.")
@option(
    "--relative", type=FiniteRange(min=0), default=0.0, metavar="X", help="Relative difference allowed. [0: every bit]"
)
@option("--absolute", type=FiniteRange(min=0), default=0.0, metavar="X", help="Absolute difference allowed. [0]")
@option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Copy this file or folder into each working folder; may be repeated.",
)
@option(
    "--timeout",
    type=FiniteRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="A run that takes longer is ended; 0: each is waited for. [0]",
)
@option("--mpiexec", metavar="PATH", help="The mpiexec of the program's own MPI. [the one of 'haloscope info']")
@option(
    "--process-grid",
    default="cubic",
    metavar="RULE",
    group="grid",
    help="What {grid}, {px}, {py}, {pz} stand for: cubic, square, prime-factors, slabs. [cubic]",
)
@option("--dims", type=click.IntRange(1, 3), default=2, group="grid", help="Dimensions of {grid}. [2]")
@option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    group="output",
    help="Keep working folders and output here; it must not exist, or be empty.",
)
@option("--json", "as_json", is_flag=True, group="output", help="One JSON document instead of a table.")
def command(program, as_json, **options):
    """Run PROGRAM, with any MPI and without Haloscope, on several numbers of ranks and compare its results. Wrong halos
    show as results that depend on the number of ranks.

    \b
    haloscope check -- ./heat 512 512
    haloscope check --file 'u*.npy' --input heat.nml -- ./heat heat.nml
    haloscope check -n 1,4,8 --file u.raw --type f8 --shape 512x256 -- ./heat {px} {py}

    In ARGS, {ranks} is the number of ranks, {grid} a process grid as 2x1, {px}, {py}, {pz} its parts, {here} this
    folder. Exit code 0 when all results are equal, 1 when some differ or a run failed.
    """
    from haloscope.measure.check import check
    from haloscope.report import check as report

    checked = check(program, options)
    terminal.echo(terminal.json_text(report.document(checked)) if as_json else report.markdown(checked))
    return errors.OK if checked.passed else errors.FAILED
