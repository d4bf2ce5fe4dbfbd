"""Simulated curves of versions B to D over cores."""

from __future__ import annotations

import pytest

from haloscope.model import profile
from haloscope_studies.white2011 import curves

FEW, MANY = 192, 49152


@pytest.fixture(scope="module")
def found():
    return {cores: curves.speeds(cores, curves.machine()) for cores in (FEW, MANY)}


def best(speeds, letter):
    return max(gf for (name, _), gf in speeds.items() if name == letter)


def test_the_simulated_machine_has_a_published_network_and_calibrated_sweeps():
    made = curves.machine().data
    assert made["network"] == profile.load("hector").data["network"]
    assert list(made["kernels"]) == ["advection3d/dense/f64"] and "sweeps of epyc" in made["name"]


def test_the_last_simulated_core_count_is_the_largest_of_the_paper():
    assert curves.CORES[-1] == 49152


def test_no_simulated_speed_is_above_that_of_the_sweeps_alone(found):
    cells, rate = 420**3, 1.0e-9  # seconds per cell, below the least of the calibrated ones
    for cores, speeds in found.items():
        assert all(0 < gf < 53 * cells / (cells / cores * rate) / 1e9 for gf in speeds.values())


def test_overlap_gains_while_cores_have_work_and_nothing_at_the_largest_count(found):
    assert best(found[FEW], "C") > 1.1 * best(found[FEW], "B")
    assert best(found[MANY], "C") < 1.05 * best(found[MANY], "B")


def test_threads_gain_more_the_more_cores_there_are(found):
    few, many = (found[cores]["B", 2] / found[cores]["B", 1] for cores in (FEW, MANY))
    assert many > 1.3 * few


def test_the_table_is_marked_as_simulated():
    lines = curves.table().splitlines()
    assert sum(line.startswith("|") for line in lines) == 2 + len(curves.CORES)
    assert "**Simulated**, no measurement" in lines[-1]
