"""Valen 2023: deep halos, ordered against direct exchange, phased against overlapped; 2D five-point stencil, f32."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from haloscope import stats, sweep, tables
from haloscope.studies import Options, published

SUMMARY = (
    "Valen 2023: how deep a halo, which exchange, overlap or not? Four programs of a 2D stencil over depths and sizes"
)
APP = "laplace2d"
DEPTHS = (1, 2, 4, 8, 16, 32, 64)
DEFAULTS = {
    "quick": Options(sizes=(512, 2048), ranks=2, steps=128, repetitions=5, launches=3, depths=DEPTHS[:4]),
    "full": Options(
        sizes=tuple(range(5000, 35001, 5000)), ranks=4, steps=2048, repetitions=5, launches=7, depths=DEPTHS
    ),
}
# program: exchange of the published table, strategy, overlap of the published table, schedule
PROGRAMS = {
    "ordered phased": ("ordered", "ordered/p2p", "0", "bulk"),
    "ordered overlapped": ("ordered", "ordered/p2p", "1", "split"),
    "direct phased": ("direct", "direct:corners/p2p", "0", "bulk"),
    "direct overlapped": ("direct", "direct:corners/p2p", "1", "split"),
}
BASE = ("ordered phased", 1)  # what section 9.1 refers speed-ups to
PUBLISHED_ITERATIONS = 2048


def configuration(side: int, program: str, depth: int, options: Options) -> sweep.Sweep:
    """One cell of the thesis' tables."""
    _, strategy, _, schedule = PROGRAMS[program]
    axes = {"cells": (side, side), "ranks": options.ranks or 4, "schedule": schedule, "strategy": strategy, "depth": depth,
            "region": "full", "real": "f32", "process_grid": "valen", "barrier": True}  # fmt: skip
    return sweep.expand(APP, {name: [value] for name, value in axes.items()}, options.settings())


def points(options: Options) -> dict[tuple[int, str, int], sweep.Sweep]:
    """All cells: (side, program, depth) -> its configuration."""
    return {
        (side, program, depth): configuration(side, program, depth, options)
        for side in options.sizes
        for program in PROGRAMS
        for depth in options.depths
    }


def plan(options: Options) -> sweep.Sweep:
    """Everything to measure."""
    whole = sweep.Sweep()
    for part in points(options).values():
        whole.configurations += part.configurations
        whole.refused += part.refused
    return sweep.with_verification(whole, None)


def report(found: Sequence[dict], options: Options) -> str:
    """Tables like appendix C, then best depths with the published ones beside ours."""
    by_id = {row.id: row for row in tables.rows(found)}
    rows = {
        key: by_id[part.configurations[0].id]
        for key, part in points(options).items()
        if part.configurations and part.configurations[0].id in by_id
    }
    texts = []
    for side in options.sizes:
        for program in PROGRAMS:
            table = {depth: rows[side, program, depth] for depth in options.depths if (side, program, depth) in rows}
            if table:
                texts.append(f"### Side {side}, {program}\n\n" + _appendix_table(side, program, table))
    texts.append("### Best depth per program\n\n" + _best_depths(rows, options))
    return "\n\n".join(texts)


def _appendix_table(side: int, program: str, table: dict[int, tables.Row]) -> str:
    """Times per run of `steps` iterations: execution as mean, standard deviation and count over all repetitions; timers as mean over ranks."""
    timers = [name for name in tables.TERSE if name != "execution"] + ["rest"]
    theirs = {depth: published_times(side, program, depth) for depth in table}
    gpus = sorted({gpu for times in theirs.values() for gpu in times})
    unit, factor = tables.unit(row.request["steps"] * row.step.value for row in table.values())
    headers = ["depth", f"execution ({unit})", "sd", "count", *timers]
    headers += [*(f"{gpu} published (s)" for gpu in gpus), "check", "notes"]
    lines = []
    for depth, row in table.items():
        runs = [row.request["steps"] * step * factor for steps in row.launches.values() for step in steps]
        parts = tables.thesis_timers(row)
        line = [depth, tables.number(statistics.mean(runs)), tables.number(statistics.stdev(runs)) if len(runs) > 1 else "",
                len(runs)]  # fmt: skip
        line += [tables.number(parts[name] * factor) for name in timers]
        line += [f"{theirs[depth][gpu]:.4f}" if gpu in theirs[depth] else "" for gpu in gpus]
        lines.append([*line, row.verification, row.notes()])
    return tables.markdown(lines, headers, right=headers[: 4 + len(timers) + len(gpus)])


def published_times(side: int, program: str, depth: int) -> dict[str, float]:
    """The thesis' execution times of a cell by GPU type, seconds; empty where it has no such cell."""
    exchange, _, overlap, _ = PROGRAMS[program]
    return {
        row["gpu"]: float(row["execution_s"])
        for row in published("valen2023", "valen_tables")
        if (row["side"], row["exchange"], row["overlap"], row["depth"]) == (str(side), exchange, overlap, str(depth))
    }


def published_best() -> dict[tuple[str, str], tuple[list[int], list[float]]]:
    """Per GPU type and program: the best depth and its speed-up over ordered phased depth 1, one value per side."""
    table = published("valen2023", "valen_tables")
    found: dict = {}
    for gpu in sorted({row["gpu"] for row in table}):
        for side in sorted({int(row["side"]) for row in table}):
            here = [row for row in table if row["gpu"] == gpu and int(row["side"]) == side]
            base = _published_time(here, *BASE)
            for program in PROGRAMS:
                depth = min(DEPTHS, key=lambda d, p=program, h=here: _published_time(h, p, d))
                depths, gains = found.setdefault((gpu, program), ([], []))
                depths.append(depth)
                gains.append(base / _published_time(here, program, depth))
    return found


def _published_time(rows: Sequence[dict], program: str, depth: int) -> float:
    exchange, _, overlap, _ = PROGRAMS[program]
    wanted = (exchange, overlap, str(depth))
    return next(float(r["execution_s"]) for r in rows if (r["exchange"], r["overlap"], r["depth"]) == wanted)


def best_depth(rows: dict, side: int, program: str) -> tuple[int, stats.Estimate] | None:
    """Our fastest depth of a program and its speed-up over ordered phased depth 1, None where something is missing."""
    base = rows.get((side, *BASE))
    table = {depth: row for (s, p, depth), row in rows.items() if (s, p) == (side, program)}
    if base is None or not table:
        return None
    depth = min(table, key=lambda d: table[d].step.value)
    return depth, tables.speedup(table[depth], base)


def _best_depths(rows: dict, options: Options) -> str:
    theirs = published_best()
    gpus = sorted({gpu for gpu, _ in theirs})
    lines = []
    for side in options.sizes:
        for program in PROGRAMS:
            ours = best_depth(rows, side, program)
            if ours is None:
                continue
            depth, gain = ours
            line = [side, program, depth, f"{gain.value:.3f}", tables.interval(gain, "{:.3f}".format)]
            for gpu in gpus:
                depths, gains = theirs[gpu, program]
                line.append(f"{min(depths)}..{max(depths)}: {min(gains):.2f}..{max(gains):.2f}")
            lines.append(line)
    headers = [
        "side",
        "program",
        "best depth",
        "speed-up",
        "95 %",
        *(f"published {gpu}, depth: speed-up" for gpu in gpus),
    ]
    note = (
        f"\n\nSpeed-ups are over {BASE[0]} depth {BASE[1]} of the same side. Published: 4 ranks with a GPU each, "
        f"{PUBLISHED_ITERATIONS} iterations, sides 5000 to 35000, best over depths 1 to 64, from smallest to largest value."
    )
    return tables.markdown(lines, headers, right=("side", "best depth", "speed-up")) + note
