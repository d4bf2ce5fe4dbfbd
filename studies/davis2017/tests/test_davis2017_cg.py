"""The solver case of Davis 2017: tables of PETSc's log and cg3d's methods, by hand and of a kept measurement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from haloscope import errors, outputs, patience, records
from haloscope.bridge import build
from haloscope.measure import launch
from haloscope_studies.davis2017.measured import cg
from reports import skipped_study
from test_records import write

KEPT = Path(__file__).resolve().parents[1] / "results" / "cg.jsonl"


def spread(least: float, mean: float, most: float) -> dict:
    return {"min": least, "mean": mean, "max": most}


def solve(**changes) -> dict:
    """Return a made-up record of two solves of ten iterations on two ranks."""
    functions = {
        "KSPSolve": {"calls": 2, "time_s": spread(9.0, 9.5, 10.0)},
        "MatMult": {"calls": 20, "time_s": spread(4.0, 5.0, 6.0)},
        "VecNorm": {"calls": 22, "time_s": spread(0.5, 0.8, 0.9)},
        "VecTDot": {"calls": 40, "time_s": spread(1.0, 1.2, 1.4)},
        "VecAXPY": {"calls": 40, "time_s": spread(1.0, 1.1, 1.2)},
        "VecAYPX": {"calls": 18, "time_s": spread(0.3, 0.4, 0.5)},
        "PCApply": {"calls": 22, "time_s": spread(0.2, 0.25, 0.3)},
        "VecScatterBegin": {"calls": 20, "time_s": spread(0.1, 0.2, 0.3)},
        "VecScatterEnd": {"calls": 20, "time_s": spread(0.2, 0.4, 0.6)},
    }
    functions["VecNorm"]["allreduce"] = {"calls": 22, "time_s": spread(0.1, 0.22, 0.3)}
    functions["VecTDot"]["allreduce"] = {"calls": 40, "time_s": spread(0.2, 0.4, 0.6)}
    return {
        "kind": "cg-solve",
        "mpi_library": "MPICH",
        "code": "petsc",
        "method": "standard",
        "form": "aij",
        "ranks": 2,
        "side": 50,
        "iterations": 10,
        "solve_s": [5.0, 5.0],
        "launch": "launch-1",
        "functions": functions,
    } | changes


ALONE = {"kind": "cg-allreduce", "ranks": 2, "side": 50, "bytes": 8, "time_s": spread(0.003, 0.004, 0.005)}


def rows(text: str, title: str) -> list[list[str]]:
    """Return the cells of a table below a title."""
    body = text.partition(f"### Conjugate gradients: {title}")[2].partition("\n### ")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in body.splitlines() if line.startswith("|")][2:]


@pytest.mark.ids("DG3")
def test_the_sum_takes_the_largest_of_computing_and_the_least_of_waiting():
    [log] = cg.logs([solve()])
    assert log.composed == pytest.approx((6.0 + 0.5 + 1.0 + 1.2 + 0.5 + 0.3) / 2)
    assert log.error == pytest.approx(9.5 / 10 - 1)
    [row] = rows(cg.tables([solve(), ALONE]), "sum of")
    assert row[-4:] == ["-5.00%", "-0.96 %", "2%", "NO"]


@pytest.mark.ids("DG4")
def test_the_expected_reductions_are_those_of_the_study():
    for i in (2, 16, 326):
        assert cg.expected_reductions("standard", i) == 3 * i + 1
        assert cg.expected_reductions("single-reduction", i) == 2 * i + 3


def test_calls_that_differ_from_the_study_are_named():
    record = solve()
    record["functions"]["VecAYPX"]["calls"] = 20
    different = [row[3:] for row in rows(cg.tables([record, ALONE]), "calls in") if row[-1] == "NO"]
    assert different == [["VecAYPX", "9", "10", "NO"]]


@pytest.mark.ids("DG5")
def test_what_a_reduction_takes_longer_than_alone_is_synchronisation():
    found = rows(cg.tables([solve(), ALONE]), "dot products")
    norm, dot = ([float(cell.split(",")[0]) for cell in row[3:9]] for row in found)
    assert norm[2] == pytest.approx(0.22 / 22 * 1e6) and norm[5] == pytest.approx((0.22 / 22 - 0.004) * 1e6)
    assert dot[0] == pytest.approx((1.2 - 0.4) / 40 * 1e6)


def test_published_numbers_stand_beside_the_same_ranks_and_blocks_only():
    same, other_side, other_ranks = ({}, {"side": 40}, {"ranks": 3})
    for changes, expected in ((same, "-0.96 %"), (other_side, ""), (other_ranks, "")):
        [row] = rows(cg.tables([solve(**changes), ALONE, ALONE | {"ranks": 3}]), "sum of")
        assert row[-3] == expected, changes


@pytest.mark.ids("DG1", "DG2", "DG3", "DG4", "DG5")
def test_the_kept_measurement_holds_what_the_tables_say():
    kept = [json.loads(line) for line in KEPT.read_text().splitlines()]
    found = cg.logs(kept)
    assert {(log.ranks, log.side, log.method) for log in found} == {(r, 50, m) for r in (1, 2) for m in cg.METHODS}
    for log in found:
        if log.method not in cg.PUBLISHED:
            continue
        assert (
            log.calls.items() >= {k: v for k, v in cg.expected_calls(log.method, log.iterations).items() if v}.items()
        )
        assert abs(log.error) <= cg.BAR
        if log.ranks > 1:
            assert sum(log.reduces.values()) == cg.expected_reductions(log.method, log.iterations)
    assert max(r["residuals_differ"] for r in kept if r["kind"] == cg.SOLVE) < 1e-10
    text = cg.tables(kept)
    assert "NO" not in text and "Not measured" not in text
    assert {row[2] for row in rows(text, "MatMult")} == {"Multiply + MultiplyAdd", "VecScatterBegin", "VecScatterEnd"}


def test_without_petsc_the_methods_of_cg3d_are_measured_and_the_table_names_the_package(tmp_path, monkeypatch):
    def absent(preset, *targets):
        raise errors.UnavailableError(f"there is no {preset}")

    monkeypatch.setattr(build, "build_preset", absent)
    monkeypatch.setattr(cg, "FULL", cg.Effort(iterations=3, rounds=2, launches=1))
    monkeypatch.setattr(cg, "_rank_counts", lambda: [1, 2])
    found = cg.run(tmp_path / "cg.jsonl", quick=False)
    assert [json.loads(line) for line in (tmp_path / "cg.jsonl").read_text().splitlines()] == found
    text = cg.tables(found)
    measured = rows(text, "time of an iteration")
    assert [(row[0], row[3], row[4]) for row in measured] == [
        (ranks, *solver)
        for ranks in ("1", "2")
        for solver in (
            ("standard", "plain"),
            ("standard", "fused"),
            ("single-reduction", "fused"),
            ("pipelined", "fused"),
        )
    ]
    assert "libpetsc-real-dev" in text.split("Not measured: ")[1] and "there is no petsc" in text


def test_a_solver_that_takes_long_is_reported_and_waited_for(tmp_path, monkeypatch, capsys):
    program = tmp_path / "bench" / cg.PROGRAM
    program.parent.mkdir()
    program.write_text(
        f"""#!/bin/sh\nuntil [ -e {tmp_path}/reported ]; do sleep 0.01; done\necho '{{"kind": "cg-solve"}}'\n"""
    )
    program.chmod(0o755)
    report = patience.Wait.report

    def note(*words):
        report(*words)
        (tmp_path / "reported").touch()

    monkeypatch.setattr(patience.Wait, "report", note)
    monkeypatch.setenv("HALOSCOPE_PATIENCE", "0.05")
    monkeypatch.setattr(launch, "launcher_words", lambda *words: [])
    once = cg.Effort(iterations=3, rounds=2, launches=1)
    assert list(cg._launches(tmp_path, 1, once)) == [{"kind": "cg-solve", "launch": "launch-1"}]
    assert f"{program} --side 50" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.ids("DG1", "DG4")
def test_petsc_calls_what_the_study_says_and_finds_the_same_residuals(tmp_path):
    try:
        build.build_preset(cg.PRESET, cg.PROGRAM)
    except errors.UnavailableError as error:
        pytest.skip(str(error))
    found = cg.run(tmp_path / "cg.jsonl", quick=True)
    checked = [log for log in cg.logs(found) if log.method in cg.PUBLISHED]
    assert len(checked) >= 2
    for log in checked:
        assert (
            log.calls.items() >= {k: v for k, v in cg.expected_calls(log.method, log.iterations).items() if v}.items()
        )
    assert max(r["residuals_differ"] for r in found if r["kind"] == cg.SOLVE) < 1e-10


def test_every_kept_record_satisfies_the_schema_and_other_lines_do_not():
    found = records.read(KEPT, records.CG)
    assert not found.bad and len(found.records) == 48


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "1",
        "null",
        '{"kind": "cg-solve"}',
        '{"kind": "cg-solve", "solve_s": []}',
        '{"kind": "cg-allreduce"}',
        '{"kind": "cg-missing", "what": 1, "reason": ""}',
        '{"kind": "measurement"}',
        "{",
    ],
)
def test_a_line_that_is_no_record_is_named_once_and_left_out(line, haloscope, tmp_path):
    write(tmp_path / "r.jsonl", *skipped_study("davis2017", sizes=(8, 10, 12)))
    write(tmp_path / "r-cg.jsonl", f"{line}\n", solve())
    result = haloscope("study", "davis2017", "--from", "r.jsonl")
    assert result.code == 3  # of the skipped runs
    [message] = [line for line in result.err.splitlines() if "r-cg.jsonl, line" in line]
    assert message.startswith("haloscope: r-cg.jsonl, line 1: not ")
    assert "### Conjugate gradients: time of an iteration" in result.out


def test_calls_and_solves_that_do_not_fit_are_refused():
    fewer = solve()
    fewer["functions"]["VecNorm"]["allreduce"]["calls"] = 1
    assert "functions/VecNorm: 1 calls in 2 solves" in records.fault_of(fewer, records.CG)


def test_tables_leave_out_what_was_not_logged():
    record = solve()
    del record["functions"]["VecScatterEnd"]
    text = cg.tables([record])
    assert "sum of" in text and "MatMult, ms" not in text and "dot products" not in text


def test_records_of_conjugate_gradients_are_added_to_no_file_of_others(tmp_path):
    (tmp_path / "r-cg.jsonl").write_text('{"mine": 1}\n')
    with pytest.raises(outputs.UsageError, match="was not written by haloscope"):
        cg.run(tmp_path / "r-cg.jsonl", quick=True)
    outputs.refuse_foreign(KEPT, cg.SOLVES)
