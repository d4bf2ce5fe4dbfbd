"""Every program that a schedule makes passes the checker."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from haloscope import bridge
from long_run import LONG

[SUBSTEPS] = (field.words for field in bridge.fields() if field.name == "substeps")


def programs_of(choice: bridge.Choice, **options) -> list[bridge.Program]:
    """Return the programs of all ranks and stages; options: replace some of the schedule's."""
    layout, step, found = bridge.make_layout(choice), bridge.step_of(choice), []
    for stage in range(len(step.stages)):
        scheduled = dataclasses.replace(bridge.schedule_options(choice, stage), **options)
        plans = [bridge.make_plan(layout, rank, bridge.exchange_spec(choice, stage)) for rank in range(layout.size)]
        found += [bridge.make_program(choice.schedule, step, plan, scheduled, stage) for plan in plans]
    return found


def operations(program: bridge.Program, kind: str) -> list[bridge.Op]:
    """Return all operations of a kind."""
    return [op for op in program.ops if op.kind == kind]


def radius(step: bridge.Step) -> int:
    """Return how many layers around a point the sweeps of a step read."""
    return max(access.layers for stage in step.stages for sweep in stage.sweeps for access in sweep.reads)


def stages_of(name: str) -> int:
    """Return how many stages a step of an app has, in its form with most."""
    return max(len(step.stages) for step in bridge.find_app(name).steps.values())


@st.composite
def choices(draw, most_stages=99):
    """Draw a legal choice on a grid of few cells."""
    names = [name for name in bridge.app_names() if not bridge.is_declared(name) and stages_of(name) <= most_stages]
    app = bridge.find_app(draw(st.sampled_from(names)))
    form = draw(st.sampled_from(app.forms))
    dims = app.dims
    depth = draw(st.integers(1, 3))
    ranks = draw(st.lists(st.integers(1, 3), min_size=dims, max_size=dims).filter(lambda p: math.prod(p) <= 8))
    least = depth * radius(app.steps[form])
    cells = tuple(p * draw(st.integers(least, least + 3)) + draw(st.integers(0, p - 1)) for p in ranks)
    device = draw(st.sampled_from(["", "host"]))
    schedule = draw(st.sampled_from(bridge.schedule_names()))
    staged = device and not bridge.find_schedule(schedule).boxed
    choice = bridge.Choice(
        app=app.name,
        form=form,
        cells=cells,
        periodic=tuple(draw(st.lists(st.booleans(), min_size=dims, max_size=dims))),
        ranks=math.prod(ranks),
        process_grid="x".join(map(str, ranks)),
        threads=1 if staged else 2,
        device=device,
        strategy=draw(st.sampled_from(bridge.device_strategy_names() if staged else bridge.strategy_names())),
        schedule=schedule,
        walls=draw(st.integers(1, 2)),
        depth=depth,
        substeps=draw(st.sampled_from(SUBSTEPS)),
    )
    assume(not bridge.illegal(choice))
    return choice


@pytest.mark.ids("W12", "W13", "V9", "V11", "V23")
@given(choices(), st.data())
@settings(
    max_examples=2000 if LONG else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_no_program_reads_what_is_not_yet_there(choice, data):
    steps = data.draw(st.integers(1, choice.depth))
    tiles = data.draw(st.integers(1, 5))
    barrier, pack_first = data.draw(st.booleans()), data.draw(st.booleans())
    options = {"steps": steps, "tiles": tiles, "barrier": barrier, "pack_first": pack_first}
    assert bridge.check(choice, **options) == ""
    assert all(program.device == bool(choice.device) for program in programs_of(choice, **options))


@pytest.mark.ids("SC1", "SC2")
@given(choices(most_stages=1), st.data())
@settings(
    max_examples=600 if LONG else 30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_collective_rounds_give_every_rank_the_same_sends_and_waits(choice, data):
    options = {"collective_rounds": True, "barrier": data.draw(st.booleans())}
    assert bridge.check(choice, **options) == ""
    programs = programs_of(choice, **options)
    for kind in ("pack", "d2h", "send", "wait", "h2d", "unpack"):
        assert len({len(operations(program, kind)) for program in programs}) == 1
    layout, step = bridge.make_layout(choice), bridge.step_of(choice)
    uneven = dataclasses.replace(bridge.exchange_spec(choice), high=(0, 0, 0))  # outer ranks only send, or only receive
    plans = [bridge.make_plan(layout, rank, uneven) for rank in range(layout.size)]
    scheduled = dataclasses.replace(bridge.schedule_options(choice), **options)
    programs = [bridge.make_program("bulk", step, plan, scheduled) for plan in plans]
    assert len({len(operations(program, "send")) for program in programs}) == 1
    assert len({len(operations(program, "wait")) for program in programs}) == 1


@pytest.mark.parametrize(("strategy", "copies"), [("ordered/staged", True), ("ordered/aware", False)])
def test_work_of_a_device_and_nothing_else_is_on_its_streams(strategy, copies):
    own = {kind: {"halo_stream"} for kind in ("pack", "unpack", "d2h", "h2d")}
    own["sweep"] = {"sweep_stream", "halo_stream"}
    choice = bridge.Choice("laplace2d", (14, 13), 4, schedule="streams", depth=2, device="host", strategy=strategy)
    program = programs_of(choice)[0]
    assert all(op.lane in own.get(op.kind, {"comm"}) for op in program.ops)
    assert {op.lane for op in operations(program, "sweep")} == own["sweep"]
    assert bool(operations(program, "d2h")) == bool(operations(program, "h2d")) == copies
