"""Conclusions of papers: judged by intervals, both ways, and without a verdict where the numbers give none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haloscope.records import stats
from haloscope.studies import findings
from haloscope.studies.findings import FAILS, HOLDS, NEEDS, UNCLEAR


def launches(*seconds: float) -> dict[str, list[float]]:
    return {f"launch-{n}": [value] for n, value in enumerate(seconds)}


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [((1.1, 1.3), HOLDS), ((0.7, 0.9), FAILS), ((0.9, 1.1), UNCLEAR), ((0.0, math.inf), UNCLEAR)],
)
def test_a_finding_holds_only_where_its_whole_interval_lies_within_the_bounds(ends, verdict):
    assert findings.judge(stats.Estimate(1.0, *ends, 9), low=1.0).verdict == verdict


def test_bounds_on_both_sides_are_judged():
    assert findings.judge(stats.Estimate(1.0, 0.97, 1.02, 9), 0.95, 1.05).verdict == HOLDS
    assert findings.judge(stats.Estimate(1.2, 1.1, 1.3, 9), 0.95, 1.05).verdict == FAILS
    assert findings.judge(stats.Estimate(1.0, 0.90, 1.02, 9), 0.95, 1.05).verdict == UNCLEAR


def test_cases_are_judged_together_by_launch():
    fast, slow = launches(1.0, 1.1, 0.9), launches(2.0, 2.2, 1.8)
    judged = findings.judge_cases([(slow, fast), (fast, fast)], low=1.0, lacking="")
    assert judged.verdict == HOLDS and str(judged) == "holds: 1.414 (1.414 .. 1.414), 2 cases"
    assert findings.judge_cases([(fast, slow)], low=1.0, lacking="").verdict == FAILS


def test_one_launch_gives_no_verdict():
    judged = findings.judge_cases([(launches(2.0), launches(1.0))], low=1.0, lacking="")
    assert str(judged) == "cannot be told: 2.000 (one launch has no interval), 1 case"


def test_a_finding_without_a_case_names_what_it_needs():
    assert str(findings.judge_cases([], lacking="a GPU")) == "needs a GPU"
    other = {"another launch": [1.0]}
    assert findings.judge_cases([(launches(1.0), other)], lacking="a GPU").verdict == NEEDS
    assert findings.judge_printed([]).verdict == NEEDS


def test_printed_numbers_have_no_interval_but_may_disagree():
    assert str(findings.judge_printed([1.2], low=1.0, about="V100")) == "holds: 1.200, V100"
    assert str(findings.judge_printed([0.9, 1.2], low=1.0)) == "cannot be told: 0.900 to 1.200, 1 of 2 within"
    assert findings.judge_printed([0.9, 0.8], low=1.0).verdict == FAILS


def test_the_interval_over_few_launches_covers_as_often_as_it_promises():
    rng = np.random.default_rng(5)
    for count in (2, 3, 5):
        found = [
            stats.mean_over_launches(dict(enumerate(np.exp(rng.normal(0.3, 0.2, size=count))))) for _ in range(400)
        ]
        hits = sum(one.low <= math.exp(0.3) <= one.high for one in found)
        assert 0.92 <= hits / 400 <= 0.98, count


def test_an_interval_of_higher_confidence_is_wider():
    usual, sure = (stats.mean_over_launches(dict(enumerate((1.0, 1.2, 0.9))), confidence=c) for c in (0.95, 0.999))
    assert sure.low < usual.low < usual.value == sure.value < usual.high < sure.high
    assert stats.mean_over_launches({0: 1.0}, confidence=0.5).high == math.inf
    apart = stats.mean_over_launches({0: 1e-3, 1: 1e3}, confidence=0.999)
    assert (apart.low, apart.high) == (0.0, math.inf)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=6), st.floats(0.1, 10))
def test_slower_launches_scale_the_number_and_its_interval(seconds, factor):
    one = stats.mean_over_launches(dict(enumerate(seconds)))
    other = stats.mean_over_launches({k: factor * s for k, s in enumerate(seconds)})
    assert other.value == pytest.approx(factor * one.value)
    assert other.low == pytest.approx(factor * one.low)


def test_the_table_ends_with_the_number_of_each_verdict():
    made = [
        findings.Finding(name, "A is fast.", "2.1", findings.judge_printed([2.0], low=1), here)
        for name, here in {
            "a": findings.Judgement(HOLDS, "2 (1 .. 3)"),
            "b": findings.needs("a GPU"),
            "c": findings.Judgement(HOLDS, ""),
        }.items()
    ]
    text = findings.table(made)
    assert text.endswith("Of 3 findings, here 2 hold, 1 cannot be judged.")
    assert text.count("A is fast.") == 3 and "needs a GPU" in text
