"""Tables of records: ranked by median step time, with intervals; oversubscribed rows are shown but not ranked."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from haloscope import bridge
from haloscope.bridge import Choice
from haloscope.errors import UsageError, unknown_name
from haloscope.model.link import Link
from haloscope.records import stats
from haloscope.records.relative_errors import Errors
from haloscope.records.rows import SURROUNDINGS, Row, speedup
from haloscope.records.text import cell
from haloscope.terminal import shown

STATISTICS = {"rank0": "rank 0", "min": "min", "mean": "mean", "max": "max"}  # over ranks, with their titles
_EXCHANGING = ("pack", "d2h", "send", "wait", "h2d", "unpack", "copy")
PHASES = (*_EXCHANGING, "inner", "outer", "compute", "reduce", "desync", "rest")
NO_INTERVAL = "one launch has no interval"
MOST_SHOWN = 1000  # characters of a cell; notes may be long
# Characters with a meaning in Markdown: cell ends, code, links, tags, entities, and a backslash that would escape one.
_MARKUP = re.compile(r"\\(?=[!-/:-@\[-`{-~])|[|`]|\](?=[(\[])|<(?=[A-Za-z/!?])|&(?=[#A-Za-z])")


def axes() -> list[str]:
    """Return the parts of a request that identify the run, in the order of columns."""
    return ["app", *(field.name for field in bridge.fields()), "set"]


def baseline(table: Sequence[Row], wanted: str | None = None) -> Row | None:
    """Return the row that speed-ups refer to: the requested one, else the row of bulk depth 1 with ordered/p2p or,
    where all rows have a device, with ordered/staged. None without exactly one such row, or in a table of one row.

    Raises UsageError when the requested row is not in the table.
    """
    if wanted:
        found = [row for row in table if row.id == wanted]
        if not found:
            raise UsageError(unknown_name("configuration for --baseline", wanted, [row.id for row in table]))
        return found[0]
    usual = "ordered/staged" if all(row.request.get("device") for row in table) else "ordered/p2p"
    plain = {"schedule": "bulk", "strategy": usual, "depth": 1}
    found = [row for row in table if all(row.request.get(k) == v for k, v in plain.items()) and not row.oversubscribed]
    return found[0] if len(found) == 1 and len(table) > 1 else None


def varied(table: Sequence[Row]) -> list[str]:
    """Return schedule, strategy and the parts of the request that differ between rows, in the order of `axes`."""

    def values(axis: str) -> set[str]:  # a field that has no effect on a row is not in its request
        return {str(row.request[axis]) for row in table if axis in row.request}

    return [axis for axis in axes() if axis in ("schedule", "strategy") or len(values(axis)) > 1]


def differing(choices: Sequence[Choice], always: Sequence[str] = (), never: str = "") -> list[str]:
    """Return the fields that differ between choices, or are in `always`, in the order of `axes`."""
    differ = {axis for axis in axes() if axis != never and len({getattr(c, axis) for c in choices}) > 1}
    return [axis for axis in axes() if axis in differ or axis in always]


def unit(seconds: Iterable[float]) -> tuple[str, float]:
    """Return the time unit, and its factor, in which the smallest time has at least one digit before the point."""
    smallest = min((s for s in seconds if s > 0), default=1.0)
    return next(((name, f) for name, f in (("s", 1.0), ("ms", 1e3), ("us", 1e6)) if smallest * f >= 1), ("us", 1e6))


def number(value: float) -> str:
    """Format with three to four significant digits, never in powers of ten."""
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 3
    return f"{value:.{digits}f}"


def interval(e: stats.Estimate, format: Callable[[float], str] = number, factor: float = 1.0) -> str:
    """Format an interval as `low .. high`, or name the lack of one."""
    if not math.isfinite(e.high):
        return NO_INTERVAL
    return f"{format(e.low * factor)} .. {format(e.high * factor)}"


def markdown(lines: Sequence[Sequence], headers: Sequence[str], right: Sequence[str] = ()) -> str:
    """Format a Markdown table; columns named in `right` are aligned right. Texts of cells are shown literally."""
    from tabulate import tabulate

    align = ["right" if header in right else "left" for header in headers]
    lines = [[plain(value) for value in line] for line in lines]
    titles = [plain(header) for header in headers]
    text: str = tabulate(lines, titles, tablefmt="pipe", disable_numparse=True, colalign=align if lines else None)
    return text


class Markup(str):
    """Markdown made by Haloscope, which a table takes unchanged."""


def plain(value: object) -> str:
    """Return a text, which may come from third parties, as Markdown that shows it literally, on one line."""
    if isinstance(value, Markup):
        return value
    return _MARKUP.sub(r"\\\g<0>", shown(value, MOST_SHOWN))


def ranking(table: Sequence[Row], baseline: Row | None = None) -> str:
    """Return the ranked table: place, differing fields, median step time, interval, speed-up, rate, check, notes."""
    shown = varied(table)
    name, factor = unit(row.step.value for row in table)
    timed = f"step ({name})"
    headers = ["#", *shown, timed, "95 %"] + ["speed-up", "95 % "] * (baseline is not None) + ["GF/s", "check", "notes"]
    lines = []
    for place, row in enumerate(table, start=1):
        line = ["-" if row.oversubscribed else place, *(cell(row.request.get(axis)) for axis in shown)]
        line += [number(row.step.value * factor), interval(row.step, factor=factor)]
        if baseline is not None:
            gain = speedup(row, baseline)
            line += ["1 (base)", ""] if row is baseline else [f"{gain.value:.2f}", interval(gain, "{:.2f}".format)]
        lines.append([*line, f"{row.gflops:.2f}" if row.gflops else "", row.verification, row.notes()])
    return markdown(lines, headers, right=("#", timed, "speed-up", "GF/s", "depth", "threads", "ranks"))


def phases(table: Sequence[Row], statistic: str) -> str:
    """Return microseconds per step in each phase: one statistic over ranks, or, with "all", four labelled columns."""
    present = [p for p in PHASES if any(row.phase(p, "max") for row in table)]
    if statistic == "all":
        titles = [f"{title} (us)" for title in STATISTICS.values()]
        lines = [
            [place, phase, *(number(row.phase(phase, s) * 1e6) for s in STATISTICS)]
            for place, row in enumerate(table, start=1)
            for phase in present
        ]
        return markdown(lines, ["row", "phase", *titles], right=("row", *titles))
    titles = [f"{phase} (us)" for phase in present]
    times = ([number(row.phase(p, statistic) * 1e6) for p in present] for row in table)
    lines = [[place, *line] for place, line in enumerate(times, start=1)]
    return markdown(lines, ["row", *titles], right=("row", *titles))


def comparison(pairs: Sequence[tuple[Row, Row]]) -> str:
    """Return a table of matched rows: both times, the ratio a/b with its interval, and a verdict in words."""
    name, factor = unit(row.step.value for pair in pairs for row in pair)
    headers = ["configuration", f"A ({name})", f"B ({name})", "A/B", "95 %", "verdict"]
    lines = []
    for a, b in pairs:
        ratio = stats.ratio_of_launches(a.launches, b.launches)
        times = [number(row.step.value * factor) for row in (a, b)]
        ends = interval(ratio, "{:.3f}".format)
        names = a.id if a.id == b.id else f"{a.id} : {b.id}"
        lines.append([names, *times, f"{ratio.value:.3f}", ends, verdict(a, b, ratio)])
    return markdown(lines, headers, right=headers[1:4])


def verdict(a: Row, b: Row, ratio: stats.Estimate) -> str:
    """Return the meaning of a ratio a/b of two rows, and the reservations that a reader must consider."""
    wrong = [name for name, row in (("A", a), ("B", b)) if row.verification == "failed"]
    if wrong:
        return f"none: the results of {' and '.join(wrong)} are wrong"
    words = [f"{name} oversubscribed" for name, row in (("A", a), ("B", b)) if row.oversubscribed]
    words += [f"other {many}" for part, many in SURROUNDINGS.items() if a.surroundings(part) != b.surroundings(part)]
    return "; ".join([stats.verdict(ratio), *words])


def errors(found: Iterable[Errors]) -> str:
    """Return a table of relative errors, a row for each group of predictions."""
    headers = ["group", "count", "signed median", "median", "p90", "worst"]
    rows = [[e.group, e.count, f"{e.signed:+.1%}", *(f"{x:.1%}" for x in (e.median, e.p90, e.worst))] for e in found]
    return markdown(rows, headers, right=headers[1:])


def compared(measured_s: float, predicted_s: float, error: float) -> list[str]:
    """Return the cells of a measured and a predicted time, in us, and of the relative error."""
    return [number(measured_s * 1e6), number(predicted_s * 1e6), f"{error:+.1%}"]


def refusals(found: Iterable[Mapping]) -> list[str]:
    """Return one line per reason why configurations were not run, with the number of these configurations."""
    counted: dict[str, list[str]] = defaultdict(list)
    for record in found:
        if record["kind"] == "skipped" and record["id"] not in counted[record["reason"]]:
            counted[record["reason"]].append(record["id"])
    names = {reason: ids[0] + ", ..." * (len(ids) > 1) for reason, ids in counted.items()}
    return [f"{len(ids)} not run ({names[reason]}): {reason}" for reason, ids in counted.items()]


def networks(found: Iterable[dict]) -> list[str]:
    """Return a line that names the emulated networks of the records, none when all ran on real networks."""
    emulated = [record["environment"].get("emulated_network") for record in found if "environment" in record]
    texts = sorted({Link(**network).text if network else "the machine's own network" for network in emulated})
    return ["; ".join(texts)] if any(emulated) else []
