"""What bench/gpu.py runs on a card: lines of configurations, to verify and to measure."""

from __future__ import annotations

import os
from collections.abc import Sequence

CHECKED = "--steps 2 --repetitions 1 --verify 9"
STRATEGIES = (
    "ordered/staged",
    "ordered/staged:pageable",
    "direct/staged",
    "direct:merged/staged",
    "ordered:self-first/staged",
    "ordered/ipc",
    "direct:merged/ipc",
)
FACES = ("faces", "faces-overlap")


def schedules(ranks: int) -> tuple[str, ...]:
    """Schedules for every app, strategy and depth."""
    return ("bulk", "streams", "resident") if ranks == 1 else ("bulk", "streams")


def by_faces(app: str, strategy: str) -> tuple[str, ...]:
    """Those whose kernels read and write messages, where they can: at depth 1."""
    corners_later = app.startswith("advection3d") and strategy.startswith("ordered")
    return () if strategy.endswith("/ipc") or corners_later else FACES


def verification(ranks: int, aware: bool) -> list[str]:
    """Every app, kernel, schedule, strategy and many depths, each checked against the CPU's reference."""
    apps = {"laplace2d --real f32": "149x117", "laplace2d --real f64": "131x90", "laplace3d --real f32": "43x37x41",
            "advection3d --form dense": "38x33x35", "advection3d --form separable": "36x31x39"}  # fmt: skip
    several = (*STRATEGIES, "ordered/aware", "direct/aware") if aware else STRATEGIES
    lines = []
    for app, cells in apps.items():
        for strategy in several if ranks > 1 else STRATEGIES[:1]:  # one rank sends nothing
            for schedule in (*schedules(ranks), *by_faces(app, strategy)):
                for depth, region in ((1, "full"), (2, "full"), (3, "shrink"), (4, "blocked")):
                    if (region == "blocked" and "laplace" not in app) or (depth > 1 and schedule in FACES):
                        continue
                    kernel = ("stream", "shared", "naive")[len(lines) % 3]
                    periodic = "all" if region == "blocked" else ("all", "y", "none", "x")[len(lines) // 3 % 4]
                    pack = ("first", "beside")[len(lines) // 2 % 2]
                    lines.append(f"{app} --cells {cells} --strategy {strategy} --schedule {schedule} --depth {depth} "
                                 f"--region {region} --device-kernel {kernel} --periodic {periodic} --pack {pack} {CHECKED}")  # fmt: skip
        lines += boxes(app, cells, 1, (1, 2, 3, 6), CHECKED)
    return lines + deep(several if ranks > 1 else STRATEGIES[:1], ranks)


def deep(strategies: Sequence[str], ranks: int) -> list[str]:
    """Halos as deep as the 2023 study has them, and all steps of a depth as one graph, which takes a rank by itself."""
    lines = [f"laplace2d --real f32 --cells 277x263 --strategy {strategy} --schedule {schedule} --depth {depth} "
             f"--steps {depth} --repetitions 1 --verify {depth + 9}"
             for strategy in strategies for schedule in schedules(ranks) for depth in (16, 64)]  # fmt: skip
    graphs = [f"{app} --strategy {STRATEGIES[0]} --schedule {schedule} --depth {depth} --graph {CHECKED}"
              for app in ("laplace2d --real f32 --cells 131x90", "advection3d --form dense --cells 38x33x35")
              for schedule in schedules(1) for depth in (1, 4)]  # fmt: skip
    return lines + graphs * (ranks == 1)


def boxes(app: str, cells: str, threads: int, thickness: tuple[int, ...], measure: str) -> list[str]:
    """A device's block in a box of the host, both schedules, by thickness."""
    return [f"{app} --cells {cells} --strategy ordered/p2p --schedule {schedule} --box {layers} --threads {threads} {measure}"
            for layers in thickness for schedule in ("box", "box-overlap")]  # fmt: skip


def halo_path(ranks: int, small: bool, aware: bool) -> list[str]:
    """Whole steps: the four programs of the 2023 study by depth, and 3D. The largest grids come first."""
    measure = "--seconds 0.02 --repetitions 3" if small else "--seconds 0.1 --repetitions 5"
    alone = ranks == 1  # one rank sends nothing: strategies and depths are of no account
    depths = {96: (1, 4)} if small else {16384: (1, 8), 8192: (1, 4, 16), 2048: (1, 2, 4, 8, 16, 32, 64)}
    strategies = (
        ("ordered/staged",)
        if alone
        else ("ordered/staged", "direct/staged", *(("ordered/aware",) if aware else ()), "ordered/ipc")
    )
    side = 24 if small else 420
    threads = max(1, len(os.sched_getaffinity(0)) // ranks)
    lines = [f"advection3d --form {form} --cells {side} --strategy {strategy} --schedule {schedule} {measure}"
             for form in ("dense", "separable") for strategy in dict.fromkeys((strategies[0], strategies[-1], "ordered/staged:pageable"))
             for schedule in schedules(ranks) if form == "dense" or strategy == strategies[0]]  # fmt: skip
    lines += [f"advection3d --form dense --cells {side} --strategy direct/staged --schedule {schedule} {measure}" for schedule in FACES
              if not alone]  # fmt: skip
    lines += boxes("advection3d --form dense", str(side), threads, (1, 3), measure)
    return lines + [f"laplace2d --real f32 --cells {cells} --strategy {strategy} --schedule {schedule} --depth {depth} {measure}"
                    for cells in depths for strategy in strategies for depth in (depths[cells][:1] if alone else depths[cells])
                    for schedule in (*schedules(ranks), *(() if alone or depth > 1 else by_faces("laplace2d", strategy)))]  # fmt: skip
