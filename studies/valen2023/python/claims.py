"""Numbers in the text of the 2023 thesis, each recomputed from appendix C and from measured cells."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from haloscope.records import stats
from haloscope.report import tables
from haloscope.studies import checks, published
from haloscope_studies.valen2023 import comparisons
from haloscope_studies.valen2023.comparisons import PHASED, PROGRAMS, Table

Number = Callable[[int, Table], float | None]  # side, cells -> a number of that side, None where a cell is missing

ROUNDING = 1e-3  # of a ratio of times around 0.1 s, which appendix C prints with four decimals
AGREES = "agrees"  # start of the comment of a claim that the tables confirm
ORDERED = ("ordered phased", "ordered overlapped")
DIRECT = ("direct phased", "direct overlapped")


@dataclass(frozen=True)
class Claim:
    """A number in the text: the sentence, the number as printed, its machine, side and computation, and a comment."""

    text: str
    printed: str
    machine: str
    side: int
    number: Number
    comment: str

    def recompute(self, table: Table) -> float | None:
        """Return the number of the cells of a machine or launch, None where a cell is missing."""
        return self.number(self.side, table)


def _mean(part: str, depth: int, *programs: str) -> Number:
    """Return the mean time of a part over programs at a depth."""

    def number(side: int, table: Table) -> float | None:
        times = comparisons.times(table, part, *((side, program, depth) for program in programs))
        return statistics.mean(times) if times else None

    return number


def _ratio(first: Number, second: Number) -> Number:
    def number(side: int, table: Table) -> float | None:
        a, b = first(side, table), second(side, table)
        return a / b if a and b else None

    return number


def _shortest(side: int, table: Table) -> float | None:
    """Return the shortest time of all programs and depths."""
    keys = ((side, program, depth) for program in PROGRAMS for depth in comparisons.DEPTHS)
    times = comparisons.times(table, "execution", *keys)
    return min(times) if times else None


def _covered(depth: int) -> Number:
    """Return the percentage of communication that overlap hides, by ordered exchanges."""

    def number(side: int, table: Table) -> float | None:
        phased, overlapped = (table.get((side, program, depth)) for program in ORDERED)
        share = comparisons.coverage(phased, overlapped) if phased and overlapped else None
        return None if share is None else 100 * share

    return number


_START = _mean("execution", comparisons.BASE[1], comparisons.BASE[0])
_BOTH = _mean("execution", 8, "ordered overlapped")
_NUMBERS: Sequence[tuple[str, int, Number]] = (  # in the order of claims.csv
    ("A100", 35000, _ratio(_START, _BOTH)),
    ("V100", 30000, _ratio(_mean("execution", 1, "direct phased"), _BOTH)),
    ("V100", 35000, _ratio(_START, _shortest)),
    ("V100", 30000, _shortest),
    ("V100", 35000, _mean("message", 1, *ORDERED)),
    ("V100", 35000, _mean("message", 8, *ORDERED)),
    ("V100", 35000, _ratio(_mean("message", 1, *ORDERED), _mean("message", 8, *ORDERED))),
    ("V100", 5000, _ratio(_mean("message", 1, *DIRECT), _mean("message", 64, *DIRECT))),
    ("V100", 10000, _ratio(_mean("message", 1, *DIRECT), _mean("message", 32, *DIRECT))),
    ("A100", 35000, _ratio(_mean("message", 1, *ORDERED), _mean("message", 64, *ORDERED))),
    ("A100", 35000, _ratio(_mean("message", 1, *ORDERED), _mean("message", 8, *ORDERED))),
    ("V100", 35000, _ratio(_mean("pack", 1, *PROGRAMS), _mean("pack", 8, *PROGRAMS))),
    ("V100", 35000, _ratio(_mean("pack", 8, *PROGRAMS), _mean("pack", 64, *PROGRAMS))),
    ("A100", 35000, _ratio(_mean("pack", 8, *PROGRAMS), _mean("pack", 64, *PROGRAMS))),
    ("V100", 5000, _mean("pack", 32, *PROGRAMS)),
    ("V100", 5000, _mean("pack", 64, *PROGRAMS)),
    ("V100", 30000, _ratio(_mean("unpack", 1, *PHASED), _mean("unpack", 8, *PHASED))),
    ("A100", 10000, _covered(1)),
    ("A100", 10000, _covered(8)),
)


def claims() -> Iterator[Claim]:
    """Yield the claims of the text."""
    for row, (machine, side, number) in zip(published("valen2023", "claims"), _NUMBERS, strict=True):
        yield Claim(row["claim"], row["printed"], machine, side, number, row["comment"])


def is_confirmed(claim: Claim, number: float) -> bool:
    """Return whether a number is the printed one: to its digits, or to the rounding of the tables."""
    return abs(number - float(claim.printed)) <= max(0.5 * 10.0 ** -_digits(claim), ROUNDING * abs(number))


def _digits(claim: Claim) -> int:
    return len(claim.printed.partition(".")[2])


def recomputed() -> list[tuple[Claim, float]]:
    """Return each claim with the number that appendix C gives."""
    found = []
    for claim in claims():
        number = claim.recompute(comparisons.published_table(claim.machine))
        assert number is not None, claim.text  # the tables are complete
        found.append((claim, number))
    return found


def replayed() -> tuple[list[checks.Check], list[checks.Report]]:
    """Return the claims that the tables confirm, with a bar, and the others with the reason."""
    bars, others = [], []
    for claim, number in recomputed():
        ours = _text(claim, number)
        if claim.comment.startswith(AGREES):
            bar, reached = "the printed digits, or 0.1 %", checks.state(is_confirmed(claim, number))
            bars.append(checks.Check("claims", claim.text, claim.printed, ours, bar, reached, claim.comment))
        else:
            others.append(checks.Report(claim.text, claim.printed, ours, claim.comment))
    return bars, others


def _text(claim: Claim, number: float) -> str:
    return f"{number:.{_digits(claim) + 1}f}"


def table(launches: Sequence[Table]) -> str:
    """Return each claim as printed, as recomputed from appendix C, and as measured here.

    launches: the cells of each launch of runs that may stand next to the thesis' runs.
    """
    lines = [
        [claim.text, claim.printed, _text(claim, number), claim.comment, _measured(claim, launches)]
        for claim, number in recomputed()
    ]
    note = (
        "\n\nhere: the median over launches and its 95 % interval, of any machine with the same side, ranks and steps."
    )
    return tables.markdown(lines, ["claim", "printed", "recomputed", "comment", "here"]) + note


def _measured(claim: Claim, launches: Sequence[Table]) -> str:
    found = [number for one in launches if (number := claim.recompute(one)) is not None]
    if not found:
        return ""
    median = stats.median_of(found)
    return f"{_text(claim, median.value)} ({tables.interval(median, functools.partial(_text, claim))})"
