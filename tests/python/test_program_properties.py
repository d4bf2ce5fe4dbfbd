"""Every program that a schedule makes passes the checker, and programs that are broken on purpose do not."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from haloscope import core
from haloscope.errors import UsageProblem
from long_run import LONG


@dataclasses.dataclass(frozen=True)
class World:
    """All ranks' plans and programs of one choice; of a step of several stages, such a list for each."""

    layout: core.Layout
    step: core.Step
    options: core.ScheduleOptions
    plans: list
    programs: list

    @classmethod
    def of(cls, choice: core.Choice, **options) -> World:
        """Make the plans and programs that a choice asks for; `options` replace some of its schedule's options."""
        layout, step = core.make_layout(choice), core.step_of(choice)
        all_plans, all_programs = [], []
        for stage in range(len(step.stages)):
            spec = core.exchange_spec(choice, stage)
            given = dataclasses.replace(core.schedule_options(choice, stage), **options)
            plans = [core.make_plan(layout, rank, spec) for rank in range(layout.size)]
            all_plans.append(plans)
            all_programs.append([core.make_program(choice.schedule, step, plan, given, stage) for plan in plans])
        if len(step.stages) > 1:
            return cls(layout, step, given, all_plans, all_programs)
        return cls(layout, step, given, *all_plans, *all_programs)

    def finding(self) -> str:
        """What the checker says."""
        return core.check_programs(self.layout, self.step, self.plans, self.programs)

    def broken(self, change, rank: int = 0) -> World:
        """The same with `change` applied to one rank's program."""
        programs = [change(p) if r == rank else p for r, p in enumerate(self.programs)]
        return dataclasses.replace(self, programs=programs)


[SUBSTEPS] = (field.words for field in core.fields() if field.name == "substeps")


def radius(step: core.Step) -> int:
    """Return how many layers around a point the sweeps of a step read."""
    return max(access.layers for stage in step.stages for sweep in stage.sweeps for access in sweep.reads)


def stages_of(name: str) -> int:
    """Return how many stages a step of an app has, in its form with most."""
    return max(len(step.stages) for step in core.find_app(name).steps.values())


@st.composite
def choices(draw, most_stages=99):
    """Draw a legal choice on a grid of few cells."""
    names = [name for name in core.app_names() if not core.is_declared(name) and stages_of(name) <= most_stages]
    app = core.find_app(draw(st.sampled_from(names)))
    form = draw(st.sampled_from(app.forms))
    dims = app.dims
    depth = draw(st.integers(1, 3))
    ranks = draw(st.lists(st.integers(1, 3), min_size=dims, max_size=dims).filter(lambda p: math.prod(p) <= 8))
    least = depth * radius(app.steps[form])
    cells = tuple(p * draw(st.integers(least, least + 3)) + draw(st.integers(0, p - 1)) for p in ranks)
    device = draw(st.sampled_from(["", "host"]))
    schedule = draw(st.sampled_from(core.schedule_names()))
    staged = device and not core.find_schedule(schedule).boxed
    choice = core.Choice(
        app=app.name,
        form=form,
        cells=cells,
        periodic=tuple(draw(st.lists(st.booleans(), min_size=dims, max_size=dims))),
        ranks=math.prod(ranks),
        process_grid="x".join(map(str, ranks)),
        threads=1 if staged else 2,
        device=device,
        strategy=draw(st.sampled_from(core.device_strategy_names() if staged else core.strategy_names())),
        schedule=schedule,
        walls=draw(st.integers(1, 2)),
        depth=depth,
        substeps=draw(st.sampled_from(SUBSTEPS)),
    )
    assume(not core.illegal(choice))
    return choice


@pytest.mark.ids("W12", "W13", "V9", "V11", "V23")
@given(choices(), st.data())
@settings(
    max_examples=2000 if LONG else 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_no_program_reads_what_is_not_yet_there(choice, data):
    steps = data.draw(st.integers(1, choice.depth))
    tiles = data.draw(st.integers(1, 5))
    barrier, pack_first = data.draw(st.booleans()), data.draw(st.booleans())
    world = World.of(choice, steps=steps, tiles=tiles, barrier=barrier, pack_first=pack_first)
    assert world.finding() == ""
    programs = world.programs if len(world.step.stages) == 1 else itertools.chain(*world.programs)
    assert all(program.device == bool(choice.device) for program in programs)


@pytest.mark.ids("SC1", "SC2")
@given(choices(most_stages=1), st.data())
@settings(
    max_examples=600 if LONG else 80,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_collective_rounds_give_every_rank_the_same_sends_and_waits(choice, data):
    world = World.of(choice, collective_rounds=True, barrier=data.draw(st.booleans()))
    assert world.finding() == ""
    for kind in ("pack", "d2h", "send", "wait", "h2d", "unpack"):
        assert len({len(indices(program, kind)) for program in world.programs}) == 1
    uneven = dataclasses.replace(core.exchange_spec(choice), high=(0, 0, 0))  # outer ranks only send, or only receive
    plans = [core.make_plan(world.layout, rank, uneven) for rank in range(world.layout.size)]
    programs = [core.make_program("bulk", world.step, plan, world.options) for plan in plans]
    assert len({len(indices(program, "send")) for program in programs}) == 1
    assert len({len(indices(program, "wait")) for program in programs}) == 1


# ---- broken on purpose -----------------------------------------------------------------------------------------------


def without(program: core.Program, index: int) -> core.Program:
    """Drop one operation; what waited for it waits for what it waited for."""
    gone = program.ops[index]

    def renumbered(after):
        expanded = {a for b in after for a in (gone.after if b == index else (b,))}
        return tuple(sorted(a - (a > index) for a in expanded))

    ops = [dataclasses.replace(op, after=renumbered(op.after)) for i, op in enumerate(program.ops) if i != index]
    return dataclasses.replace(program, ops=tuple(ops))


def with_op(program: core.Program, index: int, **changes) -> core.Program:
    """Change fields of one operation."""
    ops = list(program.ops)
    ops[index] = dataclasses.replace(ops[index], **changes)
    return dataclasses.replace(program, ops=tuple(ops))


def with_sweep(program: core.Program, index: int, **changes) -> core.Program:
    """Change fields of one sweep."""
    sweeps = list(program.sweeps)
    sweeps[index] = dataclasses.replace(sweeps[index], **changes)
    return dataclasses.replace(program, sweeps=tuple(sweeps))


def indices(program: core.Program, kind: str) -> list[int]:
    """Return the places of all operations of a kind."""
    return [i for i, op in enumerate(program.ops) if op.kind == kind]


def needy_sweeps(program: core.Program) -> list[int]:
    """Return the operations that sweep cells which need halos or an earlier sweep."""
    return [i for i in indices(program, "sweep") if _needs(program.sweeps[program.ops[i].target])]


def _needs(sweep: core.Sweep) -> bool:
    return sweep.part != "inner" or sweep.step > 0


SCHEDULES = ("bulk", "split", "divided", "interleaved", "comm-thread")
DEVICE_SCHEDULES = ("bulk", "streams")
BOX_SCHEDULES = ("box", "box-overlap")
CPU = {"threads": 2}
DEVICE = {"device": "host", "strategy": "ordered/staged"}
EVERYWHERE = [(s, CPU) for s in SCHEDULES] + [(s, DEVICE) for s in DEVICE_SCHEDULES]
BOXED = {"device": "host", "strategy": "ordered/p2p", "threads": 2}
EVERYWHERE += [(s, BOXED) for s in BOX_SCHEDULES]


def world(schedule: str, depth: int = 2, substeps: str = "full", where: dict = CPU, **options) -> World:
    """Four ranks in 2x2 on a 2D grid, all of them with messages in every round."""
    choice = core.Choice(
        app="laplace2d", cells=(14, 13), ranks=4, schedule=schedule, depth=depth, substeps=substeps, **where
    )
    assert core.illegal(choice) == ""
    return World.of(choice, **options)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", ["post", "pack", "send", "wait", "unpack", "complete", "sweep"])
def test_a_dropped_operation_is_found(schedule, kind):
    good = world(schedule)
    assert good.finding() == ""
    places = indices(good.programs[0], kind)
    assert places
    for index in places:
        assert good.broken(lambda p, i=index: without(p, i)).finding() != "", f"operation {index} is not missed"


def test_a_dropped_copy_is_found():
    choice = core.Choice(app="laplace2d", cells=(9, 12), ranks=2, process_grid="1x2", depth=2)
    good = World.of(choice)
    assert good.finding() == ""
    for index in indices(good.programs[1], "copy"):
        assert good.broken(lambda p, i=index: without(p, i), rank=1).finding() != ""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_sweep_that_waits_for_nothing_is_found(schedule):
    good = world(schedule)
    places = needy_sweeps(good.programs[0])
    assert places
    for index in places:
        assert good.broken(lambda p, i=index: with_op(p, i, after=())).finding() != ""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_sweep_moved_before_its_exchange_is_found_by_its_values(schedule):
    good = world(schedule, depth=1)
    for index in needy_sweeps(good.programs[0]):

        def first(program, i=index):
            ops = [dataclasses.replace(program.ops[i], after=())]
            order = [i] + [k for k in range(len(program.ops)) if k != i]
            place = {old: new for new, old in enumerate(order)}
            for old in order[1:]:
                op = program.ops[old]
                ops.append(dataclasses.replace(op, after=(0, *(place[a] for a in op.after if a != i))))
            return dataclasses.replace(program, ops=tuple(ops))

        assert "not there yet" in good.broken(first).finding()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_messages_in_flight_while_their_cells_are_overwritten_are_found(schedule):
    good = world(schedule)
    program = good.programs[0]
    (complete,) = indices(program, "complete")
    waiting = [i for i, op in enumerate(program.ops) if op.kind == "sweep" and complete in op.after]
    assert waiting
    for i in waiting:
        after = tuple(a for a in program.ops[i].after if a != complete)
        assert "nothing orders" in good.broken(lambda p, i=i, a=after: with_op(p, i, after=a)).finding()


def test_a_sweep_into_the_wrong_slot_is_found():
    good = world("bulk", depth=1)
    assert good.broken(lambda p: with_sweep(p, 0, into=0)).finding() != ""


def test_a_sweep_that_claims_too_much_is_found():
    good = world("bulk", depth=2)
    last = len(good.programs[0].sweeps) - 1
    claimed = good.programs[0].sweeps[last].region
    assert claimed != good.programs[0].sweeps[last].valid
    assert "not there yet" in good.broken(lambda p: with_sweep(p, last, valid=claimed)).finding()


def test_cells_left_out_are_found():
    def shortened(program):
        box = program.sweeps[0].region
        less = core.Box(box.lo, (box.hi[0] - 1, *box.hi[1:]))
        return with_sweep(program, 0, region=less, valid=less)

    assert "does not hold version" in world("bulk", depth=1).broken(shortened).finding()


def test_a_cycle_is_found():
    good = world("split")
    last = indices(good.programs[0], "sweep")[-1]
    assert "cycle" in good.broken(lambda p: with_op(p, 0, after=(last,))).finding()


def test_a_message_that_never_comes_is_a_deadlock():
    def silent(program):
        return with_op(program, indices(program, "send")[0], kind="progress", target=-1)

    assert "deadlock" in world("bulk", depth=1).broken(silent, rank=2).finding()


@pytest.mark.parametrize("schedule", ["split"])
def test_progress_calls_may_be_left_out(schedule):
    good = world(schedule)
    program = good.programs[0]
    while indices(program, "progress"):
        program = without(program, indices(program, "progress")[0])
    assert good.broken(lambda _: program).finding() == ""


@pytest.mark.parametrize("schedule", DEVICE_SCHEDULES)
@pytest.mark.parametrize("kind", ["post", "pack", "d2h", "send", "wait", "h2d", "unpack", "complete", "sweep"])
def test_an_operation_of_a_device_program_that_is_dropped_is_found(schedule, kind):
    good = world(schedule, where=DEVICE)
    assert good.finding() == ""
    places = indices(good.programs[0], kind)
    assert places
    for index in places:
        assert good.broken(lambda p, i=index: without(p, i)).finding() != "", f"operation {index} is not missed"


@pytest.mark.ids("V11")
@pytest.mark.parametrize("schedule", DEVICE_SCHEDULES)
def test_work_of_a_device_that_does_not_wait_for_another_lane_is_found(schedule):
    good = world(schedule, where=DEVICE)
    program = good.programs[0]
    sweeps = [i for i in needy_sweeps(program) if program.ops[i].lane == "sweep_stream"]
    for i in [*indices(program, "send"), *indices(program, "h2d"), *sweeps[:1]]:
        assert {program.ops[a].lane for a in program.ops[i].after} - {program.ops[i].lane}
        assert good.broken(lambda p, i=i: with_op(p, i, after=())).finding() != "", f"operation {i} need not wait"


TASKQUEUE = {"device": "host", "strategy": "ordered/taskqueue"}


@pytest.mark.ids("NT1")
@pytest.mark.parametrize("schedule", DEVICE_SCHEDULES)
@pytest.mark.parametrize("kind", ["post", "pack", "send", "wait", "unpack", "complete", "sweep"])
def test_an_operation_of_a_program_with_one_kernel_a_round_that_is_dropped_is_found(schedule, kind):
    good = world(schedule, where=TASKQUEUE)
    assert good.finding() == ""
    assert good.programs[0].signals
    places = indices(good.programs[0], kind)
    assert places
    for index in places:
        assert good.broken(lambda p, i=index: without(p, i)).finding() != "", f"operation {index} is not missed"


@pytest.mark.ids("NT1")
@pytest.mark.parametrize("kind", ["send", "unpack"])
def test_messages_that_do_not_wait_for_their_kernel_to_begin_or_to_end_are_found(kind):
    good = world("streams", where=TASKQUEUE)
    program = good.programs[0]
    for i in indices(program, kind):
        assert good.broken(lambda p, i=i: with_op(p, i, after=())).finding() != "", f"operation {i} need not wait"


def test_a_program_survives_the_way_to_c_and_back():
    for schedule, where in [*EVERYWHERE, ("streams", TASKQUEUE)]:
        good = world(schedule, depth=1, where=where)
        assert good.broken(dataclasses.replace).finding() == ""


@pytest.mark.parametrize("schedule", BOX_SCHEDULES)
@pytest.mark.parametrize("kind", ["gather", "transfer", "scatter", "unpack", "sweep"])
def test_an_operation_of_a_box_that_is_dropped_is_found(schedule, kind):
    good = world(schedule, depth=1, where=BOXED)
    assert good.finding() == ""
    places = indices(good.programs[0], kind)
    assert places
    for index in places:
        assert good.broken(lambda p, i=index: without(p, i)).finding() != "", f"operation {index} is not missed"


@pytest.mark.parametrize("schedule", BOX_SCHEDULES)
def test_a_ring_whose_stages_do_not_wait_for_each_other_is_found(schedule):
    good = world(schedule, depth=1, where=BOXED)
    program = good.programs[0]
    for i in [*indices(program, "transfer"), *indices(program, "scatter")]:
        finding = good.broken(lambda p, i=i: with_op(p, i, after=())).finding()
        same_lane = program.ops[i].lane == program.ops[i - 1].lane
        assert same_lane or "does not wait" in finding


@pytest.mark.parametrize("schedule", BOX_SCHEDULES)
def test_a_ring_that_lacks_cells_is_found(schedule):
    good = world(schedule, depth=1, where=BOXED)
    assert {ring.to_device for ring in good.programs[0].rings} == {True, False}
    for number in range(2):

        def thinner(program, number=number):
            rings = list(program.rings)
            rings[number] = dataclasses.replace(rings[number], boxes=rings[number].boxes[1:])
            return dataclasses.replace(program, rings=tuple(rings))

        assert good.broken(thinner).finding() != ""


def test_what_a_device_does_is_on_its_streams_and_the_rest_is_not():
    own = {kind: {"halo_stream"} for kind in ("pack", "unpack", "d2h", "h2d")}
    own["sweep"] = {"sweep_stream", "halo_stream"}
    for strategy, copies in (("ordered/staged", True), ("ordered/aware", False)):
        program = world("streams", where={"device": "host", "strategy": strategy}).programs[0]
        assert all(op.lane in own.get(op.kind, {"comm"}) for op in program.ops)
        assert {op.lane for op in program.ops if op.kind == "sweep"} == own["sweep"]
        assert bool(indices(program, "d2h")) == bool(indices(program, "h2d")) == copies


@pytest.mark.ids("W14")
def test_a_resident_program_wraps_around_and_neither_copies_nor_sends():
    choice = core.Choice(app="advection3d", cells=(6, 5, 4), schedule="resident", **DEVICE)
    program = World.of(choice).programs[0]
    assert program.wraps and [op.kind for op in program.ops] == ["sweep"]
    assert World.of(choice).finding() == ""
    halos = World.of(choice).broken(lambda p: dataclasses.replace(p, wraps=False))
    assert "not there yet" in halos.finding()


def test_programs_with_numbers_out_of_range_are_refused():
    good = world("bulk")
    for change in ({"target": 99}, {"after": (999,)}, {"slot": 7}):
        with pytest.raises(UsageProblem):
            good.broken(lambda p, c=change: with_op(p, 1, **c)).finding()
