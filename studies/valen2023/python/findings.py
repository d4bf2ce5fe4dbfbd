"""Conclusions of the 2023 study, each judged by one number above 1: of appendix C, and of each launch measured here."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope.records import stats
from haloscope.records.rows import Row
from haloscope.studies.findings import UNCLEAR, Finding, Judgement, judge, judge_printed, needs
from haloscope_studies.valen2023 import comparisons
from haloscope_studies.valen2023.comparisons import MACHINES, PHASED, Table, times
from haloscope_studies.valen2023.model import Cell

Numbers = Iterable[tuple[float, float]]  # of each case two numbers, of which the first is larger if the finding holds

GPU = "a GPU"
MEANS = f"means over cases on {' and '.join(MACHINES)}"
ABOVE_1 = math.nextafter(1.0, math.inf)
LARGE_SIDE = 15000  # from here on, the thesis' direct exchanges of the deepest halo stumble (section 5.3)


@dataclass(frozen=True)
class Conclusion:
    """A finding before it is judged: its name, a sentence, its section, its cases.

    lacking: the part that runs without a case lack. on_gpu: whether it is about kernels that compete for a GPU.
    """

    name: str
    statement: str
    section: str
    cases: Callable[[Table], Numbers]
    lacking: str
    on_gpu: bool = False


def judged(rows: Mapping[tuple[int, str, int], Row]) -> list[Finding]:
    """Return the findings, judged by appendix C and by measured rows: (side, program, depth) -> row."""
    printed = [comparisons.published_table(machine) for machine in MACHINES]
    launches = list(comparisons.tables_by_launch(rows).values())
    unfit = _unfit(rows.values())
    on_gpu = any(row.request.get("device") for row in rows.values())
    found = []
    for one in CONCLUSIONS:
        machines = judge_printed([ratio(one, table) for table in printed], ABOVE_1, about=MEANS)
        missing = GPU if one.on_gpu and not on_gpu else unfit
        here = needs(missing) if missing else _judge_launches(one, launches)
        found.append(Finding(one.name, one.statement, one.section, machines, here))
    return found


def ratio(conclusion: Conclusion, table: Table) -> float:
    """Return the geometric mean over cases of the ratio of their numbers; not a number without a case, and where a
    number is below 0.
    """
    cases = _positive(conclusion, table)
    if not cases or any(min(case) < 0 for case in cases):
        return math.nan
    return statistics.geometric_mean(first / second for first, second in cases)


def _positive(conclusion: Conclusion, table: Table) -> list[tuple[float, float]]:
    """Return the cases without a part that did not run, which took 0 s."""
    return [case for case in conclusion.cases(table) if all(case)]


def _judge_launches(conclusion: Conclusion, launches: Sequence[Table]) -> Judgement:
    count = min((len(_positive(conclusion, table)) for table in launches), default=0)
    if not count:
        return needs(conclusion.lacking)
    ratios = {str(n): ratio(conclusion, table) for n, table in enumerate(launches)}
    if any(map(math.isnan, ratios.values())):
        return Judgement(UNCLEAR, "the differences are below the noise")
    return judge(stats.mean_over_launches(ratios), ABOVE_1, about=f"{count} case{'s' * (count > 1)}")


def _unfit(rows: Iterable[Row]) -> str:
    """Return the part that rows lack for times that represent the programs, "" if they have all."""
    found = list(rows)
    if not found:
        return "measurements"
    if any(row.request.get("device") == "host" for row in found):
        return GPU  # these times are an imitated one's
    if any(row.verification == "failed" for row in found):
        return "correct results"
    return "a core for each rank" if any(row.oversubscribed for row in found) else ""


def _sides(table: Table) -> list[int]:
    return sorted({side for side, _, _ in table})


def _runs(table: Table, programs: Sequence[str] = comparisons.PROGRAMS) -> Iterator[tuple[int, str]]:
    """Yield each side with each program."""
    return ((side, program) for side in _sides(table) for program in programs)


def _shorter_at_8(part: str, programs: Sequence[str] = comparisons.PROGRAMS) -> Callable[[Table], Numbers]:
    """Return the cases of a part that takes less time at depth 8 than at 1."""

    def cases(table: Table) -> Iterator[tuple[float, float]]:
        for run in _runs(table, programs):
            if found := times(table, part, (*run, 1), (*run, 8)):
                yield found[0], found[1]

    return cases


def _copies(table: Table) -> Iterator[tuple[float, float]]:
    """Yield packing, and unpacking of phased runs: in overlapped ones it waits for the inner sweep."""
    yield from _shorter_at_8("pack")(table)
    yield from _shorter_at_8("unpack", PHASED)(table)


def _gains_of_packing(table: Table) -> Iterator[tuple[float, float]]:
    for run in _runs(table):
        if found := times(table, "pack", (*run, 1), (*run, 8), (*run, 64)):
            yield found[0] * found[2], found[1] ** 2  # the ratio of the ratios


def _gains_by_size(table: Table) -> Iterator[tuple[float, float]]:
    for small, large in _smallest_and_largest(table):
        for program in comparisons.PROGRAMS:
            keys = [(side, program, depth) for side in (small, large) for depth in (1, 8)]
            if found := times(table, "execution", *keys):
                yield found[0] * found[3], found[1] * found[2]


def _smallest_and_largest(table: Table) -> list[tuple[int, int]]:
    """Return the smallest and the largest side, as the only item; none where there is one side."""
    sides = _sides(table)
    return [(sides[0], sides[-1])] if len(sides) > 1 else []


def _overlap(table: Table) -> Iterator[tuple[float, float]]:
    for phased, overlapped in comparisons.pairs(list(table.values())):
        yield phased.times["execution"], overlapped.times["execution"]


def _visible_by_size(table: Table) -> Iterator[tuple[float, float]]:
    """Yield the share of communication that overlap leaves visible on the smallest and the largest side."""
    visible = {
        (o.side, o.exchange, o.depth): 1 - share
        for p, o in comparisons.pairs(list(table.values()))
        if (share := comparisons.coverage(p, o)) is not None
    }
    for small, large in _smallest_and_largest(table):
        for (side, exchange, depth), share in visible.items():
            if side == small and (other := visible.get((large, exchange, depth))) is not None:
                yield share, other


def _fastest_depth(table: Table, side: int, program: str) -> int | None:
    """Return the depth of the shortest run, None unless all depths of the thesis ran."""
    found = times(table, "execution", *((side, program, depth) for depth in comparisons.DEPTHS))
    return comparisons.DEPTHS[int(np.argmin(found))] if found else None


def _best_depths(table: Table) -> Iterator[tuple[float, float]]:
    for side, phased in _runs(table, PHASED):
        best = [_fastest_depth(table, side, name) for name in (phased, _overlapped(phased))]
        if best[0] and best[1]:
            yield best[0], best[1]


def _overlapped(phased: str) -> str:
    return phased.replace("phased", "overlapped")


def _depths_of_time_and_coverage(table: Table) -> Iterator[tuple[float, float]]:
    """Yield the depth of the shortest overlapped run, and the depth at which overlap hides the largest share."""
    for side, program in _runs(table, PHASED[:1]):
        pairs = [
            (table.get((side, program, d)), table.get((side, _overlapped(program), d))) for d in comparisons.DEPTHS
        ]
        shares = [comparisons.coverage(p, o) for p, o in pairs if p and o]
        covered = [share for share in shares if share is not None]
        fastest = _fastest_depth(table, side, _overlapped(program))
        if fastest and len(covered) == len(comparisons.DEPTHS):
            yield fastest, comparisons.DEPTHS[int(np.argmax(covered))]


def _both_together(table: Table) -> Iterator[tuple[float, float]]:
    for side in _sides(table):
        if found := times(table, "execution", (side, *comparisons.BASE), (side, "ordered overlapped", 8)):
            yield found[0], found[1]


def _worst_messages(table: Table) -> Iterator[tuple[float, float]]:
    """Yield the worst ratio of direct to ordered messages, and the worst ratio of ordered to direct ones."""
    ratios = [direct / ordered for direct, ordered in _by_exchange("message")(table) if ordered and direct]
    if ratios:
        yield max(ratios), 1 / min(ratios)


def _by_exchange(part: str, keep: Callable[[Cell], bool] = lambda cell: True) -> Callable[[Table], Numbers]:
    """Return the cases of a part of phased runs by direct and by ordered exchanges, at some cells."""

    def cases(table: Table) -> Iterator[tuple[float, float]]:
        for (side, program, depth), direct in table.items():
            ordered = table.get((side, "ordered phased", depth))
            if program == "direct phased" and ordered and keep(direct):
                yield direct.times[part], ordered.times[part]

    return cases


def _is_large(cell: Cell) -> bool:
    return cell.side >= LARGE_SIDE and cell.depth == comparisons.DEPTHS[-1]


def _unpacking(table: Table) -> Iterator[tuple[float, float]]:
    for run in _runs(table, PHASED):
        if slowdown := _slowdown_of_unpacking(table, *run, 1):
            yield slowdown, 1.0


def _slowdown_of_unpacking(table: Table, side: int, phased: str, depth: int) -> float:
    """Return the time of unpacking overlapped over phased, 0 without it."""
    found = times(table, "unpack", (side, _overlapped(phased), depth), (side, phased, depth))
    return found[0] / found[1] if found and found[1] else 0.0


def _unpacking_by_depth(table: Table) -> Iterator[tuple[float, float]]:
    for run in _runs(table, PHASED):
        yield _slowdown_of_unpacking(table, *run, 1), _slowdown_of_unpacking(table, *run, 8)


TWO_DEPTHS = "depths 1 and 8"
SEVEN_DEPTHS = "depths 1 to 64"
TWO_SIDES = "two sides"
LARGE = f"sides from {LARGE_SIDE} at depth 64"

CONCLUSIONS = (
    Conclusion(
        "depth_shortens_runs",
        "Runs take less time with a halo of depth 8 than of depth 1.",
        "5.2, 6",
        _shorter_at_8("execution"),
        TWO_DEPTHS,
    ),
    Conclusion(
        "depth_shortens_messages",
        "Ordered messages take less time at depth 8 than at depth 1.",
        "5.3",
        _shorter_at_8("message", PHASED[:1]),
        TWO_DEPTHS,
    ),
    Conclusion(
        "depth_shortens_copies",
        "Packing and unpacking take less time at depth 8 than at depth 1.",
        "5.4",
        _copies,
        TWO_DEPTHS,
    ),
    Conclusion(
        "gains_end_at_depth_8",
        "Packing gains more from depth 1 to 8 than from 8 to 64.",
        "5.4",
        _gains_of_packing,
        "depths 1, 8 and 64",
    ),
    Conclusion(
        "depth_gains_less_on_large_grids",
        "The smallest side gains more by depth 8 than the largest.",
        "5.2",
        _gains_by_size,
        TWO_SIDES,
    ),
    Conclusion(
        "overlap_shortens_runs",
        "Overlapped runs take less time than phased ones.",
        "5.2, 6",
        _overlap,
        "phased and overlapped runs",
    ),
    Conclusion(
        "overlap_hides_more_on_large_grids",
        "Overlap hides a larger share of the communication on the largest side than on the smallest.",
        "5.5",
        _visible_by_size,
        TWO_SIDES,
    ),
    Conclusion(
        "overlap_prefers_smaller_depths",
        "The best depth of overlapped runs is smaller than the best depth of phased ones.",
        "6",
        _best_depths,
        SEVEN_DEPTHS,
    ),
    Conclusion(
        "most_hidden_is_not_fastest",
        "Overlapped runs are shortest at a larger depth than the one at which overlap hides the largest share.",
        "5.5",
        _depths_of_time_and_coverage,
        SEVEN_DEPTHS,
    ),
    Conclusion(
        "depth_and_overlap_add_up",
        "Ordered overlapped runs of depth 8 take less time than ordered phased runs of depth 1.",
        "abstract, 5.2",
        _both_together,
        TWO_DEPTHS,
    ),
    Conclusion(
        "ordered_is_the_safe_choice",
        "The worst slow-down of direct against ordered messages exceeds the worst one of ordered against direct.",
        "5.3, 6",
        _worst_messages,
        "runs of both exchanges",
    ),
    Conclusion(
        "direct_messages_stumble",
        f"On sides from {LARGE_SIDE}, direct messages of depth 64 take longer than ordered ones.",
        "5.3",
        _by_exchange("message", _is_large),
        LARGE,
    ),
    Conclusion(
        "slow_messages_delay_ranks_unequally",
        f"On sides from {LARGE_SIDE} at depth 64, ranks wait longer at the barrier before direct exchanges than before "
        "ordered ones.",
        "5.3",
        _by_exchange("desync", _is_large),
        LARGE,
    ),
    Conclusion(
        "unpacking_competes_with_the_inner_sweep",
        "At depth 1, unpacking takes longer next to the inner sweep than alone.",
        "5.4",
        _unpacking,
        "phased and overlapped runs",
        on_gpu=True,
    ),
    Conclusion(
        "competition_ends_with_depth",
        "The inner sweep slows unpacking more at depth 1 than at depth 8.",
        "5.4",
        _unpacking_by_depth,
        TWO_DEPTHS,
        on_gpu=True,
    ),
)
