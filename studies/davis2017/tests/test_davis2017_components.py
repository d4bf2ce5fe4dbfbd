"""Components of a run of cg3d."""

from __future__ import annotations

import pytest

from haloscope import records


@pytest.mark.ids("DB1", "DB2")
def test_a_run_names_every_sweep_reduction_and_operation_and_adds_them_up(haloscope):
    result = haloscope(
        "run",
        "cg3d",
        "--cells",
        "24",
        "--ranks",
        "2",
        "--steps",
        "6",
        "--launches",
        "1",
        "--components",
        "--repetitions",
        "2",
        "--output",
        "r.jsonl",
    )
    assert result.code == 0, result.err
    [found] = records.read("r.jsonl").records
    timers = {(t["stage"], t["name"]): t for t in found["timers"]}
    assert timers["direction", "direction"]["component"] == "compute"
    assert timers["direction", "products"]["component"] == "collectives"
    assert timers["direction", "pack"]["component"] == "point_to_point"
    assert all(t["calls"] == 1 for t in found["timers"] if t["name"] != "rest")
    for name, spread in found["components_s"].items():
        assert spread["mean"] == pytest.approx(
            sum(t["seconds"]["mean"] for t in found["timers"] if t["component"] == name)
        )
    phases = sum(p["mean"] for name, p in found["phases_s"].items() if name != "rest")
    named = sum(spread["mean"] for name, spread in found["components_s"].items() if name != "rest")
    assert phases == pytest.approx(named)
    assert "### Components" in result.out and "| direction | products" in result.out
