"""The eight timers of the 2023 study."""

from __future__ import annotations

import statistics

import pytest

from haloscope.records.rows import group_rows
from haloscope_studies.valen2023 import timers
from test_records import measurement, spread


@pytest.mark.ids("V14")
def test_the_eight_timers_and_the_rest_add_up_to_the_execution():
    record = measurement(seconds=(1.0, 1.0, 1.0))
    record["phases_s"] = {
        "pack": spread(1e-2),
        "send": spread(1e-2),
        "wait": spread(1e-2),
        "copy": spread(1e-2),
        "unpack": spread(1e-2),
        "compute": spread(3e-2),
        "desync": spread(1e-2),
        "rest": spread(1e-2),
    }
    found = timers.thesis_timers(group_rows([record])[0])
    assert found["message"] == pytest.approx(0.3)
    assert found["primary"] == pytest.approx(0.3)
    assert sum(found.values()) - found["execution"] == pytest.approx(found["execution"])
    assert set(timers.TERSE) == {"execution", "pack", "unpack", "inner", "outer", "primary", "message", "desync"}


@pytest.mark.ids("V14")
def test_means_of_parts_add_up_to_the_mean_of_runs_however_launches_differ():
    found = []
    for launch, seconds in enumerate((1.0, 1.0, 4.0)):
        record = measurement(launch=f"launch-{launch}", seconds=[seconds] * 3)
        record["phases_s"] = {name: spread(seconds * 2.5e-2) for name in ("pack", "wait", "compute", "rest")}
        found.append(record)
    [row] = group_rows(found)
    parts = timers.thesis_timers(row, statistics.mean)
    whole = parts.pop("execution")
    assert whole == pytest.approx(2.0) and sum(parts.values()) == pytest.approx(whole)
    assert timers.thesis_timers(row)["execution"] == pytest.approx(1.0)


def test_copies_between_device_and_host_belong_to_packing_and_unpacking():
    record = measurement(seconds=(1.0, 1.0, 1.0))
    record["phases_s"] = {name: spread(n * 1e-2) for n, name in enumerate(("pack", "d2h", "h2d", "unpack"), 1)}
    found, steps = timers.thesis_timers(group_rows([record])[0]), record["request"]["steps"]
    assert found["pack"] == pytest.approx(steps * 3e-2) and found["unpack"] == pytest.approx(steps * 7e-2)
