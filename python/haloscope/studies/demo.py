"""What `haloscope demo` measures: some two dozen configurations of two apps, as data."""

from __future__ import annotations

from haloscope.measure import sweep

RANKS = 2
LAUNCHES = 4
SETTINGS = {"seconds": "0.05", "repetitions": "4"}

# (schedule, strategy, depth, region); the first one of each app is what speed-ups refer to
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
    *(("bulk", "ordered/p2p", depth, region) for region in ("full", "shrink", "blocked") for depth in (2, 4, 8)),
)
APPS = {
    "advection3d": ((96, 96, 96), ADVECTION3D),
    "laplace2d": ((2048, 2048), LAPLACE2D),
}


def threads(schedule: str, cores: int) -> int:
    """Threads per rank: an equal share of the cores; comm-thread cannot do with fewer than 2."""
    return max(cores // RANKS, 2 if schedule == "comm-thread" else 1)


def configurations(cores: int, sizes: dict[str, str] | None = None) -> sweep.Sweep:
    """Return the demo's sweep for a machine with so many cores; each configuration is verified.

    sizes: other grids than the usual ones, by app (the tests use small ones).
    """
    whole = sweep.Sweep()
    for app, (usual, choices) in APPS.items():
        wanted = (sizes or {}).get(app)
        cells = sweep.shapes(wanted, len(usual))[0] if wanted else usual
        for schedule, strategy, depth, region in choices:
            axes = {"cells": cells, "ranks": RANKS, "threads": threads(schedule, cores), "schedule": schedule,
                    "strategy": strategy, "depth": depth, "region": region}  # fmt: skip
            part = sweep.expand(app, {name: [value] for name, value in axes.items()}, SETTINGS)
            whole.configurations += part.configurations
            whole.refused += part.refused
    return sweep.with_verification(whole, None)
