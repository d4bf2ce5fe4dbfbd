"""Record files: the schema, reading what is damaged, appending, resuming."""

from __future__ import annotations

import copy
import json
import lzma
from pathlib import Path

import pytest

from guest_cases import guest_cases
from haloscope import bridge, files, records
from haloscope.errors import HaloscopeError, UsageError
from haloscope.measure import campaign, space
from haloscope.measure.request import Request
from haloscope.report import figures
from toy import TOY


def spread(value: float) -> dict:
    return dict.fromkeys(("rank0", "min", "q1", "median", "q3", "mean", "max"), value)


def measurement(name: str = "a", launch: str = "launch-1", seconds=(1.0, 1.1, 0.9), **request) -> dict:
    """A complete record, as `haloscope-rank` writes it."""
    usual = {
        "app": "laplace2d",
        "cells": [8, 8],
        "periodic": [True, True],
        "ranks": 2,
        "process_grid": [2, 1],
        "threads": 1,
        "strategy": "ordered/p2p",
        "schedule": "bulk",
        "depth": 1,
        "steps": 10,
        "repetitions": 3,
    }
    return {
        "schema": "haloscope.record",
        "schema_version": records.SCHEMA_VERSION,
        "kind": "measurement",
        "id": name,
        "launch": {"id": launch, "order": 0, "time_utc": "2026-01-01T00:00:00Z"},
        "request": usual | request,
        "environment": {"oversubscribed": False, "compiler": "GNU", "mpi_library": "MPICH"},
        "time_s": {"repetitions": list(seconds), "step": {"min": 0.09, "median": 0.1, "mean": 0.1, "max": 0.11}},
        "phases_s": {"pack": spread(1e-3), "send": spread(2e-3), "wait": spread(3e-3), "compute": spread(5e-2)},
        "counts": {"messages": 4, "message_bytes": 64, "exchanges": 10},
        "gflops": 2.0,
        "verification": {"status": "passed"},
    }


def write(path, *lines):
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


def test_a_measurement_satisfies_the_schema_and_losing_any_part_does_not():
    assert records.fault_of(measurement()) == ""
    for key in ("schema", "schema_version", "kind", "id", "launch", "request", "environment", "time_s", "verification"):
        broken = measurement()
        del broken[key]
        assert key in records.fault_of(broken)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema_version",), 3),
        (("request", "ranks"), 0),
        (("request", "cells"), []),
        (("time_s", "repetitions"), []),
        (("time_s", "repetitions"), [-1.0]),
        (("verification", "status"), "maybe"),
        (("phases_s", "pack", "rank0"), "fast"),
    ],
)
def test_values_out_of_range_are_named_by_their_place(path, value):
    broken = copy.deepcopy(measurement())
    target = broken
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    assert path[-1] in records.fault_of(broken)


def test_a_parameter_is_a_number_a_text_or_a_list_of_them():
    assert records.fault_of(measurement(set={"end": [1.0, 2.0], "initial": "sod", "flag": True})) == ""
    for value in ({"x": 1}, None, [[]]):
        assert "request/set/end: not a number" in records.fault_of(measurement(set={"end": value}))


def test_an_emulated_network_has_numbers():
    found = measurement()
    found["environment"]["emulated_network"] = {"hosts": 2, "latency_s": 0.0}
    assert "'bandwidth_bytes_per_s' is a required property" in records.fault_of(found)


def test_a_figure_without_a_positive_value_is_drawn(tmp_path):
    figure, axes = figures.plt.subplots()
    axes.plot([1, 2], [0, 0])
    with pytest.warns(UserWarning, match="no positive values"):
        axes.set_yscale("log")
    assert all(file.exists() for file in figures.save(figure, tmp_path / "f"))


def test_good_lines_are_kept_and_bad_ones_reported_with_their_number(tmp_path):
    whole = json.dumps(measurement("c")) + "\n"
    file = write(
        tmp_path / "r.jsonl",
        measurement("a"),
        "\n",
        "not json\n",
        '{"schema": "other"}\n',
        measurement("b"),
        "\xff\xfe\n",
        whole,
        whole[: len(whole) // 2],
    )
    found = records.read(file)
    assert [r["id"] for r in found.records] == ["a", "b", "c"]
    assert [number for number, _ in found.bad_lines] == [3, 4, 6, 8]
    assert all(f"line {n}" in text for (n, _), text in zip(found.bad_lines, found.complaints(), strict=True))


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_read_is_a_clear_error(tmp_path, name):
    with pytest.raises(UsageError, match="cannot read the record file"):
        records.read(tmp_path / name)


def test_a_line_cut_short_by_a_killed_run_never_swallows_the_next_record(tmp_path):
    file = write(tmp_path / "r.jsonl", measurement("a"), '{"schema": "haloscope.rec')
    records.prepare(file)
    records.append(file, [measurement("b")])
    found = records.read(file)
    assert [r["id"] for r in found.records] == ["a", "b"]
    assert [number for number, _ in found.bad_lines] == [2]


def test_preparing_changes_nothing_in_a_sound_file_and_makes_missing_folders(tmp_path):
    file = write(tmp_path / "r.jsonl", measurement("a"))
    before = file.read_bytes()
    records.prepare(file)
    assert file.read_bytes() == before
    records.prepare(tmp_path / "new" / "folder" / "r.jsonl")
    assert (tmp_path / "new" / "folder" / "r.jsonl").read_bytes() == b""


def test_no_space_left_is_said_with_a_remedy(monkeypatch):
    monkeypatch.setattr(files, "refuse_additions", lambda path: None)  # a device stands for a file on a full disk
    with pytest.raises(HaloscopeError, match=r"No space left.*--output"):
        records.append(Path("/dev/full"), [measurement()])
    with pytest.raises(HaloscopeError, match="No space left"):
        records.try_to_write(Path("/dev/full"))


def test_trying_to_write_leaves_a_file_as_readable_as_before(tmp_path):
    file = write(tmp_path / "r.jsonl", measurement("a"))
    records.try_to_write(file)
    records.append(file, [measurement("b")])
    found = records.read(file)
    assert [r["id"] for r in found.records] == ["a", "b"] and not found.bad_lines


def test_an_output_that_cannot_be_written_is_said_before_measuring(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HaloscopeError, match=r"cannot write records.*--output"):
        records.prepare(tmp_path / "file" / "r.jsonl")
    with pytest.raises(HaloscopeError, match="cannot write records"):
        records.prepare(tmp_path)


def test_what_is_measured_or_impossible_is_done_and_what_failed_is_not():
    request = Request.of(bridge.Choice("laplace2d", (8, 8)))
    from haloscope.measure.faults import Fault

    found = [
        measurement("a", "launch-1"),
        records.skipped(request, "no such transport", 3, "launch-1"),
        records.failed(request, Fault("rank 0 died"), "launch-2"),
    ]
    assert all(records.fault_of(r) == "" for r in found)
    assert records.done(found) == {("launch-1", "a"), ("launch-1", request.id)}


def test_the_tail_hands_out_complete_lines_once(tmp_path):
    file = write(tmp_path / "r.jsonl", measurement("old"))
    tail = records.Tail(file)
    text = json.dumps(measurement("new"))
    with file.open("a") as out:
        out.write(text[:40])
        out.flush()
        assert tail.new() == []
        out.write(text[40:] + "\n")
        out.flush()
    assert [r["id"] for r in tail.new()] == ["new"]
    assert tail.new() == []


def test_times_per_step_are_repetitions_divided_by_their_steps():
    assert records.step_times(measurement(seconds=(1.0, 2.0))) == [0.1, 0.2]


def test_of_many_bad_lines_the_first_are_named_and_the_others_counted(tmp_path):
    file = write(tmp_path / "r.jsonl", measurement("a"), "x\n" * 5000, measurement("b"))
    found = records.read(file)
    assert [r["id"] for r in found.records] == ["a", "b"]
    assert (found.bad, len(found.bad_lines)) == (5000, records.MOST_NAMED)
    *named, last = found.complaints()
    assert len(named) == records.MOST_NAMED and "line 2: not complete JSON" in named[0]
    assert last == f"{file}: 4980 more bad lines are left out"


def test_a_record_after_a_few_bad_lines_is_read(tmp_path):
    file = write(tmp_path / "r.jsonl", "x\n" * (records.MOST_BEFORE - 1), "\n" * 5000, measurement("a"))
    assert len(records.read(file).records) == 1


# For each command that reads records, its words around the files.
READING = {
    "validate": ("--profile", TOY),
    "compare": ("r.jsonl.xz",),
    "map": ("laplace2d", "--profile", TOY, "--latency", "50us", "--blocks", "32", "--depth", "1", "--measured"),
    "microbench": ("--from",),
    "demo": ("--from",),
    "calibrate": ("-o", "new.json", "--from"),
} | guest_cases("READING")


@pytest.mark.parametrize("command", READING)
def test_a_small_file_of_a_million_bad_lines_is_refused_in_one_line(command, haloscope, tmp_path):
    (tmp_path / "r.jsonl.xz").write_bytes(lzma.compress(b"x\n" * 10**6))
    result = haloscope(command, *READING[command], "r.jsonl.xz")
    assert result.code == 2
    [line] = result.err.splitlines()
    assert "none of its first 1000 lines is a record (line 1: " in line and "give a file" in line


@pytest.mark.parametrize("command", READING)
def test_every_command_that_reads_records_names_bad_lines(command, haloscope, tmp_path):
    (tmp_path / "r.jsonl.xz").write_bytes(lzma.compress((json.dumps(measurement()) + "\nx\n").encode()))
    result = haloscope(command, *READING[command], "r.jsonl.xz")
    assert "r.jsonl.xz, line 2: not complete JSON" in result.err


def test_a_record_of_another_version_is_a_bad_line(tmp_path):
    found = records.read(write(tmp_path / "r.jsonl", measurement("a"), measurement("b") | {"schema_version": 1}))
    assert [r["id"] for r in found.records] == ["a"]
    [(number, reason)] = found.bad_lines
    assert number == 2 and "not a haloscope.record of version 2 (schema_version" in reason


@pytest.mark.parametrize("name", ["launch-\u00b2", "launch-" + "9" * 5000, "\x1b[2J", "\ud800"])
def test_launches_are_called_by_short_names_so_that_the_next_ones_can_be_numbered(name, tmp_path):
    file = write(tmp_path / "r.jsonl", measurement(launch=name), measurement(launch="launch-4"))
    assert campaign.Campaign(space.Space([]), file, launches=2).launch_ids() == ["launch-5", "launch-6"]
    assert "launch/id" in records.read(file).bad_lines[0][1]


def test_steps_that_do_not_belong_to_the_repetitions_are_refused():
    found = measurement() | {"outcome": {"steps": [10, 10], "reduced": {}}}
    assert "outcome/steps: 2 of 3 repetitions" in records.fault_of(found)
