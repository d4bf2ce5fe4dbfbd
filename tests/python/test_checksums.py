"""Results stay what they were: checksums of 50 configurations, recorded at commit 4dd6244, before apps became a type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from haloscope.measure import launch
from haloscope.measure.sweep import Configuration

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "golden" / "checksums.jsonl").open()]


def configuration(recorded: dict) -> Configuration:
    """What was recorded, as a configuration of one short repetition."""
    given = {name: value for name, value in recorded.items() if name not in ("cells", "params", "verify", "checksum")}
    settings = {"steps": "1", "repetitions": "1", "warmup": "0", "verify": str(recorded["verify"])}
    settings |= recorded.get("params", {})
    return Configuration(**given, cells=tuple(recorded["cells"]), settings=tuple(settings.items()))


@pytest.mark.parametrize("ranks", sorted({r["ranks"] for r in RECORDED}))
def test_results_have_the_bytes_that_they_had_before(ranks, tmp_path):
    recorded = [r for r in RECORDED if r["ranks"] == ranks]
    configurations = [configuration(r) for r in recorded]
    outcome = launch.run(launch.Job(configurations, tmp_path / "r.jsonl", "launch-1"))
    found = [(r["id"], r["verification"]["checksum"]) for r in outcome.records]
    assert found == [(c.id, r["checksum"]) for c, r in zip(configurations, recorded, strict=True)]


def test_the_recorded_configurations_cover_apps_schedules_and_transports():
    assert len(RECORDED) == 50
    assert {r["app"] for r in RECORDED} == {"advection3d", "laplace2d", "laplace3d", "poisson2d"}
    assert len({r.get("schedule", "bulk") for r in RECORDED}) == 11
    moved = [r.get("strategy", "ordered/p2p").partition("/")[2].split("+") for r in RECORDED]
    assert len({way.partition(":")[0] for ways in moved for way in ways if way}) == 13
