"""Exchanges of blocks: times per iteration, speed-ups over baselines, activity of the CPU."""

from __future__ import annotations

import functools
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from haloscope.records import stats
from haloscope.report import tables
from haloscope_studies.vanecek2020 import variants

KIND = "blocks"
_SAME = (
    "bytes",
    "grid",
    "threads",
    "scheme",
    "ranks",
    "sides",
    "device",
    "check",
    "detail",
)  # in compared rows


@dataclass
class Row:
    """One variant over all its launches."""

    request: dict
    records: list[dict]

    def __post_init__(self) -> None:
        """Collect the means of all tests by launch."""
        self.launches: dict[str, list[float]] = defaultdict(list)
        for record in self.records:
            self.launches[record["launch"]["id"]] += means(record)

    @functools.cached_property
    def time(self) -> stats.Estimate:
        """The median over launches, with its interval."""
        return stats.median_over_launches(list(self.launches.values()))

    @property
    def variant(self) -> str:
        """The full name of the variant."""
        return str(self.request["variant"])

    @property
    def blocking(self) -> bool:
        """True if sends block."""
        return "blocking" in variants.words_of(self.variant)

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the tests' means in seconds, over all launches; None of a single test."""
        tests = [mean for launch in self.launches.values() for mean in launch]
        return statistics.stdev(tests) if len(tests) > 1 else None

    @property
    def profile(self) -> tuple[float, int] | None:
        """P1 and P2 (section 4.4): share of the CPU's hits right after another (median over launches), longest run of
        hits.

        None for a flow that does not poll for events.
        """
        found = [r["profile"] for r in self.records if r["profile"]["hits"]]
        if not found:
            return None
        shares = [p["after_a_hit"] for p in found]
        return statistics.median(shares), max(p["longest_run"] for p in found)

    @property
    def verification(self) -> str:
        """The worst state of all launches."""
        states = {r["verification"]["status"] for r in self.records}
        return next(state for state in ("failed", "off", "passed") if state in states)

    def per_block(self, name: str) -> list[float]:
        """Return seconds by block, means over iterations, launches and the sides of rank 0; none without records.

        name: packing_s, posting_s, sending_s or unpacking_s, which records in detail have.
        """
        count = len(self.request["bytes"])
        lists = [r["blocks"][name] for r in self.records if name in r.get("blocks", ())]
        if not lists:
            return []
        return [statistics.mean(value for values in lists for value in values[block::count]) for block in range(count)]


def means(record: Mapping) -> list[float]:
    """Return the mean iteration of each test, without the ones that warmed up (section 4.1)."""
    warmup = record["request"]["warmup"]
    return [statistics.mean(test[warmup:]) for test in record["iterations_s"]]


def markdown(found: Sequence[dict], file: Path) -> str:
    """Return the tables of records, the reasons of exchanges that did not run, and the file of the records."""
    measured = rows(found)
    parts = [f"### {heading}\n\n{table(members)}" for heading, members in groups(measured).items()]
    parts += [IMITATED] * is_imitated(measured)
    return "".join(f"\n{part}\n" for part in (*parts, *tables.refusals(found))) + f"\nrecords: {file}"


def rows(found: Iterable[Mapping]) -> list[Row]:
    """Return a row for each variant of each workload, in the order of the records; its records have one request."""
    groups: dict[tuple[str, str], list[dict]] = defaultdict(list)
    for record in found:
        if record["kind"] == KIND:
            groups[record["id"], json.dumps(record["request"], sort_keys=True)].append(dict(record))
    return [Row(group[0]["request"], group) for group in groups.values()]


def groups(table: Sequence[Row]) -> dict[str, list[Row]]:
    """Return comparable rows by a heading with their common properties, sorted by `place`."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(table, key=place):
        found[json.dumps([element_type(row.request), *(row.request[name] for name in _SAME)])].append(row)
    return {heading(members[0].request): members for members in found.values()}


def element_type(request: Mapping) -> str:
    """Return the type of the elements; records without one are older than the choice."""
    return str(request.get("type", "double"))


def place(row: Row) -> tuple:
    """Return the sort key of a row: the order of all variants, variants with further words after each."""
    known = variants.all_variants()
    plain = variants.without(row.variant, "padded", "dummy", *(n.name for n in variants.NUMBERS))
    return known.index(plain) if plain in known else len(known), row.variant


def heading(request: Mapping) -> str:
    """Return a description of the exchanged blocks, their ranks and device."""
    count, total = len(request["bytes"]), sum(request["bytes"])
    name = f"Workload {request['workload']}" if request["workload"] else "Own sizes"
    detail = "" if request["detail"] == "off" else f", detail {request['detail']}"
    detail += "" if element_type(request) == "double" else f", elements {element_type(request)}"
    return (
        f"{name}: {count} blocks of {request['threads']} threads, {bytes_words(total)} a side; {request['ranks']} "
        f"{_counted('rank', request['ranks'])} of {request['sides']} {_counted('side', request['sides'])} on "
        f"{request['device']}, {request['scheme']}, check {request['check']}{detail}"
    )


def _counted(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def bytes_words(count: float) -> str:
    """Return an amount in B, kB or MB (decimal)."""
    for factor, name in ((1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{count / factor:.4g} {name}"
    return f"{count:g} B"


def reference(members: Sequence[Row], blocking: bool | None = None) -> Row | None:
    """Return the fastest baseline with coherent buffers and no dummy messages, by its median, or None.

    blocking: only with such sends; None: any.
    """
    able = [row for row in baselines(members) if blocking in (None, row.blocking)]
    return min(able, key=lambda row: row.time.value, default=None)


def baselines(members: Sequence[Row]) -> list[Row]:
    """Return the baselines with coherent buffers and no dummy messages."""
    set_apart = {"noncoherent", "dummy"}
    return [
        row
        for row in members
        if variants.flow_of(row.variant) == variants.BASELINE and not set_apart & set(variants.words_of(row.variant))
    ]


def speedup(row: Row, base: Row) -> stats.Estimate:
    """Return the speed-up of a row over another, paired by launch."""
    return stats.ratio_of_launches(base.launches, row.launches)


def table(members: Sequence[Row]) -> str:
    """Return times with intervals, deviations, speed-ups over the fastest baseline and the fastest with the same sends,
    P1, P2.
    """
    unit, factor = tables.unit(row.time.value for row in members)
    best = reference(members)
    lines = []
    for row in members:
        deviation = "" if row.deviation is None else tables.number(row.deviation * factor)
        line = [
            row.variant,
            tables.number(row.time.value * factor),
            interval(row.time, factor),
            deviation,
        ]
        line += _gain(row, best)
        line.append(_gain(row, reference(members, row.blocking))[0])
        lines.append([*line, *profile_cells(row), row.verification])
    headers = [
        "variant",
        f"iteration ({unit})",
        "95 %",
        f"sd ({unit})",
        "speed-up",
        "95 % ",
        "same sends",
        "P1",
        "P2",
        "check",
    ]
    return tables.markdown(lines, headers, right=[headers[1], headers[3], "speed-up", "same sends", "P1", "P2"])


def _gain(row: Row, base: Row | None) -> list[str]:
    if base is None:
        return ["", ""]
    if row is base:
        return ["1 (base)", ""]
    gain = speedup(row, base)
    return gain_cells(gain)


def gain_cells(gain: stats.Estimate) -> list[str]:
    """Return a speed-up and its interval as a table shows them."""
    return [f"{gain.value:.3f}", tables.interval(gain, "{:.3f}".format) if gain.samples > 1 else ""]


def interval(e: stats.Estimate, factor: float) -> str:
    """Return an interval as a table shows it, "" for a single test."""
    return tables.interval(e, factor=factor) if e.samples > 1 else ""


def profile_cells(row: Row) -> list[str]:
    """Return P1 and P2 as a table shows them."""
    return [f"{100 * row.profile[0]:.0f} %", str(row.profile[1])] if row.profile else ["", ""]


def is_imitated(table: Iterable[Row]) -> bool:
    """Return whether some rows come from a device that the CPU imitates."""
    return any(row.request["device"] == "host" for row in table)


IMITATED = "The device is imitated by the CPU: these times do not hold for a GPU."
