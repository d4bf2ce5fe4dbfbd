"""Where the ranks' time went: the table of blocked seconds, and the trace of all ranks in one file."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from haloscope import bridge, records
from haloscope.report import timeline
from plan_cases import program_of
from test_records import measurement

DELAY_S = 0.02
STEPS = 5
ROUNDING_US = 0.05  # of a file's numbers


def run(haloscope, *words, ranks: int = 2, strategy: str = "direct/p2p"):
    return haloscope(
        f"run laplace2d --cells 32x32 --process-grid {ranks}x1 --ranks {ranks} --steps {STEPS} --repetitions 2 "
        f"--launches 1 --strategy {strategy} --verify 0 --output r.jsonl",
        *words,
    )


def trace(haloscope, *words, **options) -> list[dict]:
    result = run(haloscope, "--trace", "t.json", *words, **options)
    assert result.code == 0, result.err
    return json.loads(Path("t.json").read_text())


def clocks_us(file: Path) -> list[tuple[float, float]]:
    """Each rank's clock in a trace: its offset from the clock of rank 0, and the error of that."""
    labels = [e["args"]["labels"] for e in json.loads(file.read_text()) if e["name"] == "process_labels"]
    found = [re.fullmatch(r"clock ([+-][\d.]+) us \+- ([\d.]+) us", label) for label in labels]
    return [(float(match[1]), float(match[2])) for match in found]


def clock_tolerance_us(file: Path) -> float:
    """How much later than its effect a cause on another rank may seem to be in a trace."""
    return max(uncertainty for _, uncertainty in clocks_us(file)) + ROUNDING_US


def table(text: str, first: str) -> list[dict[str, str]]:
    """The table whose first column has this title."""
    lines = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    at = next(i for i, line in enumerate(lines) if line[0] == first)
    width = len(lines[at])
    body = []
    for line in lines[at + 2 :]:
        if len(line) != width or line[0] in ("during", "#", "rank"):
            break
        body.append(dict(zip(lines[at], line, strict=True)))
    return body


@pytest.mark.ids("SH1")
def test_a_rank_that_waits_for_a_late_one_lasts_as_long_and_its_waiting_is_shown_as_blocked(haloscope):
    late = f"delay:rank=1,step=-1,seconds={DELAY_S},op=send"
    result = run(haloscope, "--timeline", "--inject", late)
    assert result.code == 0, result.err
    [record] = records.read("r.jsonl").measurements
    ranks = timeline.ranks_of([record])
    assert ranks[1]["phases_s"]["rest"] >= 0.999 * 2 * STEPS * DELAY_S  # asleep before its sends
    # Of each repetition the first delay may be over before rank 0 reads its clock; the others follow its messages.
    assert ranks[0]["measured_s"] >= 0.999 * 2 * (STEPS - 1) * DELAY_S
    in_calls = sum(
        call["seconds"] for (during, _, role), call in ranks[0]["mpi"].items() if timeline.blocks(during, role)
    )
    assert 0 < in_calls <= timeline.blocked_s(ranks[0])  # the rest of the waiting is between the calls
    assert timeline.blocked_s(ranks[0]) <= 1.001 * ranks[0]["measured_s"]
    shown = {row["rank"]: row for row in table(result.out, "rank")}
    assert set(shown) == {"0", "1", "least", "mean", "most"}
    assert float(shown["0"]["blocked (s)"]) == pytest.approx(timeline.blocked_s(ranks[0]), abs=1e-4)
    calls = table(result.out, "during")
    longest = [float(row["most (s)"]) for row in calls]
    assert longest == sorted(longest, reverse=True)
    waits = [row for row in calls if row["during"] == "wait" and row["MPI call"].startswith("MPI_Test")]
    assert {row["blocks"] for row in waits} == {"yes"}


@pytest.mark.ids("SH1")
def test_phases_and_operations_of_every_rank_add_up_to_what_it_measured(haloscope):
    assert run(haloscope, "--timeline").code == 0
    [record] = records.read("r.jsonl").measurements
    for entry in record["timeline"]["ranks"]:
        phases, operations = sum(entry["phases_s"].values()), sum(entry["operations_s"].values())
        assert 0 < operations <= phases <= 1.05 * entry["measured_s"] + 1e-3
        assert entry["operations_s"]["wait"] + entry["operations_s"]["complete"] == pytest.approx(
            entry["phases_s"]["wait"]
        )


@pytest.mark.ids("SH1")
def test_only_calls_of_the_exchange_are_counted_and_all_of_them(haloscope):
    assert run(haloscope, "--timeline").code == 0
    [record] = records.read("r.jsonl").measurements
    messages = record["counts"]["messages"] * record["request"]["repetitions"]
    calls = [call for entry in record["timeline"]["ranks"] for call in entry["mpi"]]
    sent = [call for call in calls if call["call"] == "MPI_Isend"]
    assert sum(call["calls"] for call in sent) == messages and {call["during"] for call in sent} == {"send"}
    assert not [call for call in calls if call["call"] == "MPI_Barrier"]


@pytest.mark.ids("SH1")
def test_a_barrier_before_each_exchange_shows_as_blocked_time_of_its_own(haloscope):
    assert run(haloscope, "--timeline", "--barrier").code == 0
    [record] = records.read("r.jsonl").measurements
    for entry in record["timeline"]["ranks"]:
        [barrier] = [call for call in entry["mpi"] if call["call"] == "MPI_Barrier"]
        assert barrier["during"] == "barrier" and barrier["calls"] == 2 * STEPS and barrier["role"] == "waits"
        assert entry["operations_s"]["barrier"] >= barrier["seconds"] > 0


def test_without_being_asked_for_a_record_has_no_timeline(haloscope):
    result = run(haloscope)
    assert result.code == 0 and "blocked" not in result.out
    assert "timeline" not in records.read("r.jsonl").measurements[0]


@pytest.mark.ids("SH1")
def test_the_trace_has_one_named_process_per_rank_with_operations_steps_and_mpi_calls(haloscope):
    events = trace(haloscope, ranks=3)
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert sorted(names) == [0, 1, 2] and all(name.startswith(f"rank {pid} on ") for pid, name in names.items())
    assert all("clock" in e["args"]["labels"] for e in events if e["name"] == "process_labels")
    choice = bridge.Choice(app="laplace2d", cells=(32, 32), ranks=3, process_grid="3x1", strategy="direct/p2p")
    for rank in names:
        program = program_of(choice, rank)
        mine = [e for e in events if e["ph"] == "X" and e["pid"] == rank]
        operations = [e for e in mine if "op" in e["args"]]
        steps = sorted({e["args"]["step"] for e in operations})
        assert steps == list(range(steps[0], steps[0] + STEPS))
        assert len(operations) == STEPS * len(program.ops)
        assert {e["name"] for e in operations} == {op.kind for op in program.ops}
        calls = [e for e in mine if e["cat"] == "mpi"]
        assert calls and all(e["name"].startswith("MPI_") for e in calls)
        for call in calls:  # every call lies inside an operation of the same step
            assert any(
                o["ts"] <= call["ts"] + 0.01
                and call["ts"] + call["dur"] <= o["ts"] + o["dur"] + 0.01
                and o["args"]["step"] == call["args"]["step"]
                for o in operations
            )


@pytest.mark.ids("SH1")
def test_clocks_are_aligned_no_message_arrives_before_it_was_sent(haloscope):
    events = [e for e in trace(haloscope) if e["ph"] == "X"]
    waits = {(e["pid"], e["args"]["step"]): e["ts"] + e["dur"] for e in events if e["name"] == "wait"}
    sends = {(e["pid"], e["args"]["step"]): e["ts"] for e in events if e["name"] == "send"}
    assert len(waits) == len(sends) == 2 * STEPS
    tolerance_us = clock_tolerance_us(Path("t.json"))
    assert all(arrived > sends[1 - rank, step] - tolerance_us for (rank, step), arrived in waits.items())


@pytest.mark.ids("SH1")
def test_what_a_trace_says_of_clocks_holds_on_one_machine_where_all_are_the_same(haloscope):
    trace(haloscope, ranks=3)
    assert [offset == uncertainty == 0 for offset, uncertainty in clocks_us(Path("t.json"))] == [True, False, False]
    assert all(abs(offset) <= uncertainty + ROUNDING_US for offset, uncertainty in clocks_us(Path("t.json")))


def epochs(haloscope, strategy: str, *words: str) -> list[dict[str, dict]]:
    """Return the epochs of each rank by kind."""
    assert run(haloscope, "--timeline", *words, strategy=strategy).code == 0
    [record] = records.read("r.jsonl").measurements
    return [{epoch["kind"]: epoch for epoch in entry["epochs"]} for entry in record["timeline"]["ranks"]]


EXCHANGES = 2 * STEPS  # of the measured repetitions
NEIGHBOURS = 2  # the grid is periodic, and both are the same rank


@pytest.mark.ids("SH1")
@pytest.mark.parametrize(
    ("strategy", "counts"),
    [
        ("direct/rma-fence", {"fence": EXCHANGES}),
        ("direct/rma-pscw", {"access": EXCHANGES, "exposure": EXCHANGES}),
        ("direct/rma-pscw:get,per-message", {"access": NEIGHBOURS * EXCHANGES, "exposure": NEIGHBOURS * EXCHANGES}),
        ("direct/rma-lock", {"lock": NEIGHBOURS * EXCHANGES}),
        ("direct/rma-lockall:get", {"lock-all": 2}),
        ("direct/rma-lockall:rget", {"lock-all": 2}),
        ("direct/p2p", {}),
    ],
)
def test_each_rank_has_the_epochs_of_its_synchronisation(haloscope, strategy, counts):
    for rank in epochs(haloscope, strategy):
        assert {kind: epoch["epochs"] for kind, epoch in rank.items()} == counts
        for epoch in rank.values():
            assert 0 <= epoch["blocked_s"] <= epoch["open_s"] <= epoch["epochs"] * epoch["longest_s"] * (1 + 1e-9)


@pytest.mark.ids("SH1")
def test_epochs_of_a_rank_that_waits_for_a_late_one_are_blocked_as_long(haloscope):
    late = f"delay:rank=1,step=-1,seconds={DELAY_S},op=wait"
    waiting, late_rank = epochs(haloscope, "direct/rma-fence", "--inject", late)
    least = 0.999 * 2 * (STEPS - 1) * DELAY_S  # the closing fence of each step waits for the late rank's
    assert waiting["fence"]["blocked_s"] >= least
    assert late_rank["fence"]["open_s"] >= least  # asleep between its fences


@pytest.mark.ids("SH1")
def test_epochs_of_a_trace_enclose_the_operations_and_end_in_their_order(haloscope):
    events = trace(haloscope, strategy="direct/rma-fence")
    for rank in (0, 1):
        mine = [e for e in events if e["pid"] == rank]
        begins = {e["id"]: e["ts"] for e in mine if e["ph"] == "b"}
        ends = {e["id"]: e["ts"] for e in mine if e["ph"] == "e"}
        assert {e["name"] for e in mine if e["ph"] in "be"} == {"fence epoch"}
        assert len(begins) == STEPS and set(begins) == set(ends)  # of the last repetition
        spans = sorted((begins[number], ends[number]) for number in begins)
        assert all(end <= begin + ROUNDING_US for (_, end), (begin, _) in itertools.pairwise(spans))
        puts = [e for e in mine if e["name"] == "MPI_Put"]
        assert len(puts) == NEIGHBOURS * STEPS
        for put in puts:
            assert any(begin < put["ts"] and put["ts"] + put["dur"] < end for begin, end in spans)


def test_a_trace_file_that_cannot_be_written_ends_the_run_with_its_name(haloscope):
    result = run(haloscope, "--trace", "missing/t.json")
    assert result.code == 1 and "missing/t.json" in result.err


def test_timelines_of_several_launches_add_up_and_many_ranks_are_summarised():
    call = {"call": "MPI_Wait", "role": "waits", "during": "wait", "calls": 2, "seconds": 0.5}
    entry = {"measured_s": 2.0, "phases_s": {"wait": 0.5, "compute": 1.5}, "operations_s": {"wait": 0.5}, "mpi": [call]}
    record = measurement()
    record["timeline"] = {"ranks": [{"rank": r} | entry for r in range(40)]}
    assert records.fault_of(record) == ""
    ranks = timeline.ranks_of([record, record])
    assert ranks[39]["measured_s"] == 4 and ranks[39]["mpi"]["wait", "MPI_Wait", "waits"]["calls"] == 4
    text = timeline.summary([record])
    assert [row["rank"] for row in table(text, "rank")] == ["least", "mean", "most"]
    assert table(text, "rank")[0]["blocked"] == "25.0 %"
    assert table(text, "during")[0]["calls, all ranks"] == "80"
    assert timeline.summary([measurement()]) == ""


@pytest.mark.ids("SH1")
def test_the_table_of_epochs_has_their_number_their_lengths_and_blocked_seconds_over_ranks():
    def entry(rank: int, blocked_s: float) -> dict:
        fence = {"kind": "fence", "epochs": 4, "open_s": 0.012, "longest_s": 0.002 * (rank + 3), "blocked_s": blocked_s}
        none = {"measured_s": 2.0, "phases_s": {}, "operations_s": {}, "mpi": []}
        return {"rank": rank} | none | {"epochs": [fence]}

    record = measurement() | {"timeline": {"ranks": [entry(0, 0.25), entry(1, 0.75)]}}
    assert records.fault_of(record) == ""
    [line] = table(timeline.summary([record, record]), "epoch")
    assert list(line.values()) == ["fence to fence", "16", "3.000", "8.000", "0.5000", "1.0000", "1.5000"]
    record["timeline"]["ranks"][0]["epochs"] = []
    assert table(timeline.summary([record]), "epoch")[0]["least blocked (s)"] == "0.0000"
    for entry_of_rank in record["timeline"]["ranks"]:
        del entry_of_rank["epochs"]  # as in older records
    assert "fence to fence" not in timeline.summary([record])
