"""Lists and ranges of the command line."""

from __future__ import annotations

import pytest

from haloscope import bridge
from haloscope.errors import UsageError
from haloscope.measure import lists


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
    assert lists.numbers(text, "--depth") == values


@pytest.mark.parametrize(
    "text", ["", "a", "1..", "4..1", "1..8*1", "1..8+0", "0..8*2", "1..1000000", "2x2", "1,,2", "1.5"]
)
def test_a_list_that_means_nothing_is_refused_with_the_option_and_the_remedy(text):
    with pytest.raises(UsageError, match="--depth"):
        lists.numbers(text, "--depth")


def test_grid_sizes_may_be_cubes_explicit_or_growing():
    assert lists.shapes("64..256*2", 3) == [(64, 64, 64), (128, 128, 128), (256, 256, 256)]
    assert lists.shapes("8x4,16", 2) == [(8, 4), (16, 16)]
    assert lists.shapes("8x4..32x16*2", 2) == [(8, 4), (16, 8), (32, 16)]


def test_globs_take_every_strategy_of_a_pattern_and_nothing_else():
    found = lists.strategies("ordered/*")
    assert found == [name for name in bridge.strategy_names() if name.startswith("ordered/")]
    assert len(found) > 3
    assert lists.strategies("*") == bridge.strategy_names()


def test_commas_inside_a_strategy_do_not_cut_it():
    text = "ordered/p2p:testany,datatype,direct:merged,corners/persistent,reference,direct/p2p"
    assert lists.strategies(text) == [
        bridge.canonical_strategy("ordered/p2p:testany,datatype"),
        bridge.canonical_strategy("direct:merged,corners/persistent"),
        "reference",
        "direct/p2p",
    ]


@pytest.mark.parametrize("text", ["orderd/p2p", "ordered/p2", "ordered/p2p:tesany", "nothing/*"])
def test_an_unknown_strategy_is_refused_with_the_nearest_names(text):
    with pytest.raises(UsageError, match=r"did you mean|valid names"):
        lists.strategies(text)


def test_globs_for_fields_on_a_device_take_the_strategies_of_devices():
    assert lists.strategies("*", True) == bridge.device_strategy_names()
    assert not set(lists.strategies("*", True)) & set(bridge.strategy_names())


def test_strategies_of_one_word_stand_between_others():
    words = ("auto", "auto:quick,fresh", "ordered/p2p:datatype,testany", "reference", "direct/p2p")
    assert lists.strategies(",".join(words)) == [bridge.canonical_strategy(word) for word in words]


def test_the_strategies_written_out_are_told_from_those_of_globs():
    assert lists.named_strategies("ordered/*,direct/p2p,auto") == ["direct/p2p", bridge.canonical_strategy("auto")]


def test_names_and_globs_give_each_name_once_in_the_order_written():
    valid = ("full", "shrink", "blocked")
    assert lists.names("shrink,*", valid, "--substeps") == ["shrink", "full", "blocked"]
    assert lists.names("[fb]*", valid, "--substeps") == ["full", "blocked"]
    with pytest.raises(UsageError, match="unknown --substeps 'shrnk'; did you mean shrink"):
        lists.names("full,shrnk", valid, "--substeps")
