"""The rows C9 to C13, D1, D3, F1 to F5 and H2 of the 2017 study's checklist, recomputed from printed data alone."""

from __future__ import annotations

import functools
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace

from haloscope.advice import anomalies as anomaly
from haloscope.advice.whatif import cost_ratio, crossover
from haloscope.model import placement, profile
from haloscope.studies import checks
from haloscope.studies import published as table
from haloscope.studies.checks import Check
from haloscope_studies.davis2017.data import DATA
from haloscope_studies.davis2017.replay import components, hydra_kernels, hydra_runs, profiles, terms, whatif
from haloscope_studies.davis2017.replay.walltime import COMPONENTS, Prediction, Run, predict, worst

MISPRINTED = ("dawndev", "weak", 50, 128)  # run whose printed error contradicts its own times
CONTRADICTED = ("weak", 4)  # run whose printed components contradict their total
TEN_A_NODE = ((32, "node_balanced"), (64, "node_balanced"))  # runs whose nodes hold ten
RULES = {"node_fill": "fill", "node_balanced": "balanced", "socket_balanced": "by-socket"}


def all_checks() -> list[Check]:
    """Return every check of this module, in order of the rows."""
    return [
        *parts_of_the_breakdown(),
        *paths(),
        *sums(),
        *machines(),
        *speed(),
        *printed_errors(),
        *components.all_checks(),
        *held_out(),
        *fewer_cores(),
        *node_hours(),
        *anomalies(),
        *crossovers(),
        *mappings(),
        *data_sets(),
    ]


machine = functools.cache(profile.load)


def minerva(run: Run) -> Prediction:
    """Return the prediction of one of the study's runs with the shipped profile of its cluster."""
    return predict(hydra_runs.validated(), machine("minerva"), run)


def parts_of_the_breakdown() -> list[Check]:
    """C9: boundary, packing and memory have separate terms and costs."""
    packing = {"contiguous": {"1": [{"from_bytes": 0, "to_bytes": None, "latency_s": 1e-6, "per_byte_s": 2e-10}]}}
    p = profile.Profile({**machine("minerva").data, "pack": packing})
    found = predict(hydra_runs.validated(), p, hydra_runs.run("weak", 8)).parts
    exchange = found["point_to_point"]
    kinds = {
        "update boundary": found["update_boundary"],
        "allocation": {k: v for k, v in found["memory"].items() if k.startswith("allocate")},
        "pack": {k: v for k, v in exchange.items() if k.endswith(" pack")},
        "unpack": {k: v for k, v in exchange.items() if k.endswith(" unpack")},
    }
    note = "no cost of packing is printed: an assumed one here"
    return [
        Check(
            "C9",
            f"terms of {kind} in the breakdown",
            "present",
            f"{len(parts)}, {sum(parts.values()):.2f} s",
            "all above 0",
            checks.state(bool(parts) and min(parts.values()) > 0),
            note if "pack" in kind else "",
        )
        for kind, parts in kinds.items()
    ]


def paths() -> list[Check]:
    """C10: rank 0 by default, or the longest path of all ranks."""
    run = hydra_runs.run("strong", 96, active=5)
    app, p = hydra_runs.validated(), machine("minerva")
    first, longest = predict(app, p, run), worst(app, p, run)
    by_hand = max(predict(app, p, run.at(rank)).total for rank in range(96))
    good = math.isclose(longest.total, by_hand) and longest.total >= first.total
    return [
        Check(
            "C10",
            "longest of 96 ranks, found by classes",
            f"{by_hand:.3f} s (each rank)",
            f"{longest.total:.3f} s (rank {longest.rank}; rank 0: {first.total:.3f})",
            "equal",
            checks.state(good),
        )
    ]


def sums() -> list[Check]:
    """C11: our components sum to our total; the printed components of the model sum to its printed totals."""
    found = [minerva(hydra_runs.run(s, p)) for s in ("weak", "strong") for p in hydra_runs.PROCESSES]
    exact = all(sum(f.components[name] for name in COMPONENTS) == f.total for f in found)
    made = [
        Check("C11", "components of our predictions", "", f"{len(found)} totals", "sum exactly", checks.state(exact))
    ]
    parts = printed_sums()
    totals = printed_totals("minerva")
    off = [abs(seconds - totals[case]) for case, seconds in parts.items() if case != CONTRADICTED]
    title = f"printed components, {len(off)} runs"
    texts = ("sum to totals", f"within {max(off):.3f} s", "0.03 s (rounding)")
    return [*made, Check("C11", title, *texts, checks.state(max(off) <= 0.03))]


def printed_sums() -> dict[tuple[str, int], float]:
    """Return the sum of the components of the study's model, by scaling and ranks."""
    parts: dict = defaultdict(float)
    for row in table("davis2017", "validation_components"):
        parts[row["scaling"], int(row["pes"])] += float(row["model_s"])
    return dict(parts)


def printed_totals(name: str) -> dict[tuple[str, int], float]:
    """Return the walltime of the study's model on a machine, by scaling and ranks."""
    return {(r["scaling"], int(r["pes"])): float(r["model_s"]) for r in _validation(name)}


def _validation(name: str) -> list[dict[str, str]]:
    return [r for r in table("davis2017", "validation") if r["machine"] == name]


def machines() -> list[Check]:
    """C12: one application file, four machine profiles: the walltime of a run that none of their costs come from."""
    app, made = terms.load("hydra"), []
    for name in profiles.MACHINES:
        total = elsewhere(app, name, 512, 75)
        rows = [r for r in _validation(name) if (r["cells_per_side"], r["pes"]) == ("75", "512")]
        printed = f"measured: {float(rows[0]['measured_s']):.1f} s" if rows else ""
        title = f"75^3 per rank, 512 ranks, {name}"
        state = checks.state(total > 0)
        made.append(Check("C12", title, printed, f"{total:.1f} s", "no code changed", state, KERNELS[name]))
    return made


KERNELS = {
    "minerva": "",
    "hector": "kernels: an estimate by conjugate gradients",
    **dict.fromkeys(("hera", "dawndev"), "kernels: Minerva's times one number, from the smallest run"),
}


def elsewhere(app: terms.Application, name: str, ranks: int, side: int) -> float:
    """Return the walltime of a weak-scaling run on one of the study's machines, nodes filled, without packing."""
    return predict(app.unpacked(), machine(name), hydra_runs.weak_run(machine(name), ranks, side)).total


def elsewhere_off() -> dict[tuple[str, int, int], float]:
    """Return the error of each printed walltime on Hera and DawnDev, by machine, cells a rank per side, and ranks."""
    app = hydra_runs.validated()
    runs = {
        (name, int(r["cells_per_side"]), int(r["pes"])): float(r["measured_s"])
        for name in hydra_kernels.FIRST
        for r in _validation(name)
    }
    return {
        (name, side, ranks): elsewhere(app, name, ranks, side) / measured - 1
        for (name, side, ranks), measured in runs.items()
    }


def speed() -> list[Check]:
    """C13: the time of predictions."""
    p, made = machine("minerva"), []
    for ranks, limit in ((2048, 1.0), (100000, 10.0)):
        start = time.perf_counter()
        run = hydra_runs.weak_run(p, ranks, 75)
        predict(hydra_runs.validated(), p, run)
        worst(hydra_runs.validated(), p, run)
        seconds = time.perf_counter() - start
        title = f"prediction for {ranks} ranks, rank 0 and worst"
        made.append(Check("C13", title, "", f"{seconds:.2f} s", f"< {limit:g} s", checks.state(seconds < limit)))
    return made


def printed_errors() -> list[Check]:
    """D1: signed errors of tables 5.10 to 5.14 from the printed pairs."""
    off = [abs(error - printed) for case, (printed, error) in signed_errors().items() if case != MISPRINTED]
    texts = ("tables 5.10-5.14", f"within {max(off):.3f} points", "0.05 points")
    return [Check("D1", f"{len(off)} signed errors", *texts, checks.state(max(off) <= 0.05))]


def signed_errors() -> dict[tuple, tuple[float, float]]:
    """Return the printed error of the study's model and the error of its printed times, in percent, by run."""
    return {
        (row["machine"], row["scaling"], int(row["cells_per_side"]), int(row["pes"])): (
            float(row["error_printed_percent"]),
            (float(row["model_s"]) / float(row["measured_s"]) - 1) * 100,
        )
        for row in table("davis2017", "validation")
    }


def held_out_runs() -> dict[tuple[str, int], float]:
    """Return the measured walltime of the runs on more than one node of Minerva, by scaling and ranks."""
    one_node = hydra_runs.SOCKETS * hydra_runs.CORES
    rows = [r for r in _validation("minerva") if int(r["pes"]) > one_node]
    return {(r["scaling"], int(r["pes"])): float(r["measured_s"]) for r in rows}


def held_out() -> list[Check]:
    """D3: costs from one node and single messages, walltime on more nodes, against the measured runs."""
    made, model = [], printed_totals("minerva")
    for (scaling, ranks), measured in held_out_runs().items():
        ours = minerva(hydra_runs.run(scaling, ranks)).total
        error = ours / measured - 1
        texts = (f"{measured:.2f} s (model {model[scaling, ranks]:.2f})", f"{ours:.2f} s ({error:+.1%})", "15 %")
        good = abs(error) < 0.15
        note = "" if good else components.largest_differences(scaling, ranks)
        made.append(Check("D3", f"walltime, {scaling}, {ranks} ranks", *texts, checks.state(good), note))
    return made


def _occupancies(ranks: int = 256) -> list[whatif.Occupancy]:
    run = hydra_runs.run("weak", ranks)
    return whatif.cores_per_socket(hydra_runs.validated(), machine("minerva"), run, (1, 2, 4, 6))


def _printed_occupancy(ranks: int = 256) -> dict[int, float]:
    rows = table("davis2017", "cores_per_socket")
    return {int(r["active_cores_per_socket"]): float(r["time_s"]) for r in rows if int(r["pes"]) == ranks}


def fewer_cores() -> list[Check]:
    """F1: the same 256 ranks with 1, 2 and 4 active cores per socket, over the measured run with 6."""
    printed, found = _printed_occupancy(), _occupancies()
    made = []
    for case in found[:-1]:
        gain, ours = printed[6] / printed[case.active], printed[6] / case.prediction.total
        texts = (f"{gain:.2f}x", f"{ours:.2f}x", "5 %")
        good = abs(ours / gain - 1) < 0.05
        made.append(Check("F1", f"256 ranks, {case.active} per socket, over measured 6", *texts, checks.state(good)))
    times = [case.prediction.total for case in found]
    return [
        *made,
        Check(
            "F1",
            "order of 1, 2, 4, 6 per socket",
            "rising",
            "rising" if times == sorted(times) else "not",
            "rising",
            checks.state(times == sorted(times)),
        ),
    ]


def node_hours() -> list[Check]:
    """F2: node-hours of the same runs, with nodes in proportion to ranks as in the study's ratios, and with whole
    nodes.
    """
    printed, found = _printed_occupancy(), _occupancies()
    made = []
    for case, derived in zip(found[:-1], (3.66, 2.06, 1.25), strict=True):
        ratio = cost_ratio(printed[case.active], 6 / case.active, printed[6], 1)
        whole = cost_ratio(printed[case.active], case.nodes, printed[6], found[-1].nodes)
        ours = cost_ratio(case.prediction.total, case.nodes, found[-1].prediction.total, found[-1].nodes)
        title, good = f"node-hours, {case.active} per socket over 6", abs(ratio - derived) <= 0.01
        texts = (f"{derived:.2f}", f"{ratio:.2f}", "0.01")
        made.append(Check("F2", f"{title}, printed times", *texts, checks.state(good), f"in whole nodes {whole:.2f}"))
        texts = (f"{whole:.2f}", f"{ours:.2f}", "5 %")
        made.append(
            Check("F2", f"{title}, our times", *texts, checks.state(abs(ours / whole - 1) < 0.05), "in whole nodes")
        )
    return made


def anomalies() -> list[Check]:
    """F3: kernels that leave the line through their smaller sizes by more than 30 %."""
    found = {name: anomaly.leaving(*known) for name, known in hydra_kernels.printed().items()}
    flagged = [f"{name} above {round(f.last_on ** (1 / 3))}^3" for name, f in found.items() if f]
    text = ", ".join(flagged)
    return [
        Check(
            "F3",
            "kernels that leave their line",
            "Madvmz1 above 100^3",
            text,
            "equal",
            checks.state(text == "Madvmz1 above 100^3"),
            "twelve kernels, Lartvis1 among them",
        )
    ]


def crossovers() -> list[Check]:
    """F4: the crossover of two machines. No crossing is printed, so the method is also tested on a known answer."""
    known = crossover(lambda p: 10 + p, lambda p: 1000.0, range(1, 2000))
    never = crossover(lambda p: 1.0, lambda p: 2.0, range(1, 2000))
    texts = ("P = 990, none", f"P = {known[1] if known else 'none'}, {never or 'none'}")
    made = [
        Check(
            "F4",
            "crossing of 10 + P and 1000; of 1 and 2",
            *texts,
            "equal",
            checks.state((known, never) == ((989, 990), None)),
        )
    ]
    for side in (50, 75):
        curves = {name: _extrapolated(name, side) for name in ("dawndev", "hera")}
        place = crossover(curves["dawndev"], curves["hera"], POWERS)
        bars = ("above 2048", f"{_between(place)} by a + b log2 P", "above 2048")
        good = place is not None and place[0] >= 2048
        note = "printed model columns extrapolated far beyond their data"
        made.append(Check("F4", f"DawnDev overtakes Hera, {side}^3", *bars, checks.state(good), note))
    return made


POWERS = tuple(2**n for n in range(6, 63))  # ranks
MOST = 2**16  # the most of these ranks with a process grid


def _between(place: tuple[int, int] | None) -> str:
    return f"2^{math.log2(place[0]):.0f} to 2^{math.log2(place[1]):.0f} ranks" if place else f"none up to {POWERS[-1]}"


def _extrapolated(name: str, side: int) -> Callable[[int], float]:
    """Return a curve through the study's predictions of a machine from 64 ranks on."""
    rows = [r for r in _validation(name) if int(r["cells_per_side"]) == side and int(r["pes"]) >= 64]
    return whatif.logarithmic([int(r["pes"]) for r in rows], [float(r["model_s"]) for r in rows])


def exchange_crossover() -> tuple[tuple[int, int] | None, bool]:
    """Return the crossover of Hera and DawnDev in exchange and gathers, 75^3 a rank, and whether Hera leads at 64."""
    app = terms.load("hydra").network_only()

    @functools.cache
    def seconds(name: str, ranks: int) -> float:
        return predict(app, machine(name), hydra_runs.weak_run(machine(name), ranks, 75)).total

    hera, dawndev = (functools.partial(seconds, name) for name in ("hera", "dawndev"))
    place = crossover(hera, dawndev, [ranks for ranks in POWERS if ranks <= MOST])
    return place, hera(64) < dawndev(64)


def mappings() -> list[Check]:
    """F5: socket loads by placement (table 4.5), and the effects of placement and decomposition."""
    made = []
    for (ranks, mapping), loads in printed_loads().items():
        if (ranks, mapping) in TEN_A_NODE:
            continue
        placed = Counter(placement.place(RULES[mapping], ranks, 2, 6).sockets())
        title = f"sockets, {ranks} ranks, {mapping.replace('_', ' ')}"
        made.append(Check("F5", title, loads_text(loads), loads_text(placed), "equal", checks.state(placed == loads)))
    base = minerva(hydra_runs.run("weak", 8))
    moved = minerva(hydra_runs.run("weak", 8, rule="by-socket"))
    measured = {
        r["mapping"]: float(r["time_s"])
        for r in table("davis2017", "mapping")
        if (r["pes"], r["quantity"]) == ("8", "walltime")
    }
    gain, ours = measured["node_fill"] / measured["socket_balanced"], base.total / moved.total
    made.append(
        Check(
            "F5",
            "8 ranks, node-fill over socket-balanced",
            f"{gain:.3f}x (measured)",
            f"{ours:.3f}x",
            "5 %",
            checks.state(abs(ours / gain - 1) < 0.05),
        )
    )
    cube = hydra_runs.run("strong", 64)
    slab = replace(cube, process_grid=(1, 4, 16))
    times = (f"{minerva(run).components['point_to_point']:.2f} s" for run in (cube, slab))
    good = cube.pairs != slab.pairs and minerva(cube).total != minerva(slab).total
    title = "64 ranks as 4x4x4, as 1x4x16: exchange"
    return [*made, Check("F5", title, "", " and ".join(times), "they differ", checks.state(good))]


def printed_loads() -> dict[tuple[int, str], Counter]:
    """Return the number of sockets by their ranks, for each rank count and mapping. Source: table 4.5."""
    found: dict = defaultdict(Counter)
    for row in table("davis2017", "mapping_layout"):
        found[int(row["pes"]), row["mapping"]][int(row["active_cores_per_socket"])] += int(row["sockets"])
    return dict(found)


def loads_text(loads: Counter) -> str:
    """Return sockets by their ranks, as `6x[2] + 4x[1]`."""
    return " + ".join(f"{load}x[{sockets}]" for load, sockets in sorted(loads.items(), reverse=True))


def data_sets() -> list[Check]:
    """H2: the printed tables ship with the package and load, each row as long as its heading."""
    found = {file.stem: table("davis2017", file.stem) for file in sorted(DATA.glob("*.csv"))}
    broken = [name for name, rows in found.items() if not rows or any(None in (*row, *row.values()) for row in rows)]
    text = f"{len(found)} tables, {sum(map(len, found.values()))} rows, {len(broken)} broken"
    return [Check("H2", "replay data", "", text, "all load", checks.state(not broken))]
