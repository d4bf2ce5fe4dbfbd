"""What whole steps tell a calibration: the costs that made-up steps were made with are found again."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import zlib

import numpy as np
import pytest

from haloscope import bridge
from haloscope.fit import in_step, overlap, points, scaling
from haloscope.model import predict, profile
from toy import changed

LAUNCHES = 3
STEPS = {"per_operation_s": 5e-8, "waiting_share": 0.03, "per_piece_s": 3e-7, "per_piece_row_s": 6e-9}
PLAIN = {"per_message_s": 4e-7, "per_byte_s": 1e-10}
SLOW = {"per_message_s": 1e-6, "per_byte_s": 1e-10, "per_touched_byte_s": 5e-10}  # p2p's own part included
BLOCKS = [block for block in points.FULL.blocks if block[0] == "laplace2d"]


def truth(toy: profile.Profile) -> profile.Profile:
    """A machine whose steps cost more than their parts."""
    return changed(toy, lambda d: d.update(steps=dict(STEPS), transports={"p2p": dict(PLAIN), "slow": dict(SLOW)}))


def choice(app: str, side: int, grid: str, schedule: str = "bulk", transport: str = "p2p") -> bridge.Choice:
    """Two blocks side by side. A transport that this library does not have passes for a known one in plans."""
    return bridge.Choice(
        app=app,
        form="star",
        cells=(side, side),
        periodic=(True, True),
        ranks=2,
        process_grid=grid,
        schedule=schedule,
        strategy=f"ordered/{transport}",
    )


def measured(machine: profile.Profile, c: bridge.Choice, launch: int, noise: float = 0.0) -> dict:
    """The record of a step with the costs of a profile."""
    found = predict.predict(c, machine, samples=0)
    factor = math.exp(np.random.default_rng([launch, zlib.crc32(str(c).encode())]).normal(0, noise)) if noise else 1.0
    phases = {
        "send": found.exchange_s * factor,
        "compute": found.terms["compute"] * factor,
        "rest": found.terms["runner"],
    }
    request = {**dataclasses.asdict(c), "process_grid": [int(n) for n in c.process_grid.split("x")]}
    return {
        "kind": "measurement",
        "id": str(c),
        "launch": {"id": f"launch-{launch}"},
        "request": request,
        "phases_s": {name: dict.fromkeys(("min", "mean", "max"), s) for name, s in phases.items()},
    }


def records(machine: profile.Profile, choices, noise: float = 0.0) -> list[dict]:
    """Some steps in every launch."""
    return [measured(machine, c, launch, noise) for launch in range(LAUNCHES) for c in choices]


def bulk(transport: str = "p2p") -> list[bridge.Choice]:
    return [choice(*block, transport=transport) for block in BLOCKS]


@pytest.fixture
def machine(toy):
    return changed(truth(toy), lambda d: d["transports"].update({"persistent": d["transports"].pop("slow")}))


def fitted(toy, found) -> dict:
    data = copy.deepcopy(toy.data)
    in_step.fit(data, found)
    profile.checked(data)
    return data


def check_predictions(data: dict, machine: profile.Profile, choices, rel: float, key: str = "time_s") -> None:
    """Assert that a fitted profile predicts the times of a machine."""
    made = profile.Profile(data)
    for c in choices:
        found, expected = (getattr(predict.predict(c, p, samples=0), key) for p in (made, machine))
        assert found == pytest.approx(expected, rel=rel)


def test_what_the_program_and_plain_messages_cost_in_a_step_is_found(toy, machine):
    data = fitted(toy, records(machine, bulk()))
    assert data["steps"]["per_operation_s"] == pytest.approx(STEPS["per_operation_s"], rel=0.05)
    assert data["steps"]["waiting_share"] == pytest.approx(STEPS["waiting_share"], rel=0.05)
    check_predictions(data, machine, bulk(), rel=0.03)
    assert max(data["discrepancy"].values()) < 0.03


def test_how_long_a_slower_rank_stays_so_is_found_from_sweeps_that_last_longer(toy, machine):
    tired = changed(machine, lambda d: d["steps"].update(waiting_share=0.1, waiting_span_s=1e-3))
    choices = [dataclasses.replace(c, depth=depth) for c in bulk() for depth in (1, 4)]
    data = fitted(toy, records(tired, choices))
    assert data["steps"]["waiting_span_s"] == 1e-3
    assert data["steps"]["waiting_share"] == pytest.approx(0.1, rel=0.05)
    assert "waiting_span_s" not in fitted(toy, records(machine, choices))["steps"]


def test_what_whole_steps_save_is_found_as_the_model_takes_it(toy, machine):
    """Messages in flight together save a shorter flight once. Taken off once for each, this is 14 % off."""
    quicker = changed(machine, lambda d: d["transports"].update(p2p={"per_message_s": -3e-7}))
    check_predictions(fitted(toy, records(quicker, bulk())), quicker, bulk(), rel=0.08, key="exchange_s")


def test_a_transport_that_puts_fields_into_shared_memory_is_compared_with_plain_messages_too(toy, machine):
    """Records say where fields lay, which differs from those of plain messages."""
    own = [dataclasses.replace(c, memory="shared") for c in bulk("persistent")]
    data = fitted(toy, records(machine, [*bulk(), *own]))
    assert data["transports"]["persistent"]["per_message_s"] == pytest.approx(SLOW["per_message_s"], rel=0.1)


def one_node(data: dict) -> None:
    """Change a profile: messages inside a node alone, with two protocols, and copies."""
    data["network"]["classes"] = {
        "socket": {
            "segments": [
                {"from_bytes": 0, "to_bytes": 2000, "latency_s": 1e-6, "per_byte_s": 3e-10},
                {"from_bytes": 2000, "to_bytes": None, "latency_s": 8e-6, "per_byte_s": 1e-10},
            ]
        }
    }
    data["copy"] = {
        kind: {"1": [{"from_bytes": 0, "to_bytes": None, "latency_s": 1e-7, "per_byte_s": 4e-10}]}
        for kind in ("contiguous", "lines", "strided", "scattered")
    }


def test_a_step_like_one_that_was_measured_takes_what_that_took(toy):
    """One block takes longer than any cost explains: predictions for it follow, those for others do not."""
    node = changed(toy, one_node)
    machine, odd = truth(node), bulk()[3]
    found = records(machine, bulk())
    for record in found:
        if record["id"] == str(odd):
            record["phases_s"]["send"]["mean"] *= 1.6
    data = fitted(node, found)
    made = profile.Profile(data)
    alone = changed(made, lambda d: [costs.pop("corrections", None) for costs in d["transports"].values()])

    def off(profile: profile.Profile, c: bridge.Choice) -> float:
        wanted = predict.predict(c, machine, samples=0).exchange_s * (1.6 if c == odd else 1)
        return abs(math.log(predict.predict(c, profile, samples=0).exchange_s / wanted))

    assert off(made, odd) < 0.5 * off(alone, odd)
    assert np.mean([off(made, c) for c in bulk()]) < np.mean([off(alone, c) for c in bulk()])
    assert data["transports"]["p2p"]["corrections"]["launches"] == [LAUNCHES] * len(bulk())


def test_between_nodes_no_step_corrects_the_costs(toy, machine):
    data = fitted(toy, records(machine, bulk()))
    assert all("corrections" not in costs for costs in data["transports"].values())


@pytest.mark.parametrize("how", in_step.COPIED)
def test_a_transport_whose_ranks_copy_messages_themselves_is_told_from_one_that_sends_them(toy, how):
    """Its costs are instead of flights: as changes of those they would differ from size to size."""
    copied = {"copied": how, "per_message_s": 3e-7, "per_byte_s": 5e-11}
    node = changed(toy, one_node)
    machine = changed(truth(node), lambda d: d["transports"].update(persistent=copied))
    choices = [*bulk(), *bulk("persistent")]
    data = fitted(node, records(machine, choices))
    assert data["transports"]["persistent"]["copied"] == how
    check_predictions(data, machine, bulk("persistent"), rel=0.05, key="exchange_s")


def test_blocks_between_the_limits_of_the_cache_wait_longer(toy, machine):
    limits = {"from_block_bytes": 1e5, "to_block_bytes": 1e7}
    between = changed(machine, lambda d: (d["steps"].update(between_waiting_share=0.2), d.update(beyond_cache=limits)))
    data = fitted(changed(toy, lambda d: d.update(beyond_cache=limits)), records(between, bulk()))
    assert data["steps"]["between_waiting_share"] == pytest.approx(0.2, rel=0.1)
    assert data["steps"]["waiting_share"] == pytest.approx(STEPS["waiting_share"], rel=0.3)


def test_sweeps_packing_and_copies_take_what_steps_show_and_not_what_they_take_alone(toy, machine):
    """The tables of the profile are scaled: all else is fitted beside them."""
    factors = {"kernels": 1.25, "pack": 1.5, "copy": 0.5}

    def in_steps(record: dict) -> dict:
        terms = predict.predict(bridge.Choice.from_json(record["request"]), toy, samples=0).terms
        spent = {
            "compute": factors["kernels"] * terms["compute"],
            "copy": factors["copy"] * terms["copy"],
            **{name: factors["pack"] * terms[name] for name in ("pack", "unpack")},
        }
        return record | {
            "phases_s": record["phases_s"] | {name: dict.fromkeys(("mean",), s) for name, s in spent.items()}
        }

    found = [in_steps(record) for record in records(machine, bulk())]
    before = changed(toy, lambda d: d["network"]["classes"].pop("network")).data | {"copy": toy.data["pack"]}
    data = copy.deepcopy(before)
    scaled = next(terms for terms in in_step.fit(data, found) if terms.name == scaling.NAME)
    assert scaled.values == pytest.approx({f"{table}_share": factor for table, factor in factors.items()}, rel=1e-6)
    for table, factor in factors.items():
        for inner, was in zip(scaling._segments(data[table]), scaling._segments(before[table]), strict=True):
            for name in set(scaling.FIELDS) & set(was):
                assert inner[name] == pytest.approx(factor * was[name])


def test_core_time_that_messages_between_nodes_take_from_sweeps_is_found(toy, machine):
    def one_rank_a_node(data):
        data["machine"] |= {"nodes": 2, "sockets_per_node": 1, "cores_per_socket": 1}
        data["network"]["classes"] = {"network": data["network"]["classes"]["network"]}

    costs = {"interrupt_per_message_s": 2e-6, "interrupt_per_byte_s": 1e-9}
    cluster = changed(toy, one_rank_a_node)
    interrupted = changed(changed(machine, one_rank_a_node), lambda d: d["transports"].update(p2p=PLAIN | costs))
    data = fitted(cluster, records(interrupted, [*bulk(), *bulk("persistent")]))
    for name, value in costs.items():
        assert data["transports"]["p2p"][name] == pytest.approx(value, rel=0.05)
    check_predictions(data, interrupted, bulk(), rel=0.03)


def test_a_transport_is_told_by_the_same_blocks_with_plain_messages(toy, machine):
    data = fitted(toy, records(machine, [*bulk(), *bulk("persistent")]))
    found = data["transports"]["persistent"]
    assert found["per_touched_byte_s"] == pytest.approx(SLOW["per_touched_byte_s"], rel=0.05)
    check_predictions(data, machine, bulk("persistent"), rel=0.03)


def test_a_transport_like_plain_messages_has_their_cost(toy, machine):
    same = changed(machine, lambda d: d["transports"].update(persistent=dict(PLAIN)))
    made = profile.Profile(fitted(toy, records(same, [*bulk(), *bulk("persistent")], noise=0.01)))
    for plain, other in zip(bulk(), bulk("persistent"), strict=True):
        assert predict.predict(other, made, samples=0).time_s == pytest.approx(
            predict.predict(plain, made, samples=0).time_s, rel=0.02
        )


def test_pieces_of_a_block_are_told_from_the_whole(toy, machine):
    pairs = [choice(*block, schedule=schedule) for block in BLOCKS for schedule in ("bulk", "split")]
    found = fitted(toy, records(machine, pairs))["steps"]
    assert found["per_piece_s"] == pytest.approx(STEPS["per_piece_s"], rel=0.05)
    assert found["per_piece_row_s"] == pytest.approx(STEPS["per_piece_row_s"], rel=0.05)


def test_noise_is_in_the_discrepancy_and_widens_intervals(toy, machine):
    quiet, loud = (fitted(toy, records(machine, bulk(), noise)) for noise in (0.01, 0.3))
    assert loud["discrepancy"]["compute"] > 5 * quiet["discrepancy"]["compute"]
    sure, unsure = (
        predict.predict(bulk()[3], changed(machine, lambda d, x=data: d.update(discrepancy=x["discrepancy"])))
        for data in (quiet, loud)
    )
    assert unsure.interval is None or unsure.interval[1] - unsure.interval[0] > sure.interval[1] - sure.interval[0]


def test_a_block_counts_once_for_sweeps_however_many_transports_it_was_measured_with():
    """One block is 20 % off in its sweeps, one right; one of three exchanges is 20 % off in the middle of its
    launches.
    """
    small, large = (bridge.Choice(app="laplace2d", cells=(n, n), ranks=2) for n in (64, 256))
    other = dataclasses.replace(small, strategy="ordered/persistent")
    off = math.log(1.2)
    measured = [(small, 1.0, 1.2), (other, 1.2, 1.2), (other, 1.2, 1.2), (other, 3.0, 1.2), (large, 1.0, 1.0)]
    steps = [
        in_step.Step(f"launch-{k}", choice, exchange, compute, 0.0, {})
        for k, (choice, exchange, compute) in enumerate(measured)
    ]
    found = in_step.discrepancy(steps, lambda choice: (1.0, 1.0))
    assert found == pytest.approx({"exchange": off / math.sqrt(3), "compute": off / math.sqrt(2)})
    assert in_step.discrepancy(steps[:1], lambda choice: (1.0, 1.2)) == pytest.approx({"exchange": 0, "compute": 0})


def test_without_steps_or_without_kernels_nothing_is_added(toy, machine):
    assert "steps" not in fitted(changed(toy, lambda d: d.pop("steps", None)), [])
    lacking = changed(toy, lambda d: d.pop("kernels"))
    assert in_step.fit(copy.deepcopy(lacking.data), records(machine, bulk())) == []


def test_the_part_of_a_flight_that_overlap_cannot_hide_is_found_from_steps(toy):
    """Steps of a machine that holds 70 % of each flight, in two launches of slightly different pace; nothing to copy
    meanwhile.
    """
    machine = changed(toy, lambda data: data.update(overlap={"held_of": {"p2p": {"socket": 0.7}}}))
    steps = []
    for side, schedule, launch in itertools.product((64, 256, 1024), ("bulk", "split"), (1, 2)):
        choice = bridge.Choice(
            app="laplace2d", cells=(side, side), ranks=2, process_grid="1x2", schedule=schedule, periodic=(False, True)
        )
        found = predict.predict(choice, machine, samples=0)
        parts = [t * (1 + launch / 1000) for t in (found.exchange_s, found.terms["compute"], 0.0)]
        steps.append(in_step.Step(str(launch), choice, *parts, {}))
    data = copy.deepcopy(toy.data)
    terms = overlap.fit(data, steps)
    assert data["overlap"] == {"held_of": {"p2p": {"socket": pytest.approx(0.7)}}}
    assert terms.interval[overlap.NAME] == (pytest.approx(0.7), pytest.approx(0.7))
    assert changed(toy, lambda d: d.update(overlap=data["overlap"]))  # is valid


def test_without_steps_that_overlap_nothing_is_said_of_overlap(toy):
    data = copy.deepcopy(toy.data)
    assert overlap.fit(data, []) is None and data == toy.data
