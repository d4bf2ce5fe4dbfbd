"""Questions put to the study's model: fewer cores per socket, and curves of machines beyond their printed runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from haloscope.model import fit, placement
from haloscope.model.profile import Profile
from haloscope_studies.davis2017.replay.terms import Application
from haloscope_studies.davis2017.replay.walltime import Prediction, Run, predict


@dataclass(frozen=True)
class Occupancy:
    """A run with at most `active` ranks per socket: its nodes and prediction."""

    active: int
    nodes: int
    prediction: Prediction


def cores_per_socket(application: Application, profile: Profile, run: Run, counts: Sequence[int]) -> list[Occupancy]:
    """Return the same ranks predicted with each count as the most ranks per socket, nodes filled sequentially.

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


def logarithmic(ranks: Sequence[int], seconds: Sequence[float]) -> Callable[[int], float]:
    """Return the curve a + b log2(ranks) through measured or modelled times (least relative error), for
    extrapolation.
    """
    fixed, slope = fit.line([math.log2(p) for p in ranks], seconds, positive=False)
    return lambda p: fixed + slope * math.log2(p)
