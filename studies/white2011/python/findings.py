"""Conclusions of White & Dongarra 2011, judged by its stated numbers and by measurements here."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope.records import stats
from haloscope.studies import Options, published
from haloscope.studies.findings import Finding, Judgement, judge, judge_cases, judge_printed, needs
from haloscope_studies.white2011.comparisons import (
    Group,
    Launches,
    Measured,
    combine,
    gpu_plus_cpus,
    groups,
    is_on_gpu,
    sends_messages,
)
from haloscope_studies.white2011.versions import IMPLEMENTATIONS, Point

MORE = math.nextafter(1, 2)  # the least ratio of two different numbers
NEARLY = 0.95  # of the speed of E, as 82 GF are of 86
WARP = 32  # threads
THIN = 3  # layers: the thicker box of the two that the paper names as best
FEWEST_SETTINGS = 3  # of a core count whose best number of threads can change
Side = Callable[[Group], Launches]  # one side of a comparison


@dataclass(frozen=True)
class Judge:
    """Judges findings by groups of measurements: on_gpu are the groups of the whole node with a GPU."""

    everywhere: Sequence[Group]
    on_gpu: Sequence[Group]

    def cpus(self, slower: Side, faster: Side) -> Judgement:
        """Judge whether one side is faster than another on CPUs."""
        return _compare(self.everywhere, slower, faster, MORE, "more cores")

    def gpu(self, slower: Side, faster: Side, low: float = MORE, lacking: str = "measurements") -> Judgement:
        """Judge whether one side is at least `low` times as fast as another on a node with a GPU."""
        return _compare(self.on_gpu, slower, faster, low, lacking if self.on_gpu else "a GPU")


def _compare(found: Sequence[Group], slower: Side, faster: Side, low: float, lacking: str) -> Judgement:
    cases = [(slower(group), faster(group)) for group in found]
    return judge_cases([(a, b) for a, b in cases if a.keys() & b.keys()], low, lacking=lacking)


def findings(measured: Measured, options: Options) -> list[Finding]:
    """Return the conclusions in the order of the paper."""
    found = groups(measured)
    whole_node = [group for group in found if is_on_gpu(options) and group.cores == options.cores]
    judge_by = Judge(found, whole_node)
    return [*_of_cpus(judge_by), *_of_tuning(judge_by), *_of_gpus(judge_by)]


def best(letters: str, where: Callable[[Point], bool] = lambda _: True) -> Side:
    """Return the side of the best setting of the best of some versions."""
    return lambda group: group.best(letters, where)


def with_messages(letter: str) -> Side:
    """Return the side of a version's best setting of several tasks."""
    return best(letter, sends_messages)


# ---- overlap on CPUs ------------------------------------------------------------------------------------------------


def _of_cpus(judge_by: Judge) -> list[Finding]:
    figures = "V, figures 3 and 4"
    unprinted = needs("printed numbers")
    return [
        Finding(
            "nonblocking-gains",
            "Overlap by non-blocking messages (C) is faster than none (B) while each core has much work.",
            figures,
            unprinted,
            judge_by.cpus(with_messages("B"), with_messages("C")),
        ),
        Finding(
            "crossover",
            "With little work per core, from 6000 cores of JaguarPF on, C is slower than B.",
            figures,
            unprinted,
            needs("thousands of cores"),
        ),
        Finding(
            "thread-lags",
            "Overlap by a thread that communicates (D) is slower than both B and C.",
            figures,
            unprinted,
            judge_by.cpus(with_messages("D"), slower_of_b_and_c),
        ),
        Finding(
            "threads-over-overlap",
            "Tuning the number of threads per task gains more than overlap.",
            "V, figures 5 and 6",
            unprinted,
            judge_by.cpus(untuned_but_overlapped, tuned_but_not_overlapped),
        ),
    ]


def slower_of_b_and_c(group: Group) -> Launches:
    """Return the times of the slower one of B and C, each at its best setting."""
    return combine([with_messages("B")(group), with_messages("C")(group)], max)


def untuned_but_overlapped(group: Group) -> Launches:
    """Return the product of the times of B with one thread per task and of C.

    Over `tuned_but_not_overlapped`, it is the gain of tuning B's threads over the gain of C's overlap.
    """
    return combine([group.best("B", _has_one_thread), with_messages("C")(group)], math.prod)


def tuned_but_not_overlapped(group: Group) -> Launches:
    """Return the product of the times of B at its best setting and at its best one with messages."""
    return combine([group.best("B"), with_messages("B")(group)], math.prod)


def _has_one_thread(point: Point) -> bool:
    return point.threads == 1 and sends_messages(point)


# ---- tuned parameters -----------------------------------------------------------------------------------------------


def _of_tuning(judge_by: Judge) -> list[Finding]:
    blocks, boxes = "V, figures 7 and 8", "V-F, figures 11 and 12"
    heights = stated_numbers("gpu block y")
    return [
        Finding(
            "threads-grow",
            "The best number of threads per task grows with the number of cores.",
            "V, figures 5 and 6",
            needs("printed numbers"),
            judge_growth(judge_by.everywhere),
        ),
        Finding(
            "block-x",
            f"Thread blocks of {WARP} threads in x, the size of a warp, are the fastest.",
            blocks,
            judge_printed(stated_numbers("gpu block x"), WARP, WARP, "threads"),
            judge_by.gpu(_of_width(lambda x: x != WARP), _of_width(lambda x: x == WARP)),
        ),
        Finding(
            "block-y",
            "The best number of threads in y differs between GPUs.",
            blocks,
            judge_printed([max(heights) / min(heights)], MORE, about="largest over smallest"),
            needs("two kinds of GPU"),
        ),
        Finding(
            "thin-box",
            f"The best box of I is thin, at most {THIN} layers: the CPUs do little of the work.",
            boxes,
            judge_printed(stated_numbers("box thickness"), high=THIN, about="layers"),
            judge_by.gpu(
                best("I", lambda p: p.walls > THIN), best("I", lambda p: p.walls <= THIN), lacking="thicker boxes"
            ),
        ),
        Finding(
            "thickness-falls",
            "The best thickness of the box falls with the number of cores.",
            boxes,
            needs("printed numbers"),
            needs("several nodes with GPUs"),
        ),
    ]


def _of_width(matches: Callable[[int], bool]) -> Side:
    return best("E", lambda p: bool(p.block) and matches(int(p.block.split("x")[0])))


def stated_numbers(parameter: str) -> list[float]:
    """Return the best values of a tuned parameter that the paper states, of all machines."""
    rows = (r for r in published("white2011", "tuning") if r["parameter"] == parameter)
    return [float(n) for r in rows for n in re.findall(r"\d+", r["best"])]


def judge_growth(everywhere: Sequence[Group]) -> Judgement:
    """Judge the best threads per task of B on most cores over the number on the fewest, by launch.

    Core counts with settings enough count; several sizes by their geometric mean.
    """
    sizes = dict.fromkeys(group.cells for group in everywhere)
    ratios = [found for cells in sizes if (found := _growth([g for g in everywhere if g.cells == cells]))]
    common = [key for key in ratios[0] if all(key in one for one in ratios)] if ratios else []
    if not common:
        return needs("more cores")
    means = {key: statistics.geometric_mean(one[key] for one in ratios) for key in common}
    return judge(stats.mean_over_launches(means), MORE, about="threads on most over fewest cores")


def _growth(of_size: Sequence[Group]) -> dict[str, float]:
    """Return the growth of the best number of threads in each launch, {} where core counts lack settings."""
    enough = sorted((g for g in of_size if len(g.rows("B")) >= FEWEST_SETTINGS), key=lambda g: g.cores)
    if len(enough) < 2:
        return {}
    few, many = best_threads(enough[0]), best_threads(enough[-1])
    return {key: many[key] / few[key] for key in few if key in many}


def best_threads(group: Group) -> dict[str, int]:
    """Return the threads per task of the fastest setting of B in each launch."""
    rows = {p.threads: row.launches for p, row in group.measured.items() if p.letter == "B" and not row.oversubscribed}
    launches = set.intersection(*(set(found) for found in rows.values()))
    return {key: min(rows, key=lambda threads: float(np.median(rows[threads][key]))) for key in sorted(launches)}


# ---- overlap with a GPU ---------------------------------------------------------------------------------------------


def stated_speeds() -> dict[str, float]:
    """Return the stated GF of one node of Yona by version."""
    rows = published("white2011", "stated_results")
    return {r["implementation"][0]: float(r["value"]) for r in rows if r["quantity"] == "performance"}


def _of_gpus(judge_by: Judge) -> list[Finding]:
    gf, node = stated_speeds(), "one node of Yona"
    stated = {r["quantity"]: float(r["value"]) for r in published("white2011", "stated_results")}
    twice, four = stated["best_over_other_parallel"], stated["best_cpu_gpu_over_best_cpu_only"]
    unprinted = needs("the stated speed of the CPUs alone")
    cpus = "".join(IMPLEMENTATIONS)
    return [
        Finding(
            "streams",
            "With a GPU, overlap of messages and copies with the interior (G) is faster than none (F).",
            "V, figures 9 and 10",
            judge_printed([gf["G"] / gf["F"]], MORE, about=node),
            judge_by.gpu(best("F"), best("G")),
        ),
        Finding(
            "twice",
            f"Full overlap around a box (I) is at least {twice:g} times as fast as F, G and H.",
            "V, figures 9 and 10",
            judge_printed([gf["I"] / gf[other] for other in "FG"], twice, about=f"over F and G, {node}"),
            judge_by.gpu(best("FGH"), best("I"), twice),
        ),
        Finding(
            "near-resident",
            f"Full overlap nearly recovers the speed of a GPU without messages (E): {NEARLY:.0%} of it.",
            "V, figure 10",
            judge_printed([gf["I"] / gf["E"]], NEARLY, about=node),
            judge_by.gpu(best("E"), best("I"), NEARLY),
        ),
        Finding(
            "over-cpus",
            f"Full overlap is more than {four:g} times as fast as the best version without a GPU.",
            "V, figure 10",
            unprinted,
            judge_by.gpu(best(cpus), best("I"), four),
        ),
        Finding(
            "over-sum",
            "Full overlap is faster than the GPU alone (E) and the best CPU version together.",
            "V, figure 9",
            unprinted,
            judge_by.gpu(gpu_plus_cpus, best("I")),
        ),
    ]
