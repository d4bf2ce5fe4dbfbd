"""Simulations against predictions and by their own rules; exports that parse; up to 10^5 ranks; errors; the command."""

from __future__ import annotations

import graphlib
import json
import re
import subprocess
import sys

import numpy as np
import pytest

from haloscope import bridge
from haloscope.cli import main
from haloscope.errors import UnavailableError, UsageError
from haloscope.model import predict as predicting
from haloscope.simulate import simulate as model
from toy import TOY, changed

SCHEDULES = ("bulk", "split", "interleaved", "comm-thread")
PLAIN = {"app": "laplace2d", "cells": (256, 256), "ranks": 4, "process_grid": "2x2"}


def both(toy, options=model.NO_NOISE, setting=predicting.DEFAULTS, **choice):
    """Return a simulation and the prediction of the same choice."""
    choice = bridge.Choice(**choice)
    return model.simulate(choice, toy, setting, options), predicting.predict(choice, toy, setting, samples=0)


# ---- agreement with predictions: the same priced programs by the same rules ------------------------------------------


def unshared(data):
    """Without a limit that the ranks of a node share."""
    data["network"]["injection_bytes_per_s"] = None


@pytest.mark.parametrize(
    ("schedule", "strategy"),
    [(s, "ordered/p2p") for s in SCHEDULES]
    + [(s, t) for s in ("bulk", "split") for t in ("direct/p2p", "ordered/persistent", "ordered/rma-fence")],
)
def test_two_ranks_without_noise_take_the_predicted_time(toy, schedule, strategy):
    """Equal to rounding: nothing is shared, so queues, the one thing in which the two differ, are empty."""
    threads = 2 if schedule == "comm-thread" else 1
    simulated, predicted = both(
        toy, app="laplace2d", cells=(256, 256), ranks=2, schedule=schedule, strategy=strategy, threads=threads
    )
    assert simulated.time_s == pytest.approx(predicted.time_s, rel=1e-9)


@pytest.mark.parametrize("strategy", ["ordered/shared", "ordered/shared+p2p", "direct/shared+p2p"])
def test_a_transport_per_nearness_costs_what_is_predicted(toy, strategy):
    nodes = 4 if "+" in strategy else 1
    simulated, predicted = both(
        changed(toy, unshared), app="laplace2d", cells=(512, 512), ranks=16, strategy=strategy, nodes=nodes
    )
    assert simulated.time_s == pytest.approx(predicted.time_s, rel=1e-9)


@pytest.mark.parametrize("transport", ["p2p", "persistent"])
def test_measured_steps_correct_messages_inside_nodes_in_simulations_too(toy, transport):
    """Ranks whose peers are on other nodes do not pay what ranks of one node do."""

    def seen(data):
        unshared(data)
        row = {
            "message_bytes": 2048,
            "run_bytes": 2048,
            "block_bytes": 5e5,
            "depth": 1,
            "in_place": True,
            "launches": 99,
            "exchange": 3.0,
            "sweeps": 1.5,
        }
        data["transports"] |= {
            "p2p": {"corrections": {name: [value] for name, value in row.items()}},
            "persistent": {"plain": True},
        }

    simulated, predicted = both(
        changed(toy, seen),
        app="laplace2d",
        cells=(256, 2048),
        ranks=8,
        process_grid="1x8",
        nodes=2,
        strategy=f"ordered/{transport}",
    )
    assert simulated.time_s == pytest.approx(predicted.time_s, rel=1e-9)


def imperfect(data):
    """Unshared; overlap at part of the speed, with parts that are held, rendezvous and calls that cost something."""
    unshared(data)
    data["overlap"] = {
        "rendezvous_from_bytes": 2000,
        "efficiency": {"split": 0.6, "interleaved": 0.6, "comm-thread": 0.9},
        "held": {"network": 0.2},
        "call_s": 1e-7,
    }


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("app", ["laplace2d", "advection3d"])
@pytest.mark.parametrize("machine", [unshared, imperfect])
def test_ranks_that_share_nothing_take_the_predicted_time(toy, schedule, depth, app, machine):
    """Equal to rounding, whatever the schedule: all ranks do the same at the same time."""
    cells = (512, 512) if app == "laplace2d" else (64, 64, 64)
    threads = 2 if schedule == "comm-thread" else 1
    simulated, predicted = both(
        changed(toy, machine), app=app, cells=cells, ranks=16, schedule=schedule, depth=depth, nodes=4, threads=threads
    )
    assert simulated.time_s == pytest.approx(predicted.time_s, rel=1e-9)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_ranks_that_queue_take_turns_and_so_at_most_the_predicted_time(toy, schedule):
    """A prediction has all messages of a round share what they need, and all ranks wait for the last. In a queue some
    are served first; they are early in the next round too, and what they share is idle for less of the time. So a
    simulation lies between the prediction without sharing and the one with it."""

    def contend(data):
        for c in data["network"]["classes"].values():
            c["contention"] = {"shared": 1.0, "duplex": 2.0}

    choice = PLAIN | {"schedule": schedule, "threads": 2 if schedule == "comm-thread" else 1}
    simulated, predicted = both(changed(toy, contend), **choice)
    free = predicting.predict(bridge.Choice(**choice), toy, samples=0)
    assert free.time_s * (1 - 1e-9) <= simulated.time_s <= predicted.time_s * (1 + 1e-9)


def test_reductions_make_all_ranks_meet(toy):
    plain = model.simulate(bridge.Choice(**PLAIN), toy)
    simulated, predicted = both(toy, setting=predicting.RunSettings(reductions=2), **PLAIN)
    assert simulated.time_s == pytest.approx(predicted.time_s, rel=1e-9)
    assert simulated.time_s > plain.time_s
    assert simulated.by_operation["barrier"] > 0


# ---- rules -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["ordered/p2p", "direct/p2p", "direct:merged/p2p"])
def test_messages_and_bytes_are_those_of_the_plans(toy, strategy):
    choice = bridge.Choice(
        app="advection3d", cells=(37, 29, 23), ranks=12, strategy=strategy, periodic=(True, False, True)
    )
    found = model.simulate(choice, toy, options=model.SimulationOptions(steps=3))
    totals = bridge.plan_totals(bridge.make_layout(choice), bridge.exchange_spec(choice))
    assert (found.messages, found.bytes) == (3 * totals.messages, 3 * totals.bytes)


def test_the_seed_decides_and_noise_costs_more_than_its_mean(toy):
    """Of many ranks that wait for each other the slowest counts, so delays of 5 % on the mean cost more than 5 %."""
    choice = bridge.Choice(app="laplace2d", cells=(1024, 1024), ranks=64)
    noise = {"noise_share": 0.05, "steps": 20}
    calm = model.simulate(choice, toy, options=model.SimulationOptions(steps=20))
    first, again, other = (
        model.simulate(choice, toy, options=model.SimulationOptions(**noise, seed=s)) for s in (1, 1, 2)
    )
    assert first.time_s == again.time_s != other.time_s
    assert first.time_s > calm.time_s + 0.05 * calm.by_operation["sweep"]
    assert first.percentiles[5] < first.percentiles[95]


def test_overheads_are_part_of_the_latency_of_a_single_message(toy):
    choice = bridge.Choice(app="laplace2d", cells=(256, 256), ranks=2, periodic=(False, False))  # one message each way
    plain, busy = (model.simulate(choice, toy, options=model.SimulationOptions(overhead_s=o)) for o in (0.0, 2e-7))
    assert busy.time_s == pytest.approx(plain.time_s)
    assert busy.by_operation["send"] == pytest.approx(plain.by_operation["send"] + 2e-7)


def test_ranks_of_one_place_and_price_share_a_script(toy):
    found = model.simulate(
        bridge.Choice(app="laplace2d", cells=(4096, 4096), ranks=1024), toy, options=model.SimulationOptions(steps=2)
    )
    assert found.classes == 1
    assert found.events == 2 * found.messages  # bulk: only messages that leave and are received


LARGE = """
import re, sys
from pathlib import Path
from haloscope import bridge
from haloscope.model import profile
from haloscope.simulate import simulate
choice = bridge.Choice(app="advection3d", cells=(1600, 1600, 1280), ranks=100_000, process_grid="50x50x40")
options = simulate.SimulationOptions(steps=2, noise_share=0.01)
found = simulate.simulate(choice, profile.load(sys.argv[1]), options=options)
# Not getrusage: its peak holds for the process that started this one too.
print(found.messages, re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def test_a_hundred_thousand_ranks_take_little_memory():
    done = subprocess.run([sys.executable, "-c", LARGE, str(TOY)], check=True, capture_output=True, text=True)
    messages, kilobytes = done.stdout.split()
    assert int(messages) == 2 * 6 * 100_000
    assert int(kilobytes) < 400_000


# ---- exports ---------------------------------------------------------------------------------------------------------


def goal_ranks(text: str) -> list[list[str]]:
    """Return the lines of each rank of a GOAL file, after checking every one against the grammar."""
    signature, head, *rest = text.splitlines()
    assert signature == "// Written by haloscope simulate"  # a comment in the grammar
    assert re.fullmatch(r"num_ranks \d+", head)
    found: list[list[str]] = []
    for line in rest:
        if re.fullmatch(r"rank \d+ \{", line):
            assert line == f"rank {len(found)} {{"
            found.append([])
        elif line != "}":
            assert re.fullmatch(
                r"l\d+: (calc \d+ cpu \d|send \d+b to \d+ tag \d+ cpu \d|recv \d+b from \d+ tag \d+ cpu \d)"
                r"|l\d+ i?requires l\d+",
                line,
            ), line
            found[-1].append(line)
    assert len(found) == int(head.split()[1])
    return found


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_goal_schedule_has_every_message_at_both_ends_and_no_cycle(toy, tmp_path, schedule):
    file = tmp_path / "schedule.goal"
    threads = "2" if schedule == "comm-thread" else "1"
    words = ["laplace2d", "--cells", "96", "--ranks", "6", "--steps", "2", "--schedule", schedule, "--threads", threads]
    assert main(["simulate", *words, "--profile", str(TOY), "--goal", str(file)]) == 0
    sent, received = [], []
    for rank, lines in enumerate(goal_ranks(file.read_text())):
        known: dict[str, list[str]] = {}
        for line in lines:
            if " requires " in line:
                later, _, earlier = line.split()
                assert {later, earlier} <= set(known)  # labels must have been named before
                known[later].append(earlier)
                continue
            known[line.split(":")[0]] = []
            if match := re.search(r"(send|recv) (\d+)b (?:to|from) (\d+) tag (\d+)", line):
                size, peer, tag = (int(x) for x in match.groups()[1:])
                (sent if match[1] == "send" else received).append(
                    (rank, peer, tag, size) if match[1] == "send" else (peer, rank, tag, size)
                )
        graphlib.TopologicalSorter(known).prepare()  # raises where operations wait for each other
    choice = bridge.Choice(app="laplace2d", cells=(96, 96), ranks=6)
    totals = bridge.plan_totals(bridge.make_layout(choice), bridge.exchange_spec(choice))
    assert sorted(sent) == sorted(received)
    assert (len(sent), sum(s[3] for s in sent)) == (2 * totals.messages, 2 * totals.bytes)


def test_extra_p_lines_hold_one_point_each(toy, tmp_path):
    file = tmp_path / "times.jsonl"
    words = ["laplace2d", "--cells", "512", "--ranks", "4,16,64", "--depth", "1,2", "--profile", str(TOY)]
    assert main(["simulate", *words, "--extrap", str(file)]) == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert all(set(line) == {"origin", "params", "callpath", "metric", "value"} for line in lines)
    assert all(set(line["params"]) == {"ranks", "depth"} and line["metric"] == "simulated_s" for line in lines)
    whole = [line for line in lines if "->" not in line["callpath"]]
    assert sorted(tuple(line["params"].values()) for line in whole) == [(r, d) for r in (4, 16, 64) for d in (1, 2)]
    assert all(np.isfinite(line["value"]) and line["value"] > 0 for line in lines)


def test_a_weak_scaling_keeps_the_cells_of_a_rank(toy, tmp_path, capsys):
    words = ["advection3d", "--cells", "16x16x8", "--ranks", "8,64,1000", "--weak", "--profile", str(TOY)]
    assert main(["simulate", *words, "--steps", "4", "--plot", str(tmp_path / "weak"), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)["simulations"]
    assert [np.prod(s["choice"]["cells"]) for s in made] == [r * 16 * 16 * 8 for r in (8, 64, 1000)]
    assert {file.suffix for file in tmp_path.iterdir()} == {".svg", ".png"}


# ---- the command and errors ------------------------------------------------------------------------------------------


def test_the_table_says_that_it_is_simulated(toy, tmp_path, capsys):
    words = ["laplace2d", "--cells", "512", "--ranks", "16,64", "--profile", str(TOY), "--noise", "1%"]
    assert main(["simulate", *words, "--plot", str(tmp_path / "strong")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# Simulated: laplace2d")
    assert "simulated step" in out
    assert "each operation delayed by 0.01 of its time on the mean, seed 0" in out
    assert (tmp_path / "strong.svg").read_text().count("Simulated strong scaling") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--noise", "loud"], "write seconds"),
        (["--noise", "-1"], "write seconds"),
        (["--overhead", "1"], "more than the latency"),
        (["--ranks", "2,4", "--goal", "x.goal"], "one choice"),
        (["--reductions", "1", "--goal", "x.goal"], "no barrier"),
        (["--isa", "avx2"], "unknown option '--isa'"),
        (["--ranks", "100000"], "ranks"),
    ],
)
def test_requests_that_cannot_work_say_what_to_do(capsys, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "laplace2d", "--cells", "64", "--profile", str(TOY), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_profile_without_the_cost_is_an_error(toy):
    with pytest.raises(UnavailableError, match="kernel"):
        model.simulate(bridge.Choice(app="laplace3d", cells=(64, 64, 64)), toy)
    with pytest.raises(UsageError, match="steps"):
        model.simulate(bridge.Choice(**PLAIN), toy, options=model.SimulationOptions(steps=0))


def test_times_that_do_not_fit_into_memory_are_refused(toy):
    with pytest.raises(UsageError, match=r"rounds of 2 ranks take .* GiB of memory, and .* GiB are free"):
        model.simulate(
            bridge.Choice(app="laplace2d", cells=(64, 64), ranks=2),
            toy,
            options=model.SimulationOptions(steps=2**31 - 1),
        )


def test_a_weak_scaling_may_have_many_ranks():
    assert model.scaled((64, 64, 64), "cubic", 100_000) == ((64 * 40, 64 * 50, 64 * 50), "40x50x50")
    assert model.scaled((64, 32), "cubic", 8192) == ((64 * 128, 32 * 64), "128x64")
