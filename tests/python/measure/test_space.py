"""Spaces of requests: each piece of work once, work that cannot be skipped, the order of a launch."""

from __future__ import annotations

import itertools

from haloscope import bridge
from haloscope.measure import space
from haloscope.measure.request import Request


def test_the_cross_product_holds_each_piece_of_work_once():
    axes = {"cells": [(32, 32)], "depth": [1, 2], "substeps": ["full", "shrink"], "tiles": [0, 4], "schedule": ["bulk"]}
    found = space.expand("laplace2d", axes).requests
    assert [(r.choice.depth, r.choice.substeps) for r in found] == [(1, "full"), (2, "full"), (2, "shrink")]
    assert len({r.id for r in found}) == len(found)


def test_a_point_of_a_product_has_no_fields_without_an_effect():
    axes = {"cells": [(64, 48)], "ranks": [2], "depth": [1, 2], "substeps": ["full", "shrink"], "tiles": [0, 4]}
    points = [
        bridge.Choice("laplace2d", **dict(zip(axes, values, strict=True)))
        for values in itertools.product(*axes.values())
    ]
    assert [document for document, _ in bridge.product("laplace2d", axes)] == [
        bridge.normal(point).to_json() for point in points
    ]
    assert len(set(map(bridge.normal, points))) < len(points)


def test_illegal_combinations_are_set_aside_with_their_reason():
    axes = {"cells": [(32, 32)], "schedule": ["bulk", "interleaved"], "strategy": ["ordered/p2p", "direct/p2p"]}
    planned = space.expand("laplace2d", axes)
    assert len(planned.requests) == 3
    [(refused, reason)] = planned.refused
    assert (refused.choice.schedule, refused.choice.strategy) == ("interleaved", "direct/p2p")
    assert "ordered" in reason


def test_names_that_nobody_knows_are_set_aside_with_their_reason_too():
    axes = {"cells": [(32, 32)], "strategy": ["ordered/p2p", "orderd/p2p"], "set": [(("nosuch", "1"),)]}
    planned = space.expand("laplace2d", axes)
    assert not planned.requests and len(planned.refused) == 2
    assert all(
        "unknown parameter of app 'laplace2d' 'nosuch'" in reason or "orderd" in reason for _, reason in planned.refused
    )


def test_spaces_add_up_and_fall_into_groups_of_one_rank_count():
    one, other = (space.expand("laplace2d", {"cells": [(32, 32)], "ranks": ranks}) for ranks in ([2, 1], [4, 9999]))
    whole = one + other
    assert len(whole.requests) == 3 and len(whole.refused) == 1
    assert {ranks: len(group) for ranks, group in whole.by_ranks().items()} == {1: 1, 2: 1, 4: 1}


def test_the_order_is_random_differs_between_launches_and_can_be_repeated():
    requests = [Request.of(bridge.Choice("laplace2d", (n, n))) for n in range(8, 40)]
    first, second = space.shuffled(requests, 7, 0), space.shuffled(requests, 7, 1)
    assert sorted(r.id for r in first) == sorted(r.id for r in requests)
    assert first not in (requests, second)
    assert first == space.shuffled(requests, 7, 0)


def test_verification_covers_two_whole_exchanges_and_a_shorter_round():
    planned = space.expand("laplace2d", {"cells": [(64, 64)], "depth": [1, 4]})
    assert [r.verify for r in space.with_verification(planned, None).requests] == [3, 9]
    assert [r.verify for r in space.with_verification(planned, 5).requests] == [5, 5]
