"""`haloscope tune`: find the fastest choice for one grid by measuring few of them, in the order of the model."""

from __future__ import annotations

import math

import click

from haloscope import terminal
from haloscope.commands import run
from haloscope.options.command import ChoiceOptions, subcommand
from haloscope.options.hosts import starts_ranks
from haloscope.options.kinds import FileName, FiniteRange, option, options_of
from haloscope.options.request import app_of

USUAL = {"ranks": "2", "strategy": "*/*", "schedule": "*", "depth": "1,2,4,8", "substeps": "*"}
SEARCH = options_of(
    option("--profile", metavar="FILE|NAME", help="Machine profile that says what to try first. [random order]"),
    option(
        "--budget",
        type=FiniteRange(0, min_open=True),
        metavar="SECONDS",
        help="Time for the search. [a tenth of measuring everything, at most 60]",
    ),
    option(
        "--confirm",
        type=click.IntRange(0, 1000),
        default=5,
        group="measuring",
        help="Launches that the winner, the runner-up and the default are measured in again; 0 = none. [5]",
    ),
    option(
        "--exhaustive",
        is_flag=True,
        group="measuring",
        help="Measure all candidates too, and say what the choice lost.",
    ),
    option(
        "--timeout",
        type=FiniteRange(0),
        default=0.0,
        group="measuring",
        help="Seconds after which a candidate's launch is ended; 0: each is waited for. [0]",
    ),
    option("--seed", type=int, default=0, group="measuring", help="Seed of the random order. [0]"),
    option("--output", type=FileName(), help="Record file. [results/scratch/tune-APP-TIME.jsonl]"),
    option("--resume", is_flag=True, help="Take from the record file what it already holds."),
    option("--top", type=click.IntRange(1), default=10, group="output", help="Rows of the table. [10]"),
)


@subcommand(
    short_help="Find the fastest choice for one grid by measuring few.", choice=ChoiceOptions(lists=True, usual=USUAL)
)
@click.argument("app")
@SEARCH
@starts_ranks
def command(app, profile, budget, confirm, exhaustive, timeout, seed, output, resume, top, **options):
    """Find the fastest halo exchange of APP for one grid on this machine.

    \b
    haloscope tune advection3d --cells 96 --ranks 2 --profile machine.json
    haloscope tune laplace2d --cells 1024 --strategy 'ordered/*' --budget 60 --output tune.jsonl
    haloscope tune laplace2d --cells 1024 --strategy 'ordered/*' --output tune.jsonl --resume

    Candidates are tried in the order of the model, many for a short time, then the fastest for longer. Each runs in a
    launch of its own, and its result is compared with `reference`; one that fails is left out with the reason.
    Finally the winner, the runner-up and plain `ordered/p2p` bulk depth 1 are measured again, interleaved.
    """
    from haloscope import records
    from haloscope.advice import tuning
    from haloscope.core import build
    from haloscope.measure import devices, isolated
    from haloscope.model import profile as profiles
    from haloscope.report import tune as report

    machine = profiles.load(profile) if profile else None
    options["device"] = devices.resolve(options["device"])
    options["reorder"] = options["reorder"] or tuning.usual_orders(options["nodes"])
    planned = plan_space(app_of(app, options), options)
    build.rank_program()  # is it there? asked before a record file is made
    measurer = isolated.Isolated(output or records.scratch(f"tune-{app}"), timeout or math.inf, resume)
    tuned = tuning.tune(planned, machine, measurer, budget, confirm, exhaustive, seed)
    terminal.echo(f"{report.markdown(tuned, top)}\n\nrecords: {measurer.output}")


def plan_space(app, options: dict):
    """Return the candidates, illegal ones set aside. Raises UsageProblem when there are none, or two grids."""
    from haloscope.advice import tuning
    from haloscope.measure import space

    planned = tuning.candidates(run.plan_space(app, options | {"steps": None, "seconds": None}), options)
    space.refuse_if_none_can_run(planned)
    return tuning.on_own_cores(planned)
