"""The requests that bench/gpu.py runs on a GPU, in the format of `haloscope-rank`, to verify and to measure."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

LAPLACE2D = {"app": "laplace2d", "real": "f32"}
DENSE, SEPARABLE = ({"app": "advection3d", "form": form} for form in ("dense", "separable"))
VERIFIED = (
    LAPLACE2D | {"cells": (149, 117)},
    LAPLACE2D | {"cells": (131, 90), "real": "f64"},
    {"app": "laplace3d", "real": "f32", "cells": (43, 37, 41)},
    DENSE | {"cells": (41, 33, 35)},
    SEPARABLE | {"cells": (36, 31, 39)},
)
CHECKED = {"steps": 2, "repetitions": 1, "verify": 9}
STRATEGIES = (
    "ordered/staged",
    "ordered/staged:pageable",
    "direct/staged",
    "direct/staged:stream",
    "direct:merged/staged",
    "ordered:self-first/staged",
    "ordered/ipc",
    "direct:merged/ipc",
    "ordered/taskqueue",
    "direct/taskqueue:queue,chunks=4",
    "direct:merged/taskqueue:device,chunks=3",
)
FACES = ("faces", "faces-overlap")


def line(request: Mapping, ranks: int, device: str) -> dict:
    """Return a request as a line of a requests file: on a device, by `ranks` ranks, with a unique id."""
    whole = {**request, "ranks": ranks, "device": device}
    words = (f"{name}={'x'.join(map(str, v)) if isinstance(v, tuple) else v}" for name, v in whole.items())
    return {"kind": "measurement", "id": ",".join(words), "request": whole}


def way(entry: Mapping) -> str:
    """Return the part of a line that fails as a whole: its strategy, or the variant of its blocks."""
    request = entry.get("request", {})
    return str(request.get("strategy", request.get("variant", "")))


def waits_on_the_device(strategy: str) -> bool:
    """Return whether work on the device waits for the host: it hangs under tools that serialise operations."""
    return "/taskqueue" in strategy or "staged:stream" in strategy


def in_turn(lines: Sequence[dict]) -> list[dict]:
    """Return the lines with ways in turn, so that a failing way does not delay the others."""
    seen: dict[str, int] = {}
    places = []
    for entry in lines:
        seen[way(entry)] = turn = seen.get(way(entry), -1) + 1
        places.append(turn)
    return [entry for _, entry in sorted(zip(places, lines, strict=True), key=lambda pair: pair[0])]


def first_of_each(requests: Sequence[Mapping]) -> list[Mapping]:
    """Return the requests with the first occurrence of a schedule with a strategy, or of a kernel of an app."""
    seen: set[tuple] = set()
    found = []
    for r in requests:
        new = {
            ("way", r["schedule"], r["strategy"], r.get("walls")),
            ("kernel", r["app"], r.get("form"), r.get("real"), r.get("device_kernel")),
        } - seen
        seen |= new
        found += [r] if new else []
    return found


def steps_of(stage: str, ranks: int, small: bool, aware: bool) -> list[Mapping]:
    """Return the steps of a stage. smoke: one of each way on a small grid. bars: depth 1 on the largest grid and in 3D.
    depth: all."""
    found = halo_path(ranks, small, aware)
    flat = sorted({r["cells"] for r in found if len(r["cells"]) == 2})
    if stage == "smoke":
        return [r for r in found if r["cells"] == flat[0] and r.get("depth", 1) == 1]
    if stage == "bars":
        kept = [r for r in found if r["cells"] not in flat[:-1] and r.get("depth", 1) == 1]
        return sorted(kept, key=lambda r: len(r["cells"]))  # the cases that the bars need come first
    return found


def schedules(ranks: int) -> tuple[str, ...]:
    """Return the schedules for every app, strategy and depth."""
    return ("bulk", "streams", "resident") if ranks == 1 else ("bulk", "streams")


def by_faces(app: str, strategy: str) -> tuple[str, ...]:
    """Return the schedules whose kernels read and write messages, where they are possible: at depth 1."""
    corners_later = app == "advection3d" and strategy.startswith("ordered")
    return () if any(name in strategy for name in ("/ipc", "/taskqueue")) or corners_later else FACES


def verification(ranks: int, aware: bool) -> list[dict]:
    """Return requests for every app, kernel, schedule, strategy and many depths, checked by the CPU's reference."""
    several = (*STRATEGIES, "ordered/aware", "direct/aware") if aware else STRATEGIES
    found: list[dict] = []
    for app in VERIFIED:
        for strategy in several if ranks > 1 else STRATEGIES[:1]:  # one rank sends nothing
            for schedule in (*schedules(ranks), *by_faces(app["app"], strategy)):
                for depth, substeps in ((1, "full"), (2, "full"), (3, "shrink"), (4, "blocked")):
                    blocked, turn = substeps == "blocked", len(found)
                    if (blocked and "laplace" not in app["app"]) or (depth > 1 and schedule in FACES):
                        continue
                    found.append(
                        dict(
                            app,
                            strategy=strategy,
                            schedule=schedule,
                            depth=depth,
                            substeps=substeps,
                            device_kernel=("stream", "shared", "naive")[turn % 3],
                            pack=("first", "beside")[turn // 2 % 2],
                            periodic="all" if blocked else ("all", "y", "none", "x")[turn // 3 % 4],
                            **CHECKED,
                        )
                    )
        found += boxes(app, 1, (1, 2, 3, 6), CHECKED)
    return found + deep(several if ranks > 1 else STRATEGIES[:1], ranks)


def deep(strategies: Sequence[str], ranks: int) -> list[dict]:
    """Return requests with halos as deep as in the 2023 study, and for one rank with all steps of a depth captured as
    one graph."""
    found = [
        dict(
            LAPLACE2D,
            cells=(277, 263),
            strategy=strategy,
            schedule=schedule,
            depth=depth,
            **CHECKED | {"steps": depth, "verify": depth + 9},
        )
        for strategy in strategies
        for schedule in schedules(ranks)
        for depth in (16, 64)
    ]
    graphs = [
        dict(app, strategy=STRATEGIES[0], schedule=schedule, depth=depth, capture=True, **CHECKED)
        for app in (LAPLACE2D | {"cells": (131, 90)}, DENSE | {"cells": (38, 33, 35)})
        for schedule in schedules(1)
        for depth in (1, 4)
    ]
    return found + graphs * (ranks == 1)


def boxes(app: Mapping, threads: int, thickness: Sequence[int], how: Mapping) -> list[dict]:
    """Return requests for a device's block in a box of the host, with both schedules, by thickness of its walls."""
    return [
        dict(app, strategy="ordered/p2p", schedule=schedule, walls=layers, threads=threads, **how)
        for layers in thickness
        for schedule in ("box", "box-overlap")
    ]


def halo_path(ranks: int, small: bool, aware: bool) -> list[dict]:
    """Return requests for whole steps: the four programs of the 2023 study by depth, and 3D. Large grids come first."""
    how = {"seconds": 0.02, "repetitions": 3} if small else {"seconds": 0.1, "repetitions": 5}
    alone = ranks == 1  # one rank sends nothing: strategies and depths do not matter
    depths = {96: (1, 4)} if small else {16384: (1, 8), 8192: (1, 4, 16), 2048: (1, 2, 4, 8, 16, 32, 64)}
    strategies = (
        ("ordered/staged",)
        if alone
        else (
            "ordered/staged",
            "direct/staged",
            "ordered/taskqueue",
            *(("ordered/aware",) if aware else ()),
            "ordered/ipc",
        )
    )
    cube = {"cells": (24 if small else 420,) * 3}
    threads = max(1, len(os.sched_getaffinity(0)) // ranks)
    found = [
        dict(form, **cube, strategy=strategy, schedule=schedule, **how)
        for form in (DENSE, SEPARABLE)
        for strategy in dict.fromkeys(
            (
                strategies[0],
                strategies[-1],
                "ordered/staged:pageable",
                *(() if alone else ("ordered/taskqueue", "ordered/taskqueue:device,chunks=4")),
            )
        )
        for schedule in schedules(ranks)
        if form is DENSE or strategy == strategies[0]
    ]
    found += [
        dict(DENSE, **cube, strategy="direct/staged", schedule=schedule, **how) for schedule in FACES if not alone
    ]
    found += boxes(DENSE | cube, threads, (1, 3), how)
    side = min(depths)  # the exchange dominates its step
    found += [
        dict(LAPLACE2D, cells=(side, side), strategy="ordered/staged:stream", schedule=schedule, depth=1, **how)
        for schedule in schedules(ranks)
        if not alone
    ]
    return found + [
        dict(LAPLACE2D, cells=(side, side), strategy=strategy, schedule=schedule, depth=depth, **how)
        for side in depths
        for strategy in strategies
        for depth in (depths[side][:1] if alone else depths[side])
        for schedule in (*schedules(ranks), *(() if alone or depth > 1 else by_faces("laplace2d", strategy)))
    ]


# ---- blocks that exchange separate buffers ---------------------------------------------------------------------------

BASELINES = tuple(f"baseline:{wait},{send}" for wait in ("waitall", "testany") for send in ("nonblocking", "blocking"))
TASKQUEUES = tuple(
    f"taskqueue:{tasks},{buffer},{send}"
    for tasks in ("channel", "queue")
    for buffer in ("pinned", "device")
    for send in ("nonblocking", "blocking")
)
PROPOSED = (
    "kernels",
    "taskqueue:padded",
    "taskqueue:throttle=4",
    "taskqueue:dummy",
    "taskqueue:device,chunks=4",
    "taskqueue:chunks=4",
)
EQUAL = (1_000_000,) * 27  # bytes; large enough for an effect of chunks
CHUNKED = tuple(f"taskqueue:{buffer},chunks={n}" for buffer in ("pinned", "device") for n in (1, 4, 8))
ROUNDS = 3  # tests of all variants in turn, so that compared variants run close in time


def blocks(ranks: int, small: bool, device: str) -> list[dict]:
    """Return lines of requests: every variant for each workload, large ones first; one rank has both sides of each
    pair."""
    workloads = ("XS",) if small else ("XL", "L", "M", "S", "XS")
    cases = [({"workload": name}, (*BASELINES, *TASKQUEUES, *PROPOSED)) for name in workloads]
    cases.insert(1, ({"workload": "L", "bytes": (EQUAL[:4] if small else EQUAL)}, CHUNKED))
    return [
        block_line({**work, "variant": variant, "sides": 2 if ranks == 1 else 1, "device": device}, ranks, turn)
        for work, variants in cases
        for turn in range(1 if small else ROUNDS)
        for variant in variants
    ]


def block_line(request: Mapping, ranks: int, turn: int) -> dict:
    """Return a request of blocks as a line of a requests file: a test of 3 iterations to warm up and 10 that count."""
    words = [str(request[name]) for name in ("workload", "variant", "device")]
    name = f"blocks {' '.join(words)}{' equal' if 'bytes' in request else ''}, {ranks} ranks, round {turn + 1}"
    return {"kind": "blocks", "id": name, "request": {**request, "repetitions": 1}}
