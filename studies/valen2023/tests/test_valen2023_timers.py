"""The eight timers of the 2023 study."""

from __future__ import annotations

import dataclasses
import statistics
from collections import defaultdict

import pytest

from haloscope import bridge
from haloscope.records.rows import group_rows
from haloscope_studies.valen2023 import study as valen2023
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


@pytest.mark.ids("V14")
def test_on_a_device_the_rest_is_the_execution_without_all_timers_but_inner():
    record = measurement(seconds=(1.0, 1.0, 1.0), device="cuda", schedule="streams")
    phases = ("pack", "d2h", "h2d", "unpack", "inner", "outer", "compute", "send", "wait", "desync")
    record["phases_s"] = {name: spread(5e-3) for name in phases} | {"inner": spread(4e-2), "rest": spread(9e-2)}
    found = timers.thesis_timers(group_rows([record])[0])
    covered = sum(found[name] for name in timers.TERSE if name not in ("execution", "inner"))
    assert covered == pytest.approx(10 * 9 * 5e-3) and found["rest"] == pytest.approx(1.0 - covered)


@pytest.mark.ids("V14")
@pytest.mark.parametrize("program", valen2023.PROGRAMS)
def test_all_work_of_a_timer_is_on_one_stream_whose_time_is_the_larger_one(program):
    options = dataclasses.replace(valen2023.DEFAULTS["full"], device="cuda")
    [request] = valen2023.request(5000, program, 4, options).requests
    layout, step = bridge.make_layout(request.choice), bridge.step_of(request.choice)
    plan = bridge.make_plan(layout, 0, bridge.exchange_spec(request.choice, 0))
    made = bridge.make_program(request.choice.schedule, step, plan, bridge.schedule_options(request.choice, 0), 0)
    streams: dict[str, set[str]] = defaultdict(set)
    for op in made.ops:
        streams[TIMERS.get(op.kind) or PARTS[made.sweeps[op.target].part]].add(op.lane)
    assert streams["pack"] == streams["unpack"] == {"halo_stream"}
    assert all(len(lanes) == 1 for lanes in streams.values())
    if program.endswith("overlapped"):
        assert streams["outer"] == {"halo_stream"} and streams["inner"] == {"sweep_stream"}


TIMERS = {"pack": "pack", "d2h": "pack", "h2d": "unpack", "unpack": "unpack", "barrier": "desync"}
TIMERS |= dict.fromkeys(("send", "wait", "copy", "post", "complete"), "message")
PARTS = {"inner": "inner", "outer": "outer", "full": "primary"}
