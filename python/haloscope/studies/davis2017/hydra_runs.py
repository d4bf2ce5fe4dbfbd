"""The 2017 study's runs on its cluster Minerva, as the model takes them, and exchange costs by their printed times."""

from __future__ import annotations

import math

import numpy as np

from haloscope import core, studies
from haloscope.model import placement, profile
from haloscope.studies.davis2017 import terms
from haloscope.studies.davis2017.walltime import Run, predict

SOCKETS, CORES = 2, 6  # of a node of Minerva
PROCESSES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def iterations(side: int) -> dict[int, int]:
    """Return iterations by number of inner loops for a problem of side^3 cells. Source: table 4.3."""
    row = next(r for r in studies.published("davis2017", "iterations") if int(r["cells_per_side"]) == side)
    return {n: int(row[f"n{n}"]) for n in (1, 2, 3, 4)}


def validated() -> terms.Application:
    """Return the application as the study's model columns contain it: without the gathers of ShortPrint.

    Eq. 5.2 has them, yet with them the printed collective times would be three to four times as long.
    """
    return terms.load("hydra").without("gather", "ShortPrint_Ag1", "ShortPrint_Agv1")


def run(scaling: str, processes: int, side: int | None = None, rule: str = "fill", active: int = CORES) -> Run:
    """Return a run of the study on Minerva, along the path of rank 0.

    scaling: weak (100^3 cells per process; side: others), strong (150^3 in all), serial (side^3). rule, active: as
    `placement.place` takes them. Source: chapters 4 and 5, table 5.8.
    """
    side = side or (150 if scaling == "strong" else 100)
    grid = core.process_grid("prime-factors", processes, (1000,) * 3)
    cells = tuple(side * p for p in grid) if scaling == "weak" else (side,) * 3
    where = placement.place(rule, processes, SOCKETS, CORES, active)
    histogram = iterations(100 if scaling == "weak" else side)
    return Run(cells, grid, where, histogram)


def model_column(scaling: str, processes: int, component: str) -> float:
    """Return what the study's own model gave for a component, in seconds. Source: tables A.25, A.26.

    The point-to-point time of 4 processes in weak scaling is printed as 16.98, but the printed total needs 8.34.
    """
    if (scaling, processes, component) == ("weak", 4, "point_to_point"):
        return 8.34
    return next(
        float(r["model_s"])
        for r in studies.published("davis2017", "validation_components")
        if (r["scaling"], int(r["pes"]), r["component"]) == (scaling, processes, component)
    )


def stage_factors(classes: dict) -> dict[str, float]:
    """Return how much longer an exchange stage took than its messages alone, inside a node and across its border.

    classes: network classes of Minerva without stage factors. Inside: least relative error against the model's own
    column for 2, 4 and 8 processes, which one factor reproduces. Across, with that: 16 to 256 processes, where it stays up
    to 35 % off, and two free factors would still be 18 % off. Source: tables A.25, A.26; the rule itself is not printed.
    """
    wanted = {(s, p): model_column(s, p, "point_to_point") for s in ("weak", "strong") for p in PROCESSES[1:]}
    split = {case: _inside_and_across(classes, *case) for case in wanted}
    near = [(split[c][0], t) for c, t in wanted.items() if c[1] <= 8]
    inside = _ratio(*np.array(near).T)
    far = [(split[c][1], t - inside * split[c][0], t) for c, t in wanted.items() if c[1] > 8]
    across, rest, weight = np.array(far).T
    return {"node": inside, "network": max(_ratio(across, rest, weight), 0.01)}


def _ratio(parts, times, weights=None) -> float:
    weights = times if weights is None else weights
    return float(np.sum(parts * times / weights**2) / np.sum((parts / weights) ** 2))


def _inside_and_across(classes: dict, scaling: str, processes: int) -> tuple[float, float]:
    """Return the seconds of point-to-point messages with both factors 1, by where they go."""

    def seconds(factor: float) -> float:
        tried = {
            name: {**c, "contention": {**c["contention"], "stage_factor": factor if name == "node" else 1.0}}
            for name, c in classes.items()
        }
        machine = {"host": "", "cpu": "", "nodes": 1, "sockets_per_node": SOCKETS, "cores_per_socket": CORES}
        trial = profile.Profile({"name": "trial", "machine": machine, "network": {"classes": tried}})
        found = predict(terms.load("hydra").network_only(), trial, run(scaling, processes))
        return math.fsum(found.parts["point_to_point"].values())

    once, twice = seconds(1.0), seconds(2.0)
    return twice - once, 2 * once - twice
