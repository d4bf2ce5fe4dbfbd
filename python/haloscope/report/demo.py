"""The report of `haloscope demo`: a table for each app and grid, a figure, and advice for this machine."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from haloscope.errors import UsageError
from haloscope.records.rows import Row, group_rows
from haloscope.records.text import cell, machine_of, mpi_of
from haloscope.report import conclusion, tables
from haloscope.report.conclusion import Group

FIGURE = "demo"  # name of its files
NEXT = (
    "Next: `haloscope run APP --cells ...` measures your grid; after `haloscope calibrate -o machine.json`, "
    "`haloscope advise` predicts the best choice for any number of ranks and `haloscope tune` searches for it."
)


def texts(found: Sequence[dict], file: Path, folder: Path) -> Iterator[str]:
    """Yield the tables, the reasons why choices did not run, and the advice; write the figure to a folder.

    Raises as `groups_of` does. file: the file of the records.
    """
    groups = []
    for group in groups_of(found, file):
        yield section(*group)
        groups.append(group)
    yield from tables.refusals(found)

    from haloscope.report import figures  # with Matplotlib, which takes long to import

    drawn = figures.demo(groups, _machine(next(r for r in found if r["kind"] == "measurement")), folder / FIGURE)
    words = f"{conclusion.conclude(groups)}\n\n{NEXT}"
    yield f"{words}\n\nrecords: {file}\nfigure:  {drawn[0]}, {drawn[1]}"


def groups_of(found: Sequence[dict], file: Path) -> Iterator[Group]:
    """Yield for each app and grid its rows and the row that speed-ups refer to.

    Raises UsageError for records of `file` without measurements, and for a grid without that row.
    """
    if not any(r["kind"] == "measurement" for r in found):
        raise UsageError(f"{file} holds no measurements; pass records of haloscope demo")
    for table in _tables_by_grid(found):
        base = tables.baseline(table)
        if base is None:
            grid = cell(table[0].request["cells"])
            fault = f"{grid}: the choice that speed-ups refer to was not measured"
            raise UsageError(f"{fault}; see {file}, and measure again")
        yield table, base


def _tables_by_grid(found: Sequence[dict]) -> list[list[Row]]:
    """Return a table for each app and grid: 3D before 2D, the small grid before the large one."""
    groups = defaultdict(list)
    for record in found:
        if record["kind"] == "measurement":
            cells = record["request"]["cells"]
            groups[-len(cells), math.prod(cells), record["request"]["app"]].append(record)
    return [group_rows(groups[key]) for key in sorted(groups)]


def section(table: Sequence[Row], base: Row) -> str:
    """Return the table of a grid under its heading."""
    where = f"{base.request['app']}, {cell(base.request['cells'])} cells, {base.request['ranks']} ranks"
    passed = sum(row.verification == "passed" for row in table)
    checked = f"{passed} of {len(table)} choices byte-identical to `reference`"
    return f"### {where}, {checked}\n\n{tables.ranking(table, base)}"


def _machine(record: dict) -> str:
    e = record["environment"]
    return f"{machine_of(e)}, {mpi_of(e)}, {e['compiler']}; medians over launches"
