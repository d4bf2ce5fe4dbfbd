"""The section on records of `haloscope blocks`: iterations of kernels that exchange by blocks, by variant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from haloscope.records import stats
from haloscope.records.rows import group_records
from haloscope.records.text import count_of
from haloscope.report import tables
from haloscope.report.page import Chart, Section, Table
from haloscope.report.page.choices import MOST_CASES
from haloscope.report.page.marks import MEASURED, MOST_BARS, height_of, ranked_bars

COLOURS = {"baseline": "#4c78a8", "memcpy": "#f58518", "taskqueue": "#54a24b"}  # by the first word of a variant


def section(found: Sequence[dict]) -> Section:
    """Return the variants of each workload as bars, fastest first."""
    groups: dict[tuple, dict[str, list[dict]]] = defaultdict(dict)
    for name, records in group_records(found, "blocks").items():
        request, device = records[0]["request"], records[0]["environment"].get("device", {})
        groups[request["workload"], request["ranks"], device.get("name", request["device"])][name] = records
    charts = [_chart(key, _named(variants)) for key, variants in groups.items()][:MOST_CASES]
    return Section("Exchanges by blocks", [], charts)


def _named(variants: dict[str, list[dict]]) -> dict[str, list[dict]]:
    """Return records by the name and the settings of their variant, by their ids where two are equal in these."""
    requests = {name: records[0]["request"] for name, records in variants.items()}
    short = {name: " ".join((request["variant"], *_settings(request))) for name, request in requests.items()}
    if len(set(short.values())) < len(variants):
        return variants
    return {short[name]: records for name, records in variants.items()}


def _settings(request: dict) -> list[str]:
    """Return the settings of a request in which variants differ besides their names."""
    usual = {"detail": "on", "sides": 1, "threads": 16, "type": "double"}
    return [f"{name} {request[name]}" for name, value in usual.items() if request.get(name, value) != value]


def _chart(key: tuple, variants: dict[str, list[dict]]) -> Chart:
    times = {name: _time(records) for name, records in variants.items()}
    ordered = sorted(times, key=lambda name: times[name].value)
    unit, factor = tables.unit(time.value for time in times.values())
    lines: list[list] = [
        [name, *(factor * v for v in (times[name].value, times[name].low, times[name].high)), times[name].launches]
        for name in ordered
    ]
    drawn = lines[:MOST_BARS]
    marks = {"color": [COLOURS.get(line[0].partition(":")[0], "#777777") for line in drawn]}
    bars, layout = ranked_bars(
        [line[0] for line in drawn], [line[1:4] for line in drawn], marks, f"{unit} per iteration", MEASURED
    )
    workload, ranks, device = key
    imitated = " Times of an imitated device say nothing about a GPU." * device.startswith("imitated")
    more = f" The fastest {MOST_BARS} of {len(lines)} are drawn." * (len(lines) > MOST_BARS)
    caption = f"Measured on {device}; {count_of(max(t.launches for t in times.values()), 'launch')}.{imitated}{more}"
    columns = ["variant", f"iteration ({unit})", "low", "high", "launches"]
    title = f"workload {workload}, {count_of(ranks, 'rank')}, {device}"
    height = height_of(len(drawn))
    return Chart(title, caption, [bars], layout, Table(columns, lines), height)


def _time(records: Sequence[dict]) -> stats.Estimate:
    """Return the time of an iteration after those that warm up."""
    launches: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for test in record["iterations_s"]:
            launches[record["launch"]["id"]] += test[record["request"]["warmup"] :]
    return stats.median_over_launches(list(launches.values()))
