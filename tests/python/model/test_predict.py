"""Predictions from a hand-made profile: hand-computed cases, rules that hold for all inputs, classes."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guest_cases import guest_cases
from haloscope import bridge
from haloscope.errors import UnavailableError, UsageError
from haloscope.fit import counts
from haloscope.model import predict as model
from toy import changed, kernel_row, make_uncertain

DEFAULTS = model.RunSettings()


def ask(toy, setting=DEFAULTS, singly=False, **choice) -> model.Prediction:
    """Predict a choice without an interval."""
    return model.predict(bridge.Choice(**choice), toy, setting, samples=0, singly=singly)


PLAIN = {"app": "laplace2d", "cells": (256, 256), "ranks": 4, "process_grid": "2x2"}
SCHEDULES = ("bulk", "split", "divided", "interleaved", "comm-thread")


# ---- cases computed by hand ------------------------------------------------------------------------------------------


def test_a_bulk_step_on_four_ranks_is_what_the_profile_adds_up_to(toy):
    """Blocks of 128 x 128 on one socket with all 4 cores active. A star at depth 1 needs no corners: two columns, then
    two rows of 128 x 8 bytes each way; rows are one contiguous run and go in place, columns are packed strided."""
    found = ask(toy, **PLAIN)
    size = 128 * 8
    column = 1e-7 + size / 1e9
    message = 1e-6 + size / 4e9
    expected = {"compute": 1e-7 + 128 * 128 * 2e-9, "pack": 2 * column, "unpack": 2 * column, "message": 2 * message}
    assert found.terms == pytest.approx(dict.fromkeys(found.terms, 0.0) | expected)
    assert found.time_s == pytest.approx(sum(expected.values()))
    assert (found.messages, found.bytes) == (4, 4 * size)
    assert found.exchange_s == pytest.approx(4 * column + 2 * message)


def test_a_deep_halo_costs_one_exchange_of_thicker_layers_and_wider_sweeps(toy):
    """Depth 3, full substeps: three sweeps of (128 + 4)^2; columns of 3 x 128 and three rows of 128 + 6 with corners,
    which are packed too, since a row of the field is longer: it ends with its cache line."""
    found = ask(toy, **PLAIN, depth=3)
    column, row = 3 * 128 * 8, 3 * 134 * 8
    packing = 2 * (1e-7 + column / 1e9) + 2 * (1e-7 + row / 4e9)
    messages = 2e-6 + (column + row) / 4e9
    sweeps = 3 * (1e-7 + 132 * 132 * 2e-9)
    assert found.time_s == pytest.approx((2 * packing + messages + sweeps) / 3)
    assert found.terms["compute"] == pytest.approx(sweeps / 3)


def test_shrinking_substeps_sweep_less(toy):
    full, shrink = (ask(toy, **PLAIN, depth=4, substeps=substeps) for substeps in ("full", "shrink"))
    saved = sum(134**2 - (128 + 2 * left) ** 2 for left in range(4)) * 2e-9 / 4
    assert full.time_s - shrink.time_s == pytest.approx(saved)


def test_a_row_counts_as_whole_vectors_and_some_cells_more(toy):
    """Blocks of 130 x 128: 17 vectors of 8 cells, and 5 cells."""
    machine = changed(toy, lambda d: d.update(rows={"laplace2d/star/f64": {"lanes": 8, "cells": 5}}))
    found = ask(machine, **PLAIN | {"cells": (260, 256)})
    assert found.terms["compute"] == pytest.approx(1e-7 + 128 * (136 + 5) * 2e-9)


def around(fixed_s: float):
    """A change of a profile: sweeps that store around the cache cost 9 ns a cell."""
    law = [{"from_cells": 0, "to_cells": None, "fixed_s": fixed_s, "per_cell_s": 9e-9}]
    return lambda d: d.update(streaming={"laplace2d/star/f64": {"4": law}})


@pytest.mark.parametrize(
    ("side", "stores", "per_cell"),
    [(900, "auto", 2e-9), (1100, "auto", 9e-9), (900, "streaming", 9e-9), (1100, "cached", 2e-9)],
)
def test_sweeps_of_large_fields_cost_what_stores_around_the_cache_do(toy, side, stores, per_cell):
    found = ask(changed(toy, around(0)), **PLAIN | {"cells": (2 * side, 2 * side), "stores": stores})
    assert found.terms["compute"] == pytest.approx(side**2 * per_cell, rel=1e-3)


def test_a_piece_of_a_large_block_does_not_pay_what_a_regime_begins_with(toy):
    """The law of large blocks may begin high up; only the time of a call is a piece's own."""
    machine = changed(toy, around(1e-2))
    whole, split = (ask(machine, **PLAIN | {"cells": (2200, 2200), "schedule": s}) for s in ("bulk", "split"))
    assert split.terms["compute"] == pytest.approx(whole.terms["compute"], rel=1e-3)


PAIR = {"app": "laplace2d", "cells": (256, 512), "ranks": 2, "process_grid": "1x2"}


def seen(**changes):
    """A change of a profile: a step exactly like PAIR was measured, and took 2 and 1.5 times what costs say."""
    plan = bridge.make_plan(bridge.make_layout(bridge.Choice(**PAIR)), 0, bridge.exchange_spec(bridge.Choice(**PAIR)))
    row = {
        "message_bytes": 2048,
        "run_bytes": 2048,
        "block_bytes": counts.slot_bytes(plan),
        "depth": 1,
        "in_place": True,
        "launches": 1e6,
        "exchange": 2.0,
        "sweeps": 1.5,
    } | changes
    return lambda d: d["transports"].update(p2p={"corrections": {name: [value] for name, value in row.items()}})


@pytest.mark.parametrize("schedule", ["bulk", "split"])
def test_a_step_like_a_measured_one_takes_as_much_longer_as_that_did(toy, schedule):
    plain, corrected = (ask(machine, **PAIR, schedule=schedule) for machine in (toy, changed(toy, seen())))
    assert corrected.terms["compute"] == pytest.approx(1.5 * plain.terms["compute"], rel=1e-4)
    if schedule == "bulk":
        assert corrected.exchange_s == pytest.approx(2 * plain.exchange_s, rel=1e-4)
        for term in ("pack", "unpack", "copy", "message", "synchronisation"):
            assert corrected.terms[term] == pytest.approx(2 * plain.terms[term], rel=1e-4), term


def test_the_fewer_launches_saw_a_step_the_less_others_follow_it(toy):
    plain = ask(toy, **PAIR).exchange_s
    ratios = [ask(changed(toy, seen(launches=n)), **PAIR).exchange_s / plain for n in (0.3, 3, 300)]
    assert ratios[0] == pytest.approx(2**0.5)
    assert ratios == sorted(ratios) and ratios[-1] < 2


@pytest.mark.parametrize(
    "other", [{"in_place": False}, {"message_bytes": 2048 * 64}, {"block_bytes": 64}, {"depth": 128}]
)
def test_a_step_unlike_all_measured_ones_costs_what_the_costs_say(toy, other):
    found = ask(changed(toy, seen(**other, launches=5)), **PAIR)
    assert found.time_s == pytest.approx(ask(toy, **PAIR).time_s, rel=1e-3)


def test_messages_between_nodes_follow_no_step_inside_one(toy):
    found, plain = (ask(machine, **PAIR, nodes=2) for machine in (changed(toy, seen()), toy))
    assert found.terms == plain.terms


def test_a_transport_with_the_costs_of_plain_messages_follows_their_steps(toy):
    def describe(data):
        seen()(data)
        data["transports"].update(persistent={"plain": True}, shared={})

    machine = changed(toy, describe)
    times = {
        name: ask(machine, **PAIR, strategy=f"ordered/{name}").exchange_s for name in ("p2p", "persistent", "shared")
    }
    assert times["persistent"] == times["p2p"] == pytest.approx(2 * times["shared"], rel=1e-4)


def test_measured_steps_of_unequal_numbers_are_refused(toy):
    def shorten(data):
        seen()(data)
        data["transports"]["p2p"]["corrections"]["sweeps"] = []

    with pytest.raises(UsageError, match="sweeps: this must be a list of 1 numbers"):
        ask(changed(toy, shorten), **PAIR)


def test_messages_to_another_node_cost_what_the_network_does(toy):
    near, far = ask(toy, **PLAIN), ask(toy, **PLAIN, nodes=4)
    size = 128 * 8
    assert far.terms["message"] - near.terms["message"] == pytest.approx(2 * (3e-6 + size / 1e9 - size / 4e9))
    assert far.terms["compute"] == pytest.approx(1e-7 + 128 * 128 * 1e-9)  # one core busy per socket instead of four
    assert far.nodes == 4
    assert far.worst_node_bytes == 4 * size


def test_ranks_of_a_node_share_its_injection_rate(toy):
    """Two nodes of two ranks in rows: each rank sends two rows of 8192 bytes away, at once."""
    choice = {"app": "laplace2d", "cells": (2048, 64), "ranks": 4, "process_grid": "2x2", "nodes": 2}
    slow = changed(toy, lambda d: d["network"].update(injection_bytes_per_s=1e8))
    found = ask(slow, **choice)
    row, column = 1024 * 8, 32 * 8
    expected = (1e-6 + column / 4e9) + (4e-6 + 4 * row / 1e8)
    assert found.terms["message"] == pytest.approx(expected)
    assert ask(toy, **choice).terms["message"] < expected


def test_messages_at_the_same_time_contend_as_the_profile_says(toy):
    """Fully shared and half duplex: eight columns on one socket take eight times one."""

    def contend(data):
        data["network"]["classes"]["socket"]["contention"] = {"shared": 1.0, "duplex": 2.0}

    free, shared = ask(toy, **PLAIN), ask(changed(toy, contend), **PLAIN)
    assert shared.terms["message"] == pytest.approx(8 * free.terms["message"])


def test_latencies_of_messages_at_the_same_time_overlap_where_the_profile_has_their_gap(toy):
    def contend(data, gap):
        data["network"]["classes"]["socket"]["contention"] = {"shared": 1.0, "duplex": 2.0, "gap_s": gap}

    alone, rounds, latency = ask(toy, **PLAIN).terms["message"], 2, 1e-6
    for gap in (0.0, 3e-7, latency):
        found = ask(changed(toy, lambda data, gap=gap: contend(data, gap)), **PLAIN)
        assert found.terms["message"] == pytest.approx(alone + 7 * (alone + rounds * (gap - latency)))


def test_a_transport_is_nothing_but_its_description(toy):
    plain = ask(toy, **PLAIN)
    fence = ask(toy, **PLAIN, strategy="ordered/rma-fence")
    assert fence.time_s - plain.time_s == pytest.approx(2 * 2e-6)
    persistent = ask(toy, **PLAIN, strategy="ordered/persistent")
    saved = 2 * 2e-7 + 2e-7  # packing both columns, then the flights of the rows, which travel at the same time
    assert plain.time_s - persistent.time_s == pytest.approx(saved - 5e-7)


def test_own_neighbours_are_copied_and_hidden_behind_messages_in_flight(toy):
    found = ask(toy, app="laplace2d", cells=(256, 256), ranks=2, process_grid="1x2")
    assert found.busy["copy"] > 0
    assert found.time_s == pytest.approx(sum(found.terms.values()))


def test_reductions_are_added_per_step(toy):
    plain, reduced = ask(toy, **PLAIN), ask(toy, model.RunSettings(reductions=2), **PLAIN)
    assert reduced.terms["reduction"] == pytest.approx(2 * (2e-6 + 1.8e-5 / 9))
    assert reduced.time_s - plain.time_s == pytest.approx(reduced.terms["reduction"])


# ---- rules -----------------------------------------------------------------------------------------------------------

choices = st.builds(
    dict,
    app=st.just("laplace2d"),
    cells=st.tuples(st.integers(64, 300), st.integers(64, 300)),
    periodic=st.tuples(st.booleans(), st.booleans()),
    ranks=st.sampled_from((1, 2, 4, 6, 12, 16)),
    strategy=st.sampled_from(("ordered/p2p", "direct/p2p", "direct:merged/p2p", "ordered:self-first/persistent")),
    depth=st.integers(1, 4),
    substeps=st.sampled_from(("full", "shrink")),
    nodes=st.sampled_from((0, 1)),
)


@given(choices, st.sampled_from(("bulk", "split", "comm-thread")), st.sampled_from(("fill", "balanced", "by-socket")))
@settings(max_examples=60, deadline=None)
def test_classes_of_ranks_give_what_all_ranks_priced_singly_give(toy, choice, schedule, rule):
    choice = choice | {"schedule": schedule, "threads": 2 if schedule == "comm-thread" else 1}
    setting = model.RunSettings(rule)
    classes, singly = (ask(toy, setting, singly=one, **choice) for one in (False, True))
    assert singly.classes == choice["ranks"]
    # Whether a call for progress comes just before or after a message has arrived is decided anew in every round.
    tolerance = 0.01 if schedule == "split" else 1e-4
    assert classes.time_s == pytest.approx(singly.time_s, rel=tolerance)


@pytest.mark.parametrize(
    "changes",
    [
        *guest_cases("WITHOUT_PRICE").values(),
        {"piece": 2, "threads": 2},
    ],
)
def test_what_no_profile_has_a_price_for_is_refused(toy, changes):
    with pytest.raises(UnavailableError, match="freed temporaries, nor of pieces"):
        ask(toy, **PLAIN | changes)


@pytest.mark.parametrize(("schedule", "tolerance"), [("bulk", 0.01), ("split", 0.02)])
def test_classes_that_are_left_out_would_not_change_the_time(toy, schedule, tolerance):
    """Nodes of 36 cores whose messages contend: nearly every rank has a load of its own."""

    def contend(data):
        data["machine"]["cores_per_socket"] = 18
        for near in data["network"]["classes"].values():
            near["contention"] = {"shared": 0.3, "duplex": 1.2}

    machine = changed(toy, contend)
    choice = {"cells": (301, 299, 293), "periodic": (False, True, False), "ranks": 336, "process_grid": "6x7x8"}
    few = ask(machine, **choice, schedule=schedule)
    assert few.classes > 100
    everyone = ask(machine, **choice, schedule=schedule, singly=True)
    assert few.time_s == pytest.approx(everyone.time_s, rel=tolerance)


@given(choices, st.sampled_from(SCHEDULES))
@settings(max_examples=60, deadline=None)
def test_terms_add_up_and_are_not_negative(toy, choice, schedule):
    choice = choice | {"schedule": schedule, "threads": 2}
    if bridge.illegal(bridge.Choice(**choice)):
        return
    found = ask(toy, **choice)
    assert sum(found.terms.values()) == pytest.approx(found.time_s)
    assert min(found.terms.values()) >= 0


@given(choices, st.sampled_from(("split", "interleaved")))
@settings(max_examples=60, deadline=None)
def test_overlap_that_costs_nothing_is_never_slower_than_bulk(toy, choice, schedule):
    """Kernels without a fixed cost and of one price, so that cutting a sweep into pieces is free."""

    def free(data):
        for table in data["kernels"].values():
            for rows in table.values():
                rows[0]["fixed_s"] = 0.0

    machine = changed(toy, free)
    choice = choice | {"schedule": schedule}
    if bridge.illegal(bridge.Choice(**choice)):
        return
    overlapped, bulk = ask(machine, **choice), ask(machine, **(choice | {"schedule": "bulk"}))
    assert overlapped.time_s <= bulk.time_s * (1 + 1e-9)
    assert overlapped.time_s >= bulk.terms["compute"] * (1 - 1e-9)


@given(choices, st.floats(1.0, 5.0))
@settings(max_examples=40, deadline=None)
def test_more_latency_or_less_bandwidth_never_makes_a_step_shorter(toy, choice, factor):
    before = ask(toy, **choice).time_s

    for key in ("latency_s", "per_byte_s"):

        def slower(data, key=key):
            for near in data["network"]["classes"].values():
                for row in near["segments"]:
                    row[key] *= factor

        assert ask(changed(toy, slower), **choice).time_s >= before * (1 - 1e-9)


# ---- many ranks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["ordered/p2p", "direct/p2p"])
@pytest.mark.parametrize(("ranks", "grid"), [(2048, "8x16x16"), (100_000, "40x50x50")])
def test_many_ranks_are_few_classes(toy, ranks, grid, strategy):
    """Which is what makes their prediction quick: figure `predict`."""
    choice = bridge.Choice(
        cells=(1111, 1001, 999), periodic=(False, True, False), ranks=ranks, process_grid=grid, strategy=strategy
    )
    found = model.predict(choice, toy)
    assert 8 < found.classes < 200
    assert found.time_s == pytest.approx(sum(found.terms.values()))


# ---- intervals, ranges, refusals -------------------------------------------------------------------------------------


def uncertain(data):
    """Give the kernel's cost per cell 10 % and the latency 50 % to either side."""
    make_uncertain(kernel_row(data), "per_cell_s", 0.1)
    make_uncertain(data["network"]["classes"]["socket"]["segments"][0], "latency_s", 0.5)


def test_the_interval_follows_from_those_of_the_parameters(toy):
    found = model.predict(bridge.Choice(**PLAIN), changed(toy, uncertain), samples=400)
    assert found.interval[0] < found.time_s < found.interval[1]
    alone = 0.1 * found.terms["compute"]  # the latency adds a little
    assert (found.interval[1] - found.interval[0]) / 2 == pytest.approx(alone, rel=0.25)
    again = model.predict(bridge.Choice(**PLAIN), changed(toy, uncertain), samples=400)
    assert again.interval == found.interval
    assert model.predict(bridge.Choice(**PLAIN), toy).interval is None


def test_it_says_where_it_extrapolates(toy):
    def narrow(data):
        data["kernels"]["laplace2d/star/f64"]["4"][0].update(from_cells=20000)
        data["network"]["classes"]["socket"]["segments"][0].update(from_bytes=2000)

    assert ask(toy, **PLAIN).outside == ()
    texts = ask(changed(toy, narrow), **PLAIN).outside
    assert any("cells per thread of 16384" in text and "20000" in text for text in texts)
    assert any("message bytes (socket) of 1024" in text for text in texts)


def test_more_nodes_than_the_machine_has_are_remarked(toy):
    assert any("5 nodes are needed" in note for note in ask(toy, **(PLAIN | {"ranks": 40, "process_grid": ""})).notes)


def test_overlap_without_a_measured_efficiency_is_remarked_and_one_is_used(toy):
    assert any("overlap" in note for note in ask(toy, **PLAIN, schedule="split").notes)
    half = changed(toy, lambda d: d.update(overlap={"efficiency": {"split": 0.0}}))
    found = ask(half, **PLAIN, schedule="split")
    assert found.notes == ()
    assert found.terms["message"] > 0


def test_inside_a_node_the_bytes_of_a_message_cannot_be_hidden_and_between_nodes_all_of_it(toy):
    size = 128 * 8
    near, far = ask(toy, **PLAIN, schedule="split"), ask(toy, **PLAIN, nodes=4, schedule="split")
    assert near.terms["message"] == pytest.approx(2 * size / 4e9)
    assert far.terms["message"] == pytest.approx(0.0, abs=1e-12)
    none = changed(toy, lambda d: d.update(overlap={"held": {"socket": 0.0}}))
    assert ask(none, **PLAIN, schedule="split").terms["message"] == pytest.approx(0.0, abs=1e-12)


def test_calls_for_progress_cost_what_the_profile_says(toy):
    calling = changed(toy, lambda d: d.update(overlap={"call_s": 1e-7}))
    before, after = (ask(machine, **PLAIN, schedule="split") for machine in (toy, calling))
    assert after.terms["synchronisation"] - before.terms["synchronisation"] == pytest.approx(7 * 1e-7)


def test_a_piece_of_a_block_costs_per_cell_what_the_block_does(toy):
    """Blocks from 10000 cells on come from memory at ten times the price; the tiles of `split` are smaller."""

    def cached(data):
        rows = data["kernels"]["laplace2d/star/f64"]["4"]
        large = dict(rows[0], from_cells=10000, per_cell_s=2e-8)
        data["kernels"]["laplace2d/star/f64"]["4"] = [dict(rows[0], to_cells=10000), large]

    found = ask(changed(toy, cached), **PLAIN, schedule="split")
    pieces = 8 + 4  # tiles and the shell
    assert found.terms["compute"] == pytest.approx(128 * 128 * 2e-8 + pieces * 1e-7, rel=1e-6)


def test_large_messages_advance_only_in_calls_where_the_profile_says_so(toy):
    late = changed(toy, lambda d: d.update(overlap={"rendezvous_from_bytes": 512}))
    choice = PLAIN | {"schedule": "split", "tiles": 1}
    assert ask(late, **choice).time_s > ask(toy, **choice).time_s


@pytest.mark.parametrize(
    ("error", "words", "choice"),
    [
        (UnavailableError, "no cost of kernel 'laplace3d/star/f64'", {"app": "laplace3d", "cells": (64,) * 3}),
        (UnavailableError, "no cost of transport 'neighbor'", {"strategy": "ordered/neighbor"}),
        (UsageError, "interleaved", {"strategy": "direct/p2p", "schedule": "interleaved"}),
    ],
)
def test_what_cannot_be_predicted_is_refused_with_the_reason(toy, error, words, choice):
    with pytest.raises(error, match=words):
        ask(toy, **(PLAIN | {"process_grid": ""} | choice))


def test_a_profile_without_packing_is_named_once_something_is_packed(toy):
    bare = changed(toy, lambda d: d.pop("pack"))
    with pytest.raises(UnavailableError, match="no section 'pack'"):
        ask(bare, **PLAIN)


def test_stretches_of_memory_have_four_classes():
    found = [counts.stride_class(run, pitch) for pitch in (1024, 4096) for run in (8, 63, 64, 4095, 4096)]
    longer = ["lines"] * 2 + ["contiguous"]
    assert found == ["strided"] * 2 + longer + ["scattered"] * 2 + longer


def test_columns_cost_more_where_each_cell_lies_in_a_page_of_its_own(toy):
    law = {"from_bytes": 0, "to_bytes": None, "latency_s": 0.0, "per_byte_s": 0.0}
    machine = changed(
        toy,
        lambda d: d["pack"].update(
            strided={"1": [law | {"per_row_s": 1e-9}]}, scattered={"1": [law | {"per_row_s": 5e-9}]}
        ),
    )

    def packing(*cells):
        choice = {"cells": cells, "process_grid": "2x1", "ranks": 2, "periodic": (True, False)}
        return ask(machine, **(PLAIN | choice)).terms["pack"]

    assert packing(256, 600) == pytest.approx(2 * 600 * 1e-9)  # to both sides
    assert packing(2048, 600) == pytest.approx(2 * 600 * 5e-9)


@pytest.mark.parametrize(("side", "beyond"), [(100, 0), (200, 0.5), (400, 1)])
def test_of_a_block_that_is_partly_beyond_the_cache_a_part_costs_more(toy, side, beyond):
    law = {"from_bytes": 0, "to_bytes": None, "latency_s": 0.0, "per_byte_s": 0.0}
    tables = [{"pack": {"strided": {"1": [law | {"per_row_s": row_s}]}}} for row_s in (1e-9, 5e-9)]
    choice = {"cells": (2 * side, side), "process_grid": "2x1", "ranks": 2, "periodic": (True, False)}
    block = counts.slot_bytes(
        bridge.make_plan(
            bridge.make_layout(chosen := bridge.Choice(**(PLAIN | choice))), 0, bridge.exchange_spec(chosen)
        )
    )
    limits = {0: (2 * block, 3 * block), 0.5: (block / 2, 2 * block), 1: (block / 4, block)}[beyond]
    far = tables[1] | {"from_block_bytes": limits[0], "to_block_bytes": limits[1]}
    machine = changed(toy, lambda d: d["pack"].update(tables[0]["pack"]) or d.update(beyond_cache=far))
    packing = ask(machine, **(PLAIN | choice)).terms["pack"]
    assert packing == pytest.approx(2 * side * (1e-9 + 4e-9 * beyond))
    assert counts.beyond_cache(block, machine.cache_limits) == pytest.approx(beyond)


def test_settings_reach_the_prediction(toy):
    spread = ask(toy, model.RunSettings("by-socket"), **PLAIN)
    filled = ask(toy, **PLAIN)
    fewer = ask(toy, model.RunSettings(active=1), **PLAIN)
    assert filled.terms["compute"] > spread.terms["compute"] > fewer.terms["compute"]
    custom = ask(toy, model.RunSettings("custom", custom=[(r, 0) for r in range(4)]), **PLAIN)
    assert custom.nodes == 4
    assert dataclasses.replace(custom, notes=()).terms["compute"] == pytest.approx(1e-7 + 128 * 128 * 1e-9)
