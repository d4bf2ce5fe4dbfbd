"""What if the same ranks ran elsewhere: fewer cores of a socket, another placement or process grid, another machine.

Each way to run is predicted; its nodes say what it costs. Source: Davis 2017, sections 5.6 and 6.5, tables 4.5, 5.8,
6.6.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope import core
from haloscope.model import placement
from haloscope.model.predict import PLAINLY, Prediction, Setting, layout_on, places_of, predict
from haloscope.model.profile import Profile


@dataclass(frozen=True)
class Variant:
    """One way to run, predicted.

    busiest: most ranks on a socket. pairs: neighbour pairs inside the worst node and across its border, all dimensions.
    """

    choice: core.Choice
    setting: Setting
    prediction: Prediction
    busiest: int
    pairs: tuple[int, int]

    @property
    def node_s(self) -> float:
        """Seconds of a step times the nodes that it takes, each counted whole."""
        return self.prediction.time_s * self.prediction.nodes


def variant(choice: core.Choice, profile: Profile, setting: Setting = PLAINLY) -> Variant:
    """Return a choice under a setting, predicted without interval. Raises and costs as `predict` does."""
    where = places_of(choice, profile, setting)
    layout = layout_on(where, choice)
    at = np.argsort(layout.places())  # the rank at each place
    by_place = placement.Placement(where.node[at], where.socket[at])
    inside, across = placement.pair_counts(layout.ranks, by_place, layout.periodic).worst
    return Variant(
        choice, setting, predict(choice, profile, setting, samples=0), where.sockets()[0], (sum(inside), sum(across))
    )


def process_grids(ranks: int, dims: int) -> Iterator[tuple[int, ...]]:
    """Yield every process grid of so many ranks (>= 1) in 1 to 3 dimensions, the last dimension changing fastest.

    Cost O(ranks) a dimension.
    """
    if dims == 1:
        yield (ranks,)
        return
    for first in (n for n in range(1, ranks + 1) if ranks % n == 0):
        for rest in process_grids(ranks // first, dims - 1):
            yield (first, *rest)


def scaled(choice: core.Choice, ranks: int) -> core.Choice:
    """Return a choice for other ranks whose cells are those of one rank: the grid grows with the process grid.

    Its process grid is what its rule gives a cube that is large enough for any. Raises UsageProblem where there is
    none.
    """
    cube = (ranks,) * len(choice.cells)
    grid = core.make_layout(dataclasses.replace(choice, cells=cube, ranks=ranks)).ranks
    cells = tuple(n * p for n, p in zip(choice.cells, grid, strict=False))
    return dataclasses.replace(choice, cells=cells, ranks=ranks, process_grid="x".join(map(str, grid)))


def cost_ratio(seconds: float, nodes: float, base_seconds: float, base_nodes: float) -> float:
    """Return node-hours over those of a base case: what a faster run on more nodes costs."""
    return seconds * nodes / (base_seconds * base_nodes)


def crossover(
    first: Callable[[int], float], second: Callable[[int], float], counts: Iterable[int]
) -> tuple[int, int] | None:
    """Return between which neighbours of rising rank counts two curves change their order; None when they keep it.

    first, second: seconds by rank count. counts: at least one; as a process grid depends on the factors of a count,
    powers of two are a good choice. Cost: an evaluation of both per count, up to the crossing.
    Source: Davis 2017, section 5.6.3 (Hera and DawnDev).
    """
    ahead = ((ranks, first(ranks) < second(ranks)) for ranks in counts)
    for (before, was), (ranks, now) in itertools.pairwise(ahead):
        if was != now:
            return before, ranks
    return None


def relative(variants: Sequence[Variant]) -> list[tuple[float, float]]:
    """Return for each variant how many times faster than the first it is, and its node-hours over those of the
    first.
    """
    base = variants[0].prediction
    return [
        (
            base.time_s / v.prediction.time_s,
            cost_ratio(v.prediction.time_s, v.prediction.nodes, base.time_s, base.nodes),
        )
        for v in variants
    ]
