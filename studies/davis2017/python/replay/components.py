"""Components of the run time: measured, by the study's model and by ours, with signed errors (row D1)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from haloscope.model import profile
from haloscope.report import tables
from haloscope.studies import checks
from haloscope.studies import published as table
from haloscope.studies.checks import Check
from haloscope_studies.davis2017.replay import hydra_runs, terms
from haloscope_studies.davis2017.replay.walltime import predict

NAMES = {"update_bounds": "update_boundary"}  # our name of a component by its name in the tables
SCALINGS = ("weak", "strong")
LEAST = 1.0  # seconds; smaller components have too few printed digits for an error


@dataclass(frozen=True)
class Component:
    """One component of a run on Minerva, in seconds; model: the study's model, None if it is not printed."""

    scaling: str
    ranks: int
    name: str
    measured: float
    model: float | None
    ours: float

    @property
    def held_out(self) -> bool:
        """True if the run used more than the one node of our costs."""
        return self.ranks > hydra_runs.SOCKETS * hydra_runs.CORES

    @property
    def error(self) -> float:
        """Ours over the measured seconds, less 1."""
        return self.ours / self.measured - 1


@functools.cache
def minerva() -> tuple[Component, ...]:
    """Return all components of the weak and strong runs on Minerva that have a printed measurement.

    Runs that the study predicts: tables A.25, A.26, measured in the fastest run; the others: tables A.14, A.20.
    """
    return tuple(sorted(_minerva(), key=lambda c: (SCALINGS.index(c.scaling), c.ranks)))


def _minerva() -> Iterator[Component]:
    app, machine = hydra_runs.validated(), profile.load("minerva")

    @functools.cache
    def ours(scaling: str, ranks: int) -> dict[str, float]:
        return predict(app, machine, hydra_runs.run(scaling, ranks)).components

    predicted = set()
    for row in table("davis2017", "validation_components"):
        scaling, ranks, name = row["scaling"], int(row["pes"]), row["component"]
        predicted.add((scaling, ranks))
        model = hydra_runs.model_column(scaling, ranks, name)
        yield Component(
            scaling, ranks, name, float(row["measured_s"]), model, ours(scaling, ranks)[NAMES.get(name, name)]
        )
    for row in table("davis2017", "scaling_components"):
        scaling, ranks, name = row["scaling"], int(row["pes"]), row["component"]
        if row["machine"] == "minerva" and name != "walltime" and (scaling, ranks) not in predicted:
            seconds = ours(scaling, ranks)[NAMES.get(name, name)]
            yield Component(scaling, ranks, name, float(row["time_s"]), None, seconds)


def all_checks() -> list[Check]:
    """D1: compute beyond one node, against the measured one; the other components are only in the tables."""
    made = []
    for scaling in SCALINGS:
        found = [c for c in minerva() if c.scaling == scaling and c.name == "compute" and c.held_out]
        worst = max(found, key=lambda c: abs(c.error))
        ours = f"{worst.error:+.1%} at most ({worst.ranks} ranks)"
        good = abs(worst.error) < 0.15
        note = "" if good else "blocks below 30^3 cells, the smallest printed size"
        title = f"compute, {scaling}, {len(found)} runs beyond one node"
        made.append(Check("D1", title, "measured", ours, "15 %", checks.state(good), note))
    return made


def largest_differences(scaling: str, ranks: int) -> str:
    """Return the two components of a run with the largest differences between our and the measured seconds."""
    found = [c for c in minerva() if (c.scaling, c.ranks) == (scaling, ranks)]
    found.sort(key=lambda c: -abs(c.ours - c.measured))
    return "; ".join(f"{c.name.replace('_', ' ')} {c.ours - c.measured:+.1f} s" for c in found[:2])


def markdown() -> str:
    """Return the comparison by component: Minerva in full, and the messages of the other machines."""
    lines = []
    for c in minerva():
        model = ["", ""] if c.model is None else [f"{c.model:.2f}", _error(c.model, c.measured)]
        seconds = [f"{c.measured:.2f}", *model, f"{c.ours:.2f}", _error(c.ours, c.measured)]
        lines.append([c.scaling, c.ranks, c.name.replace("_", " "), *seconds])
    headers = ["scaling", "ranks", "component", "measured (s)", "model (s)", "error", "ours (s)", "error "]
    text = (
        "Measured: the most of all processes, for communication the least. Model: the study's own. Ours: costs from "
        "one "
        f"node. No error where less than {LEAST:g} s was measured: the printed digits are too few."
    )
    return f"{text}\n\n{tables.markdown(lines, headers, right=headers[3:])}\n\n{others()}"


def _error(seconds: float, measured: float) -> str:
    return f"{seconds / measured - 1:+.1%}" if measured >= LEAST else ""


def others() -> str:
    """Return exchange and gathers on DawnDev and Hera, measured and by our model of the messages alone."""
    app, lines = terms.load("hydra").network_only(), []
    for row in table("davis2017", "validation"):
        name, side, ranks = row["machine"], int(row["cells_per_side"]), int(row["pes"])
        if name == "minerva" or side != 75:
            continue
        found = predict(app, profile.load(name), hydra_runs.weak_run(profile.load(name), ranks, side)).components
        for component in ("point_to_point", "collectives"):
            measured = _measured(name, ranks, component)
            lines.append([name, ranks, component.replace("_", " "), f"{measured:.2f}", f"{found[component]:.2f}"])
    headers = ["machine", "ranks", "component", "measured (s)", "our messages (s)"]
    text = (
        "DawnDev and Hera, 75^3 cells a rank. Their kernels, boundaries, packing and memory have no printed costs; "
        "messages alone lack packing and every wait for others."
    )
    return f"{text}\n\n{tables.markdown(lines, headers, right=headers[3:])}"


def _measured(machine: str, ranks: int, component: str) -> float:
    return next(
        float(r["time_s"])
        for r in table("davis2017", "scaling_components")
        if (r["machine"], int(r["pes"]), r["component"], r["statistic"]) == (machine, ranks, component, "min")
    )
