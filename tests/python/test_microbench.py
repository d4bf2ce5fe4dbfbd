"""Micro-benchmarks: every transport measured by the same code, records that satisfy the schema, tables and figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from haloscope import core
from haloscope.errors import UsageProblem
from haloscope.measure import microbench
from haloscope.report import records

SHORT = ("--bytes", "8,4096,1048576", "--seconds", "0.002", "--repetitions", 2, "--launches", 2, "--output", "m.jsonl")


def sample(transport: str, seconds: float, launch: str = "launch-1", **request) -> dict:
    """A complete record, as `haloscope-rank` writes it."""
    asked = {"transport": transport, "ranks": 2, "pairs": 1, "nodes": 0, "seconds": 0.01, "repetitions": 3} | request
    times = {
        what: [seconds, 1.1 * seconds, 0.9 * seconds] for what in ("latency_s", "exchange_s", "batch_s", "both_batch_s")
    }
    return {
        "schema": "haloscope.record", "schema_version": records.SCHEMA_VERSION, "kind": "microbench", "id": f"m,{transport},{asked['ranks']}",
        "launch": {"id": launch}, "request": asked,
        "environment": {"oversubscribed": False, "compiler": "GNU", "mpi_library": "MPICH"},
        "sizes": [{"bytes": size, "window": 64} | times for size in (8, 1024)],
        "verification": {"status": "passed"},
    }  # fmt: skip


@pytest.mark.ids("SG5")
def test_every_transport_is_measured_in_every_way_with_right_bytes(haloscope):
    result = haloscope("microbench", *SHORT)
    assert result.code == 0, result.err
    file = records.read("m.jsonl")
    assert not file.bad_lines
    curves = {c.request["transport"]: c for c in microbench.curves(file.records)}
    refused = {r["id"] for r in file.records if r["kind"] == "skipped"}
    assert {"p2p", "persistent"} <= set(curves)
    assert {microbench.Micro(name).id for name in set(microbench.transport_names()) - set(curves)} == refused
    for name, curve in curves.items():
        assert curve.sizes() == [8, 4096, 1048576] and curve.verification == "passed", name
        assert len(curve.records) == 2
        for size in curve.sizes():
            samples = [s for what in ("latency_s", "exchange_s", "batch_s", "both_batch_s")
                       for launch in curve.samples(size, what).values() for s in launch]  # fmt: skip
            assert len(samples) == 4 * 2 * 2 and all(s > 0 for s in samples), name
        assert curve.window(8) == 64 and curve.window(1048576) == 4
        assert name in result.out
    assert Path("m.svg").stat().st_size > 10000 and Path("m.png").stat().st_size > 10000


@pytest.mark.ids("SG5")
def test_by_default_23_sizes_from_1_byte_to_4_mebibytes_are_measured():
    plain = microbench.Micro("p2p")
    assert len(plain.sizes) == 23 and plain.sizes[0] == 1 and plain.sizes[-1] == 4 << 20
    assert all(b == 2 * a for a, b in zip(plain.sizes, plain.sizes[1:], strict=False))


@pytest.mark.ids("SG5")
def test_pairs_and_emulated_nodes_are_requests_of_their_own(haloscope):
    result = haloscope("microbench", "--transport", "p2p", "--ranks", "2,4", "--nodes", "1,2", "--bytes", "8,64",
                       "--seconds", "0.0005", "--repetitions", 1, "--launches", 1, "--output", "m.jsonl")  # fmt: skip
    assert result.code == 0, result.err
    made = [c.request for c in microbench.curves(records.read("m.jsonl").records)]
    assert sorted((r["ranks"], r["pairs"], r["nodes"]) for r in made) == [(2, 1, 1), (2, 1, 2), (4, 2, 1), (4, 2, 2)]
    assert "4 ranks in 2 pairs on 2 emulated nodes" in result.out


def test_records_can_be_shown_again_without_measuring(haloscope):
    found = [sample("p2p", 1e-6, f"launch-{k}") for k in range(4)] + [
        sample("persistent", 2e-6, f"launch-{k}") for k in range(4)
    ]
    assert all(records.fault_of(r) == "" for r in found)
    Path("m.jsonl").write_text("".join(json.dumps(r) + "\n" for r in found))
    result = haloscope("microbench", "--from", "m.jsonl", "--figure", "f/curves")
    assert result.code == 0, result.err
    assert "slower" in result.out and Path("f/curves.svg").exists()


def test_times_that_scatter_around_each_other_have_no_winner():
    found = []
    for k, (a, b) in enumerate([(1.0, 1.1), (1.2, 1.0), (0.9, 1.1), (1.1, 0.9)]):
        found += [sample("p2p", a * 1e-6, f"launch-{k}"), sample("persistent", b * 1e-6, f"launch-{k}")]
    [group] = microbench.groups_of(microbench.curves(found)).values()
    assert "cannot tell apart" in microbench.overview(group)


def test_rates_and_bandwidths_count_all_pairs_and_both_directions():
    [curve] = microbench.curves([sample("p2p", 1e-3, ranks=4, pairs=2)])
    assert curve.message_rate(8) == pytest.approx(2 * 64 / 1e-3)
    assert curve.bandwidth(1024) == pytest.approx(2 * 64 * 1024 / 1e-3)
    assert curve.bandwidth(1024, both=True) == pytest.approx(2 * curve.bandwidth(1024))


@pytest.mark.parametrize("key", ["sizes", "environment", "verification", "request", "launch"])
def test_a_record_without_one_of_its_parts_does_not_satisfy_the_schema(key):
    broken = sample("p2p", 1e-6)
    del broken[key]
    assert key in records.fault_of(broken)


def test_times_of_zero_do_not_satisfy_the_schema():
    assert "0" in records.fault_of(sample("p2p", 0.0))


def test_wrong_input_is_refused_with_what_to_do(haloscope):
    for words, text in (
        (("--ranks", "3"), "pairs"),
        (("--transport", "p3p"), "did you mean"),
        (("--transport", "x*"), "unknown transport"),
        (("--nodes", "3"), "use 0 to 2"),
        (("--seconds", "0"), "not in the range x>0"),
    ):
        result = haloscope("microbench", *words)
        assert result.code == 2 and text in result.err, (words, result.err)


def test_option_words_stay_with_their_transport():
    assert microbench.transports("p2p:testany,datatype,persistent") == ["p2p:testany,datatype", "persistent"]
    assert set(microbench.transports("p2p*")) == {n for n in microbench.transport_names() if n.startswith("p2p")}
    with pytest.raises(UsageProblem):
        microbench.transports("p2p:nonsense")
    assert set(microbench.transports("*")) == {n.removeprefix("direct/") for n in core.strategy_names() if n.startswith("direct/")}  # fmt: skip
