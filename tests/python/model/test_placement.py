"""Where ranks run and which neighbours share a node."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope import bridge
from haloscope.errors import UsageError
from haloscope.model import placement

grids = st.tuples(*[st.integers(1, 5)] * 3)


@pytest.mark.ids("DC2")
def test_ranks_on_a_socket_and_local_cells_are_those_of_the_study():
    assert placement.place("fill", 8, 2, 6).active().tolist() == [6] * 6 + [2] * 2
    assert placement.place("fill", 16, 2, 6).active().tolist() == [6] * 12 + [4] * 4
    layout = bridge.Layout((53, 4, 4), (3, 1, 1), (False,) * 3)
    assert [layout.owned(rank).shape[0] for rank in range(3)] == [18, 18, 17]


@pytest.mark.ids("DC2")
@given(grids, st.tuples(*[st.booleans()] * 3))
@settings(max_examples=40, deadline=None)
def test_neighbours_are_those_of_the_core_and_symmetric(grid, periodic):
    layout = bridge.Layout(tuple(4 * p for p in grid), grid, periodic)
    rank = np.arange(math.prod(grid))
    for d in range(3):
        offset = [int(d == e) for e in range(3)]
        there = placement.neighbours(grid, offset, periodic)
        assert there.tolist() == [layout.neighbour(int(r), offset) for r in rank]
        back = placement.neighbours(grid, [-o for o in offset], periodic)
        inside = there >= 0
        assert (back[there[inside]] == rank[inside]).all()


@pytest.mark.ids("DC2")
@given(grids, st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_blocks_of_a_row_of_ranks_sum_to_the_grid(grid, extra):
    cells = tuple(p + extra for p in grid)
    layout = bridge.Layout(cells, grid, (False,) * 3)
    for d, stride in enumerate((1, grid[0], grid[0] * grid[1])):
        assert sum(layout.owned(i * stride).shape[d] for i in range(grid[d])) == cells[d]


@pytest.mark.ids("DC4", "DF5")
@given(grids, st.sampled_from(placement.rules()[:4]), st.integers(1, 6), st.tuples(*[st.booleans()] * 3))
@settings(max_examples=60, deadline=None)
def test_every_pair_is_counted_once_inside_a_node_or_on_both_nodes_it_joins(grid, rule, active, periodic):
    ranks = math.prod(grid)
    where = placement.place(rule, ranks, 2, 6, active)
    counts = placement.pair_counts(grid, where, periodic)
    for d in range(3):
        links = ranks // grid[d] * (grid[d] - (0 if periodic[d] else 1)) if grid[d] > 1 else 0
        assert counts.intra[:, d].sum() + counts.inter[:, d].sum() / 2 == links


@given(st.integers(1, 200), st.sampled_from(placement.rules()[:4]), st.integers(1, 4), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_no_rule_overfills_a_socket_of_fill_or_a_node_and_all_use_as_few_nodes(ranks, rule, sockets, cores):
    where = placement.place(rule, ranks, sockets, cores)
    assert where.nodes == math.ceil(ranks / (sockets * cores))
    assert max(Counter(where.node.tolist()).values()) <= sockets * cores
    assert max(where.sockets()) <= cores and sum(where.sockets()) == ranks
    assert (where.socket // sockets == where.node).all()


def test_sockets_are_filled_before_the_next_one_and_numbered_over_all_nodes():
    where = placement.place("fill", 16, 2, 6)
    some = [0, 5, 6, 12]
    assert where.socket[some].tolist() == [0, 0, 1, 2] and where.node[some].tolist() == [0, 0, 0, 1]


def test_a_custom_placement_is_taken_as_given_and_checked():
    where = placement.place("custom", 3, 2, 6, custom=[(0, 1), (5, 0), (0, 1)])
    assert where.node.tolist() == [0, 5, 0] and where.socket.tolist() == [1, 10, 1] and where.nodes == 2
    with pytest.raises(UsageError, match="4 ranks, 1 places"):
        placement.place("custom", 4, 2, 6, custom=[(0, 0)])
    with pytest.raises(UsageError, match="from 0 to 1"):
        placement.place("custom", 1, 2, 6, custom=[(0, 2)])


def test_wrong_requests_say_what_is_wrong():
    with pytest.raises(UsageError, match="did you mean round-robin"):
        placement.place("round", 4, 2, 6)
    with pytest.raises(UsageError, match="7 of 6 cores"):
        placement.place("fill", 4, 2, 6, active=7)
    with pytest.raises(UsageError, match="has 8 ranks, the placement 4"):
        placement.pair_counts((2, 2, 2), placement.place("fill", 4, 2, 6))
