"""`haloscope plan`: messages and program of one exchange, for any number of ranks, without MPI."""

from __future__ import annotations

from typing import Any

import click

from haloscope import terminal
from haloscope.options.command import ChoiceOptions, subcommand
from haloscope.options.kinds import option
from haloscope.options.output import JSON
from haloscope.options.request import APP, app_of, one_choice


@subcommand(
    short_help="Neighbours, messages, bytes and program for any rank count.", choice=ChoiceOptions(usual={"ranks": "1"})
)
@APP
@option("--rank", type=click.IntRange(0, 2**31 - 1), default=0, help="The rank whose messages are shown. [0]")
@option("--steps", type=click.IntRange(1), group="schedule", help="Steps of the program, if fewer than the depth.")
@JSON
def command(app: str, rank: int, steps: int | None, as_json: bool, **options: Any) -> None:
    """Show the blocks of APP and the messages of its exchanges; with --schedule or --device also the program.

    \b
    haloscope plan advection3d --cells 64 --ranks 8 --depth 2
    haloscope plan laplace2d --cells 8192x8192 --ranks 2048 --rank 17 --schedule split
    haloscope plan laplace2d --cells 64 --ranks 2 --device cuda --schedule streams
    """
    from haloscope.report import plan

    completed = dict(options)
    completed["ranks"] = completed["ranks"] or "1"
    if not completed["device"] and completed["threads"] is None:
        completed["threads"] = "2"  # comm-thread needs two
    choice = one_choice(app_of(app, completed), completed)
    with_program = bool(options["schedule"] or choice.device)
    document = plan.describe(choice, rank, with_program, **({"steps": steps} if steps else {}))
    terminal.echo(terminal.json_text(document) if as_json else plan.markdown(document))


if __name__ == "__main__":
    command()
