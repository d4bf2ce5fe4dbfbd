"""`haloscope predict` on the command line: table, JSON, refusals."""

from __future__ import annotations

import json

import pytest

from paths import ROOT
from toy import TOY


def test_the_command_ranks_a_sweep_and_says_what_a_step_is_made_of(haloscope):
    done = haloscope("predict", "laplace2d", "--cells", "256", "--ranks", "4", "--depth", "1,2,4", "--profile", TOY)
    assert done.code == 0, done.err
    rows = [line for line in done.out.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 3
    for word in ("step (us)", "compute", "pack", "message", "slowest rank"):
        assert word in rows[0]
    assert "NaN" not in done.out


def test_the_command_gives_json_in_seconds(haloscope):
    done = haloscope("predict", "laplace2d", "--cells", "256", "--ranks", "4", "--profile", TOY, "--json")
    document = json.loads(done.out)
    assert document["schema"] == "haloscope.predictions"
    found = document["predictions"][0]
    assert sum(found["terms"].values()) == pytest.approx(found["time_s"])
    assert found["choice"]["cells"] == [256, 256]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--cells", "256"], 2, "--profile"),
        (["--cells", "256", "--profile", "nowhere"], 2, "nowhere"),
        (["--profile", TOY], 2, "--cells 128"),
        (["--cells", "256", "--profile", TOY, "--schedule", "comm-thread"], 2, "thread"),
        (["--cells", "256", "--profile", TOY, "--isa", "avx2"], 2, "unknown option '--isa'"),
        (["--cells", "256", "--profile", TOY, "--mapping", "fil"], 2, "fill"),
        (["--cells", "256", "--profile", TOY, "--active", "5"], 2, "choose 1 to 4"),
        (["--cells", "256", "--profile", TOY, "--real", "f32"], 3, "laplace2d/star/f32"),
    ],
)
def test_the_command_refuses_with_what_to_do(haloscope, words, code, message):
    done = haloscope("predict", "laplace2d", *words)
    assert done.code == code
    assert message in done.err


def test_a_step_of_2048_ranks_is_predicted_with_its_interval(haloscope):
    """From a calibrated profile, whose parameters have intervals; what it takes is figure `predict`."""
    profile = ROOT / "results" / "accuracy" / "machine.json.xz"
    words = "predict advection3d --cells 420 --ranks 2048 --strategy direct/p2p --mapping round-robin --profile"
    done = haloscope(words, profile)
    assert done.code == 0, done.err
    assert "2048 ranks" in done.out
    assert " .. " in done.out
