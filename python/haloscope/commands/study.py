"""`haloscope study`: run one published experiment and compare its published figures with the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from haloscope import errors, studies, terminal
from haloscope.guests import ABSENT
from haloscope.options.hosts import maps_ranks, starts_ranks
from haloscope.options.kinds import option
from haloscope.options.study import CHANGES, RECORDS

NAMES = studies.names()


@click.command(
    short_help="Published experiments, their figures next to new ones" + ("." if NAMES else ": none installed."),
    epilog=f"Studies: {', '.join(NAMES)}." if NAMES else f"No study is installed: {ABSENT}.",
)
@click.argument(
    "name",
    required=False,
    shell_complete=lambda _context, _parameter, text: [name for name in NAMES if name.startswith(text)],
)
@option("--quick", is_flag=True, help="A minute or two on this machine instead of the study's own sizes.")
@CHANGES
@RECORDS
@starts_ranks
@maps_ranks
def command(name: str | None, recorded: tuple[Path, ...], slurm: Path | None, replay: bool, **changes: Any) -> int:
    """Run the study NAME: measure, verify, and print its tables. Without a name, list the studies.

    Without --quick the study's own sizes and repetitions are used, which takes hours. --replay needs neither a cluster
    nor MPI; it ends with code 1 when a result misses its bar and no documented reason explains it.
    """
    from haloscope import records
    from haloscope.measure import campaign
    from haloscope.studies import running

    if name is None:
        terminal.echo(running.listing())
        return errors.OK
    study = running.find_study(name)
    quick, output, resume, page, figures = map(changes.pop, ("quick", "output", "resume", "page", "figures"))
    if replay:
        replayed = running.replay(study, name)
        terminal.echo(f"# {study.SUMMARY}\n\n{replayed.text}\n\n{replayed.conclusion()}")
        return errors.FAILED if replayed.surprises else errors.OK
    options, found = running.options_and_records(study, name, quick, changes, recorded)
    if slurm or figures:
        terminal.echo(running.write_files(study, name, options, found, recorded, jobs=slurm, figures=figures))
        return errors.OK
    file = recorded[0] if recorded else output or records.scratch(name)
    found = found if recorded else running.measure(study, name, options, file, resume)
    for text in running.report(study, found, options, file, measured=not recorded, page=page):
        terminal.echo(text)
    return campaign.exit_code(found)
