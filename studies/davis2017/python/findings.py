"""Conclusions of the 2017 study, judged by its printed tables and by runs of hydro3d and cg3d."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping

from haloscope.records import stats
from haloscope.records.rows import Row
from haloscope.report import components
from haloscope.studies import published
from haloscope.studies.findings import Finding, Judgement, Launches, judge, judge_cases, judge_printed, needs
from haloscope_studies.davis2017.measured import launches, scaling
from haloscope_studies.davis2017.measured.experiments import APP, CG, Point
from haloscope_studies.davis2017.measured.scaling import Measured
from haloscope_studies.davis2017.replay import observations, variants

PROCESSES, THREADS = variants.LIBRARIES  # the MPI libraries with which the study ran these variants
KERNELS = ("viscosity", "rates", "accelerate")  # of hydro3d that the study has as Lartvis1, MDT2 and UpdVel
FOUR_PERCENT = 1.045  # rounded, as the study states it
RUNS = "runs of these variants"
TWO_RANKS = "runs on two ranks"

Case = tuple[Launches, Launches]


def judged(measured: Measured) -> list[Finding]:
    """Return the findings of the study; runs whose results are wrong judge none of them."""
    right = {point: row for point, row in measured.items() if row.verification != "failed"}
    return [*of_model(right), *of_processes(right), *of_threads(right), of_reductions(right)]


def of_model(measured: Measured) -> list[Finding]:
    """Return the findings of chapters 4 and 5: composition of the walltime, the model, cores and sockets, barriers."""
    printed = validated()
    barriers = [1 + cost for _, cost, _ in observations.barriers()]
    return [
        Finding(
            "composition",
            "The longest computing and the shortest communication of any process add up to the walltime, typically "
            "within 1 %.",
            "tables A.14 to A.23",
            judge_printed([typical_composition()], high=1.01, about="median over 28 runs"),
            composition(measured),
        ),
        Finding(
            "accuracy",
            "The model is within 15 % of the walltime on three machines, on up to 2048 cores.",
            "tables 5.10 to 5.14",
            judge_printed([r for rs in printed.values() for r in rs], 0.85, 1.15),
            needs("more than one node"),
        ),
        Finding(
            "held-out",
            "On the machine whose costs were measured the model is within 10 % of every walltime.",
            "tables 5.12 to 5.14",
            judge_printed(printed["minerva"], 0.90, 1.10),
            held_out(measured),
        ),
        Finding(
            "contention",
            "A process computes its cells more slowly when more cores of its socket compute.",
            "tables 4.4, A.74",
            judge_printed(slowed_computing(), low=1),
            judge_cases(crowded(measured), low=1, lacking=TWO_RANKS),
        ),
        Finding(
            "mapping",
            "An even spread over sockets that leaves none of them full, of 8 or 16 processes, makes the run faster.",
            "tables 4.5, A.18",
            judge_printed(spread_over_sockets(), low=1),
            needs("two sockets"),
        ),
        Finding(
            "barrier",
            "A barrier before each exchange makes the walltime less than 5 % longer.",
            "table 5.7",
            judge_printed(barriers, high=1.05),
            judge_cases(with_barriers(measured), high=1.05, lacking=TWO_RANKS),
        ),
    ]


def of_processes(measured: Measured) -> list[Finding]:
    """Return the findings of chapter 6 for variants without threads."""
    vectors = list(variants.vector_gain().values())
    return [
        Finding(
            "rows",
            "Loops with x innermost (B) are faster than loops along the dimension of the remap (A).",
            "tables A.51, A.52",
            judge_printed(printed_ratios(PROCESSES, "A", "B"), low=1),
            judge_cases(against(measured, "A", "B"), low=1, lacking=RUNS),
        ),
        Finding(
            "arrays",
            "A full loop for each part with 3D temporaries (C) is slower than rows of temporaries (B).",
            "tables A.51, A.52",
            judge_printed(printed_ratios(PROCESSES, "C", "B"), low=1),
            judge_cases(against(measured, "C", "B"), low=1, lacking=RUNS),
        ),
        Finding(
            "vectors",
            "Kernels that compute much are faster with vector instructions (E) than without (D).",
            "tables A.53 to A.59",
            judge_printed(vectors, low=1),
            judge_cases(vectorised(measured), low=1, lacking=RUNS),
        ),
        Finding(
            "direct",
            "Messages to all 26 neighbours (F) in place of six ordered ones cost at most 4 %.",
            "tables A.52, A.60",
            judge_printed(printed_ratios(PROCESSES, "F", "C"), high=FOUR_PERCENT),
            judge_cases(against(measured, "F", "E"), high=FOUR_PERCENT, lacking=TWO_RANKS),
        ),
        Finding(
            "overlap",
            "Computing the interior while messages travel (H) is slower than computing it apart from the exchange (G).",
            "table A.60",
            judge_printed(printed_ratios(PROCESSES, "H", "G", least=2), low=1),
            judge_cases(against(measured, "H", "G"), low=1, lacking=TWO_RANKS),
        ),
    ]


def of_threads(measured: Measured) -> list[Finding]:
    """Return the findings of chapter 6 for variants with threads."""
    return [
        Finding(
            "threads",
            "Threads with even shares (I) are slower than a process on each core.",
            "tables A.63, A.65, A.66",
            judge_printed(printed_ratios(THREADS, "I", "C"), low=1),
            judge_cases(against(measured, "I", "E"), low=1, lacking="two cores"),
        ),
        Finding(
            "pieces",
            "Threads that take larger pieces are faster than threads that take the smallest one at a time (J).",
            "table A.64",
            judge_printed(printed_pieces(), low=1),
            judge_cases(larger_pieces(measured), low=1, lacking="two cores"),
        ),
        Finding(
            "comm-thread",
            "From 12 cores on, a thread that communicates while the others compute (L) makes the run faster than "
            "exchanging first (K).",
            "tables A.65, A.66",
            judge_printed(printed_ratios(THREADS, "K", "L", least=12), low=1),
            judge_cases(against(measured, "K", "L", least=12), low=1, lacking="12 cores"),
        ),
    ]


def of_reductions(measured: Measured) -> Finding:
    """Return the finding of chapter 7 on conjugate gradients."""
    return Finding(
        "single-reduction",
        "Conjugate gradients that join their reductions take longer for an iteration than the standard method.",
        "table A.77",
        judge_printed(printed_reductions(), low=1),
        judge_cases(joined_reductions(measured), low=1, lacking="runs of both methods"),
    )


# ---- printed numbers -------------------------------------------------------------------------------------------------


def off(composed: float, measured: float) -> float:
    """Return 1 plus the absolute relative error of a time."""
    return 1 + abs(composed / measured - 1)


def typical_composition() -> float:
    """Return 1 plus the median error of the composed walltime of the runs on Minerva."""
    return statistics.median(off(composed, whole) for composed, whole in observations.compositions().values())


def validated() -> dict[str, list[float]]:
    """Return the model's walltime over the measured one of each run, by machine."""
    found: dict[str, list[float]] = {}
    for row in published("davis2017", "validation"):
        found.setdefault(row["machine"], []).append(float(row["model_s"]) / float(row["measured_s"]))
    return found


def slowed_computing() -> list[float]:
    """Return the time of computing on 2, 4 and 8 cores of a node over that on one: Hydra's, and of products of CG."""
    hydra = {
        int(r["pes"]): float(r["time_s"])
        for r in published("davis2017", "scaling_components")
        if (r["machine"], r["scaling"], r["component"]) == ("minerva", "weak", "compute")
    }
    products = {
        int(r["pes"]): float(r["time_s"]) for r in published("davis2017", "cg_matmult_parts") if r["part"] == "Multiply"
    }
    return [seconds[cores] / seconds[1] for seconds in (hydra, products) for cores in (2, 4, 8)]


def spread_over_sockets() -> list[float]:
    """Return the walltime of filled nodes over that of balanced sockets, on 8 and 16 processes."""
    seconds = {
        (r["mapping"], int(r["pes"])): float(r["time_s"])
        for r in published("davis2017", "mapping")
        if r["quantity"] == "walltime"
    }
    return [seconds["node_fill", pes] / seconds["socket_balanced", pes] for pes in (8, 16)]


def printed_ratios(library: str, above: str, below: str, least: int = 1) -> list[float]:
    """Return the walltime of one variant over that of another in each run that has both; least: processing elements."""
    times = variants.walltimes()
    runs = [key[2:] for key in times if key[:2] == (library, above) and key[4] >= least]
    return [
        times[library, above, *run] / times[library, below, *run] for run in runs if (library, below, *run) in times
    ]


def printed_pieces() -> list[float]:
    """Return the walltime of blocks of one line over that of each other size of block."""
    smallest, *others = (float(r["time_s"]) for r in published("davis2017", "openmp_block_size"))
    return [smallest / seconds for seconds in others]


def printed_reductions() -> list[float]:
    """Return the time of an iteration with joined reductions over that of the standard method, in each run."""
    seconds: dict[str, dict[tuple[str, str], float]] = {}
    for r in published("davis2017", "cg_iteration_time"):
        seconds.setdefault(r["solver"], {})[r["machine"], r["pes"]] = float(r["time_per_iteration_s"])
    return [joined / seconds["base"][run] for run, joined in seconds["coalesced"].items()]


# ---- records ---------------------------------------------------------------------------------------------------------


def common_launches(measured: Measured) -> dict[str, dict[Point, Row]]:
    """Return, by launch, the runs in that launch: launches that all runs have."""
    by_launch = launches.common(list(measured.values()))
    return {launch: dict(zip(measured, rows, strict=True)) for launch, rows in by_launch.items()}


def seconds_of(row: Row, measure: launches.Measure) -> Launches:
    """Return a measure of a row's records by launch."""
    return {launch: [seconds] for launch, seconds in launches.seconds_of(row, measure).items()}


def composition(measured: Measured) -> Judgement:
    """Judge the error of the composed time of a step, its median over runs on several ranks."""
    runs = {
        p: r
        for p, r in measured.items()
        if (p.app, p.letter) == (APP, "A") and p.experiment in ("weak", "strong") and scaling.is_timed(r)
    }
    errors = {
        launch: statistics.median(
            off(components.composed(r.records), components.step_time(r.records)) for r in rows.values()
        )
        for launch, rows in common_launches(runs).items()
    }
    return _judge_errors(errors, 1.01, f"median over {len(runs)} runs", TWO_RANKS)


def held_out(measured: Measured) -> Judgement:
    """Judge the largest error of the predicted time of a step at sizes that no cost was fitted to."""
    scaled = {
        p: r
        for p, r in measured.items()
        if (p.app, p.letter) == (APP, "A") and p.experiment in ("serial", "weak", "strong") and scaling.is_timed(r)
    }
    errors: dict[str, float] = {}
    count = 0
    for launch, rows in common_launches(scaled).items():
        found = scaling.errors(rows)
        count = len(found)
        if found:
            errors[launch] = max(off(m.total, components.step_time(r.records)) for _, r, m in found)
    return _judge_errors(errors, 1.10, f"worst of {count} runs of sizes without a fitted cost", "three sizes")


def _judge_errors(errors: Mapping[str, float], high: float, about: str, lacking: str) -> Judgement:
    """Judge 1 plus a relative error of each launch."""
    return judge(stats.mean_over_launches(errors), high=high, about=about) if errors else needs(lacking)


def crowded(measured: Measured) -> Iterator[Case]:
    """Yield computing of the same cells a rank on the most ranks, and on one, of both programs."""
    longest = launches.of_component("compute", "max")
    for app in (APP, CG):
        serial, weak = (
            {
                p: r
                for p, r in measured.items()
                if (p.app, p.letter, p.experiment) == (app, "A", kind) and scaling.is_timed(r)
            }
            for kind in ("serial", "weak")
        )
        most = max((p.pes for p in weak), default=0)
        alone = {p.side: row for p, row in serial.items()}
        for point, row in weak.items():
            if point.pes == most and point.side in alone:
                yield seconds_of(row, longest), seconds_of(alone[point.side], longest)


def with_barriers(measured: Measured) -> Iterator[Case]:
    """Yield runs of several ranks with a barrier before each exchange, and the same runs without."""
    plain = scaling.of(measured, "strong")
    for point, row in measured.items():
        other = next((r for p, r in plain.items() if (p.side, p.pes) == (point.side, point.pes)), None)
        if point.experiment == "barrier" and point.pes > 1 and other:
            yield row.launches, other.launches


def against(measured: Measured, above: str, below: str, least: int = 1) -> Iterator[Case]:
    """Yield the runs of two variants with the same cells and processing elements; least: processing elements."""
    for point, row, other in pairs(measured, above, below):
        if point.pes >= least:
            yield row.launches, other.launches


def pairs(measured: Measured, above: str, below: str) -> Iterator[tuple[Point, Row, Row]]:
    """Yield the point and the rows of each run that both variants have, every run once."""
    runs: dict[str, dict[tuple[int, int], tuple[Point, Row]]] = {above: {}, below: {}}
    for p, row in measured.items():
        if p.app == APP and p.experiment in ("serial", "variants") and p.letter in runs:
            runs[p.letter][p.side, p.pes] = p, row
    for key, (point, row) in runs[above].items():
        if key in runs[below]:
            yield point, row, runs[below][key][1]


def vectorised(measured: Measured) -> Iterator[Case]:
    """Yield the times of kernels without vector instructions, and with them."""
    for _, plain, vector in pairs(measured, "D", "E"):
        for kernel in KERNELS if scaling.is_timed(plain) and scaling.is_timed(vector) else ():
            yield seconds_of(plain, of_sweep(kernel)), seconds_of(vector, of_sweep(kernel))


def of_sweep(name: str) -> launches.Measure:
    """Return the measure of a sweep: seconds per step, of the slowest rank in each stage; the median over launches."""
    return lambda found: statistics.median(
        sum(timer["seconds"]["max"] for timer in record["timers"] if timer["name"] == name) for record in found
    )


def larger_pieces(measured: Measured) -> Iterator[Case]:
    """Yield runs of threads that take one layer at a time, and runs with each larger number of layers."""
    runs = {p.piece: row for p, row in measured.items() if p.experiment == "pieces"}
    for piece, row in runs.items():
        if piece > 1 and 1 in runs:
            yield runs[1].launches, row.launches


def joined_reductions(measured: Measured) -> Iterator[Case]:
    """Yield iterations with joined reductions, and by the standard method."""
    of_cg = {p: row for p, row in measured.items() if p.app == CG}
    standard = {(p.side, p.pes): row for p, row in of_cg.items() if p.experiment in ("serial", "weak")}
    for p, row in of_cg.items():
        if p.experiment == "single-reduction" and (p.side, p.pes) in standard:
            yield row.launches, standard[p.side, p.pes].launches
