"""How many points the sub-steps of deep halos sweep: the formulas of the 2023 study, section 4."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope import bridge


def sweeps(schedule: str, substeps: str, h: int, w: int, depth: int) -> list[bridge.Sweep]:
    """Sweeps of one rank of 2x2 that owns h x w points."""
    choice = bridge.Choice(
        app="laplace2d", cells=(2 * w, 2 * h), ranks=4, threads=2, schedule=schedule, substeps=substeps, depth=depth
    )
    assert bridge.illegal(choice) == ""
    plan = bridge.make_plan(bridge.make_layout(choice), 0, bridge.exchange_spec(choice))
    options = dataclasses.replace(bridge.schedule_options(choice), tiles=3)
    return list(bridge.make_program(schedule, bridge.step_of(choice), plan, options).sweeps)


sizes = st.tuples(st.integers(3, 60), st.integers(3, 60), st.integers(1, 9)).filter(lambda s: s[2] <= min(s[0], s[1]))


def points_by_step(found: list[bridge.Sweep], depth: int) -> list[int]:
    """Points written in each sub-step."""
    return [sum(s.region.volume for s in found if s.step == step) for step in range(depth)]


@pytest.mark.ids("V25")
@given(sizes)
@settings(max_examples=100, deadline=None)
def test_full_sub_steps_sweep_all_but_the_outermost_ring(size):
    h, w, depth = size
    points = (h + 2 * depth - 2) * (w + 2 * depth - 2)
    assert points_by_step(sweeps("bulk", "full", *size), depth) == [points] * depth


@pytest.mark.ids("V23", "V25")
@given(sizes)
@settings(max_examples=100, deadline=None)
def test_shrinking_sub_steps_sweep_a_ring_less_each(size):
    h, w, depth = size
    expected = [(h + 2 * (depth - 1 - j)) * (w + 2 * (depth - 1 - j)) for j in range(depth)]
    assert points_by_step(sweeps("bulk", "shrink", *size), depth) == expected


@pytest.mark.ids("V9", "V25")
@given(sizes)
@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("schedule", ["split", "comm-thread", "interleaved"])
def test_inner_and_outer_points_are_those_of_the_full_sweep(schedule, size):
    h, w, depth = size
    found = sweeps(schedule, "full", *size)
    inner = sum(s.region.volume for s in found if s.part == "inner")
    outer = sum(s.region.volume for s in found if s.part == "outer")
    assert inner == (h - 2) * (w - 2)
    assert inner + outer == (h + 2 * depth - 2) * (w + 2 * depth - 2)
    assert points_by_step(found, depth) == [inner + outer] * depth
