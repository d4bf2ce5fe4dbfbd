"""Medians, intervals, paired ratios, outliers."""

from __future__ import annotations

import numpy as np
import pytest

from haloscope.records import stats


def test_the_median_is_over_launches_so_one_bad_launch_does_not_move_it():
    launches = [[1.0, 1.1, 1.2], [1.0, 1.1, 1.3], [9.0, 9.1, 9.2]]
    found = stats.median_over_launches(launches)
    assert found.value == pytest.approx(1.1)
    assert found.low <= 1.1 <= found.high and found.high > 5  # yet the interval shows that a launch disagreed
    assert (found.samples, found.launches) == (9, 3)


def test_the_interval_covers_the_true_median_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for trial in range(200):
        launches = [rng.normal(10 + rng.normal(0, 0.3), 0.3, size=8) for _ in range(8)]
        found = stats.median_over_launches(launches, seed=trial, resamples=300)
        hits += found.low <= 10 <= found.high
    assert 0.88 <= hits / 200 <= 1.0


def test_the_interval_narrows_with_more_launches():
    rng = np.random.default_rng(2)
    width = {}
    for count in (4, 64):
        found = stats.median_over_launches([rng.normal(1, 0.1, size=5) for _ in range(count)])
        width[count] = found.high - found.low
    assert width[64] < width[4] / 2


def test_no_samples_are_refused():
    for launches in ([], [[1.0], []]):
        with pytest.raises(ValueError, match="at least one"):
            stats.median_over_launches(launches)


def test_pairing_by_launch_cancels_what_a_launch_did_to_both():
    rng = np.random.default_rng(3)
    slow = {str(k): s for k, s in enumerate(rng.uniform(1, 3, size=6))}
    a = {k: s * rng.normal(1.10, 0.002, size=5) for k, s in slow.items()}
    b = {k: s * rng.normal(1.00, 0.002, size=5) for k, s in slow.items()}
    found = stats.ratio_of_launches(a, b)
    assert found.value == pytest.approx(1.10, abs=0.005)
    assert found.high - found.low < 0.01
    unpaired = stats.ratio_of_launches(a, {f"other {k}": v for k, v in b.items()})
    assert unpaired.high - unpaired.low > 0.1


def test_the_verdict_is_cannot_tell_apart_exactly_when_the_interval_holds_one():
    assert stats.verdict(stats.Estimate(1.02, 0.98, 1.06, 10)) == "cannot tell apart"
    assert stats.verdict(stats.Estimate(2.0, 1.8, 2.2, 10)) == "B is 2 x faster"
    assert stats.verdict(stats.Estimate(0.5, 0.4, 0.6, 10)) == "A is 2 x faster"


def test_medians_of_samples_have_intervals_of_order_statistics():
    found = stats.median_of(np.arange(1, 22) / 10.0)  # 21 values: the 6th to the 16th
    assert found.value == pytest.approx(1.1)
    assert (found.low, found.high) == (pytest.approx(0.6), pytest.approx(1.6))


def test_few_samples_have_the_whole_range_as_interval():
    found = stats.median_of([1.0, 2.0, 3.0])
    assert (found.value, found.low, found.high, found.samples) == (2.0, 1.0, 3.0, 3)


@pytest.mark.ids("V17")
def test_outliers_are_found_on_both_sides_and_agreement_flags_nobody():
    assert stats.outliers([1.0, 1.01, 0.99, 1.0, 3.0, 1.02, 0.2]) == [4, 6]
    assert stats.outliers([1.0, 1.0001, 1.0, 1.0, 1.0002]) == []
    assert stats.outliers([1.0, 1.0, 1.0, 1.0, 5.482]) == [4]
