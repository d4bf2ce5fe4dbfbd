"""Options of output: record files, tables, figures, JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from haloscope import outputs
from haloscope.options.kinds import EXISTING_FILE, Decorator, FileName, of_output, option, options_of

JSON = of_output("--json", "as_json", is_flag=True, help="One JSON document instead of tables.")
RESUME = option("--resume", is_flag=True, help="Skip measurements that the record file already has.")


def record_file(name: str) -> Decorator:
    """Return the options of the file that records go to. name: part of the default file name."""
    return options_of(
        option("--output", type=FileName(), help=f"Record file. [results/scratch/{name}-TIME.jsonl]"), RESUME
    )


def recorded(help: str = "Show records of an earlier run.", **attributes: Any) -> Decorator:
    """Return the option for records that are shown instead of measuring."""
    return option("--from", "recorded", type=EXISTING_FILE, help=help, **attributes)


class PageName(FileName):
    """The name of a page to write, which replaces no file of another program."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return it as a Path. Raises UsageError for a file that haloscope did not write, before anything runs."""
        path = super().convert(value, param, ctx)
        outputs.refuse_foreign(path, outputs.PAGE)
        return path


PAGE = of_output(
    "--report",
    "page",
    type=PageName(),
    metavar="PAGE.html",
    help="Also write one page of figures, as haloscope report.",
)


def top(group: str) -> Decorator:
    """Return the option for the length of a table."""
    return option("--top", type=click.IntRange(1), default=10, group=group, help="Rows of the table. [10]")


DETAILS = options_of(
    of_output(
        "--trace",
        type=FileName(),
        help="Every operation and MPI call of all ranks in the last repetition, for Perfetto or chrome://tracing "
        "(one choice).",
    ),
    of_output("--timeline", is_flag=True, help="Show each rank's seconds by phase and MPI call, and blocked seconds."),
    of_output(
        "--components",
        is_flag=True,
        help="Show compute, memory, boundary, exchange and collectives over ranks, and every named timer.",
    ),
    of_output(
        "--statistic",
        type=click.Choice(["rank0", "min", "mean", "max", "all"]),
        help="Also show the phases, by this statistic over ranks.",
    ),
    of_output("--baseline", metavar="ID", help="Base of speed-ups. [bulk ordered/p2p depth 1]"),
)
