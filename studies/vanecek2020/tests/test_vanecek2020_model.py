"""The model of the task queue: its parts by hand, its bounds, its fit, and its predictions of printed numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haloscope.studies import checks
from haloscope_studies.vanecek2020 import matrix, model, predicted, printed, replay

# Rates of 1 kB a microsecond, so that kilobytes are microseconds.
SIMPLE = model.QueueModel(
    fixed_s=10e-6,
    launch_s=5e-6,
    pinned_rate=1e9,
    device_rate=1e9,
    send_rate=1e9,
    overlap=0.5,
    copy_rate=1e9,
    call_s=1e-6,
)
SIZES = [3000, 1000]


def test_blocks_share_the_rate_into_pinned_memory_until_the_smaller_one_has_packed():
    assert SIMPLE.pinned_ready(SIZES) == pytest.approx([2e-6, 4e-6])
    assert SIMPLE.device_ready(SIZES) == pytest.approx([1e-6, 3e-6])


def test_the_baseline_adds_packing_and_all_messages():
    assert SIMPLE.baseline(SIZES) == pytest.approx((10 + 5 + 4 + 4) * 1e-6)


def test_messages_are_slower_while_blocks_pack():
    # The first message begins at 2 us and has sent its 1 kB at 4 us, when the second one begins at the full rate.
    assert SIMPLE.pinned_queue(SIZES) == pytest.approx((10 + 4 + 3) * 1e-6)
    # At a quarter of the rate half of it is left at 4 us.
    assert replace(SIMPLE, overlap=0.25).pinned_queue(SIZES) == pytest.approx((10 + 4 + 0.5 + 3) * 1e-6)
    # At the full rate it has ended at 3 us, and the second one still packs.
    assert replace(SIMPLE, overlap=1.0).pinned_queue(SIZES) == pytest.approx((10 + 4 + 3) * 1e-6)


def test_copies_in_and_out_take_the_time_of_messages():
    # From 1 us on: two calls, two copies and the message of each block.
    assert SIMPLE.copied_queue(SIZES) == pytest.approx((10 + 1 + (2 + 2 + 1) + (2 + 6 + 3)) * 1e-6)


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=27), st.floats(0.01, 1), st.floats(1e8, 1e12))
def test_the_pinned_task_queue_never_loses_and_never_ends_before_its_parts(sizes, overlap, rate):
    one = replace(SIMPLE, overlap=overlap, send_rate=rate)
    took = one.pinned_queue(sizes)
    assert took <= one.baseline(sizes) * (1 + 1e-9)
    assert took >= one.fixed_s + max(one.pinned_ready(sizes)[-1], sum(sizes) / rate) * (1 - 1e-9)


@given(st.integers(1, 27), st.integers(1, 10**6))
def test_blocks_of_one_size_pack_together_and_save_the_second_launch_only(count, size):
    sizes = [size] * count
    assert SIMPLE.baseline(sizes) - SIMPLE.pinned_queue(sizes) == pytest.approx(SIMPLE.launch_s, rel=1e-6)


def test_the_fit_gives_the_printed_numbers_that_it_takes():
    fitted, sizes = model.fitted(), printed.sizes("M")
    assert 1e6 * fitted.baseline(sizes) == pytest.approx(3340.2)
    assert 1e6 * fitted.pinned_queue(sizes) == pytest.approx(3059.1)
    assert 1e6 * fitted.copied_queue(sizes) == pytest.approx(3116.6)
    assert 1e6 * model.fitted(blocking=True).baseline(sizes) == pytest.approx(3445.3)
    assert 1e6 * fitted.pinned_ready(printed.sizes("XL"))[-1] == pytest.approx(23300)
    assert fitted.gain([8]) == pytest.approx(1.094, abs=1e-4)


def test_no_prediction_is_of_a_number_of_the_fit():
    taken = {3059.1, 3116.6, 3340.2, 3445.3}
    rows = {(r.table, r.variant): 1e6 * r.seconds for r in printed.results()}
    assert {round(rows["4.4", name], 1) for name in (matrix.PLAIN, matrix.STAGED)} < taken
    names = [one.what for one in model.predictions()]
    assert len(names) == len(set(names)) == 9
    assert not {"M, pinned, nonblocking", "M, device, nonblocking", "XS, pinned, nonblocking"} & set(names)


def test_speed_ups_of_l_are_predicted_and_the_misses_are_documented():
    found = predicted.results()
    missed = {one.what for one in found if one.state == checks.MISSED}
    assert missed == set(predicted.DOCUMENTED)
    large = {one.what: one.state for one in found if "speed-up L" in one.what}
    assert len(large) == 4 and set(large.values()) == {checks.MET}


def test_other_printed_numbers_give_other_predictions(monkeypatch):
    before = {one.what: one.model for one in model.predictions()}
    slower = [replace(r, seconds=1.05 * r.seconds) if r.variant == matrix.PLAIN else r for r in printed.results()]
    monkeypatch.setattr(printed, "results", lambda: tuple(slower))
    model.fitted.cache_clear()
    try:
        after = {one.what: one.model for one in model.predictions()}
        assert after["L, pinned, nonblocking"] < 0.97 * before["L, pinned, nonblocking"]
        assert after["L, device, nonblocking"] == pytest.approx(before["L, device, nonblocking"])
        assert any(one.what.startswith("model: speed-up L, pinned") for one in replay.replay().missed)
    finally:
        model.fitted.cache_clear()


def test_the_gain_is_largest_where_sending_and_packing_take_about_as_long():
    sizes = printed.sizes("L")
    factor, gain = model.best_network(sizes)
    fitted = model.on_network(factor)
    assert 0.5 < sum(sizes) / fitted.send_rate / fitted.pinned_ready(sizes)[-1] < 2
    assert gain > max(model.on_network(f).gain(sizes) for f in (0.1, 1, 100))
    rows = model.gain_rows()
    assert len(rows) == 15 and all(float(cell) >= 1 for row in rows for cell in row[2:])
