"""Predictions with a device: a profile made by hand, and what a calibration measures."""

from __future__ import annotations

import json

import pytest

from haloscope import bridge
from haloscope.advice import advise
from haloscope.errors import UnavailableError
from haloscope.fit import calibrate_device
from haloscope.fit.counts import SECTOR, touched
from haloscope.measure import devices
from haloscope.model import predict
from haloscope.simulate import goal, simulate
from toy import changed

# ---- a profile made by hand ------------------------------------------------------------------------------------------


def line(fixed: float, slope: float, cells: bool = False) -> list[dict]:
    """One segment."""
    if cells:
        return [{"from_cells": 0, "to_cells": None, "fixed_s": fixed, "per_cell_s": slope}]
    return [{"from_bytes": 0, "to_bytes": None, "latency_s": fixed, "per_byte_s": slope}]


@pytest.fixture
def machine(toy):
    """The toy machine with two devices a node; two ranks on one take twice as long."""
    copies = {memory: {"1": line(1e-5, 1e-10)} for memory in ("pinned", "pageable")}
    device = {
        "backend": "host",
        "name": "toy device",
        "per_node": 2,
        "operation_s": 1e-6,
        "notice_s": 2e-6,
        "signal_s": 1.5e-6,
        "conflict": 0.5,
        "pack": {"1": line(5e-6, 1e-12)},
        "d2h": copies,
        "h2d": {**copies, "pageable": {"1": line(4e-5, 4e-10)}},
        "kernels": {"laplace2d/star/f64": {"1": line(4e-6, 1e-11, True), "2": line(8e-6, 2e-11, True)}},
        "fused": {"laplace2d/star/f64": {"4": {"1": line(4e-6, 5e-12, True)}}},
    }
    return changed(toy, lambda data: data.update(device=device))


PLAIN = {"app": "laplace2d", "cells": (2048, 2048), "ranks": 2, "process_grid": "1x2", "device": "host"}


def ask(machine, **more) -> predict.Prediction:
    """Predict without an interval; bulk and staged by default."""
    return predict.predict(bridge.Choice(**PLAIN | {"strategy": "ordered/staged"} | more), machine, samples=0)


def test_a_bulk_step_is_what_the_profile_adds_up_to(machine):
    """One rank a device; two rows of 2048 x 8 bytes each way, packed by one launch each way, copied by one call."""
    found = ask(machine)
    row = 2048 * 8
    flights = 2e-6 + row * 1.25e-10  # a message of more than 8 KiB on one socket
    assert found.terms["compute"] == pytest.approx(4e-6 + 2048 * 1024 * 1e-11)
    for way in ("d2h", "h2d"):
        assert found.terms[way] == pytest.approx(1e-5 + 2 * row * 1e-10)
    for packing in ("pack", "unpack"):
        assert found.terms[packing] == pytest.approx(5e-6 + 4 * row * 1e-12)
    assert found.busy["message"] == pytest.approx(
        flights
    )  # partly hidden by the copies between the rank's own two sides
    assert found.time_s == pytest.approx(sum(found.terms.values()))


def test_each_way_to_use_a_device_is_priced_by_its_own_program(machine):
    bulk = ask(machine)
    streams = ask(machine, schedule="streams")
    assert streams.time_s < bulk.time_s  # the interior hides the exchange
    pageable = ask(machine, strategy="ordered/staged:pageable")
    assert pageable.terms["h2d"] == pytest.approx(4e-5 + 2 * 2048 * 8 * 4e-10)
    mapped = ask(machine, strategy="ordered/ipc")
    assert mapped.terms["d2h"] == mapped.terms["h2d"] == 0 and mapped.time_s < bulk.time_s
    assert mapped.busy["message"] == pytest.approx(1e-6)  # an empty one
    alone = ask(machine, ranks=1, process_grid="1x1", schedule="resident")
    assert alone.terms["compute"] == pytest.approx(alone.time_s) == pytest.approx(4e-6 + 2048 * 2048 * 1e-11)
    blocked = ask(machine, depth=4, substeps="blocked")
    assert blocked.terms["compute"] < ask(machine, depth=4).terms["compute"]
    faces = ask(machine, schedule="faces")
    assert faces.terms["pack"] == faces.terms["unpack"] == 0
    assert faces.terms["d2h"] == pytest.approx(bulk.terms["d2h"])
    assert faces.terms["compute"] > bulk.terms["compute"]  # two launches, one of which packs
    box = ask(machine, strategy="ordered/p2p", schedule="box", walls=2)
    assert box.busy["d2h"] > 0 and box.busy["pack"] > 0  # cells that the two sides give each other


@pytest.mark.ids("W15")
def test_messages_that_pass_cells_on_are_packed_by_a_launch_of_their_own(machine):
    """Of the two rounds, the x messages of own cells are packed by sweeps, and the y messages are read in place."""
    split = {"strategy": "ordered:corners/staged", "ranks": 4, "process_grid": "2x2"}
    faces, bulk = ask(machine, schedule="faces", **split), ask(machine, **split)
    rows = 2 * (1024 + 2) * 8  # bytes of both y messages, with corners; each is read and written
    assert faces.terms["pack"] == pytest.approx(5e-6 + 2 * rows * 1e-12, rel=1e-3)
    assert 0 < faces.terms["unpack"] < bulk.terms["unpack"] and faces.terms["pack"] < bulk.terms["pack"]


@pytest.mark.ids("NT1")
def test_a_kernel_that_waits_costs_a_launch_and_signals_instead_of_copies(machine):
    row, bulk = 2048 * 8, ask(machine)
    tasks = ask(machine, strategy="ordered/taskqueue")
    assert tasks.terms["d2h"] == tasks.terms["h2d"] == 0 and tasks.time_s < bulk.time_s
    assert tasks.terms["pack"] == pytest.approx(5e-6 + 2 * row * 1e-10)  # into the host's memory, over a slower way
    assert tasks.terms["unpack"] == pytest.approx(1.5e-6 + 2 * row * 1e-10 - 1e-6)  # no launch
    slow = changed(machine, lambda data: data["device"].update(signal_s=1e-4))
    assert ask(slow, strategy="ordered/taskqueue").time_s == pytest.approx(tasks.time_s + 2 * (1e-4 - 1.5e-6))


def test_a_stream_that_waits_itself_costs_signals_instead_of_events_and_a_launch(machine):
    """Each way a word instead of the time in which the host notices (2 us) or returns (1 us)."""
    staged, stream = (ask(machine, strategy=f"ordered/staged{n}") for n in ("", ":stream"))
    assert stream.terms["d2h"] == staged.terms["d2h"]
    assert stream.terms["h2d"] == pytest.approx(staged.terms["h2d"] + 1.5e-6 - 1e-6)
    assert stream.time_s == pytest.approx(staged.time_s + (1.5e-6 - 2e-6) + (1.5e-6 - 1e-6))
    quick = changed(machine, lambda data: data["device"].update(signal_s=0.5e-6))
    assert ask(quick, strategy="ordered/staged:stream").time_s == pytest.approx(stream.time_s - 2e-6)


@pytest.mark.ids("NX2")
def test_parts_of_messages_hide_copies_and_flights_behind_packing_where_these_are_long(machine):
    wide = {"cells": (2**21, 64)}
    whole, parts = (ask(machine, strategy=f"ordered/taskqueue:device{n}", **wide) for n in ("", ",chunks=4"))
    assert parts.time_s < whole.time_s and parts.busy["message"] < whole.busy["message"]
    small, cut = (ask(machine, strategy=f"ordered/taskqueue:device{n}") for n in ("", ",chunks=16"))
    assert cut.time_s > small.time_s  # a copy a part costs more than it hides


def test_captured_programs_are_handed_over_at_once(machine):
    small = {"cells": (64, 64), "ranks": 1, "process_grid": "1x1", "schedule": "resident", "depth": 16}
    slow = changed(machine, lambda data: data["device"].update(operation_s=1e-4))  # handing over is all that counts
    assert ask(slow, **small).time_s == pytest.approx(1e-4, rel=0.1)
    assert ask(slow, **small, capture=True).time_s == pytest.approx(1e-4 / 16, rel=0.1)


WAYS = {
    "bulk": {},
    "pageable": {"strategy": "direct/staged:pageable"},
    "by words": {"strategy": "ordered/staged:stream", "schedule": "streams"},
    "written there": {"strategy": "ordered/ipc", "schedule": "streams"},
    "streams": {"schedule": "streams", "cells": (512, 512)},
    "four ranks, two a device": {"schedule": "streams", "ranks": 4, "process_grid": "2x2"},
    "one kernel a round": {"strategy": "ordered/taskqueue", "schedule": "streams"},
    "one kernel, messages in parts": {"strategy": "direct/taskqueue:device,chunks=4", "cells": (65536, 256)},
    "faces": {"schedule": "faces"},
    "faces-overlap": {"schedule": "faces-overlap"},
    "deep": {"schedule": "streams", "depth": 4},
    "on chip": {"depth": 4, "substeps": "blocked"},
    "box": {"strategy": "ordered/p2p", "schedule": "box", "walls": 2},
    "box-overlap": {"strategy": "ordered/p2p", "schedule": "box-overlap", "walls": 40},
    "small box": {"strategy": "ordered/p2p", "schedule": "box-overlap", "cells": (64, 64)},
    "resident": {"ranks": 1, "process_grid": "1x1", "schedule": "resident"},
    "captured": {
        "cells": (64, 64),
        "ranks": 1,
        "process_grid": "1x1",
        "schedule": "resident",
        "depth": 16,
        "capture": True,
    },
}


@pytest.mark.parametrize("way", WAYS)
def test_a_simulated_device_takes_as_long_as_predicted(machine, way):
    choice = bridge.Choice(**PLAIN | {"strategy": "ordered/staged"} | WAYS[way])
    found = simulate.simulate(choice, machine, options=simulate.SimulationOptions(steps=20 * choice.depth))
    assert found.time_s == pytest.approx(ask(machine, **WAYS[way]).time_s, rel=1e-3)
    kinds = {kind for kind, seconds in found.by_operation.items() if seconds > 0}
    assert ("d2h" in kinds) == ("staged" in choice.strategy and choice.ranks > 1)
    assert ("transfer" in kinds) == ("box" in choice.schedule)


def test_noise_on_a_device_makes_steps_longer_and_a_seed_repeats_it(machine):
    choice = bridge.Choice(**PLAIN | {"strategy": "ordered/staged", "schedule": "streams"})
    calm, noisy, again = (
        simulate.simulate(
            choice, machine, options=simulate.SimulationOptions(steps=40, noise_share=share, seed=3)
        ).time_s
        for share in (0.0, 0.1, 0.1)
    )
    assert calm < noisy == again


def test_goal_has_no_streams_and_says_so(machine, tmp_path):
    programs = simulate.programs_of(bridge.Choice(**PLAIN | {"strategy": "ordered/staged"}), machine)
    with (tmp_path / "x.goal").open("w") as file, pytest.raises(UnavailableError, match="GOAL has no streams"):
        goal.write(programs, 2, file)


def test_one_rank_needs_no_network(machine):
    alone = changed(machine, lambda data: data.pop("network"))
    assert ask(alone, ranks=1, process_grid="1x1", schedule="resident").time_s > 0
    with pytest.raises(UnavailableError, match="no section 'network'"):
        ask(alone)


def test_ranks_that_share_a_device_pay_for_it(machine):
    """Four ranks on a node with two devices."""
    shared = ask(machine, ranks=4, process_grid="1x4")
    assert shared.terms["compute"] == pytest.approx(8e-6 + 2048 * 512 * 2e-11)


def test_short_rows_cost_whole_sectors(machine):
    assert touched(800, 8) == 100 * SECTOR and touched(800, 800) == 800
    rows, columns = ask(machine), ask(machine, process_grid="2x1")
    assert columns.terms["pack"] > rows.terms["pack"]


def test_what_a_profile_does_not_know_is_refused(machine, toy):
    for profile, choice, reason in (
        (toy, {}, "has no section 'device'"),
        (machine, {"device": "cuda"}, "of back end 'host' \\(toy device\\), not 'cuda'"),
        (machine, {"strategy": "ordered/aware"}, "MPI takes from device memory"),
        (
            changed(machine, lambda data: data["device"].pop("signal_s")),
            {"strategy": "ordered/taskqueue"},
            "no cost of signals",
        ),
        (
            changed(machine, lambda data: data["device"].pop("signal_s")),
            {"strategy": "ordered/staged:stream"},
            "no cost of signals",
        ),
        (
            machine,
            {"app": "laplace3d", "cells": (64, 64, 64), "process_grid": ""},
            "no cost of kernel 'laplace3d/star/f64'",
        ),
        (machine, {"real": "f32", "depth": 4, "substeps": "blocked"}, "no cost of kernel 'laplace2d/star/f32'"),
    ):
        with pytest.raises(UnavailableError, match=reason):
            ask(profile, **choice)


def test_advice_ranks_the_ways_of_a_device_only(machine):
    advice = advise.advise(bridge.Choice(**PLAIN, strategy="ordered/staged"), machine, depths=(1, 4), samples=10)
    assert {c.choice.device for c in advice.candidates} == {"host"}
    used = {c.choice.strategy.partition("/")[2] for c in advice.candidates}
    assert {
        "staged",
        "staged:pageable",
        "staged:stream",
        "ipc",
        "taskqueue",
        "p2p",
    } <= used  # p2p: between the host's cells around a block
    assert advice.best.prediction.time_s == min(c.time_s for c in advice.candidates)
    assert any("on the device" in text for text in advice.changes) or len(advice.equals) > 1


def test_a_faster_shape_of_blocks_is_named_where_every_launch_found_it_so():
    def record(launch: str, seconds: float, **shape) -> dict:
        request = {
            "part": "device-kernel",
            "app": "a",
            "form": "f",
            "real": "f64",
            "ranks": 1,
            "substeps": "full",
            **shape,
        }
        return {
            "launch": {"id": launch},
            "request": request,
            "environment": {"device": {"on_node": 1}},
            "points": [{"cells": 100, "sweep_s": [seconds]}],
        }

    own = [record("1", 1.0), record("2", 2.0)]
    wide, tall = ({"device_kernel": "stream", "device_block": block} for block in ("64x1x8", "8x8x8"))
    steady = [record("1", 0.9, **wide), record("2", 1.8, **wide)]
    unsteady = [record("1", 0.5, **tall), record("2", 2.1, **tall)]
    assert calibrate_device.shapes(own, steady + unsteady) == {
        "a/f/f64": {"kernel": "stream", "block": "64x1x8", "times": pytest.approx(0.9)}
    }
    assert calibrate_device.shapes(own, unsteady) == {}


# ---- measured on an imitated device ----------------------------------------------------------------------------------


def test_a_calibration_measures_a_device_and_predictions_use_it(haloscope, calibrated_device):
    device = json.loads(calibrated_device.read_text())["device"]
    assert device["backend"] == "host" and device["operation_s"] > 0 and device["signal_s"] > 0
    assert set(device["pack"]) == {"1", "2"}
    assert set(device["kernels"]) >= {"laplace2d/star/f32", "laplace2d/star/f64"}
    words = ("laplace2d", "--cells", "500", "--device", "auto", "--profile", calibrated_device)
    found = haloscope("predict", *words, "--schedule", "bulk,streams", "--json")
    assert found.code == 0, found.err
    predictions = json.loads(found.out)["predictions"]
    assert len(predictions) == 2 and all(p["terms"]["d2h"] >= 0 and p["interval"] for p in predictions)
    advice = haloscope("advise", *words, "--depth", "1,2")
    assert advice.code == 0 and "--device host" in advice.out


def test_a_machine_without_a_card_has_no_device_to_calibrate(haloscope, tmp_path):
    if devices.card():
        pytest.skip("this machine has a card")
    result = haloscope("calibrate", "-o", str(tmp_path / "m.json"), "--sections", "device")
    assert result.code == 2 and "--device host" in result.err
