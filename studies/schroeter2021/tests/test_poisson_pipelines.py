"""Pipelines of poisson2d: their programs, predictions, simulations and refusals."""

from __future__ import annotations

import dataclasses
import re

import pytest

from haloscope import bridge, records
from haloscope.advice import tune, validate
from haloscope.fit import points
from haloscope.measure.request import Request
from haloscope.model import predict as model
from haloscope.model import profile
from haloscope.simulate import simulate
from test_device_refusals import QUICK
from test_predict import ask
from test_simulate import both
from toy import TOY, changed

PIPELINE = {
    "app": "poisson2d",
    "form": "gauss-seidel",
    "cells": (519, 519),
    "periodic": (False, False),
    "ranks": 4,
    "schedule": "pipeline",
    "process_grid": "slabs",
}


def test_a_pipeline_runs_all_ranks_side_by_side(toy):
    found = ask(toy, **PIPELINE)
    assert found.terms["compute"] == pytest.approx(130 * 519 * 4e-9, rel=0.01)
    assert found.time_s < 1.2 * found.terms["compute"]
    assert found.classes == 4


def test_a_pipeline_has_an_interval_too(toy):
    def wide(data):
        row = data["kernels"]["poisson2d/gauss-seidel/f64"]["4"][0]
        row["interval"] = {"per_cell_s": [0.9 * row["per_cell_s"], 1.1 * row["per_cell_s"]]}

    found = model.predict(bridge.Choice(**PIPELINE), changed(toy, wide), samples=200)
    assert found.interval[1] / found.time_s == pytest.approx(1.1, rel=0.03)


def test_a_pipeline_agrees_with_its_prediction(toy):
    simulated, predicted = both(toy, simulate.SimulationOptions(steps=40), **PIPELINE)
    assert simulated.time_s == pytest.approx(predicted.time_s, rel=0.01)


def test_a_pipeline_comes_in_programs_of_its_own():
    choice = bridge.Choice(**PIPELINE | {"cells": (31, 31), "ranks": 2})
    plan = bridge.make_plan(bridge.make_layout(choice), 0, bridge.exchange_spec(choice))
    options = bridge.schedule_options(choice)
    made = {
        series: bridge.make_program(
            "pipeline", bridge.step_of(choice), plan, dataclasses.replace(options, series=series)
        )
        for series in ("opening", "entry", "body", "closing")
    }
    assert [program.steps for program in made.values()] == [0, 0, 1, 0]
    assert not any(op.kind == "sweep" for name in ("opening", "entry", "closing") for op in made[name].ops)


def test_a_pipeline_keeps_the_order_of_its_ranks(haloscope):
    words = ("plan", "poisson2d", "--cells", "63", "-n", "4", "--schedule", "pipeline", "--form", "gauss-seidel")
    assert haloscope(*words).code == 0
    refused = haloscope(*words, "--reorder", "nodes")
    assert refused.code == 2 and "--reorder none" in refused.err


@pytest.mark.ids("SI2")
def test_the_model_is_checked_against_what_this_machine_measures(haloscope, tmp_path):
    """The toy profile is of no real machine: that every choice is compared is what counts, not how well."""
    file = tmp_path / "r.jsonl"
    poisson = haloscope(
        "run",
        "poisson2d",
        "--cells",
        263,
        "--form",
        "gauss-seidel",
        "--schedule",
        "pipeline",
        "--process-grid",
        "slabs",
        "--steps",
        20,
        "--repetitions",
        2,
        "--launches",
        1,
        "--output",
        file,
    )
    assert poisson.code == 0, poisson.err
    found = validate.validate(records.read_together([str(file)]), profile.load(TOY), samples=0)
    [pair] = found.pairs
    assert found.left_out == {}
    assert pair.error == pytest.approx(pair.prediction.time_s / pair.row.step.value - 1)
    exchange = sum(pair.row.phase(name, "mean") for name in ("pack", "send", "unpack", "copy", "wait"))
    assert pair.exchange_s == pytest.approx(exchange) and 0 < exchange < pair.row.step.value
    assert dataclasses.asdict(pair.prediction.choice)["form"] == "gauss-seidel"
    assert "another CPU" in found.warnings[0]


COMPARED = {"jacobi": ("p2p", "rma-fence", "rma-pscw", "rma-lock", "rma-lockall"), "gauss-seidel": ("p2p",)}


@pytest.fixture
def brief_calibration(monkeypatch):
    """Calibrations measure few points, and the compared strategies alone."""
    quick = points.QUICK
    flat = {
        "message_bytes": quick.message_bytes[::3],
        "squares": (16, 64, 256, 512),
        "packed": [block for block in quick.packed if len(block[0]) == 2],
        "blocks": [block for block in quick.blocks if block[0] == "laplace2d"],
    }
    compared = [name for name in points.strategies() if name.partition("/")[2] in COMPARED["jacobi"]]
    monkeypatch.setattr(points, "QUICK", dataclasses.replace(quick, **flat))
    monkeypatch.setattr(points, "strategies", lambda: compared)


@pytest.mark.long
@pytest.mark.ids("SI2")
def test_the_error_of_a_calibrated_model_is_reported_for_one_sided_forms(haloscope, brief_calibration):
    """The profile is of this machine: each strategy has its error, however large it is."""
    calibrated = haloscope("calibrate", "--quick", "--launches", 1, "--ranks", 2, "--apps", "poisson2d", "-o", "p.json")
    assert calibrated.code == 0, calibrated.err
    words = ("--cells", 263, "--process-grid", "slabs", "--steps", 20, "--repetitions", 2, "--launches", 2)
    for method, names in COMPARED.items():
        strategy = ",".join(f"ordered/{name}" for name in names)
        run = haloscope(
            "run", "poisson2d", "--form", method, "--strategy", strategy, *words, "--output", f"{method}.jsonl"
        )
        assert run.code == 0, run.err
    result = haloscope("validate", "jacobi.jsonl", "gauss-seidel.jsonl", "--profile", "p.json")
    assert result.code == 0 and "6 choices" in result.out and "Not compared" not in result.out, result.out
    line = r"^\| poisson2d,[^|]+\|([^|]+)\|([^|]+)\| +([+-]\d+\.\d)% \|"
    rows = [tuple(map(float, row)) for row in re.findall(line, result.out, re.MULTILINE)]
    assert len(rows) == 6
    for measured_us, predicted_us, error in rows:  # numbers are printed with four digits
        assert error == pytest.approx(100 * (predicted_us / measured_us - 1), rel=2e-3, abs=0.2)
    for name in COMPARED["jacobi"]:
        assert re.search(rf"\| ordered/{name} +\| +\d \| +[+-]\d+\.\d% \|", result.out), name


def test_an_app_without_kernels_for_devices_is_refused(haloscope):
    result = haloscope("run", "poisson2d", "--cells", "15", "--device", "host", *QUICK)
    assert result.code == 2 and "poisson2d' has no kernels for devices" in result.err


def test_a_pipeline_has_no_default_to_tune_from():
    choice = bridge.Choice(
        "poisson2d", (64, 64), form="gauss-seidel", ranks=2, schedule="pipeline", process_grid="slabs"
    )
    assert tune.default_of(Request.of(choice)) is None


def test_a_flag_of_the_study_is_a_parameter_to_other_commands(haloscope):
    result = haloscope("plan", "poisson2d", "--cells", "15", "--work-blocks", "4")
    assert result.code == 2 and "write --set work_blocks=VALUE" in result.err
