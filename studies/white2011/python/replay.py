"""The model of concurrent parts on the one machine of White & Dongarra 2011 whose speeds are stated, and on imagined
ones.

Stated for one node of Yona: E (all on the GPU) gives the GPU's time; F, where nothing overlaps, is that plus the link
(MPI and copies between CPU and GPU); I over the best CPU-only version gives a bound on the CPU's. The shares of MPI and
copies in the link are not stated: they are varied. Checklist row W24.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence

from haloscope.report import tables
from haloscope.studies import checks, published
from haloscope.studies.checks import Check
from haloscope_studies.white2011 import model

RANKED = ("F", "G", "I")
MPI_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the link's time; the rest are copies
TASKS, THICKNESS = 2, 3  # of I's stated run
SHAPES = (((420, 420, 210), 3), ((420, 420, 210), 1), ((60, 60, 60), 3), ((30, 30, 30), 2))


@functools.cache
def stated() -> Mapping[str, float]:
    """Return stated numbers: GF by version, "cpu" (upper bound of CPU-only GF), "side" and "work" (flop per step)."""
    rows = published("white2011", "stated_results")
    speeds = {r["implementation"][0]: float(r["value"]) for r in rows if r["quantity"] == "performance"}
    value = {r["quantity"]: float(r["value"]) for r in rows if r["quantity"] != "performance"}
    side = value["points_per_side"]
    return speeds | {
        "cpu": speeds["I"] / value["best_cpu_gpu_over_best_cpu_only"],
        "side": side,
        "work": value["flops_per_point"] * side**3,
    }


def yona(mpi_share: float) -> dict[str, float]:
    """Return seconds per step of a Yona node: gpu, cpu, mpi, copies, from the stated speeds and MPI's share of the
    link.
    """
    known = stated()
    step = {name: known["work"] / known[name] / 1e9 for name in ("E", "F", "cpu")}
    link = step["F"] - step["E"]
    return {"gpu": step["E"], "cpu": step["cpu"], "mpi": mpi_share * link, "copies": (1 - mpi_share) * link}


def block() -> tuple[int, int, int]:
    """Return the points of a task in the stated runs: two tasks on one node, divided along z."""
    side = int(stated()["side"])
    return side, side, side // TASKS


def replay() -> checks.Replay:
    """Predict the order of the versions on Yona, and its changes as the link's share of the time varies."""
    orders = [model.order(block(), **yona(share), thickness=THICKNESS, versions=RANKED) for share in MPI_SHARES]
    right = sum(found == list(RANKED) for found in orders)
    found = (
        Check(
            "W24",
            "speed F < G < I, one node of Yona",
            "F < G < I",
            f"{right} of {len(orders)} divisions of the link",
            "all",
            checks.state(right == len(orders)),
        ),
    )
    sections = {
        "Bars": checks.table(found),
        "Formulas": "\n".join(f"- {version} = {formula}" for version, formula in model.VERSIONS.items()),
        "One node of Yona, GF": _yona_table(),
        "Where the order changes": _order_table(),
    }
    return checks.Replay("\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items()), found)


def _yona_table() -> str:
    known, lines = stated(), []
    for version in model.VERSIONS:
        parts = [model.parts_of(version, block(), **yona(share), thickness=THICKNESS) for share in MPI_SHARES]
        speeds = [known["work"] / model.step_time(version, p) / 1e9 for p in parts]
        lines.append([version, *(f"{s:.1f}" for s in speeds), f"{known[version]:g}" if version in known else ""])
    machine = yona(MPI_SHARES[0])
    link = machine["mpi"] + machine["copies"]
    note = (
        f"\n\nA step of the GPU alone takes {1e3 * machine['gpu']:.1f} ms (stated E), the link {1e3 * link:.1f} ms "
        "(stated F less "
        f"E), the CPUs alone at least {1e3 * machine['cpu']:.0f} ms (I is more than 4 x faster). The link "
        "follows "
        "from F, so F agrees; G and I are predictions. The stated I is faster than F's link allows: each version is "
        "stated at its "
        f"best tasks per node, and F's are not known. Box thickness {THICKNESS}, {TASKS} tasks, as in I's stated "
        "run."
    )
    headers = ["version", *(f"MPI {100 * share:.0f} % of the link" for share in MPI_SHARES), "stated"]
    return tables.markdown(lines, headers, right=headers[1:]) + note


def _order_table() -> str:
    lines = []
    for shape, thickness in SHAPES:
        share = 100 * model.box_share(shape, thickness)
        first = [f"{'x'.join(map(str, shape))}", thickness, f"{share:.1f} %"]
        lines += [
            [*first, f"{low} .. {high} %", " < ".join(found)]
            for low, high, found in order_by_link(imagined, shape, thickness)
        ]
    headers = ["block of a task", "box", "box points", "link's share of F", "speed"]
    note = (
        "\n\nThe CPUs' speed over the GPU's is Yona's, MPI is half the link. Thick boxes of small blocks keep the "
        "CPUs busy for "
        "longer than the GPU: there I pays only where the link takes longer still."
    )
    return tables.markdown(lines, headers, right=("box", "box points")) + note


def imagined(link_share: float) -> dict[str, float]:
    """Return an imagined machine with a GPU step of 1 on which the link takes that share (below 1) of F's time."""
    known, link = stated(), link_share / (1 - link_share)
    return {"gpu": 1.0, "cpu": known["E"] / known["cpu"], "mpi": link / 2, "copies": link / 2}


def order_by_link(
    machine: Callable[[float], dict], shape: Sequence[int], thickness: int
) -> list[tuple[int, int, list[str]]]:
    """Return (first percent, last percent, versions from slow to fast) for runs of link shares 1 .. 99 % of one
    order.
    """
    orders = [(p, model.order(shape, **machine(p / 100), thickness=thickness)) for p in range(1, 100)]
    runs = [list(run) for _, run in itertools.groupby(orders, key=lambda item: item[1])]
    return [(run[0][0], run[-1][0], run[0][1]) for run in runs]
