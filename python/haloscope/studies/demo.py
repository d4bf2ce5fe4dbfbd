"""The choices that `haloscope demo` measures: about two dozen for two apps, as data."""

from __future__ import annotations

from haloscope.measure import lists, space

RANKS = 2
LAUNCHES = 4
HOW = {"seconds": 0.05, "repetitions": 4}

# (schedule, strategy, depth, substeps); the first one of each app is what speed-ups refer to
ADVECTION3D = (
    ("bulk", "ordered/p2p", 1, "full"),
    ("bulk", "ordered/p2p:datatype", 1, "full"),
    ("bulk", "ordered/persistent", 1, "full"),
    ("bulk", "ordered:self-first/p2p", 1, "full"),
    ("bulk", "direct/p2p", 1, "full"),
    ("bulk", "direct:merged/p2p", 1, "full"),
    ("bulk", "direct:merged/persistent", 1, "full"),
    ("bulk", "direct:merged/p2p", 2, "shrink"),
    ("split", "ordered/p2p", 1, "full"),
    ("split", "direct:merged/persistent", 1, "full"),
    ("interleaved", "ordered/p2p", 1, "full"),
    ("comm-thread", "ordered/p2p", 1, "full"),
)
LAPLACE2D = (
    ("bulk", "ordered/p2p", 1, "full"),
    ("bulk", "direct/p2p", 1, "full"),
    ("split", "ordered/p2p", 1, "full"),
    *(("bulk", "ordered/p2p", depth, substeps) for substeps in ("full", "shrink", "blocked") for depth in (2, 4, 8)),
)
APPS = {
    "advection3d": ((96, 96, 96), ADVECTION3D),
    "laplace2d": ((2048, 2048), LAPLACE2D),
}


def threads(schedule: str, cores: int) -> int:
    """Threads per rank: an equal share of the cores; comm-thread cannot do with fewer than 2."""
    return max(cores // RANKS, 2 if schedule == "comm-thread" else 1)


def plan(cores: int, sizes: dict[str, str] | None = None) -> space.Space:
    """Return the requests of the demo on a machine with `cores` cores; each result is verified.

    sizes: other grids than the usual ones, by app (the tests use small ones).
    """
    whole = space.Space()
    for app, (usual, choices) in APPS.items():
        wanted = (sizes or {}).get(app)
        cells = lists.shapes(wanted, len(usual))[0] if wanted else usual
        for schedule, strategy, depth, substeps in choices:
            axes = {"cells": cells, "ranks": RANKS, "threads": threads(schedule, cores), "schedule": schedule,
                    "strategy": strategy, "depth": depth, "substeps": substeps}  # fmt: skip
            whole += space.expand(app, {name: [value] for name, value in axes.items()}, HOW)
    return space.with_verification(whole, None)
