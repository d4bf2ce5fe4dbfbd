"""Runs with fields on a device, here one imitated by threads of the CPU: every schedule, all records and messages."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import pytest

from haloscope import bridge, records
from haloscope.errors import UnavailableError
from haloscope.measure import devices, lists
from haloscope.records.rows import group_rows
from haloscope.report import tables
from plan_cases import program_of

QUICK = ("--steps", 2, "--repetitions", 1, "--warmup", 0, "--launches", 1, "--output", "r.jsonl")


@pytest.fixture
def measured(measure):
    """Return a function that measures `haloscope run LINE` on devices of the host and returns its records."""
    return lambda line: measure(f"{line} --device host", *QUICK)


def passed(found: list[dict]) -> bool:
    """Whether there are measurements and each gave the bytes of `reference`."""
    states = {r["verification"]["status"] for r in found if r["kind"] == "measurement"}
    return states == {"passed"}


# ---- same bytes ------------------------------------------------------------------------------------------------------


MIXED = "ordered/staged,direct:merged/staged:pageable,direct/aware"


@pytest.mark.ids("W15", "W22", "V12", "V24")
@pytest.mark.parametrize(
    ("app", "cells", "ranks", "strategies"),
    [
        ("laplace2d", "13x11", (1, 2, 3), "*"),
        ("laplace3d", "9x8x7", (2, 3), MIXED),
        ("advection3d", "9x8x7", (2, 3), MIXED),
    ],
)
def test_every_schedule_and_strategy_gives_the_bytes_of_the_reference_under_delays(
    measured, slow_streams, app, cells, ranks, strategies
):
    slow_streams(5)
    schedules = ("bulk", "streams", "faces", "faces-overlap")
    rank_counts = ",".join(map(str, ranks))
    found = measured(
        f"{app} --cells {cells} --ranks {rank_counts} --schedule {','.join(schedules)} --strategy {strategies}"
    )
    assert passed(found)
    plain = bridge.Choice(app=app, cells=tuple(map(int, cells.split("x"))), device="host")
    wanted = {
        (n, schedule, strategy)
        for n, schedule, strategy in itertools.product(ranks, schedules, lists.strategies(strategies, True))
        if not bridge.illegal(dataclasses.replace(plain, ranks=n, schedule=schedule, strategy=strategy))
    }
    assert {schedule for _, schedule, _ in wanted} == set(schedules)
    found = [r for r in found if r["kind"] == "measurement"]
    assert {(r["request"]["ranks"], r["request"]["schedule"], r["request"]["strategy"]) for r in found} == wanted
    assert len({r["verification"]["checksum"] for r in found}) == 1


@pytest.mark.parametrize("schedule", ["bulk", "streams", "resident"])
def test_a_program_launched_as_a_graph_gives_the_same_bytes(measured, slow_streams, schedule):
    slow_streams(20)
    found = measured(f"laplace2d --cells 15x13 --ranks 1 --schedule {schedule} --depth 1,3 --capture off,on")
    assert passed(found)
    assert len({(r["request"]["depth"], r["verification"]["checksum"]) for r in found}) == 2
    assert sorted((r["request"]["depth"], r["request"]["capture"]) for r in found) == [
        (1, False),
        (1, True),
        (3, False),
        (3, True),
    ]
    graphed = [r["phases_s"] for r in found if r["request"]["capture"]]
    assert all(phases["compute"]["max"] + phases["inner"]["max"] > 0 for phases in graphed)


@pytest.mark.ids("W14")
@pytest.mark.parametrize(("app", "cells"), [("laplace2d", "13x11"), ("advection3d", "9x8x7")])
def test_a_resident_run_launches_a_sweep_per_step_and_nothing_else(measured, slow_streams, app, cells):
    slow_streams(50)
    [found] = measured(f"{app} --cells {cells} --ranks 1 --schedule resident")
    assert passed([found])
    assert all(found["counts"][name] == 0 for name in ("exchanges", "messages", "copied_bytes"))
    idle = {name for name, spread in found["phases_s"].items() if spread["max"] == 0}
    assert idle >= {"pack", "d2h", "send", "wait", "h2d", "unpack", "copy"} and "compute" not in idle
    choice = bridge.Choice(
        app=app, cells=tuple(found["request"]["cells"]), schedule="resident", device="host", strategy="ordered/staged"
    )
    assert [op.kind for op in program_of(choice).ops] == ["sweep"]


@pytest.mark.ids("W15")
@pytest.mark.parametrize("schedule", ["bulk", "streams"])
def test_halos_cross_between_device_and_host_at_most_six_times_each_way(schedule):
    choice = bridge.Choice(
        app="advection3d", cells=(12, 12, 12), ranks=8, schedule=schedule, device="host", strategy="ordered/staged"
    )
    kinds = [op.kind for op in program_of(choice).ops]
    assert kinds.count("d2h") == kinds.count("h2d") == 3  # both faces of a dimension at once


@pytest.mark.ids("W15")
@pytest.mark.parametrize(("schedule", "first"), [("faces", "outer"), ("faces-overlap", "inner")])
def test_one_kernel_per_pair_of_faces_reads_and_writes_messages(schedule, first):
    choice = bridge.Choice(
        app="advection3d", cells=(12, 12, 12), ranks=8, schedule=schedule, device="host", strategy="direct/staged"
    )
    assert bridge.illegal(choice) == ""
    program = program_of(choice)
    kinds = [op.kind for op in program.ops]
    assert kinds.count("d2h") == kinds.count("h2d") == 1 and "unpack" not in kinds
    assert [s.part for s in program.sweeps].count("outer") == 3
    assert program.sweeps[0].part == first
    for sweep_of_faces in (s for s in program.sweeps if s.faces):
        assert sweep_of_faces.region.volume == sweep_of_faces.twin.volume > 0
    assert sum(s.cells for s in program.sweeps) == 6**3


@pytest.mark.ids("W15")
@pytest.mark.parametrize("schedule", ["faces", "faces-overlap"])
def test_kernels_of_faces_send_six_ordered_messages_and_pack_between_their_rounds(schedule):
    """Of the 27-point stencil: x messages are packed by sweeps, y and z ones hold cells of earlier messages."""
    choice = bridge.Choice(
        app="advection3d", cells=(12, 12, 12), ranks=8, schedule=schedule, device="host", strategy="ordered/staged"
    )
    assert bridge.illegal(choice) == ""
    program = program_of(choice)
    exchanged = [op for op in program.ops if op.kind not in ("sweep", "complete", "post")]
    of_a_round = ["pack", "d2h", "send", "wait", "h2d", "unpack"]
    assert [op.kind for op in exchanged] == (3 * of_a_round)[:-1]  # sweeps read the last messages where they are
    sent = [message for op in exchanged if op.kind == "send" for message in program.sets[op.target]]
    assert len(sent) == len(set(sent)) == 6


@pytest.mark.ids("V11", "V23", "V24")
@pytest.mark.parametrize(("app", "cells"), [("laplace2d", "29x23"), ("laplace3d", "14x13x12")])
def test_deep_halos_of_all_substeps_and_schedules_give_the_same_bytes(measured, slow_streams, app, cells):
    slow_streams(5)
    found = measured(
        f"{app} --cells {cells} --ranks 1,2 --schedule bulk,streams,resident --depth 3 --substeps * --pack *"
    )
    assert passed(found)
    good = [r["request"] for r in found if r["kind"] == "measurement"]
    assert {r["substeps"] for r in good} == {"full", "shrink", "blocked"}
    assert {(r["schedule"], r.get("pack")) for r in good} == {
        ("bulk", None),
        ("resident", None),
        ("streams", "first"),
        ("streams", "beside"),
    }
    assert len(good) == 3 * (4 + 3)  # resident on one rank only
    assert len({r["verification"]["checksum"] for r in found if r["kind"] == "measurement"}) == 1


@pytest.mark.ids("V24")
def test_every_kernel_gives_the_same_bytes_in_both_precisions(measured):
    found = measured("laplace2d --cells 29x23 --device-kernel naive,stream,shared --real *")
    assert passed(found) and len(found) == 6
    assert {r["request"]["device_kernel"] for r in found} == {"naive", "stream", "shared"}
    assert len({(r["request"]["real"], r["verification"]["checksum"]) for r in found}) == 2


@pytest.mark.ids("V24")
def test_kernels_in_three_dimensions_take_blocks_of_other_shapes(measured):
    found = measured(
        "advection3d --cells 14x10x9 --ranks 2 --form * --device-kernel naive,shared --device-block 8x4x3,32x8"
    )
    assert passed(found) and len(found) == 8
    assert {r["request"]["device_block"] for r in found} == {"8x4x3", "32x8"}
    table = group_rows(found)
    assert {"device_kernel", "device_block"} <= set(tables.varied(table)) and len(table) == 8


# ---- a block of the device in a box of the CPU -----------------------------------------------------------------------


def boxed(schedule: str, thickness: int) -> bridge.Choice:
    """A choice of blocks of 12^3 cells a rank."""
    return bridge.Choice("advection3d", (24, 24, 24), ranks=8, schedule=schedule, device="host", walls=thickness)


@pytest.mark.ids("W17", "W18", "W19")
@pytest.mark.parametrize(("app", "cells"), [("laplace2d", "25x23"), ("advection3d", "16x15x14")])
@pytest.mark.parametrize("late", ["", "--inject delay:rank=0,step=-1,seconds=0.001,op=send"])
def test_a_block_in_a_box_of_any_thickness_gives_the_same_bytes_under_delays(measured, slow_streams, app, cells, late):
    """Copies and kernels of the device are late in all runs, messages in the second half of them."""
    slow_streams(20)
    found = measured(
        f"{app} --cells {cells} --ranks 1,2 --schedule box,box-overlap --walls 1,2,3 "
        f"--strategy ordered/p2p,direct/persistent {late}"
    )
    assert passed(found) and len(found) == 2 * 2 * 3 * 2
    assert {r["request"]["walls"] for r in found} == {1, 2, 3}
    assert len({r["id"] for r in found}) == len(found)
    assert len({r["verification"]["checksum"] for r in found}) == 1


@pytest.mark.ids("W17")
@pytest.mark.parametrize("schedule", ["box", "box-overlap"])
@pytest.mark.parametrize("thickness", [1, 2, 3])
def test_the_cpu_computes_the_cells_of_the_walls_and_no_others(schedule, thickness):
    program = program_of(boxed(schedule, thickness))
    on_cpu = [op.lane in ("main", "comm") for op in program.ops]
    swept = {
        cpu: sum(
            program.sweeps[op.target].region.volume
            for op, lane in zip(program.ops, on_cpu, strict=True)
            if op.kind == "sweep" and lane == cpu
        )
        for cpu in (True, False)
    }
    assert swept[False] == program.block.volume == (12 - 2 * thickness) ** 3
    assert swept[True] == 12**3 - (12 - 2 * thickness) ** 3


@pytest.mark.ids("W18")
def test_no_work_of_the_device_waits_for_messages_when_all_overlap():
    ops = program_of(boxed("box-overlap", 1)).ops
    todo = [i for i, op in enumerate(ops) if op.kind == "sweep" and op.lane != "main"]
    assert {ops[i].lane for i in todo} == {"sweep_stream", "halo_stream"}
    needed: set[int] = set()
    while todo:
        i = todo.pop()
        earlier = [k for k in range(i) if ops[k].lane == ops[i].lane][-1:] if ops[i].lane != "main" else []
        todo += [a for a in (*ops[i].after, *earlier) if a not in needed]
        needed |= {*ops[i].after, *earlier}
    assert needed and not {ops[i].kind for i in needed} & {"pack", "send", "wait", "unpack"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--walls", 6], "walls of 6 layers leave no block for the device"),
        (["--walls", 0], "walls 0 is not possible"),
        (["--depth", 2], "use --depth 1"),
        (["--strategy", "ordered/staged"], "use a strategy for host memory, such as 'ordered/p2p'"),
        (["--strategy", "ordered/shared"], "fields in separate memory"),
    ],
)
def test_a_box_that_cannot_be_is_refused(haloscope, words, message):
    result = haloscope(
        "run", "laplace2d", "--cells", 12, "--ranks", 1, "--device", "host", "--schedule", "box", *words, *QUICK
    )
    assert result.code == 2 and message in result.err


# ---- several ranks and several devices -------------------------------------------------------------------------------


@pytest.mark.ids("W22", "V24")
def test_ranks_share_a_device_until_it_is_full_and_more_devices_make_room(haloscope, imitated):
    words = ("run", "laplace2d", "--cells", "64", "--ranks", 2, "--device", "host", *QUICK)
    imitated("bytes=80000")  # for one rank's share of the fields, 2 x 384 x 66 bytes and buffers, not for two
    crowded = haloscope(*words)
    assert crowded.code == 3
    assert "2 rank(s) a device" in crowded.err and "80000 are free" in crowded.err
    [record] = records.read("r.jsonl").records
    assert record["kind"] == "skipped" and "bytes are needed" in record["reason"]
    Path("r.jsonl").unlink()
    imitated("bytes=80000,devices=2")
    assert haloscope(*words).code == 0
    [record] = records.read("r.jsonl").records
    assert passed([record])
    assert record["environment"]["device"]["total_bytes"] == 80000
    assert record["environment"]["device"]["name"] == "imitated device 0"


def test_a_grid_too_large_for_the_device_is_refused_with_both_numbers_and_the_rest_is_measured(haloscope, imitated):
    imitated("bytes=50000")
    result = haloscope("run", "laplace2d", "--cells", "16,512", "--ranks", 1, "--device", "host", *QUICK)
    assert result.code == 0
    found = {tuple(r["request"]["cells"]): r for r in records.read("r.jsonl").records}
    assert passed([found[16, 16]])
    assert "50000 are free" in found[512, 512]["reason"]
    assert int(found[512, 512]["reason"].split(" bytes are needed")[0].split()[-1]) >= 2 * 8 * 512 * 512


# ---- records and messages -------------------------------------------------------------------------------------------


def test_a_record_says_which_device_and_how_long_its_parts_took(measured):
    [found] = measured("laplace2d --cells 32 --ranks 2 --schedule streams --barrier")
    assert found["request"]["device"] == "host" and found["request"]["strategy"] == "ordered/staged"
    assert found["request"]["device_kernel"] == "stream" and found["request"]["pack"] == "first"
    assert found["environment"]["device"]["multiprocessors"] >= 1 and "walls" not in found["request"]
    busy = {name for name, spread in found["phases_s"].items() if spread["max"] > 0}
    assert busy >= {"pack", "d2h", "h2d", "unpack", "inner", "outer", "desync"}


def test_runs_with_and_without_a_device_stand_in_one_table_and_can_be_compared(haloscope):
    words = ("run", "laplace2d", "--cells", "24", "--strategy", "ordered/p2p,*/staged")
    assert haloscope(*words[:4], "--device", "none,host", *QUICK).code == 0
    table = group_rows(records.read("r.jsonl").records)
    assert {(row.request["device"], row.request["strategy"]) for row in table} == {
        ("", "ordered/p2p"),
        ("host", "ordered/staged"),
    }
    assert len({row.id for row in table}) == 2 and "device" in tables.varied(table)
    assert tables.baseline(table).request["strategy"] == "ordered/p2p"
    for name in ("none", "host"):
        assert haloscope(*words[:4], "--device", name, *QUICK[:-1], f"{name}.jsonl").code == 0
    assert haloscope("compare", "none.jsonl", "host.jsonl").code == 2
    compared = haloscope("compare", "none.jsonl", "host.jsonl", "--ignore", "device,device_kernel,strategy")
    assert compared.code == 0 and "device=host" in compared.out


def test_auto_is_the_first_back_end_that_is_here(monkeypatch):
    here = {"cuda": "no driver", "hip": "", "host": ""}
    monkeypatch.setattr(devices, "backends", lambda: [{"name": n, "absent": a, "devices": []} for n, a in here.items()])
    assert devices.resolve("auto") == "hip"
    assert devices.resolve("none,auto,hip") == "none,hip"
    assert devices.resolve("none") == "none"
    with pytest.raises(UnavailableError, match="'cuda' is not available here: no driver"):
        devices.resolve("none,cuda")
    here |= dict.fromkeys(here, "no driver")
    with pytest.raises(UnavailableError, match="no device is available"):
        devices.resolve("auto")


def test_info_shows_the_devices_and_why_back_ends_are_absent(haloscope, imitated):
    imitated("devices=2")
    facts = json.loads(haloscope("info", "--json").out)
    shown = {entry["name"]: entry for entry in facts["devices"]}
    assert list(shown) == ["cuda", "hip", "host"]
    assert shown["host"]["state"] == "yes" and "imitated device 1" in shown["host"]["about"]
    for name in ("cuda", "hip"):
        assert shown[name]["state"] == "yes" or shown[name]["about"]
    assert "| host" in haloscope("info").out


def test_plan_shows_the_program_of_a_device_with_its_streams(haloscope):
    words = ("plan", "laplace2d", "--cells", "16", "--ranks", 2, "--device", "cuda", "--schedule", "streams")
    out = haloscope(*words).out
    assert "streams of a device (cuda) next to the host" in out
    assert "| sweep-stream | sweep " in out and "| halo-stream  | d2h " in out
    first, beside = (
        json.loads(haloscope(*words, "--json", "--pack", how).out)["stages"][0]["program"]
        for how in ("first", "beside")
    )
    inner = [next(op for op in p["ops"] if op["lane"] == "sweep_stream") for p in (first, beside)]
    assert len(inner[0]["after"]) == len(inner[1]["after"]) + 1  # waits for the packing too
    assert (
        "wrap around"
        in haloscope("plan", "laplace2d", "--cells", "16", "--device", "hip", "--schedule", "resident").out
    )
    assert "## Program of rank 0: bulk" in haloscope("plan", "laplace2d", "--cells", "16", "--device", "host").out
