"""The rows C9 to C13, D1, D3, F1 to F5 and H2 of the 2017 study's checklist, recomputed from printed data alone."""

from __future__ import annotations

import functools
import math
import time
from collections import Counter, defaultdict
from dataclasses import replace

from haloscope import core
from haloscope.data import DATA
from haloscope.errors import NotAvailable
from haloscope.model import fit, placement, profile
from haloscope.studies import checks
from haloscope.studies import published as table
from haloscope.studies.checks import Check
from haloscope.studies.davis2017 import hydra_kernels, hydra_runs, terms, whatif
from haloscope.studies.davis2017.walltime import COMPONENTS, Prediction, Run, predict, worst

EXCEPTED_ERRORS = {("dawndev", 50, 128): "misprint of the source: its own times give -7.50"}
RULES = {"node_fill": "fill", "node_balanced": "balanced", "socket_balanced": "by-socket"}


def all_checks() -> list[Check]:
    """Return every check of this module, in order of the rows."""
    return [
        *parts_of_the_breakdown(), *paths(), *sums(), *machines(), *speed(), *printed_errors(), *held_out(),
        *fewer_cores(), *node_hours(), *anomalies(), *crossovers(), *mappings(), *data_sets(),
    ]  # fmt: skip


machine = functools.cache(profile.load)


def minerva(run: Run) -> Prediction:
    """Return the prediction of one of the study's runs with the shipped profile of its cluster."""
    return predict(hydra_runs.validated(), machine("minerva"), run)


def parts_of_the_breakdown() -> list[Check]:
    """C9: boundary, packing and memory have terms and costs of their own."""
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
        Check("C9", f"terms of {kind} in the breakdown", "present", f"{len(parts)}, {sum(parts.values()):.2f} s",
              "all above 0", checks.state(bool(parts) and min(parts.values()) > 0), note if "pack" in kind else "")
        for kind, parts in kinds.items()
    ]  # fmt: skip


def paths() -> list[Check]:
    """C10: rank 0 by default, or the longest path of all ranks."""
    run = hydra_runs.run("strong", 96, active=5)
    app, p = hydra_runs.validated(), machine("minerva")
    first, longest = predict(app, p, run), worst(app, p, run)
    by_hand = max(predict(app, p, run.at(rank)).total for rank in range(96))
    good = math.isclose(longest.total, by_hand) and longest.total >= first.total
    return [
        Check("C10", "longest of 96 ranks, found by classes", f"{by_hand:.3f} s (each rank)",
              f"{longest.total:.3f} s (rank {longest.rank}; rank 0: {first.total:.3f})", "equal", checks.state(good))
    ]  # fmt: skip


def sums() -> list[Check]:
    """C11: our components sum to our total; the printed components of the model sum to its printed totals."""
    found = [minerva(hydra_runs.run(s, p)) for s in ("weak", "strong") for p in hydra_runs.PROCESSES]
    exact = all(sum(f.components[name] for name in COMPONENTS) == f.total for f in found)
    made = [
        Check("C11", "components of our predictions", "", f"{len(found)} totals", "sum exactly", checks.state(exact))
    ]
    parts: dict = defaultdict(float)
    for row in table("davis2017", "validation_components"):
        parts[row["scaling"], int(row["pes"])] += float(row["model_s"])
    totals = {(r["scaling"], int(r["pes"])): float(r["model_s"]) for r in _validation("minerva")}
    off = {case: parts[case] - totals[case] for case in parts}
    excepted = off.pop(("weak", 4))
    most = max(map(abs, off.values()))
    return [
        *made,
        Check("C11", f"printed components, {len(off)} runs", "sum to totals", f"within {most:.3f} s", "0.03 s (rounding)",
              checks.state(most <= 0.03)),
        Check("C11", "printed components, weak, 4 ranks", "557.59 s", f"{557.59 + excepted:.2f} s", "none",
              checks.EXCEPTION, "the printed point-to-point time 16.98 contradicts the total, which needs 8.34"),
    ]  # fmt: skip


def _validation(name: str) -> list[dict[str, str]]:
    return [r for r in table("davis2017", "validation") if r["machine"] == name]


def weak_run(p: profile.Profile, ranks: int, side: int) -> Run:
    """Return a weak-scaling run on any machine, nodes filled one after another."""
    grid = core.process_grid("prime-factors", ranks, (1000,) * 3)
    where = placement.place("fill", ranks, p.machine["sockets_per_node"], p.machine["cores_per_socket"])
    return Run(tuple(side * n for n in grid), grid, where, hydra_runs.iterations(100))


def machines() -> list[Check]:
    """C12: one application file, four machine profiles; a profile without kernel costs says so."""
    app, made = terms.load("hydra"), []
    for name in profile.names():
        p = machine(name)
        try:
            text = f"{predict(app, p, weak_run(p, 512, 75)).total:.1f} s in all"
            good = name == "minerva"
        except NotAvailable as problem:
            part = predict(app.network_only(), p, weak_run(p, 512, 75)).total
            text, good = f"{part:.1f} s exchange and gathers", "'kernels'" in str(problem) and part > 0
        note = "" if name == "minerva" else "kernel costs are printed for Minerva only"
        made.append(
            Check("C12", f"75^3 per rank, 512 ranks, {name}", "", text, "no code changed", checks.state(good), note)
        )
    return made


def speed() -> list[Check]:
    """C13: how long predictions take."""
    p, made = machine("minerva"), []
    for ranks, limit in ((2048, 1.0), (100000, 10.0)):
        start = time.perf_counter()
        run = weak_run(p, ranks, 75)
        predict(hydra_runs.validated(), p, run)
        worst(hydra_runs.validated(), p, run)
        seconds = time.perf_counter() - start
        what = f"prediction for {ranks} ranks, rank 0 and worst"
        made.append(Check("C13", what, "", f"{seconds:.2f} s", f"< {limit:g} s", checks.state(seconds < limit)))
    return made


def printed_errors() -> list[Check]:
    """D1: signed errors of tables 5.10 to 5.14 from the printed pairs."""
    rows, made, off = table("davis2017", "validation"), [], 0.0
    for row in rows:
        case = (row["machine"], int(row["cells_per_side"]), int(row["pes"]))
        error = (float(row["model_s"]) / float(row["measured_s"]) - 1) * 100
        printed = float(row["error_printed_percent"])
        if row["scaling"] == "weak" and case in EXCEPTED_ERRORS:
            what = f"error, {case[0]} {case[1]}^3 weak, {case[2]} ranks"
            texts = (f"{printed:+.2f} %", f"{error:+.2f} %", "0.05 points")
            made.append(Check("D1", what, *texts, checks.EXCEPTION, EXCEPTED_ERRORS[case]))
        else:
            off = max(off, abs(error - printed))
    what = f"{len(rows) - len(made)} signed errors"
    return [
        Check("D1", what, "tables 5.10-5.14", f"within {off:.3f} points", "0.05 points", checks.state(off <= 0.05)),
        *made,
    ]


def held_out() -> list[Check]:
    """D3: costs from one node, walltime on more of them, against the measured runs."""
    made = []
    for scaling in ("weak", "strong"):
        for row in (r for r in _validation("minerva") if r["scaling"] == scaling and int(r["pes"]) > 12):
            ranks, measured = int(row["pes"]), float(row["measured_s"])
            ours = minerva(hydra_runs.run(scaling, ranks)).total
            error = ours / measured - 1
            texts = (f"{measured:.2f} s (model {row['model_s']})", f"{ours:.2f} s ({error:+.1%})")
            what = f"walltime, {scaling}, {ranks} ranks"
            note = "exchange between nodes: one factor fitted to the study's model, none to these runs"
            made.append(Check("D3", what, *texts, "15 %", checks.state(abs(error) < 0.15), note))
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
    return [*made, Check("F1", "order of 1, 2, 4, 6 per socket", "rising", "rising" if times == sorted(times) else "not",
                         "rising", checks.state(times == sorted(times)))]  # fmt: skip


def node_hours() -> list[Check]:
    """F2: node-hours of the same runs, nodes counted in proportion to ranks as the study's ratios do, and as whole ones."""
    printed, found = _printed_occupancy(), _occupancies()
    made = []
    for case, derived in zip(found[:-1], (3.66, 2.06, 1.25), strict=True):
        ratio = whatif.cost_ratio(printed[case.active], 6 / case.active, printed[6], 1)
        whole = whatif.cost_ratio(printed[case.active], case.nodes, printed[6], found[-1].nodes)
        ours = whatif.cost_ratio(case.prediction.total, case.nodes, found[-1].prediction.total, found[-1].nodes)
        texts = (f"{derived:.2f}", f"{ratio:.2f}", "0.01")
        note = f"whole nodes: {whole:.2f}; our prediction: {ours:.2f}"
        good = abs(ratio - derived) <= 0.01
        made.append(Check("F2", f"node-hours, {case.active} per socket over 6", *texts, checks.state(good), note))
    return made


def anomalies() -> list[Check]:
    """F3: kernels that leave the line through their smaller sizes by more than 30 %."""
    flagged = {}
    for name, (cells, times) in hydra_kernels.printed().items():
        breaks = fit.breaks_by_rule(cells, times, positive=False)
        if breaks:
            flagged[name] = f"{name} above {round(max(c for c in cells if c < breaks[0]) ** (1 / 3))}^3"
    text = ", ".join(flagged.values())
    return [Check("F3", "kernels that leave their line", "Madvmz1 above 100^3", text, "equal",
                  checks.state(text == "Madvmz1 above 100^3"), "twelve kernels, Lartvis1 among them")]  # fmt: skip


def crossovers() -> list[Check]:
    """F4: where two machines change places. No crossing is printed, so the method is tried where the answer is known."""
    known = whatif.crossover(lambda p: 10 + p, lambda p: 1000.0, 1, 10**6)
    never = whatif.crossover(lambda p: 1.0, lambda p: 2.0, 1, 10**6)
    made = [Check("F4", "crossing of 10 + P and 1000; of 1 and 2", "P = 990, none", f"P = {known}, {never or 'none'}", "equal",
                  checks.state((known, never) == (990, None)))]  # fmt: skip
    app = terms.load("hydra").network_only()

    @functools.cache
    def seconds(name: str, ranks: int) -> float:
        return predict(app, machine(name), weak_run(machine(name), ranks, 75)).total

    most = 100000
    place = whatif.crossover(functools.partial(seconds, "hera"), functools.partial(seconds, "dawndev"), 64, most)
    ahead = {ranks: seconds("dawndev", ranks) < seconds("hera", ranks) for ranks in (64, 512, 4096, 32768, most)}
    good = all(ahead[64] == ahead[ranks] for ranks in ahead if ranks < (place or most + 1))
    text = f"P = {place}" if place else f"none up to {most}, {'DawnDev' if ahead[64] else 'Hera'} ahead"
    what = "exchange and gathers, 75^3, Hera and DawnDev"
    made.append(Check("F4", what, "", text, "as at five rank counts", checks.state(good)))
    return [*made, *(_extrapolated(side) for side in (50, 75))]


def _extrapolated(side: int) -> Check:
    curves = {}
    for name in ("dawndev", "hera"):
        rows = [r for r in _validation(name) if int(r["cells_per_side"]) == side and int(r["pes"]) >= 64]
        curves[name] = whatif.logarithmic([int(r["pes"]) for r in rows], [float(r["model_s"]) for r in rows])
    place = whatif.crossover(curves["dawndev"], curves["hera"], 64, 2**62)
    text = f"P = 2^{math.log2(place):.1f} by a + b log2 P" if place else "none up to 2^62 by a + b log2 P"
    note = "printed model columns extrapolated far beyond their data"
    good = place is not None and place > 2048
    return Check("F4", f"DawnDev overtakes Hera, {side}^3", "above 2048", text, "above 2048", checks.state(good), note)


def mappings() -> list[Check]:
    """F5: socket loads by placement (table 4.5), and what placement and decomposition change."""
    wanted: dict = defaultdict(Counter)
    for row in table("davis2017", "mapping_layout"):
        key = int(row["pes"]), row["mapping"]
        wanted[key][int(row["active_cores_per_socket"])] += int(row["sockets"])
    made = []
    for (ranks, mapping), loads in wanted.items():
        ours = Counter(placement.place(RULES[mapping], ranks, 2, 6).sockets())
        # Nodes of ten ranks: filled socket after socket they hold 6 + 4, printed is 5 + 5.
        excepted = mapping == "node_balanced" and ranks in (32, 64)
        state = checks.EXCEPTION if excepted else checks.state(ours == loads)
        note = "nodes of 10 printed as 5 + 5, those of 8 as 6 + 2: no one rule" if excepted else ""
        texts = (_loads(loads), _loads(ours), "equal")
        made.append(Check("F5", f"sockets, {ranks} ranks, {mapping.replace('_', ' ')}", *texts, state, note))
    base = minerva(hydra_runs.run("weak", 8))
    moved = minerva(hydra_runs.run("weak", 8, rule="by-socket"))
    measured = {r["mapping"]: float(r["time_s"]) for r in table("davis2017", "mapping")
                if (r["pes"], r["quantity"]) == ("8", "walltime")}  # fmt: skip
    gain, ours = measured["node_fill"] / measured["socket_balanced"], base.total / moved.total
    made.append(Check("F5", "8 ranks, node-fill over socket-balanced", f"{gain:.3f}x (measured)", f"{ours:.3f}x", "5 %",
                      checks.state(abs(ours / gain - 1) < 0.05)))  # fmt: skip
    cube = hydra_runs.run("strong", 64)
    slab = replace(cube, process_grid=(1, 4, 16))
    texts = (f"{minerva(run).components['point_to_point']:.2f} s" for run in (cube, slab))
    good = cube.pairs != slab.pairs and minerva(cube).total != minerva(slab).total
    what = "64 ranks as 4x4x4, as 1x4x16: exchange"
    return [*made, Check("F5", what, "", " and ".join(texts), "they differ", checks.state(good))]


def _loads(loads: Counter) -> str:
    return " + ".join(f"{load}x[{sockets}]" for load, sockets in sorted(loads.items(), reverse=True))


def data_sets() -> list[Check]:
    """H2: the printed tables ship with the package and load."""
    files = sorted((DATA / "davis2017").glob("*.csv"))
    rows = [len(table("davis2017", file.stem)) for file in files]
    text = f"{len(files)} tables, {sum(rows)} rows"
    return [
        Check(
            "H2", "replay data", "35 tables, 4630 rows", text, "all load", checks.state(text == "35 tables, 4630 rows")
        )
    ]
