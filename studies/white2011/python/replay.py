"""The model of concurrent parts on the one machine of White & Dongarra 2011 whose speeds are stated, and on imagined
ones.

Stated for one node of Yona: E (all on the GPU) gives the GPU's time; F, where nothing overlaps, is that plus the link
(MPI and copies between CPU and GPU); I over the best CPU-only version gives a bound on the CPU's. The shares of MPI and
copies in the link are not stated: they are varied. Checklist row W24.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from haloscope.report import tables
from haloscope.studies import checks, published
from haloscope.studies.checks import Check
from haloscope_studies.white2011 import curves, model

RANKED = ("F", "G", "I")
MPI_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the link's time; the rest are copies
TASKS, THICKNESS = 2, 3  # of I's stated run
THICKNESSES = range(1, 7)
EQUAL = 0.01  # relative difference of speeds that count as equal
NEAR = 0.1  # relative distance of a predicted speed from the stated one
I_MISSES = {
    "GF of I, predicted": "the link follows from F at its own best tasks per node, which are not stated; I's are fewer"
}
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
    """Recompute the stated results, and predict the versions' speeds as the link's share of the time varies."""
    found = (_order_check(), *_speed_checks(), *_model_checks(), _lines_check(), _coefficient_check())
    sections = {
        "Bars": checks.table(found),
        "Without a bar": checks.report_table(_reports()),
        "Formulas": "\n".join(f"- {version} = {formula}" for version, formula in model.VERSIONS.items()),
        "One node of Yona, GF": _yona_table(),
        "Where the order changes": _order_table(),
        "Simulated curves over cores": curves.table(),
    }
    text = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())
    return checks.Replay(text, found, tuple(_reports()), I_MISSES)


def _order_check() -> Check:
    orders = [model.order(block(), **yona(share), thickness=THICKNESS, versions=RANKED) for share in MPI_SHARES]
    right = sum(found == list(RANKED) for found in orders)
    ours = f"{right} of {len(orders)} divisions of the link"
    return Check(
        "W24", "speed F < G < I, one node of Yona", "F < G < I", ours, "all", checks.state(right == len(orders))
    )


def _speed_checks() -> list[Check]:
    """Compare ratios of the stated speeds with the sentences about them."""
    gf = stated()
    bounds = {r["quantity"]: float(r["value"]) for r in published("white2011", "stated_results")}
    twice = bounds["best_over_other_parallel"]
    pairs = (
        ("I over F", gf["I"] / gf["F"], f"{twice:g} or more", twice),
        ("I over G", gf["I"] / gf["G"], f"{twice:g} or more", twice),
        ("I over E", gf["I"] / gf["E"], "nearly 1", 0.95),
        ("G over F", gf["G"] / gf["F"], "overlap pays", 1.0),
    )
    return [
        Check("W23", f"stated speeds: {name}", words, f"{ratio:.2f}", f">= {low:g}", checks.state(ratio >= low))
        for name, ratio, words, low in pairs
    ]


def _model_checks() -> list[Check]:
    """Compare predictions with the stated speeds that the model has not seen, and with the best box."""
    thin = sum(
        _speed("I", share, 1) >= (1 - EQUAL) * max(_speed("I", share, w) for w in THICKNESSES) for share in MPI_SHARES
    )
    ours = f"{thin} of {len(MPI_SHARES)} divisions of the link"
    box = Check(
        "W24",
        f"no box of 2 to {max(THICKNESSES)} layers is faster than one layer",
        "often 1 on Yona",
        ours,
        f"all, to {EQUAL:.0%}",
        checks.state(thin == len(MPI_SHARES)),
    )
    return [_prediction_check("G"), _prediction_check("I"), box]


def _prediction_check(version: str) -> Check:
    known = stated()[version]
    nearest = min((_speed(version, share, THICKNESS) for share in MPI_SHARES), key=lambda gf: abs(gf - known))
    reached = checks.state(abs(nearest / known - 1) <= NEAR)
    note = f"the nearest of {len(MPI_SHARES)} divisions of the link"
    return Check(
        "W24", f"GF of {version}, predicted", f"{known:g}", f"{nearest:.1f}", f"within {NEAR:.0%}", reached, note
    )


def _speed(version: str, share: float, thickness: int) -> float:
    """Return the predicted GF of a version on one node of Yona."""
    parts = model.parts_of(version, block(), **yona(share), thickness=thickness)
    return stated()["work"] / model.step_time(version, parts) / 1e9


def _lines_check() -> Check:
    lines = {
        r["implementation"][0]: int(r["value"])
        for r in published("white2011", "stated_results")
        if r["quantity"] == "lines_of_code"
    }
    ratio = lines["I"] / lines["A"]
    return Check(
        "W25", "lines of I over A", "four times", f"{ratio:.2f}", "3.5 to 4.5", checks.state(3.5 <= ratio < 4.5)
    )


def _coefficient_check() -> Check:
    """Compare the product of one-dimensional weights with the exact values of three parameter sets."""
    rows = published("white2011", "coefficient_vectors")
    right = sum(abs(_coefficient(row) - float(row["value"])) <= math.ulp(float(row["value"])) for row in rows)
    return Check(
        "W1",
        "coefficients to 1 ulp",
        str(len(rows)),
        f"{right} of {len(rows)}",
        "all",
        checks.state(right == len(rows)),
    )


def _coefficient(row: Mapping[str, str]) -> float:
    factors = []
    for courant, offset in zip(("cx_nu", "cy_nu", "cz_nu"), "ijk", strict=True):
        p = float(row[courant])
        factors.append({-1: p * (1 + p) / 2, 0: 1 - p * p, 1: p * (p - 1) / 2}[int(row[offset])])
    return math.prod(factors)


def _reports() -> list[checks.Report]:
    """Return the stated results that published numbers cannot show."""
    low, high = (f"{ends:.1f}" for ends in _ends([_speed("I", share, THICKNESS) for share in MPI_SHARES]))
    return [
        checks.Report(
            "I over the best of A to D, Yona",
            "more than 4",
            f"A to D below {stated()['cpu']:.1f} GF",
            "the speed of A to D is not stated; the bound enters the model",
        ),
        checks.Report("I against E and A to D together, Lens", "faster", "", "no speed of Lens is stated"),
        checks.Report("GF of I by the link's division", f"{stated()['I']:g}", f"{low} to {high}", "see the bar's note"),
        checks.Report(
            "C over B by core count",
            "slower above 4000 cores of JaguarPF",
            "never slower",
            "the model has no cost of overlapping, and no speed of JaguarPF is stated; see the simulated curves",
        ),
    ]


def _ends(numbers: Sequence[float]) -> tuple[float, float]:
    return min(numbers), max(numbers)


def _yona_table() -> str:
    known, lines = stated(), []
    for version in model.VERSIONS:
        speeds = [_speed(version, share, THICKNESS) for share in MPI_SHARES]
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
