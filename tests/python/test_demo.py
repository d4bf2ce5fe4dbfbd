"""The demo, on grids small enough for a test."""

from __future__ import annotations

import xml.etree.ElementTree as xml
from pathlib import Path

from haloscope.measure import launch
from haloscope.report import records
from haloscope.studies import demo

SMALL = ("--cells3d", "16x16x16", "--cells2d", "64x64", "--launches", "1")


def test_the_demo_ranks_verifies_records_and_draws(haloscope, monkeypatch):
    monkeypatch.setattr(demo, "HOW", {"seconds": 0.01, "repetitions": 2})
    result = haloscope("demo", *SMALL)
    assert result.code == 0, result.err
    planned = demo.plan(launch.cores(), {"advection3d": "16x16x16", "laplace2d": "64x64"})
    assert not planned.refused
    [file] = Path("out/demo").glob("records-*.jsonl")
    found = records.read(file)
    assert not found.bad_lines
    assert {r["id"] for r in found.measurements} == {r.id for r in planned.requests}
    assert all(r["verification"]["status"] == "passed" for r in found.measurements)
    assert result.out.count("12 of 12 choices byte-identical to `reference`") == 2
    assert result.out.count("1 (base)") == 2
    assert str(file) in result.out
    assert Path("out/demo/demo.png").read_bytes().startswith(b"\x89PNG")
    drawn = " ".join(xml.parse("out/demo/demo.svg").getroot().itertext())
    assert "advection3d 16x16x16" in drawn and "halo depth" in drawn and "direct:merged/persistent" in drawn


def test_the_demo_covers_schedules_patterns_transports_and_depths_in_two_dozen_choices():
    requests = demo.plan(cores=2).requests
    assert 20 <= len(requests) <= 24 and len({r.id for r in requests}) == len(requests)
    found = [r.choice for r in requests]
    assert {c.schedule for c in found} == {"bulk", "split", "interleaved", "comm-thread"}
    assert {c.strategy.split("/")[0] for c in found} >= {"ordered", "direct", "direct:merged"}
    assert {c.strategy.split("/")[1] for c in found} >= {"p2p", "persistent", "p2p:datatype"}
    assert {(c.depth, c.substeps) for c in found if c.app == "laplace2d"} >= {
        (depth, substeps) for depth in (2, 4, 8) for substeps in ("full", "shrink", "blocked")
    }
    assert all(c.ranks == 2 for c in found)


def test_only_the_communication_thread_needs_more_threads_than_two_cores_have():
    for cores, plain, helped in ((2, 1, 2), (4, 2, 2), (16, 8, 8)):
        threads = {r.choice.schedule: r.threads for r in demo.plan(cores).requests}
        assert threads["bulk"] == plain and threads["comm-thread"] == helped
