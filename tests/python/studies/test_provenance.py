"""Provenance of measurements: machine, compiler, MPI library and repetitions, and standard errors over launches."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest
from matplotlib import pyplot as plt

from haloscope.report import figures
from haloscope.studies import provenance
from test_records import measurement


def launched(number: int, *seconds: float, **more) -> dict:
    return measurement("a", f"launch-{number}", list(seconds), steps=1) | {"phases_s": {}} | more


def test_a_standard_error_is_the_deviation_of_launches_over_the_root_of_their_number():
    found = [launched(1, 1.0, 3.0), launched(2, 4.0), launched(3, 6.0)]
    [step] = provenance.mean_times(found)
    assert (step.id, step.quantity, step.launches, step.repetitions) == ("a", "step", 3, 4)
    assert step.mean_s == 4.0 and step.standard_error_s == pytest.approx(2 / math.sqrt(3))  # of means 2, 4 and 6


def test_one_launch_has_no_standard_error():
    [step] = provenance.mean_times([launched(1, 1.0, 3.0)])
    assert step.mean_s == 2.0 and step.standard_error_s == math.inf
    assert provenance.table([launched(1, 1.0, 3.0)]).splitlines() == [
        "id,quantity,launches,repetitions,mean_s,standard_error_s",
        "a,step,1,2,2,inf",
    ]


def test_parts_that_took_time_have_errors_too():
    parts = [
        {"compute": {"mean": s}, "barrier": {"mean": 0.0}, "memory": {"mean": m}} for s, m in ((0.5, 0.0), (0.7, 0.2))
    ]
    found = [launched(n, 1.0, components_s=part) for n, part in enumerate(parts)]
    errors = {one.quantity: (one.launches, one.standard_error_s) for one in provenance.mean_times(found)}
    assert errors.keys() == {"step", "component compute", "component memory"}
    assert errors["component compute"] == (2, pytest.approx(0.1)) and errors["component memory"] == (
        2,
        pytest.approx(0.1),
    )


def test_a_sentence_names_machine_compiler_mpi_launches_and_repetitions():
    environment = {
        "cpu": "Some CPU",
        "cores": 4,
        "compiler": "GNU 12",
        "compiler_flags": "-O3",
        "mpi_library": "MPICH Version:      5.0.2",
    }
    found = [launched(1, 1.0, environment=environment), launched(2, 1.0, environment=environment | {"cores": 2})]
    assert provenance.sentence(found) == (
        "Measured on Some CPU, 4 cores and Some CPU, 2 cores; compiler GNU 12 -O3; MPI MPICH 5.0.2; 2 launches with "
        "1 repetition of each configuration."
    )
    assert provenance.sentence([]) == ""


def test_a_figure_has_its_description_in_its_files(tmp_path):
    with figures.described("where it comes from"):
        [drawing, _] = figures.save(plt.figure(), tmp_path / "a")
    [plain, _] = figures.save(plt.figure(), tmp_path / "b")
    name = "{http://purl.org/dc/elements/1.1/}description"
    assert [d.text for d in ElementTree.parse(drawing).iter(name)] == ["where it comes from"]
    assert not list(ElementTree.parse(plain).iter(name))
