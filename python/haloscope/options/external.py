"""Options of exchanges that others have timed: which of them costs are fitted to, and what is written."""

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
        help="Instead of RECORDS: a CSV file of exchanges that others have timed, see docs/understand/external.md.",
    ),
    option(
        "--fit",
        "fitted_file",
        type=click.Path(),
        metavar="FILE",
        help="Fit costs to this CSV file, predict all of --external that is not in it. [a part of --external]",
    ),
    option(
        "--fit-on",
        multiple=True,
        metavar="AXIS=VALUE,...",
        help="Fit to rows that meet all such conditions (nodes=1 fields=1,4). [half of the cases]",
    ),
    option(
        "--holdout",
        multiple=True,
        metavar="AXIS=VALUE,...",
        help="Fit to all rows but those that meet all such conditions.",
    ),
    option(
        "--cross",
        multiple=True,
        metavar="AXIS",
        help="Also fit without each value of this axis in turn, and predict the rows that have it.",
    ),
    of_output(
        "--profiles", type=FileName(stem=True), help="With --external: write the fitted profiles as STEM-PROGRAM.json."
    ),
    of_output("--json", "as_json", is_flag=True, help="With --external: one JSON document instead of tables."),
)
OTHER_NAMES = {"fitted_file": "--fit", "as_json": "--json"}  # of options whose parameters are called otherwise


def refuse_mixed(options: Mapping[str, Any]) -> None:
    """Raise UsageError where options of records and of --external are mixed, and where one of either is missing.

    options: of `haloscope validate`, in the order of the command line.
    """
    of_records = ("files", "profile", "program", "keep_intervals")
    if options["external"]:
        if any(options[name] for name in of_records):
            unused = "RECORDS, --profile, --program and --keep-intervals"
            raise UsageError(f"--external fits its own profile; leave out {unused}")
        return
    others = [name for name, value in options.items() if value and name not in (*of_records, "samples", "stem")]
    if others:
        name = OTHER_NAMES.get(others[0], "--" + others[0].replace("_", "-"))
        raise UsageError(f"{name} belongs to --external; give --external FILE, or leave it out")
    if not options["files"]:
        raise UsageError("give record files, or --external FILE")
    if not options["profile"]:
        raise UsageError("give the machine profile of the records with --profile")
