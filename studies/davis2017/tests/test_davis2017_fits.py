"""Fits of the times that Davis 2017 prints."""

from __future__ import annotations

import numpy as np
import pytest

from haloscope.model import fit
from haloscope.studies import published as table
from haloscope_studies.davis2017.replay import hydra_kernels
from haloscope_studies.davis2017.replay import profiles as published


@pytest.mark.ids("DC5", "DF3")
def test_the_rule_splits_only_madvmz1_and_relative_fits_stay_within_nine_percent():
    split = {}
    for name, (cells, times) in hydra_kernels.printed().items():
        split[name] = fit.breaks_by_rule(cells, times, positive=False)
        law = fit.pieces(cells, times, split[name], positive=False)
        assert np.abs(fit.relative_errors(law, cells, times)).max() < 0.09, name
    assert len(split) == 12
    assert {name: b for name, b in split.items() if b} == {"Madvmz1": [120.0**3]}


@pytest.mark.ids("DC5")
def test_plain_least_squares_shows_the_documented_failures_and_the_threshold_can_be_set():
    for name, error in {"Madvy2": -2.14, "Madvx2": 0.34, "Madvmx1": 0.38, "Madvmz1": -14.55}.items():
        cells, times = hydra_kernels.printed()[name]
        law = fit.pieces(cells, times, relative=False, positive=False)
        assert fit.relative_errors(law, cells, times)[0] == pytest.approx(error, abs=0.01)
    cells, times = hydra_kernels.printed()["Madvmz1"]
    assert fit.breaks_by_rule(cells, times, threshold=0.6, positive=False) == []
    assert len(fit.breaks_by_rule(cells, times, threshold=0.02, positive=False)) > 1


@pytest.mark.ids("DC6")
@pytest.mark.parametrize("place", ["intra", "inter"])
def test_pingpong_times_give_the_printed_regimes(place):
    rows = [r for r in table("davis2017", "message_regimes") if r["placement"] == place]
    sizes, times = published.pingpong("minerva", place)
    breaks = [float(r["bytes_from"]) for r in rows[1:]]
    found = fit.pieces(sizes, times * 1e6, breaks, relative=False, positive=False)
    assert [s.start for s in found] == [float(r["bytes_from"]) for r in rows]
    for row, s in zip(rows, found, strict=True):
        assert s.slope == pytest.approx(float(row["slope_us_per_byte"]), rel=0.01)
        assert s.fixed == pytest.approx(float(row["intercept_us"]), rel=0.01)


@pytest.mark.ids("DC6")
def test_automatic_breaks_find_the_printed_protocol_switches():
    for place, switches in {"intra": {16384.0, 352256.0}, "inter": {36864.0, 65536.0}}.items():
        assert switches <= set(fit.find_breaks(*published.pingpong("minerva", place), most=5))
