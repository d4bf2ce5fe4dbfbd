"""Conclusions of a paper, each judged twice: by the numbers that the paper prints, and by measurements here."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from haloscope.records import stats
from haloscope.report import tables

HOLDS, FAILS, UNCLEAR, NEEDS = "holds", "does not hold", "cannot be told", "needs"
HEADERS = ("finding", "section", "by the printed numbers", "here")
Launches = Mapping[str, Sequence[float]]  # seconds of the repetitions, by launch


@dataclass(frozen=True)
class Judgement:
    """A verdict (HOLDS, FAILS, UNCLEAR, or NEEDS with the missing part as basis) and the figures that it rests on."""

    verdict: str
    basis: str

    def __str__(self) -> str:
        """Return both, such as `holds: 1.20 (1.10 .. 1.31), 4 cases`."""
        if self.verdict == NEEDS:
            return f"needs {self.basis}"
        return f"{self.verdict}: {self.basis}" if self.basis else self.verdict


@dataclass(frozen=True)
class Finding:
    """One conclusion: its name for tests, a sentence, its section of the paper, and the two judgements."""

    name: str
    statement: str
    section: str
    printed: Judgement
    here: Judgement


def needs(what: str) -> Judgement:
    """Return the judgement of a finding that lacks something: a device, more ranks, printed numbers."""
    return Judgement(NEEDS, what)


def judge_cases(
    cases: Iterable[tuple[Launches, Launches]], low: float = 0.0, high: float = math.inf, *, lacking: str
) -> Judgement:
    """Judge whether the ratio of two times lies from `low` to `high`: the geometric mean over cases.

    cases: seconds of both sides by launch; launches in which all of them took time count. lacking: the part that is
    needed where there is none.
    """
    pairs = [(_timed(above), _timed(below)) for above, below in cases]
    ratios = stats.ratio_by_launch(pairs) if pairs else {}
    if not ratios:
        return needs(lacking)
    return judge(stats.mean_over_launches(ratios), low, high, f"{len(pairs)} case{'s' * (len(pairs) > 1)}")


def _timed(side: Launches) -> Launches:
    """Return the launches that took time: others have no ratio."""
    return {launch: seconds for launch, seconds in side.items() if statistics.median(seconds) > 0}


def judge(number: stats.Estimate, low: float = 0.0, high: float = math.inf, about: str = "") -> Judgement:
    """Judge whether a number lies from `low` to `high`: UNCLEAR where its interval holds an end."""
    if low <= number.low and number.high <= high:
        verdict = HOLDS
    elif number.high < low or number.low > high:
        verdict = FAILS
    else:
        verdict = UNCLEAR
    shown = f"{tables.number(number.value)} ({tables.interval(number)})"
    return Judgement(verdict, ", ".join(filter(None, (shown, about))))


def judge_printed(numbers: Sequence[float], low: float = 0.0, high: float = math.inf, about: str = "") -> Judgement:
    """Judge whether printed numbers, or their ratios, lie from `low` to `high`: UNCLEAR where only some of them do."""
    if not numbers:
        return needs("printed numbers")
    inside = sum(low <= number <= high for number in numbers)
    verdict = HOLDS if inside == len(numbers) else FAILS if inside == 0 else UNCLEAR
    ends = tables.number(min(numbers))
    if len(numbers) > 1:
        ends += f" to {tables.number(max(numbers))}, {inside} of {len(numbers)} within"
    return Judgement(verdict, ", ".join(filter(None, (ends, about))))


def table(found: Sequence[Finding]) -> str:
    """Return the findings as a Markdown table, one row each, and a sentence with the number of each verdict here."""
    return f"{tables.markdown(lines_of(found), HEADERS)}\n\n{summary(found)}"


def lines_of(found: Sequence[Finding]) -> list[list[str]]:
    """Return the cells of the table of findings."""
    return [[f.statement, f.section, str(f.printed), str(f.here)] for f in found]


def summary(found: Sequence[Finding]) -> str:
    """Return one sentence with the number of each verdict here."""
    counts = Counter(f.here.verdict for f in found)
    words = {HOLDS: "hold", FAILS: "do not hold", UNCLEAR: "cannot be told", NEEDS: "cannot be judged"}
    return (
        f"Of {len(found)} findings, here {', '.join(f'{counts[v]} {text}' for v, text in words.items() if counts[v])}."
    )
