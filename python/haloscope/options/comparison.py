"""Options of a user's own program that runs on several numbers of ranks: its runs, and the results to compare."""

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
        help="Compare these files that it writes, instead of what it prints; may be repeated.",
    ),
    option("--printed", is_flag=True, help="With --file: compare what it prints, too."),
    option("--type", type=click.Choice(["f8", "f4", "i4", "i8"]), help="What raw binary files hold."),
    option("--shape", metavar="XxYxZ", help="Points of raw binary files, x contiguous."),
    option("--numbers-only", is_flag=True, help="Of texts, compare the numbers alone."),
    option("--ignore", multiple=True, metavar="REGEX", help="Leave out lines in which this occurs; may be repeated."),
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
        help="A run that takes longer is ended; 0: each is waited for. [0]",
    ),
    option("--mpiexec", metavar="PATH", help="The mpiexec of the program's own MPI. [the one of 'haloscope info']"),
    option(
        "--process-grid",
        default="cubic",
        metavar="RULE",
        group="grid",
        help="What {grid}, {px}, {py}, {pz} stand for: cubic, square, prime-factors, slabs. [cubic]",
    ),
    option("--dims", type=click.IntRange(1, 3), default=2, group="grid", help="Dimensions of {grid}. [2]"),
    of_output(
        "--keep",
        type=ANY_PATH,
        metavar="FOLDER",
        help="Keep working folders and output here; it must not exist, or be empty.",
    ),
)
