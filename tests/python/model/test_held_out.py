"""Intervals from held-out measurements: that they hold what they claim, what profiles keep, and the command that makes
them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from haloscope import bridge
from haloscope.advice import validate
from haloscope.errors import UsageError
from haloscope.model import held_out, predict, profile
from test_records import write
from test_validate import record
from toy import TOY, changed

NOISES = {
    "normal": lambda rng, n: rng.normal(0, 0.1, n),
    "biased": lambda rng, n: rng.normal(-0.2, 0.05, n),
    "skewed": lambda rng, n: rng.exponential(0.3, n),
    "heavy": lambda rng, n: rng.standard_t(2, n),
}


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(NOISES)), st.integers(19, 400), st.integers(0, 2**32 - 1))
def test_intervals_hold_nine_tenths_of_further_cases_whatever_the_noise(noise, count, seed):
    rng = np.random.default_rng(seed)
    trials, inside = 400, 0
    for _ in range(trials):  # further cases of one calibration are not independent, so each has its own
        logs = NOISES[noise](rng, count + 1)
        low, high = held_out.quantiles(logs[:-1])
        inside += low <= logs[-1] <= high
    most = held_out.NOMINAL + 2 / (count + 1)
    low, high = binom.ppf(1e-6, trials, held_out.NOMINAL), binom.ppf(1 - 1e-6, trials, most)
    assert low <= inside <= high


def test_too_few_cases_make_no_interval():
    assert held_out.quantiles([0.0] * 18) is None
    assert held_out.quantiles(range(19)) == (0, 18)
    assert held_out.quantiles(range(39)) == (1, 37)
    assert held_out.quantiles([]) is None


def test_a_regime_with_too_few_cases_counts_among_all_only():
    found = held_out.by_regime([("compute-bound", 0.1)] * 30 + [("imbalance", 0.5)] * 5)
    assert set(found) == {"all", "compute-bound"}
    assert found["all"]["count"] == 35 and found["compute-bound"] == {"count": 30, "low": 0.1, "high": 0.1}
    assert found["all"]["high"] == 0.5


CHOICE = bridge.Choice("laplace2d", (256, 256), ranks=4)


def holding(toy, **residuals):
    """The toy profile with residuals of steps, by regime; of all exchanges from -0.1 to 0.1."""
    steps = {name.replace("_", "-"): {"count": 40, "low": r[0], "high": r[1]} for name, r in residuals.items()}
    exchange = {"all": {"count": 40, "low": -0.1, "high": 0.1}}
    return changed(toy, lambda data: data.update(held_out={"step": steps, "exchange": exchange}))


def test_a_prediction_has_the_interval_of_its_regime():
    toy = profile.load(TOY)
    p = predict.predict(CHOICE, holding(toy, all=(-1, 1), compute_bound=(0, math.log(2))))
    assert p.regime == p.interval_from == "compute-bound"
    assert p.interval == pytest.approx((p.time_s, 2 * p.time_s))
    assert p.exchange_interval == pytest.approx((p.exchange_s * math.exp(-0.1), p.exchange_s * math.exp(0.1)))
    assert predict.predict(CHOICE, holding(toy, all=(-1, 1))).interval_from == "all"
    assert predict.predict(CHOICE, holding(toy, all=(-1, 1)), samples=0).interval is None
    assert predict.predict(CHOICE, toy).interval_from == ""


def cases(toy, factors) -> list[dict]:
    """A measurement of a grid for each factor over its prediction."""
    found = []
    for number, factor in enumerate(factors):
        cells = (64 + 2 * number, 64)
        seconds = predict.predict(bridge.Choice("laplace2d", cells, ranks=4), toy, samples=0).time_s
        one = record(factor * seconds, cells=cells, exchange=seconds / 2)
        one["launch"]["time_utc"] = f"2026-01-01T00:00:{number:02d}Z"
        found.append(one)
    return found


def test_residuals_are_measured_over_predicted():
    toy = profile.load(TOY)
    pairs = validate.validate(cases(toy, [1.5] * 20), toy, samples=0).pairs
    found = validate.residuals(pairs)
    assert found["measured"] == ["2026-01-01T00:00:00Z", "2026-01-01T00:00:19Z"]
    assert found["step"]["all"] == pytest.approx({"count": 20, "low": math.log(1.5), "high": math.log(1.5)})
    assert found["exchange"]["all"]["count"] == 20
    kept = changed(toy, lambda data: data.update(held_out=found))
    again = validate.validate(cases(toy, [1.5] * 20), kept)
    assert validate.coverage(again.pairs).inside == validate.coverage(again.pairs).from_held_out == 20
    assert validate.coverage(again.pairs, exchange=True).inside == 20
    assert not validate.are_held_out(again.pairs, kept) and validate.are_held_out(again.pairs, toy)


@pytest.fixture
def files(tmp_path):
    """A profile of one's own, and a record file with a number of measurements."""
    (tmp_path / "machine.json").write_text(TOY.read_text())

    def measured(count: int):
        records = write(tmp_path / "r.jsonl", *cases(profile.load(TOY), np.linspace(1, 1.3, count)))
        return tmp_path / "machine.json", records

    return measured


def test_the_command_writes_intervals_into_the_profile_and_says_what_they_do_not_prove(files, haloscope):
    machine, measured = files(30)
    done = haloscope("validate", measured, "--profile", machine, "--keep-intervals")
    assert done.code == 0, done.err
    assert "Intervals of steps written to" in done.out and "all (30)" in done.out
    assert profile.load(machine).data["held_out"]["step"]["all"]["count"] == 30
    again = haloscope("validate", measured, "--profile", machine)
    assert "30 intervals are from held-out measurements, these among them" in again.out
    shown = haloscope("predict", "laplace2d", "--cells", "100", "--ranks", "4", "--profile", machine)
    assert "90 %: from held-out measurements" in shown.out


def test_too_few_measurements_or_a_shipped_profile_are_refused(files, haloscope):
    machine, measured = files(5)
    before = profile.load(machine).data
    few = haloscope("validate", measured, "--profile", machine, "--keep-intervals")
    assert few.code == 2 and "5 choices are too few" in few.err
    assert profile.load(machine).data == before
    shipped = haloscope("validate", measured, "--profile", profile.names()[0], "--keep-intervals")
    assert shipped.code == 2 and "comes with the package" in shipped.err


def test_residuals_that_are_none_are_refused_with_their_place():
    with pytest.raises(UsageError, match="held_out/step/all"):
        holding(profile.load(TOY), all=("low", 1))
