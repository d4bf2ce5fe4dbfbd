"""Non-negative least squares on relative errors: recovers its input, and names unidentified coefficients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope.errors import UsageError
from haloscope_studies.valen2023 import regression

BYTES = np.array([1e2, 1e3, 1e4, 1e5, 1e6, 1e7])
positive = st.floats(1e-9, 1e-3)


def latency_and_bytes(amounts) -> dict:
    return {"message": np.ones_like(amounts), "byte": amounts}


@settings(deadline=None)
@given(latency=positive, per_byte=positive)
def test_exact_data_give_the_coefficients_back(latency, per_byte):
    features = latency_and_bytes(BYTES)
    made = regression.fit(features, latency + per_byte * BYTES)
    assert np.allclose(made.predict(features), latency + per_byte * BYTES, rtol=1e-9)
    if latency / (per_byte * BYTES[-1]) > 1e-8 and latency / (per_byte * BYTES[0]) < 1e8:
        assert made.coefficients["message"].value == pytest.approx(latency, rel=1e-5)
        assert made.coefficients["byte"].value == pytest.approx(per_byte, rel=1e-5)


def test_small_times_count_as_much_as_large_ones():
    """With absolute errors the last row would decide alone, and the latency would be lost in its noise."""
    noisy = 1e-6 + 1e-9 * BYTES
    noisy[-1] *= 1.05
    made = regression.fit(latency_and_bytes(BYTES), noisy)
    assert made.coefficients["message"].value == pytest.approx(1e-6, rel=0.05)


def test_no_coefficient_is_negative_and_a_useless_feature_is_unidentified():
    falling = {**latency_and_bytes(BYTES), "useless": 1 / BYTES}
    made = regression.fit(falling, 1e-6 + 1e-9 * BYTES - 1e-6 / BYTES)
    assert min(c.value for c in made.coefficients.values()) >= 0
    assert made.unidentified == ("useless",)


def test_a_coefficient_whose_interval_reaches_zero_is_unidentified():
    rng = np.random.default_rng(0)
    size = np.repeat(BYTES, 8)
    noisy = (1e-4 + 1e-9 * size) * rng.normal(1, 0.2, size.size)
    doubtful = {**latency_and_bytes(size), "noise": rng.random(size.size)}
    made = regression.fit(doubtful, noisy, resamples=200)
    assert made.unidentified == ("noise",)
    for name, truth in (("message", 1e-4), ("byte", 1e-9)):
        c = made.coefficients[name]
        assert 0 < c.low <= c.value <= c.high and c.low < truth < 1.5 * c.high


def test_the_same_seed_gives_the_same_intervals():
    rng = np.random.default_rng(2)
    args = latency_and_bytes(BYTES), (1e-6 + 1e-9 * BYTES) * rng.normal(1, 0.1, BYTES.size)
    assert regression.fit(*args, resamples=50, seed=3) == regression.fit(*args, resamples=50, seed=3)
    assert regression.fit(*args, resamples=50, seed=3) != regression.fit(*args, resamples=50, seed=4)


def split_bytes(border: float) -> dict:
    return {"below": np.minimum(BYTES, border), "above": np.maximum(BYTES - border, 0)}


@pytest.mark.parametrize("border", [1e3, 1e4, 1e5])
def test_the_break_that_made_the_data_is_found(border):
    split = split_bytes(border)
    found, made = regression.fit_with_break(split_bytes, 3e-9 * split["below"] + 1e-9 * split["above"], (1e3, 1e4, 1e5))
    assert found == border
    assert made.coefficients["above"].value == pytest.approx(1e-9)


def test_without_a_break_in_the_data_the_first_candidate_stays():
    assert regression.fit_with_break(split_bytes, 1e-9 * BYTES, (1e4, 1e3, 1e5))[0] == 1e4


def test_a_score_is_of_relative_errors_in_both_directions():
    found = regression.score([0.9, 1.3, 2.0, 4.0], [1.0, 1.0, 2.0, 2.0])
    assert (found.mean, found.median, found.max, found.count) == pytest.approx((1.4 / 4, 0.2, 1.0, 4))
    assert found.p90 == pytest.approx(0.3 + 0.7 * 0.7)


def test_single_terms_can_be_predicted():
    made = regression.fit(latency_and_bytes(BYTES), 1e-6 + 1e-9 * BYTES)
    assert made.predict(latency_and_bytes(BYTES), ["message"]) == pytest.approx(1e-6)


@pytest.mark.parametrize(
    ("features", "measured", "message"),
    [
        (latency_and_bytes(BYTES), [1, 1, 0, 1, 1, 1], "row 2 is 0"),
        (latency_and_bytes(BYTES), [1, 1, 1, np.nan, 1, 1], "row 3 is nan"),
        (latency_and_bytes(BYTES[:1]), [1], "1 rows cannot determine message, byte"),
        ({"byte": -BYTES}, np.ones(6), "feature 'byte'"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_the_row_or_feature(features, measured, message):
    with pytest.raises(UsageError, match=message):
        regression.fit(features, measured)


def test_a_score_of_nothing_is_refused():
    with pytest.raises(UsageError, match="hold out at least one"):
        regression.score([], [])
