"""Sections on measured choices: what to use, their ranking, the phases of a step, curves over depth and ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from haloscope.records import stats
from haloscope.records.rows import Row, are_close, group_rows, speedup
from haloscope.records.text import cell, count_of, listed, machine_of, mpi_of
from haloscope.report import conclusion, tables
from haloscope.report.page import Chart, Section, Table, label
from haloscope.report.page.marks import (
    MEASURED,
    MOST_BARS,
    PHASE_COLOURS,
    SYMBOLS,
    colour_of,
    height_of,
    ranked_bars,
    transport_of,
    with_intervals,
)

CASE = ("app", "form", "real", "cells", "periodic", "ranks", "nodes", "placement", "barrier", "device")
MOST_CASES = 12  # with figures of their own
MOST_NAMED = 4  # choices in a sentence
VERBS = {"wait": "waiting for messages", "compute": "sweeping", "pack": "packing", "unpack": "unpacking"}


@dataclass
class Case:
    """The choices measured for one app, grid and number of ranks, fastest first. base: what speed-ups refer to."""

    rows: list[Row]
    base: Row | None

    @property
    def name(self) -> str:
        """The case in words."""
        request = self.rows[0].request
        parts = [request["app"], f"{cell(request['cells'])} cells", count_of(request["ranks"], "rank")]
        parts += [f"{request.get('nodes')} emulated nodes"] * (request.get("nodes", 0) > 1)
        parts += [f"device {request.get('device')}"] * bool(request.get("device"))
        return ", ".join(map(str, parts))


def cases_of(found: Iterable[dict]) -> list[Case]:
    """Return the cases of some records, the one with most choices first."""
    groups: dict[tuple, list[Row]] = defaultdict(list)
    for row in group_rows(found):
        groups[_case(row)].append(row)
    made = [Case(rows, tables.baseline(rows) or _most_usual(rows)) for rows in groups.values()]
    return sorted(made, key=lambda case: -len(case.rows))


def _case(row: Row) -> tuple:
    network = repr(row.surroundings("emulated_network"))
    return (*(repr(row.request.get(axis)) for axis in CASE), repr(row.surroundings("cpu")), network)


def _most_usual(rows: Sequence[Row]) -> Row | None:
    """Return the plainest row of a table without a baseline: `ordered/p2p`, bulk, of least depth; None in a table of
    one row, and of oversubscribed ones alone.
    """
    plain = [row for row in rows if not row.oversubscribed]
    if len(rows) < 2 or not plain:
        return None
    wanted = {"strategy": "ordered/p2p", "schedule": "bulk"}
    return min(plain, key=lambda row: (sum(row.request.get(k) != v for k, v in wanted.items()), row.request["depth"]))


def names_of(rows: Sequence[Row]) -> dict[str, str]:
    """Return the short name of each row by its id: the parts of its request in which rows of a case differ."""
    varied = [axis for axis in tables.varied(rows) if axis not in CASE]
    for axes in ([axis for axis in varied if axis != "memory"], varied):  # the transport decides on the memory
        short = {row.id: " ".join(filter(None, (_part(axis, row.request.get(axis)) for axis in axes))) for row in rows}
        if len(set(short.values())) == len(rows):
            return short
    return {row.id: row.id for row in rows}


def _part(axis: str, value: Any) -> str:
    text = cell(value)
    return text if axis in ("strategy", "schedule") or not text else f"{axis.replace('_', ' ')} {text}"


def summary(cases: Sequence[Case]) -> Section:
    """Return what to use for each case, as far as the records carry it."""
    words = [sentence_of(case) for case in cases if case.base][:MOST_CASES]
    if not words:
        words = ["Each case was measured in one way, so that there is nothing to recommend."]
    lines = [_summary_line(case) for case in cases]
    columns = ["case", "choices", "fastest", "ms per step", "speed-up", "95 % interval", "over"]
    return Section("What to use", words, tables=[Table(columns, lines)])


def _summary_line(case: Case) -> list:
    fastest, names = case.rows[0], names_of(case.rows)
    gain = speedup(fastest, case.base) if case.base else None
    ends = tables.interval(gain, "{:.2f}".format) if gain else ""
    base = names[case.base.id] if case.base else ""
    time = 1e3 * fastest.step.value
    return [case.name, len(case.rows), names[fastest.id], time, gain.value if gain else None, ends, base]


def sentence_of(case: Case) -> str:
    """Return the advice for a case in words: the choice, its speed-up and its reason, or that none can be given."""
    base, names = case.base, names_of(case.rows)
    assert base is not None
    launches = min(len(row.launches) for row in case.rows)
    if launches < conclusion.LEAST_LAUNCHES:
        few = f"{count_of(launches, 'launch')} cannot distinguish choices for sure"
        return f"{case.name}: {names[case.rows[0].id]} was the fastest, but {few}: {conclusion.LEAST_LAUNCHES} can."
    found = conclusion.find_faster(case.rows, base)
    if found is None:
        return f"{case.name}: {names[base.id]} is as good as any, as far as these records can tell."
    row, gain = found
    alike = [names[other.id] for other in case.rows if other is not row and are_close(row, other)]
    rest = f" Not distinguished from it: {listed(alike[:MOST_NAMED])}" if alike else ""
    rest += f" and {len(alike) - MOST_NAMED} more" if len(alike) > MOST_NAMED else ""
    than = f"{gain.value:.2f} times as fast as {names[base.id]} (at least {gain.low:.2f})"
    return f"{case.name}: use {names[row.id]}, {than}{_reason(row, base)}.{rest + '.' if rest else ''}"


def _reason(row: Row, base: Row) -> str:
    """Return the phase that shrinks most from one row to another, with both times; "" where no phase was recorded."""
    gains = {phase: base.phase(phase, "mean") - row.phase(phase, "mean") for phase in tables.PHASES}
    phase = max(gains, key=lambda name: gains[name])
    if gains[phase] <= 0:
        return ""
    before, after = (1e6 * one.phase(phase, "mean") for one in (base, row))
    verb = VERBS.get(phase, f"phase {phase}")
    return f": {verb} takes {tables.number(after)} us a step instead of {tables.number(before)}"


def rankings(cases: Sequence[Case]) -> Section:
    """Return the ranked choices of each case as bars with intervals."""
    charts = [_ranking(case) for case in cases if len(case.rows) > 1][:MOST_CASES]
    many = sum(len(case.rows) > 1 for case in cases)
    words = [f"Of {many} cases, those with most choices are drawn."] * (many > MOST_CASES)
    return Section("Ranked choices", words, charts)


def _ranking(case: Case) -> Chart:
    names, base = names_of(case.rows), case.base
    unit, factor = tables.unit(row.step.value for row in case.rows)
    columns = ["choice", f"step ({unit})", "low", "high", "speed-up", "95 % interval", "check", "notes"]
    lines = []
    for row in case.rows:
        gain = [None, ""] if base is None else _gain(speedup(row, base))
        lines.append([names[row.id], *_ends(row, factor), *gain, row.verification, row.notes()])
    drawn = case.rows[:MOST_BARS]
    marks = {
        "color": [colour_of(row.request.get("strategy", "")) for row in drawn],
        "pattern": {"shape": ["/" if row.oversubscribed else "" for row in drawn]},
    }
    drawn_names = [names[row.id] for row in drawn]
    bars, layout = ranked_bars(drawn_names, [_ends(row, factor) for row in drawn], marks, f"{unit} per step", MEASURED)
    more = f" The fastest {MOST_BARS} of {len(lines)} are drawn." if len(lines) > MOST_BARS else ""
    hatched = " Hatched: more threads than cores." if any(row.oversubscribed for row in drawn) else ""
    table = Table(columns, lines)
    return Chart(case.name, basis(case.rows) + more + hatched, [bars], layout, table, height_of(len(drawn)))


def _gain(gain: stats.Estimate) -> list:
    return [gain.value, tables.interval(gain, "{:.3f}".format)]


def _ends(row: Row, factor: float) -> list[float]:
    """Return the time of a step and the ends of its interval."""
    return [factor * value for value in (row.step.value, row.step.low, row.step.high)]


def basis(rows: Sequence[Row]) -> str:
    """Return the machine and the numbers of launches and repetitions behind some rows."""
    launches = sorted({len(row.launches) for row in rows})
    repetitions = sorted({len(times) for row in rows for times in row.launches.values()})
    e = rows[0].records[0]["environment"]
    machine = f"{machine_of(e)}, {mpi_of(e)}"
    several = len(rows[0].surroundings("cpu")) > 1
    many = f"{_span(launches, 'launch')} of {_span(repetitions, 'repetition')}"
    return f"Measured: {'several machines' if several else machine}; {many}."


def _span(counts: Sequence[int], thing: str) -> str:
    """Return a number of things, or the least and the most of them. counts: in order."""
    return f"{counts[0]} to " * (len(counts) > 1) + count_of(counts[-1], thing)


def phases(cases: Sequence[Case]) -> Section:
    """Return the phases of a step, mean over ranks, of the choices of each case."""
    charts = [chart for case in cases[:MOST_CASES] if (chart := _phases(case)) is not None]
    return Section("What a step is spent on", [], charts)


def _phases(case: Case) -> Chart | None:
    names = names_of(case.rows)
    present = [p for p in tables.PHASES if any(row.phase(p, "max") for row in case.rows)]
    if not present:
        return None
    rows = case.rows[:MOST_BARS]
    columns = ["choice", *(f"{p} (us), {s}" for p in present for s in ("min", "mean", "max"))]
    lines = [
        [names[row.id], *(1e6 * row.phase(p, s) for p in present for s in ("min", "mean", "max"))] for row in case.rows
    ]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": phase,
            "y": [label(names[row.id]) for row in rows],
            "x": [1e6 * row.phase(phase, "mean") for row in rows],
            "marker": {
                "color": PHASE_COLOURS[i % len(PHASE_COLOURS)],
                "pattern": {"shape": ("", "/", ".")[i // 9 % 3]},
            },
            "customdata": [names[row.id] for row in rows],
            "hovertemplate": f"{phase}: %{{x:.4g}} us<extra>%{{y}}</extra>",
        }
        for i, phase in enumerate(present)
    ]
    layout = {
        "barmode": "stack",
        "xaxis": {"title": {"text": "us per step, mean over ranks"}},
        "yaxis": {"autorange": "reversed"},
    }
    caption = f"{basis(rows)} Phases, mean over ranks; the table has least and most."
    return Chart(case.name, caption, traces, layout, Table(columns, lines), height_of(len(rows), around=150))


def curves(cases: Sequence[Case]) -> Section:
    """Return the times of steps over depth, and over the number of ranks, where several were measured."""
    rows = [row for case in cases for row in case.rows if not row.oversubscribed]
    made = [
        *_curves(rows, "depth", "time steps per exchange", {"halo_depth", "depth", "substeps"}),
        *_curves(rows, "ranks", "ranks", {"ranks", "process_grid"}),
    ]
    return Section("Curves over depth and ranks", [], made[:MOST_CASES])


def _curves(rows: Sequence[Row], axis: str, title: str, free: set[str]) -> list[Chart]:
    """Return a chart for each app and grid with lines of rows that differ in one part of their requests."""
    grids: dict[tuple, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    fixed = [a for a in CASE if a not in free]
    for row in rows:
        key = tuple(repr(row.request.get(a)) for a in fixed)
        line = [row.request[a] for a in ("strategy", "schedule")] + [f"{row.request.get('threads', 1)} threads"]
        line += [str(row.request.get("substeps", ""))] * (axis == "depth" and row.request["depth"] > 1)
        grids[key][" ".join(line)].append(row)
    return [chart for lines in grids.values() if (chart := _curve(lines, axis, title, "ranks" not in free)) is not None]


def _curve(lines: Mapping[str, Sequence[Row]], axis: str, title: str, names_ranks: bool) -> Chart | None:
    points = {name: _ordered(rows, lambda row: row.request[axis]) for name, rows in lines.items()}
    points = {name: line for name, line in points.items() if len(line) > 1 or axis == "depth"}
    places = sorted({x for line in points.values() for x in line})
    if len(places) < 2:
        return None
    every = [row for line in points.values() for row in line.values()]
    request = every[0].request
    unit, factor = tables.unit(row.step.value for row in every)
    numbers = [[name, x, *_ends(row, factor)] for name, line in points.items() for x, row in line.items()]
    layout = {
        "xaxis": {"title": {"text": title}, "type": "log", "tickvals": places},
        "yaxis": {"title": {"text": f"{unit} per step"}, "type": "log"},
    }
    where = f"{request['app']}, {cell(request['cells'])} cells" + f", {request['ranks']} ranks" * names_ranks
    traces = [_line_of(name, line, factor) for name, line in points.items()]
    table = Table(["choice", axis, f"step ({unit})", "low", "high"], numbers)
    return Chart(f"{where}: over {axis}", basis(every), traces, layout, table)


def _line_of(name: str, line: Mapping[int, Row], factor: float) -> dict:
    """Return the trace of one line of a curve."""
    number, colour = transport_of(next(iter(line.values())).request["strategy"])
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": label(name),
        "x": list(line),
        "marker": {"color": colour, "symbol": SYMBOLS[number % len(SYMBOLS)], "size": 8},
        "line": {"color": colour},
        "customdata": [name] * len(line),
        **with_intervals("y", [_ends(row, factor) for row in line.values()]),
    }


def _ordered(rows: Sequence[Row], place: Callable[[Row], int]) -> dict[int, Row]:
    """Return the fastest row at each place, in order."""
    found: dict[int, Row] = {}
    for row in sorted(rows, key=lambda row: stats.middle(list(row.launches.values()))):
        found.setdefault(place(row), row)
    return dict(sorted(found.items()))
