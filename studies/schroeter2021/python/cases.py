"""The cases of study schroeter2021, in the thesis' words, and their comparisons."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from haloscope.measure import space
from haloscope.records.text import count_of
from haloscope.studies import Options, published
from haloscope_studies.schroeter2021 import precision

APP = "poisson2d"
METHODS = ("jacobi", "gauss-seidel")
SCALINGS = ("strong", "weak")
ENDS = ("iterations", "precision")
VERSIONS = {  # the three final versions (chapter 6): the strategy that moves a line, by method
    "p2p": {"jacobi": "direct/p2p", "gauss-seidel": "direct/p2p"},
    "rma": {"jacobi": "direct/rma-pscw", "gauss-seidel": "direct/rma-pscw:per-message"},
    "shared": {"jacobi": "direct/shared+rma-fence", "gauss-seidel": "direct/shared+rma-lock:get"},
}
BARRIERS = "direct/rma-lock:get,barrier"  # the thesis' passive form of Jacobi; others announce lines by signals
RESIDUAL = {"jacobi": "allreduce", "gauss-seidel": "chain"}
RESIDUAL_SCHEMES = ("all-to-last", "chain", "accumulate")
PUBLISHED_TARGETS = {("jacobi", 512, 5000): 7.0637e-5, ("gauss-seidel", 512, 5000): 7.0754e-5}  # of strong scaling
LONGEST_WEAK = 100  # iterations of weak scaling
FULL_RANKS = (4, 8, 16, 24, 48, 72, 96)  # figures 6.5 to 6.12, with the number of nodes that the thesis used
NODES_OF = {4: 1, 8: 1, 16: 2, 24: 2, 48: 2, 72: 3, 96: 3}
PLACED_RANKS = 36  # figures 6.13, 6.14 and 6.24: on 1 to 4 nodes
LARGE = (200, 5, 3000)  # figure 6.15: ranks, nodes, and interlines of 24009 lines
FULL_NODE = (72, 1047)  # table 6.1: ranks on one node and on two; interlines of 8385 lines
FULL_SIZES, FULL_STEPS = (512, 1396), 5000  # of the thesis, as Options have them


@dataclass(frozen=True)
class Case:
    """One measurement, in the thesis' words. `interlines` 0: the size that follows from the scaling."""

    method: str
    end: str = "iterations"
    scaling: str = "strong"
    strategy: str = "direct/p2p"
    ranks: int = 2
    nodes: int = 1
    residual: str = ""
    interlines: int = 0


@dataclass(frozen=True)
class Comparison:
    """Compared variants of one case: ratios refer to the first."""

    topic: str  # heading of its table
    label: str  # its row, to which the report adds the nodes
    variants: tuple[tuple[str, Case], ...]


TOPICS = {  # heading: the result of the thesis
    "Eight experiments": "figures 6.5 to 6.12 and 6.16 to 6.23: no version wins throughout",
    "Put against get": "figures 5.1, 5.2: equal in strong scaling, Put faster at 72 and 96 ranks in weak scaling",
    "Synchronisation": "figures 5.3 to 5.10: Jacobi, PSCW mostly best, passive with barriers by iterations alone; "
    "Gauss-Seidel, equal or passive 1-2 % slower",
    "Readiness of lines": "section 5.3: flags and empty messages equally fast",
    "Lock strategy": "section 5.3: no difference between a lock per access and lock_all with flush",
    "Windows and communicators": "figure 5.12: one combined window slightly better; split communicators 6.3 % less at "
    "200 ranks",
    "Links between nodes": "figures 5.13 to 5.20, shared memory inside the nodes: Jacobi, no best one; Gauss-Seidel, "
    "equal or passive slightly faster, p2p never better",
    "Residual scheme": "figure 5.11: the chain clearly better than all-to-last one-sided, within 1 % two-sided",
    "Placement": "figures 6.13, 6.14, 6.24: from one node to two all faster on WR, shared slower on Mistral",
    "Full node": "table 6.1: on one full node shared takes 7.7 % less than p2p, on two nodes p2p 26.7 % less",
    "Large case": "figure 6.15, 24009 lines: Jacobi, rma fastest by iterations, p2p by precision; Gauss-Seidel, shared "
    "fastest or equal by iterations, p2p slightly by precision",
}


@functools.cache
def weak_sizes() -> dict[int, int]:
    """Return the interlines of table 5.1 by number of ranks, which no formula gives."""
    return {int(row["ranks"]): int(row["interlines"]) for row in published("schroeter2021", "table_5_1")}


def interlines(case: Case, options: Options) -> int:
    """Return the size of a case: fixed in strong scaling; in weak scaling with the points of a single rank per rank.

    Where the single rank has the size of table 5.1, all sizes of weak scaling are from this table.
    """
    if case.interlines:
        return case.interlines
    strong, weak = options.sizes[0], options.sizes[-1]
    if case.scaling == "strong":
        return strong
    if weak == weak_sizes()[1] and case.ranks in weak_sizes():
        return weak_sizes()[case.ranks]
    return round((math.sqrt(case.ranks) * precision.lines(weak) - 9) / 8)


def iterations(case: Case, options: Options) -> int:
    """Return the iterations of a run, or the iterations of the sequential program up to the precision."""
    return options.steps if case.scaling == "strong" else min(options.steps, LONGEST_WEAK)


def target(case: Case, options: Options) -> float:
    """Return the precision that the sequential program reaches in iterations() iterations."""
    key = (case.method, interlines(case, options), iterations(case, options))
    return PUBLISHED_TARGETS.get(key) or tabulated_targets().get(key) or precision.target(*key)


@functools.cache
def tabulated_targets() -> dict[tuple[str, int, int], float]:
    """Return precisions between tabulated residuals of two iterations, by method, interlines and the later one."""
    rows = published("schroeter2021", "weak_scaling_precisions")
    residuals = {
        (row["method"].replace("_", "-"), int(row["interlines"]), int(row["iteration"])): float(row["residuum"])
        for row in rows
    }
    return {
        (method, size, last): math.sqrt(residuals[method, size, last - 1] * residual)
        for (method, size, last), residual in residuals.items()
        if (method, size, last - 1) in residuals
    }


def request(case: Case, options: Options) -> space.Space:
    """Return the request of a case; refused with the reason if it cannot run."""
    side = precision.lines(interlines(case, options)) - 2
    axes = {
        "cells": (side, side),
        "ranks": case.ranks,
        "strategy": case.strategy,
        "form": case.method,
        "schedule": "bulk" if case.method == "jacobi" else "pipeline",
        "process_grid": "slabs",
        "nodes": case.nodes if case.nodes > 1 else 0,
    }
    settings = {"steps": iterations(case, options), "repetitions": options.repetitions}
    if case.end == "precision":  # Gauss-Seidel runs on until the end has reached all ranks
        settings["steps"] = 2 * iterations(case, options) + 4 * case.ranks
        scheme = case.residual or RESIDUAL[case.method]
        axes["set"] = (("precision", f"{target(case, options):.6e}"), ("residual", scheme))
    return space.expand(APP, {name: [value] for name, value in axes.items()}, settings)


# ---- comparisons -----------------------------------------------------------------------------------------------------


def rank_counts(options: Options) -> tuple[int, ...]:
    """Return the ranks of the eight experiments: as requested, else the thesis'."""
    return (options.ranks,) if options.ranks else FULL_RANKS


def nodes_of(ranks: int, options: Options) -> int:
    """Return the nodes for `ranks` ranks: the thesis' number if it has these ranks, else one."""
    return NODES_OF.get(ranks, 1) if not options.ranks else 1


def of_versions(topic: str, label: str, case: Case) -> Comparison:
    """Return a comparison of the three final versions, p2p first."""
    return Comparison(topic, label, tuple((v, replace(case, strategy=by[case.method])) for v, by in VERSIONS.items()))


def of_strategies(topic: str, label: str, case: Case, strategies: Sequence[str]) -> Comparison:
    """Return a comparison of strategies; ratios refer to the first."""
    return Comparison(topic, label, tuple((s.removeprefix("direct/"), replace(case, strategy=s)) for s in strategies))


def eight_experiments(options: Options) -> list[Comparison]:
    """Return the comparisons of p2p, RMA and shared memory: two methods, two scalings, two terminations."""
    return [
        of_versions(
            "Eight experiments",
            f"{method}, {scaling}, {end}, {count_of(ranks, 'rank')}",
            Case(method, end, scaling, ranks=ranks, nodes=nodes_of(ranks, options)),
        )
        for method in METHODS
        for scaling in SCALINGS
        for end in ENDS
        for ranks in rank_counts(options)
    ]


@dataclass(frozen=True)
class Part:
    """Compared building blocks of the RMA versions (chapter 5); ratios refer to the first strategy."""

    topic: str
    method: str
    strategies: tuple[str, ...]
    scalings: tuple[str, ...] = SCALINGS
    ends: tuple[str, ...] = ENDS[:1]


WINDOWS = Part(
    "Windows and communicators",
    "jacobi",
    ("direct/rma-fence:per-message", "direct/rma-fence", "direct/rma-fence:split"),
    scalings=SCALINGS[:1],
)
PARTS = (
    Part("Put against get", "jacobi", ("direct/rma-fence", "direct/rma-fence:get")),
    Part(
        "Synchronisation",
        "jacobi",
        ("direct/rma-fence", "direct/rma-pscw", BARRIERS, "direct/rma-lock:get", "direct/rma-lockall:get"),
        ends=ENDS,
    ),
    Part(
        "Synchronisation",
        "gauss-seidel",
        ("direct/rma-pscw:per-message", "direct/rma-lock:get", "direct/rma-lockall:get"),
        ends=ENDS,
    ),
    Part("Readiness of lines", "gauss-seidel", ("direct/rma-lock:get,flag", "direct/rma-lock:get,message")),
    Part("Lock strategy", "gauss-seidel", ("direct/rma-lock:get", "direct/rma-lockall:get")),
    WINDOWS,
)
LINKS = (  # between nodes; inside a node the lines are in shared memory
    Part(
        "Links between nodes",
        "jacobi",
        ("direct/shared+rma-fence", "direct/shared+rma-pscw", "direct/shared+rma-lock:get", "direct/shared+p2p"),
        ends=ENDS,
    ),
    Part(
        "Links between nodes",
        "gauss-seidel",
        ("direct/shared+rma-pscw:per-message", "direct/shared+rma-lock:get", "direct/shared+p2p"),
        ends=ENDS,
    ),
)


def of_part(part: Part, ranks: int, nodes: int) -> list[Comparison]:
    """Return the comparisons of a part on some ranks and nodes, one per scaling and termination."""
    return [
        of_strategies(
            part.topic,
            f"{part.method}, {scaling}, {end}, {count_of(ranks, 'rank')}",
            Case(part.method, end, scaling, ranks=ranks, nodes=nodes),
            part.strategies,
        )
        for scaling in part.scalings
        for end in part.ends
    ]


def parts(options: Options) -> list[Comparison]:
    """Return the comparisons of chapter 5: building blocks of the RMA versions."""
    placed = [(ranks, nodes_of(ranks, options)) for ranks in rank_counts(options)]
    found = [c for ranks, nodes in placed for part in PARTS for c in of_part(part, ranks, nodes)]
    found += [c for ranks, nodes in placed for c in residual_schemes(ranks, nodes)]
    spread = [(ranks, several_nodes(ranks, options)) for ranks in rank_counts(options)]
    return found + [c for ranks, nodes in spread if nodes > 1 for part in LINKS for c in of_part(part, ranks, nodes)]


def several_nodes(ranks: int, options: Options) -> int:
    """Return the nodes for comparisons of links between them: two where the ranks were requested and allow it."""
    if not options.ranks:
        return nodes_of(ranks, options)
    return 2 if options.nodes > 1 and ranks % 2 == 0 else 1


def residual_schemes(ranks: int, nodes: int) -> list[Comparison]:
    """Return the comparisons of ways to collect residuals, two-sided and one-sided."""
    found = []
    for version in ("p2p", "rma"):
        strategy = VERSIONS[version]["gauss-seidel"]
        for scaling in SCALINGS:
            seidel = Case("gauss-seidel", "precision", scaling, strategy, ranks, nodes)
            schemes = tuple((s, replace(seidel, residual=s)) for s in RESIDUAL_SCHEMES)
            found.append(
                Comparison("Residual scheme", f"gauss-seidel, {scaling}, {count_of(ranks, 'rank')}, {version}", schemes)
            )
    return found


def placement(options: Options) -> list[Comparison]:
    """Return the comparisons of fixed ranks on 1 to `nodes` nodes."""
    ranks = options.ranks or PLACED_RANKS
    return [
        of_versions("Placement", f"{method}, {count_of(ranks, 'rank')}", Case(method, ranks=ranks, nodes=nodes))
        for method in METHODS
        for nodes in range(1, options.nodes + 1)
        if ranks % nodes == 0
    ]


def full_node(options: Options) -> list[Comparison]:
    """Return the comparisons with one and two ranks on each core; of the thesis, on a full node and on two nodes."""
    if options.ranks:
        cores = f" on {count_of(options.cores, 'core')}"
        counts, size = [(options.cores, 1), (2 * options.cores, 1)], options.sizes[0]
    else:
        cores = ""
        counts, size = [(FULL_NODE[0], 1), (FULL_NODE[0], 2)], FULL_NODE[1]
    return [
        of_versions(
            "Full node",
            f"gauss-seidel, {count_of(ranks, 'rank')}{cores}",
            Case("gauss-seidel", ranks=ranks, nodes=nodes, interlines=size),
        )
        for ranks, nodes in counts
        if ranks > 1
    ]


def large(options: Options) -> list[Comparison]:
    """Return the comparisons of figure 6.15 and section 5.3.5, of the thesis' ranks and nodes only."""
    if options.ranks:
        return []
    ranks, nodes, size = LARGE
    case = Case("jacobi", ranks=ranks, nodes=nodes, interlines=size)
    return [
        of_versions("Large case", f"{method}, {end}, {ranks} ranks", replace(case, method=method, end=end))
        for method in METHODS
        for end in ENDS
    ] + [of_strategies(WINDOWS.topic, f"jacobi, large, {ranks} ranks", case, WINDOWS.strategies)]


def is_published(case: Case, nodes: int, options: Options) -> bool:
    """Return whether a case of the eight experiments, run on some nodes, has the ranks, nodes, size and iterations of
    the thesis.
    """
    return NODES_OF.get(case.ranks) == nodes and (options.sizes, options.steps) == (FULL_SIZES, FULL_STEPS)


def comparisons(options: Options) -> list[Comparison]:
    """Return all comparisons, by topic."""
    return eight_experiments(options) + parts(options) + placement(options) + full_node(options) + large(options)
