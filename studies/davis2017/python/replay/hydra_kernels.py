"""Kernel costs of the 2017 study's hydrocode on its cluster Minerva, derived from printed tables.

The study prints no table of its fitted costs per cell. Printed are twelve kernels and each function's time, serially at
six sizes, and runs with 2, 4 and 12 processes on one node. From these, one node only, the cost of every kernel follows:

- a printed kernel is fitted as in the study (least relative error, 30 % rule);
- the rest of a function's time is shared equally among the calls of its other kernels;
- busier sockets multiply all kernels by the ratio that the runs on one node show, likewise boundaries and memory.

Other clusters have no printed kernels. Theirs are Minerva's times one number: on Hera and DawnDev the number that gives
the printed compute time of the smallest run of 75^3 cells a process, on HECToR, where the hydrocode did not run, the
ratio of a serial iteration of conjugate gradients.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from haloscope import studies
from haloscope.model import fit, profile, segments
from haloscope_studies.davis2017.replay import terms
from haloscope_studies.davis2017.replay.hydra_runs import iterations, measured, weak_run
from haloscope_studies.davis2017.replay.walltime import predict

SIDES = (30, 50, 80, 100, 120, 150)
# Processes on one node -> most active cores per socket, filling one socket first. Of the two runs that fill a socket,
# 12 processes fill both.
ONE_NODE = {1: 1, 2: 2, 4: 4, 12: 6}


@functools.cache
def printed(variant: str = "A") -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return cells and seconds per call of each printed kernel, serially. Source: tables A.27 to A.38."""
    rows = [r for r in studies.published("davis2017", "kernels_papi") if r["variant"] == variant]
    names = dict.fromkeys(r["kernel"] for r in rows)
    pick = {name: [r for r in rows if r["kernel"] == name] for name in names}
    return {
        name: (
            np.array([float(r["cells_per_side"]) ** 3 for r in mine]),
            np.array([float(r["time_s"]) for r in mine]),
        )
        for name, mine in pick.items()
    }


def fitted(sizes: np.ndarray, times: np.ndarray) -> list[segments.Segment]:
    """Return the segments of one kernel: least relative error, ranges by the 30 % rule. Source: section 5.4."""
    return fit.pieces(sizes, times, fit.breaks_by_rule(sizes, times, positive=False), positive=False)


def kernels() -> dict[str, dict[str, list[dict]]]:
    """Return the section `kernels` of Minerva's profile: segments by kernel and active cores per socket."""
    app = terms.load("hydra")
    serial = _serial(app)
    slower = {kind: _slowdown(component) for kind, component in _SLOWED.items()}
    made = {}
    for term, law in serial.items():
        by_cores = {}
        for active in ONE_NODE.values():
            factor = slower.get(term.kind, slower["allocate"])[active]
            by_cores[str(active)] = _json(law, factor)
        made[app.kernel_name(term)] = by_cores
    return dict(sorted(made.items()))


# Processes of the smallest printed run of FIRST_SIDE^3 cells each. All their sockets are full. Source: table A.19.
FIRST = {"hera": 32, "dawndev": 64}
FIRST_SIDE = 75


def scaled(data: Mapping[str, Any]) -> dict[str, dict[str, list[dict]]]:
    """Return the section `kernels` of another cluster's profile: Minerva's times one number. data: the profile without
    kernels."""
    name, own = data["name"], kernels()
    if name not in FIRST:
        factor = significant(_iteration(name) / _iteration("minerva"))
        return {kernel: {n: _times(law, factor) for n, law in by_cores.items()} for kernel, by_cores in own.items()}
    full = str(data["machine"]["cores_per_socket"])
    serial = {kernel: {full: by_cores["1"]} for kernel, by_cores in own.items()}
    trial = profile.Profile({**data, "kernels": serial})
    found = predict(terms.load("hydra").unpacked(), trial, weak_run(trial, FIRST[name], FIRST_SIDE)).components
    printed_s = next(
        float(row["time_s"])
        for row in studies.published("davis2017", "scaling_components")
        if (row["machine"], row["component"], int(row["pes"])) == (name, "compute", FIRST[name])
    )
    # Exchange, gathers and this component add up to the walltime, so that it has boundaries and memory too.
    factor = significant(printed_s / (found["compute"] + found["update_boundary"] + found["memory"]))
    return {kernel: {full: _times(by_cores[full], factor)} for kernel, by_cores in serial.items()}


def _iteration(machine: str) -> float:
    """Return the seconds of a serial iteration of conjugate gradients, 50^3 cells. Source: table A.77."""
    return next(
        float(row["time_per_iteration_s"])
        for row in studies.published("davis2017", "cg_iteration_time")
        if (row["machine"], row["solver"], int(row["pes"])) == (machine, "base", 1)
    )


def _times(law: list[dict], factor: float) -> list[dict]:
    return [{key: significant(v * factor) if key.endswith("_s") else v for key, v in one.items()} for one in law]


def significant(value: float, digits: int = 5) -> float:
    """Return the number rounded to significant digits, so that files do not depend on the last bits of a fit."""
    return float(f"{value:.{digits - 1}e}")


_SLOWED = {"kernel": "compute", "boundary": "update_bounds", "allocate": "memory"}


def _json(law: list[segments.Segment], factor: float) -> list[dict]:
    scaled = [segments.Segment(s.start, s.end, s.fixed * factor, s.slope * factor) for s in law]
    return [
        {key: float(f"{v:.4e}") if key.endswith("_s") else None if v is None else int(v) for key, v in row.items()}
        for row in segments.to_json(scaled, "cells")
    ]


def _slowdown(component: str) -> dict[int, float]:
    """Return time per unit over the serial one by active cores per socket, weak scaling 100^3 per process.

    Boundaries: rank 0 of 1, 2, 4 and 12 processes has 6, 5, 4 and 3 external faces.
    """
    faces = {1: 6, 2: 5, 4: 4, 12: 3} if component == "update_bounds" else dict.fromkeys(ONE_NODE, 1)
    alone = measured("weak", 1, component) / faces[1]
    return {active: measured("weak", p, component) / faces[p] / alone for p, active in ONE_NODE.items()}


def _serial(app: terms.Application) -> dict[terms.Term, list[segments.Segment]]:
    """Return the serial cost of every kernel, boundary, allocate and free term over its units."""
    all_terms = app.counts(2)
    boundary = _boundary(app)
    cells = np.array([float(side) ** 3 for side in SIDES])
    edges = boundary.slope * 6 * cells ** (2 / 3)
    laws = {t: [boundary] for t in all_terms if t.kind == "boundary"}
    known = {terms.Term("kernel", name): times for name, (_, times) in printed().items()}
    for function in ("MDT", "ShortPrint", "Madv", "Mlagh"):
        known |= _rest(app, function, known, edges)
    known |= _memory(app)
    for term, times in known.items():
        law = fitted(cells, times) if term.kind == "kernel" and term.name in printed() else fit.pieces(cells, times)
        laws[term] = law
    return {t: laws[t] for t in all_terms if t in laws}


def _boundary(app: terms.Application) -> segments.Segment:
    """Return the cost of one boundary stage over the points of one face, from the two serial runs with printed times.

    Proportional: a fixed part, fitted to 100^2 and 150^2 points, would take more than all of a function's time at 30^2.
    """
    rates = []
    for scaling, side in (("weak", 100), ("strong", 150)):
        stages = sum(n for t, n in app.run_counts(iterations(side)).items() if t.kind == "boundary")
        rates.append(measured(scaling, 1, "update_bounds") / stages / 6 / side**2)
    return segments.Segment(0.0, math.inf, 0.0, float(np.mean(rates)))


def _per_run(function: str) -> np.ndarray:
    """Return a function's seconds per iteration times the iterations, by size. Source: table A.13."""
    rows = {
        int(r["cells_per_side"]): float(r["time_s"])
        for r in studies.published("davis2017", "serial_functions")
        if (r["function"], r["scope"]) == (function, "per_iteration")
    }
    return np.array([rows[side] * sum(iterations(side).values()) for side in SIDES])


def _inside(app: terms.Application, function: str, side: int) -> Mapping[terms.Term, int]:
    """Return the number of occurrences of each term inside a function during a serial run."""
    total: dict[terms.Term, int] = {}
    for loops, many in iterations(side).items():
        for term, times, path in app.walk(loops):
            if function in path:
                total[term] = total.get(term, 0) + times * many
    return total


def _rest(app: terms.Application, function: str, known: dict, edges: np.ndarray) -> dict[terms.Term, np.ndarray]:
    """Return seconds per call, by size, of the kernels of a function that are neither printed nor known yet."""
    counts = [_inside(app, function, side) for side in SIDES]
    rest = _per_run(function)
    for i, inside in enumerate(counts):
        rest[i] -= sum(n * known[t][i] for t, n in inside.items() if t in known)
        rest[i] -= sum(n * edges[i] for t, n in inside.items() if t.kind == "boundary")
    unknown = [t for t in counts[0] if t.kind == "kernel" and t not in known]
    calls = np.array([sum(inside[t] for t in unknown) for inside in counts])
    return dict.fromkeys(unknown, rest / calls)


def _memory(app: terms.Application) -> dict[terms.Term, np.ndarray]:
    """Return seconds per call of allocating and freeing: equal shares of the printed time of memory management."""
    per_iteration = _per_run("memory") / [sum(iterations(side).values()) for side in SIDES]
    found = [t for t in app.counts(1) if t.kind in ("allocate", "free")]
    return {t: per_iteration / len(found) for t in found}
