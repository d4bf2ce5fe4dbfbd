"""Options for a user's own program on several numbers of ranks: its runs, and the results to compare."""

from __future__ import annotations

import click

from haloscope.options.kinds import ANY_PATH, FiniteRange, of_output, option, options_of

COMPARED = options_of(
    option(
        "--ranks",
        "-n",
        default="1,2,3,4,6",
        metavar="LIST",
        help="Numbers of ranks; the first is the base. [1,2,3,4,6]",
    ),
    option(
        "--file",
        "files",
        multiple=True,
        metavar="PATTERN",
        help="Compare these files of the program instead of its output; may be repeated.",
    ),
    option("--printed", is_flag=True, help="With --file: compare the output, too."),
    option("--type", type=click.Choice(["f8", "f4", "i4", "i8"]), help="Type of the numbers in raw binary files."),
    option("--shape", metavar="XxYxZ", help="Points of raw binary files, x contiguous."),
    option("--numbers-only", is_flag=True, help="Compare only the numbers of texts."),
    option("--ignore", multiple=True, metavar="REGEX", help="Skip lines that match; may be repeated."),
    option(
        "--relative",
        type=FiniteRange(min=0),
        default=0.0,
        metavar="X",
        help="Relative difference allowed. [0: every bit]",
    ),
    option("--absolute", type=FiniteRange(min=0), default=0.0, metavar="X", help="Absolute difference allowed. [0]"),
)
RUNS = options_of(
    option(
        "--input",
        "inputs",
        multiple=True,
        type=ANY_PATH,
        help="Copy this file or folder into each working folder; may be repeated.",
    ),
    option(
        "--timeout",
        type=FiniteRange(min=0),
        default=0.0,
        metavar="SECONDS",
        help="End runs that take longer; 0: no limit. [0]",
    ),
    option("--mpiexec", metavar="PATH", help="The mpiexec of the program's MPI. [as in 'haloscope info']"),
    option(
        "--process-grid",
        default="cubic",
        metavar="RULE",
        group="grid",
        help="Process grid of {grid}, {px}, {py}, {pz}: cubic, square, prime-factors, slabs. [cubic]",
    ),
    option("--dims", type=click.IntRange(1, 3), default=2, group="grid", help="Dimensions of {grid}. [2]"),
    of_output(
        "--keep",
        type=ANY_PATH,
        metavar="FOLDER",
        help="Store working folders and output in FOLDER, which must be new or empty.",
    ),
)
