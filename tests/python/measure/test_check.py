"""`haloscope check`: results that depend on the number of ranks are found, placed, and distinguished from other
faults.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys

import numpy as np
import pytest

from haloscope import patience
from haloscope.records import differences
from haloscope.records.differences import Tolerance, compare_arrays, find_cuts
from paths import RANK_PROGRAMS, ROOT
from programs import executable, has_ended

STENCIL = RANK_PROGRAMS / "stencil.py"
ALONE = '[ "$1" = --version ] && exit\nshift 2\nexec "$@"'  # an mpiexec that starts the program once


@pytest.fixture
def check(haloscope, tmp_path):
    """Return a function that runs `haloscope check WORDS...` with an mpiexec that starts one process."""
    alone = executable(tmp_path / "mpiexec", ALONE)
    return lambda *words: haloscope("check", "--mpiexec", alone, *words)


def shell(script: str) -> tuple[str, ...]:
    return "--", "sh", "-c", script


# ---- programs with MPI -----------------------------------------------------------------------------------------------


def test_a_right_stencil_is_equal(haloscope):
    result = haloscope("check", "-n", "1,3", "--file", "u.npy", "--printed", "--", sys.executable, STENCIL, 3, "right")
    assert result.code == 0, result.out + result.err
    assert "Equal on 1 and 3 ranks." in result.out


def test_a_wrong_halo_is_found_on_the_ranks_and_beside_the_cut_where_it_is_wrong_as_the_page_shows(
    haloscope, monkeypatch
):
    page = (ROOT / "docs" / "use" / "check.md").read_text()
    [command] = re.findall(r"^\$ haloscope (check .*stencil.*)$", page, re.MULTILINE)
    monkeypatch.chdir(ROOT)
    result = haloscope(*shlex.split(command.replace("python ", f"{sys.executable} ")))
    assert result.code == 1
    explanation = result.out.split("\n\n", 1)[1]  # the table has times
    assert "where even blocks of 3 ranks meet in x" in explanation and explanation in page
    assert "| differs: u.npy: 12 of 128 values |" in result.out


def test_programs_that_know_nothing_of_each_other_are_noticed(haloscope):
    result = haloscope("check", "-n", "1,2", *shell("echo 3; echo 4"))
    assert result.code == 1
    assert "Every line was printed once per rank" in result.out and "with --mpiexec" in result.out


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_program_that_hangs_is_ended_with_all_that_it_started(haloscope, check, tmp_path, ranks):
    apart = "setsid" if ranks == 1 else ""  # an mpiexec would wait for it
    script = f"sleep 77 & near=$!; {apart} sleep 77 & echo $near $! $$ >> {tmp_path}/pids; wait"
    words = ("-n", "1,2", "--timeout", 0.2, *shell(script))
    result = check(*words) if ranks == 1 else haloscope("check", *words)
    assert result.code == 1
    assert "2 ranks: not done after 0.2 s, so it was ended" in result.out
    started = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    left = [pid for pid in started if not has_ended(pid, 5)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left and len(started) == 3 * (2 if ranks == 1 else 3)


def test_a_wait_that_reaches_its_limit_is_not_said_to_go_on(monkeypatch, capfd):
    monkeypatch.setenv("HALOSCOPE_PATIENCE", "0.1")
    with subprocess.Popen(["sleep", "60"]) as process:
        assert not patience.ended(process, "sleep", 0.1)
        process.kill()
    assert capfd.readouterr().err == ""


def test_a_program_that_takes_long_is_reported_and_waited_for(check, monkeypatch, tmp_path):
    monkeypatch.setenv("HALOSCOPE_PATIENCE", "0.05")
    report = patience.Wait.report

    def note(wait, late, remedy):
        report(wait, late, remedy)
        (tmp_path / f"{late.split()[2]}-{len(list(tmp_path.glob(late.split()[2] + '-*')))}").touch()

    monkeypatch.setattr(patience.Wait, "report", note)
    result = check("-n", "1,2", *shell(f"echo 1; until [ -e {tmp_path}/{{ranks}}-1 ]; do sleep 0.01; done"))
    assert result.code == 0, result.err
    assert "Equal on 1 and 2 ranks." in result.out
    for ranks in ("1 rank", "2 ranks"):
        rests = re.findall(rf"^haloscope: sh on {ranks} has not ended after \d+ s; (.*)$", result.err, re.MULTILINE)
        assert len(rests) >= 2
        assert set(rests) == {"the wait goes on; --timeout ends runs that take longer"}


def test_no_run_of_a_users_program_is_ended_by_default(check, monkeypatch):
    limits = []
    monkeypatch.setattr(
        patience, "ended", lambda process, name, limit_s, remedy: limits.append(limit_s) or not process.wait()
    )
    assert check("-n", "1,2", *shell("echo 1")).code == 0
    assert limits == [math.inf, math.inf]


# ---- what is printed -------------------------------------------------------------------------------------------------


def test_the_first_number_of_ranks_that_differs_is_named_with_line_and_values(check):
    result = check(*shell("echo step 7; [ {ranks} -lt 3 ] && echo r = 0.25 1 || echo r = 0.5 {ranks}"))
    assert result.code == 1
    verdicts = re.findall(r"^\| +(\d) \| +[\d.]+ \| (.*?) +\|", result.out, re.MULTILINE)
    assert verdicts == [("1", "base"), ("2", "equal"), *((n, "differs: standard output: 2 of 3 values") for n in "346")]
    assert "The first split that differs: 3 ranks" in result.out
    assert "the first at line 2, number 1: 0.25 on 1 rank, 0.5 on 3 ranks" in result.out
    assert "Largest difference: 0.667 relative, 2 absolute." in result.out


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 1),
        (("--relative", "9e-4"), 1),
        (("--relative", "1e-3"), 0),
        (("--absolute", "0.9"), 1),
        (("--absolute", "1"), 0),
    ],
)
def test_numbers_within_a_tolerance_are_equal(check, options, code):
    assert check("-n", "1,2", *options, *shell("echo 100{ranks}D0 nan -inf 1.50s")).code == code


def test_rounding_is_told_from_wrong_halos(check):
    result = check("-n", "1,2", *shell("echo 0.300000000000000{ranks}"))
    assert result.code == 1 and "--relative 1e-10 ignores them" in result.out
    assert "set such" not in check("-n", "1,2", *shell("echo 0.300{ranks}")).out


def test_texts_around_numbers_must_match_unless_numbers_alone_are_compared(check):
    words = shell("echo on {ranks}x ranks; echo '  sum   2'; [ {ranks} = 2 ] && echo bye; true")
    assert "standard output: 1 of 2 values" in check("-n", "1,3", *words).out
    result = check("-n", "1,2", "--ignore", "ranks", *words)
    assert result.code == 1 and "line 3, 'bye', is on this number of ranks only" in result.out
    assert check("-n", "1,2", "--ignore", "ranks", "--numbers-only", *words).code == 0
    result = check("-n", "1,2", "--numbers-only", *shell("seq {ranks}"))
    assert "standard output: 2 numbers, not 1" in result.out


def test_a_program_that_gives_something_else_each_time_is_not_blamed_on_ranks(check):
    result = check("-n", "1,2", *shell("date +%s%N"))
    assert result.code == 1 and "A second run on 1 rank differs from the first as well" in result.out
    assert "A second run" not in check("-n", "1,2", *shell("echo {ranks}")).out


def test_placeholders_stand_for_ranks_grid_and_folder(check, tmp_path):
    words = "echo 1 >> u; echo {grid} {px} {py} {pz} {ranks} '{here}' {other} > {here}/said-{ranks}"
    assert check("-n", "1,6", "--dims", 3, "--process-grid", "prime-factors", "--file", "u", *shell(words)).code == 0
    assert (tmp_path / "said-6").read_text() == f"1x2x3 1 2 3 6 {tmp_path} {{other}}\n"


def test_runs_see_the_environment_their_inputs_and_a_fresh_folder(check, tmp_path, monkeypatch):
    monkeypatch.setenv("OF_MINE", "5")
    (tmp_path / "in.nml").write_text("6\n")
    words = shell("[ -e seen ] && exit 1; echo 1 > seen; cat in.nml; echo 7 >> in.nml; echo $OF_MINE")
    assert check("--input", "in.nml", *words).code == 0
    assert (tmp_path / "in.nml").read_text() == "6\n"
    result = check("-n", "1,2", "--keep", "kept", "--", "cat", "in.nml")
    assert result.code == 1 and "add --input in.nml, or write {here}/in.nml" in result.out
    assert (tmp_path / "kept" / "2-ranks").is_dir() and "No such file" in (
        tmp_path / "kept" / "2-ranks.err"
    ).read_text()


# ---- files -----------------------------------------------------------------------------------------------------------


def copying(name: str) -> tuple[str, ...]:
    return "--", "cp", f"{{here}}/{{ranks}}-{name}", name


def test_differences_of_raw_files_are_placed_by_their_shape(check):
    field = np.arange(24.0).reshape(4, 6)  # x = 0..5, y = 0..3
    field.tofile("1-u.raw")
    field[2, :5] += 1
    field.tofile("4-u.raw")
    result = check("-n", "1,4", "--file", "u.raw", "--type", "f8", "--shape", "6x4", *copying("u.raw"))
    assert result.code == 1 and "u.raw: 5 of 24 values differ, the first at [2, 0] (x = 0, y = 2): 12.0" in result.out
    assert (
        "All differences lie on y = 2; 83.3 % of the points there differ. The largest lie next to y = 2, "
        "where even blocks of 2 ranks" in result.out
    )
    result = check("-n", "1,4", "--file", "u.raw", "--type", "f8", *copying("u.raw"))
    assert "the first at [12]" in result.out


def test_the_cut_is_found_when_the_base_is_the_run_that_is_wrong(check):
    field = np.ones((4, 32))
    np.save("1-u.npy", field)
    field[:, 10] = 2
    np.save("3-u.npy", field)
    words = ("-n", "3,1", "--file", "u.npy", *copying("u.npy"))
    assert "next to x = 11, where even blocks of 3 ranks meet in x" in check(*words).out
    result = check("--json", *words)
    found = json.loads(result.out)
    assert result.code == 1 and (found["base"], found["first"], found["passed"]) == (3, 1, False)
    [difference] = found["runs"][1]["differences"]
    assert difference["planes"][0] == {"axis": "x", "extent": 32, "runs": [[10, 10]], "peaks": [10], "share": 1.0}


def test_a_file_that_is_missing_or_other_on_some_ranks_is_a_difference(check):
    result = check("-n", "1,2,3", "--file", "*.csv", *shell("echo 1 > a.csv; [ {ranks} = 2 ] && mv a.csv b.csv; true"))
    assert result.code == 1
    assert (
        "differs: a.csv: not written and 1 more" in result.out
        and "b.csv: not written on the first number" in result.out
    )
    np.zeros(4).tofile("1-u")
    np.zeros(3).tofile("2-u")
    result = check("-n", "1,2", "--file", "u", "--type", "f8", *copying("u"))
    assert "u: float64 of shape (3,), not float64 of shape (4,)" in result.out
    result = check("-n", "1,2", "--file", "u", "--type", "f8", "--shape", "2x2", *copying("u"))
    assert result.code == 1 and "u: cannot be read" in result.out and "with --type f8 and --shape 2x2" in result.out


def test_numbers_of_text_files_are_compared_beside_arrays(check):
    words = shell("echo x,y > t.csv; echo 1,{ranks} >> t.csv; printf 12345678 > u.bin")
    result = check("-n", "1,2", "--file", "*.*", "--type", "i8", *words)
    assert (
        result.code == 1
        and "t.csv: 1 of 2 values differ, the first at line 2, number 2: 1 on 1 rank, 2 on 2" in result.out
    )
    assert check("-n", "1,2", "--file", "*.*", "--type", "i8", "--absolute", 1, *words).code == 0


def test_arrays_are_equal_bit_by_bit_but_for_nan():
    exact = Tolerance()
    one = np.array([0.0, np.nan, np.inf, 1.0])
    assert compare_arrays("u", one, one.copy(), exact) is None
    assert compare_arrays("u", one, np.array([-0.0, np.nan, np.inf, 1.0]), exact).what == "1 of 4 values"
    assert compare_arrays("u", one, np.array([-0.0, np.nan, np.inf, 1.0]), Tolerance(absolute=1e-300)) is None
    found = compare_arrays("u", one, np.array([0.0, 2.0, 3.0, 1.0]), Tolerance(relative=0.5))
    assert found.what == "2 of 4 values" and found.relative == np.inf
    assert compare_arrays("u", one + 1j, one + 2j, exact).what == "4 of 4 values"
    assert compare_arrays("u", np.float32(one), one, exact).what == "float64 of shape (4,), not float32 of shape (4,)"


def test_x_is_the_contiguous_axis_in_both_orders():
    zero, one = np.zeros((4, 6)), np.zeros((4, 6))
    one[1, 5] = 1
    assert compare_arrays("u", zero, one, Tolerance()).first == "[1, 5] (x = 5, y = 1)"
    assert compare_arrays("u", *map(np.asfortranarray, (zero, one)), Tolerance()).first == "[1, 5] (x = 1, y = 5)"
    several = np.zeros((2, 2, 2, 2))
    assert compare_arrays("u", several, several + 1, Tolerance()).planes[3].axis == "axis 3"


@pytest.mark.parametrize(
    ("columns", "ranks", "expected"),
    [
        ([31, 32], 2, (2, (32,))),
        ([32], 6, (2, (32,))),
        ([21, 22, 42], 6, (3, (22, 43))),  # 64 cells on 3 ranks: 22 + 21 + 21
        ([0, 22, 63], 3, (3, (22,))),  # and where a periodic grid wraps around
        ([0, 63], 2, (0, ())),
        ([30], 2, (0, ())),
        ([32], 3, (0, ())),
        (range(64), 2, (0, ())),
    ],
)
def test_cuts_are_those_of_even_blocks_of_a_possible_process_grid(columns, ranks, expected):
    other = np.zeros((3, 64))
    other[1, columns] = 1
    found = compare_arrays("u", np.zeros((3, 64)), other, Tolerance())
    assert find_cuts(found.planes[0], ranks) == expected


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_run_that_fails_is_shown_and_the_others_are_compared(check):
    result = check(
        "-n",
        "1,2,3,4",
        *shell("echo 5; [ {ranks} = 2 ] && echo no luck >&2 && exit 7; [ {ranks} = 4 ] && echo 5; true"),
    )
    assert result.code == 1
    assert "2 ranks: failed, exit code 7. The last lines:\n\n    no luck\n" in result.out
    assert "The first split that differs: 4 ranks, compared with 1 rank." in result.out


def test_the_first_run_that_ends_well_is_the_base(check):
    result = check("-n", "1,2,3", *shell("[ {ranks} = 1 ] && exit 1; echo 5"))
    assert (
        result.code == 1
        and re.search(r"\| +2 \| +[\d.]+ \| base ", result.out)
        and "Equal on 2 and 3 ranks." in result.out
    )
    result = check("-n", "1,2", "--", "false")
    assert result.code == 1 and "Nothing was compared" in result.out and "it printed nothing" in result.out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "Missing argument"),
        (("--", "./nope"), 2, "cannot find the program './nope'"),
        (("--", "mpirun", "-n", "2", "./app"), 2, "'mpirun' starts ranks, and so does this command"),
        (("-n", "2", "--", "true"), 2, "is one number of ranks; give two or more"),
        (("-n", "0,1", "--", "true"), 2, "--ranks 0 is not possible"),
        (("--", "true"), 2, "printed no number that could be compared"),
        (("--ignore", "[", "--", "true"), 2, "not a regular expression"),
        (("--file", "u.npy", *shell("echo 1 > v.txt")), 2, "wrote no file 'u.npy' into its working folder, but v.txt"),
        (("--file", "u", *shell("printf '\\0' > u")), 2, "u is not text; specify its content, as --type f8"),
        (("--file", "u.npy", *shell("echo 1 > u.npy")), 2, "u.npy cannot be read as .npy"),
        (("--file", "u", *shell("echo a > u")), 2, "u on 1 rank holds no number"),
        (("--file", "/u.npy", "--", "true"), 2, "not a pattern below the working folder"),
        (("--file", "**u", "--", "true"), 2, "not a pattern below the working folder"),
        (("--file", "", "--", "true"), 2, "not a pattern below the working folder"),
        (("--file", "u.nc", "--", "true"), 3, "HDF5 and NetCDF files are not read"),
        (("--file", "*", *shell("echo 1 > u.h5")), 3, "HDF5 and NetCDF files are not read"),
        (("--type", "f8", "--", "true"), 2, "--type goes with --file"),
        (("--file", "u", "--shape", "4x4", "--", "true"), 2, "as --type f8"),
        (("--file", "u", "--type", "f8", "--shape", "0x4", "--", "true"), 2, "not one shape"),
        (("--input", "nope", "--", "true"), 2, "--input nope does not exist"),
        (("--input", ".", "--keep", "kept", "--", "true"), 2, "would be copied into itself"),
        (("-n", "1,100000", "--", "true"), 2, "more than the 1024"),
        (("--mpiexec", "./nope", "--", "true"), 3, "--mpiexec './nope' cannot be executed"),
        (("--keep", ".", "--", "true"), 2, "not an empty folder"),
        (("--timeout", "-1", "--", "true"), 2, "--timeout"),
        (("--process-grid", "2x3", "--", "echo", "{grid}"), 2, "2x3"),
    ],
)
def test_what_cannot_be_checked_is_refused_with_a_remedy(check, words, code, message):
    result = check(*words)
    assert result.code == code and message in result.err, result.err
    assert "Traceback" not in result.err + result.out


def test_inputs_count_as_written_where_the_program_has_written_them(check, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("u0.npy", np.zeros(3))
    words = ("-n", "1,2", "--file", "u*.npy", "--input", "u0.npy")
    result = check(*words, "--", "true")
    assert result.code == 2 and "wrote no file 'u*.npy' into its working folder, but none" in result.err
    assert check(*words, *shell("cat u0.npy > u.npy; cat u.npy > u0.npy")).code == 0
    assert check(*words, *shell("touch u0.npy")).code == 0


def test_raw_files_hold_whole_numbers(check):
    result = check("-n", "1,2", "--file", "u.raw", "--type", "f8", *shell("printf 12345678abcd > u.raw"))
    assert result.code == 2 and "u.raw cannot be read with --type f8" in result.err and "4 are left" in result.err
    half = shell("printf 12345678 > u.raw; [ {ranks} = 1 ] || printf 90 >> u.raw")
    result = check("-n", "1,2", "--file", "u.raw", "--type", "f8", *half)
    assert result.code == 1 and "2 are left" in result.out


NPY_HEADER = b"\x93NUMPY\x01\x00v\x00"  # version 1, 118 bytes of header


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"PK\x03\x04 as a file of several arrays begins", "does not begin as such a file"),
        (b"\x80\x04 as pickled objects begin", "does not begin as such a file"),
        (NPY_HEADER + b"{'descr': '<f8', 'fortran_order': False, 'shape': (2,".ljust(118), "header is damaged"),
        (
            NPY_HEADER + b"{'descr': '<f8', 'fortran_order': False, 'shape': (2L,), }".ljust(118),
            "cannot be read as .npy",
        ),
        (NPY_HEADER + (b"(" * 117).ljust(118), "header is damaged"),
    ],
    ids=["zip", "pickle", "open bracket", "of Python 2, without data", "brackets"],
)
def test_damaged_arrays_are_refused_in_words(data, why, tmp_path, check, recwarn):
    (tmp_path / "given").write_bytes(data)
    result = check("-n", "1,2", "--file", "u.npy", *shell(f"cat {tmp_path}/given > u.npy"))
    assert result.code == 2
    assert "u.npy cannot be read as .npy" in result.err and why in result.err, result.err
    assert not recwarn.list


def test_files_of_records_are_refused(tmp_path):
    np.save(tmp_path / "u.npy", np.zeros(3, [("a", "f8")]))
    with pytest.raises(differences.UsageError, match="not numbers"):
        differences.check_base(differences.Rules(printed=False, files=("*",)), tmp_path, "", "1 rank")
