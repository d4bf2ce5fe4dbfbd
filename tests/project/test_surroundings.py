"""Surroundings of others: no home folder, few variables, spaces in paths, few cores, a decimal comma, a larger CMake
project.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from haloscope.measure import launch
from paths import CONSUMER, RANK_PROGRAMS, ROOT
from programs import ended, run
from test_exchange import on_ranks
from toy import TOY

HALOSCOPE = (sys.executable, "-m", "haloscope.cli")
LINE = "run laplace2d --cells 32x32 --ranks 2 --strategy ordered/p2p --steps 4 --launches 1 --output r.jsonl"
RUN = LINE.split()
RIGHT = ["rank 0: right", "rank 1: right"]


def on_two_ranks(program: Path, **more) -> list[str]:
    """Run a program on two ranks; return the lines that they print, in order."""
    words = launch.launcher_words(launch.mpiexec(), 2, 1)
    return sorted(run(*words, program, timeout=60, **more).splitlines())


# ---- a compute node or a container -----------------------------------------------------------------------------------

KEPT = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "HALOSCOPE_BUILD", "MPI4PY_LIBMPI")  # where programs and libraries are
UNKNOWN_USER = ("unshare", "-U", "--map-user=12345", "--map-group=12345")


def run_bare(folder: Path, *words, **variables: str) -> str:
    """Run a command in a folder with hardly a variable and no standard input; it must complain of nothing."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ} | {"LC_ALL": "C"} | variables
    done = ended(*words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, timeout=120)
    output = (done.stdout + done.stderr).lower()
    assert done.returncode == 0, output
    assert not [word for word in ("traceback", "permission denied", "read-only") if word in output], output
    return done.stdout


@pytest.mark.parametrize(
    "variables", [{"HOME": "/proc/none"}, pytest.param({}, marks=pytest.mark.long)], ids=["/proc/none", "unset"]
)
def test_command_line_and_exchange_need_neither_a_home_nor_other_variables(tmp_path, variables):
    assert "passed" in run_bare(tmp_path, *HALOSCOPE, *RUN, **variables)
    start = (*launch.launcher_words(launch.mpiexec(), 2, 1), sys.executable, "-m", "mpi4py")
    assert run_bare(tmp_path, *start, RANK_PROGRAMS / "random_exchanges.py", 3, 5, **variables).split() == ["right"]


@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")
def test_a_user_without_a_home_folder_measures(tmp_path):
    """Containers may run under a number that the system has no name and no home for."""
    if subprocess.run([*UNKNOWN_USER, sys.executable, "-c", ""], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not make user namespaces")
    assert "passed" in run_bare(tmp_path, *UNKNOWN_USER, *HALOSCOPE, *RUN)


@pytest.mark.long
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_without_standard_streams_leaves_its_record(tmp_path, closed):
    words = ["sh", "-c", f'exec "$@" {closed}', "sh", *HALOSCOPE, *RUN]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 1


# ---- spaces in paths -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spaced(prefix, tmp_path_factory) -> Path:
    """An installed tree below a folder whose name has spaces and letters beyond ASCII."""
    place = tmp_path_factory.mktemp("spaced") / "my données"
    shutil.copytree(prefix, place / "in st", symlinks=True)
    return place / "in st"


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="no pkg-config")
def test_pkg_config_has_spaces_in_the_paths_that_it_prints(spaced, tmp_path):
    (description,) = spaced.rglob("haloscope.pc")
    program = tmp_path / "pc app"
    command = 'eval "mpicc -std=c99 \\"\\$1\\" $(pkg-config --cflags --libs haloscope) -o \\"\\$2\\""'
    run("env", f"PKG_CONFIG_PATH={description.parent}", "sh", "-c", command, "sh", CONSUMER / "exchange.c", program)
    assert on_two_ranks(program) == RIGHT


@pytest.mark.long
def test_cmake_finds_and_builds_in_folders_with_spaces(spaced, tmp_path):
    source, binary = tmp_path / "s rc", tmp_path / "b ld"
    shutil.copytree(CONSUMER / "alone", source / "alone")
    shutil.copy(CONSUMER / "exchange.c", source)
    run("cmake", "-S", source / "alone", "-B", binary, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={spaced}", "-DLANGUAGE=C")
    run("cmake", "--build", binary)
    assert on_two_ranks(binary / "alone") == RIGHT


def test_the_command_line_works_with_spaces_in_all_paths(spaced, tmp_path):
    run("env", f"HALOSCOPE_BUILD={spaced}", *HALOSCOPE, *RUN[:-1], "r 1.jsonl", cwd=tmp_path, timeout=120)
    assert len((tmp_path / "r 1.jsonl").read_text().splitlines()) == 1
    shutil.copy(RANK_PROGRAMS / "stencil.py", tmp_path / "my app.py")
    words = ("check", "-n", "1,2", "--file", "u.npy", "--", sys.executable, tmp_path / "my app.py", "2", "right")
    run(*HALOSCOPE, *words, cwd=tmp_path, timeout=120)


# ---- few cores -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "rounds"), [(4, 15), *(pytest.param(ranks, 40, marks=pytest.mark.long) for ranks in (6, 8))]
)
def test_ranks_that_share_one_core_exchange_right_halos(ranks, rounds):
    """Launchers and ranks inherit the core of the process that starts them."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mine)})
    try:
        assert on_ranks(ranks, RANK_PROGRAMS / "random_exchanges.py", ranks, rounds) == ["right"]
    finally:
        os.sched_setaffinity(0, mine)


# ---- a decimal comma -------------------------------------------------------------------------------------------------

COMMA = """
#include <clocale>
#include <locale>
struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\\3"; }
};
static const bool set = [] {
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  std::locale::global(std::locale(std::locale(), new Comma));
  return true;
}();
"""


@pytest.fixture(scope="module")
def comma(tmp_path_factory) -> dict[str, str]:
    """Variables by which C and C++ write and read numbers as in German, in every program, before its first line."""
    place = tmp_path_factory.mktemp("comma")
    (place / "comma.cpp").write_text(COMMA)
    run("g++", "-std=c++20", "-shared", "-fPIC", place / "comma.cpp", "-o", place / "comma.so")
    made = ["localedef", "-i", "de_DE", "-f", "UTF-8", place / "de_DE.UTF-8"]
    if not shutil.which("localedef") or subprocess.run(made, capture_output=True, check=False).returncode != 0:
        pytest.skip("no sources of locales, or no localedef")
    variables = {"LD_PRELOAD": str(place / "comma.so"), "LOCPATH": str(place)}
    code = "import locale; print(locale.localeconv()['decimal_point'])"
    assert run("env", *settings(variables), sys.executable, "-c", code).strip() == ","
    return variables


def settings(variables: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in variables.items()]


def test_a_fraction_of_a_second_is_one_in_a_locale_with_a_decimal_comma(comma):
    start = (*launch.launcher_words(launch.mpiexec(), 2, 1), sys.executable)
    words = [*start, RANK_PROGRAMS / "late.py", "ordered/p2p", "sleep"]
    done = ended(*words, env=os.environ | comma | {"HALOSCOPE_PATIENCE": "0.5"}, timeout=120)
    assert done.stdout.count("right") == 2, done.stderr
    assert "not a number" not in done.stderr
    assert "rank 1 has not answered in exchange 3 of heat" in done.stderr


def test_a_kept_choice_is_known_in_every_locale(comma, tmp_path, monkeypatch):
    monkeypatch.setenv("HALOSCOPE_CACHE", str(tmp_path / "cache"))
    assert on_ranks(2, RANK_PROGRAMS / "kept_choice.py", 1024) == ["new"]
    for name, value in comma.items():
        monkeypatch.setenv(name, value)
    assert on_ranks(2, RANK_PROGRAMS / "kept_choice.py", 1024) == ["known"]


@pytest.mark.long
def test_predictions_and_plans_are_the_same_in_every_locale(comma):
    for words in (
        ("predict", "laplace2d", "--cells", "2560", "--ranks", "4", "--depth", "1,2", "--profile", TOY, "--json"),
        ("plan", "laplace2d", "--cells", "2560", "--ranks", "4", "--json"),
    ):
        plain = run(*HALOSCOPE, *words)
        assert run("env", *settings(comma), *HALOSCOPE, *words) == plain


@pytest.mark.long
def test_a_run_is_verified_and_recorded_in_a_locale_with_a_decimal_comma(comma, tmp_path):
    run("env", *settings(comma), *HALOSCOPE, *RUN, cwd=tmp_path, timeout=120)
    record = json.loads((tmp_path / "r.jsonl").read_text())
    assert record["verification"]["status"] == "passed"


# ---- a larger CMake project ------------------------------------------------------------------------------------------

TARGETS = ("docs", "lint", "demo", "bench", "format", "check", "core", "c", "exchange", "plan", "toy", "setup")
HOST = """cmake_minimum_required(VERSION 3.25)
project(host LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 17)
set(BUILD_SHARED_LIBS ON)
enable_testing()
foreach(name {targets})
  add_custom_target(${{name}})
endforeach()
{added}
add_executable(solver {source})
target_link_libraries(solver PRIVATE haloscope::exchange)
foreach(name CMAKE_BUILD_TYPE CMAKE_CXX_STANDARD CMAKE_CXX_STANDARD_REQUIRED CMAKE_CXX_EXTENSIONS
             CMAKE_POSITION_INDEPENDENT_CODE
             CMAKE_CXX_FLAGS CMAKE_CXX_FLAGS_RELEASE CMAKE_MODULE_PATH CMAKE_UNITY_BUILD)
  message(STATUS "${{name}} is '${{${{name}}}}'")
endforeach()
get_property(options DIRECTORY PROPERTY COMPILE_OPTIONS)
message(STATUS "options are '${{options}}'")
"""
ADDED = {
    "add_subdirectory": f'add_subdirectory("{ROOT}" haloscope EXCLUDE_FROM_ALL)',
    "FetchContent": f"""include(FetchContent)
FetchContent_Declare(haloscope SOURCE_DIR "{ROOT}")
FetchContent_MakeAvailable(haloscope)""",
}


def configure(folder: Path, how: str) -> str:
    """Configure a project that includes this one by `how`; return CMake's output of the project's own
    settings.
    """
    folder.mkdir()
    text = HOST.format(targets=" ".join(TARGETS), added=ADDED.get(how, ""), source=CONSUMER / "exchange.c")
    (folder / "CMakeLists.txt").write_text(text if how else text.replace("target_link", "# target_link"))
    wrapper = launch.cmake_cache("MPI_CXX_COMPILER")
    output = run("cmake", "-S", folder, "-B", folder / "out", "-G", "Ninja", f"-DMPI_CXX_COMPILER={wrapper}")
    return "\n".join(line for line in output.splitlines() if " is '" in line or " are '" in line)


@pytest.mark.parametrize("how", ["add_subdirectory", pytest.param("FetchContent", marks=pytest.mark.long)])
def test_a_project_that_includes_this_one_keeps_its_settings_targets_and_tests(tmp_path, how):
    assert configure(tmp_path / "with", how) == configure(tmp_path / "without", "")
    out = tmp_path / "with" / "out"
    assert "Total Tests: 0" in run("ctest", "--test-dir", out, "-N")
    compilations = [line for line in run("ninja", "-C", out, "-t", "commands", "solver").splitlines() if " -c " in line]
    assert len(compilations) > 50
    assert all(re.search(r" -O[13] ", line) for line in compilations if "/src/" in line)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_project_that_includes_this_one_builds_and_runs(tmp_path):
    configure(tmp_path / "with", "add_subdirectory")
    run("cmake", "--build", tmp_path / "with" / "out", "--target", "solver")
    assert on_two_ranks(tmp_path / "with" / "out" / "solver") == RIGHT
