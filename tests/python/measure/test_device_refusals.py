"""What bad input gets where devices are asked for: a reason and a remedy, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from haloscope.measure import answers

QUICK = ("--steps", 2, "--repetitions", 1, "--warmup", 0, "--launches", 1, "--output", "r.jsonl")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--device", "foo"], "unknown device 'foo'; valid names are none, auto, cuda, hip, host"),
        (["--device", "hots"], "did you mean host"),
        (["--device", "host", "--strategy", "ordered/p2p"], "with --device use 'ordered/staged'"),
        (["--device", "host", "--strategy", "shared+staged"], "shared+staged"),
        (["--strategy", "ordered/staged"], "add --device, or use 'ordered/p2p'"),
        (["--schedule", "streams"], "schedule 'streams' is for devices; add --device"),
        (["--device", "host", "--schedule", "split"], "with --device use bulk, streams or resident"),
        (["--device", "host", "--schedule", "resident", "--ranks", 2], "use --ranks 1"),
        (["--device", "host", "--threads", 2], "use --threads 1"),
        (["--device", "host", "--depth", 9, "--substeps", "blocked"], "fuse at most 8 time steps on a device, not 9"),
        (["--device", "host", "--device-block", "8xq"], "--device-block '8xq' is not a number"),
        (["--device", "host", "--device-block", "8x8x8x8"], "--device-block '8x8x8x8'"),
        (["--device", "host", "--device-block", "64x64"], "at most 1024 threads"),
        (["--device", "host", "--device-block", "0x4"], "block '0x4' is not possible; give numbers above 0"),
        (["--device", "host", "--device-kernel", "naif"], "did you mean naive"),
        (["--device-kernel", "naive"], "--device-kernel is for devices; add --device"),
        (["--device-block", "8x8"], "--device-block is for devices; add --device"),
        (["--pack", "beside"], "--pack is for devices; add --device"),
        (["--walls", "2"], "--walls is for devices; add --device"),
        (["--capture"], "--capture is for devices; add --device"),
        (["--device", "host", "--ranks", 2, "--capture"], "--capture needs a step with no host work"),
        (["--device", "host", "--ranks", 1, "--capture", "--barrier"], "--capture and --barrier cannot be combined"),
        (["--device", "host", "--schedule", "streams", "--pack", "last"], "unknown --pack 'last'"),
    ],
)
def test_what_can_never_work_is_refused_with_the_remedy(haloscope, words, message):
    result = haloscope("run", "laplace2d", "--cells", "64", *words, *QUICK)
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize("name", ["cuda", "hip"])
def test_a_back_end_that_is_not_here_is_not_available_and_says_why(haloscope, name):
    absent = {b["name"]: b["absent"] for b in answers.information()["devices"]}[name]
    if not absent:
        pytest.skip(f"this machine has {name}")
    result = haloscope("run", "laplace2d", "--cells", "16", "--device", name, *QUICK)
    assert result.code == 3
    assert f"device back end '{name}' is not available here: {absent}" in result.err
    assert not Path("r.jsonl").exists()  # nothing was started


def test_what_the_host_imitates_must_make_sense(haloscope, imitated):
    imitated("device=2")
    result = haloscope("run", "laplace2d", "--cells", "16", "--device", "host", *QUICK)
    assert result.code == 2 and result.err.startswith(
        "haloscope: HALOSCOPE_HOST_DEVICE has 'device=2'; write devices=N"
    )


def test_simulations_and_predictions_refuse_a_profile_without_a_device(haloscope):
    for command in ("simulate", "predict"):
        result = haloscope(command, "laplace2d", "--cells", "64", "--device", "host", "--profile", "dawndev")
        assert result.code == 3 and "has no section 'device'" in result.err
