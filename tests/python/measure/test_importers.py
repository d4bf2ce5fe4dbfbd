"""Outputs of IMB, OSU, SKaMPI and STREAM become records, tables and factors; other text is refused."""

from __future__ import annotations

import contextlib
import re
import string
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as some

from haloscope import records
from haloscope.errors import UsageError
from haloscope.measure import importers
from haloscope.records.curves import Curve, group_curves
from haloscope.report import contention, microbench_report

OUTPUTS = Path(__file__).parent / "outputs"


def curves(name: str) -> list[Curve]:
    found = importers.read(OUTPUTS / name).records
    assert all(records.fault_of(r) == "" for r in found)
    return group_curves(found)


def times(curve: Curve, key: str) -> dict[int, float]:
    """Microseconds by size."""
    return {size: pytest.approx(curve.time(size, key).value * 1e6) for size in curve.sizes(key)}


@pytest.mark.ids("DB4")
def test_round_trips_of_skampi_are_halved():
    pair, two, four = curves("skampi.txt")
    assert times(pair, "latency_s") == {16: 4.55, 512: 7.05, 16384: 22.85, 524288: 351.5}
    assert f"{pair.time(16384).value * 1e6:.2f}" == "22.85"  # printed as 22.9 in the thesis
    assert [(c.request["ranks"], times(c, "allreduce_s")) for c in (two, four)] == [(2, {4: 3.2}), (4, {4: 6.4})]
    assert importers.read(OUTPUTS / "skampi.txt").notes == ("left out: MPI_Bcast-nodes-length",)


@pytest.mark.ids("DB4")
def test_every_benchmark_of_imb_has_its_own_key_and_the_slowest_process_counts():
    found = {(tuple(c.measures()), c.request["ranks"]): c for c in curves("imb-2021.txt")}
    assert set(found) == {
        (("latency_s", "exchange_s"), 2),
        (("ring_s",), 2),
        (("ring_s",), 4),
        (("allreduce_s",), 4),
        (("allgather_s",), 4),
    }
    pair = (("latency_s", "exchange_s"), 2)
    assert times(found[pair], "latency_s") == {0: 0.2, 1: 0.21, 64: 0.24, 65536: 8.0, 4194304: 400.0}
    assert times(found[pair], "exchange_s")[65536] == 16.0
    assert times(found[("ring_s",), 4], "ring_s") == {0: 0.84, 65536: 56.0}
    assert times(found[("allreduce_s",), 4], "allreduce_s") == {0: 0.005, 4: 1.94}  # printed as 0.00
    assert times(found[("allgather_s",), 4], "allgather_s") == {0: 0.05, 8: 1.3}
    notes = importers.read(OUTPUTS / "imb-2021.txt").notes
    assert notes == ("left out: Bcast, Barrier", "1 sizes without a time (out of memory, out of time)")


@pytest.mark.ids("DB4")
def test_of_groups_at_the_same_time_the_slowest_counts():
    pairs, rings = curves("imb-3-multi.txt")
    assert (pairs.request["ranks"], pairs.pairs, times(pairs, "latency_s")) == (8, 4, {16384: 195.0})
    assert (rings.request["ranks"], rings.pairs, times(rings, "ring_s")) == (8, 2, {16384: 330.0})


def test_latencies_and_bandwidths_of_osu_are_those_of_two_ranks():
    [pair] = curves("osu.txt")
    assert pair.request["ranks"] == 2
    assert times(pair, "latency_s") == {0: 0.005, 1: 1.42, 512: 2.10, 1048576: 101.30}  # printed as 0.00, ...
    assert times(pair, "batch_s") == {4096: 4096 / 5921.33}
    assert pair.value(4096, "both_batch_s")[0] == pytest.approx(8.192)  # GB/s, both ways
    imported = importers.read(OUTPUTS / "osu.txt")
    assert imported.records[0]["environment"]["program"] == "OSU 7.3"
    assert imported.notes == (
        "left out: OSU MPI-CUDA Latency, OSU MPI Allreduce Latency",
        "1 sizes without a bandwidth",
    )


@pytest.mark.ids("SG5")
def test_puts_and_gets_of_osu_that_a_flush_completes_are_read(haloscope):
    put, get = curves("osu-one-sided.txt")
    assert (times(put, "put_s"), times(get, "get_s")) == ({1: 0.31, 4096: 0.92}, {1: 0.29, 4096: 0.87})
    assert put.value(4096, "put_batch_s")[0] == pytest.approx(9.876)  # GB/s
    assert times(get, "get_batch_s") == {4096: pytest.approx(4096 / 8765.43)}
    assert importers.read(OUTPUTS / "osu-one-sided.txt").notes == (
        "left out: OSU MPI_Put Latency by MPI_Win_lock/unlock, OSU MPI_Get_accumulate latency",
    )
    result = haloscope("microbench", "--import", OUTPUTS / "osu-one-sided.txt", "--output", "m.jsonl")
    assert result.code == 0 and "One-sided operations, us: OSU, 2 ranks in 1 pair" in result.out, result.err


@pytest.mark.ids("DB4")
def test_rates_of_stream_come_back_as_they_were_printed():
    [curve] = curves("stream.txt")
    rates = {key: pytest.approx(curve.value(640000000, key)[0]) for key in curve.measures()}
    assert rates == {"copy_s": 31.59, "scale_s": 28.54, "add_s": 37.46, "triad_s": 32.10}  # Minerva, 4 threads
    assert curve.request["threads"] == 4 and curve.verification == "passed"


@pytest.mark.ids("DC7")
def test_factors_of_messages_at_once_are_quotients_of_measured_times():
    found = {(c.pattern, c.curve.request["ranks"]): c for c in contention.measured(curves("imb-2021.txt"))}
    assert (found["pingping", 2].at_once, found["exchange", 2].at_once, found["exchange", 4].at_once) == (2, 4, 8)
    assert found["pingping", 2].large == pytest.approx(2) and found["exchange", 2].large == pytest.approx(4)
    assert found["exchange", 4].large == pytest.approx(7)
    assert found["pingping", 2].factors[64].value == pytest.approx(1.25)
    assert contention.laws(list(found.values())) == ["IMB, large messages of two ranks: duplex 2.00, shared 1.00"]


@pytest.mark.ids("DB4")
def test_outputs_of_several_programs_are_shown_together_and_kept_as_records(haloscope):
    words = [word for name in ("skampi.txt", "stream.txt") for word in ("--import", OUTPUTS / name)]
    result = haloscope("microbench", *words, "--output", "m.jsonl", "--figure", "f/curves")
    assert result.code == 0, result.err
    for words in ("| SKaMPI ", "STREAM, GB/s: arrays of 610.4 MiB", "SKaMPI, 4 ranks"):
        assert words in result.out, words
    assert "left out: MPI_Bcast" in result.err and Path("f/curves.svg").exists()
    kept = microbench_report.sections(group_curves(records.read("m.jsonl").records))
    assert all(section in result.out for section in kept)


def test_outputs_of_several_programs_under_one_name_are_still_reported():
    found = [record for name in ("imb-2021.txt", "stream.txt") for record in importers.read(OUTPUTS / name).records]
    assert microbench_report.sections(group_curves([record | {"id": "same"} for record in found]))


@pytest.mark.ids("DC7")
def test_factors_stand_in_the_report_with_what_they_mean_to_a_profile():
    report = "\n".join(microbench_report.sections(curves("imb-2021.txt")))
    for words in ("Contention: time over that of one message alone", "concurrent messages", "duplex 2.00, shared 1.00"):
        assert words in report, words


def test_text_of_no_known_program_is_refused_with_what_is_understood(haloscope, tmp_path):
    imb = (OUTPUTS / "imb-2021.txt").read_text()
    for text, words in (
        ("", ("PingPong", "SKaMPI", "Triad")),
        ("iperf 3.1\n[ 5] 0.00-1.00 sec 112 MBytes\n", ("not the output of a supported benchmark",)),
        (imb[imb.index("# Benchmarking Bcast") : imb.index("# Benchmarking Allreduce")], ("left out: Bcast",)),
        (imb.replace("         8.00 ", "         8.x0 "), ("'8.x0'", "unchanged output of IMB")),
        (imb[: imb.index("16.00      4096.00")], ("cut off",)),
        ("# OSU MPI Latency Test v7.3\n# Size Latency (us)\n8\n", ("line 3 is cut off", "unchanged output of OSU")),
        ("# OSU MPI Neighborhood Alltoall Latency Test v7.3\n1 3.9\n", ("osu_latency", "Neighborhood Alltoall")),
        ((OUTPUTS / "stream.txt").read_text().replace("Array size", "Size"), ("size of the arrays",)),
    ):
        (tmp_path / "text").write_text(text)
        result = haloscope("microbench", "--import", tmp_path / "text", "--output", "m.jsonl")
        assert result.code == 2 and all(w in result.err for w in words), (text[:80], result.err)
        assert not Path("m.jsonl").exists()


LENGTH = 1 << 20  # of texts that a pattern must come through in time
PATTERNS = {
    f"{form.NAME}{name}": value
    for form in importers.FORMATS
    for name, value in vars(form).items()
    if isinstance(value, re.Pattern)
}


def example_of(pattern: re.Pattern) -> str:
    """Return the longest text that a pattern finds in the outputs."""
    texts = [line for file in OUTPUTS.iterdir() for line in file.read_text().splitlines()]
    return max((found[0] for text in texts if (found := pattern.search(text))), key=len)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", PATTERNS)
def test_no_text_keeps_a_pattern_busy(name):
    """Beginnings of what it finds, again and again, and after each a run of what may follow."""
    example = example_of(PATTERNS[name])
    beginnings = [example[:end] for end in range(1, len(example) + 1)]
    texts = [begin * (LENGTH // len(begin)) for begin in beginnings]
    texts += [begin + run * (LENGTH // 4) for begin in ("", *beginnings) for run in " \t\n1a#"]
    for text in texts:
        for _ in PATTERNS[name].finditer(text):
            pass


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", sorted(path.name for path in OUTPUTS.iterdir()))
def test_an_output_of_many_equal_lines_is_soon_read_or_refused(name, tmp_path):
    text = (OUTPUTS / name).read_text()
    for line in ("", " ", *dict.fromkeys(text.splitlines())):
        (tmp_path / "text").write_text(text + f"{line}\n" * (LENGTH // 8 // (len(line) + 1)))
        with contextlib.suppress(UsageError):
            importers.read(tmp_path / "text")


def test_an_output_with_a_line_of_endless_length_is_refused_by_its_number(tmp_path):
    (tmp_path / "text").write_text((OUTPUTS / "stream.txt").read_text() + "x" * (importers.MOST_LINE + 1))
    with pytest.raises(UsageError, match=r"line 34 has more than 65536 characters; give"):
        importers.read(tmp_path / "text")


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(some.data())
def test_any_damage_to_an_output_gives_records_or_a_refusal(tmp_path_factory, data):
    text = (OUTPUTS / data.draw(some.sampled_from(sorted(p.name for p in OUTPUTS.iterdir())))).read_text()
    for _ in range(data.draw(some.integers(1, 4))):
        at, length = data.draw(some.integers(0, len(text))), data.draw(some.integers(0, 40))
        text = text[:at] + data.draw(some.text(string.printable, max_size=8)) + text[at + length :]
    file = tmp_path_factory.getbasetemp() / "damaged.txt"
    file.write_text(text)
    with contextlib.suppress(UsageError):
        assert all(records.fault_of(r) == "" for r in importers.read(file).records)


@pytest.mark.parametrize(
    ("name", "old", "new", "line"),
    [
        ("stream.txt", "Array size = ", "Array size = " + "9" * 310, 1),
        ("stream.txt", "Array size = ", "Array size = " + "9" * 5000, 1),
        ("stream.txt", "uses 8 bytes", "uses " + "8" * 400 + " bytes", 1),
        ("imb-2021.txt", "#processes = 2", "#processes = " + "2" * 400, 1),
        ("imb-2021.txt", "#processes = 2", "#processes = 2000000000", 0),
        ("imb-2021.txt", "        65536 ", "     9223372036854775808 ", 1),
        ("imb-2021.txt", " 8.00 ", " 1e308 ", 1),
        ("skampi.txt", " 16 ", " 1e300 ", 1),
    ],
)
def test_numbers_that_no_benchmark_gives_are_refused_with_their_line(name, old, new, line, tmp_path):
    text = (OUTPUTS / name).read_text()
    changed = text.replace(old, new, 1)
    assert changed != text
    (tmp_path / name).write_text(changed)
    with pytest.raises(UsageError, match="line [0-9]+ has" if line else "2000000000") as error:
        importers.read(tmp_path / name)
    assert len(str(error.value)) < 1000
