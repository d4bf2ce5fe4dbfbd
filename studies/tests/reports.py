"""Helpers of tests of several studies: a short run, the cells of a report's tables, records of a study."""

from __future__ import annotations

import dataclasses

from haloscope import errors, records, studies

SHORT = ("--quick", "--steps", "4", "--repetitions", "2", "--launches", "2", "--output", "r.jsonl")


def section(text: str, title: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    body = text.split(f"### {title}", 1)[1].split("\n###", 1)[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in body.splitlines() if line.startswith("|")][2:]


def skipped_study(name: str, **changes) -> list[dict]:
    """Return records of a study whose first request was skipped: its options come first."""
    study = studies.load(name)
    options = dataclasses.replace(study.DEFAULTS["quick"], cores=2, **changes)
    request = study.plan(options).requests[0]
    plan = records.of_study(name, dataclasses.asdict(options))
    return [plan, records.skipped(request, "not here", errors.UNAVAILABLE, "launch-1")]
