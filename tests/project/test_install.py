"""An installed Haloscope is complete: another project finds it, builds against it and runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from haloscope.bridge import build
from long_run import LONG
from paths import CONSUMER, ROOT

HEAT = ROOT / "examples" / "heat"
TOOLS = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)])
PLANNED = f"6 messages, {8 * 2 * (32 * 32 + 34 * 32 + 34 * 34)} bytes"  # blocks of 32 cubed, a halo of one layer
ENVIRONMENT = {**os.environ, "PATH": TOOLS}


def run(*words, **more) -> str:
    """Run a command to its end; its output is the message when it fails."""
    command = [shutil.which(str(words[0]), path=TOOLS) or words[0], *words[1:]]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def consumer(prefix, tmp_path_factory) -> Path:
    """The build directory of the other project, which knows nothing but the prefix."""
    place = tmp_path_factory.mktemp("consumer")
    run("cmake", "-S", CONSUMER, "-B", place, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", place)
    return place


def test_another_project_plans_without_mpi(consumer):
    assert run(consumer / "plan").splitlines() == [PLANNED]
    libraries = run("ldd", consumer / "plan")
    assert "libmpi" not in libraries


def test_another_project_exchanges_halos(consumer):
    lines = run("mpiexec", "-n", "2", consumer / "example", timeout=60).splitlines()
    assert sorted(lines) == ["rank 0: right", "rank 1: right"]


def test_another_project_exchanges_halos_through_the_c_interface(consumer):
    """A wrong request is a status and a text; the program goes on."""
    lines = run("mpiexec", "-n", "3", consumer / "exchange_c", timeout=60).splitlines()
    assert sorted(lines) == [f"rank {rank}: right" for rank in range(3)]


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="no pkg-config")
def test_pkg_config_says_how_to_compile_a_program_in_c(prefix, tmp_path):
    (description,) = prefix.rglob("haloscope.pc")
    words = run("env", f"PKG_CONFIG_PATH={description.parent}", "pkg-config", "--cflags", "--libs", "haloscope").split()
    run("mpicc", "-std=c99", CONSUMER / "exchange.c", *words, "-o", tmp_path / "exchange")
    lines = run("mpiexec", "-n", "2", tmp_path / "exchange", timeout=60).splitlines()
    assert sorted(lines) == ["rank 0: right", "rank 1: right"]


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
def test_another_project_exchanges_halos_through_the_fortran_module(consumer):
    """Arrays of any bounds, types and widths; a wrong request is a status and a text."""
    for ranks in (1, 2, 3):
        lines = run("mpiexec", "-n", str(ranks), consumer / "exchange_f", timeout=60).splitlines()
        assert sorted(line.strip() for line in lines) == [f"rank {rank}: right" for rank in range(ranks)]


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
def test_arrays_of_fortran_that_cannot_be_exchanged_are_refused_by_name(consumer):
    """Every pair of types that have as many bytes; arrays without memory; what one rank passes fails on all."""
    for ranks in (1, 2, 3):
        lines = run("mpiexec", "-n", str(ranks), consumer / "wrong_arrays_f", timeout=60).splitlines()
        assert sorted(line.strip() for line in lines) == [f"rank {rank}: right" for rank in range(ranks)]


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
def test_copies_of_grids_and_exchanges_of_fortran_are_the_same_ones(consumer):
    """Each rebinds arrays of all; what was freed by one is a status and a text in every call, on all ranks."""
    for ranks in (1, 2, 3):
        lines = run("mpiexec", "-n", str(ranks), consumer / "copies_f", timeout=60).splitlines()
        assert sorted(line.strip() for line in lines) == [f"rank {rank}: right" for rank in range(ranks)]


@pytest.mark.parametrize(
    "threads", [[], pytest.param(["threads"], marks=pytest.mark.long)], ids=["one thread", "threads"]
)
@pytest.mark.parametrize("language", ["c", "f"])
def test_misuse_in_c_and_fortran_is_refused_by_name(consumer, language, threads):
    """Arrays that share memory, communicators of graphs and of two groups, a second thread, calls after MPI's end."""
    if language == "f" and not shutil.which("gfortran"):
        pytest.skip("no Fortran compiler")
    for ranks in (1, 2, 3):
        lines = run("mpiexec", "-n", str(ranks), consumer / f"misuse_{language}", *threads, timeout=60).splitlines()
        assert sorted(line.strip() for line in lines) == [f"rank {rank}: right" for rank in range(ranks)]


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
@pytest.mark.parametrize("call", ["free", "progress", "report", "open", "grid", "create"])
def test_a_failure_that_a_fortran_program_does_not_ask_for_ends_it(consumer, call):
    command = [shutil.which("mpiexec", path=TOOLS), "-n", "2", consumer / "copies_f", call]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "was freed before" in done.stderr


def compile_fortran(prefix: Path, place: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Have the compiler look at a source that uses the installed module."""
    (place / "source.f90").write_text(source)
    words = ["gfortran", "-fsyntax-only", "-Wall", "-Wextra", f"-I{prefix / 'include' / 'haloscope' / 'fortran'}"]
    return subprocess.run([*words, "source.f90"], cwd=place, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
@pytest.mark.parametrize("procedure", ["add", "add_slot", "rebind"])
def test_the_compiler_takes_only_arrays_of_fortran_that_can_be_written_to(prefix, tmp_path, procedure):
    """Expressions, results, constants, intent(in), sections by a vector: each bad line by itself must not compile."""
    source = (CONSUMER / "writable_arrays.f90").read_text().replace("TAKE", procedure)
    done = compile_fortran(prefix, tmp_path, source)
    assert done.returncode == 0 and not done.stderr, done.stderr
    bad = re.findall(r"!- (.*)", source)
    assert len(bad) > 10
    for line in bad:
        done = compile_fortran(prefix, tmp_path, source.replace(f"!- {line}", line))
        assert done.returncode != 0, line
        assert f"{line}\n" in done.stderr and "INTENT" in done.stderr, done.stderr


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
@pytest.mark.parametrize("kinds", ["", "_i8", "_r8", "_i8r8"])
def test_one_fortran_module_serves_codes_of_any_default_kinds(consumer, kinds):
    """-fdefault-integer-8 and -fdefault-real-8, as plain as strict; numbers and types that do not fit are refused by
    name.
    """
    for ranks in (1, 2, 3):
        lines = run("mpiexec", "-n", str(ranks), consumer / f"default_kinds_f{kinds}", timeout=60).splitlines()
        assert sorted(line.strip() for line in lines) == [f"rank {rank}: right" for rank in range(ranks)]


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
@pytest.mark.parametrize("kinds", ["", "_i8"])
@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        ("stat", "argument 'stat' is not of type integer"),
        *((name, f"{name}() has numbers that") for name in ("shape", "first")),
    ],
)
def test_results_without_a_fitting_place_end_a_fortran_program(consumer, kinds, mistake, text):
    command = [shutil.which("mpiexec", path=TOOLS), "-n", "2", consumer / f"default_kinds_f{kinds}", mistake]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert text in done.stderr


def optional_numbers(module: str, procedure: str) -> list[str]:
    """Return the names of the optional integers and logicals of a procedure of the Fortran module."""
    (body,) = re.findall(rf"^  [^!\n]*\b{procedure}\(.*?^  end ", module, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^ +(?:class\(\*\)|integer\(\w+\)), .*optional :: (.*)$", body, re.MULTILINE)
    return re.findall(r"\w+", " ".join(lines))


def test_codes_of_any_default_kinds_pass_every_argument_of_the_fortran_module():
    """Each optional integer and logical of a procedure is a keyword in a call of that procedure."""
    module = (ROOT / "src" / "bindings" / "fortran" / "haloscope.f90").read_text()
    program = (CONSUMER / "default_kinds.f90").read_text()
    bound = re.findall(r"^    (?:procedure|generic) :: (\w+) => (\w+)", module, re.MULTILINE)
    assert {"create", "shape", "add", "run"} <= dict(bound).keys()
    for name, procedure in bound:
        calls = re.findall(rf"%{name}\(.*", program)
        assert calls, name
        for argument in optional_numbers(module, procedure):
            assert any(re.search(rf"\b{argument}=", call) for call in calls), (name, argument)


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
@pytest.mark.parametrize(
    ("ranks", "kinds"),
    [
        (1, ""),
        (2, ""),
        (3, ""),
        (2, "_i8r8"),
        *(pytest.param(ranks, kinds, marks=pytest.mark.long) for ranks, kinds in [(4, ""), (6, ""), (3, "_i8r8")]),
    ],
)
def test_random_sections_of_fortran_get_right_halos_and_nothing_else_changes(consumer, ranks, kinds):
    """Any extents, strides, widths, types, centrings, slots, decompositions and default kinds; memory that moves."""
    program = consumer / f"random_exchanges_f{kinds}"
    assert run("mpiexec", "-n", str(ranks), program, str(ranks), "80", timeout=120) == "right\n"


def heat(*words) -> str:
    return run("mpiexec", "-n", *map(str, words), timeout=60)


def test_heat_is_the_same_in_every_language_and_on_any_number_of_ranks(prefix, tmp_path):
    run("cmake", "-S", HEAT, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path)
    alone = heat(1, sys.executable, HEAT / "heat.py")
    assert alone.startswith("after 100 steps the hottest cell has 0.58")
    programs = [[sys.executable, HEAT / "heat.py"], *([found] for found in tmp_path.glob("heat_?"))]
    assert len(programs) >= 3
    for program in programs:
        assert [heat(ranks, *program) for ranks in (2, 3)] == [alone, alone], program


MPI_F08 = """module mpi_f08
  type MPI_Comm
    integer :: mpi_val
  end type
  type MPI_Datatype
    integer :: mpi_val
  end type
  type MPI_Op
    integer :: mpi_val
  end type
  type(MPI_Comm), parameter :: MPI_COMM_WORLD = MPI_Comm(1)
  type(MPI_Datatype), parameter :: MPI_DOUBLE_PRECISION = MPI_Datatype(1)
  type(MPI_Op), parameter :: MPI_MAX = MPI_Op(1)
  integer :: MPI_IN_PLACE
  interface
    subroutine MPI_Init(ierror)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Finalize(ierror)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm, ierror)
      import
      type(*), dimension(..) :: sendbuf, recvbuf
      integer, intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
  end interface
end module
"""


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
def test_the_example_in_fortran_compiles_beside_a_module_of_mpi(prefix, tmp_path):
    """One with the names that the example uses: the MPI at hand may have none. With real ones:
    test_fortran_modules.py.
    """
    done = compile_fortran(prefix, tmp_path, MPI_F08 + (HEAT / "heat.f90").read_text())
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_examples_of_the_exchange_have_60_lines_at_most():
    for name in ("heat.cpp", "heat.c", "heat.f90", "heat.py"):
        assert len((HEAT / name).read_text().splitlines()) <= 60


def test_python_works_on_an_installed_tree(prefix):
    code = (
        "from haloscope import bridge; from haloscope.bridge import build; "
        "print(build.library(), build.header('bridge.h'), len(bridge.strategy_names()))"
    )
    environment = {**ENVIRONMENT, "HALOSCOPE_BUILD": str(prefix)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    library, header, count = done.stdout.split()
    assert library.startswith(str(prefix))
    assert header.startswith(str(prefix))
    assert int(count) > 1


WITHOUT_CHECKOUT = """import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if finder.__module__.startswith("_frozen_importlib")]
"""  # the package of the checkout, which is installed so that it can be edited, has a finder of its own
ONE_EXCHANGE = """from mpi4py import MPI
import haloscope
grid = haloscope.Grid(MPI.COMM_WORLD, (8,))
haloscope.Exchange(grid, [grid.zeros()])()
print(haloscope.__file__)
"""


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_what_a_wheel_holds_works_from_another_folder_and_writes_nothing_there(tmp_path):
    """Without pip and without a build of its own, which test_wheel.py has in long runs."""
    place, tools = tmp_path / "site" / "haloscope", tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    shutil.copytree(ROOT / "python" / "haloscope", place, ignore=shutil.ignore_patterns("__pycache__"))
    for component in tools["scikit-build"]["install"]["components"]:
        run("cmake", "--install", build.library().parent, "--prefix", place, "--component", component)
    before = files_below(place)
    python = ["env", "-u", "HALOSCOPE_BUILD", f"PYTHONPATH={place.parent}", sys.executable, "-B", "-c"]
    info = run(*python, WITHOUT_CHECKOUT + "import haloscope.cli; haloscope.cli.main(['info'])", cwd=tmp_path)
    assert f"{place}/" in info and str(build.library().parent) not in info
    assert run(*python, WITHOUT_CHECKOUT + ONE_EXCHANGE, cwd=tmp_path).strip() == str(place / "__init__.py")
    assert files_below(place) == before


def test_the_rank_program_is_installed_and_starts(prefix):
    assert "haloscope" in run(prefix / "bin" / "haloscope-rank", "--help")


def test_a_missing_build_says_what_to_do(monkeypatch, tmp_path):
    from haloscope.errors import UnavailableError

    monkeypatch.setenv("HALOSCOPE_BUILD", str(tmp_path))
    with pytest.raises(UnavailableError, match="make build"):
        build.library()
    with pytest.raises(UnavailableError, match="make build"):
        build.rank_program()


STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-pedantic", "-Werror", "-fsyntax-only")


def header_words(prefix) -> list[str]:
    """Return the words with which a compiler finds our headers as a user's, MPI's as the system's."""
    shown = run("mpicc", "-show").split()
    return [f"-I{prefix / 'include'}", *(f"-isystem{word[2:]}" for word in shown if word.startswith("-I"))]


def test_every_cplusplus_header_stands_alone_without_warnings(prefix, tmp_path):
    headers = sorted(header.name for header in (prefix / "include" / "haloscope").glob("*.hpp"))
    assert headers

    def compile_includes(names: list[str]) -> None:
        source = tmp_path / f"{names[0]}.cpp"
        source.write_text("".join(f'#include "haloscope/{name}"\n' for name in names))
        run("g++", "-std=c++20", *STRICT, *header_words(prefix), source)

    sources = [[name] for name in headers] if LONG else [headers, headers[::-1]]  # the first of each stands alone
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_includes, sources))


def test_what_templates_become_in_programs_has_no_warnings(prefix):
    flags = [flag for flag in STRICT if "conversion" not in flag]  # the program's own are its business
    run("g++", "-std=c++20", *flags, *header_words(prefix), HEAT / "heat.cpp")
    run("g++", "-std=c++20", *STRICT, *header_words(prefix), CONSUMER / "templates.cpp")


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_the_c_headers_are_plain_c_and_have_no_warnings(prefix, tmp_path, compiler):
    more = {
        "gcc": ["-Wstrict-prototypes", "-Wmissing-prototypes", "-Wc++-compat"],
        "g++": ["-Wold-style-cast", "-fno-exceptions"],
    }
    standards = {"gcc": ("c90", "c99", "c11", "c17", "c2x"), "g++": ("c++11", "c++14", "c++17", "c++20")}
    for header in sorted((prefix / "include" / "haloscope").glob("*.h")):
        source = tmp_path / {"gcc": "one.c", "g++": "one.cpp"}[compiler]
        source.write_text(f'#include "haloscope/{header.name}"\n')
        for standard in standards[compiler]:
            run(compiler, f"-std={standard}", *STRICT, *more[compiler], *header_words(prefix), source)


def test_a_project_before_cplusplus_20_gets_one_clear_line(prefix, tmp_path):
    for header in sorted((prefix / "include" / "haloscope").glob("*.hpp")):
        source = tmp_path / "one.cpp"
        source.write_text(f'#include "haloscope/{header.name}"\n')
        for standard in ("c++14", "c++17"):
            words = ["g++", f"-std={standard}", "-fsyntax-only", *header_words(prefix), source]
            said = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False).stderr
            errors = [line for line in said.splitlines() if "error:" in line]
            assert "C++20" in errors[0] and "haloscope/exchange.h" in errors[0], said
            assert [line for line in errors[1:] if "nothing more is compiled" not in line] == []


LANGUAGES = [
    "C",
    "CXX",
    pytest.param("Fortran", marks=pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")),
]


@pytest.mark.parametrize("components", ["", "itself"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_project_of_one_language_alone_builds_and_runs(prefix, tmp_path, language, components):
    """With its language as the component, and with none."""
    words = [f"-DLANGUAGE={language}", f"-DCOMPONENTS={components and language}", f"-DCMAKE_PREFIX_PATH={prefix}"]
    run("cmake", "-S", CONSUMER / "alone", "-B", tmp_path, "-G", "Ninja", *words)
    if components:
        return
    run("cmake", "--build", tmp_path)
    if language == "Fortran":
        assert run(tmp_path / "alone").startswith("2 MPI is not running")
    else:
        lines = run("mpiexec", "-n", "2", tmp_path / "alone", timeout=60).splitlines()
        assert sorted(lines) == ["rank 0: right", "rank 1: right"]


@pytest.mark.parametrize(
    ("language", "components", "why"),
    [
        ("C", "CXX", "does not enable the language CXX"),
        ("C", "Cobol", "there are C, CXX, Fortran and Python"),
        ("C", "Python", "import haloscope"),
    ],
)
def test_a_component_that_is_not_there_says_why(prefix, tmp_path, language, components, why):
    options = [f"-DLANGUAGE={language}", f"-DCOMPONENTS={components}", "-DPython3_EXECUTABLE=/bin/false"]
    words = [
        "cmake",
        "-S",
        CONSUMER / "alone",
        "-B",
        tmp_path,
        "-G",
        "Ninja",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        *options,
    ]
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert why in " ".join(done.stderr.split())


def test_the_component_for_python_is_found_where_the_package_is(prefix, tmp_path):
    words = [
        "-DLANGUAGE=C",
        "-DCOMPONENTS=C;Python",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DPython3_EXECUTABLE={sys.executable}",
    ]
    run("cmake", "-S", CONSUMER / "alone", "-B", tmp_path, "-G", "Ninja", *words)
