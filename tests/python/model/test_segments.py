"""Piecewise linear costs and their fits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope.errors import UsageError
from haloscope.model import fit, segments
from haloscope.model.segments import Segment

TWO = [Segment(0, 100, 1.0, 0.5), Segment(100, math.inf, 10.0, 0.25)]


def test_a_cost_is_that_of_the_range_that_holds_the_amount():
    assert [segments.evaluate(TWO, a) for a in (0, 99, 100, 1000)] == [1.0, 50.5, 35.0, 260.0]
    assert segments.evaluate(TWO, np.array([0, 99, 100, 1000])).tolist() == [1.0, 50.5, 35.0, 260.0]


def test_outside_all_ranges_the_nearest_segment_is_continued():
    assert segments.evaluate([Segment(10, 20, 1.0, 1.0)], 5) == 6.0
    assert segments.evaluate([Segment(10, 20, 1.0, 1.0)], np.array([5, 40])).tolist() == [6.0, 41.0]


def test_between_two_thread_counts_costs_are_interpolated_and_outside_the_nearest_is_taken():
    by_cores = {2: [Segment(0, math.inf, 0, 1.0)], 4: [Segment(0, math.inf, 0, 3.0)]}
    assert [segments.evaluate_at(by_cores, n, 10) for n in (1, 2, 3, 4, 9)] == [10, 10, 20, 30, 30]


def test_segments_survive_the_way_through_json():
    made = [
        Segment(0, 64, 1e-6, 2e-9, {"fixed": (0.5e-6, 2e-6), "slope": (1e-9, 3e-9)}),
        Segment(64, math.inf, 0, 1e-9),
    ]
    for unit in segments.KEYS:
        back = segments.from_json(segments.to_json(made, unit), unit)
        assert back == made and back[0].interval == made[0].interval


def test_a_gap_between_segments_is_an_error_that_names_both_ends():
    rows = segments.to_json([Segment(0, 64, 0, 1e-9), Segment(65, math.inf, 0, 1e-9)])
    with pytest.raises(UsageError, match=r"ends at 64 bytes, the next starts at 65"):
        segments.from_json(rows)


@given(st.floats(1e-7, 1e-4), st.floats(1e-11, 1e-8), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_a_line_is_found_again_within_its_noise(fixed, slope, seed):
    sizes = np.geomspace(1, 2**22, 40)
    noise = 1 + 0.02 * np.random.default_rng(seed).uniform(-1, 1, 40)
    a, b = fit.line(sizes, (fixed + slope * sizes) * noise)
    assert a == pytest.approx(fixed, rel=0.1) and b == pytest.approx(slope, rel=0.1)


def test_relative_errors_keep_small_amounts_right_where_plain_least_squares_does_not():
    sizes, times = np.array([1.0, 1e3, 1e6, 2e6]), np.array([1.0, 2.0, 1000.0, 2300.0])
    relative = fit.relative_errors(fit.pieces(sizes, times), sizes, times)
    plain = fit.relative_errors(fit.pieces(sizes, times, relative=False, positive=False), sizes, times)
    assert abs(relative[0]) < 0.1 and abs(plain[0]) > 1


def test_a_robust_loss_forgives_an_outlier():
    sizes = np.linspace(1, 100, 30)
    times = 5 + 2 * sizes
    times[20] /= 10  # least relative error follows times that are too short
    assert fit.line(sizes, times, loss="soft_l1")[1] == pytest.approx(2, rel=0.03)
    assert fit.line(sizes, times, loss="linear")[1] != pytest.approx(2, rel=0.03)
    with pytest.raises(UsageError, match="not a loss function"):
        fit.line(sizes, times, loss="square")


def test_parameters_are_positive_and_those_the_data_do_not_determine_are_zero():
    assert fit.line([100, 200, 300], [50, 160, 270])[0] == 0.0  # the line would start at -60
    noisy = np.array([1.0, 1.2, 0.9, 1.1, 0.95, 1.15])
    assert fit.line(np.arange(6), noisy)[1] == 0.0  # a slope of 0.01 with an error of 0.03
    assert fit.line([50, 50], [5, 5]) == (0.0, 0.1)  # one amount: proportional


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 9), st.integers(0, 10**6), st.sampled_from((0.0, 0.02, 0.5, 3.0)), st.booleans())
def test_many_lines_at_once_are_those_fitted_one_by_one(points, seed, noise, positive):
    """Bootstrap samples of few points: some have one amount alone, some fall with the amount, some are all noise."""
    random = np.random.default_rng(seed)
    x = random.choice([8, 64, 1000, 4096, 1e6], points)
    y = (1e-6 + 1e-9 * x) * np.exp(noise * random.standard_normal(points))
    counts = random.multinomial(points, np.full(points, 1 / points), size=20)
    found = fit.lines(x, y, counts, positive=positive)
    for row, many in zip(found, counts, strict=True):
        assert row == pytest.approx(fit.line(np.repeat(x, many), np.repeat(y, many), positive=positive), rel=1e-4)


def test_automatic_breaks_find_jumps_of_twenty_percent_that_the_rule_misses():
    sizes = np.arange(1, 101) * 1024.0
    times = np.where(sizes < 51200, 2 + sizes * 1e-3, (2 + sizes * 1e-3) * 1.2)
    assert fit.find_breaks(sizes, times) == [51200.0]
    assert fit.breaks_by_rule(sizes, times) == []
    assert fit.find_breaks(sizes, 2 + sizes * 1e-3) == []


@pytest.mark.parametrize("bad", [([], []), ([1, 2], [1]), ([1, 2], [1, 0]), ([-1, 2], [1, 2])])
def test_data_that_no_fit_can_use_are_refused(bad):
    with pytest.raises(UsageError, match="a fit needs"):
        fit.line(*bad)
