"""What models read of plans: classes of ranks with equal plans, their peers, and how messages lie in memory."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings

from haloscope import bridge
from haloscope.errors import UsageError
from plan_cases import cases, classes_of


@given(cases(most_ranks=24))
@settings(max_examples=150, deadline=None)
def test_ranks_with_equal_plans_have_their_peers_in_the_same_order(case):
    plans = case.plans()
    for members in classes_of(plans):
        found = bridge.peers(case.layout, plans[members[0]], members)
        for rank, peers in zip(members, found.tolist(), strict=True):
            assert peers == [m.peer for m in plans[rank].messages]


@given(cases())
@settings(max_examples=150, deadline=None)
def test_traffic_of_a_message_has_its_bytes_in_whole_stretches(case):
    plan = case.plans()[0]
    for message, traffic in zip(plan.messages, plan.traffic, strict=True):
        shortest = min(r.box.shape[0] * plan.spec.quantities[r.quantity].element_bytes for r in message.regions)
        assert traffic.bytes == message.bytes
        assert shortest <= traffic.run_bytes <= message.bytes
        assert not traffic.in_place or len(message.regions) > 1 or traffic.run_bytes == message.bytes


def test_faces_lie_in_memory_as_x_y_and_z_order_has_it():
    layout = bridge.Layout((24, 24, 24), (2, 2, 2), (False,) * 3)
    spec = bridge.ExchangeSpec(pattern="direct", corners=False)
    plan = bridge.make_plan(layout, 0, spec)
    by_face = {m.regions[0].box.shape: t for m, t in zip(plan.messages, plan.traffic, strict=True) if m.out}
    assert by_face[(1, 12, 12)].run_bytes == 8
    assert by_face[(12, 1, 12)].run_bytes == by_face[(12, 12, 1)].run_bytes == 96
    assert not any(traffic.in_place for traffic in by_face.values())


def test_a_face_with_all_its_halos_is_one_stretch_and_needs_no_packing():
    choice = bridge.Choice(app="advection3d", cells=(10, 10, 40), ranks=2, process_grid="1x1x2")
    plan = bridge.make_plan(bridge.make_layout(choice), 0, bridge.exchange_spec(choice))
    assert plan.messages and all(traffic.in_place for traffic in plan.traffic)


def test_ranks_and_nodes_that_there_are_not_are_refused():
    choice = bridge.Choice(app="laplace2d", cells=(16, 16), ranks=4)
    layout, spec = bridge.make_layout(choice), bridge.exchange_spec(choice)
    plan = bridge.make_plan(layout, 0, spec)
    for call in (
        lambda: bridge.make_plan(layout, 4, spec),
        lambda: bridge.make_plan(layout, -1, spec),
        lambda: bridge.peers(layout, plan, [4]),
        lambda: bridge.choice_nodes(dataclasses.replace(choice, nodes=5)),
    ):
        with pytest.raises(UsageError):
            call()


def test_nodes_of_a_choice_are_blocks_or_dealt_in_turn():
    choice = bridge.Choice(app="laplace2d", cells=(16, 16), ranks=5, nodes=2, process_grid="1x5")
    assert bridge.choice_nodes(choice).tolist() == [0, 0, 0, 1, 1]
    assert bridge.choice_nodes(dataclasses.replace(choice, placement="round-robin")).tolist() == [0, 1, 0, 1, 0]
    assert bridge.choice_nodes(dataclasses.replace(choice, nodes=0)).tolist() == [0] * 5
