"""Measurements of the study besides walltimes, and their evaluation: memory, clock, waiting and synchronisation.

Source: digest of the study, sections 5.2, 5.8, 6.10, 16.6, 16.9; tables 4.2, 4.8, 5.7, A.4, A.7, A.8, A.15 to A.24.
"""

from __future__ import annotations

import functools
from collections import defaultdict

from haloscope import bridge
from haloscope.report import tables
from haloscope.studies import published
from haloscope_studies.davis2017.replay import hydra_runs

# The statistic of each component that adds up to the walltime: the longest work, the least waiting. Section 5.2.
COMPOSED = {"compute": "max", "memory": "max", "update_bounds": "max", "point_to_point": "min", "collectives": "min"}
WORKING_SETS = tuple(n * 1024 for n in (4, 32, 256, 1024, 8192, 32768, 524288))  # bytes, of CacheBench
SLOW_CLOCK = 0.05  # below the clock of one process, which is flagged


@functools.cache
def compositions() -> dict[tuple[str, int], tuple[float, float]]:
    """Return the composed and the measured walltime of Minerva's runs, in seconds, by scaling and processes."""
    found: dict[tuple[str, int], float] = defaultdict(float)
    for r in published("davis2017", "process_spread"):
        if r["statistic"] == COMPOSED[r["component"]]:
            found[r["scaling"], int(r["pes"])] += float(r["time_s"])
    return {case: (seconds, hydra_runs.measured(*case, "walltime")) for case, seconds in found.items()}


def barriers() -> list[tuple[int, float, float | None]]:
    """Return processes, the relative growth of the walltime by barriers before exchanges, and the time in the barriers
    over the range of compute times.
    """
    return [
        (
            int(r["pes"]),
            float(r["barriered_s"]) / float(r["original_s"]) - 1,
            float(r["time_in_barrier_s"]) / float(r["process_compute_range_s"]) if r["time_in_barrier_s"] else None,
        )
        for r in published("davis2017", "barriered")
    ]


def synchronisation() -> list[tuple[int, str, float, float]]:
    """Return processes, stage, the longest exchange, and the shortest plus the range of the compute before it, in
    seconds.
    """
    return [
        (
            int(r["pes"]),
            r["stage"],
            float(r["exchange_max_s"]),
            float(r["exchange_min_s"]) + float(r["preceding_compute_range_s"]),
        )
        for r in published("davis2017", "madvm_sync")
    ]


def clocks() -> list[tuple[str, int, float, bool]]:
    """Return scaling, processes, mean clock (GHz), and True if it is flagged as slower than with one process."""
    rows = [(r["scaling"], int(r["pes"]), float(r["mean_GHz"])) for r in published("davis2017", "clock")]
    alone = {scaling: clock for scaling, pes, clock in rows if pes == 1}
    return [(scaling, pes, clock, clock < (1 - SLOW_CLOCK) * alone[scaling]) for scaling, pes, clock in rows]


@functools.cache
def stream() -> dict[tuple[str, str, int], float]:
    """Return GB/s of STREAM by machine, kernel and threads."""
    rows = published("davis2017", "stream")
    return {(r["machine"], r["kernel"], int(r["threads"])): float(r["bandwidth_GB_per_s"]) for r in rows}


@functools.cache
def solver_functions() -> dict[tuple[str, str], float]:
    """Return seconds on 16,384 processes by function and solver: base, or coalesced with a single reduction. Table
    A.78.
    """
    return {(r["function"], r["solver"]): float(r["time_s"]) for r in published("davis2017", "cg_functions_16384")}


def decompositions() -> list[tuple[int, str, str]]:
    """Return processes, the process grid of table 4.2, and ours by prime factors."""
    return [
        (
            int(r["pes"]),
            f"{r['px']}x{r['py']}x{r['pz']}",
            "x".join(
                map(str, bridge.process_grid("prime-factors", int(r["pes"]), (int(r["global_cells_per_side"]),) * 3))
            ),
        )
        for r in published("davis2017", "decomposition")
    ]


# ---- tables ----------------------------------------------------------------------------------------------------------


def markdown() -> str:
    """Return all tables of this module."""
    parts = {
        "Walltime composed of the longest compute and the shortest communication (section 5.2)": composition_table(),
        "Barriers before exchanges, weak scaling (table 5.7)": barrier_table(),
        "Exchange of Madvm, weak scaling: longest against shortest plus range of compute (table A.24)": sync_table(),
        f"Clock of process 0, flagged from {SLOW_CLOCK:.0%} below one process on (table 4.8)": clock_table(),
        "STREAM triad (tables A.4, A.8)": stream_table(),
        "CacheBench on Minerva, GB/s (table A.7)": cache_table(),
        "Conjugate gradients on 16,384 processes: functions of both methods, s (table A.78)": solver_table(),
    }
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in parts.items())


def composition_table() -> str:
    """Return composed and measured walltimes with signed errors."""
    lines = [
        [scaling, pes, f"{measured:.2f}", f"{composed:.2f}", f"{composed / measured - 1:+.1%}"]
        for (scaling, pes), (composed, measured) in compositions().items()
    ]
    headers = ["scaling", "PEs", "walltime (s)", "composed (s)", "error"]
    return tables.markdown(lines, headers, right=headers[1:])


def barrier_table() -> str:
    """Return the cost of barriers, and the time in them over the imbalance of compute."""
    lines = [[pes, f"{cost:+.1%}", "" if share is None else f"{share:.2f}"] for pes, cost, share in barriers()]
    headers = ["PEs", "walltime", "time in barrier over range of compute"]
    return tables.markdown(lines, headers, right=headers)


def sync_table() -> str:
    """Return, by processes, the shortest exchange plus the range of compute before it, over the longest exchange."""
    by_pes: dict[int, list[float]] = defaultdict(list)
    for pes, _, longest, explained in synchronisation():
        by_pes[pes].append(explained / longest)
    lines = [[pes, *(f"{ratio:.2f}" for ratio in ratios)] for pes, ratios in by_pes.items()]
    stages = list(dict.fromkeys(stage for _, stage, _, _ in synchronisation()))
    return tables.markdown(lines, ["PEs", *stages], right=["PEs", *stages])


def clock_table() -> str:
    """Return mean clocks, slow ones flagged."""
    lines = [[scaling, pes, f"{clock:.3f}", "slow" if flagged else ""] for scaling, pes, clock, flagged in clocks()]
    return tables.markdown(lines, ["scaling", "PEs", "GHz", "flag"], right=["PEs", "GHz"])


def stream_table() -> str:
    """Return the triad's bandwidth of one thread and of all, and the fewest threads that reach 95 % of the most."""
    lines = []
    for machine in dict.fromkeys(machine for machine, _, _ in stream()):
        triad = {threads: rate for (m, kernel, threads), rate in stream().items() if (m, kernel) == (machine, "triad")}
        enough = min(threads for threads, rate in triad.items() if rate >= 0.95 * max(triad.values()))
        most = max(triad)
        shares = (triad[1], triad[most], triad[most] / most / triad[1])
        lines.append([machine, most, f"{shares[0]:.2f}", f"{shares[1]:.2f}", f"{shares[2]:.0%}", enough])
    headers = [
        "machine",
        "cores",
        "one (GB/s)",
        "all (GB/s)",
        "a core's share of all over one",
        "95 % of the most from",
    ]
    return tables.markdown(lines, headers, right=headers[1:])


def cache_table() -> str:
    """Return CacheBench's bandwidths by operation for working sets from the first cache to memory."""
    rows = published("davis2017", "cachebench")
    found = {(r["operation"], int(r["working_set_bytes"])): r["bandwidth_GB_per_s"] for r in rows}
    lines = [
        [operation.replace("_", " "), *(found[operation, size] for size in WORKING_SETS)]
        for operation in dict.fromkeys(operation for operation, _ in found)
    ]
    titles = [f"{size // 1024} KiB" for size in WORKING_SETS]
    return tables.markdown(lines, ["operation", *titles], right=titles)


def solver_table() -> str:
    """Return the time of each function with and without joined reductions, and their sums."""
    times = solver_functions()
    functions = list(dict.fromkeys(function for function, _ in times))
    rows = {name: (times[name, "base"], times[name, "coalesced"]) for name in functions}
    rows["sum"] = (sum(base for base, _ in rows.values()), sum(joined for _, joined in rows.values()))
    lines = [[name, f"{base:.2f}", f"{joined:.2f}", f"{joined - base:+.2f}"] for name, (base, joined) in rows.items()]
    headers = ["function", "base", "coalesced", "difference"]
    return tables.markdown(lines, headers, right=headers[1:])
