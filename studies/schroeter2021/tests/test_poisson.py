"""poisson2d through the command line: partdiff's six positions and report, presets, precision finder, slow blocks."""

from __future__ import annotations

import random
import re
import sys

import numpy as np
import pytest

from haloscope import bridge, records
from haloscope_studies.schroeter2021 import partdiff, precision

ONE = ("--launches", "1", "--repetitions", "1", "--warmup", "0")


def solve(haloscope, *words) -> dict:
    """The record of one run of poisson2d with these words."""
    result = haloscope("run", "poisson2d", *words, "--output", "out.jsonl")
    assert result.code == 0, result.err
    found = records.read("out.jsonl")
    assert not found.bad_lines
    return found.measurements[-1]


def excerpt(text: str) -> list[list[float]]:
    """The 9 x 9 numbers below `Matrix:`."""
    rows = text.split("Matrix:\n")[1].splitlines()[:9]
    assert all(re.fullmatch(r"( +-?\d+\.\d{4}){9}", row) for row in rows)
    return [[float(word) for word in row.split()] for row in rows]


# ---- the six positions -----------------------------------------------------------------------------------------------


@pytest.mark.ids("SA4")
def test_the_six_positions_are_read_as_partdiff_reads_them():
    assert partdiff.parse("1 1 512 1 2 5000") == partdiff.Arguments(1, "gauss-seidel", 512, 1, None, 5000)
    assert partdiff.parse("2 2 0 2 1 3.6e-3") == partdiff.Arguments(2, "jacobi", 0, 2, 3.6e-3, None)


@pytest.mark.ids("SA4")
@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("1 1 512 1 2", "5 positions"),
        ("0 1 512 1 2 5000", "threads '0'"),
        ("1025 1 512 1 2 5000", "threads '1025'"),
        ("1 3 512 1 2 5000", "method '3'"),
        ("1 1 -1 1 2 5000", "interlines '-1'"),
        ("1 1 100001 1 2 5000", "interlines '100001'"),
        ("1 1 512 3 2 5000", "function '3'"),
        ("1 1 512 1 0 5000", "termination '0'"),
        ("1 1 512 1 2 0", "iterations '0'"),
        ("1 1 512 1 2 200001", "iterations '200001'"),
        ("1 1 512 1 1 1", "precision '1'"),
        ("1 1 512 1 1 1e-21", "precision '1e-21'"),
        ("1 1 512 1 1 small", "precision 'small'"),
        ("one 1 512 1 2 5000", "threads 'one'"),
    ],
)
def test_a_wrong_position_gives_the_usage_and_code_2(haloscope, words, wrong):
    result = haloscope("run", "poisson2d", "--partdiff", words)
    assert result.code == 2
    assert wrong in result.err and "usage: --partdiff" in result.err


@pytest.mark.ids("SA4", "SA1")
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_report_shows_what_was_solved_and_every_interlines_plus_first_value(haloscope, ranks):
    result = haloscope("run", "poisson2d", "--partdiff", "1 2 10 1 2 100", "--ranks", ranks)
    assert result.code == 0, result.err
    for line in (
        "Method:               Jacobi",
        "Interlines:           10",
        "Number of iterations: 100",
        "Termination:          number of iterations",
        "Function:             f(x,y) = 0",
    ):
        assert line in result.out
    assert re.search(r"Computation time: +\d+\.\d+ s", result.out)
    assert re.search(r"Residual: +\d\.\d{6}e-\d\d", result.out)
    matrix = excerpt(result.out)
    assert [matrix[0][0], matrix[8][0], matrix[0][8], matrix[8][8]] == [1, 0, 0, 1]
    assert matrix[0] == [round(1 - j / 8, 4) for j in range(9)]
    assert [row[8] for row in matrix] == [round(i / 8, 4) for i in range(9)]
    assert matrix == [list(column) for column in zip(*matrix, strict=True)]  # symmetrical


@pytest.mark.ids("SA4", "SA5")
def test_partdiff_terminates_by_precision_and_writes_a_record(haloscope):
    result = haloscope("run", "poisson2d", "--partdiff", "1 2 10 1 1 1e-4", "--ranks", 2, "--output", "out.jsonl")
    assert result.code == 0, result.err
    assert "Number of iterations: 2570" in result.out and "Residual:             9.991622e-05" in result.out
    (record,) = records.read("out.jsonl").measurements
    assert record["app"]["termination"] == "precision" and record["outcome"]["enough"]
    assert record["outcome"]["steps"] == [2570]
    assert record["verification"]["status"] == "passed"


@pytest.mark.ids("SA1")
@pytest.mark.parametrize(
    ("interlines", "points"),
    [
        (512, 16851025),
        (1396, 124925329),
        (2794, 500014321),
        (3951, 999634689),
        (5588, 1999252369),
        (6844, 2998767121),
        (9679, 5997108481),
        (11855, 8996332801),
        (13689, 11994849441),
    ],
)
def test_the_matrix_has_the_published_number_of_entries(interlines, points):
    options = dict.fromkeys((*partdiff.OWN, "cells")) | {
        "interlines": str(interlines),
        "form": "jacobi",
        "given_set": (),
    }
    found = partdiff.translate("poisson2d", options, ["interlines"])
    assert (int(found["cells"]) + 2) ** 2 == points


# ---- methods, schemes, presets ---------------------------------------------------------------------------------------


@pytest.mark.ids("SB2")
def test_gauss_seidel_runs_as_a_pipeline_and_is_verified(haloscope):
    record = solve(haloscope, "--interlines", 10, "--form", "gauss-seidel", "--steps", 1000, *ONE)
    assert record["request"]["schedule"] == "pipeline"
    assert record["outcome"] == {"steps": [1000], "reduced": {"residual": [pytest.approx(2.832813e-4, rel=1e-6)]}}
    assert record["verification"] == record["verification"] | {"status": "passed", "against": "sequential loop"}


@pytest.mark.ids("SB4", "SD1", "SD2", "SD3")
@pytest.mark.parametrize("scheme", ["chain", "chain-pscw", "all-to-last", "accumulate"])
def test_every_scheme_stops_gauss_seidel_soon_after_the_sequential_program(haloscope, scheme):
    words = ("--interlines", 10, "--form", "gauss-seidel", "--precision", "1e-3", "--residual", scheme, *ONE)
    alone, pair = (solve(haloscope, *words, "--ranks", ranks) for ranks in (1, 2))
    assert pair["app"]["scheme"] == pair["request"]["set"]["residual"] == scheme
    assert alone["outcome"]["steps"][0] <= pair["outcome"]["steps"][0] <= alone["outcome"]["steps"][0] + 4


@pytest.mark.ids("SF4")
@pytest.mark.parametrize("preset", partdiff.PRESETS)
@pytest.mark.parametrize("method", ["jacobi", "gauss-seidel"])
def test_the_three_final_versions_are_presets(haloscope, preset, method):
    record = solve(haloscope, "--interlines", 3, "--form", method, "--preset", preset, "--precision", "5e-3", *ONE)
    scheme = {"jacobi": "allreduce"}.get(method, "chain-pscw" if preset == "rma" else "chain")
    assert record["app"]["scheme"] == scheme
    assert {"p2p": "p2p", "rma": "rma-pscw", "shared": "shared+rma"}[preset] in record["request"]["strategy"]
    assert record["verification"]["status"] == "passed" and record["outcome"]["enough"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--form", "gauss-seidel", "--schedule", "bulk"], "--schedule pipeline"),
        (["--form", "gauss-seidel", "--strategy", "ordered/rma-fence"], "serialise the pipeline"),
        (["--form", "gauss-seidel", "--strategy", "ordered/neighbor"], "serialise the pipeline"),
        (["--form", "gauss-seidel", "--depth", "2"], "--depth 1"),
        (["--form", "gauss-seidel", "--ranks", "4", "--process-grid", "2x2"], "--process-grid slabs"),
        (["--schedule", "pipeline"], "schedule 'pipeline' is for sweeps in place"),
        (["--ranks", "40"], "use fewer ranks"),
        (["--periodic", "xy"], "--periodic none"),
        (["--preset", "p2p", "--strategy", "ordered/p2p"], "drop --strategy"),
        (["--precision", "2"], "--precision 2"),
        (["--cells", "31"], "use one of them"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(haloscope, words, reason):
    result = haloscope("run", "poisson2d", "--interlines", 3, "--steps", 2, *words)
    assert result.code == 2
    assert reason in result.err


def test_precision_with_deep_halos_is_refused_with_the_reason(haloscope):
    result = haloscope("run", "poisson2d", "--interlines", 3, "--depth", 2, "--precision", "1e-3", *ONE)
    assert result.code == 2 and "reads 'residual' in each; use --depth 1" in result.err


def test_the_studys_flags_set_parameters_of_the_app(haloscope):
    words = ("--interlines", 3, "--form", "gauss-seidel", "--steps", 8, *ONE)
    by_flags = solve(haloscope, *words, "--function", 2, "--precision", "1e-9", "--residuum", "chain")  # its old name
    by_name = solve(haloscope, *words, "--set", "function=2", "--set", "precision=1e-9", "--set", "residual=chain")
    assert by_flags["request"]["set"] == {"function": 2, "precision": 1e-9, "residual": "chain"}
    for part in ("request", "outcome", "app"):
        assert by_flags[part] == by_name[part]


def test_words_of_poisson2d_are_refused_for_other_apps(haloscope):
    result = haloscope("run", "laplace2d", "--cells", 16, "--precision", "1e-3")
    assert result.code == 2 and "belongs to app poisson2d" in result.err


def test_a_precision_out_of_reach_is_said_and_recorded(haloscope):
    record = solve(haloscope, "--interlines", 1, "--precision", "1e-19", "--steps", 20, *ONE)
    assert not record["outcome"]["enough"] and record["outcome"]["steps"] == [20]
    assert any("did not hold within 20 steps" in warning for warning in record["warnings"])


# ---- precision finder ------------------------------------------------------------------------------------------------


@pytest.mark.ids("SG2")
@pytest.mark.parametrize(("method", "residual"), [("jacobi", "2.332824e-04"), ("gauss-seidel", "2.832813e-04")])
def test_the_precision_finder_prints_the_residual_of_a_sequential_iteration(haloscope, method, residual):
    result = haloscope("run", "poisson2d", "--find-precision", 1000, "--interlines", 10, "--form", method)
    assert result.code == 0, result.err
    assert f"residual of iteration 1000 is {residual}" in result.out
    assert precision.residuals(method, 10, 1000)[-1] == pytest.approx(float(residual), rel=1e-6)


@pytest.mark.long
@pytest.mark.ids("SA3", "SA5", "SG2")
@pytest.mark.parametrize(
    ("method", "residual", "target"), [("jacobi", 7.063698e-5, "7.0637e-5"), ("gauss-seidel", 7.075351e-5, "7.0754e-5")]
)
def test_the_published_problem_takes_5000_iterations(haloscope, method, residual, target):
    words = ("--interlines", 512, "--form", method, "--ftz", "on", *ONE)
    record = solve(haloscope, *words, "--precision", target, "--ranks", 1 if method == "gauss-seidel" else 2)
    assert record["outcome"]["steps"] == [5000]
    assert record["outcome"]["reduced"]["residual"] == [pytest.approx(residual, rel=6e-7)]


# ---- slow blocks of lines --------------------------------------------------------------------------------------------


def test_blocks_far_above_the_median_are_slow():
    assert partdiff.slow_blocks([1, 1.1, 0.9, 1]) == []
    assert partdiff.slow_blocks([1, 2, 1, 1]) == [1]


@pytest.mark.ids("SH2")
def test_a_slow_band_that_wanders_inwards_is_found_in_every_window():
    """As fast as in the study: of 16 blocks, the sixth from either border at iteration 2500, the eighth at 5000."""
    noise = random.Random(1)
    bands = [3 + 2 * (number + 1) // 25 for number in range(50)]
    rows = [[noise.uniform(0.95, 1.05) * (1.3 if min(b, 15 - b) == band else 1) for b in range(16)] for band in bands]
    slow = [partdiff.slow_blocks(row) for row in rows]
    assert slow == [[band, 15 - band] for band in bands] and (slow[24], slow[49]) == ([5, 10], [7, 8])
    numbers = [[0] * 16] * 24 + [[0, 0, 0, 0, 0, 60, 15, 15, 15, 15, 60, 0, 0, 0, 0, 0]]
    work = {"work_blocks": 16, "work_window": 100, "work_seconds": rows, "work_subnormal": numbers}
    lines = partdiff.slow_table({"app": work}).splitlines()[2:]
    assert len(lines) == 50
    assert re.search(r"\| 2401 \.\. .*\| 5 \(1\.\dx\), 10 \(1\.\dx\) .*\| 5 \(60\), 10 \(60\) ", lines[24])
    assert all(re.search(r"\| none +\|$", lines[number]) for number in (23, 25))


def front(interlines: int, iteration: int) -> list[int]:
    """Return the inner lines, from 0, whose numbers are subnormal in the middle column after an iteration of Jacobi.

    The middle column alone is computed: its left and right neighbours have a mean of its value, until the front of the
    side borders is there.
    """
    column = np.zeros(8 * interlines + 9)
    column[[0, -1]] = 0.5
    for _ in range(iteration):
        column[1:-1] = (column[:-2] + column[2:]) / 4 + column[1:-1] / 2
    return [int(line) for line in np.flatnonzero((column[1:-1] > 0) & (column[1:-1] < sys.float_info.min))]


def blocks_of(lines: list[int], blocks: int, interlines: int) -> set[int]:
    """Return the blocks that lines belong to, where ranks own even blocks of them."""
    side = 8 * interlines + 7
    slabs = bridge.Layout((side, side), (1, blocks), (False, False))
    boxes = [slabs.owned(rank) for rank in range(blocks)]
    return {rank for rank, box in enumerate(boxes) for line in lines if box.lo[1] <= line < box.hi[1]}


METERED = ("--process-grid", "slabs", "--verify", 0, *ONE)


@pytest.mark.ids("SH2")
def test_blocks_with_subnormal_numbers_are_where_the_front_of_the_solution_is(haloscope):
    words = ("--interlines", 256, "--steps", 600, "--work-blocks", 48, "--work-window", 50, "--ranks", 2, *METERED)
    numbers = solve(haloscope, *words)["app"]["work_subnormal"]
    assert len(numbers) == 12 and not any(map(any, numbers[:10]))  # the front is still normal or zero
    for window, blocks in ((10, {12, 35}), (11, {13, 34})):
        assert set(partdiff.subnormal_blocks(numbers[window])) == blocks
        assert blocks_of(front(256, 50 * (window + 1)), 48, 256) == blocks
    assert not any(map(any, solve(haloscope, *words, "--ftz", "on")["app"]["work_subnormal"]))


@pytest.mark.long
@pytest.mark.ids("SH2")
def test_the_slow_ranks_of_the_study_are_found(haloscope):
    """By their cause, subnormal numbers, at the iterations of the thesis; a CPU may compute with them at full speed."""
    words = ("--interlines", 512, "--steps", 5000, "--work-blocks", 16, "--work-window", 100, "--ranks", 2, *METERED)
    numbers = solve(haloscope, *words)["app"]["work_subnormal"]
    for iteration, ranks in ((2500, [5, 10]), (5000, [7, 8])):
        row = numbers[iteration // 100 - 1]
        assert partdiff.subnormal_blocks(row) == ranks
        assert blocks_of(front(512, iteration), 16, 512) == set(ranks)
        slowed = [1 + 0.3 * count / max(row) for count in row]  # seconds of a CPU that loses a time per such number
        assert partdiff.slow_blocks(slowed) == ranks
    assert not any(map(any, solve(haloscope, *words, "--ftz", "on")["app"]["work_subnormal"]))


@pytest.mark.ids("SH2", "SH3")
@pytest.mark.parametrize("ranks", [1, 2])
def test_work_is_recorded_by_block_and_window_and_flushing_to_zero_keeps_the_residual(haloscope, ranks):
    """After 530 iterations there are subnormal numbers. How slow they are is figure `subnormal`."""
    words = (
        "--interlines",
        140,
        "--steps",
        530,
        "--work-blocks",
        12,
        "--work-window",
        100,
        "--ranks",
        ranks,
        "--process-grid",
        "slabs",
        *ONE,
    )
    usual, flushed = (solve(haloscope, *words, "--ftz", state) for state in ("off", "on"))
    assert flushed["environment"]["ftz"] and not usual["environment"]["ftz"]
    assert flushed["outcome"] == usual["outcome"]
    for record in (usual, flushed):
        work, seconds = record["app"], record["app"]["work_seconds"]
        assert (work["work_blocks"], work["work_window"], len(seconds)) == (12, 100, 6)
        assert all(len(row) == 12 and min(row) >= 0 for row in seconds)
        of_block = [sum(column) for column in zip(*seconds, strict=True)]
        assert min(of_block) > 0  # whichever rank owns its lines
        assert len(work["work_subnormal"]) == 5  # of whole windows
        assert sum(of_block) <= ranks * record["time_s"]["repetitions"][0] * 1.01  # processor time within wall time
