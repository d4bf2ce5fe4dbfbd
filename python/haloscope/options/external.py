"""Options for exchanges timed by others: the rows that costs are fitted to, and the output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from haloscope.errors import UsageError
from haloscope.options.kinds import FileName, of_output, option, options_of

EXTERNAL = options_of(
    option(
        "--external",
        type=click.Path(),
        metavar="FILE",
        help="Instead of RECORDS: a CSV file of exchanges timed by others, see docs/understand/external.md.",
    ),
    option(
        "--fit",
        "fitted_file",
        type=click.Path(),
        metavar="FILE",
        help="Fit costs to this CSV file, and predict the rows of --external that it lacks. [a part of --external]",
    ),
    option(
        "--fit-on",
        multiple=True,
        metavar="AXIS=VALUE,...",
        help="Fit to rows that meet all conditions (nodes=1 fields=1,4). [half of the cases]",
    ),
    option(
        "--holdout",
        multiple=True,
        metavar="AXIS=VALUE,...",
        help="Fit to all rows except rows that meet all conditions.",
    ),
    option(
        "--cross",
        multiple=True,
        metavar="AXIS",
        help="For each value of this axis, also fit to the other rows and predict the rows with it.",
    ),
    of_output(
        "--profiles", type=FileName(stem=True), help="With --external: write the fitted profiles as STEM-PROGRAM.json."
    ),
    of_output("--json", "as_json", is_flag=True, help="With --external: one JSON document instead of tables."),
)
OTHER_NAMES = {"fitted_file": "--fit", "as_json": "--json"}  # of options whose parameters have other names


def refuse_mixed(options: Mapping[str, Any]) -> None:
    """Raise UsageError where options of records and of --external are mixed, or a required one is missing.

    options: of `haloscope validate`, in the order of the command line.
    """
    of_records = ("files", "profile", "program", "keep_intervals")
    if options["external"]:
        if any(options[name] for name in of_records):
            unused = "RECORDS, --profile, --program and --keep-intervals"
            raise UsageError(f"--external fits a profile itself; remove {unused}")
        return
    others = [name for name, value in options.items() if value and name not in (*of_records, "samples", "stem")]
    if others:
        name = OTHER_NAMES.get(others[0], "--" + others[0].replace("_", "-"))
        raise UsageError(f"{name} belongs to --external; add --external FILE, or remove {name}")
    if not options["files"]:
        raise UsageError("no records are named; pass record files, or --external FILE")
    if not options["profile"]:
        raise UsageError("predictions need a machine profile; pass the one of the records with --profile")
