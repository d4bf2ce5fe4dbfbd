"""The solver case of the 2017 study (chapter 7): PETSc's log of conjugate gradients, compared with cg3d's methods.

It covers rows G1 to G5 of the checklist, with blocks of 50^3 cells a rank, the study's weak scaling. A published number
appears only next to a measurement with the same rank count and block. Without PETSc, only cg3d's methods are measured.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haloscope import bridge, errors, outputs, terminal
from haloscope import records as record_files
from haloscope.bridge import build
from haloscope.measure import answers, campaign, launch, space
from haloscope.measure.request import Request
from haloscope.records import stats
from haloscope.report.tables import interval, markdown, number
from haloscope.studies import provenance, published
from haloscope_studies.davis2017.measured import launches
from haloscope_studies.davis2017.measured.experiments import pe_counts

SIDE = 50  # cells of a rank's block per side
PROGRAM, PRESET = "bench_cg_log_petsc", "petsc"
PACKAGE = "PETSc (Debian's libpetsc-real-dev, which 'scripts/other_mpi.sh petsc' fetches)"
METHODS = ("standard", "single-reduction", "pipelined")
PUBLISHED = {"standard": "base", "single-reduction": "coalesced"}
SOLVE, ALLREDUCE, MISSING = "cg-solve", "cg-allreduce", "cg-missing"
SOLVES = re.compile(rb'"kind": "cg-(solve|allreduce|missing)"')  # in files of such records

# Eq. 7.7 with VecAYPX(max), as text and tables have it; the printed equation has min. VecMDot: of a single reduction.
COMPOSITION = {
    "MatMult": "max",
    "VecNorm": "min",
    "VecTDot": "min",
    "VecMDot": "min",
    "VecAXPY": "max",
    "VecAYPX": "max",
    "PCApply": "max",
}
EXCHANGE = ("VecScatterBegin", "VecScatterEnd")  # its two ends
BAR = 0.02  # of the composition, against the solve
# Parts of an environment that a record of a solve has.
DESCRIBED = ("cpu", "cores", "compiler", "compiler_flags", "mpi_library", "commit", "emulated_network")


@dataclass(frozen=True)
class Effort:
    """The extent of a measurement."""

    iterations: int  # of a solve
    rounds: int  # solves of each method in a launch
    launches: int


QUICK, FULL = Effort(20, 5, 3), Effort(50, 20, 3)


# ---- measuring -------------------------------------------------------------------------------------------------------


def run(output: Path, quick: bool) -> list[dict]:
    """Measure on 1, 2, 4 ... ranks up to the cores; write the records to `output` as JSON lines and return them.

    quick: few short solves, and PETSc only where its program is built. Records: `cg-solve` (a method of
    PETSc or cg3d in one launch: seconds of each solve; of PETSc also calls and seconds by function), `cg-allreduce`,
    and `cg-missing` where PETSc is not available. The call takes seconds once PETSc is built, which takes minutes.
    Raises HaloscopeError if a program fails, UsageError if `output` holds other content.
    """
    effort = QUICK if quick else FULL
    outputs.refuse_foreign(output, SOLVES)
    try:
        folder = _petsc_build(quick)
    except errors.UnavailableError as error:
        found = [{"kind": MISSING, "what": PACKAGE, "reason": str(error)}, *_native(output, effort)]
    else:
        found = [record for ranks in _rank_counts() for record in _launches(folder, ranks, effort)]
    record_files.prepare(output)
    record_files.append(output, found)
    return found


def _rank_counts() -> list[int]:
    return pe_counts(launch.cores())


def _petsc_build(quick: bool) -> Path:
    """Return the build that holds the program. Raises UnavailableError if PETSc is not available."""
    if quick and not (build.preset_folder(PRESET) / "bench" / PROGRAM).exists():
        raise errors.UnavailableError(f"{PROGRAM} is not built, which takes minutes; measure without --quick")
    return build.build_preset(PRESET, PROGRAM)


def _launches(folder: Path, ranks: int, effort: Effort) -> Iterator[dict]:
    """Yield the records of some launches of the program that holds both solvers."""
    grid = "x".join(map(str, bridge.process_grid("cubic", ranks, (SIDE,) * 3)))
    words = ["--side", SIDE, "--grid", grid, "--iterations", effort.iterations, "--rounds", effort.rounds]
    start = launch.launcher_words(launch.mpiexec(folder), ranks, 1)
    command = [*start, str(folder / "bench" / PROGRAM), *map(str, words)]
    for order in range(effort.launches):
        code, output, complaint = answers.ended_after(math.inf, command)
        lines = [line for line in output.splitlines() if line.startswith("{")]
        if code or not lines:
            why = f": {terminal.shown(complaint.strip())}" if complaint.strip() else ""
            raise errors.HaloscopeError(f"'{' '.join(command)}' ended with code {code}{why}")
        yield from (json.loads(line) | {"launch": f"{campaign.LAUNCH_NAME}{order + 1}"} for line in lines)


def _native(output: Path, effort: Effort) -> Iterator[dict]:
    """Yield the same records of cg3d's methods alone, measured by the rank program."""
    requests = []
    for ranks in _rank_counts():
        grid = bridge.process_grid("cubic", ranks, (SIDE,) * 3)
        for method in METHODS:
            for form in ("plain", "fused") if method == METHODS[0] else ("fused",):
                choice = bridge.Choice(
                    "cg3d",
                    tuple(SIDE * g for g in grid),
                    ranks=ranks,
                    form=form,
                    set=(("method", method),),
                    process_grid="x".join(map(str, grid)),
                )
                requests.append(Request.of(choice, steps=effort.iterations, repetitions=effort.rounds))
    file = output.with_name(f"{output.stem}-runs.jsonl")
    measured = campaign.Campaign(space.Space(requests), file, effort.launches, resume=True).run()
    for record in measured:
        if record["kind"] != "measurement":
            continue
        request = record["request"]
        yield {
            "kind": SOLVE,
            "code": "haloscope",
            "method": request.get("set", {}).get("method", METHODS[0]),
            "form": request["form"],
            "ranks": request["ranks"],
            "side": SIDE,
            "iterations": effort.iterations,
            "solve_s": record["time_s"]["repetitions"],
            "launch": record["launch"]["id"],
            "mpi_library": record["environment"]["mpi_library"],
            "environment": {part: value for part, value in record["environment"].items() if part in DESCRIBED},
        }


# ---- contents of the records -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Log:
    """PETSc's log of one method in one launch.

    calls: by function, of one solve. seconds: by function, then min, mean and max over ranks, of one solve. reduces,
    reducing: the same of the all-reduces inside a function.
    """

    ranks: int
    side: int
    method: str
    launch: str
    iterations: int
    solves: int
    calls: Mapping[str, int]
    seconds: Mapping[str, Mapping[str, float]]
    reduces: Mapping[str, int]
    reducing: Mapping[str, Mapping[str, float]]

    @property
    def composed(self) -> float:
        """Seconds of a solve by eq. 7.7."""
        return sum(self.seconds[name][which] for name, which in COMPOSITION.items() if name in self.seconds)

    @property
    def solve(self) -> float:
        """Seconds of a solve, of the slowest rank."""
        return self.seconds["KSPSolve"]["max"]

    @property
    def error(self) -> float:
        """(composed - solve) / solve."""
        return self.composed / self.solve - 1


def logs(records: Iterable[Mapping]) -> list[Log]:
    """Return PETSc's logs, by rank count, method and launch."""
    found = [_log(record) for record in records if record["kind"] == SOLVE and "functions" in record]
    return sorted(found, key=lambda log: (log.ranks, log.side, METHODS.index(log.method), log.launch))


def _log(record: Mapping) -> Log:
    functions, solves = record["functions"], len(record["solve_s"])
    reduces = {name: f["allreduce"] for name, f in functions.items() if "allreduce" in f}

    def of_a_solve(found: Mapping[str, Mapping]) -> dict[str, dict[str, float]]:
        return {name: {which: s / solves for which, s in f["time_s"].items()} for name, f in found.items()}

    return Log(
        record["ranks"],
        record["side"],
        record["method"],
        record["launch"],
        record["iterations"],
        solves=solves,
        calls={name: f["calls"] // solves for name, f in functions.items()},
        seconds=of_a_solve(functions),
        reduces={name: f["calls"] // solves for name, f in reduces.items()},
        reducing=of_a_solve(reduces),
    )


def typical(found: Iterable[Log]) -> list[Log]:
    """Return, for every method and rank count, the launch with the median time: its parts belong together."""
    groups: dict[tuple, list[Log]] = {}
    for log in found:
        groups.setdefault((log.ranks, log.side, log.method), []).append(log)
    return [sorted(group, key=lambda log: log.solve)[(len(group) - 1) // 2] for group in groups.values()]


def expected_calls(method: str, iterations: int) -> dict[str, int]:
    """Return the calls of table 7.2 for a solve of `iterations`."""
    rows = [row for row in published("davis2017", "cg_call_counts") if row["solver"] == PUBLISHED[method]]
    return {r["function"]: int(r["calls_per_iteration_slope"]) * iterations + int(r["calls_offset"]) for r in rows}


def expected_reductions(method: str, iterations: int) -> int:
    """Return the all-reduces of a solve that follow from table 7.2: 3 i + 1, or 2 i + 3."""
    calls = expected_calls(method, iterations)
    return sum(calls[name] for name in ("VecNorm", "VecTDot", "VecMDot"))


def iteration_s(records: Iterable[Mapping], **wanted: Any) -> dict[str, float]:
    """Return the mean seconds of an iteration in each launch, of the solves whose record has these entries."""
    found: dict[str, list[float]] = {}
    for r in records:
        if r["kind"] == SOLVE and all(r[name] == value for name, value in wanted.items()):
            found.setdefault(r["launch"], []).extend(s / r["iterations"] for s in r["solve_s"])
    return {launch: statistics.fmean(seconds) for launch, seconds in found.items()}


# ---- tables ----------------------------------------------------------------------------------------------------------


def tables(records: Sequence[Mapping]) -> str:
    """Return the records of `run` as Markdown tables with published numbers, and list the missing measurements."""
    found = [log for log in logs(records) if log.method in PUBLISHED]
    middle = typical(found)
    parallel = [log for log in middle if log.reducing]
    exchanging = [log for log in parallel if log.seconds.keys() >= set(EXCHANGE)]
    timed = [log for log in parallel if log.ranks in alone(records)]
    sections = {
        "time of an iteration": iterations(records),
        "sum of the functions against the solve (eq. 7.7, table 7.1)": found and composition(found),
        "calls in a solve (table 7.2)": middle and calls(middle),
        "shares of an iteration, % (table A.73)": middle and shares(middle),
        "MatMult, ms a call (table A.74)": exchanging and products(exchanging),
        "dot products, us a call (tables A.75 and A.76)": timed and dots(timed, records),
    }
    missing = [f"Not measured: {r['what']}; {r['reason']}." for r in records if r["kind"] == MISSING]
    bodies = [f"### Conjugate gradients: {title}\n\n{body}" for title, body in sections.items() if body]
    origin = [provenance.sentence(records)] * any(r["kind"] == SOLVE for r in records)
    return "\n\n".join([*bodies, *origin, *dict.fromkeys(missing)])


def iterations(records: Sequence[Mapping]) -> str:
    """Return the time of an iteration, its ratio to the standard method (table A.77), and PETSc's time over it."""
    keys = sorted({_solver(r) for r in records if r["kind"] == SOLVE}, key=_order)
    lines = []
    for key in keys:
        ranks, side, code, method, form = key
        where = {"ranks": ranks, "side": side}
        mine = iteration_s(records, **where, code=code, method=method, form=form)
        usual = iteration_s(records, **where, code=code, method="standard", form=form)
        petsc = iteration_s(records, **where, code="petsc", method=method)
        time = stats.mean_over_launches(mine)
        theirs = launches.ratio(petsc, mine) if code != "petsc" else None
        over = launches.ratio(mine, usual) if method != "standard" else None
        printed = _published_ratio(ranks, side, method) if code == "petsc" else ""
        lines.append(
            [
                ranks,
                f"{side}^3",
                code,
                method,
                form,
                number(time.value * 1e3),
                interval(time, factor=1e3),
                launches.text(over),
                printed,
                launches.text(theirs),
                _difference(records, key),
            ]
        )
    headers = [
        "ranks",
        "block",
        "code",
        "method",
        "form",
        "ms",
        "95 %",
        "over standard",
        "published",
        "PETSc over it",
        "residuals differ",
    ]
    return markdown(lines, headers, right=headers[5:])


def _solver(record: Mapping) -> tuple[int, int, str, str, str]:
    return record["ranks"], record["side"], record["code"], record["method"], record["form"]


def _order(key: tuple[int, int, str, str, str]) -> tuple:
    ranks, side, code, method, form = key
    return ranks, side, code != "petsc", METHODS.index(method), form == "fused"


def _difference(records: Iterable[Mapping], key: tuple[int, int, str, str, str]) -> str:
    """Return the largest relative difference of the residuals of 20 iterations from PETSc's standard method."""
    found = [
        r["residuals_differ"] for r in records if r["kind"] == SOLVE and _solver(r) == key and "residuals_differ" in r
    ]
    return f"{max(found):.0e}" if found else ""


def _published_ratio(ranks: int, side: int, method: str) -> str:
    """Return the ratio of the study's time of an iteration to the time of its base method, by machine."""
    if side != SIDE or method not in PUBLISHED or method == "standard":
        return ""
    time = {
        (row["machine"], row["solver"]): float(row["time_per_iteration_s"])
        for row in published("davis2017", "cg_iteration_time")
        if int(row["pes"]) == ranks
    }
    machines = sorted({machine for machine, _ in time})
    return ", ".join(f"{m} {time[m, PUBLISHED[method]] / time[m, 'base']:.2f}" for m in machines)


def composition(found: Sequence[Log]) -> str:
    """Return table 7.1: iterations, seconds of all solves, the sum of eq. 7.7, its error, the study's error."""
    printed = {int(row["pes"]): row["error_printed_percent"] for row in published("davis2017", "cg_validation")}
    lines = []
    for log in found:
        theirs = printed.get(log.ranks) if log.side == SIDE and log.method == "standard" else None
        lines.append(
            [
                log.ranks,
                log.method,
                log.launch,
                log.iterations * log.solves,
                number(log.solve * log.solves),
                number(log.composed * log.solves),
                f"{log.error:+.2%}",
                f"{theirs} %" if theirs else "",
                f"{BAR:.0%}",
                "yes" if abs(log.error) <= BAR else "NO",
            ]
        )
    headers = [
        "ranks",
        "method",
        "launch",
        "iterations",
        "solve (s)",
        "sum (s)",
        "error",
        "published",
        "bar",
        "reached",
    ]
    return markdown(lines, headers, right=headers[3:9])


def calls(found: Sequence[Log]) -> str:
    """Return table 7.2: calls of a solve as printed and as counted, all-reduces, and further calls of PETSc."""
    lines = []
    for log in found:
        want = expected_calls(log.method, log.iterations)
        lines += [_count_line(log, name, count, log.calls.get(name, 0)) for name, count in want.items()]
        if log.reduces:  # one rank needs none
            needed = expected_reductions(log.method, log.iterations)
            lines.append(_count_line(log, "all-reduces", needed, sum(log.reduces.values())))
    headers = ["ranks", "method", "iterations", "function", "expected", "counted", "equal"]
    besides = sorted({name for log in found for name in log.calls} - {*COMPOSITION, "KSPSolve"})
    note = f"Also logged, without a row in table 7.2: {', '.join(besides)}. PCApply is a VecCopy inside."
    return f"{markdown(lines, headers, right=headers[4:6])}\n\n{note}"


def _count_line(log: Log, function: str, expected: int, counted: int) -> list:
    return [log.ranks, log.method, log.iterations, function, expected, counted, "yes" if counted == expected else "NO"]


def shares(found: Sequence[Log]) -> str:
    """Return table A.73: the share of each function in the sum of eq. 7.7, with the study's share."""
    lines = []
    for log in found:
        theirs = _published_shares(log)
        for name, which in COMPOSITION.items():
            if name in log.seconds:
                share = f"{100 * log.seconds[name][which] / log.composed:.2f}"
                lines.append([log.ranks, log.method, name, which, share, theirs.get(name, "")])
    return markdown(
        lines, ["ranks", "method", "function", "of ranks", "ours", "published"], right=["ours", "published"]
    )


def _published_shares(log: Log) -> dict[str, str]:
    if log.side != SIDE or log.method != "standard":
        return {}
    rows = (row for row in published("davis2017", "cg_shares") if int(row["pes"]) == log.ranks)
    return {{"ApplyPC": "PCApply"}.get(row["function"], row["function"]): row["share_percent"] for row in rows}


def products(found: Sequence[Log]) -> str:
    """Return table A.74: the multiplication and the two ends of the exchange, means over ranks.

    PETSc logs no parts of the multiplication: MatMult less the exchange is the study's Multiply and MultiplyAdd.
    """
    lines = []
    for log in found:
        mean = {name: log.seconds[name]["mean"] / log.calls[name] for name in ("MatMult", *EXCHANGE)}
        mean["Multiply + MultiplyAdd"] = mean["MatMult"] - mean["VecScatterBegin"] - mean["VecScatterEnd"]
        del mean["MatMult"]
        theirs = _published_products(log)
        lines += [[log.ranks, log.method, part, number(s * 1e3), theirs.get(part, "")] for part, s in mean.items()]
    return markdown(lines, ["ranks", "method", "part", "ours", "published"], right=["ours", "published"])


def _published_products(log: Log) -> dict[str, str]:
    if log.side != SIDE or log.method != "standard":
        return {}
    rows = published("davis2017", "cg_matmult_parts")
    time = {row["part"]: float(row["time_s"]) * 1e3 for row in rows if int(row["pes"]) == log.ranks}
    both = {"Multiply + MultiplyAdd": time.get("Multiply", 0) + time.get("MultiplyAdd", 0)} if time else {}
    return {part: number(value) for part, value in (both | time).items()}


def dots(found: Sequence[Log], records: Sequence[Mapping]) -> str:
    """Return tables A.75 and A.76: own work and all-reduces of dot products, and an all-reduce alone.

    The extra time of an all-reduce inside a solve, where ranks arrive at different times, is synchronisation.
    """
    singles = alone(records)
    lines = []
    for log in found:
        for name in log.reducing:
            work, waits = dot_parts(log, name)
            us = [s * 1e6 for s in (work, waits["min"], waits["mean"], waits["max"], singles[log.ranks])]
            lines.append([log.ranks, log.method, name, *map(number, (*us, us[2] - us[4])), _published_dots(log, name)])
    headers = [
        "ranks",
        "method",
        "function",
        "own work",
        "all-reduce min",
        "mean",
        "max",
        "alone",
        "synchronisation",
        "published: work, all-reduce, alone",
    ]
    return markdown(lines, headers, right=headers[3:])


def dot_parts(log: Log, name: str) -> tuple[float, dict[str, float]]:
    """Return seconds per call of a dot product: of its work (mean over ranks), and of its all-reduce by statistic."""
    waits = {which: s / log.reduces[name] for which, s in log.reducing[name].items()}
    return log.seconds[name]["mean"] / log.calls[name] - waits["mean"], waits


def alone(records: Iterable[Mapping]) -> dict[int, float]:
    """Return the seconds of an all-reduce alone, by rank count: the median over launches."""
    found: dict[int, list[float]] = {}
    for r in records:
        if r["kind"] == ALLREDUCE:
            found.setdefault(r["ranks"], []).append(r["time_s"]["mean"])
    return {ranks: stats.median_of(seconds).value for ranks, seconds in found.items()}


def _published_dots(log: Log, name: str) -> str:
    """Return the study's means, us: own work and all-reduce in a solve, and the all-reduce alone."""
    if log.side != SIDE:
        return ""
    solvers = (PUBLISHED[log.method], "none")
    rows = [r for r in published("davis2017", "cg_calls") if int(r["pes"]) == log.ranks and r["solver"] in solvers]
    time = {(r["function"], r["part"], r["statistic"]): float(r["time_s"]) * 1e6 for r in rows}
    wanted = [(name, "compute", "mean"), (name, "allreduce", "mean"), ("IMB AllReduce 8 B", "allreduce", "isolated")]
    return ", ".join(number(time[key]) for key in wanted) if wanted[0] in time else ""
