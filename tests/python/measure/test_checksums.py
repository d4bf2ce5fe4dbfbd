"""Results stay what they were: checksums of 42 configurations, recorded at commit 4dd6244, before apps became a
type.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from haloscope.measure import launch
from haloscope.measure.request import Request

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "golden" / "checksums.jsonl").open()]
RANKS = sorted({r["request"]["ranks"] for r in RECORDED})


def request(recorded: dict) -> Request:
    """What was recorded, as a request of one short repetition."""
    return Request.from_json(recorded["request"]).measured(steps=1, repetitions=1, warmup=0)


def check_results(recorded: list[dict], file: Path) -> None:
    """Run what was recorded, of one number of ranks, and compare checksums."""
    requests = [request(r) for r in recorded]
    outcome = launch.run(launch.Job(requests, file, "launch-1"))
    found = [(r["id"], r["verification"]["checksum"]) for r in outcome.records]
    assert found == [(q.id, r["checksum"]) for q, r in zip(requests, recorded, strict=True)]


@pytest.mark.parametrize("ranks", RANKS)
def test_results_have_the_bytes_that_they_had_before(ranks, tmp_path):
    check_results([r for r in RECORDED if r["request"]["ranks"] == ranks], tmp_path / "r.jsonl")


def test_the_recorded_configurations_cover_apps_schedules_and_transports():
    choices = [request(r).choice for r in RECORDED]
    assert len(RECORDED) == 42
    assert {c.app for c in choices} == {"advection3d", "laplace2d", "laplace3d"}
    assert len({c.schedule for c in choices}) == 10
    moved = [c.strategy.partition("/")[2].split("+") for c in choices]
    assert len({way.partition(":")[0] for ways in moved for way in ways if way}) == 13
