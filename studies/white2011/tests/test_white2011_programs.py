"""The nine self-contained programs: the same bits on any number of tasks and threads, and the exact solution."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from haloscope.measure import devices
from haloscope_studies.white2011 import code_size
from haloscope_studies.white2011.versions import VERSIONS
from long_run import or_long
from paths import ROOT
from programs import TOOLS, ended, run

PROGRAMS = ROOT / "studies" / "white2011" / "programs"
IMITATION = Path(__file__).parent / "imitation"
COMMON = ("-std=c++17", "-O2")
HOST = ("-fopenmp", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror")
GENERAL = (1, 0.5, 0.25, 0.8)  # velocity and nu: no dimension moves by whole points
SHIFT = (1, 1, 1, 1)
# Cells that no rank count of the tests divides, and more than one thread block of 32 x 8 with its ring covers.
CELLS, STEPS = 33, 3


@dataclass(frozen=True)
class Result:
    """The line that a program prints."""

    largest_error: float
    l2_error: float
    checksum: str


def result_of(program: Path, *arguments, ranks: int = 1, threads: int = 1, streams: str = "early") -> Result:
    """Run a program on some tasks."""
    environment = os.environ | {"PATH": TOOLS, "OMP_NUM_THREADS": str(threads), "IMITATED_STREAMS": streams}
    words = [program] if program.stem in "ae" else ["mpiexec", "-n", ranks, program]
    line = run(*words, *arguments, env=environment)
    match = re.search(r"error (\S+) \(max\) (\S+) \(L2\), checksum ([0-9a-f]{16})$", line.strip())
    assert match, line
    return Result(float(match[1]), float(match[2]), match[3])


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> dict[str, Path]:
    """All programs by letter, with the versions for a GPU built for the imitation."""
    folder = tmp_path_factory.mktemp("programs")
    for source in sorted(PROGRAMS.iterdir()):
        text = re.sub(r"(\w+)<<<(.*?)>>>\((.*?)\);", r"imitate([=] { \1(\3); }, \2);", source.read_text())
        file = folder / f"{source.stem}.cpp"
        file.write_text(text)
        run("mpicxx", *COMMON, *HOST, f"-I{IMITATION}", file, "-o", folder / source.stem)
    return {source.stem.upper(): folder / source.stem for source in PROGRAMS.iterdir()}


@pytest.fixture(scope="module")
def expected(programs) -> Result:
    """The result of version A with one thread."""
    return result_of(programs["A"], CELLS, STEPS, *GENERAL)


def test_there_is_a_program_for_each_version_and_it_needs_no_other_file(programs):
    assert programs.keys() == VERSIONS.keys()
    assert not [source for source in PROGRAMS.iterdir() if '#include "' in source.read_text()]


@pytest.mark.ids("W10", "W11", "W12", "W13")
def test_all_versions_without_a_gpu_have_the_same_bits(programs, expected):
    assert result_of(programs["A"], CELLS, STEPS, *GENERAL, threads=3).checksum == expected.checksum
    for letter in "BCD":
        for ranks, threads in ((1, 1), (1, 3), (2, 2), (3, 1), (4, 2), (12, 1)):
            found = result_of(programs[letter], CELLS, STEPS, *GENERAL, ranks=ranks, threads=threads)
            assert found.checksum == expected.checksum, (letter, ranks, threads)


def test_the_result_is_the_exact_gaussian_where_each_step_moves_by_whole_points(programs):
    """33 points and 40 steps: the wave stands elsewhere than at the start."""
    for letter, ranks in (("A", 1), ("B", 1), ("B", 3), ("C", 2), ("D", 2), ("E", 1), ("F", 2), ("I", 1)):
        found = result_of(programs[letter], CELLS, 40 if letter < "E" else 2, *SHIFT, ranks=ranks, threads=2)
        assert found.largest_error < 1e-13 and found.l2_error < 1e-13, letter
    still = result_of(programs["A"], CELLS, 40, *GENERAL)
    assert still.largest_error > 1e-3  # the error is not small by itself


def test_blocks_of_one_or_two_points_are_swept_once(programs):
    want = result_of(programs["A"], 3, 2, *GENERAL)
    for letter in "BCDFG":
        found = result_of(programs[letter], 3, 2, *GENERAL, ranks=8)
        assert found.checksum == want.checksum, letter


@pytest.mark.ids("W15", "W17", "W18", "W19")
@pytest.mark.parametrize("streams", or_long(["early"], ["late"]))
def test_versions_with_a_gpu_have_the_same_bits_on_an_imitated_one(programs, expected, streams):
    """Early: work runs when it is enqueued; late: when its stream is synchronised."""
    assert result_of(programs["E"], CELLS, STEPS, *GENERAL).checksum == expected.checksum
    for letter in "FGHI":
        for ranks in (1, 3) if streams == "early" else (2,):
            found = result_of(programs[letter], CELLS, STEPS, *GENERAL, ranks=ranks, threads=2, streams=streams)
            assert found.checksum == expected.checksum, (letter, ranks)


@pytest.mark.ids("W14", "W15")
@pytest.mark.parametrize(
    ("letter", "launches", "copies"), [("E", 1, 0), ("F", 4, 1), ("G", 4, 1), ("H", 4, 1), ("I", 4, 1)]
)
def test_a_step_has_few_launches_and_copies(programs, letter, launches, copies):
    """One kernel of the interior and one of each pair of faces; the planes of all faces are one copy. Before and after
    the steps, the whole block is copied."""
    steps = 5
    environment = os.environ | {"PATH": TOOLS, "IMITATED_CALLS": "1"}
    words = [programs[letter]] if letter == "E" else ["mpiexec", "-n", 1, programs[letter]]
    done = ended(*words, 8, steps, env=environment)
    copied = copies * steps + 1
    assert done.stderr.strip() == f"launches {launches * steps}, to device {copied}, to host {copied}"


@pytest.mark.parametrize("letter", ["H", "I"])
def test_walls_of_any_thickness_give_the_same_bits(programs, expected, letter):
    for walls, ranks in ((2, 1), (3, 2)):
        found = result_of(programs[letter], CELLS, STEPS, *GENERAL, walls, ranks=ranks, streams="late")
        assert found.checksum == expected.checksum, (walls, ranks)
    environment = os.environ | {"PATH": TOOLS}
    refused = ended("mpiexec", "-n", 1, programs[letter], 12, 1, *GENERAL, 6, env=environment)
    assert refused.returncode != 0 and "walls of 6 layers leave no block for the GPU" in refused.stderr


CALLS = """
#include <mpi.h>
#include <cstdio>
int MPI_Barrier(MPI_Comm comm) { return std::fprintf(stderr, "barrier "), PMPI_Barrier(comm); }
double MPI_Wtime() { return std::fprintf(stderr, "clock "), PMPI_Wtime(); }
int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  return std::fprintf(stderr, "send "), PMPI_Isend(data, count, type, to, tag, comm, request);
}
"""


@pytest.mark.ids("W11", "W15")
@pytest.mark.parametrize("letter", "BFI")
def test_barriers_precede_both_readings_of_the_clock_and_a_step_sends_six_messages(programs, tmp_path, letter):
    """One task, two steps of six messages between the readings."""
    (tmp_path / "calls.cpp").write_text(CALLS)
    source = programs[letter].with_suffix(".cpp")
    run("mpicxx", *COMMON, *HOST, f"-I{IMITATION}", source, tmp_path / "calls.cpp", "-o", tmp_path / "traced")
    done = ended("mpiexec", "-n", 1, tmp_path / "traced", 8, 2)
    assert done.stderr.split() == ["barrier", "clock", *["send"] * 12, "barrier", "clock"]


def nvcc_of(source: Path, program: Path, *options: str) -> None:
    """Compile a program for a GPU; skips without nvcc."""
    if shutil.which("nvcc", path=TOOLS) is None:
        pytest.skip("needs nvcc: install the CUDA toolkit, 12 or newer")
    host = ("-ccbin", "mpicxx", "-Xcompiler", "-fopenmp,-ffp-contract=off,-Wall")
    run("nvcc", *COMMON, "--fmad=false", "-Werror", "all-warnings", *host, *options, source, "-o", program)


@pytest.mark.parametrize("letter", "efghi")
def test_the_versions_with_a_gpu_compile(tmp_path, letter):
    nvcc_of(PROGRAMS / f"{letter}.cu", tmp_path / "object", "-arch=sm_80", "-c")


@pytest.mark.card
@pytest.mark.parametrize("letter", "efghi")
def test_versions_with_a_gpu_have_the_same_bits_on_a_gpu(tmp_path, expected, letter):
    if devices.card() != "cuda":
        pytest.skip("needs an NVIDIA GPU")
    nvcc_of(PROGRAMS / f"{letter}.cu", tmp_path / letter, "-arch=native")
    for ranks in (1,) if letter == "e" else (1, 2):
        found = result_of(tmp_path / letter, CELLS, STEPS, *GENERAL, ranks=ranks, threads=2)
        assert found.checksum == expected.checksum


@pytest.mark.ids("W25")
def test_lines_of_all_nine_programs_are_counted_and_compared_with_a():
    counts = code_size.counts()
    assert counts.keys() == VERSIONS.keys()
    assert counts == {
        letter: sum(bool(re.sub(r"//.*", "", line).strip()) for line in path.read_text().splitlines())
        for letter, path in {path.stem.upper(): path for path in PROGRAMS.iterdir()}.items()
    }
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in code_size.table().splitlines()[2:]]
    assert [(row[0][0], int(row[1])) for row in rows] == sorted(counts.items())
    assert all(float(row[2]) == pytest.approx(int(row[1]) / counts["A"], abs=0.005) for row in rows)
    stated = {row[0][0]: row[3] for row in rows}
    assert stated == {"A": "1.00 (215 lines)", "B": "1.57 or more", "C": "1.73", "D": "1.57 or more", "E": "1.06"} | {
        "F": "",
        "G": "",
        "H": "",
        "I": "4.00 (860 lines)",
    }
