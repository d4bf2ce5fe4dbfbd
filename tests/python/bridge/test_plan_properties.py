"""Whatever the layout and the exchange: both ends agree, every halo point is filled once, with the right point."""

from __future__ import annotations

import collections
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haloscope import bridge
from long_run import LONG
from plan_cases import Case, cases, exchange, halo, identity, quantities, staggered

thorough = settings(max_examples=1000 if LONG else 60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def filled_boxes(plan: bridge.Plan):
    """Yield (quantity, box) of everything that the exchange writes on this rank."""
    for m in plan.messages:
        if not m.out:
            yield from ((r.quantity, r.box) for r in m.regions)
    yield from ((c.quantity, c.to) for c in plan.copies)


@given(cases())
@thorough
def test_what_one_rank_sends_is_what_its_peer_receives(case):
    layout, plans = case.layout, case.plans()
    for plan in plans:
        for m in plan.sent():
            twins = [t for t in plans[m.peer].messages if not t.out and (t.peer, t.tag) == (plan.rank, m.tag)]
            assert len(twins) == 1
            assert (twins[0].bytes, twins[0].round) == (m.bytes, m.round)
            assert [(r.quantity, r.box.shape) for r in twins[0].regions] == [
                (r.quantity, r.box.shape) for r in m.regions
            ]
            for mine, theirs in zip(m.regions, twins[0].regions, strict=True):
                for corner in ("lo", "hi"):
                    a, b = getattr(mine.box, corner), getattr(theirs.box, corner)
                    quantity = plan.spec.quantities[mine.quantity]
                    assert identity(layout, plan.rank, a, quantity) == identity(layout, m.peer, b, quantity)
    assert sum(m.out for p in plans for m in p.messages) == sum(not m.out for p in plans for m in p.messages)


@given(cases())
@thorough
def test_tags_are_unique_between_an_ordered_pair_of_ranks(case):
    for plan in case.plans():
        keys = [(m.out, m.peer, m.tag) for m in plan.messages]
        assert len(keys) == len(set(keys))
        assert all(m.peer != plan.rank for m in plan.messages)


@pytest.mark.ids("W9")
@given(cases())
@thorough
def test_messages_and_copies_fill_every_halo_point_once(case):
    for plan in case.plans():
        writes = collections.Counter((q, p) for q, box in filled_boxes(plan) for p in box.cells())
        expected = {(q, p) for q in range(len(plan.spec.quantities)) for p in halo(plan, q)}
        assert set(writes) == expected
        assert set(writes.values()) <= {1}


@pytest.mark.ids("W9")
@pytest.mark.parametrize(
    "ranks", [(1, 1, 1), (1, 1, 2), (1, 1, 3), (1, 1, 7), (2, 2, 2), (2, 2, 3)], ids=lambda ranks: str(math.prod(ranks))
)
def test_six_ordered_messages_fill_all_26_regions_with_the_right_points(ranks):
    """A field of global indices. Blocks are longest in x; a task alone in a dimension is its own neighbour there."""
    spec = bridge.ExchangeSpec(
        low=(1, 1, 1), high=(1, 1, 1), quantities=(bridge.Quantity("u"),), pattern="ordered", corners=True
    )
    case = Case((5, 7, 15), ranks, (True, True, True), spec)
    plans = case.plans()
    for plan, field in zip(plans, exchange(case.layout, plans), strict=True):
        owned = plan.owned[0]
        regions = collections.Counter(
            tuple((p >= hi) - (p < lo) for p, lo, hi in zip(point, owned.lo, owned.hi, strict=True))
            for _, point in field
        )
        assert len(regions) == 27 and sum(regions.values()) == math.prod(n + 2 for n in owned.shape)
        assert all(
            value == identity(case.layout, plan.rank, point, spec.quantities[0]) for (_, point), value in field.items()
        )
        assert len(plan.sent()) == 2 * sum(n > 1 for n in ranks)


@pytest.mark.ids("W9", "V6", "V7")
@given(cases(most_ranks=12))
@thorough
def test_every_halo_point_gets_the_global_point_that_it_mirrors(case):
    layout, plans = case.layout, case.plans()
    for plan, field in zip(plans, exchange(layout, plans), strict=True):
        fields = plan.spec.quantities
        assert all(value == identity(layout, plan.rank, point, fields[q]) for (q, point), value in field.items())


@given(cases())
@thorough
def test_bytes_are_those_of_the_regions(case):
    for plan in case.plans():
        for m in plan.messages:
            assert m.bytes == sum(r.box.volume * plan.spec.quantities[r.quantity].element_bytes for r in m.regions) > 0


@given(cases())
@thorough
def test_totals_are_the_sums_over_the_plans_of_all_ranks(case):
    plans = case.plans()
    totals = bridge.plan_totals(case.layout, case.spec)
    sent = [p.sent() for p in plans]
    size = [sum(m.bytes for m in s) for s in sent]
    assert (totals.ranks, totals.messages, totals.bytes) == (len(plans), sum(map(len, sent)), sum(size))
    assert (totals.rank_bytes_min, totals.rank_bytes_max, totals.worst_rank) == (
        min(size),
        max(size),
        size.index(max(size)),
    )
    assert (totals.rank_messages_min, totals.rank_messages_max) == (min(map(len, sent)), max(map(len, sent)))
    peers = [len({m.peer for m in s}) for s in sent]
    assert (totals.rank_peers_min, totals.rank_peers_max) == (min(peers), max(peers))
    assert totals.largest_message_bytes == max((m.bytes for s in sent for m in s), default=0)
    copied = [(c, p.spec.quantities[c.quantity].element_bytes) for p in plans for c in p.copies]
    assert (totals.copies, totals.copy_bytes) == (len(copied), sum(c.to.volume * b for c, b in copied))
    cells = [p.cells[0] * p.cells[1] * p.cells[2] for p in plans]
    assert (totals.rank_cells_min, totals.rank_cells_max) == (min(cells), max(cells))


@pytest.mark.ids("V7")
@given(cases(dims=st.just(2), corners=True))
@thorough
def test_ordered_and_direct_fill_the_same_points_and_move_the_same_bytes_in_2d(case):
    both = []
    for pattern in ("ordered", "direct"):
        spec = bridge.ExchangeSpec(**{**vars(case.spec), "pattern": pattern})
        both.append([bridge.make_plan(case.layout, r, spec) for r in range(case.layout.size)])
    for ordered, direct in zip(*both, strict=True):
        points = [{(q, p) for q, box in filled_boxes(plan) for p in box.cells()} for plan in (ordered, direct)]
        assert points[0] == points[1]
        if not any(ordered.own_neighbour):  # else corners are copies in one pattern and messages in the other
            received = [sum(m.bytes for m in plan.messages if not m.out) for plan in (ordered, direct)]
            assert received[0] == received[1]


@given(cases(merge_peers=True))
@thorough
def test_merged_plans_have_one_message_per_peer_and_round_and_group(case):
    groups = {"all": 1, "type": len({q.type for q in case.spec.quantities}), "none": len(case.spec.quantities)}
    for plan in case.plans():
        counts = collections.Counter((m.peer, m.round) for m in plan.sent())
        assert all(count <= groups[case.spec.merge] for count in counts.values())


def davis_bytes(cells, neighbours, h, direction, group) -> int:
    """Return the bytes of one message: Davis 2017, eq. 5.33 to 5.41."""

    def extent(d, centring):
        if d == direction:
            return h
        forwarded = h * sum(neighbours[d]) if d < direction else 0
        return cells[d] + forwarded + staggered(centring, d)

    return sum(q.element_bytes * extent(0, q.centring) * extent(1, q.centring) * extent(2, q.centring) for q in group)


@given(
    cases(
        dims=st.just(3),
        pattern="ordered",
        corners=True,
        merge_peers=False,
        merge="type",
        order=(0, 1, 2),
        own_widths=False,
    ),
    st.integers(1, 3),
    st.lists(quantities, min_size=1, max_size=4),
)
@thorough
def test_bytes_follow_the_closed_formula_of_the_2017_study(case, h, fields):
    cells = tuple(n + 3 * p for n, p in zip(case.cells, case.ranks, strict=True))
    layout = bridge.Layout(cells, case.ranks, (False,) * 3)
    spec = bridge.ExchangeSpec(**{**vars(case.spec), "low": (h,) * 3, "high": (h,) * 3, "quantities": tuple(fields)})
    for rank in range(layout.size):
        plan = bridge.make_plan(layout, rank, spec)
        for m in plan.sent():
            kind = fields[m.regions[0].quantity].type
            group = [q for q in fields if q.type == kind]
            assert m.bytes == davis_bytes(plan.cells, plan.has_neighbour, h, m.round, group)


@given(cases())
@settings(max_examples=60, deadline=None)
def test_every_cell_has_one_owner(case):
    layout = case.layout
    owned = [cell for rank in range(layout.size) for cell in layout.owned(rank).cells()]
    assert sorted(owned) == sorted(bridge.Box((0, 0, 0), (*case.cells, 1, 1)[:3]).cells())
