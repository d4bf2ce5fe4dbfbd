"""White & Dongarra 2011: advection in 3D, implementations A to D, threads per task tuned, and E to I on a device."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from haloscope.measure import space
from haloscope.measure.request import Request
from haloscope.records import stats
from haloscope.records.rows import are_close, group_rows, speedup
from haloscope.report import tables
from haloscope.studies import Options, checks, published

SUMMARY = (
    "White & Dongarra 2011: does overlap pay? Implementations A to D of 3D advection, E to I with a GPU, threads per "
    "task tuned"
)
APP, FORM = "advection3d", "dense"
DEFAULTS = {
    "quick": Options(sizes=(128,), seconds=0.2, repetitions=3, launches=3),
    "full": Options(sizes=(420,), seconds=5.0, repetitions=3, launches=5),
}
STRATEGY = "ordered/p2p"  # six messages, dimension by dimension (IV-B)

# letter: name, schedule, smallest and largest number of tasks, fewest and most threads of each
IMPLEMENTATIONS = {
    "A": ("single task", "bulk", 1, 1, 1, math.inf),
    "B": ("bulk-synchronous MPI", "bulk", 1, math.inf, 1, math.inf),
    "C": ("non-blocking overlap", "interleaved", 1, math.inf, 1, math.inf),
    "D": ("threaded overlap", "comm-thread", 1, math.inf, 2, math.inf),
}
# The same on a device, with the strategy: threads compute in H and I only, around a device's block with walls of 3
# cells, the paper's best (V-F); others take one task per core, sharing the devices. Messages of F and G
# go straight to all neighbours, because their kernels pack everything before the exchange and nothing between its
# rounds.
ON_DEVICE = {
    "E": ("GPU resident", "resident", 1, 1, 1, 1, "ordered/staged"),
    "F": ("GPU and bulk-synchronous MPI", "faces", 1, math.inf, 1, 1, "direct/staged"),
    "G": ("GPU and MPI, streams", "faces-overlap", 1, math.inf, 1, 1, "direct/staged"),
    "H": ("CPU and GPU, bulk-synchronous MPI", "box", 1, math.inf, 1, math.inf, STRATEGY),
    "I": ("CPU and GPU, full overlap", "box-overlap", 1, math.inf, 1, math.inf, STRATEGY),
}
WALLS = 3
VERSIONS: dict[str, tuple[Any, ...]] = {**IMPLEMENTATIONS, **ON_DEVICE}
EXPECTED = {  # section 9: signs to expect, nothing to pass or fail
    "C": "slightly faster below 4000 cores of JaguarPF (40000 of Hopper II), slower above; little or nothing elsewhere",
    "D": "behind everywhere",
}


def core_counts(cores: int) -> list[int]:
    """Return the core counts to report: powers of two and all cores."""
    return sorted({2**k for k in range(cores.bit_length()) if 2**k <= cores} | {cores})


def splits(letter: str, cores: int) -> list[tuple[int, int]]:
    """Return the ways (tasks, threads per task) to use `cores` cores; for D on two cores also 2 x 2."""
    _, _, fewest, most, threads, most_threads, *_ = VERSIONS[letter]
    found = [(n, min(cores // n, most_threads)) for n in range(1, cores + 1) if cores % n == 0]
    found = [(tasks, t) for tasks, t in found if fewest <= tasks <= most and t >= threads]
    if letter == "D" and cores == 2:
        found.append((2, 2))  # more threads than cores: marked, and not ranked
    return found


def request(letter: str, cells: int, tasks: int, threads: int, options: Options) -> space.Space:
    """Return the request of one point of the tuning grid."""
    axes = {
        "cells": (cells,) * 3,
        "ranks": tasks,
        "threads": threads,
        "schedule": VERSIONS[letter][1],
        "strategy": STRATEGY,
        "form": FORM,
    }
    if letter in ON_DEVICE:  # the walls count in schedules that have some
        axes |= {"device": options.device, "strategy": ON_DEVICE[letter][-1], "walls": WALLS}
    return space.expand(APP, {name: [value] for name, value in axes.items()}, options.settings())


def points(options: Options) -> dict[tuple[int, int, str, int, int], space.Space]:
    """Return all points: (cells, cores, implementation, tasks, threads) -> its request."""
    return {
        (cells, cores, letter, tasks, threads): request(letter, cells, tasks, threads, options)
        for cells in options.sizes
        for cores in core_counts(options.cores)
        for letter in (VERSIONS if options.device else IMPLEMENTATIONS)
        for tasks, threads in splits(letter, cores)
    }


def plan(options: Options) -> space.Space:
    """Return all measurements, each piece of work once: A is B with one task."""
    whole: space.Space[Request] = space.Space()
    for part in points(options).values():
        whole.requests += [r for r in part.requests if r not in whole.requests]
        whole.refused += part.refused
    return space.with_verification(whole, None)


def report(found: Sequence[dict], options: Options) -> str:
    """Return tables of all points, the best per core count, gains of overlap, code size."""
    by_id = {row.id: row for row in group_rows(found)}
    measured = {
        key: by_id[part.requests[0].id]
        for key, part in points(options).items()
        if part.requests and part.requests[0].id in by_id
    }
    best = best_of(measured)
    return "\n\n".join(
        [
            "### All points\n\n" + _table(measured),
            "### Best per core count\n\n" + _table(best, rivals(best, measured)),
            "### Gains of overlap\n\n" + _gains(best),
            "### Lines of code per schedule\n\n" + _lines_of_code(),
        ]
    )


def replay() -> checks.Replay:
    """Return the results of the model of concurrent parts on the paper's stated speeds, without measuring."""
    from haloscope_studies.white2011 import replay as white2011_replay

    return white2011_replay.replay()


def best_of(measured: dict) -> dict:
    """Return the fastest split of each implementation at each core count; oversubscribed splits do not count."""
    best: dict = {}
    for (cells, cores, letter, tasks, threads), row in measured.items():
        if not row.oversubscribed:
            known = best.get((cells, cores, letter))
            if known is None or row.step.value < known[1].step.value:
                best[cells, cores, letter] = ((tasks, threads), row)
    return {(cells, cores, letter, *split): row for (cells, cores, letter), (split, row) in best.items()}


def rivals(best: dict, measured: dict) -> dict[tuple, str]:
    """Return a note on each best split that other splits cannot be distinguished from."""
    notes = {}
    for key, row in best.items():
        others = [k for k, r in measured.items() if k[:3] == key[:3] and k != key and not r.oversubscribed]
        if close := [f"{k[3]} x {k[4]}" for k in others if are_close(measured[k], row)]:
            notes[key] = f"{', '.join(close)}: {stats.NO_CHOICE}"
    return notes


def _table(measured: dict, remarks: Mapping[tuple, str] | None = None) -> str:
    headers = [
        "cells",
        "cores",
        "implementation",
        "tasks x threads",
        "GF/s",
        "step (ms)",
        "95 %",
        "spread",
        "check",
        "notes",
    ]
    lines = []
    for (cells, cores, letter, tasks, threads), row in measured.items():
        spread = f"{100 * (row.step.high - row.step.low) / row.step.value:.0f} %"
        name = f"{letter} {VERSIONS[letter][0]}"
        times = [
            f"{row.gflops:.2f}",
            tables.number(row.step.value * 1e3),
            tables.interval(row.step, factor=1e3),
            spread,
        ]
        remark = (remarks or {}).get((cells, cores, letter, tasks, threads), "")
        notes = "; ".join(filter(None, (remark, row.notes())))
        lines.append([f"{cells}^3", cores, name, f"{tasks} x {threads}", *times, row.verification, notes])
    return tables.markdown(lines, headers, right=("cores", "GF/s", "step (ms)", "spread"))


def gains(best: dict) -> list[tuple[int, int, str, stats.Estimate]]:
    """Return the speed of C and D over B, each at its best split: (cells, cores, implementation, time ratio)."""
    rows = {key[:3]: row for key, row in best.items()}
    return [
        (cells, cores, letter, speedup(row, rows[cells, cores, "B"]))
        for (cells, cores, letter), row in rows.items()
        if letter in "CD" and (cells, cores, "B") in rows
    ]


def _gains(best: dict) -> str:
    lines = []
    for cells, cores, letter, gain in gains(best):
        verdict = stats.verdict_text(gain, "faster", "slower")
        ends = tables.interval(gain, "{:.3f}".format)
        lines.append([f"{cells}^3", cores, f"{letter} over B", f"{gain.value:.3f}", ends, verdict, EXPECTED[letter]])
    headers = ["cells", "cores", "", "speed", "95 %", "here", "published"]
    return tables.markdown(lines, headers, right=("cores", "speed"))


def schedule_sources() -> Path:
    """Return the folder of the schedules' sources in a checkout."""
    return Path(__file__).resolve().parents[3] / "src" / "library" / "haloscope" / "schedule"


def lines_of_code(text: str) -> int:
    """Count lines of C++ without blank lines and comments, as the paper does."""
    without = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    return sum(bool(line.strip()) for line in without.splitlines())


def _lines_of_code() -> str:
    folder = schedule_sources()
    if not folder.exists():
        return "The sources are not installed; run this study in a checkout to count them."
    stated = {
        row["implementation"]: row["value"]
        for row in published("white2011", "stated_results")
        if row["quantity"] == "lines_of_code_over_A"
    }
    paper = {
        "A": "1 (215 lines)",
        "B": f"{stated['B-D mpi (lowest)']} or more",
        "D": f"{stated['B-D mpi (lowest)']} or more",
        "C": stated["C mpi nonblocking overlap"],
    }
    counts = {
        letter: lines_of_code((folder / f"{name.replace('-', '_')}.cpp").read_text())
        for letter, (_, name, *_) in IMPLEMENTATIONS.items()
    }
    lines = [
        [
            f"{letter} {IMPLEMENTATIONS[letter][0]}",
            IMPLEMENTATIONS[letter][1],
            count,
            f"{count / counts['A']:.2f}",
            paper[letter],
        ]
        for letter, count in counts.items()
    ]
    table = tables.markdown(
        lines, ["implementation", "schedule", "lines", "over A", "published, over A"], right=("lines", "over A")
    )
    return table + "\n\nA and B are one schedule here: with one task all halos are the task's own."
