"""Tables and charts of micro-benchmarks: times, bandwidths, message rates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from haloscope.records import patterns, stats
from haloscope.records.curves import BASE, Curve
from haloscope.records.text import count_of
from haloscope.report import tables

MESSAGE_RATE_BYTES = 8


@dataclass(frozen=True)
class Group:
    """Common properties of messages that may be compared. nodes: emulated ones, 0 = as MPI reports."""

    kind: str
    ranks: int
    nodes: int
    pairs: int
    gap: int

    @staticmethod
    def of(curve: Curve) -> Group:
        """Return the group of a curve."""
        ranks, nodes = curve.request["ranks"], curve.request.get("nodes", 0)
        if curve.kind == patterns.RING:
            return Group(curve.kind, ranks, nodes, 0, 0)
        return Group(curve.kind, ranks, nodes, curve.pairs, curve.request.get("gap", ranks // 2))

    def __str__(self) -> str:
        """Words for the ranks and nodes."""
        if self.kind == patterns.RING:
            words = f"{self.ranks} ranks in a ring"
        else:
            words = f"{self.ranks} ranks in {count_of(self.pairs, 'pair')}"
            words = words if 2 * self.pairs == self.ranks else f"{self.pairs} of {self.ranks // 2} pairs of ranks"
            words += f", {self.gap} apart" if 2 * self.gap != self.ranks else ""
        return words + f" on {count_of(self.nodes, 'emulated node')}" * bool(self.nodes)


def groups_of(table: Sequence[Curve]) -> dict[Group, list[Curve]]:
    """Return the curves of messages that may be compared, the fastest small message first."""
    groups: dict[Group, list[Curve]] = defaultdict(list)
    for curve in table:
        if curve.kind in (patterns.PAIRS, patterns.RING):
            groups[Group.of(curve)].append(curve)
    ordered = sorted(groups, key=lambda g: (g.kind != patterns.PAIRS, g.ranks, g.nodes, g.gap, g.pairs))
    return {group: sorted(groups[group], key=_first_time) for group in ordered}


def _first_time(curve: Curve) -> float:
    key = curve.measures()[0]
    return curve.time(min(curve.sizes(key)), key).value


def overview(group: Sequence[Curve]) -> str:
    """Return the table of a group: small messages against p2p, message rates, best bandwidths, as far as measured."""
    lines = [_overview_line(group, curve) for curve in group]
    headers = list(dict.fromkeys(header for line in lines for header in line))
    rows = [[line.get(header, "") for header in headers] for line in lines]
    return tables.markdown(rows, headers, right=[h for h in headers if h not in ("transport", "verdict", "check")])


def _overview_line(group: Sequence[Curve], curve: Curve) -> dict[str, str]:
    base = next((c for c in group if c.transport == BASE), None)
    line = {"transport": curve.transport}
    keys = curve.measures()
    main = next((key for key in keys if not patterns.MEASURES[key].moved), "")
    if main:
        size = _nearest(curve, main)
        time = curve.time(size, main)
        line |= {
            f"{patterns.MEASURES[main].words} {size} B (us)": tables.number(time.value * 1e6),
            "95 %": tables.interval(time, factor=1e6),
        }
        line |= _against(curve, base, size, main)
    if "exchange_s" in keys and main != "exchange_s":
        line["both ways (us)"] = tables.number(curve.time(_nearest(curve, "exchange_s"), "exchange_s").value * 1e6)
    rate = f"rate {_nearest(curve, 'batch_s')} B (million/s)"
    for key, title in (("batch_s", rate), ("both_batch_s", "both ways (million/s)")):
        if key in keys:
            line[title] = tables.number(curve.message_rate(_nearest(curve, key), key) / 1e6)
    if "batch_s" in keys:
        peak = max(curve.sizes("batch_s"), key=curve.bandwidth)
        line |= {"best (GB/s)": tables.number(curve.bandwidth(peak) / 1e9), "at (B)": str(peak)}
    if "both_batch_s" in keys:
        best = max(curve.bandwidth(size, "both_batch_s") for size in curve.sizes("both_batch_s"))
        line["both ways, best (GB/s)"] = tables.number(best / 1e9)
    return line | {"check": curve.check}


def _nearest(curve: Curve, key: str) -> int:
    """Return the measured size that is closest to a small message, 0 without measured sizes."""
    return min(curve.sizes(key), key=lambda s: abs(s - MESSAGE_RATE_BYTES), default=0)


def _against(curve: Curve, base: Curve | None, size: int, key: str) -> dict[str, str]:
    titles = (f"x {BASE}", "95 % ", "verdict")
    if curve is base:
        return dict(zip(titles, ("1 (base)", "", ""), strict=True))
    if base is None or size not in base.sizes(key):
        return dict.fromkeys(titles, "")
    ratio = stats.ratio_of_launches(curve.samples(size, key), base.samples(size, key))
    ends, verdict = tables.interval(ratio, "{:.2f}".format), stats.verdict_text(ratio, "slower", "faster")
    return dict(zip(titles, (f"{ratio.value:.2f}", ends, verdict), strict=True))


@dataclass(frozen=True)
class Chart:
    """Lines over a common axis, shown as a table and as a panel of the figure. x: title of the axis."""

    title: str
    of: str
    x: str
    unit: str
    lines: dict[str, dict[int, float]]

    def markdown(self) -> str:
        """Return the table: a row per value of x, a column per line."""
        headers = [self.x, *self.lines]
        xs = sorted({x for line in self.lines.values() for x in line})
        rows = [[x, *(tables.number(line[x]) if x in line else "" for line in self.lines.values())] for x in xs]
        return tables.markdown(rows, headers, right=headers)


def message_charts(group: Group, members: Sequence[Curve]) -> list[Chart]:
    """Return the charts of a group: a line per transport. A chart of one-way messages replaces the two-way one."""
    keys = [key for key in patterns.MEASURES if any(key in curve.measures() for curve in members)]
    beside = {"exchange_s": "latency_s", "both_batch_s": "batch_s"}
    lines = {curve.transport: curve for curve in members}
    return [_chart(key, str(group), lines) for key in keys if beside.get(key) not in keys]


def _chart(key: str, where: str, members: dict[str, Curve]) -> Chart:
    measure = patterns.MEASURES[key]
    lines = {name: {size: curve.value(size, key)[0] for size in curve.sizes(key)} for name, curve in members.items()}
    unit = _unit(measure)
    return Chart(f"{measure.words.capitalize()}, {unit}: {where}", f"{where}: {measure.of}", "bytes", unit, lines)


def _unit(measure: patterns.Measure) -> str:
    return "GB/s" if measure.moved else "us"


def onesided_charts(table: Sequence[Curve]) -> list[Chart]:
    """Return charts of single one-sided operations and of their batches, a line per operation."""
    charts = []
    for curve in (c for c in table if c.kind == patterns.ONESIDED):
        for name, unit in (("One-sided operations", "us"), ("Batches of one-sided operations", "GB/s")):
            measures = [m for m in map(patterns.MEASURES.get, curve.measures()) if m and _unit(m) == unit]
            lines = {m.words: {size: curve.value(size, m.key)[0] for size in curve.sizes(m.key)} for m in measures}
            if not lines:
                continue
            where = ", ".join(filter(None, (curve.transport, str(Group.of(curve)))))
            charts.append(Chart(f"{name}, {unit}: {where}", f"{where}: {measures[0].of}", "bytes", unit, lines))
    return charts


def collective_charts(table: Sequence[Curve]) -> list[Chart]:
    """Return a chart per collective operation, a line per number of ranks."""
    found = [curve for curve in table if curve.kind == patterns.COLLECTIVE]
    keys = dict.fromkeys(key for curve in found for key in curve.measures())
    named = [(_ranks_of(curve), curve) for curve in found]
    return [_chart(key, "alone", {name: curve for name, curve in named if key in curve.measures()}) for key in keys]


def _ranks_of(curve: Curve) -> str:
    words = f"{curve.request['ranks']} ranks" + ", oversubscribed" * curve.oversubscribed
    return f"{curve.transport}, {words}" if curve.transport else words


def memory_charts(table: Sequence[Curve]) -> list[Chart]:
    """Return the bandwidths of STREAM's kernels by threads, and of caches by working set."""
    memory = [curve for curve in table if curve.kind == patterns.MEMORY]
    stream = [curve for curve in memory if "copy_s" in curve.measures()]
    cache = [curve for curve in memory if "read_s" in curve.measures()]
    charts = []
    for size in sorted({size for curve in stream for size in curve.sizes()}):
        lines: dict[str, dict[int, float]] = defaultdict(dict)
        for curve in stream:
            for key in curve.measures() if size in curve.sizes() else ():
                lines[patterns.MEASURES[key].words][curve.request.get("threads", 1)] = curve.value(size, key)[0]
        where = f"arrays of {size / 2**20:.4g} MiB"
        charts.append(Chart(f"STREAM, GB/s: {where}", f"STREAM, {where}", "threads", "GB/s", dict(lines)))
    if cache:
        words = "caches and memory, by the working set of each thread"
        charts.append(Chart(f"{words.capitalize()}, GB/s", words, "bytes", "GB/s", _cache_lines(cache)))
    return charts


def _cache_lines(cache: Sequence[Curve]) -> dict[str, dict[int, float]]:
    lines = {}
    for curve in cache:
        threads = curve.request.get("threads", 1)
        for key in curve.measures():
            name = f"{patterns.MEASURES[key].words}, {count_of(threads, 'thread')}"
            lines[name] = {size: curve.value(size, key)[0] for size in curve.sizes(key)}
    return lines
