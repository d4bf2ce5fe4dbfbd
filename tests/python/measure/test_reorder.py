"""Ranks in other places: the same bytes and bits, fewer of them between nodes, in plans, runs, records, model and
simulator.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guest_cases import guest_cases
from haloscope import bridge
from haloscope.advice import advise
from haloscope.measure import launch
from haloscope.measure.request import Request
from haloscope.model import predict
from haloscope.simulate import simulate
from plan_cases import classes_of
from toy import TOY

# The best that 9 nodes can do with 6x6 blocks is a square of 2x2 each, with 8 sides.
DEALT = bridge.Choice(app="laplace2d", cells=(192, 192), ranks=36, process_grid="6x6", nodes=9, placement="round-robin")


def reordered(choice: bridge.Choice) -> bridge.Choice:
    return dataclasses.replace(choice, reorder="nodes")


@st.composite
def choices(draw):
    """A choice of up to 24 ranks that reorders them on emulated nodes."""
    grid = draw(st.lists(st.integers(1, 4), min_size=2, max_size=2).filter(lambda p: math.prod(p) > 1))
    ranks = math.prod(grid)
    return bridge.Choice(
        app="laplace2d",
        cells=tuple(n * draw(st.integers(3, 6)) + draw(st.integers(0, n - 1)) for n in grid),
        ranks=ranks,
        process_grid="x".join(map(str, grid)),
        periodic=draw(st.tuples(st.booleans(), st.booleans())),
        nodes=draw(st.integers(1, ranks)),
        placement=draw(st.sampled_from(("block", "round-robin"))),
        strategy=draw(st.sampled_from(("ordered/p2p", "direct/p2p"))),
        reorder="nodes",
    )


@given(choices())
@settings(max_examples=100, deadline=None)
def test_any_reordered_plans_fit_together_and_send_as_many_bytes_fewer_of_them_between_nodes(choice):
    layout, spec = bridge.make_layout(choice), bridge.exchange_spec(choice)
    plain = bridge.make_layout(dataclasses.replace(choice, reorder="none"))
    assert sorted(layout.places().tolist()) == list(range(choice.ranks))
    plans = [bridge.make_plan(layout, rank, spec) for rank in range(choice.ranks)]
    sent = sorted((p.rank, m.peer, m.tag, m.round, m.bytes) for p in plans for m in p.messages if m.out)
    assert sent == sorted((m.peer, p.rank, m.tag, m.round, m.bytes) for p in plans for m in p.messages if not m.out)
    assert bridge.plan_totals(layout, spec).bytes == bridge.plan_totals(plain, spec).bytes
    node = bridge.choice_nodes(choice)
    apart = sum(m.bytes for p in plans for m in p.messages if m.out and node[p.rank] != node[m.peer])
    assert bridge.bytes_between(layout, spec, node) == apart
    for members in classes_of(plans):
        for rank, peers in zip(members, bridge.peers(layout, plans[members[0]], members).tolist(), strict=True):
            assert peers == [m.peer for m in plans[rank].messages]


@given(choices())
@settings(max_examples=100, deadline=None)
def test_programs_of_any_reordered_ranks_read_nothing_too_early(choice):
    assert bridge.check(dataclasses.replace(choice, schedule="split")) == ""


def test_layouts_are_equal_where_ranks_are_in_the_same_places():
    in_turn = dataclasses.replace(DEALT, process_grid="1x36", placement="block")
    assert bridge.make_layout(reordered(in_turn)) == bridge.make_layout(in_turn)
    assert bridge.make_layout(reordered(DEALT)) != bridge.make_layout(DEALT)
    node = bridge.choice_nodes(DEALT)
    free = dataclasses.replace(DEALT, nodes=0)
    assert bridge.make_layout(reordered(free), node, node) == bridge.make_layout(reordered(DEALT))
    assert bridge.make_layout(reordered(free)) == bridge.make_layout(free), "no nodes are known"


def test_a_plan_says_how_many_bytes_go_between_nodes(haloscope):
    words = ("plan", "laplace2d", "--cells", "60", "-n", "36", "--process-grid", "6x6", "--nodes", "9")
    found = json.loads(haloscope(*words, "--reorder", "nodes", "--json").out)
    assert found["stages"][0]["between_nodes_bytes"] == 9 * 8 * 10 * 8  # nodes, sides, cells, bytes
    as_numbered = json.loads(haloscope(*words, "--json").out)
    assert as_numbered["stages"][0]["between_nodes_bytes"] > 9 * 8 * 10 * 8
    assert "| ... between nodes        |  5,760 |" in haloscope(*words, "--reorder", "nodes").out
    assert "between nodes" not in haloscope(*words[:-2]).out


@pytest.mark.parametrize("app", ["laplace2d", "advection3d", *guest_cases("REORDERED")])
def test_results_have_the_same_bits_and_records_say_what_is_left_between_nodes(app, tmp_path):
    cells, grid = ((18, 24), "2x2") if app == "laplace2d" else ((10, 16, 8), "2x2x1")  # x is the short way
    plain = bridge.Choice(app=app, cells=cells, process_grid=grid, ranks=4, nodes=2, placement="round-robin")
    strategies = ("ordered/p2p", "direct/shared:packed+p2p")
    requests = [
        Request.of(
            dataclasses.replace(plain, reorder=order, strategy=strategy), steps=2, repetitions=1, warmup=0, verify=3
        )
        for order in advise.ORDERS
        for strategy in strategies
    ]
    records = launch.run(launch.Job(requests, tmp_path / "r.jsonl", "launch-1")).records
    assert [r["verification"]["status"] for r in records] == ["passed"] * len(requests)
    assert len({r["verification"]["checksum"] for r in records}) == 1
    for request, record in zip(requests, records, strict=True):
        choice, counts = request.choice, record["counts"]
        stages = range(len(bridge.step_of(choice).stages))
        assert record["request"]["reorder"] == choice.reorder
        for name, order in (("between_nodes_bytes", choice.reorder), ("between_nodes_bytes_by_number", "none")):
            layout = bridge.make_layout(dataclasses.replace(choice, reorder=order))
            specs = [bridge.exchange_spec(choice, stage) for stage in stages]
            assert counts[name] == sum(bridge.bytes_between(layout, s, bridge.choice_nodes(choice)) for s in specs)
        fewer = counts["between_nodes_bytes"] < counts["between_nodes_bytes_by_number"]
        assert fewer == (choice.reorder == "nodes")


def test_ranks_dealt_to_nodes_are_predicted_and_simulated_as_if_they_had_been_placed_well(toy):
    good = dataclasses.replace(DEALT, nodes=0, placement="block")
    placed = predict.RunSettings("custom", custom=tuple((r % 6 // 2 + 3 * (r // 12), 0) for r in range(36)))
    dealt = predict.RunSettings("custom", custom=tuple((r % 9, 0) for r in range(36)))
    for price in (
        lambda choice, setting: predict.predict(choice, toy, setting, samples=0).time_s,
        lambda choice, setting: predict.predict(choice, toy, setting, samples=0, singly=True).time_s,
        lambda choice, setting: simulate.simulate(choice, toy, setting).time_s,
    ):
        assert price(reordered(good), dealt) == pytest.approx(price(good, placed), rel=1e-9)
        assert price(good, dealt) > price(good, placed)


def test_orders_that_differ_are_tried_and_others_once(toy):
    def tried(choice: bridge.Choice) -> tuple[str, ...]:
        arrangements = [advise.Arrangement(order, choice.process_grid) for order in advise.ORDERS]
        return tuple(one.reorder for one in advise.different(arrangements, choice, toy, predict.DEFAULTS))

    assert tried(DEALT) == ("none", "nodes")
    assert tried(dataclasses.replace(DEALT, nodes=1, placement="block", ranks=4, process_grid="2x2")) == ("none",)
    found = advise.advise(DEALT, toy, depths=(1,), samples=0)
    assert {c.choice.reorder for c in found.candidates} == {"none", "nodes"}


def test_advice_says_how_to_use_another_order(haloscope):
    words = ("advise", "laplace2d", "--cells", "4096x64", "-n", 16, "--process-grid", "4x4", "--depth", 1)
    output = haloscope(*words, "--profile", TOY).out
    assert re.search(r"\| reorder +\|", output)
    assert ".reorder = true}};" in output and "--reorder nodes" in output


def test_pairs_of_another_order_are_counted_where_its_ranks_are(haloscope):
    words = ("whatif", "laplace2d", "--cells", 256, "-n", 64, "--profile", TOY, "--json")
    found = json.loads(haloscope(*words, "--reorder", "none,nodes").out)["variants"]
    assert [(v["choice"].get("reorder", "none"), v["pairs_inside"], v["pairs_across"]) for v in found] == [
        ("none", 8, 16),  # a row of 8 around the grid
        ("nodes", 10, 12),  # 4x2
    ]


def test_tuning_tries_orders_on_stated_nodes():
    from haloscope.advice import tuning

    assert tuning.usual_orders("1,2") == "none,nodes"
    assert tuning.usual_orders("1") == tuning.usual_orders(None) == "none"
