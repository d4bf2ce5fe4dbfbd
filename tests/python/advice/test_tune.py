"""Tuning: what halving keeps, what it measures, what happens to candidates that fail, and a real tuning on two
ranks.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope import bridge, errors, records
from haloscope.advice import tune as model
from haloscope.measure import isolated, space
from haloscope.measure.request import Request
from haloscope.model import profile
from haloscope.records.rows import Row
from haloscope.report.code import code_for
from toy import TOY

SHORT = (model.Length(0.01, 2), model.Length(0.02, 2), model.Length(0.04, 2))


def candidates(count: int) -> list[Request]:
    """Distinct requests; the trials treat all alike."""
    return [Request.of(bridge.Choice("laplace2d", (64, 64), ranks=2, depth=1 + n)) for n in range(count)]


class Machine:
    """Stands for the ranks: `times` seconds per step by depth - 1, each launch off by up to `noise` to either side.

    failing: places that end in a failed record, wrong: places whose result differs from `reference`.
    """

    def __init__(self, times, noise=0.0, seed=0, failing=(), wrong=()):
        self.times, self.noise, self.random = times, noise, random.Random(seed)
        self.failing, self.wrong, self.measured = failing, wrong, []

    def __call__(self, r: Request, launch_id: str) -> dict:
        place = r.choice.depth - 1
        self.measured.append((launch_id, r.id))
        wall = 0.3 + r.seconds * (r.repetitions + 1)
        about = {
            "schema": "haloscope.record",
            "schema_version": 2,
            "id": r.id,
            "launch": {"id": launch_id},
            "tuning": {"wall_s": wall},
        }
        if place in self.failing:
            return about | {"kind": "failed", "reason": "rank 1 died"}
        seconds = self.times[place] * (1 + self.random.uniform(-self.noise, self.noise))
        request = {**r.request(), "steps": 10}
        return about | {
            "kind": "measurement",
            "request": request,
            "time_s": {"repetitions": [10 * seconds] * 2},
            "verification": {"status": "failed" if place in self.wrong else "passed"},
        }


def trials(machine, count, **options) -> model.TrialRounds:
    timed = [model.TimedCandidate(r) for r in candidates(count)]
    return model.TrialRounds(timed, machine, **{"budget_s": 1e9, "rounds": SHORT, **options}).run()


# ---- rules of the trials ---------------------------------------------------------------------------------------------

times = st.lists(st.floats(1e-4, 2e-4), min_size=1, max_size=12)


@given(times, st.floats(0.0, 0.1), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_the_true_best_is_never_dropped_while_the_noise_is_bounded(times, noise, seed):
    found = trials(Machine(times, noise, seed), len(times), noise=max(noise, 0.001))
    best = found.candidates[min(range(len(times)), key=times.__getitem__)]
    assert best.fate == ""
    winner = times[found.ranking[0].request.choice.depth - 1]
    assert winner <= min(times) * (1 + noise) / (1 - noise) * (1 + 1e-9)


@given(times, st.integers(0, 1000), st.floats(0.5, 20.0))
@settings(max_examples=30, deadline=None)
def test_every_candidate_ends_in_the_ranking_with_a_reason_or_as_a_survivor(times, seed, budget):
    found = trials(Machine(times, 0.05, seed), len(times), budget_s=budget)
    assert sorted(e.id for e in found.ranking) == sorted(e.id for e in found.candidates)
    assert found.ranking[0].fate == "" and found.ranking[0].launches
    for candidate in found.candidates:
        assert candidate.fate or candidate.rounds


@given(times, st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11)))
@settings(max_examples=30, deadline=None)
def test_failing_candidates_are_reported_and_never_chosen(times, failing, wrong):
    machine = Machine(times, failing=failing, wrong=wrong)
    bad = {n for n in failing | wrong if n < len(times)}
    if len(bad) == len(times):
        with pytest.raises(errors.HaloscopeError, match="no candidate could be measured"):
            trials(machine, len(times))
        return
    found = trials(machine, len(times))
    assert found.ranking[0].request.choice.depth - 1 not in bad
    for place in bad:
        reason = "rank 1 died" if place in failing else "differs from `reference`"
        assert found.candidates[place].fate == f"failed: {reason}" or reason in found.candidates[place].fate


def test_what_is_clearly_slower_goes_first_and_is_not_measured_for_long():
    machine = Machine([3e-4, 1e-4, 2e-4, 1.01e-4])
    found = trials(machine, 4)
    assert [e.rounds for e in found.candidates] == [1, 3, 1, 3]
    assert found.candidates[0].fate.startswith("3.00 times the best")
    assert found.ranking[0].request.choice.depth == 2


def test_without_time_only_the_first_few_are_tried_and_the_rest_says_so():
    found = trials(Machine([1e-4] * 40), 40, budget_s=1.0)
    measured = [e for e in found.candidates if e.launches]
    assert len(measured) == model.LEAST
    assert measured == list(found.candidates[: model.LEAST])
    assert all("not measured: time was up" in e.fate for e in found.candidates[model.LEAST :])


def test_a_tenth_of_measuring_everything_is_what_it_takes_unless_told_otherwise():
    machine = Machine([1e-4 * (1 + n / 100) for n in range(150)])
    found = trials(machine, 150, budget_s=None, rounds=model.ROUNDS)
    assert found.exhaustive_s == pytest.approx(150 * (0.3 + model.ROUNDS[-1].total))
    assert 0.08 * found.exhaustive_s < found.spent_s <= model.SHARE * found.exhaustive_s


def test_one_lucky_launch_does_not_win_where_there_is_time_for_more():
    class Lucky(Machine):
        def __call__(self, r, launch_id):
            lucky = launch_id == f"round-{len(SHORT)}" and r.choice.depth == 2
            self.times = [1e-4, 1.03e-4 * (0.95 if lucky else 1)]
            return super().__call__(r, launch_id)

    assert trials(Lucky([0, 0]), 2).ranking[0].request.choice.depth == 1
    enough = sum(length.total + 0.3 for length in SHORT) * 3  # for the rounds and no more
    assert trials(Lucky([0, 0]), 2, budget_s=enough).ranking[0].request.choice.depth == 2


def test_a_machine_that_drifts_raises_the_noise_and_drops_less():
    class Drifting(Machine):
        def __call__(self, r, launch_id):
            self.times = [t * 1.1 for t in self.times]
            return super().__call__(r, launch_id)

    calm, drifting = trials(Machine([1e-4, 1.2e-4, 1.3e-4]), 3), trials(Drifting([1e-4, 1.2e-4, 1.3e-4]), 3)
    assert calm.seen_noise[0] == model.NOISE and drifting.seen_noise[0] > 0.3
    assert calm.candidates[1].fate and not drifting.candidates[1].fate


# ---- the order -------------------------------------------------------------------------------------------------------


def small_space() -> list[Request]:
    axes = {
        "cells": [(256, 256)],
        "ranks": [4],
        "schedule": ["bulk", "split"],
        "depth": [1, 4],
        "strategy": ["direct/p2p", "ordered/persistent", "ordered/p2p", "ordered/rma-pscw"],
    }
    return space.expand("laplace2d", axes).requests


def test_the_model_says_what_is_tried_first_after_the_default():
    order = model.order(small_space(), profile.load(TOY))
    assert model.is_default(order.candidates[0].request)
    priced = [e.predicted_s for e in order.candidates[1:] if e.predicted_s]
    assert len(priced) == 11 and len(order.candidates) == 16
    assert all(b > a / (1 + 11 * model.ALIKE) for a, b in itertools.pairwise(priced))
    assert [e.predicted_s for e in order.candidates[12:]] == [None] * 4
    [(reason, count)] = order.unpriced.items()
    assert "rma-pscw" in reason and count == 4


def test_of_candidates_that_are_predicted_alike_the_second_waits():
    assert model._turns([1.0, 1.0, 1.05, None, 1.0]) == pytest.approx([1.0, 1.1, 1.05, float("inf"), 1.2])


def test_without_a_profile_the_order_is_random_and_can_be_repeated():
    first, again, other = (model.order(small_space(), None, seed=seed).candidates for seed in (1, 1, 2))
    assert [e.id for e in first] == [e.id for e in again] != [e.id for e in other]
    assert {e.id for e in first} == {e.id for e in other}


# ---- isolation and resuming ------------------------------------------------------------------------------------------


@given(st.lists(st.floats(1e-4, 2e-4), min_size=2, max_size=6), st.integers(1, 12), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_a_tuning_that_is_resumed_measures_nothing_twice(tmp_path_factory, times, stop, seed):
    """Interrupted after `stop` measurements, with a line cut short, then resumed: as if it had never been
    interrupted.
    """
    file = tmp_path_factory.mktemp("tune") / "t.jsonl"
    whole = Machine(times, 0.05, seed)
    one = Machine(times, 0.05, seed)

    def tuning(machine, resume, limit=10**6):
        measurer = isolated.Isolated(file, resume=resume)

        def ended(request, launch_id, timeout_s):
            if len(machine.measured) == limit:
                raise KeyboardInterrupt
            return machine(request, launch_id)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(isolated, "_measured", ended)
            patch.setattr(records, "fault_of", lambda *_: "")  # records made here hold only what tuning reads
            return trials(measurer.once, len(times)), measurer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "fault_of", lambda *_: "")
        try:
            tuning(one, resume=False, limit=stop)
        except KeyboardInterrupt:
            with file.open("a") as cut:
                cut.write('{"schema": "haloscope.rec')
        found, measurer = tuning(one, resume=True)
    assert len(one.measured) == len(set(one.measured))
    assert measurer.complaints == [] or "line" in measurer.complaints[0]
    straight = trials(whole, len(times))
    assert [e.id for e in found.ranking] == [e.id for e in straight.ranking]
    assert one.measured == whole.measured


def test_a_file_is_not_overwritten_without_being_told_to_resume(tmp_path):
    file = tmp_path / "t.jsonl"
    file.write_text("\n")
    with pytest.raises(errors.UsageError, match="--resume"):
        isolated.Isolated(file)


def test_a_launch_that_hangs_is_ended_and_recorded(tmp_path, monkeypatch):
    from haloscope.measure import launch

    command = launch.Job.command
    monkeypatch.setattr(launch.Job, "command", lambda job, folder: [*command(job, folder)[:-2], *stuck(job, folder)])
    request = Request.of(bridge.Choice("laplace2d", (64, 64), ranks=2), seconds=0.01, repetitions=2)
    record = isolated.Isolated(tmp_path / "t.jsonl", timeout_s=1.5).once(request, "round-1")
    assert record["kind"] == "failed" and "1.5 s" in record["reason"]
    assert record["tuning"]["wall_s"] > 1.5
    assert records.read(tmp_path / "t.jsonl").records == [record]


@pytest.mark.long
def test_a_launch_that_takes_long_is_reported_and_not_ended_by_default(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HALOSCOPE_PATIENCE", "0.05")  # it lasts longer than one check of the ranks
    request = Request.of(bridge.Choice("laplace2d", (64, 64), ranks=2), seconds=0.5, repetitions=2)
    measurer = isolated.Isolated(tmp_path / "t.jsonl")
    assert measurer.timeout_s == math.inf
    assert measurer.once(request, "round-1")["kind"] == "measurement"
    reports = re.findall(
        r"^haloscope: (.*) after \d+ s; the wait goes on; (.*)$", capsys.readouterr().err, re.MULTILINE
    )
    assert reports
    for late, rest in reports:
        if late == f"no rank of {request.id} has appeared":
            assert rest.startswith("is /")
        else:
            assert late == f"{request.id} has not been measured"
            assert re.match(r"rank 0 is (during|in phase) ", rest)


@pytest.mark.long
def test_tuning_ends_no_launch_by_default(haloscope, monkeypatch):
    limits = []

    def refuse(output, timeout_s, resume):
        limits.append(timeout_s)
        raise errors.UsageError("enough")

    monkeypatch.setattr(isolated, "Isolated", refuse)
    for words in ((), ("--timeout", 0), ("--timeout", 7)):
        haloscope("tune", "laplace2d", "--cells", "64", *words)
    assert limits == [math.inf, math.inf, 7]


def stuck(job, folder):
    """Words that make a rank hang, with a watchdog that would notice only later."""
    return ["--inject", "hang:rank=0,step=1", "--watchdog", "60", "--requests", str(folder / "requests.jsonl")]


# ---- what is decided -------------------------------------------------------------------------------------------------


def rows(times) -> model.Rerun:

    made = {
        c.id: Row(c.id, {}, {f"launch-{n}": [t, t * 1.01] for n in range(5)}, [])
        for c, t in zip(candidates(len(times)), times, strict=True)
    }
    return model.Rerun(made, 1.0)


def test_the_re_run_has_the_last_word_but_only_beyond_its_interval():
    winner, runner, default = candidates(3)
    assert model.decide(winner, [runner, default], rows([1.0, 1.3, 2.0])) is winner
    assert model.decide(winner, [runner, default], rows([1.0, 0.8, 0.5])) is default
    assert model.decide(winner, [runner, default], rows([1.0, 0.999, 1.5])) is winner
    assert model.decide(winner, [runner, default], model.Rerun({}, 0.0)) is winner


def test_the_default_of_any_choice_is_the_plain_exchange_of_the_same_problem():
    choice = bridge.Choice(
        "laplace2d",
        (64, 64),
        ranks=2,
        strategy="direct/persistent",
        schedule="split",
        depth=4,
        substeps="shrink",
        tiles=4,
    )
    plain = model.default_of(Request.of(choice, verify=9))
    assert model.is_default(plain) and plain.verify == 3
    assert (plain.choice.substeps, plain.choice.tiles, plain.choice.cells) == (
        "full",
        bridge.Choice.tiles,
        choice.cells,
    )


def test_all_candidates_are_measured_once_when_asked():
    machine = Machine([3e-4, 1e-4, 2e-4], failing={2})
    ranking, seconds = model.exhaustively([model.TimedCandidate(r) for r in candidates(3)], machine)
    assert [r.choice.depth for r in ranking] == [2, 1] and len(machine.measured) == 3
    assert seconds == pytest.approx(3 * (0.3 + model.ROUNDS[-1].total))


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--cells", "64,128"), "one grid"),
        (("--cells", "64", "--strategy", "reference"), "not a candidate"),
        (("--cells", "64", "--strategy", "orderd/p2p"), "did you mean"),
        (("--cells", "64", "--schedule", "pipeline"), "for sweeps in place"),
        (("--cells", "64", "--budget", "0"), "--budget"),
        (("--cells", "64", "--strategy", "ordered/p2p", "--threads", "4096"), "fewer --threads"),
        (("--cells", "64", "--profile", "nowhere.json"), "cannot read the profile"),
    ],
)
def test_bad_input_is_a_clear_error(haloscope, words, expected):
    result = haloscope("tune", "laplace2d", *words)
    assert result.code == 2 and expected in result.err
    assert not Path("results").exists()


def test_the_command_to_measure_the_choice_says_all_that_was_varied():
    choice = bridge.Choice("laplace2d", (64, 64), ranks=4, process_grid="4x1", real="f32", tiles=4, schedule="split")
    code = code_for(choice)
    last = code.splitlines()[-1]
    for words in ("haloscope run laplace2d", "--process-grid 4x1", "--tiles 4", "--real f32", "--schedule split"):
        assert words in last
    assert "Field<float, 2>" in code


def test_a_real_tuning_on_two_ranks_chooses_confirms_and_resumes(haloscope, tmp_path, monkeypatch):
    monkeypatch.setattr(model, "ROUNDS", SHORT)
    file = tmp_path / "t.jsonl"
    line = (
        "tune laplace2d --cells 128 --strategy ordered/p2p,direct/p2p,ordered/persistent --schedule bulk,comm-thread "
        "--depth 1,2 --substeps full --budget 2 --confirm 2"
    )
    words = (line, "--profile", TOY, "--output", file)
    result = haloscope(*words)
    assert result.code == 0, result.err
    for text in (
        "is the choice",
        "## To use it",
        "haloscope::Grid<",
        "Measured for",
        "cannot be: schedule 'comm-thread'",
        "in the order that profile 'toy' predicts",
        "## Measured again",
    ):
        assert text in result.out
    found = records.read(file)
    assert not found.bad_lines
    measured = [r for r in found.records if r["kind"] == "measurement"]
    assert len(measured) >= 4 and all(r["verification"]["status"] == "passed" for r in measured)
    assert len({r["launch"]["id"] + r["id"] for r in measured}) == len(measured)
    before = file.read_text()
    again = haloscope(*words, "--resume")
    assert again.code == 0, again.err
    assert file.read_text().strip() == before.strip()
    assert again.out.splitlines()[2] == result.out.splitlines()[2]
    checked = haloscope("validate", file, "--profile", TOY)
    assert checked.code == 0 and "## Order and regret" in checked.out
    assert all(json.loads(line)["tuning"]["wall_s"] > 0 for line in before.splitlines() if line.strip())
