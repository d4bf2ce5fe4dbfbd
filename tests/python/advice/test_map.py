"""`haloscope map`: which way of exchanging halos wins where, over networks and sizes of blocks."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope import bridge
from haloscope.advice import map as model
from haloscope.model import predict, profile
from haloscope.model.link import Link, over_link
from test_records import measurement, write
from toy import TOY

MACHINE = profile.load(TOY)
SEGMENTS = MACHINE.data["network"]["classes"]["network"]["segments"]


def in_lab(latency_s: float, bandwidth: float = 0.0) -> profile.Profile:
    """The toy machine as if it had been measured in an emulated cluster, with that network in its costs."""
    made = copy.deepcopy(over_link(MACHINE, Link(2, latency_s, bandwidth)).data)
    made["machine"]["emulated_network"] = {
        "hosts": 2,
        "latency_s": latency_s,
        "bandwidth_bytes_per_s": bandwidth,
        "jitter_s": 0.0,
    }
    return profile.checked(made)


def segments_of(machine: profile.Profile) -> list[dict]:
    return machine.data["network"]["classes"]["network"]["segments"]


def test_a_network_adds_its_latency_to_each_crossing_and_its_bandwidth_to_each_byte():
    rendezvous_from = MACHINE.data.get("overlap", {}).get("rendezvous_from_bytes", float("inf"))
    moved = segments_of(over_link(MACHINE, Link(2, 1e-3, 1e9)))
    for before, after in zip(SEGMENTS, moved, strict=True):
        crossings = 3 if before["from_bytes"] >= rendezvous_from else 1
        assert after["latency_s"] == pytest.approx(before["latency_s"] + crossings * 1e-3)
        assert after["per_byte_s"] == pytest.approx(before["per_byte_s"] + 1e-9)
    assert segments_of(MACHINE) == SEGMENTS, "the given profile is as it was"


def test_a_message_that_asks_its_receiver_first_crosses_the_network_three_times():
    data = copy.deepcopy(MACHINE.data)
    data.setdefault("overlap", {})["rendezvous_from_bytes"] = SEGMENTS[-1]["from_bytes"]
    moved = segments_of(over_link(profile.checked(data), Link(2, 1e-3)))
    assert moved[-1]["latency_s"] == pytest.approx(SEGMENTS[-1]["latency_s"] + 3e-3)


def test_the_network_in_which_a_profile_was_measured_is_replaced():
    there = Link(2, 5e-4, 1e8)
    again = segments_of(over_link(in_lab(1e-4, 1e9), there))
    for direct, by_way in zip(segments_of(over_link(MACHINE, there)), again, strict=True):
        assert by_way["latency_s"] == pytest.approx(direct["latency_s"])
        assert by_way["per_byte_s"] == pytest.approx(direct["per_byte_s"])


@settings(max_examples=40, deadline=None)
@given(
    st.floats(0, 1e-2),
    st.floats(0, 1e-2),
    st.sampled_from(["ordered/p2p", "direct:merged/p2p"]),
    st.sampled_from([1, 4]),
)
def test_no_step_gets_shorter_by_a_slower_network(latency, more, strategy, depth):
    choice = bridge.Choice("laplace2d", (128, 64), ranks=2, nodes=2, strategy=strategy, depth=depth)
    near, far = (predict.predict(choice, over_link(MACHINE, Link(2, s)), samples=0) for s in (latency, latency + more))
    assert far.time_s >= near.time_s * (1 - 1e-9)


def test_deep_halos_win_where_latency_is_long_and_blocks_are_small():
    links = [Link(2, seconds) for seconds in (0.0, 1e-2)]
    spots = model.predicted(bridge.Choice("laplace2d", ranks=2), MACHINE, links, [16, 1024])
    by_place = {(spot.latency_s, spot.block): spot for spot in spots}
    assert len(by_place) == 4
    assert by_place[1e-2, 16].choice.depth > 1
    assert by_place[1e-2, 16].gain > 2
    assert by_place[0.0, 1024].choice.depth == 1
    assert all(spot.gain >= 1 for spot in spots)
    assert all(spot.choice.nodes == 2 and max(spot.choice.cells) >= spot.block for spot in spots)


def test_every_rank_has_the_cells_that_were_asked_for():
    for ranks in (1, 2, 6, 7, 12):
        choice = model.with_blocks(bridge.Choice("laplace3d", ranks=ranks), 20)
        assert {
            (box.hi[d] - box.lo[d])
            for rank in range(ranks)
            for d, box in [(d, bridge.make_layout(choice).owned(rank)) for d in range(3)]
        } == {20}


def test_techniques_are_what_sets_a_choice_apart():
    plain = bridge.Choice("laplace2d", (64, 64), ranks=2)
    assert model.techniques(plain) == ()
    assert model.techniques(model.plain(bridge.Choice("laplace2d", (64, 64), depth=4, schedule="split"))) == ()
    rich = bridge.Choice("laplace2d", (64, 64), ranks=2, depth=4, schedule="split", strategy="direct:merged/persistent")
    assert model.techniques(rich) == ("depth 4", "split", "merged", "persistent")


def measured_in(latency_s: float, name: str, seconds: float, **request) -> list[dict]:
    """Records of three launches in an emulated cluster."""
    link = {"hosts": 2, "latency_s": latency_s, "bandwidth_bytes_per_s": 0.0, "jitter_s": 0.0}
    made = [
        measurement(
            name, f"launch-{n}", [seconds * (1 + 0.001 * n)] * 3, cells=[64, 32], process_grid=[2, 1], **request
        )
        for n in range(3)
    ]
    for record in made:
        record["environment"]["emulated_network"] = link
    return made


def test_a_measured_map_holds_the_fastest_where_the_plain_exchange_was_measured_too():
    near = [*measured_in(1e-5, "plain", 1.0), *measured_in(1e-5, "deep", 2.0, depth=4, substeps="shrink")]
    far = [*measured_in(1e-3, "plain", 8.0), *measured_in(1e-3, "deep", 2.0, depth=4, substeps="shrink")]
    lonely = measured_in(1e-2, "deep", 2.0, depth=4, substeps="shrink")
    elsewhere = [measurement("plain", cells=[64, 32])]
    broad = measured_in(1e-4, "plain", 1.0)
    for record in broad:
        record["environment"]["emulated_network"] |= {"bandwidth_bytes_per_s": 1e9}
    other = measured_in(1e-4, "plain", 1.0, app="laplace3d")
    first, second = model.measured([*near, *far, *lonely, *elsewhere, *broad, *other], "laplace2d", 0.0)
    assert (first.latency_s, first.block, first.choice.depth, first.gain) == (1e-5, 32, 1, 1.0)
    assert (second.latency_s, second.choice.depth) == (1e-3, 4)
    assert second.gain == pytest.approx(4)
    assert second.interval[0] <= 4 <= second.interval[1]


def test_maps_are_tables_figures_and_json(haloscope, tmp_path):
    records = write(tmp_path / "r.jsonl", *measured_in(1e-3, "plain", 8.0), *measured_in(1e-3, "deep", 2.0, depth=4))
    words = ("map", "laplace2d", "--profile", TOY, "--blocks", "16,32", "--latency", "1us,1ms", "--bandwidth", "0")
    done = haloscope(*words, "--measured", records, "--output", tmp_path / "map")
    assert done.code == 0, done.err
    assert "## Predicted" in done.out and "## Measured" in done.out and "| 1 us | 1 ms |" in " ".join(done.out.split())
    assert (tmp_path / "map.svg").stat().st_size > 1000 and (tmp_path / "map.png").stat().st_size > 1000
    spots = json.loads(haloscope(*words, "--json").out)["predicted"]
    assert [(spot["latency_s"], spot["block"]) for spot in spots] == [(1e-6, 16), (1e-6, 32), (1e-3, 16), (1e-3, 32)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--blocks", "0"), "--blocks 0"),
        (("--latency", "fast"), "'fast' is not a time"),
        (("--bandwidth", "1 lightyear"), "is not a bandwidth"),
        (("--blocks", "1..300+1", "--latency", "1us,2us"), "600 places"),
        (("--depth", "0"), "not possible"),
    ],
)
def test_what_cannot_be_is_refused(haloscope, words, message):
    done = haloscope("map", "laplace2d", "--profile", TOY, *words)
    assert done.code == 2
    assert message in done.err


def test_records_without_a_plain_exchange_of_an_emulated_cluster_make_no_map(haloscope, tmp_path):
    done = haloscope("map", "laplace2d", "--profile", TOY, "--measured", write(tmp_path / "r.jsonl", measurement()))
    assert done.code == 2
    assert "haloscope run --lab 2 --bandwidth 10Gbit" in done.err


def test_a_figure_without_a_name_is_refused(haloscope):
    result = haloscope("map", "laplace2d", "--profile", str(TOY), "--output", ".")
    assert result.code == 2
    assert "'.' is not a file name" in result.err
