"""Options and reports of app poisson2d: the six positions of `partdiff`, presets, the report, slow blocks of lines."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from haloscope.errors import UsageError
from haloscope.options.kinds import option, options_of
from haloscope.studies.run_flags import ALL, Report

APP = "poisson2d"
EXAMPLE = 'haloscope run poisson2d --partdiff "1 2 512 1 2 5000"           (the 2021 study\'s own program)'
METHODS = {1: "gauss-seidel", 2: "jacobi"}
MOST_ITERATIONS = 200000
USAGE = (
    "usage: --partdiff 'THREADS METHOD INTERLINES FUNCTION TERMINATION VALUE': threads 1..1024; 1 Gauss-Seidel, 2 "
    "Jacobi; "
    "interlines 0..100000; function 1 or 2; 1 precision, 2 iterations; a precision below 1, at least 1e-20, or 1.."
    f"{MOST_ITERATIONS} iterations"
)
PRESETS = ("p2p", "rma", "shared")
SLOW = 1.15  # a block with this multiple of the median block's compute time is slowed by its data

OPTIONS = options_of(
    option(
        "--partdiff",
        metavar="'T M I F E V'",
        group="study",
        help="poisson2d: partdiff's six positions; prints its report.",
    ),
    option(
        "--interlines",
        metavar="LIST",
        group="study",
        help="poisson2d: I instead of --cells; the matrix has 8I+9 lines.",
    ),
    option(
        "--function", type=click.IntRange(1, 2), group="study", help="poisson2d: 1 (f = 0), 2 (2 pi^2 sin sin). [1]"
    ),
    option(
        "--precision",
        type=float,
        group="study",
        help="poisson2d: stop when the residual is below it (--steps: at most).",
    ),
    option(
        "--residual",
        "--residuum",
        "residual",
        metavar="SCHEME",
        group="study",
        help="poisson2d: deferred, allreduce; Gauss-Seidel: chain, chain-pscw, all-to-last, accumulate.",
    ),
    option(
        "--preset",
        type=click.Choice(PRESETS),
        group="study",
        help="poisson2d: a final version of the 2021 study: transport and residual scheme.",
    ),
    option(
        "--find-precision",
        type=click.IntRange(1, MOST_ITERATIONS),
        metavar="K",
        group="study",
        help="poisson2d: print the residual of the sequential iteration K and end.",
    ),
    option(
        "--work-blocks",
        type=click.IntRange(1),
        group="study",
        help="poisson2d: compute times and subnormal numbers by N blocks of lines.",
    ),
    option("--work-window", type=click.IntRange(1), group="study", help="Iterations that --work-blocks sums up. [100]"),
)
OWN = (
    "partdiff",
    "interlines",
    "function",
    "precision",
    "residual",
    "preset",
    "find_precision",
    "work_blocks",
    "work_window",
)
PARAMETERS = ("function", "precision", "residual", "work_blocks", "work_window")  # of the app, by the flags' names


@dataclass(frozen=True)
class Arguments:
    """The six positions. `iterations` None: terminate by `precision`, and the other way round."""

    threads: int
    method: str
    interlines: int
    function: int
    precision: float | None
    iterations: int | None


def parse(text: str) -> Arguments:
    """Parse partdiff's six positions, as in `1 2 512 1 2 5000`. Raises UsageError with the usage if one is
    wrong.
    """
    words = text.split()
    if len(words) != 6:
        raise UsageError(f"--partdiff '{text}' has {len(words)} positions instead of 6; {USAGE}")

    def number(index: int, name: str, low: int, high: int) -> int:
        try:
            value = int(words[index])
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise UsageError(f"--partdiff: {name} '{words[index]}' is not {low} to {high}; {USAGE}")
        return value

    threads, method = number(0, "threads", 1, 1024), METHODS[number(1, "method", 1, 2)]
    interlines, function = number(2, "interlines", 0, 100000), number(3, "function", 1, 2)
    if number(4, "termination", 1, 2) == 2:
        return Arguments(threads, method, interlines, function, None, number(5, "iterations", 1, MOST_ITERATIONS))
    try:
        precision = float(words[5])
    except ValueError:
        precision = 0.0
    if not 1e-20 <= precision < 1:
        raise UsageError(f"--partdiff: precision '{words[5]}' is not 1e-20 to below 1; {USAGE}")
    return Arguments(threads, method, interlines, function, precision, None)


def translate(app: str, options: Mapping[str, Any], passed: Sequence[str]) -> dict[str, Any]:
    """Return a run's options with this study's flags in the words of every run. `passed`: options of the command line.

    Raises UsageError for flags that belong to poisson2d and another app, and for contradictions.
    """
    found = dict(options)
    if app != APP:
        own = [name for name in OWN if options[name] is not None]
        if own:
            raise UsageError(f"--{own[0].replace('_', '-')} belongs to app {APP}, not to {app}")
        return found
    if options["partdiff"]:
        _take(parse(options["partdiff"]), found, passed)
    if found["interlines"] is not None:
        _take_interlines(found)
    if found["form"] == "gauss-seidel" and "schedule" not in passed:
        found["schedule"] = "pipeline"
    if found["preset"]:
        _take_preset(found, passed)
    if found["precision"] is not None:
        _take_precision(found)
    if found["find_precision"]:
        _take_sequential(found)
    words = [f"{name}={found[name]}" for name in PARAMETERS if found[name] is not None]
    return found | {"given_set": (*found["given_set"], *words)}


def _take(arguments: Arguments, options: dict, passed: Sequence[str]) -> None:
    clash = [
        name for name in ("cells", "interlines", "form", "function", "precision", "steps", "seconds") if name in passed
    ]
    if clash:
        raise UsageError(f"--partdiff and --{clash[0]} both set the problem; use one of them")
    options |= {
        "threads": str(arguments.threads),
        "form": arguments.method,
        "interlines": str(arguments.interlines),
        "function": arguments.function,
        "precision": arguments.precision,
        "steps": arguments.iterations,
    }
    for name, value in (("launches", 1), ("repetitions", 1), ("warmup", 0)):
        if name not in passed:
            options[name] = value


def _take_interlines(options: dict) -> None:
    from haloscope.measure import lists

    if options["cells"]:
        raise UsageError("--cells and --interlines both set the grid; use one of them")
    values = lists.numbers(options["interlines"], "--interlines")
    if any(not 0 <= value <= 100000 for value in values):
        raise UsageError(f"--interlines {options['interlines']} is not possible; use 0 to 100000")
    options["cells"] = ",".join(str(8 * value + 7) for value in values)


def _take_preset(options: dict, passed: Sequence[str]) -> None:
    """Apply a final version: Allreduce for Jacobi; the chain for Gauss-Seidel, one-sided in version `rma`."""
    from haloscope_studies.schroeter2021 import cases as schroeter2021_cases

    if "strategy" in passed or "residual" in passed:
        raise UsageError("--preset chooses the strategy and the residual scheme; drop --strategy and --residual")
    method = options["form"] or "jacobi"
    if method not in METHODS.values():
        raise UsageError("--preset depends on the method; give one --form: jacobi or gauss-seidel")
    options["strategy"] = schroeter2021_cases.VERSIONS[options["preset"]][method]
    chain = "chain-pscw" if options["preset"] == "rma" else "chain"
    if options["precision"] is not None:
        options["residual"] = chain if method == "gauss-seidel" else "allreduce"


def _take_precision(options: dict) -> None:
    if not 1e-20 <= options["precision"] < 1:
        raise UsageError(f"--precision {options['precision']:g} is not possible; use 1e-20 to below 1")
    if options["seconds"] is not None:
        raise UsageError("--precision and --seconds both set the end of a repetition; use one of them")
    options["precision"] = repr(options["precision"])
    options["steps"] = options["steps"] or MOST_ITERATIONS


def _take_sequential(options: dict) -> None:
    """Set options of one sequential run of `--find-precision` iterations."""
    if not options["cells"]:
        raise UsageError("--find-precision needs the size; give --interlines I")
    options |= {
        "ranks": "1",
        "threads": "1",
        "strategy": "ordered/p2p",
        "steps": options["find_precision"],
        "precision": None,
        "residual": None,
        "launches": 1,
        "repetitions": 1,
        "warmup": 0,
        "verify": 0,
    }


def report(found: Sequence[dict], options: Mapping[str, Any], output: Path) -> Report | None:
    """Return the texts of the last measurement that these flags request, alone or after the tables."""
    record = next((record for record in reversed(found) if record["kind"] == "measurement"), None)
    if not record:
        return None
    if record["request"]["app"] == APP and options["find_precision"]:
        return Report((found_precision(record),), ALL)
    if record["request"]["app"] == APP and options["partdiff"]:
        return Report((f"{solution(record)}\n\nrecords: {output}",), ALL)
    return Report((f"\n{slow_table(record)}",)) if options["work_blocks"] else None


def found_precision(record: dict) -> str:
    """Return the text of `--find-precision`: the residual after the iterations of a sequential record."""
    solved, outcome = record["app"], record["outcome"]
    return (
        f"{solved['method']}, {solved['interlines']} interlines, function {solved['function']}: residual of iteration "
        f"{outcome['steps'][0]} is {outcome['reduced']['residual'][0]:.6e}; any precision above it and not above that "
        "of the "
        "iteration before stops there"
    )


def solution(record: dict) -> str:
    """Return partdiff's report of a measurement: times, memory, the problem, the residual, the 9 x 9 excerpt."""
    solved, outcome, seconds = record["app"], record["outcome"], record["time_s"]["repetitions"][-1]
    method = {"jacobi": "Jacobi", "gauss-seidel": "Gauss-Seidel"}[solved["method"]]
    function = {1: "f(x,y) = 0", 2: "f(x,y) = 2 * pi^2 * sin(pi * x) * sin(pi * y)"}[solved["function"]]
    end = "number of iterations" if solved["termination"] == "iterations" else f"precision {solved['precision']:e}"
    lines = [
        f"Computation time:     {seconds:.6f} s",
        f"Memory use:           {record['counts']['field_bytes'] / 2**20:.6f} MiB",
        f"Method:               {method}",
        f"Interlines:           {solved['interlines']}",
        f"Function:             {function}",
        f"Termination:          {end}",
        f"Number of iterations: {outcome['steps'][-1]}",
        f"Residual:             {outcome['reduced']['residual'][-1]:e}",
        "",
        "Matrix:",
    ]
    return "\n".join(lines + ["".join(f"{value:8.4f}" for value in row) for row in solved["excerpt"]])


def slow_blocks(seconds: Sequence[float], factor: float = SLOW) -> list[int]:
    """Return the blocks of lines, counted from 0, whose compute time exceeds `factor` times the median block's.

    seconds: of each block in one window of iterations. Subnormal numbers make such blocks, see `--ftz`.
    """
    usual = statistics.median(seconds)
    return [block for block, value in enumerate(seconds) if value > factor * usual]


def subnormal_blocks(numbers: Sequence[float]) -> list[int]:
    """Return the blocks of lines, counted from 0, with at least half as many subnormal numbers as any block.

    numbers: of each block at the end of one window of iterations. On CPUs that take longer for these numbers, such
    blocks are the slow ones.
    """
    return [block for block, count in enumerate(numbers) if count and count >= max(numbers) / 2]


def slow_table(record: dict) -> str:
    """Return one line per window of iterations: the median block's seconds, the blocks that took much longer, and the
    blocks with most subnormal numbers.
    """
    from haloscope.report import tables

    work = record["app"]
    lines = []
    for number, seconds in enumerate(work["work_seconds"]):
        usual = statistics.median(seconds)
        text = ", ".join(f"{block} ({seconds[block] / usual:.1f}x)" for block in slow_blocks(seconds)) or "none"
        counts = dict(enumerate(work["work_subnormal"])).get(number, [])  # of full windows
        numbers = ", ".join(f"{block} ({counts[block]:.0f})" for block in subnormal_blocks(counts)) or "none"
        lines.append([f"{number * work['work_window'] + 1} ..", f"{usual:.4f}", text, numbers])
    slower = f"blocks of {work['work_blocks']} slower than {SLOW:g}x"
    return tables.markdown(lines, ["iterations", "median block (s)", slower, "most subnormal numbers"])
