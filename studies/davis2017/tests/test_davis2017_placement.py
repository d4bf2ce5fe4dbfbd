"""Pairs and sockets of the placements that Davis 2017 prints."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest

from haloscope.model import placement
from haloscope.studies import published as table
from haloscope_studies.davis2017.replay import results as davis2017_results


@pytest.mark.ids("DC4")
def test_pairs_on_the_worst_node_are_those_of_table_5_8():
    wanted: dict = defaultdict(dict)
    for r in table("davis2017", "pair_counts"):
        case = (tuple(int(r[k]) for k in ("px", "py", "pz")), tuple(map(int, r["worst_node"].split("/"))))
        wanted[case][r["placement"], r["dimension"]] = int(r["pairs"])
    assert len(wanted) == 8
    for (grid, nodes), pairs in wanted.items():
        counts = placement.pair_counts(grid, placement.place("fill", math.prod(grid), 2, 6))
        expected = tuple(tuple(pairs[where, d] for d in "XYZ") for where in ("intra", "inter"))
        assert counts.worst == expected and counts.worst_node() in nodes


@pytest.mark.ids("DB7", "DF5")
def test_socket_loads_of_the_mapping_study_are_reproduced_except_two_contradictory_rows():
    found = [c for c in davis2017_results.mappings() if c.what.startswith("sockets")]
    assert len(found) == 16 and all(c.state == "met" for c in found)
    assert davis2017_results.TEN_A_NODE == ((32, "node_balanced"), (64, "node_balanced"))
