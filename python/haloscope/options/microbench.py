"""Options of micro-benchmarks: their patterns, transports, ranks and sizes, and imported files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from haloscope.options.kinds import EXISTING_FILE, FileName, FiniteRange, option, options_of
from haloscope.options.measuring import launches, repetitions
from haloscope.options.output import record_file, recorded

if TYPE_CHECKING:
    from haloscope.measure.microbench import Wanted

PATTERNS = options_of(
    option(
        "--pattern",
        "names",
        metavar="LIST",
        help="pingpong, pingping, batch, batches, put, get, exchange, multi-pair, allreduce, allgather, stream, cache; "
        "globs. [the first four]",
    ),
    option("--transport", default="*", metavar="LIST", help="Transports with options; globs such as 'rma-*'. [all]"),
    option("--ranks", "-n", default="2", metavar="LIST", help="Numbers of ranks; even for patterns of pairs. [2]"),
    option(
        "--gap",
        type=click.IntRange(1, 10**9),
        metavar="N",
        detailed=True,
        help="Pair rank i with rank i + N; N ranks per node pair whole nodes. [half of the ranks]",
    ),
    option("--nodes", default="0", metavar="LIST", help="Emulated nodes, ranks in blocks; 0 = as MPI reports. [0]"),
    option("--threads", metavar="LIST", help="Threads of stream and cache. [stream: 1, 2, ... all cores; cache: 1]"),
    option(
        "--bytes",
        "sizes",
        metavar="LIST",
        help="Sizes of messages, of a rank's part in a collective, of arrays (stream), of working sets (cache). "
        "[1..4194304*2; arrays: 4 x the largest cache; working sets: 4096..536870912*2]",
    ),
    option("--quick", is_flag=True, help="Six sizes, short samples, 2 launches."),
    option(
        "--seconds", type=FiniteRange(0, min_open=True), detailed=True, help="Length of one sample. [0.01; quick 0.002]"
    ),
    repetitions("5; quick 3", "Samples per launch.", detailed=True),
    launches("3; quick 2", detailed=True),
)
FILES = options_of(
    record_file("microbench"),
    option("--figure", "stem", type=FileName(stem=True), help="Figure files without ending. [as the record file]"),
    recorded(),
    option(
        "--import",
        "imported",
        multiple=True,
        type=EXISTING_FILE,
        help="Convert the output of IMB, OSU, SKaMPI or STREAM to records and show them; may be repeated.",
    ),
)


def wanted_of(options: Mapping[str, Any]) -> Wanted:
    """Return the micro-benchmarks that PATTERNS request. Raises UsageError for lists that cannot be read."""
    from haloscope.measure import lists, microbench

    names, threads, sizes = options["names"], options["threads"], options["sizes"]
    return microbench.Wanted(
        names=lists.names(names, microbench.NAMES, "pattern") if names else microbench.Wanted.names,
        transports=microbench.transports(options["transport"]),
        ranks=lists.numbers(options["ranks"], "--ranks"),
        nodes=lists.numbers(options["nodes"], "--nodes"),
        threads=lists.numbers(threads, "--threads") if threads else (),
        sizes=lists.numbers(sizes, "--bytes") if sizes else (),
        gap=options["gap"] or 0,
        quick=options["quick"],
        seconds=options["seconds"],
        repetitions=options["repetitions"],
    )
