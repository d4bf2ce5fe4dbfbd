"""Options of a search for the fastest choice: its order, its budget, and the measurements that follow it."""

from __future__ import annotations

import click

from haloscope.options.kinds import FiniteRange, of_measuring, option, options_of
from haloscope.options.measuring import order_seed

SEARCH = options_of(
    option("--profile", metavar="FILE|NAME", help="Machine profile that sets the order of trials. [random order]"),
    option(
        "--budget",
        type=FiniteRange(0, min_open=True),
        metavar="SECONDS",
        help="Time for the search. [a tenth of measuring everything, at most 60]",
    ),
    of_measuring(
        "--confirm",
        type=click.IntRange(0, 1000),
        default=5,
        help="Launches of the final comparison of winner, runner-up and default; 0 = none. [5]",
    ),
    of_measuring("--exhaustive", is_flag=True, help="Measure all candidates too, and report the regret of the choice."),
    of_measuring(
        "--timeout",
        type=FiniteRange(0),
        default=0.0,
        help="Seconds after which a candidate's launch is ended; 0: no limit. [0]",
    ),
    order_seed("--seed"),
)
