"""Costs of hydro3d on a device."""

from __future__ import annotations

import json

import pytest

from haloscope import bridge
from haloscope.errors import UnavailableError
from test_device_model import ask, line, machine  # noqa: F401 (fixture)
from toy import changed


def test_a_step_of_several_sweeps_costs_a_launch_of_each(request):
    priced = request.getfixturevalue("machine")
    gas = {"app": "hydro3d", "cells": (32, 32, 64), "process_grid": "1x1x2"}
    step = bridge.step_of(bridge.Choice("hydro3d", (32, 32, 64)))
    names = {f"{stage.name}/{sweep.name}" for stage in step.stages for sweep in stage.sweeps}
    laws = {f"hydro3d/fused/f64:{name}": {"1": line(1e-5, 1e-9, True)} for name in names}
    swept = changed(priced, lambda data: data["device"]["kernels"].update(laws))
    found = ask(swept, **gas)
    sweeps = sum(len(stage.sweeps) for stage in step.stages)  # those of the loop once
    least = sweeps * (1e-5 + 32**3 * 1e-9)
    assert least <= found.terms["compute"] <= 1.2 * least  # some sweeps also compute ghost points
    assert found.terms["reduction"] > 0
    with pytest.raises(UnavailableError, match="no cost of kernel 'hydro3d/fused/f64:limits/limits' on toy device"):
        ask(priced, **gas)


def test_a_calibration_measures_kernels_of_hydro3d_on_a_device(calibrated_device):
    device = json.loads(calibrated_device.read_text())["device"]
    assert "hydro3d/fused/f64:limits/limits" in device["kernels"]
