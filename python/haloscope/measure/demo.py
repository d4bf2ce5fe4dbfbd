"""The choices that `haloscope demo` measures: about two dozen on three grids, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from haloscope.errors import UnavailableError, UsageError
from haloscope.measure import lists, space
from haloscope.measure.request import Request

RANKS = 2
LAUNCHES = 8
SETTINGS = {"seconds": 0.02, "repetitions": 3}


@dataclass(frozen=True)
class Group:
    """Choices that are compared on one grid: (schedule, strategy, depth, substeps) and perhaps a process grid instead
    of the app's default. Plain ordered/p2p comes first and only once: it is the baseline of speed-ups.

    threaded: ranks share all cores between them; else each has one thread, which suits a small grid.
    """

    app: str
    cells: tuple[int, ...]
    choices: tuple[tuple, ...]
    threaded: bool = False


# In the two small ones a step takes microseconds, and exchanging is most of it; the large one outgrows caches.
SMALL_3D = Group(
    "laplace3d",
    (24, 24, 24),
    (
        ("bulk", "ordered/p2p", 1, "full"),
        ("bulk", "ordered/persistent", 1, "full"),
        ("bulk", "ordered/persistent", 1, "full", "2x1x1"),
        ("bulk", "ordered/shared", 1, "full"),
        ("bulk", "ordered/shared:packed", 1, "full"),
        ("bulk", "direct/p2p", 1, "full"),
        ("bulk", "direct:merged/persistent", 1, "full"),
        ("bulk", "direct:merged/shared", 1, "full"),
    ),
)
SMALL_2D = Group(
    "laplace2d",
    (64, 64),
    (
        ("bulk", "ordered/p2p", 1, "full"),
        ("bulk", "ordered/persistent", 1, "full"),
        ("bulk", "direct/p2p", 1, "full"),
        ("bulk", "ordered/shared", 1, "full"),
        ("bulk", "direct:merged/shared:packed", 1, "full", "1x2"),
        ("bulk", "ordered/p2p", 8, "shrink"),
        ("bulk", "direct:merged/shared", 8, "shrink", "1x2"),
    ),
)
LARGE_2D = Group(
    "laplace2d",
    (2048, 2048),
    (
        ("bulk", "ordered/p2p", 1, "full"),
        ("split", "ordered/p2p", 1, "full"),
        ("comm-thread", "ordered/p2p", 1, "full"),
        ("bulk", "ordered/p2p", 4, "full"),
        *(("bulk", "ordered/p2p", depth, substeps) for substeps in ("shrink", "blocked") for depth in (2, 4, 8)),
    ),
    threaded=True,
)
GROUPS = (SMALL_3D, SMALL_2D, LARGE_2D)


def threads(group: Group, cores: int) -> int:
    """Return the threads per rank: an equal share of the cores, or one."""
    return max(cores // RANKS, 1) if group.threaded else 1


def refuse_few_cores(cores: int) -> None:
    """Raise UnavailableError where the ranks do not have a core each."""
    if cores < RANKS:
        raise UnavailableError(f"the demo gives each of {RANKS} ranks a core, and this process may use {cores}")


def sizes_of(cells: str) -> list[str]:
    """Return the grids of a list, one for each group; no grid for "". Raises UsageError for another number of them."""
    sizes = cells.split(",") if cells else []
    if sizes and len(sizes) != len(GROUPS):
        raise UsageError(f"--cells '{cells}' is not one grid for each of the {len(GROUPS)} comparisons")
    return sizes


def plan(cores: int, sizes: Sequence[str] = ()) -> space.Space:
    """Return the requests of the demo on a machine with `cores` cores; each result is verified.

    sizes: grids instead of the default ones, one per group (the tests use small ones). A schedule without cores for
    its threads is skipped.
    """
    whole: space.Space[Request] = space.Space()
    for number, group in enumerate(GROUPS):
        cells = lists.shapes(sizes[number], len(group.cells))[0] if sizes else group.cells
        team = threads(group, cores)
        for schedule, strategy, depth, substeps, *split in group.choices:
            if schedule == "comm-thread" and team < 2:
                continue
            names = ("cells", "ranks", "threads", "schedule", "strategy", "depth", "substeps", "process_grid")
            values = (cells, RANKS, team, schedule, strategy, depth, substeps, "".join(split))
            axes = {name: [value] for name, value in zip(names, values, strict=True)}
            whole += space.expand(group.app, axes, SETTINGS)
    return space.with_verification(whole, None)
