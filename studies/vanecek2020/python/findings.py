"""Conclusions of the thesis: speeds judged by printed numbers and by GPUs, rules by the records of any device."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from haloscope.studies.findings import (
    FAILS,
    HOLDS,
    UNCLEAR,
    Finding,
    Judgement,
    Launches,
    judge_cases,
    judge_printed,
    needs,
)
from haloscope_studies.vanecek2020 import blocks, matrix, printed, replay, variants
from haloscope_studies.vanecek2020.blocks import Row
from haloscope_studies.vanecek2020.report import Measured, set_ups

Cases = list[tuple[Launches, Launches]]
CUDA, HIP = "cuda", "hip"  # back ends of the thesis' two testbeds
GPUS = {(CUDA,): "an NVIDIA GPU", (HIP,): "an AMD GPU", (CUDA, HIP): "a GPU"}
TABULATED = ("M", "L")  # workloads with printed times
BASELINE = "baseline:waitall,nonblocking,coherent"  # the reference of table 4.2
MI50_BASELINE = "baseline:testany,blocking,coherent"  # the reference of table 4.6
TINY = "XS"  # its blocks have packed together before the CPU looks (section 3.4)


@dataclass(frozen=True)
class Speed:
    """A finding about times: bounds of their ratio, printed ratios, and the cases in the records of a set-up."""

    name: str
    statement: str
    section: str
    printed: Sequence[float]
    cases: Callable[[Measured], Cases]
    low: float = 1.0
    high: float = math.inf
    devices: tuple[str, ...] = (CUDA,)

    def judged(self, here: Sequence[Measured]) -> Finding:
        """Return the finding with its judgements; an imitated device, or another vendor's, has no part in them."""
        able = [one for one in here if one.rows[0].request["device"] in self.devices]
        found = [case for one in able for case in self.cases(one)]
        ours = judge_cases(found, self.low, self.high, lacking=GPUS[self.devices])
        return Finding(self.name, self.statement, self.section, judge_printed(self.printed, self.low, self.high), ours)


def judge(found: Sequence[Mapping]) -> list[Finding]:
    """Return all conclusions, judged by printed numbers and by records."""
    here = set_ups(found)
    return [*(speed.judged(here) for speed in (*nvidia(), *amd())), *order(found), delivery(found), launches(found)]


# ---- speeds ----------------------------------------------------------------------------------------------------------


def nvidia() -> tuple[Speed, ...]:
    """Return the conclusions about the V100."""
    [deviation] = [claim.low for name, claim in printed.claims().items() if name == "deviation of a baseline M"]
    return (
        Speed(
            "queue beats baseline",
            "A task queue with a channel per block and pinned buffers is faster than the fastest baseline.",
            "4.5",
            [*_tabulated_gains(), *_stated(matrix.PLAIN, "XS", "XL")],
            lambda here: _paired(here, here.timed, _fastest_baseline, _of(matrix.PLAIN)),
        ),
        Speed(
            "nonblocking beats blocking",
            "Nonblocking sends are faster than blocking ones if messages exceed the eager limit.",
            "4.5.1",
            _printed_twins("blocking", "nonblocking"),
            lambda here: _twins(here, TABULATED, "blocking", "nonblocking"),
        ),
        Speed(
            "Testany costs nothing",
            f"Waiting by Testany takes as long as by Waitall, within the deviation of a test ({deviation:g} %).",
            "4.5.1",
            _printed_twins("testany", "waitall"),
            lambda here: _twins(here, here.timed, "testany", "waitall"),
            1 - 0.01 * deviation,
            1 + 0.01 * deviation,
            devices=(CUDA, HIP),
        ),
        Speed(
            "channel beats list",
            "A channel per block is faster than one list of tasks under a lock.",
            "4.5",
            [*_printed_twins("queue", "channel"), *_stated_twins("XL", "channel", "queue")],
            lambda here: _twins(here, here.timed, "queue", "channel"),
        ),
        Speed(
            "copies win very large",
            "Packing into device memory is faster than into pinned buffers for very large messages.",
            "4.5.5",
            _stated_twins("XL", "device", "pinned"),
            lambda here: _paired(here, ("XL",), _of(matrix.PLAIN), _of(matrix.STAGED)),
        ),
        Speed(
            "copies lose very small",
            "Packing into device memory is slower than the baseline for very small messages.",
            "4.5.5",
            [1 / gain for gain in _stated(matrix.STAGED, "XS")],
            lambda here: _paired(here, ("XS",), _of(matrix.STAGED), _of(BASELINE)),
        ),
        Speed(
            "pinned packing is slow",
            "Packing the largest block takes more than three times as long into pinned memory as into the device's "
            "(workload L).",
            "4.5",
            _observed_ratio("v100", "L", "pinned", "device buffer (upper bound)"),
            _packing_largest,
            printed.claims()["packing pinned over device L"].low,
        ),
        Speed(
            "copies fill the CPU",
            "With copies the CPU waits for a smaller share of its events than with pinned buffers (workload L).",
            "4.5",
            _printed_waits(),
            _waits,
        ),
    )


def amd() -> tuple[Speed, ...]:
    """Return the conclusions about the MI50."""
    sends = printed.sends()
    _, slowest = replay.implied(printed.of_table("4.6"))
    return (
        Speed(
            "AMD: queue is slow",
            "On an AMD GPU a task queue takes more than 200 times as long as the baseline (workload M).",
            "4.6.2",
            [row.seconds / slowest for row in printed.of_table("4.6")],
            _queues_over_baseline,
            printed.claims()["taskqueue over baseline M mi50"].low,
            devices=(HIP,),
        ),
        Speed(
            "AMD: non-coherent is fast",
            "On an AMD GPU the fastest baseline with non-coherent buffers is faster than any with coherent ones.",
            "4.6",
            [h.speedup for h in printed.headlines() if h.gpu == "mi50" and "baseline" in h.text],
            lambda here: _paired(here, here.timed, _fastest_baseline, _fastest_noncoherent),
            devices=(HIP,),
        ),
        Speed(
            "AMD: first rendezvous is slow",
            "On an AMD GPU the first rendezvous of an iteration takes longer than the next one, of three times its "
            "size.",
            "4.6.1",
            [sends["raised 0"] / sends["raised 1"]],
            _first_over_next_send,
            devices=(HIP,),
        ),
    )


# ---- printed ratios --------------------------------------------------------------------------------------------------


class _Variant(Protocol):
    @property
    def variant(self) -> str: ...


T = TypeVar("T", bound=_Variant)


def twins(rows: Iterable[T], before: str, after: str) -> list[tuple[T, T]]:
    """Return the rows with one word and, with each, the row whose variant has another word in its place."""
    known = {row.variant: row for row in rows}
    pairs = ((row, variants.exchanged(row.variant, before, after)) for row in known.values())
    return [(row, known[name]) for row, name in pairs if name != row.variant and name in known]


def _printed_twins(before: str, after: str) -> list[float]:
    """Return the times of the V100 with one word over the times of the same day with another."""
    tables = sorted({row.table for row in printed.results() if row.gpu == "v100"})
    sound = [[row for row in printed.of_table(table) if not row.misprinted] for table in tables]
    return [slow.seconds / fast.seconds for rows in sound for slow, fast in twins(rows, before, after)]


def _tabulated_gains() -> list[float]:
    """Return the gains of the plain task queue: M over a printed baseline, L over the one that speed-ups imply."""
    [medium], [large] = ([r for r in printed.of_table(t) if r.variant == matrix.PLAIN] for t in ("4.4", "4.5"))
    base = sum(replay.implied([row for row in printed.of_table("4.5") if not row.blocking])) / 2
    return [replay.fastest("1") / medium.seconds, base / large.seconds]


def _stated(variant: str, *workloads: str) -> list[float]:
    """Return stated speed-ups of a variant over the fastest baseline of the V100."""
    return [h.speedup for h in printed.headlines() if h.gpu == "v100" and h.workload in workloads and h.is_of(variant)]


def _stated_twins(workload: str, fast: str, slow: str) -> list[float]:
    """Return ratios of stated speed-ups of two variants that differ by a word, with nonblocking sends."""
    named = [name for name in variants.all_variants() if {fast, "nonblocking"} <= set(variants.words_of(name))]
    pairs = [(_stated(name, workload), _stated(variants.exchanged(name, fast, slow), workload)) for name in named]
    return [ours[0] / others[0] for ours, others in pairs if ours and others]


def _observed_ratio(gpu: str, workload: str, slow: str, fast: str) -> list[float]:
    """Return the ratios of the ends of two stated packing times of the largest block."""
    (low, high), (least, most) = (
        printed.observed(gpu, workload, f"pack largest block, {memory}") for memory in (slow, fast)
    )
    return [low / most, high / least]


def _printed_waits() -> list[float]:
    """Return the least and the greatest ratio of shares of events that the CPU waits for, pinned over copies."""
    pinned, copies = (printed.observed("v100", "L", f"CPU hit share P1, {buffer}") for buffer in ("pinned", "memcpy"))
    return [(100 - pinned[1]) / (100 - copies[0]), (100 - pinned[0]) / (100 - copies[1])]


# ---- cases of the records --------------------------------------------------------------------------------------------

Select = Callable[[Sequence[Row]], Launches]


def _of(variant: str) -> Select:
    return lambda rows: next((row.launches for row in rows if row.variant == variant), {})


def _fastest_baseline(rows: Sequence[Row]) -> Launches:
    return fastest_by_launch(blocks.baselines(rows))


def _fastest_noncoherent(rows: Sequence[Row]) -> Launches:
    found = [row for row in rows if row.variant.startswith(variants.BASELINE)]
    return fastest_by_launch([row for row in found if "noncoherent" in variants.words_of(row.variant)])


def fastest_by_launch(rows: Sequence[Row]) -> Launches:
    """Return the time of the fastest row in each launch of all of them: no row is selected by all launches together."""
    common = [key for key in rows[0].launches if all(key in row.launches for row in rows)] if rows else []
    return {key: [min(statistics.median(row.launches[key]) for row in rows)] for key in common}


def _paired(here: Measured, workloads: Iterable[str], slow: Select, fast: Select) -> Cases:
    """Return a case for each workload that has both sides."""
    pairs = [(slow(rows), fast(rows)) for name in workloads if (rows := here.of_thesis(name))]
    return [(a, b) for a, b in pairs if a and b]


def _twins(here: Measured, workloads: Iterable[str], before: str, after: str) -> Cases:
    pairs = [pair for name in workloads for pair in twins(here.of_thesis(name), before, after)]
    return [(slow.launches, fast.launches) for slow, fast in pairs]


def _queues_over_baseline(here: Measured) -> Cases:
    queues = [name for name in variants.all_variants() if variants.flow_of(name) == variants.TASKQUEUE]
    return [case for name in queues for case in _paired(here, ("M",), _of(name), _of(MI50_BASELINE))]


def _by_launch(row: Row, value: Callable[[Mapping], float | None]) -> Launches:
    """Return a positive value of the records by launch, of the launches that have it."""
    values = ((record["launch"]["id"], value(record)) for record in row.records)
    return {launch: [number] for launch, number in values if number}


def _of_block(quantity: str, block: int) -> Callable[[Mapping], float | None]:
    """Return the mean of a quantity of a block over the sides of rank 0; None where a record lacks it."""

    def mean(record: Mapping) -> float | None:
        count, times = len(record["request"]["bytes"]), record.get("blocks", {}).get(quantity, ())
        return statistics.mean(times[block::count]) if times and block < count else None

    return mean


def _packing_largest(here: Measured) -> Cases:
    pairs = twins(here.detailed.get("L", []), "pinned", "device")
    largest = max(range(len(sizes)), key=sizes.__getitem__) if (sizes := printed.sizes("L")) else 0
    value = _of_block("packing_s", largest)
    return [(_by_launch(slow, value), _by_launch(fast, value)) for slow, fast in pairs]


def _waits(here: Measured) -> Cases:
    """Return shares of events that the CPU waited for. The first of an iteration always counts, so that none is 0."""
    pairs = twins(here.of_thesis("L") if "L" in here.timed else [], "pinned", "device")
    return [(_by_launch(slow, _waited_share), _by_launch(fast, _waited_share)) for slow, fast in pairs]


def _waited_share(record: Mapping) -> float:
    return 1 - float(record["profile"]["after_a_hit"])


def _first_over_next_send(here: Measured) -> Cases:
    raised = [row for row in here.first_sends if row.request["bytes"][0] == printed.RAISED_BYTES]
    plain = [row for row in raised if "dummy" not in variants.words_of(row.variant)]
    first, second = (_of_block("sending_s", block) for block in (0, 1))
    return [(_by_launch(row, first), _by_launch(row, second)) for row in plain]


# ---- order, values and counts ----------------------------------------------------------------------------------------


def order(found: Sequence[Mapping]) -> list[Finding]:
    """Return the conclusions about sends and packing, by timelines.

    Blocks of an imitated device take the cores of the thread that sends, so that only a GPU can show an overlap.
    """
    whole = [record for record in found if "timeline" in record and record["request"]["workload"] != TINY]
    able = [r for r in whole if r["request"]["device"] in (CUDA, HIP) and r["request"]["detail"] == "posting"]
    queues = [r for r in able if r["request"]["variant"] in matrix.POSTING]
    phased = [r for r in whole if r["request"]["variant"] == BASELINE]
    return [
        Finding(
            "queue sends while packing",
            "A task queue sends its first block before its last one has packed.",
            "4.5, figure 4.8",
            needs("printed numbers"),
            judge_runs(_known(sends_while_packing(r, True) for r in queues), "timelines", lacking="a GPU"),
        ),
        Finding(
            "baseline sends after packing",
            "The baseline sends no block before all have packed.",
            "3.3.1",
            needs("printed numbers"),
            judge_runs(_known(sends_while_packing(r, False) for r in phased), "timelines"),
        ),
    ]


def _known(verdicts: Iterable[bool | None]) -> list[bool]:
    return [verdict for verdict in verdicts if verdict is not None]


def sends_while_packing(record: Mapping, expected: bool) -> bool | None:
    """Return whether, on every rank, the first send precedes the end of packing (or, if that is expected, follows it);
    None where the timeline of a rank lacks one of them.

    A task's packing ends where its last posting begins, as the CPU may send it from then on. The two clocks agree to
    their precision: an order that it leaves open is not the expected one.
    """
    events = record["timeline"]
    leads = [_lead([e for e in events if e["rank"] == rank]) for rank in {event["rank"] for event in events}]
    known = [lead for lead in leads if lead is not None]
    if len(known) < len(leads):
        return None
    margin = record["clock"]["precision_s"]
    return all(lead > margin if expected else lead <= margin for lead in known)


def _lead(events: Iterable[Mapping]) -> float | None:
    """Return the seconds from the first send of a rank to the end of its packing; None where it lacks one of them."""
    of_blocks = [event for event in events if event["block"] >= 0]
    posts = [event["begin_s"] for event in of_blocks if event["kind"] == "post"]
    packed = posts or [event["end_s"] for event in of_blocks if event["kind"] == "pack"]
    sent = [event["begin_s"] for event in of_blocks if event["kind"] == "send"]
    return float(max(packed) - min(sent)) if packed and sent else None


def delivery(found: Sequence[Mapping]) -> Finding:
    """Return the conclusion about received values; a run that failed delivered none."""
    runs = [r for r in found if r["kind"] in (blocks.KIND, "failed") and "variant" in r["request"]]
    passed = [r["kind"] == blocks.KIND and r["verification"]["status"] == "passed" for r in runs]
    kinds = len({r["request"]["variant"] for r in runs})
    judged = judge_runs(passed, f"runs of {kinds} variants", one_refutes=True)
    statement = "Every variant ends, and every block unpacks the values that its source has packed."
    return Finding("every variant delivers", statement, "4.1", needs("printed numbers"), judged)


def launches(found: Sequence[Mapping]) -> Finding:
    """Return the conclusion about launches of kernels."""
    expected = {variants.TASKQUEUE: 1, variants.BASELINE: 2}
    runs = [r for r in found if r["kind"] == blocks.KIND and variants.flow_of(r["request"]["variant"]) in expected]
    agreeing = [
        r["events"]["launches"]
        == expected[variants.flow_of(r["request"]["variant"])] * sum(map(len, r["iterations_s"]))
        for r in runs
    ]
    statement = "A task queue launches one kernel an iteration, the baseline two."
    judged = judge_runs(agreeing, "runs", one_refutes=True)
    return Finding("one launch", statement, "3.4", needs("printed numbers"), judged)


def judge_runs(agreeing: Sequence[bool], about: str, *, one_refutes: bool = False, lacking: str = "a run") -> Judgement:
    """Judge a statement about single runs: it fails if none agrees or, of a rule without exceptions, if not all do."""
    if not agreeing:
        return needs(lacking)
    some = FAILS if one_refutes or not any(agreeing) else UNCLEAR
    return Judgement(HOLDS if all(agreeing) else some, f"{sum(agreeing)} of {len(agreeing)} {about}")
