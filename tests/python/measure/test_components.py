"""Named timers, their sums by component, and the rule that makes a walltime of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haloscope import records
from haloscope.records.rows import group_rows
from haloscope.report import components

SECONDS = st.floats(0, 10)


def spread(values) -> dict:
    return {"min": min(values), "mean": sum(values) / len(values), "max": max(values)}


def record(by_component: dict, step_s: float = 1.0) -> dict:
    """Return the parts of a record that the functions read; values of all ranks by component."""
    return {
        "components_s": {name: spread(values) for name, values in by_component.items()},
        "time_s": {"repetitions": [step_s]},
        "request": {"steps": 1},
    }


@pytest.mark.ids("DB2")
def test_the_walltime_is_composed_of_the_largest_work_and_the_least_waiting():
    found = [record({"compute": [3, 5], "memory": [1, 2], "point_to_point": [4, 2], "collectives": [0.5, 0.1]})]
    assert components.composed(found) == pytest.approx(5 + 2 + 2 + 0.1)


@pytest.mark.ids("DB2")
@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=6))
def test_ranks_that_wait_for_the_slowest_compose_to_its_time_exactly(ranks):
    """Each rank computes, and waits for the one that computes longest."""
    compute = [work for work, _ in ranks]
    found = [record({"compute": compute, "point_to_point": [max(compute) - own for own in compute]})]
    assert components.composed(found) == pytest.approx(max(compute))


@pytest.mark.ids("DB1")
def test_the_named_share_is_what_is_not_rest():
    assert components.named_share([record({"compute": [3], "collectives": [0.96], "rest": [0.04]})]) == 0.99


@pytest.mark.ids("DB3", "DB5")
def test_events_are_counted_in_each_timer_or_said_to_be_absent_and_the_clock_is_sampled(haloscope):
    result = haloscope(
        "run laplace2d --cells 64 --ranks 2 --steps 5 --launches 1 --events --components --repetitions 1 "
        "--output r.jsonl"
    )
    assert result.code == 0, result.err
    [found] = records.read("r.jsonl").records
    counted = set(found["timers"][0].get("events", {}))
    assert counted.isdisjoint(found["environment"]["events_absent"])
    assert {"cycles", "instructions", "l1-reads"} <= counted | set(found["environment"]["events_absent"])
    clock = found["environment"]["clock_mhz"]
    assert "absent" in clock or clock["least"] <= clock["mean"] <= clock["most"]
    for name in found["environment"]["events_absent"]:
        assert name in result.out


@pytest.mark.ids("DB3")
def test_events_need_timers(haloscope):
    result = haloscope("run", "laplace2d", "--cells", "64", "--events", "--timers", "off", "--steps", "2")
    assert result.code == 2 and "--events" in result.err


def test_a_table_of_timers_leaves_out_what_never_ran():
    ran = dict.fromkeys(components.OVER_RANKS, 0.001)
    never = dict.fromkeys(components.OVER_RANKS, 0.0)
    found = [
        record({"compute": [1e-3]}, step_s=1e-3)
        | {
            "timers": [
                {"stage": "a", "name": "sweep", "component": "compute", "calls": 1.0, "seconds": ran},
                {"stage": "b", "name": "loop", "component": "compute", "calls": 0.0, "seconds": never},
            ]
        }
    ]
    text = components.timers(found)
    assert "sweep" in text and "loop" not in text and "100.0%" in text


def test_rows_without_timers_are_told_apart(haloscope):
    run = "run laplace2d --cells 64 --ranks 1 --timers off --steps 2 --components --launches 1 --repetitions 1"
    result = haloscope(run)
    assert result.code == 0 and "Nothing was timed" in result.out
    assert group_rows([]) == []
