"""Options of exchanges that others have timed: which of them costs are fitted to, and what is written."""

from __future__ import annotations

import click

from haloscope.options.kinds import FileName, option, options_of

EXTERNAL = options_of(
    option(
        "--external",
        type=click.Path(),
        metavar="FILE",
        help="Instead of RECORDS: a CSV file of exchanges that others have timed, see docs/external.md.",
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
    option(
        "--profiles",
        type=FileName(stem=True),
        metavar="STEM",
        group="output",
        help="With --external: write the fitted profiles as STEM-PROGRAM.json.",
    ),
    option(
        "--json", "as_json", is_flag=True, group="output", help="With --external: one JSON document instead of tables."
    ),
)
