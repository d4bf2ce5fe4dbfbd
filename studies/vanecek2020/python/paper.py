"""Lines for the figures of the thesis: the order of an iteration here, and speed-ups by workload on a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from haloscope.studies.paper_panels import HERE, Line
from haloscope_studies.vanecek2020 import blocks_timeline, printed, report, variants
from haloscope_studies.vanecek2020.blocks import Row

WORKLOAD = "M"  # of figures 4.4 and 4.8
MICROSECONDS = 1e6
PANELS = {"baseline timeline": variants.BASELINE, "task queue timeline": variants.TASKQUEUE}


def lines(found: Sequence[Mapping]) -> dict[str, list[Line]]:
    """Return the lines of each panel, of the first set-up that was measured."""
    here = next(iter(report.set_ups(found)), None)
    if here is None:
        return {}
    detailed = [row for rows in here.detailed.values() for row in blocks_timeline.with_timeline(rows)]
    detailed.sort(key=lambda row: row.request["workload"] != WORKLOAD)
    made = {
        name: _spans(next(row for row in detailed if variants.flow_of(row.variant) == flow))
        for name, flow in PANELS.items()
        if any(variants.flow_of(row.variant) == flow for row in detailed)
    }
    return made | ({"by workload": _by_workload(here)} if here.on_gpu else {})


def _spans(row: Row) -> list[Line]:
    """Return the spans of each kind of event by block, in microseconds of rank 0's iteration."""
    spans: dict[str, dict[float | str, tuple[float, float]]] = {}
    for event in blocks_timeline.timeline(row):
        if event["rank"] == 0 and event["block"] >= 0:
            begin, end = MICROSECONDS * event["begin_s"], MICROSECONDS * event["end_s"]
            known = spans.setdefault(event["kind"], {}).get(float(event["block"]), (begin, end))
            spans[event["kind"]][float(event["block"])] = (min(begin, known[0]), max(end, known[1]))
    workload = row.request["workload"]
    return [Line(f"{kind}, {workload}", {x: s[0] for x, s in own.items()}, HERE, own) for kind, own in spans.items()]


def _by_workload(here: report.Measured) -> list[Line]:
    """Return the speed-up of the best of each kind over the fastest baseline, by workload."""
    order = printed.workload_names()
    return [
        Line(kind, {name: values[name] for name in order if name in values}, HERE)
        for kind, values in report.by_workload(here).items()
    ]
