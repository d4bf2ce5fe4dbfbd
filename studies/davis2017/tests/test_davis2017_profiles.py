"""Profiles made of the tables of Davis 2017."""

from __future__ import annotations

import pytest

from haloscope.model import profile
from haloscope_studies.davis2017 import network
from haloscope_studies.davis2017.replay import profiles as published


def alike(a, b) -> bool:
    """Compares two JSON values, numbers to four digits: the fifth may depend on the numerical libraries."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    return a == pytest.approx(b, rel=1e-4) if isinstance(a, float) else a == b


@pytest.mark.ids("DC12", "DH2")
@pytest.mark.parametrize("machine", published.MACHINES)
def test_shipped_profiles_are_what_the_published_tables_give(machine):
    assert alike(profile.load(machine).data, published.build(machine))
    assert set(profile.names()) >= set(published.MACHINES)


def test_hera_round_trips_are_halved():
    sizes, times = published.pingpong("hera", "inter", benchmark="SKaMPI")
    assert times[sizes == 16384] == pytest.approx(22.85e-6)
    assert network.message_time(profile.load("hera"), "network", 16384) == pytest.approx(22.9e-6, rel=0.05)
