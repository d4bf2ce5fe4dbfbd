"""Micro-benchmarks: every transport measured by the same code, records that satisfy the schema, tables and figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from haloscope import bridge, records
from haloscope.errors import UsageError
from haloscope.measure import cluster
from haloscope.measure import microbench as requests
from haloscope.records import patterns
from haloscope.records.curves import Curve, group_curves
from haloscope.report import microbench
from long_run import LONG

SHORT = ("--bytes", "8,4096,1048576", "--seconds", "0.0005", "--repetitions", 2, "--launches", 1, "--output", "m.jsonl")


def write(found: list[dict], name: str = "m.jsonl") -> str:
    assert all(records.fault_of(r) == "" for r in found)
    Path(name).write_text("".join(json.dumps(r) + "\n" for r in found))
    return name


def sample(transport: str, seconds: float, launch: str = "launch-1", **request) -> dict:
    """A complete record, as `haloscope-rank` writes it."""
    whole = {"transport": transport, "ranks": 2, "pairs": 1, "nodes": 0, "seconds": 0.01, "repetitions": 3} | request
    times = {
        name: [seconds, 1.1 * seconds, 0.9 * seconds] for name in ("latency_s", "exchange_s", "batch_s", "both_batch_s")
    }
    return {
        "schema": "haloscope.record",
        "schema_version": records.SCHEMA_VERSION,
        "kind": "microbench",
        "id": f"m,{transport},{whole['ranks']}",
        "launch": {"id": launch},
        "request": whole,
        "environment": {"oversubscribed": False, "compiler": "GNU", "mpi_library": "MPICH"},
        "sizes": [{"bytes": size, "window": 64} | times for size in (8, 1024)],
        "verification": {"status": "passed"},
    }


@pytest.mark.ids("SG5")
def test_every_transport_is_measured_in_every_way_with_right_bytes(haloscope):
    names = requests.transport_names() if LONG else ["persistent", *requests.transport_names()[::3]]
    result = haloscope("microbench", *SHORT, "--transport", ",".join(names))
    assert result.code == 0, result.err
    file = records.read("m.jsonl")
    assert not file.bad_lines
    curves = {c.request["transport"]: c for c in group_curves(file.records)}
    refused = {r["id"] for r in file.records if r["kind"] == "skipped"}
    assert {"p2p", "persistent"} <= set(curves)
    assert {requests.Micro(name).id for name in set(names) - set(curves)} == refused
    for name, curve in curves.items():
        assert curve.sizes() == [8, 4096, 1048576] and curve.verification == "passed", name
        assert len(curve.records) == 1
        for size in curve.sizes():
            samples = [
                s
                for quantity in ("latency_s", "exchange_s", "batch_s", "both_batch_s")
                for launch in curve.samples(size, quantity).values()
                for s in launch
            ]
            assert len(samples) == 4 * 2 and all(s > 0 for s in samples), name
        assert curve.window(8) == 64 and curve.window(1048576) == 4
        assert name in result.out
    assert Path("m.svg").stat().st_size > 10000 and Path("m.png").stat().st_size > 10000


@pytest.mark.ids("SG5")
def test_by_default_23_sizes_from_1_byte_to_4_mebibytes_are_measured():
    plain = requests.Micro("p2p")
    assert len(plain.sizes) == 23 and plain.sizes[0] == 1 and plain.sizes[-1] == 4 << 20
    assert all(b == 2 * a for a, b in zip(plain.sizes, plain.sizes[1:], strict=False))


@pytest.mark.ids("SG5")
def test_pairs_and_emulated_nodes_are_requests_of_their_own(haloscope):
    result = haloscope(
        "microbench --transport p2p --ranks 2,4 --nodes 1,2 --bytes 8,64 --seconds 0.0005 --repetitions 1 "
        "--launches 1 --output m.jsonl"
    )
    assert result.code == 0, result.err
    made = [c.request for c in group_curves(records.read("m.jsonl").records)]
    assert sorted((r["ranks"], r["pairs"], r["nodes"]) for r in made) == [(2, 1, 1), (2, 1, 2), (4, 2, 1), (4, 2, 2)]
    assert "4 ranks in 2 pairs on 2 emulated nodes" in result.out


@pytest.mark.ids("SG5")
def test_puts_and_gets_with_a_flush_move_right_bytes_of_all_sizes_without_a_transport(haloscope):
    words = "microbench --pattern put,get --transport * --seconds 0.0001 --repetitions 1 --launches 1 --output m.jsonl"
    result = haloscope(words)
    assert result.code == 0, result.err
    [curve] = group_curves(records.read("m.jsonl").records)
    assert curve.verification == "passed" and curve.transport == ""
    assert curve.measures() == ["put_s", "put_batch_s", "get_s", "get_batch_s"]
    for key in curve.measures():
        assert curve.sizes(key) == list(requests.ALL_SIZES)
    assert curve.window(8) == 64 and curve.window(1048576) == 4
    assert curve.bandwidth(8, "get_batch_s") == pytest.approx(64 * 8 / curve.time(8, "get_batch_s").value)
    assert "### Shapes over sizes" in result.out and "One-sided operations, us: 2 ranks in 1 pair" in result.out


@pytest.mark.ids("SG5")
@pytest.mark.skipif(bool(cluster.missing()), reason=cluster.missing() or "there are namespaces")
def test_puts_and_gets_between_two_emulated_nodes_move_right_bytes(haloscope):
    result = haloscope(
        "microbench --pattern put,get --ranks 4 --lab 2 --latency 50us --bandwidth 1Gbit --bytes 1,4096 "
        "--seconds 0.0001 --repetitions 1 --launches 1 --output m.jsonl"
    )
    assert result.code == 0, result.err
    [curve] = group_curves(records.read("m.jsonl").records)
    assert curve.verification == "passed" and (curve.request["ranks"], curve.pairs) == (4, 2)
    assert curve.records[0]["environment"]["hosts"] == ["node0", "node0", "node1", "node1"]
    shown = haloscope("microbench", "--from", "m.jsonl")
    assert "emulated network of 2 hosts: latency 50 us, 1 Gbit/s" in shown.out


def test_records_can_be_shown_again_without_measuring(haloscope):
    found = [sample("p2p", 1e-6, f"launch-{k}") for k in range(4)] + [
        sample("persistent", 2e-6, f"launch-{k}") for k in range(4)
    ]
    result = haloscope("microbench", "--from", write(found), "--figure", "f/curves")
    assert result.code == 0, result.err
    assert "slower" in result.out and Path("f/curves.svg").exists()


def test_times_that_scatter_around_each_other_have_no_winner():
    found = []
    for k, (a, b) in enumerate([(1.0, 1.1), (1.2, 1.0), (0.9, 1.1), (1.1, 0.9)]):
        found += [sample("p2p", a * 1e-6, f"launch-{k}"), sample("persistent", b * 1e-6, f"launch-{k}")]
    [group] = microbench.groups_of(group_curves(found)).values()
    assert "cannot tell apart" in microbench.overview(group)


def test_rates_and_bandwidths_count_all_pairs_and_both_directions():
    [curve] = group_curves([sample("p2p", 1e-3, ranks=4, pairs=2)])
    assert curve.message_rate(8) == pytest.approx(2 * 64 / 1e-3)
    assert curve.bandwidth(1024) == pytest.approx(2 * 64 * 1024 / 1e-3)
    assert curve.bandwidth(1024, "both_batch_s") == pytest.approx(2 * curve.bandwidth(1024))


@pytest.mark.parametrize("key", ["sizes", "environment", "verification", "request", "launch"])
def test_a_record_without_one_of_its_parts_does_not_satisfy_the_schema(key):
    broken = sample("p2p", 1e-6)
    del broken[key]
    assert key in records.fault_of(broken)


def test_times_of_zero_do_not_satisfy_the_schema():
    assert "0" in records.fault_of(sample("p2p", 0.0))


@pytest.mark.ids("DB4")
def test_every_pattern_is_measured_and_checked_and_shown(haloscope):
    result = haloscope(
        "microbench --pattern * --transport p2p --ranks 4 --gap 1 --threads 1,2 --bytes 4096,65536 "
        "--seconds 0.0001 --repetitions 1 --launches 1 --output m.jsonl"
    )
    assert result.code == 0, result.err
    file = records.read("m.jsonl")
    assert not file.bad_lines and all(r["verification"]["status"] == "passed" for r in file.records)
    found = group_curves(file.records)
    for name, pattern in patterns.BY_NAME.items():
        having = [c for c in found if name in c.request["patterns"]]
        assert having and all({m.key for m in pattern.measures} <= set(c.measures()) for c in having), name
        assert all(c.sizes(m.key) == [4096, 65536] for c in having for m in pattern.measures), name
    assert sorted(c.request["threads"] for c in found if c.kind == patterns.MEMORY) == [1, 1, 2, 2]
    for heading in (
        "4 ranks in 2 pairs, 1 apart",
        "1 of 2 pairs of ranks, 1 apart",
        "4 ranks in a ring",
        "Contention",
        "One-sided operations, us: 4 ranks in 2 pairs, 1 apart",
        "Batches of one-sided operations, GB/s: 4 ranks in 2 pairs, 1 apart",
        "Allreduce, us",
        "Allgather, us",
        "STREAM, GB/s: arrays of 0.0625 MiB",
        "read, 2 threads",
    ):
        assert heading in result.out, heading
    assert Path("m.svg").stat().st_size > 10000


@pytest.mark.ids("DB4")
def test_several_pairs_are_measured_by_powers_of_two_and_all_of_them():
    space = requests.plan(requests.Wanted(names=["multi-pair"], ranks=[12], gap=2)).requests
    assert [(m.pairs, m.gap, m.patterns) for m in space] == [(n, 2, ("pingpong",)) for n in (1, 2, 4, 6)]
    space = requests.plan(requests.Wanted(names=["pingpong", "multi-pair"], ranks=[4])).requests
    assert [m.pairs for m in space] == [0, 1]  # 0: all of them, measured once


@pytest.mark.ids("DB4")
def test_without_sizes_memory_is_measured_from_4_kibibytes_to_far_beyond_its_caches(monkeypatch):
    monkeypatch.setattr(requests.memory, "free_bytes", lambda: 1 << 40)
    monkeypatch.setattr(requests, "largest_cache", lambda: 100 << 20)
    cache, *stream = requests.plan(requests.Wanted(names=["cache", "stream"], threads=[1, 2])).requests[::-1]
    assert cache.patterns == ("cache",) and (cache.sizes[0], cache.sizes[-1]) == (4096, 512 << 20)
    assert [m.sizes for m in stream if m.patterns == ("stream",)] == [(400 << 20,)] * 2
    monkeypatch.setattr(requests.memory, "free_bytes", lambda: 1 << 20)
    [cache] = requests.plan(requests.Wanted(names=["cache"])).requests
    assert cache.sizes[-1] == 512 << 10  # half of what is free
    with pytest.raises(UsageError, match="are free"):
        requests.plan(requests.Wanted(names=["stream"], sizes=[1 << 20]))


@pytest.mark.ids("DB4")
def test_bandwidths_of_memory_count_bytes_as_stream_does():
    def measured(name: str, *keys: str) -> Curve:
        record = sample("p2p", 1.0, patterns=[name], ranks=1, threads=2)
        record["sizes"] = [{"bytes": 800} | {key: [1.0] for key in keys}]  # 100 doubles
        assert records.fault_of(record) == ""
        return group_curves([record])[0]

    stream = measured("stream", "copy_s", "scale_s", "add_s", "triad_s")
    assert [stream.bandwidth(800, key) for key in stream.measures()] == [1600, 1600, 2400, 2400]
    cache = measured("cache", "read_s", "write_s", "update_s")  # of each of 2 threads
    assert [cache.bandwidth(800, key) for key in cache.measures()] == [1600, 1600, 3200]


def test_wrong_input_is_refused_with_what_to_do(haloscope):
    for words, text in (
        (("--ranks", "3"), "pairs"),
        (("--transport", "p3p"), "did you mean"),
        (("--transport", "x*"), "unknown transport"),
        (("--nodes", "3"), "use 0 to 2"),
        (("--seconds", "0"), "not in the range x>0"),
        (("--pattern", "pingpung"), "did you mean pingpong"),
        (("--pattern", "multi-pair"), "--ranks 4"),
        (("--ranks", "4", "--gap", "3"), "does not pair 4 ranks"),
        (("--pattern", "exchange", "--ranks", "1"), "2 ranks or more"),
        (("--pattern", "put", "--ranks", "3"), "ranks work in pairs"),
        (("--pattern", "allreduce", "--bytes", "6"), "multiples"),
        (("--pattern", "stream", "--threads", "0"), "use 1 or more"),
        (("--pattern", "cache", "--bytes", str(1 << 50)), "are free"),
    ):
        result = haloscope("microbench", *words)
        assert result.code == 2 and text in result.err, (words, result.err)


def test_option_words_stay_with_their_transport():
    assert requests.transports("p2p:testany,datatype,persistent") == ["p2p:testany,datatype", "persistent"]
    assert set(requests.transports("p2p*")) == {n for n in requests.transport_names() if n.startswith("p2p")}
    with pytest.raises(UsageError):
        requests.transports("p2p:nonsense")
    assert set(requests.transports("*")) == {
        n.removeprefix("direct/") for n in bridge.strategy_names() if n.startswith("direct/")
    }
