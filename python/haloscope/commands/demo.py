"""`haloscope demo`: run and compare the exchange strategies on this machine, in about a minute."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from pathlib import Path

import click

from haloscope import errors, outputs, terminal
from haloscope.options import command as command_of
from haloscope.options import starts_ranks
from haloscope.records.text import cell

FIGURE = "demo"  # name of its files
NEXT = (
    "Next: `haloscope run APP --cells ...` measures your grid; after `haloscope calibrate -o machine.json`, "
    "`haloscope advise` predicts the best choice for any number of ranks and `haloscope tune` searches for it."
)


@command_of(short_help="Compare the strategies on this machine, about a minute.")
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
@click.option("--launches", type=click.IntRange(1, 1000), help="Starts of the ranks. [8]")
@click.option("--cells", default="", metavar="XxYxZ,XxY,XxY", hidden=True)
@starts_ranks
def command(output, recorded, launches, cells):
    """Measure about two dozen choices on 2 ranks: patterns, transports, schedules and halo depths, on a small 3D grid,
    a small 2D grid and a large 2D grid. Ends with what to use here, as far as the measurements can tell.

    Every choice is in every launch, in random order, and its result is compared byte for byte with the simplest
    correct exchange. Leaves the records and a figure (SVG and PNG) in out/demo.
    """
    from haloscope import records
    from haloscope.commands.run import refuse_if_none_can_run
    from haloscope.measure import campaign, launch
    from haloscope.studies import demo

    if recorded:
        _report(records.read_aloud(recorded).records, recorded, output)
        return 0
    outputs.refuse_foreign_figure(output / FIGURE)
    cores, begin = launch.cores(), time.monotonic()
    if cores < demo.RANKS:
        raise errors.NotAvailable(f"the demo gives each of {demo.RANKS} ranks a core, and this process may use {cores}")
    sizes = cells.split(",") if cells else ()
    if sizes and len(sizes) != len(demo.GROUPS):
        raise errors.UsageProblem(f"--cells '{cells}' is not one grid for each of the {len(demo.GROUPS)} comparisons")
    planned = demo.plan(cores, sizes)
    refuse_if_none_can_run(planned)
    file = output / f"records-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
    run = campaign.Campaign(planned, file, launches=launches or demo.LAUNCHES, seed=int(begin), what="demo")
    found = run.run()
    _report(found, file, output)
    terminal.echo(f"took {time.monotonic() - begin:.0f} s")
    return campaign.exit_code(found)


def _report(found: list[dict], file: Path, folder: Path) -> None:
    from haloscope.report import conclusion, figures, tables

    groups = []
    if not any(r["kind"] == "measurement" for r in found):
        raise errors.UsageProblem(f"{file} holds no measurements; give records of haloscope demo")
    for table in _tables_by_grid(found):
        base = tables.baseline(table)
        if base is None:
            grid = cell(table[0].request["cells"])
            raise errors.UsageProblem(
                f"{grid}: the choice that speed-ups refer to was not measured; see {file}, and measure again"
            )
        groups.append((table, base))
        where = f"{base.request['app']}, {cell(base.request['cells'])} cells, {base.request['ranks']} ranks"
        terminal.echo(f"\n### {where}, {_checked(table)}\n\n{tables.ranking(table, base)}")
    for line in tables.refusals(found):
        terminal.echo(f"\n{line}")
    title = _machine(next(r for r in found if r["kind"] == "measurement"))
    files = figures.demo(groups, title, folder / FIGURE)
    terminal.echo(f"\n{conclusion.conclude(groups)}\n\n{NEXT}")
    terminal.echo(f"\nrecords: {file}\nfigure:  {files[0]}, {files[1]}")


def _tables_by_grid(found: list[dict]) -> list:
    """Return a table for each app and grid: 3D before 2D, the small grid before the large one."""
    from haloscope.records.rows import group_rows

    groups = defaultdict(list)
    for record in found:
        if record["kind"] == "measurement":
            cells = record["request"]["cells"]
            groups[-len(cells), math.prod(cells), record["request"]["app"]].append(record)
    return [group_rows(groups[key]) for key in sorted(groups)]


def _checked(table) -> str:
    passed = sum(row.verification == "passed" for row in table)
    return f"{passed} of {len(table)} choices byte-identical to `reference`"


def _machine(record: dict) -> str:
    e = record["environment"]
    mpi = " ".join(e["mpi_library"].split()).replace("Version: ", "")
    return f"{e.get('cpu', 'CPU')}, {e.get('cores', '?')} cores, {mpi}, {e['compiler']}; medians over launches"
