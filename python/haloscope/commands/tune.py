"""`haloscope tune`: find the fastest choice for one grid by measuring few of them, in the order of the model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from haloscope import terminal
from haloscope.options.command import ChoiceOptions, subcommand
from haloscope.options.hosts import starts_ranks
from haloscope.options.output import PAGE, record_file, top
from haloscope.options.request import APP, app_of, measured_space
from haloscope.options.search import SEARCH

USUAL = {"ranks": "2", "strategy": "*/*", "schedule": "*", "depth": "1,2,4,8", "substeps": "*"}


@subcommand(
    short_help="Find the fastest choice for one grid by measuring few.", choice=ChoiceOptions(lists=True, usual=USUAL)
)
@APP
@SEARCH
@record_file("tune-APP")
@top("output")
@PAGE
@starts_ranks
def command(app: str, profile: str | None, top: int, page: Path | None, **options: Any) -> None:
    """Find the fastest halo exchange of APP for one grid on this machine.

    \b
    haloscope tune advection3d --cells 96 --ranks 2 --profile machine.json
    haloscope tune laplace2d --cells 1024 --strategy 'ordered/*' --budget 60 --output tune.jsonl
    haloscope tune laplace2d --cells 1024 --strategy 'ordered/*' --output tune.jsonl --resume

    Candidates are tried in the order of the model, many for a short time, then the fastest for longer. Each runs in a
    separate launch, and its result is compared with `reference`; one that fails is excluded, with the reason.
    Finally the winner, the runner-up and plain `ordered/p2p` bulk depth 1 are measured again, interleaved.
    """
    from haloscope import records
    from haloscope.advice import tuning
    from haloscope.bridge import build
    from haloscope.measure import isolated
    from haloscope.model import profile as profiles
    from haloscope.report import tune as report
    from haloscope.report.page import write_requested

    machine = profiles.load(profile) if profile else None
    options["reorder"] = options["reorder"] or tuning.usual_orders(options["nodes"])
    planned = tuning.plan(measured_space(app_of(app, options), options), options)
    build.rank_program()  # before a record file is made
    output, timeout = options["output"] or records.scratch(f"tune-{app}"), options["timeout"] or math.inf
    measurer = isolated.Isolated(output, timeout, options["resume"])
    budget, confirm = options["budget"], options["confirm"]
    tuned = tuning.tune(planned, machine, measurer, budget, confirm, options["exhaustive"], options["seed"])
    terminal.echo(f"{report.markdown(tuned, top)}\n\nrecords: {measurer.output}")
    if page:
        write_requested(page, records.read(measurer.output).records, machine)
