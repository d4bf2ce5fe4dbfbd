"""`haloscope demo`: run and compare the exchange strategies on this machine, in about a minute."""

from __future__ import annotations

import time
from pathlib import Path

import click

from haloscope import errors


@click.command(short_help="Compare the strategies on this machine, about a minute.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    help="Folder for records and figure.",
)
@click.option(
    "--from",
    "recorded",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Show the records of an earlier demo instead of measuring.",
)
@click.option("--launches", type=click.IntRange(1, 1000), help="Starts of the ranks. [4]")
@click.option("--cells3d", default="", metavar="XxYxZ", hidden=True)
@click.option("--cells2d", default="", metavar="XxY", hidden=True)
def command(output, recorded, launches, cells3d, cells2d):
    """Measure about two dozen choices for two apps on 2 ranks: schedules, patterns, transports, halo depths.

    Every choice is in every launch, in random order, and its result is compared byte for byte with the simplest
    correct exchange. Leaves the records and a figure (SVG and PNG) in out/demo.
    """
    from haloscope.measure import campaign, launch
    from haloscope.report import records
    from haloscope.studies import demo

    if recorded:
        _report(records.read(recorded).records, recorded, output)
        return 0
    begin = time.monotonic()
    cores = launch.cores()
    planned = demo.plan(cores, {"advection3d": cells3d, "laplace2d": cells2d})
    file = output / f"records-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
    run = campaign.Campaign(planned, file, launches=launches or demo.LAUNCHES, seed=int(begin), what="demo")
    found = run.run()
    _report(found, file, output)
    click.echo(f"took {time.monotonic() - begin:.0f} s")
    return campaign.exit_code(found)


def _report(found: list[dict], file: Path, folder: Path) -> None:
    from haloscope.report import figures, tables

    groups = {}
    for app in ("advection3d", "laplace2d"):
        table = tables.rows(r for r in found if r["request"]["app"] == app)
        base = tables.baseline(table)
        if base is None:
            raise errors.HaloscopeError(f"{app}: the choice that speed-ups refer to was not measured; see {file}")
        groups[app] = (table, base)
        where = f"{app}, {tables.cell(base.request['cells'])} cells, {base.request['ranks']} ranks"
        click.echo(f"\n### {where}, {_checked(table)}\n\n{tables.ranking(table, base)}")
    for line in tables.refusals(found):
        click.echo(f"\n{line}")
    title = _machine(next(r for r in found if r["kind"] == "measurement"))
    files = figures.demo(groups, title, folder / "demo")
    click.echo(f"\nrecords: {file}\nfigure:  {files[0]}, {files[1]}")


def _checked(table) -> str:
    passed = sum(row.verification == "passed" for row in table)
    return f"{passed} of {len(table)} choices byte-identical to `reference`"


def _machine(record: dict) -> str:
    e, launches = record["environment"], "medians over launches; comm-thread needs two threads per rank"
    mpi = " ".join(e["mpi_library"].split()).replace("Version: ", "")
    return f"{e.get('cpu', 'CPU')}, {e.get('cores', '?')} cores, {mpi}, {e['compiler']}; {launches}"
