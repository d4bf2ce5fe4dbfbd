"""Helpers of tests of several studies: a short run, the cells of a report's tables, records of a study."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable

from haloscope import errors, records, studies
from haloscope.bridge import Choice
from haloscope.measure.request import Request
from test_records import measurement

SHORT = ("--quick", "--steps", "4", "--repetitions", "2", "--launches", "2", "--output", "r.jsonl")


def section(text: str, title: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    body = text.split(f"### {title}", 1)[1].split("\n###", 1)[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in body.splitlines() if line.startswith("|")][2:]


def made_up(requests: Iterable[Request], seconds: Callable[[Choice], float], launches: int = 5) -> list[dict]:
    """Return records of requests whose steps take some seconds, a few percent more or less in each launch."""
    found = []
    for request in requests:
        choice = request.choice
        step = seconds(choice)
        for launch in range(launches):
            odd = 1 + 0.01 * math.sin(launch + len(request.id))
            record = measurement(request.id, f"launch-{launch + 1}", **(request.request() | {"steps": 10}))
            record["time_s"]["repetitions"] = [10 * step * odd * factor for factor in (1.0, 1.001, 0.999)]
            found.append(record)
    return found


def skipped_study(name: str, **changes) -> list[dict]:
    """Return records of a study whose first request was skipped: its options come first."""
    study = studies.load(name)
    options = dataclasses.replace(study.DEFAULTS["quick"], cores=2, **changes)
    request = study.plan(options).requests[0]
    plan = records.of_study(name, dataclasses.asdict(options))
    return [plan, records.skipped(request, "not here", errors.UNAVAILABLE, "launch-1")]
