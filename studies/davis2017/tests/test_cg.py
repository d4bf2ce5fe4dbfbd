"""cg3d from the command line: verified, ended by its tolerance, the same on any number of ranks, and priced by what is
calibrated.
"""

from __future__ import annotations

import dataclasses
import json

import pytest

from haloscope import records
from haloscope.fit import calibrate, points
from haloscope.measure import campaign, space
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
    per_step, steps = {}, {}
    for method in METHODS:
        [record] = outcomes(haloscope, "--ranks", "2", "--set", f"method={method}", "--set", "tolerance=1e-9")[-1:]
        steps[method] = record["outcome"]["steps"][-1]
        per_step[method] = record["counts"]["reductions"] / steps[method]
    assert max(steps.values()) - min(steps.values()) <= 1, "theirs is the residual of the step before"
    assert per_step == {"standard": 2, "single-reduction": 1, "pipelined": 1}


def calibrated_kernels(folder) -> dict:
    """Return the costs of cg3d's sweeps from a calibration of three sizes."""
    effort = dataclasses.replace(
        points.QUICK, seconds=1e-5, repetitions=1, launches=1, cubes=(8, 16, 32), apps=("cg3d",)
    )
    planned = points.points("kernels", 1, 1, effort)
    found = campaign.Campaign(space.Space(planned), folder / "k.jsonl", launches=1).run()
    return calibrate.fit_profile(found).data["kernels"]


def test_the_sweeps_of_all_methods_are_calibrated_and_priced(haloscope, tmp_path):
    kernels = calibrated_kernels(tmp_path)
    assert {name.partition(":")[0] for name in kernels} == {
        f"cg3d/{form}/f64{parameter}"
        for form in ("plain", "fused")
        for parameter in ("", ",method=pipelined", ",method=single-reduction")
    }
    (tmp_path / "m.json").write_text(json.dumps(json.loads(TOY.read_text()) | {"kernels": kernels}))
    words = ("cg3d", "--cells", "64", "--ranks", "2", "--profile", "m.json", "--form", "plain,fused", "--json")
    times, waiting = {}, {}
    for method in METHODS:
        predicted = json.loads(haloscope("predict", *words, "--set", f"method={method}").out)["predictions"]
        times |= {(method, p["choice"]["form"]): p["time_s"] for p in predicted}
        waiting[method] = {p["terms"]["reduction"] for p in predicted}
        simulated = json.loads(haloscope("simulate", *words, "--set", f"method={method}").out)["simulations"]
        assert sorted(s["time_s"] for s in simulated) == pytest.approx(sorted(p["time_s"] for p in predicted))
    assert len(set(times.values())) == len(times) == 6
    assert min(times.values()) > 0
    assert waiting["pipelined"] == {0}, "its sums arrive while the product is computed"
    assert 0 < max(waiting["single-reduction"]) < min(waiting["standard"])


def test_sweeps_without_a_price_are_refused_with_the_remedy(haloscope, tmp_path):
    kernels = {name: cost for name, cost in calibrated_kernels(tmp_path).items() if "method=" not in name}
    (tmp_path / "m.json").write_text(json.dumps(json.loads(TOY.read_text()) | {"kernels": kernels}))
    words = ("predict", "cg3d", "--cells", "64", "--ranks", "2", "--profile", "m.json", "--set")
    assert haloscope(*words, "method=standard").code == 0
    refused = haloscope(*words, "method=single-reduction")
    assert refused.code == 3 and "calibrate" in refused.err


def test_a_grid_that_wraps_around_is_refused(haloscope):
    result = haloscope("run", "cg3d", "--cells", "8", "--periodic", "xyz")
    assert result.code == 2 and "--periodic none" in result.err
