"""Kept micro-benchmarks of the 2021 study: their sizes and patterns, and the page that shows their shapes."""

from __future__ import annotations

import pytest

from haloscope import records
from haloscope.measure.microbench import ALL_SIZES
from haloscope.records import stats
from haloscope.records.curves import Curve, group_curves
from haloscope.report import shapes
from paths import ROOT

pytestmark = pytest.mark.ids("SG5")
PLACES = ("node", "lab")
PAGE = ROOT / "studies" / "schroeter2021" / "README.md"


def curves_of(place: str) -> list[Curve]:
    file = records.read(ROOT / "results" / "microbench" / f"{place}.jsonl.xz")
    assert not file.bad_lines
    return group_curves(file.records)


@pytest.mark.parametrize("place", PLACES)
def test_messages_puts_and_gets_of_23_sizes_are_kept_and_their_bandwidths_have_a_plateau(place):
    curves = {curve.transport or "a flush": curve for curve in curves_of(place)}
    measured = {"p2p": ["latency_s", "batch_s"], "a flush": ["put_s", "put_batch_s", "get_s", "get_batch_s"]}
    assert set(curves) == set(measured)
    for name, keys in measured.items():
        assert curves[name].verification == "passed" and len(curves[name].records) >= 10
        assert all(curves[name].sizes(key) == list(ALL_SIZES) for key in keys)
        for record in curves[name].records:
            assert ("emulated_network" in record["environment"]) == (place == "lab")
        found = shapes.shapes_of(curves[name])
        assert {found[key].verdict for key in keys if key.endswith("batch_s")} == {shapes.PLATEAU}


def test_the_times_of_puts_and_gets_in_a_node_rise_with_the_size_and_no_kept_time_falls():
    verdicts = {
        (place, key): shape.verdict
        for place in PLACES
        for curve in curves_of(place)
        for key, shape in shapes.shapes_of(curve).items()
    }
    assert {verdicts["node", key] for key in ("put_s", "get_s")} == {shapes.RISES}
    assert shapes.FALLS not in verdicts.values()


def test_gets_of_4_kib_in_a_node_have_a_higher_bandwidth_than_messages_and_gets_of_4_mib_about_the_same():
    """Of the least samples of the kept launches; figure 6.3 of the thesis shows the same."""
    messages, gets = sorted(curves_of("node"), key=lambda curve: curve.transport == "")

    def least(curve: Curve, size: int, key: str) -> dict[str, list[float]]:
        return {launch: [min(samples)] for launch, samples in curve.samples(size, key).items()}

    small, large = (
        stats.ratio_of_launches(least(messages, size, "batch_s"), least(gets, size, "get_batch_s"))
        for size in (4096, 4 << 20)
    )
    assert small.low > 2
    assert 0.8 < large.value < 1.25


@pytest.mark.parametrize("place", PLACES)
def test_the_page_of_the_study_shows_the_shapes_of_the_kept_curves(place):
    assert shapes.table(curves_of(place)) in PAGE.read_text()
