"""Valen 2023: deep halos, ordered against direct exchange, phased against overlapped; 2D five-point stencil, f32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from haloscope.measure import space
from haloscope.measure.request import Request
from haloscope.records import stats
from haloscope.records.rows import Row, are_close, group_rows, speedup
from haloscope.report import tables
from haloscope.studies import Options, checks
from haloscope.studies.findings import Finding
from haloscope.studies.paper_panels import Line
from haloscope_studies.valen2023 import appendix, claims, comparisons, timers
from haloscope_studies.valen2023.comparisons import PUBLISHED_ITERATIONS, PUBLISHED_RANKS, UNCLEAR
from haloscope_studies.valen2023.findings import judged
from haloscope_studies.valen2023.model import Cell

SUMMARY = (
    "Valen 2023: how deep a halo, which exchange, overlap or not? Four programs of a 2D stencil over depths and sizes"
)
APP = "laplace2d"
DEFAULTS = {
    "quick": Options(sizes=(512, 2048), ranks=2, steps=128, repetitions=5, launches=3, depths=comparisons.DEPTHS[:4]),
    "full": Options(
        sizes=tuple(range(5000, 35001, 5000)), ranks=4, steps=2048, repetitions=5, launches=7, depths=comparisons.DEPTHS
    ),
}
PROGRAMS = comparisons.PROGRAMS
FASTEST = "fastest"
STRATEGIES = {"ordered": "ordered/p2p", "direct": "direct:corners/p2p"}
SCHEDULES = {"phased": "bulk", "overlapped": "split"}
# The same with fields on a device, as in the thesis: ordinary host memory (section 2.2), interior on a separate stream.
ON_DEVICE = {
    "ordered": "ordered/staged:pageable",
    "direct": "direct:corners/staged:pageable",
    "phased": "bulk",
    "overlapped": "streams",
}


def request(side: int, program: str, depth: int, options: Options) -> space.Space:
    """Return the request of one cell of the thesis' tables."""
    exchange, timing = program.split()
    words = ON_DEVICE if options.device else STRATEGIES | SCHEDULES
    axes = {
        "cells": (side, side),
        "ranks": options.ranks or 4,
        "schedule": words[timing],
        "device": options.device,
        "strategy": words[exchange],
        "depth": depth,
        "real": "f32",
        "process_grid": "square",
        "barrier": True,
    }
    return space.expand(APP, {name: [value] for name, value in axes.items()}, options.settings())


def points(options: Options) -> dict[tuple[int, str, int], space.Space]:
    """Return all cells: (side, program, depth) -> its request."""
    return {
        (side, program, depth): request(side, program, depth, options)
        for side in options.sizes
        for program in PROGRAMS
        for depth in options.depths
    }


def plan(options: Options) -> space.Space:
    """Return all measurements."""
    whole: space.Space[Request] = space.Space()
    for part in points(options).values():
        whole.requests += part.requests
        whole.refused += part.refused
    return space.with_verification(whole, None)


def report(found: Sequence[dict], options: Options) -> str:
    """Return tables like appendix C, then measured best depths next to published ones."""
    rows = measured_rows(found, options)
    texts = []
    for side in options.sizes:
        for program in PROGRAMS:
            table = {depth: rows[side, program, depth] for depth in options.depths if (side, program, depth) in rows}
            if table:
                texts.append(f"### Side {side}, {program}\n\n{appendix.table(side, program, table)}")
    cells = comparisons.measured_cells(rows)
    texts.append("### Best depth per program\n\n" + _best_depths(rows, cells))
    texts.append("### Best depths of the thesis\n\n" + _best_depths_of_the_thesis())
    unclear = unclear_coverage(rows)
    texts += [f"### Coverage, {e}, %\n\n{comparisons.coverage_table(cells, e, unclear)}" for e in STRATEGIES]
    texts.append("### Anomalies\n\n" + comparisons.anomaly_table(cells, unclear_anomalies(rows)))
    comparable = {key: row for key, row in rows.items() if comparisons.is_published(row)}
    launches = list(comparisons.tables_by_launch(comparable).values())
    texts.append("### Numbers in the text of the thesis\n\n" + claims.table(launches))
    return "\n\n".join(texts)


def measured_rows(found: Sequence[dict], options: Options) -> dict[tuple[int, str, int], Row]:
    """Return the measured cells: (side, program, depth) -> row."""
    by_id = {row.id: row for row in group_rows(found)}
    return {
        key: by_id[part.requests[0].id]
        for key, part in points(options).items()
        if part.requests and part.requests[0].id in by_id
    }


def findings(found: Sequence[dict], options: Options) -> Sequence[Finding]:
    """Return the thesis' conclusions, judged by appendix C and by records."""
    return judged(measured_rows(found, options))


def paper_lines(found: Sequence[dict], options: Options, stem: Path | None) -> dict[str, list[Line]]:  # noqa: ARG001
    """Return the lines of the panels of the paper's figures, besides the printed ones."""
    from haloscope_studies.valen2023 import paper

    return paper.lines(measured_rows(found, options))


def replay() -> checks.Replay:
    """Return the analytic model's results on the published tables, without measuring."""
    from haloscope_studies.valen2023 import replay as valen2023_replay

    return valen2023_replay.replay()


def unclear_coverage(rows: Mapping[tuple[int, str, int], Row]) -> set[tuple[int, str, int]]:
    """Return the (side, exchange, depth) whose phased and overlapped runs cannot be distinguished."""
    phased = {key: row for key, row in rows.items() if key[1].endswith("phased")}
    found = set()
    for (side, program, depth), row in phased.items():
        other = rows.get((side, program.replace("phased", "overlapped"), depth))
        if other is not None and are_close(other, row):
            found.add((side, program.split()[0], depth))
    return found


def unclear_anomalies(rows: Mapping[tuple[int, str, int], Row]) -> set[tuple[int, int]]:
    """Return the (side, depth) whose ratio of direct to ordered message times is above the limit by noise, perhaps."""
    found = set()
    for (side, program, depth), row in rows.items():
        other = rows.get((side, "ordered phased", depth))
        if program != "direct phased" or other is None:
            continue
        ratio = stats.ratio_of_launches(timers.messages(row), timers.messages(other))
        if ratio.low <= comparisons.STUMBLE < ratio.high:
            found.add((side, depth))
    return found


def published_best() -> dict[tuple[str, str], dict[int, tuple[int, float]]]:
    """Return, by GPU type and program, and by side, the best depth and its speed-up over ordered phased depth 1."""
    found: dict = {}
    for (gpu, side), own in comparisons.groups(comparisons.published_cells(), "machine", "side").items():
        best = comparisons.best_depths(own)
        for program in PROGRAMS:
            found.setdefault((gpu, program), {})[side] = best[program].depth, comparisons.speedup(own, best[program])
    return found


def _depths_text(rows: Mapping[tuple[int, str, int], Row], side: int, program: str, best: int) -> str:
    """Return the best depth of a program, and the depths that cannot be distinguished from it."""
    own = {depth: row for (s, p, depth), row in rows.items() if (s, p) == (side, program)}
    others = "".join(f", {depth}" for depth, row in own.items() if depth != best and are_close(row, own[best]))
    return str(best) + others + UNCLEAR * bool(others)


def fastest_programs(rows: Mapping[str, Row]) -> dict[str, str]:
    """Return a verdict on programs at their best depths: FASTEST for the fastest; with UNCLEAR where others cannot be
    distinguished from it, which have UNCLEAR alone.
    """
    fastest = min(rows, key=lambda program: rows[program].step.value)
    close = [program for program, row in rows.items() if program != fastest and are_close(row, rows[fastest])]
    return {fastest: FASTEST + UNCLEAR * bool(close)} | dict.fromkeys(close, UNCLEAR.strip())


def _best_depths(rows: Mapping[tuple[int, str, int], Row], cells: Sequence[Cell]) -> str:
    theirs = published_best()
    gpus = sorted({gpu for gpu, _ in theirs})
    lines = []
    for (side,), own in comparisons.groups(cells, "side").items():
        if (base := rows.get((side, *comparisons.BASE))) is None:
            continue
        best = comparisons.best_depths(own)
        depths = {program: best[program].depth for program in PROGRAMS if program in best}
        verdicts = fastest_programs({program: rows[side, program, depth] for program, depth in depths.items()})
        for program, depth in depths.items():
            gain = speedup(rows[side, program, depth], base)
            line = [side, program, _depths_text(rows, side, program, depth), verdicts.get(program, "")]
            line += [f"{gain.value:.3f}", tables.interval(gain, "{:.3f}".format)]
            of_side = [theirs[gpu, program].get(side) if comparisons.is_published(base) else None for gpu in gpus]
            line += [f"{one[0]}: {one[1]:.2f}" if one else "" for one in of_side]
            lines.append(line)
    headers = ["side", "program", "best depth", "of all programs", "speed-up", "95 %"]
    headers += [f"published {gpu}, depth: speed-up" for gpu in gpus]
    program, depth = comparisons.BASE
    note = (
        f"\n\nSpeed-ups are over {program} depth {depth} of the same side.{UNCLEAR}: depths or programs that cannot be "
        "distinguished from the fastest, which these same runs selected. Published numbers stand next to runs of the "
        f"same side with {PUBLISHED_RANKS} ranks and {PUBLISHED_ITERATIONS} iterations."
    )
    return tables.markdown(lines, headers, right=("side", "best depth", "speed-up")) + note


def _best_depths_of_the_thesis() -> str:
    """Return the ranges of published best depths over sides, by program and GPU type."""
    theirs = published_best()
    gpus = sorted({gpu for gpu, _ in theirs})
    lines = []
    for program in PROGRAMS:
        line = [program]
        for gpu in gpus:
            depths, gains = zip(*theirs[gpu, program].values(), strict=True)
            line.append(f"{min(depths)}..{max(depths)}: {min(gains):.2f}..{max(gains):.2f}")
        lines.append(line)
    note = (
        f"\n\n{PUBLISHED_RANKS} ranks with a GPU each, {PUBLISHED_ITERATIONS} iterations, sides 5000 to "
        "35000, best over depths 1 to 64, from smallest to largest value."
    )
    return tables.markdown(lines, ["program", *(f"{gpu}, depth: speed-up" for gpu in gpus)]) + note
