"""The 2017 study's runs on its cluster Minerva, as the model takes them, and exchange costs by their printed times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from haloscope import bridge, studies
from haloscope.model import placement, profile
from haloscope_studies.davis2017.replay import terms
from haloscope_studies.davis2017.replay.walltime import Run, predict

SOCKETS, CORES = 2, 6  # of a node of Minerva
PROCESSES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ON_ONE_NODE = tuple((scaling, processes) for scaling in ("weak", "strong") for processes in (2, 4, 8, 12))


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
    grid = bridge.process_grid("prime-factors", processes, (1000,) * 3)
    cells = tuple(side * p for p in grid) if scaling == "weak" else (side,) * 3
    where = placement.place(rule, processes, SOCKETS, CORES, active)
    histogram = iterations(100 if scaling == "weak" else side)
    return Run(cells, grid, where, histogram)


def weak_run(p: profile.Profile, processes: int, side: int) -> Run:
    """Return a run with side^3 cells per process on any machine, nodes filled sequentially."""
    grid = bridge.process_grid("prime-factors", processes, (1000,) * 3)
    where = placement.place("fill", processes, p.machine["sockets_per_node"], p.machine["cores_per_socket"])
    return Run(tuple(side * n for n in grid), grid, where, iterations(100))


def model_column(scaling: str, processes: int, component: str) -> float:
    """Return the seconds of a component by the study's model. Source: tables A.25, A.26.

    The point-to-point time of 4 processes in weak scaling is printed as 16.98, but the printed total needs 8.34.
    """
    if (scaling, processes, component) == ("weak", 4, "point_to_point"):
        return 8.34
    return next(
        float(r["model_s"])
        for r in studies.published("davis2017", "validation_components")
        if (r["scaling"], int(r["pes"]), r["component"]) == (scaling, processes, component)
    )


def measured(scaling: str, processes: int, component: str) -> float:
    """Return the seconds of a component on Minerva: the most of all processes, for communication the least.

    Raises StopIteration for a run that is not printed. Source: tables A.14, A.20.
    """
    return next(
        float(r["time_s"])
        for r in studies.published("davis2017", "scaling_components")
        if (r["machine"], r["scaling"], r["component"]) == ("minerva", scaling, component)
        and int(r["pes"]) == processes
    )


def stage_factor(alone: Sequence[float], wanted: Sequence[float]) -> float:
    """Return the factor from the messages alone to their exchange stages, over several runs (least relative error).

    alone: seconds by `messages_alone`. wanted: seconds of the stages. The factor contains packing, which is not
    printed.
    """
    share = np.array(alone) / np.array(wanted)
    return float(share.sum() / (share**2).sum())


def messages_alone(classes: dict, scaling: str, processes: int) -> float:
    """Return the seconds of a run's point-to-point messages, nothing packed, by network classes without stage
    factors.
    """
    machine = {"host": "", "cpu": "", "nodes": 1, "sockets_per_node": SOCKETS, "cores_per_socket": CORES}
    trial = profile.Profile({"name": "trial", "machine": machine, "network": {"classes": classes}})
    return predict(terms.load("hydra").network_only(), trial, run(scaling, processes)).components["point_to_point"]
