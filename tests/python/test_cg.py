"""cg3d from the command line: verified, ended by its tolerance, the same on any number of ranks, and priced by what is calibrated."""

from __future__ import annotations

import json

import pytest

from haloscope.report import records
from toy import TOY

SMALL = ("--repetitions", "1", "--launches", "1", "--steps", "400")


def outcomes(haloscope, *words) -> list[dict]:
    result = haloscope("run", "cg3d", "--cells", "17x12x15", *words, *SMALL, "--output", "r.jsonl")
    assert result.code == 0, result.err
    found = [r for r in records.read("r.jsonl").records if r["kind"] == "measurement"]
    assert {r["verification"]["status"] for r in found} == {"passed"}
    return found


METHODS = ("standard", "single-reduction", "pipelined")


@pytest.mark.parametrize("method", METHODS)
def test_iterations_do_not_depend_on_ranks_forms_or_schedules(haloscope, method):
    words = ("--set", f"method={method}", "--set", "tolerance=1e-9")
    found = outcomes(haloscope, "--ranks", "1,2,3", "--form", "plain,fused", "--schedule", "bulk,split", *words)
    assert len(found) == 12
    assert {r["outcome"]["enough"] for r in found} == {True}
    assert len({tuple(r["outcome"]["steps"]) for r in found}) == 1
    assert len({r["verification"]["checksum"] for r in found}) == 1


def test_other_methods_take_one_reduction_where_the_standard_one_takes_two(haloscope):
    per_step = {}
    for method in METHODS:
        [record] = outcomes(haloscope, "--ranks", "2", "--set", f"method={method}")[-1:]
        per_step[method] = record["counts"]["reductions"] / record["outcome"]["steps"][-1]
    assert per_step == {"standard": 2, "single-reduction": 1, "pipelined": 1}


def test_its_sweeps_are_calibrated_and_priced_like_those_of_other_apps(haloscope, tmp_path):
    measured = haloscope(
        "calibrate",
        "-o",
        "k.json",
        "--quick",
        "--ranks",
        "2",
        "--launches",
        "1",
        "--sections",
        "kernels",
        "--apps",
        "cg3d",
    )
    assert measured.code == 0, measured.err
    kernels = json.loads((tmp_path / "k.json").read_text())["kernels"]
    (tmp_path / "m.json").write_text(json.dumps(json.loads(TOY.read_text()) | {"kernels": kernels}))
    words = ("cg3d", "--cells", "64", "--ranks", "2", "--profile", "m.json")
    predicted = json.loads(haloscope("predict", *words, "--form", "plain,fused", "--json").out)["predictions"]
    assert len(predicted) == 2 and all(p["time_s"] > 0 for p in predicted)
    refused = haloscope("predict", *words, "--set", "method=single-reduction")
    assert refused.code == 3 and "calibrate" in refused.err


def test_a_grid_that_wraps_around_is_refused(haloscope):
    result = haloscope("run", "cg3d", "--cells", "8", "--periodic", "xyz")
    assert result.code == 2 and "--periodic none" in result.err
