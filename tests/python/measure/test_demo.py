"""The demo, on grids small enough for a test."""

from __future__ import annotations

import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

from haloscope import records
from haloscope.measure import demo, launch

SIZES = ("16x16x16", "32x32", "80x80")


def test_the_demo_ranks_verifies_records_draws_and_advises(haloscope, monkeypatch):
    monkeypatch.setattr(demo, "SETTINGS", {"seconds": 0.01, "repetitions": 2})
    result = haloscope("demo", "--cells", ",".join(SIZES), "--launches", "1")
    assert result.code == 0, result.err
    planned = demo.plan(launch.cores(), SIZES)
    assert not planned.refused
    [file] = Path("out/demo").glob("records-*.jsonl")
    found = records.read(file)
    assert not found.bad_lines
    assert {r["id"] for r in found.measurements} == {r.id for r in planned.requests}
    assert all(r["verification"]["status"] == "passed" for r in found.measurements)
    assert result.out.count("1 (base)") == result.out.count("choices byte-identical to `reference`") == 3
    assert result.out.index("16x16x16 cells") < result.out.index("32x32 cells") < result.out.index("80x80 cells")
    assert "1 launch cannot tell choices apart" in result.out and "Next: `haloscope run" in result.out
    assert str(file) in result.out
    assert Path("out/demo/demo.png").read_bytes().startswith(b"\x89PNG")
    drawn = " ".join(xml.parse("out/demo/demo.svg").getroot().itertext())
    assert "laplace3d 16x16x16" in drawn and "halo depth" in drawn and "direct:merged/persistent" in drawn


def test_the_records_of_a_demo_can_be_shown_again(haloscope, monkeypatch):
    monkeypatch.setattr(demo, "SETTINGS", {"seconds": 0.001, "repetitions": 1})
    first = haloscope("demo", "--cells", ",".join(SIZES), "--launches", "1", "--output", "a")
    [file] = Path("a").glob("records-*.jsonl")
    again = haloscope("demo", "--from", file, "--output", "b")
    assert again.code == 0 and Path("b/demo.svg").exists()
    assert again.out.split("\nrecords:")[0] == first.out.split("\nrecords:")[0]


def test_a_file_without_measurements_is_refused(haloscope, tmp_path):
    (tmp_path / "none.jsonl").write_text("")
    result = haloscope("demo", "--from", tmp_path / "none.jsonl")
    assert result.code != 0 and "holds no measurements" in result.err


def test_a_single_core_is_too_few(haloscope, monkeypatch):
    monkeypatch.setattr(launch, "cores", lambda: 1)
    result = haloscope("demo")
    assert result.code == 3 and "2 ranks a core" in result.err
    assert not Path("out").exists()


@pytest.mark.parametrize("cores", [2, 4, 16])
def test_the_demo_covers_patterns_transports_schedules_and_depths_in_two_dozen_choices(cores):
    requests = demo.plan(cores).requests
    assert 22 <= len(requests) <= 28 and len({r.id for r in requests}) == len(requests)
    found = [r.choice for r in requests]
    assert {c.schedule for c in found} == {"bulk", "split"} | ({"comm-thread"} if cores > 2 else set())
    patterns, transports = zip(*[c.strategy.split("/") for c in found], strict=True)
    assert {"ordered", "direct", "direct:merged"} <= set(patterns)
    assert {"p2p", "persistent", "shared"} <= set(transports)
    assert {(c.depth, c.substeps) for c in found if c.app == "laplace2d"} >= {
        (4, "full"),
        *((depth, substeps) for depth in (2, 4, 8) for substeps in ("shrink", "blocked")),
    }
    assert all(c.ranks == 2 for c in found)


def test_ranks_share_all_cores_on_the_large_grid_only_and_never_ask_for_more():
    for cores, share in ((2, 1), (3, 1), (4, 2), (16, 8)):
        threads = {r.choice.cells: r.threads for r in demo.plan(cores).requests}
        assert threads == {(24, 24, 24): 1, (64, 64): 1, demo.LARGE_2D.cells: share}
        assert all(r.ranks * r.threads <= cores for r in demo.plan(cores).requests)
