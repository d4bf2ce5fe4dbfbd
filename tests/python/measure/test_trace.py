"""What really ran when: the trace of every operation, against what the schedules promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from haloscope import bridge
from plan_cases import program_of
from test_timeline import clock_tolerance_us

CELLS = (16, 16, 16)


def traced(
    haloscope, schedule: str, *words, threads: int = 1, depth: int = 1
) -> tuple[list[list[dict]], bridge.Program]:
    """Trace a run on 2 ranks; return the events of each program execution of rank 0, in time order, and its program."""
    result = haloscope(
        "run advection3d --cells 16x16x16 --process-grid 2x1x1 --steps 6 --repetitions 1 --launches 1 --trace t.json "
        f"--schedule {schedule} --threads {threads} --depth {depth}",
        *words,
    )
    assert result.code == 0, result.err
    events = [
        e for e in json.loads(Path("t.json").read_text()) if e["ph"] == "X" and e["pid"] == 0 and "op" in e["args"]
    ]
    executions: dict[int, list[dict]] = {}
    for event in sorted(events, key=lambda e: e["ts"]):
        executions.setdefault(event["args"]["step"], []).append(event)
    choice = bridge.Choice(cells=CELLS, ranks=2, process_grid="2x1x1", schedule=schedule, threads=threads, depth=depth)
    return list(executions.values()), program_of(choice)


def part(event: dict, program: bridge.Program) -> str:
    """pack, send, ...; for sweeps full, inner or outer."""
    op = program.ops[event["args"]["op"]]
    return program.sweeps[op.target].part if op.kind == "sweep" else op.kind


def begin(events, program, *names) -> float:
    return min(e["ts"] for e in events if part(e, program) in names)


def end(events, program, *names) -> float:
    return max(e["ts"] + e["dur"] for e in events if part(e, program) in names)


def test_every_operation_of_the_program_is_traced_once_per_execution(haloscope):
    executions, program = traced(haloscope, "bulk")
    assert len(executions) == 6
    for events in executions:
        assert sorted(e["args"]["op"] for e in events) == list(range(len(program.ops)))
        assert all(e["name"] == program.ops[e["args"]["op"]].kind and e["dur"] >= 0 for e in events)


@pytest.mark.ids("W11", "V8")
def test_bulk_computes_only_after_its_halos_have_arrived(haloscope):
    for events in traced(haloscope, "bulk")[0]:
        kinds = [e["name"] for e in events]
        assert kinds.index("unpack") < kinds.index("sweep")


@pytest.mark.ids("W12")
def test_interleaved_computes_between_the_start_and_the_completion_of_an_exchange(haloscope):
    executions, program = traced(haloscope, "interleaved")
    for events in executions:
        sent, awaited = end(events, program, "send"), begin(events, program, "wait")
        between = [e for e in events if e["name"] == "sweep" and sent <= e["ts"] and e["ts"] + e["dur"] <= awaited]
        assert between and all(part(e, program) == "inner" for e in between)
        assert begin(events, program, "outer") >= end(events, program, "unpack", "copy")


@pytest.mark.ids("V11")
def test_split_packs_before_the_interior_and_sweeps_the_boundary_after_unpacking(haloscope):
    executions, program = traced(haloscope, "split", "--inject", "delay:rank=1,step=-1,seconds=0.002,op=send")
    for events in executions:
        assert end(events, program, "pack") <= begin(events, program, "inner")
        assert end(events, program, "unpack") <= begin(events, program, "outer")


@pytest.mark.ids("W13")
def test_with_a_communication_thread_no_boundary_point_is_swept_before_a_late_message_has_come(haloscope):
    executions, program = traced(
        haloscope, "comm-thread", "--inject", "delay:rank=1,step=-1,seconds=0.002,op=send", threads=2
    )
    late = [e for e in json.loads(Path("t.json").read_text()) if e["name"] == "send" and e["pid"] == 1]
    tolerance_us = clock_tolerance_us(Path("t.json"))
    for events in executions:
        assert end(events, program, "unpack") <= begin(events, program, "outer")
        [sent] = (e["ts"] for e in late if e["args"]["step"] == events[0]["args"]["step"])
        assert begin(events, program, "outer") >= sent - tolerance_us


def test_a_trace_of_a_sweep_is_refused(haloscope):
    result = haloscope("run", "laplace2d", "--cells", "16", "--depth", "1,2", "--trace", "t.json")
    assert result.code == 2 and "specify one choice" in result.err
