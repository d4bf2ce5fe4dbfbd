"""The app poisson2d as its field knows it: the six positions of `partdiff`, presets, the report, slow blocks of lines."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import click

from haloscope.errors import UsageProblem

APP = "poisson2d"
METHODS = {1: "gauss-seidel", 2: "jacobi"}
MOST_ITERATIONS = 200000
USAGE = (
    "usage: --partdiff 'THREADS METHOD INTERLINES FUNCTION TERMINATION VALUE': threads 1..1024; 1 Gauss-Seidel, 2 Jacobi; "
    "interlines 0..100000; function 1 or 2; 1 precision, 2 iterations; a precision below 1, at least 1e-20, or 1.."
    f"{MOST_ITERATIONS} iterations"
)
PRESETS = ("p2p", "rma", "shared")
SLOW = 1.15  # a block that computes this many times as long as the median block is slowed by its data

OPTIONS = (
    click.option("--partdiff", metavar="'T M I F E V'", help="poisson2d: partdiff's six positions; prints its report."),
    click.option("--interlines", metavar="LIST", help="poisson2d: I instead of --cells; the matrix has 8I+9 lines."),
    click.option("--function", type=click.IntRange(1, 2), help="poisson2d: 1 (f = 0), 2 (2 pi^2 sin sin). [1]"),
    click.option("--precision", type=float, help="poisson2d: stop when the residuum is below it (--steps: at most)."),
    click.option("--residuum", metavar="SCHEME", help="poisson2d: deferred, allreduce; Gauss-Seidel: chain, chain-pscw, "
                                                      "all-to-last, accumulate."),
    click.option("--preset", type=click.Choice(PRESETS), help="poisson2d: a final version of the 2021 study: transport "
                                                             "and residuum scheme."),
    click.option("--find-precision", type=click.IntRange(1, MOST_ITERATIONS), metavar="K",
                 help="poisson2d: print the residuum of the sequential iteration K and end."),
    click.option("--ftz", type=click.Choice(["on", "off"]), help="Subnormal numbers are taken as zero. [off]"),
    click.option("--work-blocks", type=click.IntRange(1), help="poisson2d: compute times of so many blocks of lines."),
    click.option("--work-window", type=click.IntRange(1), help="Iterations that --work-blocks sums up. [100]"),
)  # fmt: skip


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
    """Parse partdiff's six positions, as in `1 2 512 1 2 5000`. Raises UsageProblem with the usage when one is wrong."""
    words = text.split()
    if len(words) != 6:
        raise UsageProblem(f"--partdiff '{text}' has {len(words)} positions instead of 6; {USAGE}")

    def number(index: int, name: str, low: int, high: int) -> int:
        try:
            value = int(words[index])
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise UsageProblem(f"--partdiff: {name} '{words[index]}' is not {low} to {high}; {USAGE}")
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
        raise UsageProblem(f"--partdiff: precision '{words[5]}' is not 1e-20 to below 1; {USAGE}")
    return Arguments(threads, method, interlines, function, precision, None)


def translate(app: str, options: dict, given: Sequence[str]) -> None:
    """Turn the words of this app into those of every run. `given`: options on the command line, not defaulted.

    Raises UsageProblem for words that belong to poisson2d and another app, and for contradictions.
    """
    if app != APP:
        own = [name for name in ("partdiff", "interlines", "function", "precision", "residuum", "preset",
                                 "find_precision", "work_blocks", "work_window") if options[name] is not None]  # fmt: skip
        if own:
            raise UsageProblem(f"--{own[0].replace('_', '-')} belongs to app {APP}, not to {app}")
        return
    if options["partdiff"]:
        _take(parse(options["partdiff"]), options, given)
    if options["interlines"] is not None:
        _take_interlines(options)
    if options["form"] == "gauss-seidel" and "schedule" not in given:
        options["schedule"] = "pipeline"
    if options["preset"]:
        _take_preset(options, given)
    if options["precision"] is not None:
        _take_precision(options)


def _take(asked: Arguments, options: dict, given: Sequence[str]) -> None:
    clash = [
        name for name in ("cells", "interlines", "form", "function", "precision", "steps", "seconds") if name in given
    ]
    if clash:
        raise UsageProblem(f"--partdiff and --{clash[0]} both say what to solve; use one of them")
    options |= {"threads": str(asked.threads), "form": asked.method, "interlines": str(asked.interlines),
                "function": asked.function, "precision": asked.precision, "steps": asked.iterations}  # fmt: skip
    for name, value in (("launches", 1), ("repetitions", 1), ("warmup", 0)):
        if name not in given:
            options[name] = value


def _take_interlines(options: dict) -> None:
    from haloscope.measure import sweep

    if options["cells"]:
        raise UsageProblem("--cells and --interlines both give the grid; use one of them")
    values = sweep.numbers(options["interlines"], "--interlines")
    if any(not 0 <= value <= 100000 for value in values):
        raise UsageProblem(f"--interlines {options['interlines']} is not possible; use 0 to 100000")
    options["cells"] = ",".join(str(8 * value + 7) for value in values)


def _take_preset(options: dict, given: Sequence[str]) -> None:
    """The study's final versions: Allreduce for Jacobi; the chain for Gauss-Seidel, one-sided in version `rma`."""
    from haloscope.studies.schroeter2021 import cases as schroeter2021_cases

    if "strategy" in given or "residuum" in given:
        raise UsageProblem("--preset chooses the strategy and the residuum scheme; drop --strategy and --residuum")
    method = options["form"] or "jacobi"
    if method not in METHODS.values():
        raise UsageProblem("--preset depends on the method; give one --form: jacobi or gauss-seidel")
    options["strategy"] = schroeter2021_cases.VERSIONS[options["preset"]][method]
    chain = "chain-pscw" if options["preset"] == "rma" else "chain"
    if options["precision"] is not None:
        options["residuum"] = chain if method == "gauss-seidel" else "allreduce"


def _take_precision(options: dict) -> None:
    if not 1e-20 <= options["precision"] < 1:
        raise UsageProblem(f"--precision {options['precision']:g} is not possible; use 1e-20 to below 1")
    if options["seconds"] is not None:
        raise UsageProblem("--precision and --seconds both say when a repetition ends; use one of them")
    options["precision"] = repr(options["precision"])
    options["steps"] = options["steps"] or MOST_ITERATIONS


def sequential(options: dict) -> None:
    """Turn a run's options into those of one sequential run of `--find-precision` iterations."""
    if not options["cells"]:
        raise UsageProblem("--find-precision needs the size; give --interlines I")
    options |= {"ranks": "1", "threads": "1", "strategy": "ordered/p2p", "steps": options["find_precision"],
                "precision": None, "residuum": None, "launches": 1, "repetitions": 1, "warmup": 0, "verify": 0}  # fmt: skip


def found_precision(record: dict) -> str:
    """Return what `--find-precision` prints: the residuum after the iterations of a sequential record."""
    done = record["poisson"]
    return (
        f"{done['method']}, {done['interlines']} interlines, function {done['function']}: residuum of iteration "
        f"{done['iterations'][0]} is {done['residuum'][0]:.6e}; any precision above it and not above that of the "
        "iteration before stops there"
    )


def report(record: dict) -> str:
    """Return partdiff's report of a measurement: times, memory, what was solved, the residuum, the 9 x 9 excerpt."""
    done, seconds = record["poisson"], record["time_s"]["repetitions"][-1]
    method = {"jacobi": "Jacobi", "gauss-seidel": "Gauss-Seidel"}[done["method"]]
    function = {1: "f(x,y) = 0", 2: "f(x,y) = 2 * pi^2 * sin(pi * x) * sin(pi * y)"}[done["function"]]
    end = "number of iterations" if done["termination"] == "iterations" else f"precision {done['precision']:e}"
    lines = [
        f"Computation time:     {seconds:.6f} s",
        f"Memory use:           {done['field_bytes'] / 2**20:.6f} MiB",
        f"Method:               {method}",
        f"Interlines:           {done['interlines']}",
        f"Function:             {function}",
        f"Termination:          {end}",
        f"Number of iterations: {done['iterations'][-1]}",
        f"Residuum:             {done['residuum'][-1]:e}",
        "",
        "Matrix:",
    ]
    return "\n".join(lines + ["".join(f"{value:8.4f}" for value in row) for row in done["excerpt"]])


def slow_blocks(work: dict, window: int, factor: float = SLOW) -> list[int]:
    """Return the blocks of lines, counted from 0, that computed `factor` times as long as the median block in a window.

    work: a record's `poisson.work`. Subnormal numbers make such blocks, see `--ftz`.
    """
    seconds = work["seconds"][window]
    usual = statistics.median(seconds)
    return [block for block, value in enumerate(seconds) if value > factor * usual]


def slow_table(record: dict) -> str:
    """Return one line per window of iterations: the median block's seconds and the blocks that took much longer."""
    from haloscope.report import tables

    work = record["poisson"]["work"]
    lines = []
    for number, seconds in enumerate(work["seconds"]):
        slow = slow_blocks(work, number)
        usual = statistics.median(seconds)
        text = ", ".join(f"{block} ({seconds[block] / usual:.1f}x)" for block in slow) or "none"
        lines.append([f"{number * work['window'] + 1} ..", f"{usual:.4f}", text])
    return tables.markdown(
        lines, ["iterations", "median block (s)", f"blocks of {work['blocks']} slower than {SLOW:g}x"]
    )
