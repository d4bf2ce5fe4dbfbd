"""The eight timers of the 2023 study."""

from __future__ import annotations

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


def test_copies_between_device_and_host_belong_to_packing_and_unpacking():
    record = measurement(seconds=(1.0, 1.0, 1.0))
    record["phases_s"] = {name: spread(n * 1e-2) for n, name in enumerate(("pack", "d2h", "h2d", "unpack"), 1)}
    found, steps = timers.thesis_timers(group_rows([record])[0]), record["request"]["steps"]
    assert found["pack"] == pytest.approx(steps * 3e-2) and found["unpack"] == pytest.approx(steps * 7e-2)
