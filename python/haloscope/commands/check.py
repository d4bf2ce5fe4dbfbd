"""`haloscope check`: results of a user's own MPI program, compared on several numbers of ranks."""

from __future__ import annotations

from typing import Any

import click

from haloscope import errors, terminal
from haloscope.options.command import subcommand
from haloscope.options.comparison import COMPARED, RUNS
from haloscope.options.output import JSON


@subcommand(
    short_help="Compare results of your MPI program on 1, 2, 3, ... ranks.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("program", nargs=-1, required=True, metavar="-- PROGRAM [ARGS]...")
@COMPARED
@RUNS
@JSON
def command(program: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Run PROGRAM, with any MPI and without Haloscope, on several numbers of ranks and compare its results. With wrong
    halos, results depend on the number of ranks.

    \b
    haloscope check -- ./heat 512 512
    haloscope check --file 'u*.npy' --input heat.nml -- ./heat heat.nml
    haloscope check -n 1,4,8 --file u.raw --type f8 --shape 512x256 -- ./heat {px} {py}

    In ARGS, {ranks} is the number of ranks, {grid} a process grid such as 2x1, {px}, {py}, {pz} its parts, {here} this
    folder. Exit code 0 when all results are equal, 1 when some differ or a run failed.
    """
    from haloscope.measure.check import check
    from haloscope.report import check as report

    checked = check(program, options)
    terminal.echo(terminal.json_text(report.document(checked)) if as_json else report.markdown(checked))
    return errors.OK if checked.passed else errors.FAILED
