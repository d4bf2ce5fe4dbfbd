"""Lists and ranges of the command line, and the configurations they become."""

from __future__ import annotations

import itertools

import pytest

from haloscope import core
from haloscope.errors import UsageProblem
from haloscope.measure import sweep


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("4", [4]),
        ("1,2,4,8", [1, 2, 4, 8]),
        ("1..4", [1, 2, 3, 4]),
        ("64..512*2", [64, 128, 256, 512]),
        ("64..256+64", [64, 128, 192, 256]),
        ("3..20*4", [3, 12]),
        ("1,2..4,8..32*2,2", [1, 2, 3, 4, 8, 16, 32]),
    ],
)
def test_lists_and_ranges_of_numbers(text, values):
    assert sweep.numbers(text, "--depth") == values


@pytest.mark.parametrize(
    "text", ["", "a", "1..", "4..1", "1..8*1", "1..8+0", "0..8*2", "1..1000000", "2x2", "1,,2", "1.5"]
)
def test_a_list_that_means_nothing_is_refused_with_the_option_and_the_remedy(text):
    with pytest.raises(UsageProblem, match="--depth"):
        sweep.numbers(text, "--depth")


def test_grid_sizes_may_be_cubes_explicit_or_growing():
    assert sweep.shapes("64..256*2", 3) == [(64, 64, 64), (128, 128, 128), (256, 256, 256)]
    assert sweep.shapes("8x4,16", 2) == [(8, 4), (16, 16)]
    assert sweep.shapes("8x4..32x16*2", 2) == [(8, 4), (16, 8), (32, 16)]


def test_globs_take_every_strategy_of_a_pattern_and_nothing_else():
    found = sweep.strategies("ordered/*")
    assert found == [name for name in core.strategy_names() if name.startswith("ordered/")]
    assert len(found) > 3
    assert sweep.strategies("*") == core.strategy_names()


def test_commas_inside_a_strategy_do_not_cut_it():
    text = "ordered/p2p:testany,datatype,direct:merged,corners/persistent,reference,direct/p2p"
    assert sweep.strategies(text) == [
        core.canonical_strategy("ordered/p2p:testany,datatype"),
        core.canonical_strategy("direct:merged,corners/persistent"),
        "reference",
        "direct/p2p",
    ]


@pytest.mark.parametrize("text", ["orderd/p2p", "ordered/p2", "ordered/p2p:tesany", "nothing/*"])
def test_an_unknown_strategy_is_refused_with_the_nearest_names(text):
    with pytest.raises(UsageProblem, match="did you mean|valid names"):
        sweep.strategies(text)


def test_the_cross_product_holds_each_piece_of_work_once():
    axes = {"cells": [(32, 32)], "depth": [1, 2], "region": ["full", "shrink"], "tiles": [0, 4], "schedule": ["bulk"]}
    found = sweep.expand("laplace2d", axes).configurations
    assert [(c.depth, c.region) for c in found] == [(1, "full"), (2, "full"), (2, "shrink")]
    assert len({c.id for c in found}) == len(found)


def test_illegal_combinations_are_set_aside_with_their_reason():
    axes = {"cells": [(32, 32)], "schedule": ["bulk", "interleaved"], "strategy": ["ordered/p2p", "direct/p2p"]}
    planned = sweep.expand("laplace2d", axes)
    assert len(planned.configurations) == 3
    [(refused, reason)] = planned.refused
    assert (refused.schedule, refused.strategy) == ("interleaved", "direct/p2p")
    assert "ordered" in reason


def test_the_line_for_the_ranks_says_everything_that_differs_from_their_defaults():
    c = sweep.Configuration("laplace2d", (64, 32), ranks=4, depth=2, region="shrink", barrier=True,
                            settings=(("steps", "10"), ("verify", "5")))  # fmt: skip
    words = c.line().split()
    assert words[:1] == ["laplace2d"]
    assert "--barrier" in words and "--ranks" not in words
    assert {("--cells", "64x32"), ("--depth", "2"), ("--region", "shrink"), ("--steps", "10"), ("--verify", "5"),
            ("--id", c.id)} <= set(itertools.pairwise(words))  # fmt: skip


def test_how_long_something_is_measured_is_no_part_of_its_name():
    short, long = (sweep.Configuration("laplace2d", (8, 8), settings=(("steps", n),)) for n in ("1", "9"))
    assert short.id == long.id
    other = sweep.Configuration("laplace2d", (8, 8), settings=(("weights", "1,1,-4,1,1"),))
    assert other.id != short.id


def test_the_order_is_random_differs_between_launches_and_can_be_repeated():
    configurations = [sweep.Configuration("laplace2d", (n, n)) for n in range(8, 40)]
    first, second = sweep.shuffled(configurations, 7, 0), sweep.shuffled(configurations, 7, 1)
    assert sorted(c.id for c in first) == sorted(c.id for c in configurations)
    assert first != configurations and first != second
    assert first == sweep.shuffled(configurations, 7, 0)


def test_verification_covers_two_whole_exchanges_and_a_shorter_round():
    planned = sweep.expand("laplace2d", {"cells": [(64, 64)], "depth": [1, 4]})
    checked = [dict(c.settings)["verify"] for c in sweep.with_verification(planned, None).configurations]
    assert checked == ["3", "9"]
