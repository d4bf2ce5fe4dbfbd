"""Flags of the 2023 study: what they mean, what is refused, terse output."""

from __future__ import annotations

import pytest

from haloscope import bridge, records
from haloscope.commands import run as run_command
from haloscope.measure.request import Request
from haloscope.options.request import measured_space
from haloscope_studies.valen2023 import flags


def request_of(*words) -> Request:
    """Returns the request of `haloscope run WORDS...`."""
    options = run_command.command.make_context("run", list(words)).params
    app = bridge.find_app(options.pop("app"))
    [request] = measured_space(app, flags.translate(app.name, options, [])).requests
    return request


def test_the_thesis_words_mean_the_schedules_of_a_device(haloscope):
    words = ("-h", 12, "-l", 10, "-n", 2, "--schedule", "overlapped", "--exchange", "async", "--device", "host")
    few = ("--steps", 2, "--repetitions", 1, "--warmup", 0, "--launches", 1, "--output", "r.jsonl")
    assert haloscope("run", "laplace2d", *words, *few).code == 0
    [found] = records.read("r.jsonl").records
    assert found["verification"]["status"] == "passed"
    assert (found["request"]["schedule"], found["request"]["strategy"]) == ("streams", "direct/staged")


@pytest.mark.ids("V13")
def test_the_thesis_example_means_what_it_says():
    words = ("-h", "20000", "-l", "10000", "-d", "8", "-i", "100", "-s", "1", "-n", "4")
    found, choice = request_of("laplace2d", *words), request_of("laplace2d", *words).choice
    assert (choice.cells, choice.depth, choice.ranks, choice.real) == ((10000, 20000), 8, 4, "f32")  # x is the length
    assert found.steps == 100
    assert run_command.command.make_context("run", ["laplace2d", *words]).params["sparse"] == 1


@pytest.mark.ids("V13")
@pytest.mark.parametrize(
    ("words", "schedule", "strategy"),
    [
        (["--schedule", "phased", "--exchange", "sync"], "bulk", "ordered/p2p"),
        (["--schedule", "overlapped", "--exchange", "direct"], "split", "direct/p2p"),
        (["--schedule", "split", "--exchange", "async"], "split", "direct/p2p"),
    ],
)
def test_schedule_and_exchange_may_be_called_what_the_thesis_calls_them(words, schedule, strategy):
    choice = request_of("laplace2d", "-h", "64", "-l", "64", *words).choice
    assert (choice.schedule, choice.strategy) == (schedule, strategy)


@pytest.mark.ids("V13")
@pytest.mark.parametrize(
    "words",
    [
        ["-h", "0", "-l", "8"],
        ["-h", "8"],
        ["-h", "8", "-l", "8", "-d", "0"],
        ["-h", "8", "-l", "8", "-i", "0"],
        ["-h", "x", "-l", "8"],
        ["-h", "8", "-l", "8", "-s", "2"],
        ["-h", "8", "-l", "8", "--exchange", "none"],
        ["-h", "8", "-l", "8", "-d", "5"],
        ["-h", "8", "-l", "8", "--cells", "8"],
    ],
)
def test_bad_values_of_the_thesis_flags_are_refused(haloscope, words):
    result = haloscope("run", "laplace2d", *words)
    assert result.code == 2
    assert result.err.startswith("haloscope: ")


@pytest.mark.ids("V13")
def test_terse_output_is_a_line_of_names_and_a_line_of_numbers(haloscope):
    result = haloscope("run", "laplace2d", "-h", "40", "-l", "24", "-d", "2", "-i", "10", "-s", "1", "--launches", 1)
    assert result.code == 0
    names, values = (line.split(",") for line in result.out.strip().splitlines())
    found = dict(zip(names, values, strict=True))
    assert (found["height"], found["length"], found["depth"], found["iterations"]) == ("40", "24", "2", "10")
    assert float(found["execution"]) > 0 and float(found["inner"]) == 0 and float(found["primary"]) > 0
    assert "records:" in result.err
