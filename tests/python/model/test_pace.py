"""The pace of a machine: in records, in profiles, in predictions, in validation and tuning, and in the words of
commands.
"""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope import bridge, records
from haloscope.advice import tune, validate
from haloscope.errors import UnavailableError, UsageError
from haloscope.measure import pace as measuring
from haloscope.measure.request import Request
from haloscope.model import pace, predict, profile
from test_validate import record
from toy import TOY, changed

STEADY = {f"{kind}_s": 1e-6 for kind in pace.KINDS}


def paced(error: float = 0.0, **times) -> dict:
    """A pace of 4 ranks: every kernel 1e-6 s, but those named."""
    found = STEADY | {f"{kind}_s": seconds for kind, seconds in times.items()}
    return {"ranks": 4, "rounds": 30, "share": 0.01, "error": dict.fromkeys(found, error), **found}


@pytest.fixture
def toy():
    def add(data):
        data["pace"] = {"4": {k: v for k, v in paced().items() if k not in ("ranks", "rounds", "share")}}

    return changed(profile.load(TOY), add)


def predicted(machine, **choice):
    return predict.predict(bridge.Choice("laplace2d", (256, 256), ranks=4, **choice), machine, samples=20)


@settings(max_examples=25, deadline=None)
@given(
    st.floats(0.2, 5),
    st.sampled_from(("ordered/p2p", "direct/persistent", "ordered/shared")),
    st.sampled_from(("bulk", "split")),
    st.sampled_from((1, 4)),
)
def test_a_machine_slower_in_everything_takes_as_much_longer(factor, strategy, schedule, depth):
    toy = changed(profile.load(TOY), lambda d: d.update(pace={"4": STEADY}))
    choice = {"strategy": strategy, "schedule": schedule, "depth": depth}
    try:
        before = predicted(toy, **choice)
    except UnavailableError:  # a transport that the profile does not know
        return
    after = predicted(toy.at_pace(paced(**dict.fromkeys(pace.KINDS, factor * 1e-6))), **choice)
    assert after.time_s == pytest.approx(factor * before.time_s, rel=1e-9)
    if before.interval:
        assert after.interval == pytest.approx([factor * end for end in before.interval], rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(pace.KINDS), st.floats(1.01, 4))
def test_a_slower_kernel_makes_no_prediction_shorter(kind, factor):
    toy = changed(profile.load(TOY), lambda d: d.update(pace={"4": STEADY}))
    slower = toy.at_pace(paced(**{kind: factor * 1e-6}))
    assert predicted(slower).time_s >= predicted(toy).time_s * (1 - 1e-12)


def test_a_prediction_says_for_which_pace_it_is(toy):
    assert set(predicted(toy).pace.values()) == {1.0}
    assert predicted(toy.at_pace(paced(memory=2e-6))).pace["memory"] == pytest.approx(2)


def test_a_pace_of_other_ranks_is_refused_with_those_known(toy):
    with pytest.raises(UnavailableError, match=r"no pace of 3 ranks \(it has: 4\)"):
        toy.at_pace(paced() | {"ranks": 3})


def test_the_pace_of_records_is_their_median():
    found = pace.of_records([{"pace": paced(0.04, compute=s)} for s in (1.0, 3.0, 2.0, 2.0)] + [{}])
    assert found["compute_s"] == 2.0
    assert found["error"]["memory_s"] == pytest.approx(0.04 / math.sqrt(4))
    assert pace.of_records([{}]) is None
    assert pace.of_records([{"pace": paced()}, {"pace": paced() | {"ranks": 2}}]) is None


def test_a_profile_keeps_the_pace_of_each_rank_count():
    found = [
        {"pace": paced(), "launch": {"id": "launch-1", "time_utc": "2026-01-02T00:00:00Z"}},
        {"pace": paced() | {"ranks": 2}, "launch": {"id": "launch-1", "time_utc": "2026-01-01T00:00:00Z"}},
        {"launch": {"id": "launch-1"}},
    ]
    kept = pace.by_ranks(found)
    assert list(kept) == ["2", "4"]
    assert kept["4"]["measured"] == "2026-01-02T00:00:00Z"
    profile.checked({**profile.load(TOY).data, "pace": kept})


def of_launches(*times: float, error: float = 0.001) -> list[dict]:
    return [
        {"pace": paced(error, memory=t), "launch": {"id": f"launch-{i}"}}
        for i, t in enumerate(times, 1)
        for _ in range(5)
    ]


def test_a_machine_that_changed_while_it_was_calibrated_is_told():
    (text,) = pace.changes(of_launches(1e-6, 1e-6, 1.2e-6))
    assert text.endswith("memory +20 % in launch-3 with 4 ranks, against all launches")
    assert not pace.changes(of_launches(1e-6, 1.04e-6, 1e-6))
    assert not pace.changes(of_launches(1e-6, 1.2e-6, 1e-6, error=0.5))  # too small to be distinguished


def at(row_pace: dict, seconds: float, **more) -> dict:
    return record(seconds, **more) | {"pace": row_pace}


def test_validation_compares_at_equal_pace(toy):
    slow = paced(**dict.fromkeys(pace.KINDS, 1.2e-6))
    found = validate.validate([at(slow, 1.2 * predicted(toy).time_s)], toy, samples=0)
    (pair,) = found.pairs
    assert pair.paced and abs(pair.error) < 1e-9
    assert validate.pace_against(found.pairs)["memory"] == pytest.approx(1.2)
    without = validate.validate([record(1.2 * predicted(toy).time_s)], toy, samples=0).pairs
    assert not without[0].paced and without[0].error == pytest.approx(1 / 1.2 - 1)
    assert validate.pace_against(without) == {}


def test_tuning_brings_launches_to_the_pace_of_the_first(toy):
    request = Request.of(bridge.Choice("laplace2d", (256, 256), ranks=4))
    level = tune.Levelling(toy)
    assert level.factor(request, {}) == 1
    assert level.factor(request, {"pace": paced()}) == 1
    assert level.factor(request, {"pace": paced(**dict.fromkeys(pace.KINDS, 2e-6))}) == pytest.approx(0.5)
    assert level.in_use and not tune.Levelling(None).in_use
    assert tune.Levelling(None).factor(request, {"pace": paced()}) == 1


def test_an_age_is_said_in_words():
    now = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    assert pace.age_s({"measured": "2026-01-01T00:00:00Z"}, now) == 86400
    assert pace.age_s({}) is None
    assert [pace.ago(s) for s in (100, 7200, 86400, 3 * 86400)] == ["2 minutes", "2 hours", "24 hours", "3 days"]


@pytest.fixture
def advised(haloscope):
    """Return a function that returns the output of `haloscope advise` with a profile and further options."""

    def advise(data, *more) -> str:
        Path("machine.json").write_text(json.dumps(data))
        done = haloscope("advise laplace2d --cells 256 --ranks 4 --depth 1 --profile machine.json", *more)
        assert done.code == 0, done.err
        return done.out

    return advise


def test_advice_says_when_its_pace_is_stale(toy, advised):
    old = json.loads(json.dumps(toy.data))
    old["pace"]["4"]["measured"] = "2020-01-01T00:00:00Z"
    assert "which is stale" in advised(old) and "--refresh" in advised(old)
    old["pace"]["4"]["measured"] = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert "Pace: that of the calibration.\n" in advised(old)
    del old["pace"]
    assert "the profile has none" in advised(old)


def test_a_pace_is_refreshed_on_the_same_machine_only(toy, monkeypatch):
    environment = {"cpu": "another", "mpi_library": "none"}
    monkeypatch.setattr(measuring.launch, "cores", lambda: 4)
    monkeypatch.setattr(measuring, "measure", lambda ranks: {"pace": paced(), "environment": environment})
    with pytest.raises(UsageError, match="another CPU"):
        measuring.now(toy)
    environment["cpu"] = "toy"
    assert measuring.now(toy)["ranks"] == 4
    monkeypatch.setattr(measuring.launch, "cores", lambda: 2)
    with pytest.raises(UsageError, match="pace of 4 ranks, but only 2 cores"):
        measuring.now(toy)
    with pytest.raises(UsageError, match="has no pace"):
        measuring.now(profile.load(TOY))


def test_advice_at_a_pace_measured_now_says_what_changed(toy, advised, monkeypatch):
    slower = paced(**dict.fromkeys(pace.KINDS, 1.5e-6))
    monkeypatch.setattr(measuring, "now", lambda machine: slower)
    found = advised(toy.data, "--refresh")
    assert "Pace: measured now; against the calibration: arithmetic +50 %" in found
    both = [json.loads(advised(toy.data, "--json", *more)) for more in ((), ("--refresh",))]
    times = [answer["candidates"][0]["time_s"] for answer in both]
    assert times[1] == pytest.approx(1.5 * times[0], rel=1e-6)


def test_the_pace_is_measured_on_ranks_of_its_own():
    found = measuring.measure(2, 0.05)
    assert not records.fault_of(found)
    assert found["pace"]["ranks"] == 2 and found["pace"]["rounds"] > 0


def test_every_record_of_a_launch_carries_its_pace(measure):
    found = measure("laplace2d --cells 64,96 --ranks 2 --seconds 0.1 --repetitions 3 --launches 1")
    assert len(found) == 2
    assert all({"compute_s", "memory_s", "latency_s", "bandwidth_s"} <= set(r["pace"]) for r in found)
