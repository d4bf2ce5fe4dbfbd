"""Measurements of `haloscope study davis2017`: hydro3d as the studied code runs it, its variants, and both scalings.

Every run of a set makes the same replay of sub-cycles, as the studied code does in weak scaling (table 4.3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from haloscope import bridge
from haloscope.bridge.choice import Choice
from haloscope.measure import space
from haloscope.measure.request import Request
from haloscope.studies import Options, published

APP, CG = "hydro3d", "cg3d"
CG_SECONDS = 0.05  # of a repetition
CG_SIDE = 50  # cells of a rank's block per side in chapter 7
# A stage of this method has the product alone, so that its parts have separate timers. Source: section 7, MatMult.
PRODUCT = {"form": "plain", "schedule": "split", "set": (("method", "pipelined"),)}
ORDERED, DIRECT = "ordered:corners,fields=type/p2p", "direct:corners,fields=type/p2p"
STUDIED = {"strategy": ORDERED, "temporaries": "freed", "set": (("collectives", "studied"),)}
QUICK_REPLAY = "2,1,1"  # steps with 1, 2, 3 sub-cycles
WEAK = ("weak", "single-reduction", "product")  # experiments in which every rank has a block of the point's size
MOST_STEPS = 10**6  # a replay ends by itself


@dataclass(frozen=True)
class Variant:
    """A version of the code. `choice`: fields of Choice on top of the studied set-up. baseline: a user's natural
    comparison. control: the version that differs only in the judged property. pes: the kind of its processing
    elements, `ranks` or `threads`. Source: Davis 2017, chapter 6."""

    letter: str
    title: str
    choice: Mapping = field(default_factory=dict)
    baseline: str = ""
    control: str = ""
    pes: str = "ranks"


VARIANTS = (
    Variant("A", "as studied: loops in the order of the dimension", {"form": "lines"}),
    Variant("B", "x innermost, rows of temporaries", {"form": "scalar"}, "A", "A"),
    Variant("C", "a full loop for each part, 3D temporaries", {"form": "arrays"}, "A", "A"),
    Variant("D", "B as the control of E", {"form": "scalar"}, "A", "B"),
    Variant("E", "vectors", {"form": "vector"}, "B", "D"),
    Variant("F", "E, messages to all 26 neighbours concurrently", {"form": "vector", "strategy": DIRECT}, "E", "E"),
    Variant(
        "G", "F, interior and boundary apart", {"form": "vector", "strategy": DIRECT, "schedule": "divided"}, "E", "F"
    ),
    Variant(
        "H", "G, interior while messages travel", {"form": "vector", "strategy": DIRECT, "schedule": "split"}, "E", "G"
    ),
    Variant("I", "E in threads, even shares", {"form": "vector"}, "E", "E", "threads"),
    Variant("J", "I, a layer at a time as they come", {"form": "vector", "piece": 1}, "E", "I", "threads"),
    Variant(
        "K",
        "J, interior and boundary apart",
        {"form": "vector", "piece": 1, "schedule": "divided"},
        "E",
        "J",
        "threads",
    ),
    Variant(
        "L",
        "K, one thread communicates meanwhile",
        {"form": "vector", "piece": 1, "schedule": "comm-thread"},
        "E",
        "K",
        "threads",
    ),
    Variant(
        "M",
        "the best here: fused, nothing freed or zeroed, needed halos only",
        {"form": "fused", "strategy": "ordered/p2p", "temporaries": "kept", "set": (("exchange", "needed"),)},
        "B",
        "E",
    ),
)
PIECES = (1, 2, 4, 8, 16)  # of the block-size sweep (table A.64)


@dataclass(frozen=True)
class Point:
    """One run: its experiment, its variant, cells per side (of a rank's block in the experiments of WEAK), processing
    elements. Conjugate gradients have the scalings of one variant, runs with joined reductions, and runs with a
    separate product."""

    experiment: str
    letter: str
    side: int
    pes: int
    piece: int = 0
    barrier: bool = False
    kept: bool = False
    app: str = APP


def pe_counts(cores: int) -> list[int]:
    """Return the numbers of processing elements to report: powers of two up to this machine's cores."""
    return [2**k for k in range(cores.bit_length()) if 2**k <= cores]


def replay_of(side: int, short: bool) -> str:
    """Return the histogram of sub-cycles that the study prints for a size, else the histogram of its weak-scaling runs;
    a few steps for a short run."""
    if short:
        return QUICK_REPLAY
    rows = {int(r["cells_per_side"]): r for r in published("davis2017", "iterations") if r["use"] == "serial_or_strong"}
    row = rows.get(side, rows[100])
    return ",".join(row[f"n{n}"] for n in (1, 2, 3, 4))


def request(point: Point, options: Options) -> Request:
    """Return the run of a point: a replay of hydro3d, or iterations of cg3d for a fixed time."""
    fields: dict[str, Any]
    how: dict[str, Any]
    if point.app == CG:
        fields, how = cg_fields(point), {"seconds": CG_SECONDS}
    else:
        fields, how = hydro_fields(point, options), {"steps": options.steps or MOST_STEPS}
    grid = process_grid(fields["ranks"])
    cells = tuple(point.side * (n if point.experiment in WEAK else 1) for n in grid)
    choice = Choice(point.app, cells, process_grid="x".join(map(str, grid)), **fields)
    return Request.of(bridge.normal(choice), repetitions=options.repetitions, warmup=1, **how)


def cg_fields(point: Point) -> dict:
    """Return the fields of the choice of a point of cg3d, without the grid."""
    if point.experiment == "product":
        return {"ranks": point.pes, **PRODUCT}
    joined = point.experiment == "single-reduction"
    return {"ranks": point.pes, "set": (("method", "single-reduction"),) if joined else ()}


def hydro_fields(point: Point, options: Options) -> dict:
    """Return the fields of the choice of a point of hydro3d, without the grid: the studied set-up, changed by the
    variant, then by the point."""
    variant = next(v for v in VARIANTS if v.letter == point.letter)
    ranks, threads = split_pes(variant, point.pes)
    fields = {**STUDIED, **variant.choice, "ranks": ranks, "threads": threads, "barrier": point.barrier}
    if point.kept:
        fields["temporaries"] = "kept"
    if point.piece:
        fields["piece"] = point.piece
    replay = {"initial": "sod", "replay": replay_of(point.side, options.short)}
    return fields | {"set": tuple((dict(fields["set"]) | replay).items())}


def split_pes(variant: Variant, pes: int) -> tuple[int, int]:
    """Return ranks and threads of each: one process up to four threads, then two (section 8.5)."""
    if variant.pes == "ranks":
        return pes, 1
    ranks = 1 if pes <= 4 else 2
    return ranks, pes // ranks


def process_grid(ranks: int) -> tuple[int, ...]:
    """Return the study's decomposition of a cube: prime factors to the dimension with most cells, ties to z, y, x."""
    return bridge.make_layout(Choice(APP, (2 * math.lcm(*range(1, 9)),) * 3, ranks=ranks)).ranks


def scalings(options: Options, app: str = APP) -> Iterator[Point]:
    """Yield the serial runs and the weak and strong scaling of A, or of conjugate gradients."""
    for side in options.sizes:
        yield Point("serial", "A", side, 1, app=app)
        for pes in pe_counts(options.cores)[1:]:
            yield Point("strong", "A", side, pes, app=app)
            yield Point("weak", "A", side, pes, app=app)


def points(options: Options) -> Iterator[Point]:
    """Yield everything to measure: serial, weak and strong scaling of A and of conjugate gradients, their reductions
    joined, the variants, barriers, memory, pieces."""
    counts = pe_counts(options.cores)
    yield from scalings(options)
    yield from scalings(options, CG)
    largest, middle = options.sizes[-1], options.sizes[len(options.sizes) // 2]
    for pes in counts:
        yield Point("single-reduction", "A", middle, pes, app=CG)
        if pes > 1:
            yield Point("product", "A", CG_SIDE, pes, app=CG)
    for pes in dict.fromkeys((1, counts[-1])):
        for variant in VARIANTS:
            if pes == 1 and (variant.pes == "threads" or variant.choice.get("schedule") or variant.letter == "F"):
                continue  # nothing to share or to send
            yield Point("variants", variant.letter, middle, pes)
    for side in options.sizes:
        for letter in "BEM":
            yield Point("serial", letter, side, 1)
    for pes in counts:
        yield Point("barrier", "A", middle, pes, barrier=True)
    yield Point("memory", "A", largest, 1, kept=True)
    for piece in PIECES if counts[-1] > 1 else ():
        yield Point("pieces", "J", middle, counts[-1], piece=piece)


def planned(options: Options) -> dict[Point, Request]:
    """Return the run of each point."""
    return {point: request(point, options) for point in points(options)}


def plan(options: Options) -> space.Space:
    """Return all measurements, each piece of work once."""
    whole: space.Space[Request] = space.Space()
    seen: set[bridge.Choice] = set()
    for run in planned(options).values():
        if run.choice in seen:
            continue
        seen.add(run.choice)
        reason = bridge.illegal(run.choice)
        whole.refused.append((run, reason)) if reason else whole.requests.append(run)
    return space.with_verification(whole, 1)
