"""The exchange of the Python package, on several ranks: right to the byte, and bad requests are refused."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

import haloscope
from haloscope import errors
from haloscope.bridge import build
from haloscope.measure import launch
from long_run import or_long
from paths import RANK_PROGRAMS, ROOT

ROUNDS = 80


def on_ranks(ranks: int, *words) -> list[str]:
    """Run a Python program on some ranks; return the lines that they print. An exception on one of them ends them
    all.
    """
    start = launch.launcher_words(launch.mpiexec(), ranks, 1)
    command = [*start, sys.executable, "-m", "mpi4py", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout.split()


@pytest.mark.parametrize("ranks", or_long([1, 3], [2, 4, 6]))
def test_random_arrays_get_right_halos_and_nothing_else_changes(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "random_exchanges.py", 10 + ranks, ROUNDS) == ["right"]


@pytest.mark.parametrize("ranks", or_long([1, 3], [2, 4, 6]))
def test_random_arrays_move_to_another_split_and_nothing_else_changes(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "random_redistributions.py", 40 + ranks, ROUNDS) == ["right"]


@pytest.mark.parametrize("ranks", or_long([1, 2], [3, 6]))
def test_files_of_arrays_are_right_on_other_ranks_and_in_numpy(ranks, tmp_path):
    assert on_ranks(ranks, RANK_PROGRAMS / "random_files.py", 50 + ranks, 20, tmp_path) == ["right"]


@pytest.mark.parametrize("ranks", or_long([1, 2], [3, 6]))
def test_ghost_points_beyond_edges_are_filled_by_side(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "filled_edges.py", 60 + ranks, 30) == ["right"]


@pytest.mark.parametrize("ranks", or_long([1, 3], [2, 4, 6]))
def test_points_beyond_a_fold_have_the_values_of_their_images(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "folded_grid.py", 70 + ranks, 15) == ["right"]


@pytest.mark.parametrize("ranks", or_long([1, 3], [2, 4, 6]))
def test_points_beyond_the_faces_of_a_cubed_sphere_have_the_values_of_the_next_face(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "cubed_spheres.py", 90 + ranks, 15) == ["right"]


@pytest.mark.parametrize("ranks", or_long([1, 2], [3]))
def test_impossible_redistributions_are_refused_on_all_ranks(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "bad_redistributions.py") == ["right"]


@pytest.mark.parametrize("ranks", or_long([1, 3], [2, 4, 5, 6]))
def test_accumulating_is_the_transpose_of_the_exchange_with_the_same_bits_by_every_strategy(ranks):
    rounds = {1: 20, 2: 12}.get(ranks, 5)
    assert on_ranks(ranks, RANK_PROGRAMS / "random_accumulations.py", 20 + ranks, rounds) == ["right"]


@pytest.mark.parametrize("ranks", or_long([1, 3], [2, 5]))
def test_sums_have_the_bits_of_one_rank(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "random_sums.py", 30 + ranks, 20) == ["right"]


@pytest.mark.parametrize("ranks", or_long([1, 2], [3]))
def test_dropped_exchanges_are_freed_by_all_ranks_together(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "dropped_exchanges.py") == ["right"]


@pytest.mark.parametrize("ranks", or_long([1, 2], [3]))
def test_handlers_at_exit_use_drop_and_free_the_exchanges_that_a_program_still_has(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "exchanges_at_exit.py") == ["later", "handlers", "earlier", "handlers"]


@pytest.mark.parametrize("ranks", or_long([1, 3, 4], [6]))
def test_ranks_take_places_beside_those_of_their_node(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "reordered_grids.py") == ["right"]


@pytest.mark.parametrize("ranks", or_long([1, 3], [2, 4, 6]))
def test_ranks_may_own_several_blocks_or_none(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "several_blocks.py") == ["right"]


@pytest.mark.parametrize("ranks", [1, 3])
def test_stale_halos_are_named_and_found_by_a_guarded_exchange(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "guarded_exchanges.py") == ["named"]


@pytest.mark.parametrize("ranks", or_long([1, 3], [2]))
def test_arrays_on_devices_get_right_halos_with_and_without_streams(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "device_exchanges.py") == ["right"]


@pytest.mark.parametrize("ranks", [1, 3])
def test_bad_requests_are_refused_on_all_ranks(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "bad_exchanges.py") == ["refused"]


@pytest.mark.parametrize("ranks", or_long([1, 3], [2]))
def test_what_one_rank_does_wrong_fails_on_all_whatever_is_raised_by_it(ranks):
    assert on_ranks(ranks, RANK_PROGRAMS / "wrong_on_one_rank.py") == ["refused"]


@pytest.mark.parametrize(
    "strategy",
    or_long(
        ["ordered/auto", "ordered/rma-fence:split"],
        [
            "direct/shared:packed",
            "ordered/p2p",
            "ordered/neighbor",
            "direct/rma-pscw",
            "direct/rma-lockall:per-message",
        ],
    ),
)
def test_an_exchange_that_finds_no_communicator_is_refused_or_does_without(strategy):
    assert set(on_ranks(2, RANK_PROGRAMS / "few_communicators.py", strategy)) <= {"right", "refused", "many"}


HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.skipif(
    not HUGE_PAGES.exists() or "[madvise]" not in HUGE_PAGES.read_text(), reason="no huge pages on request alone"
)
def test_arrays_move_to_huge_pages_unless_the_user_switches_it_off(monkeypatch):
    for value, moved in (("", True), ("1", True), ("0", False)):
        monkeypatch.setenv("HALOSCOPE_HUGE_PAGES", value)
        before, after = map(int, on_ranks(1, RANK_PROGRAMS / "moved_pages.py"))
        assert before == 0 and (after > 20) == moved


def test_another_value_of_the_switch_of_huge_pages_is_refused(monkeypatch):
    monkeypatch.setenv("HALOSCOPE_HUGE_PAGES", "no")
    with pytest.raises(AssertionError, match="HALOSCOPE_HUGE_PAGES is 'no'"):
        on_ranks(2, RANK_PROGRAMS / "moved_pages.py")


def test_calls_on_a_forbidden_thread_and_after_the_end_of_mpi_are_named():
    settings = ("-rc", "thread_level=funneled,finalize=False")
    assert on_ranks(2, *settings, RANK_PROGRAMS / "late_calls.py") == ["named"]


def test_a_later_program_knows_what_an_earlier_one_chose(tmp_path, monkeypatch):
    monkeypatch.setenv("HALOSCOPE_CACHE", str(tmp_path / "cache"))
    program = RANK_PROGRAMS / "kept_choice.py"
    assert on_ranks(2, program) == ["new"]
    [file] = (tmp_path / "cache").iterdir()
    first = file.read_text()
    assert on_ranks(2, program) == ["known"]
    if file.exists():  # else the second best was faster this time
        assert file.read_text() == first
    monkeypatch.setenv("HALOSCOPE_STRATEGY", "auto:fresh")
    assert on_ranks(2, program) == ["new"]
    assert list((tmp_path / "cache").iterdir()) == [file]


def test_examples_in_docstrings_hold():
    assert on_ranks(1, "-m", "doctest", ROOT / "python" / "haloscope" / "exchange.py") == []


def test_errors_of_the_package_are_found_without_their_module():
    assert haloscope.UsageError is errors.UsageError and haloscope.UnavailableError is errors.UnavailableError
    assert issubclass(haloscope.UsageError, haloscope.HaloscopeError)


@pytest.mark.parametrize("struct", ["grid", "grid_data", "field", "exchange", "part"])
def test_a_struct_of_any_header_is_initialised_within_its_size(struct):
    """Programs keep the size of their header; `_init` of a library with larger structs writes no more."""
    initialise = getattr(ctypes.CDLL(str(build.library(build.EXCHANGE_LIBRARY))), f"hs_{struct}_init_sized")

    def written(size: int) -> bytes:
        memory = ctypes.create_string_buffer(b"\xab" * 1024, 1024)
        initialise(memory, ctypes.c_uint64(size))
        assert memory.raw[size:] == b"\xab" * (1024 - size)
        return memory.raw[:size]

    largest = written(512)
    assert set(largest[8:]) > {0} or struct == "grid_data"  # some defaults differ from 0
    for size in range(8, 512, 8):
        assert written(size) == size.to_bytes(8, "little") + largest[8:size]
    assert written(7) == b"\xab" * 7
