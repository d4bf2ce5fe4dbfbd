"""The study's variants A to L against their predecessors, by its printed times (chapter 6, appendix A.51 to A.72).

A variant differs from its predecessor by one change; C, D, F, G and K are controls, not expected to be faster. Ratios
compare runs with one MPI library. Source: digest of the study, section 8.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from haloscope.report import tables
from haloscope.studies import published

# Variant -> the variant that it was made from.
PREDECESSOR = {"B": "A", "C": "A", "F": "C", "G": "F", "H": "G", "I": "C", "J": "I", "K": "J", "L": "K"}
LIBRARIES = {"OpenMPI-1.4.3": "ABCFGH", "OpenMPI-1.4.4": "CIJKL"}  # variants printed with each MPI library
SIDES = (30, 50, 80, 100, 120, 150)
LINES, THREADS = (
    150 * 75,
    6,
)  # innermost loops of a process, 150^3 cells on two of them, and the threads that share them
STATIC = ("I", "strong", 12)  # the run without blocks next to table A.64


@functools.cache
def walltimes() -> dict[tuple[str, str, str, int, int], float]:
    """Return seconds by MPI library, variant, scaling, cells per side and processing elements."""
    return {
        (r["mpi_library"], r["variant"], r["scaling"], int(r["cells_per_side"]), int(r["pes"])): float(r["time_s"])
        for r in published("davis2017", "variant_walltimes")
    }


def gain(library: str, variant: str, scaling: str, side: int, pes: int) -> float | None:
    """Return the time of the predecessor over the time of a variant in the same run; None if one is not printed."""
    times = walltimes()
    old, new = (times.get((library, v, scaling, side, pes)) for v in (PREDECESSOR[variant], variant))
    return None if old is None or new is None else old / new


@functools.cache
def vector_gain() -> dict[tuple[str, int], float]:
    """Return the time of D, not vectorised, over the time of E, with SSE, by kernel and cells per side. Tables A.53 to
    A.59.
    """
    times = {(r["kernel"], r["variant"], int(r["cells_per_side"])): float(r["time_s"]) for r in _vector()}
    return {
        (kernel, side): t / times[kernel, "E", side] for (kernel, variant, side), t in times.items() if variant == "D"
    }


def vector_share() -> dict[str, tuple[float, float]]:
    """Return least and most vector operations per operation of E by kernel; with two doubles each 0.5 is all. Table
    6.4.
    """
    found: dict[str, list[float]] = {}
    for r in _vector():
        if r["vector_operations"]:
            found.setdefault(r["kernel"], []).append(float(r["vector_operations"]) / float(r["dp_operations"]))
    return {kernel: (min(shares), max(shares)) for kernel, shares in found.items()}


def _vector() -> list[dict[str, str]]:
    return published("davis2017", "kernels_vector")


@functools.cache
def function_means() -> dict[tuple[str, str, int], float]:
    """Return mean seconds per call by function, variant and processing elements, weak scaling. Tables A.61 to A.72."""
    rows = [r for r in published("davis2017", "overlap_functions") if r["statistic"] == "mean"]
    return {(r["function"], r["variant"], int(r["pes"])): float(r["time_s"]) for r in rows}


# ---- tables ----------------------------------------------------------------------------------------------------------


def markdown() -> str:
    """Return all tables of this module."""
    parts = {
        "Memory and exchange: time of the predecessor over that of the variant": ratios("OpenMPI-1.4.3"),
        "Threads: the same, with OpenMPI 1.4.4": ratios("OpenMPI-1.4.4"),
        "Vectorised: D over E": vectorised(),
        "Vectorised, on one Xeon X3430, 100^3 (table 6.5)": stalls(),
        "Block size of J, 150^3 on 2 processes of 6 threads (table A.64)": blocks(),
        "A thread that communicates: function times of K and L, weak scaling": thread(),
        "Non-blocking exchange: function times on 256 processes, weak scaling": nonblocking(),
    }
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in parts.items())


def ratios(library: str) -> str:
    """Return the gain of each variant over its predecessor, by run, for one MPI library."""
    variants = [v for v in LIBRARIES[library] if PREDECESSOR.get(v, "") in LIBRARIES[library] and v in PREDECESSOR]
    runs = sorted({key[2:] for key in walltimes() if key[0] == library})  # serial, strong, weak
    lines = []
    for scaling, side, pes in runs:
        gains = [gain(library, variant, scaling, side, pes) for variant in variants]
        if any(gains):
            lines.append([scaling, f"{side}^3", pes, *("" if g is None else f"{g:.2f}" for g in gains)])
    titles = [f"{PREDECESSOR[v]}/{v}" for v in variants]
    return tables.markdown(lines, ["scaling", "cells", "PEs", *titles], right=["PEs", *titles])


def vectorised() -> str:
    """Return D over E by kernel and size, and the share of vector operations in E."""
    gains, shares = vector_gain(), vector_share()
    lines = []
    for kernel in dict.fromkeys(kernel for kernel, _ in gains):
        least, most = shares[kernel]
        lines.append([kernel, *(f"{gains[kernel, side]:.2f}" for side in SIDES), f"{least:.2f} to {most:.2f}"])
    titles = [f"{side}^3" for side in SIDES]
    return tables.markdown(lines, ["kernel", *titles, "vector operations per operation"], right=titles)


def stalls() -> str:
    """Return the share of stalled cycles, recomputed, and the changes of time and L1 accesses by D and E."""
    rows = {(r["kernel"], r["variant"]): r for r in published("davis2017", "kernels_x3430")}
    lines = []
    for kernel in dict.fromkeys(kernel for kernel, _ in rows):
        shares = [stalled(rows[kernel, v]) for v in "CDE"]
        seconds, accesses = ([float(rows[kernel, v][name]) for v in "CDE"] for name in ("time_s", "l1_accesses"))
        lines.append(
            [
                kernel,
                *(f"{s:.1%}" for s in shares),
                f"{seconds[1] / seconds[2]:.2f}",
                f"{seconds[0] / seconds[2]:.2f}",
                f"{accesses[2] / accesses[0]:.2f}",
            ]
        )
    headers = ["kernel", "stalled C", "stalled D", "stalled E", "D/E", "C/E", "L1 accesses E/C"]
    return tables.markdown(lines, headers, right=headers[1:])


def stalled(row: Mapping[str, str]) -> float:
    """Return the share of stalled cycles of a kernel."""
    return float(row["stalled_cycles"]) / float(row["cycles"])


def blocks() -> str:
    """Return the time of J by block size, and its ratio to I, whose threads get equal shares."""
    static = walltimes()["OpenMPI-1.4.4", STATIC[0], STATIC[1], 150, STATIC[2]]
    lines = [
        [r["block"], f"{LINES / int(r['block']) / THREADS:.1f}", r["time_s"], f"{float(r['time_s']) / static:.2f}"]
        for r in published("davis2017", "openmp_block_size")
    ]
    return tables.markdown(
        lines, ["block", "blocks per thread", "s", "over I"], right=("block", "blocks per thread", "s", "over I")
    )


def thread() -> str:
    """Return the effects of a communicating thread: functions, their exchange, and the compute left to the master."""
    counts = sorted({pes for _, variant, pes in function_means() if variant == "L"})
    return _pairs("K", "L", ("Lartvis", "LartvisExch", "Lartvis1", "Madvmx", "MadvmxExch", "Madvmx1"), counts)


def nonblocking() -> str:
    """Return exchange times of G and H and compute times of F and H."""
    functions = list(dict.fromkeys(f for f, _, pes in function_means() if pes == 256))
    exchanges = [f for f in functions if f.endswith("Exch")]
    computes = [f for f in functions if f.endswith("Comp")]
    return f"{_pairs('G', 'H', exchanges, [256])}\n\n{_pairs('F', 'H', computes, [256])}"


def _pairs(old: str, new: str, functions: Sequence[str], counts: Sequence[int]) -> str:
    means, lines = function_means(), []
    for function in functions:
        for pes in counts:
            if (function, old, pes) in means and (function, new, pes) in means:
                before, after = (1e3 * means[function, v, pes] for v in (old, new))
                lines.append([function, pes, tables.number(before), tables.number(after), f"{after / before:.2f}"])
    headers = ["function", "PEs", f"{old} (ms)", f"{new} (ms)", f"{new}/{old}"]
    return tables.markdown(lines, headers, right=headers[1:])
