"""Simulated and predicted reductions of hydro3d."""

from __future__ import annotations

import pytest

from haloscope import bridge
from haloscope.model import predict as predicting
from haloscope_studies.davis2017 import network
from test_simulate import both
from toy import changed


@pytest.mark.parametrize("collectives", ["merged", "studied"])
def test_reductions_of_an_app_cost_their_calls_as_predicted(toy, collectives):
    choice = {"app": "hydro3d", "cells": (24,) * 3, "ranks": 2, "set": (("collectives", collectives),)}

    def with_kernels(data):
        names = [name for stage in bridge.sweep_names(bridge.Choice(**choice)) for name in stage]
        data["kernels"] |= dict.fromkeys(names, data["kernels"]["advection3d/dense/f64"])

    profile = changed(toy, with_kernels)
    simulated, predicted = both(profile, setting=predicting.RunSettings(repeats=2), **choice)
    assert simulated.time_s == pytest.approx(predicted.time_s, rel=1e-9)
    integer, number, text = (network.allgather_time(toy, size, 2, 8) for size in (4, 8, 32))
    faults = 2 * 3  # of a first sub-cycle and two more
    studied = (faults + 16) * integer + (23 + 51) * number + text
    expected = {"merged": (3 + faults) * 2e-6, "studied": studied}[collectives]
    assert predicted.terms["reduction"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("schedule", ["bulk", "split", "comm-thread"])
def test_reductions_come_on_top_of_those_of_an_app(toy, schedule):
    choice = {
        "app": "cg3d",
        "cells": (32,) * 3,
        "ranks": 2,
        "schedule": schedule,
        "threads": 1 + (schedule == "comm-thread"),
    }

    def with_kernels(data):
        names = [name for stage in bridge.sweep_names(bridge.Choice(**choice)) for name in stage]
        data["kernels"] |= dict.fromkeys(names, data["kernels"]["advection3d/dense/f64"])

    profile = changed(toy, with_kernels)
    plain = predicting.predict(bridge.Choice(**choice), profile, samples=0)
    simulated, predicted = both(profile, setting=predicting.RunSettings(reductions=2), **choice)
    assert simulated.time_s == pytest.approx(predicted.time_s, rel=1e-9)
    assert predicted.time_s > plain.time_s
