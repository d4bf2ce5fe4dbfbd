"""Verdicts on curves over sizes: a time rises or falls, a bandwidth has a plateau or none, or noise decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from haloscope.records.curves import Curve, group_curves
from haloscope.report import shapes

pytestmark = pytest.mark.ids("SG5")
SIZES = [2**k for k in range(12)]
CALM = (1.0, 1.01, 0.99, 1.005, 0.995)
NOISY = (1.0, 3.0, 0.4, 2.0, 0.6)


def curve(key: str, seconds: Callable[[int], float], launches: Sequence[float] = CALM, only: int = 0) -> Curve:
    """Return a curve of made-up times; in each launch the times of size `only`, or of all, have a factor.

    only: 0: every other size.
    """
    records = []
    for number, factor in enumerate(launches):
        entries = []
        for place, size in enumerate(SIZES):
            noise = factor if (size == only if only else place % 2) else 1
            entries.append({"bytes": size, "window": 4, key: [seconds(size) * noise]})
        request = {"patterns": ["get"], "ranks": 2, "pairs": 1, "gap": 1}
        launch = {"id": f"launch-{number}"}
        environment = {"oversubscribed": False}
        records.append(
            {"kind": "microbench", "id": "m", "launch": launch, "request": request, "environment": environment}
            | {"sizes": entries, "verification": {"status": "passed"}}
        )
    return group_curves(records)[0]


def latency(size: int) -> float:
    return 1e-6 + size * 1e-10


def test_a_time_that_grows_with_the_size_rises():
    assert shapes.rise(curve("get_s", latency), "get_s").verdict == shapes.RISES


def test_a_time_that_drops_at_one_size_falls_and_the_size_is_named():
    dropping = curve("get_s", lambda size: latency(size) * (0.8 if size == 256 else 1))
    shape = shapes.rise(dropping, "get_s")
    assert shape.verdict == shapes.FALLS
    assert shape.basis.startswith("256 B over 128 B: 0.8")


def test_a_time_that_falls_slowly_over_many_sizes_falls():
    slowly = curve("get_s", lambda size: 1e-6 * 0.97 ** SIZES.index(size))
    assert shapes.rise(slowly, "get_s").verdict == shapes.FALLS  # although each step is within the bound


def test_a_drop_within_the_bound_is_a_rise():
    dropping = curve("get_s", lambda size: latency(size) * (0.95 if size == 256 else 1))
    assert shapes.rise(dropping, "get_s").verdict == shapes.RISES


def test_launches_count_by_their_least_sample():
    disturbed = curve("get_s", latency)
    for record in disturbed.records:
        [entry] = [entry for entry in record["sizes"] if entry["bytes"] == 128]
        entry["get_s"] += [3 * entry["get_s"][0], 4 * entry["get_s"][0]]  # by medians, larger sizes would be faster
    assert shapes.rise(disturbed, "get_s") == shapes.rise(curve("get_s", latency), "get_s")


@pytest.mark.parametrize("launches", [NOISY, (1.0,)])
def test_noise_or_one_launch_decides_no_rise(launches):
    assert shapes.rise(curve("get_s", latency, launches), "get_s").verdict == shapes.UNCLEAR


def limited(size: int) -> float:
    """Seconds of 4 messages: a latency, then 1 GB/s."""
    return 4 * (5e-8 + size * 1e-9)


def test_a_bandwidth_with_a_limit_has_a_plateau_from_its_first_size_to_its_last():
    shape = shapes.plateau(curve("get_batch_s", limited), "get_batch_s")
    assert shape.verdict == shapes.PLATEAU
    assert shape.basis.endswith("from 256 to 2048 B")  # 50 ns are 16 % of the time at 256 B, 28 % at 128 B


def test_a_bandwidth_that_doubles_with_each_size_has_no_plateau():
    assert shapes.plateau(curve("get_batch_s", lambda _: 1e-6), "get_batch_s").verdict == shapes.NO_PLATEAU


def test_a_bandwidth_with_a_narrow_peak_has_no_plateau():
    peaked = curve("get_batch_s", lambda size: limited(size) * (0.2 if size == 512 else 1))
    shape = shapes.plateau(peaked, "get_batch_s")
    assert shape.verdict == shapes.NO_PLATEAU and shape.basis.endswith("at 512 B")


@pytest.mark.parametrize("launches", [NOISY, (1.0,)])
def test_noise_or_one_launch_decides_no_plateau(launches):
    assert shapes.plateau(curve("get_batch_s", limited, launches), "get_batch_s").verdict == shapes.UNCLEAR


def test_the_table_has_a_line_per_measure_and_none_of_curves_with_few_sizes(monkeypatch):
    text = shapes.table([curve("get_s", latency), curve("get_batch_s", limited)])
    assert len(text.splitlines()) == 4 and "rises" in text and "plateau" in text
    monkeypatch.setattr(shapes, "LEAST_SIZES", len(SIZES) + 1)
    assert shapes.table([curve("get_s", latency)]) == ""
