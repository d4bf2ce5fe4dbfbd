"""Questions put to the model: fewer cores per socket, what that costs in nodes, and where two machines change places."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from haloscope.model import placement
from haloscope.model.profile import Profile
from haloscope.studies.davis2017.terms import Application
from haloscope.studies.davis2017.walltime import Prediction, Run, predict


@dataclass(frozen=True)
class Occupancy:
    """A run with at most `active` ranks per socket: its nodes and prediction."""

    active: int
    nodes: int
    prediction: Prediction


def cores_per_socket(application: Application, profile: Profile, run: Run, counts: Sequence[int]) -> list[Occupancy]:
    """Return the same ranks predicted with each count as the most ranks per socket, nodes filled one after another.

    counts: each 1..cores_per_socket of the profile. Raises as `placement.place` and `predict` do. Source: table 6.6.
    """
    found = []
    for active in counts:
        machine = profile.machine
        where = placement.place(
            "fill", run.placement.ranks, machine["sockets_per_node"], machine["cores_per_socket"], active
        )
        found.append(Occupancy(active, where.nodes, predict(application, profile, replace(run, placement=where))))
    return found


def cost_ratio(seconds: float, nodes: float, base_seconds: float, base_nodes: float) -> float:
    """Return node-hours over those of a base case: what a faster run on more nodes costs."""
    return seconds * nodes / (base_seconds * base_nodes)


def crossover(first: Callable[[int], float], second: Callable[[int], float], least: int, most: int) -> int | None:
    """Return the smallest rank count from which the order of two curves differs from that at `least`.

    first, second: seconds by rank count; looked at powers of two times `least`, then by bisection. None when they keep
    their order up to `most`. Cost O(log(most)) evaluations. Source: Davis 2017, section 5.6.3 (Hera and DawnDev).
    """

    def ahead(ranks: int) -> bool:
        return first(ranks) < second(ranks)

    start, low = ahead(least), least
    while low < most:
        high = min(2 * low, most)
        if ahead(high) != start:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if ahead(middle) != start else (middle, high)
            return high
        low = high
    return None


def logarithmic(ranks: Sequence[int], seconds: Sequence[float]) -> Callable[[int], float]:
    """Return the curve a + b log2(ranks) through measured or modelled times (least relative error), for extrapolation."""
    from haloscope.model import fit

    fixed, slope = fit.line([math.log2(p) for p in ranks], seconds, positive=False)
    return lambda p: fixed + slope * math.log2(p)
