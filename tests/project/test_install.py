"""An installed Haloscope is complete: another project finds it, builds against it and runs."""

from __future__ import annotations

import functools
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
from long_run import LONG, or_long
from paths import CONSUMER, RANK_PROGRAMS, ROOT
from programs import ended, run

HEAT = ROOT / "examples" / "heat"
needs_fortran = pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
CODES = ["phases", "pencils", "nodes", "transposes", "waves", "tiles"]  # with the structure of real codes
PLANNED = f"6 messages, {8 * 2 * (32 * 32 + 34 * 32 + 34 * 34)} bytes"  # blocks of 32 cubed, a halo of one layer


@pytest.fixture(scope="module")
def consumer(prefix, tmp_path_factory) -> Path:
    """The build directory of the other project, which has only the prefix."""
    place = tmp_path_factory.mktemp("consumer")
    run("cmake", "-S", CONSUMER, "-B", place, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", place)
    return place


def test_another_project_plans_without_mpi(consumer):
    assert run(consumer / "plan").splitlines() == [PLANNED]
    libraries = run("ldd", consumer / "plan")
    assert "libmpi" not in libraries


def check_program(program: Path, ranks: int, *words) -> None:
    """Run a program on some ranks, each of which must find all right."""
    lines = run("mpiexec", "-n", ranks, program, *words, timeout=60).splitlines()
    assert sorted(line.strip() for line in lines) == [f"rank {rank}: right" for rank in range(ranks)]


THREADS = pytest.param(("threads",), marks=pytest.mark.long)


@pytest.mark.parametrize(
    ("program", "rank_counts"),
    [
        ("example", (2,)),
        ("exchange_c", (3,)),
        ("exchange_f", (1, 2, 3)),  # arrays of any bounds, types and widths
        ("wrong_arrays_f", (1, 2, 3)),  # pairs of types of equal size; no memory; what one rank passes fails on all
        ("copies_f", (1, 2, 3)),  # each copy rebinds arrays of all; what one has freed is refused in all calls
        # -fdefault-integer-8 and -fdefault-real-8, plain and strict; numbers and types that do not fit are refused
        *((f"default_kinds_f{kinds}", (1, 2, 3)) for kinds in ("", "_i8", "_r8", "_i8r8")),
    ],
)
def test_another_project_exchanges_halos_in_every_language(consumer, program, rank_counts):
    """A wrong request is a status and a text; the program goes on."""
    if "_f" in program and not shutil.which("gfortran"):
        pytest.skip("no Fortran compiler")
    for ranks in rank_counts:
        check_program(consumer / program, ranks)


@functools.cache
def reference_of(program: Path) -> str:
    return run(sys.executable, program, "reference")


@pytest.mark.parametrize("ranks", or_long([2], [1, 4, 6]))
@pytest.mark.parametrize("language", ["c", "cxx", "f", "python"])
@pytest.mark.parametrize("code", CODES)
def test_a_code_of_many_exchanges_has_the_same_bits_in_every_language(consumer, code, language, ranks):
    """phases: seven exchanges a step of other fields of 15, and of other depths, by one exchange; pencils: sides and
    dimensions by call, with ghost rows that the code has computed; nodes: sums and shares without ghost layers;
    transposes: rows, columns, and all cells on one rank; waves: dimensions and layers that are known at run time;
    tiles: several blocks a rank, of sizes and numbers that are known at run time.
    """
    if language == "f" and not shutil.which("gfortran"):
        pytest.skip("no Fortran compiler")
    program = RANK_PROGRAMS / f"{code}.py"
    expected = reference_of(program)
    in_python = [sys.executable, "-m", "mpi4py", program]
    command = in_python if language == "python" else [consumer / f"{code}_{language}"]
    strategies = ("auto", "ordered/p2p", "direct:merged/shared:packed")
    for strategy in strategies if LONG or language != "python" else strategies[:1]:  # which starts for a second
        assert run("mpiexec", "-n", ranks, *command, strategy, timeout=120) == expected


MENTIONS = {
    "c": r"\bhs_|HS_|\b(split|how|part|field)\.|list\[\w\]\.",
    "cpp": r"haloscope::|\bhalo[.(]|\bgrid[.(]",
    "f90": r"\bhs_|halo_|\bhalo%|\bgrid%",
    "py": r"haloscope|\bhalo[.(]|\bgrid\.",
}


@pytest.mark.parametrize("language", MENTIONS)
@pytest.mark.parametrize("code", CODES)
def test_a_code_needs_at_most_35_lines_of_the_library(code, language):
    folder = RANK_PROGRAMS if language == "py" else CONSUMER
    lines = (folder / f"{code}.{language}").read_text().splitlines()
    uses = [
        line
        for line in lines
        if re.search(MENTIONS[language], line) and not re.search(r"^\s*(#include|//|!|/?\*)", line)
    ]
    assert 0 < len(uses) <= 35, "\n".join(uses)


@pytest.mark.parametrize("words", [(), THREADS], ids=["one thread", "threads"])
@pytest.mark.parametrize("program", ["misuse_c", pytest.param("misuse_f", marks=needs_fortran)])
def test_misuse_in_c_and_fortran_is_refused_by_name(consumer, program, words):
    """Arrays that share memory, communicators of graphs and of two groups, a second thread, calls after MPI's end."""
    for ranks in (1, 2, 3):
        check_program(consumer / program, ranks, *words)


def packaged(prefix: Path, name: str) -> list[str]:
    """Return the words for a compiler by which pkg-config describes an installed library."""
    folder = next(prefix.rglob("haloscope.pc")).parent
    return run("env", f"PKG_CONFIG_PATH={folder}", "pkg-config", "--cflags", "--libs", name).split()


needs_pkg_config = pytest.mark.skipif(not shutil.which("pkg-config"), reason="no pkg-config")


@needs_pkg_config
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("haloscope", ["mpicc", "-std=c99", "exchange.c"]),
        ("haloscope-c", ["mpicc", "-std=c99", "exchange.c"]),
        ("haloscope-c", ["mpicxx", "-std=c++11", "cxx11.cpp"]),
        ("haloscope-cxx", ["mpicxx", "-std=c++20", "transposes.cpp"]),
    ],
)
def test_pkg_config_is_enough_to_compile_a_program(prefix, tmp_path, name, words):
    *compiler, source = words
    run(*compiler, CONSUMER / source, *packaged(prefix, name), "-o", tmp_path / "program")
    if source == "transposes.cpp":
        assert len({run("mpiexec", "-n", ranks, tmp_path / "program", "auto") for ranks in ("1", "2")}) == 1
    else:
        check_program(tmp_path / "program", 2)


def build_fortran(prefix: Path, source: str, program: Path, *flags: str, libraries: tuple[str, ...] = ()) -> None:
    """Build a program of the consumer by gfortran, with the words of pkg-config alone."""
    folder = program.parent
    run("mpicc", "-c", CONSUMER / "mpi_for_fortran.c", "-o", folder / "mpi.o")
    mpi = [word for word in run("mpicc", "-show").split() if word.startswith(("-L", "-l", "-Wl"))]
    sources = [*flags, f"-I{CONSUMER}", f"-J{folder}", CONSUMER / source, folder / "mpi.o"]
    run("gfortran", *sources, *packaged(prefix, "haloscope-fortran"), *libraries, *mpi, "-o", program)


@needs_fortran
@needs_pkg_config
def test_pkg_config_is_enough_to_compile_a_program_in_fortran(prefix, tmp_path):
    build_fortran(prefix, "exchange.f90", tmp_path / "program")
    check_program(tmp_path / "program", 2)


HDF5 = ["-I/usr/include/hdf5/serial", "-L/usr/lib/x86_64-linux-gnu/hdf5/serial"]  # of Debian
needs_hdf5 = pytest.mark.skipif(
    not Path("/usr/include/hdf5/serial/hdf5.h").exists(), reason="no HDF5: run 'scripts/setup.sh long'"
)


@needs_hdf5
@needs_pkg_config
@pytest.mark.long
def test_ranks_write_and_read_datasets_of_hdf5_by_their_offsets(prefix, tmp_path):
    strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    words = [*strict, CONSUMER / "hdf5.c", *packaged(prefix, "haloscope-c"), *HDF5, "-lhdf5"]
    run("mpicc", *words, "-o", tmp_path / "program")
    for ranks in (1, 2, 3):
        check_program(tmp_path / "program", ranks, tmp_path / f"of-c-{ranks}.h5")


@needs_fortran
@needs_hdf5
@needs_pkg_config
@pytest.mark.long
def test_ranks_of_fortran_write_and_read_datasets_of_hdf5_by_their_offsets(prefix, tmp_path):
    libraries = ("-lhdf5_fortran", "-lhdf5")
    build_fortran(prefix, "hdf5.f90", tmp_path / "program", *HDF5, libraries=libraries)
    for ranks in (1, 2, 3):
        check_program(tmp_path / "program", ranks, tmp_path / f"of-fortran-{ranks}.h5")


def compile_cxx11(prefix: Path, program: Path, *flags: str) -> None:
    library = [f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}", "-lhaloscope_exchange"]
    strict = [flag for flag in STRICT if flag != "-fsyntax-only"]
    words = ["mpicxx", *flags, *strict, *header_words(prefix), CONSUMER / "cxx11.cpp", *library]
    run(*words, "-o", program)


@pytest.mark.parametrize("standard", ["c++11", pytest.param("c++14", marks=pytest.mark.long), "c++17", "c++20"])
def test_classes_for_cplusplus_11_own_grids_and_exchanges(prefix, tmp_path, standard):
    compile_cxx11(prefix, tmp_path / "program", f"-std={standard}")
    for ranks in (1, 2, 3):
        check_program(tmp_path / "program", ranks)


def test_a_failure_ends_all_ranks_of_a_program_without_exceptions(prefix, tmp_path):
    compile_cxx11(prefix, tmp_path / "program", "-std=c++11", "-fno-exceptions")
    check_program(tmp_path / "program", 2)
    assert "0 fields" in error_of("mpiexec", "-n", "2", tmp_path / "program", "auto")


@needs_fortran
@pytest.mark.parametrize("call", ["free", "progress", "report", "open", "grid", "create"])
def test_a_failure_that_a_fortran_program_does_not_handle_ends_it(consumer, call):
    assert "was freed before" in error_of("mpiexec", "-n", 2, consumer / "copies_f", call)


def error_of(*words) -> str:
    """Return the error of a command that must fail."""
    done = ended(*words, timeout=60)
    assert done.returncode != 0
    return done.stderr


def compile_fortran(prefix: Path, place: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Have the compiler check a source that uses the installed module."""
    (place / "source.f90").write_text(source)
    words = ["gfortran", "-fsyntax-only", "-Wall", "-Wextra", f"-I{prefix / 'include' / 'haloscope' / 'fortran'}"]
    return ended(*words, "source.f90", cwd=place)


@needs_fortran
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


@needs_fortran
@pytest.mark.parametrize("kinds", ["", "_i8"])
@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        ("stat", "argument 'stat' is not of type integer"),
        *((name, f"{name}() has numbers that") for name in ("shape", "first")),
    ],
)
def test_results_without_a_fitting_place_end_a_fortran_program(consumer, kinds, mistake, text):
    assert text in error_of("mpiexec", "-n", 2, consumer / f"default_kinds_f{kinds}", mistake)


def optional_numbers(module: str, procedure: str) -> list[str]:
    """Return the names of the optional integers and logicals of a procedure of the Fortran module."""
    (body,) = re.findall(rf"^  [^!\n]*\b{procedure}\(.*?^  end ", module, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^ +(?:class\(\*\)|integer\(\w+\)), .*optional :: (.*)$", body, re.MULTILINE)
    return [name for name in re.findall(r"\w+", " ".join(lines)) if name != "errmsg"]


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


@needs_fortran
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
    return run("mpiexec", "-n", *words, timeout=60)


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


@needs_fortran
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
    environment = os.environ | {"HALOSCOPE_BUILD": str(prefix)}
    library, header, count = run(sys.executable, "-c", code, env=environment).split()
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


def test_cplusplus_headers_compile_without_exceptions_and_type_information(prefix, tmp_path):
    headers = sorted((prefix / "include" / "haloscope").rglob("*.hpp"))
    source = tmp_path / "all.cpp"
    source.write_text("".join(f'#include "{path.relative_to(prefix / "include")}"\n' for path in headers))
    run("g++", "-std=c++20", "-fno-exceptions", "-fno-rtti", "-fsyntax-only", *header_words(prefix), source)


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
    headers = {path.name for path in (prefix / "include" / "haloscope").glob("*.hpp")}
    for name in sorted(headers - {"cxx11.hpp"}):
        source = tmp_path / "one.cpp"
        source.write_text(f'#include "haloscope/{name}"\n')
        for standard in ("c++14", "c++17"):
            words = ["g++", f"-std={standard}", "-fsyntax-only", *header_words(prefix), source]
            text = ended(*words).stderr
            errors = [line for line in text.splitlines() if "error:" in line]
            assert "C++20" in errors[0] and "haloscope/exchange.h" in errors[0], text
            assert [line for line in errors[1:] if "nothing more is compiled" not in line] == []


LANGUAGES = [
    "C",
    "CXX",
    pytest.param("Fortran", marks=needs_fortran),
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
        check_program(tmp_path / "alone", 2)


@pytest.mark.parametrize(
    ("language", "components", "why"),
    [
        ("C", "CXX", "does not enable the language CXX"),
        ("C", "Cobol", "the components are C, CXX, Fortran and Python"),
        ("C", "Python", "import haloscope"),
    ],
)
def test_a_component_that_is_not_there_says_why(prefix, tmp_path, language, components, why):
    options = (f"-DLANGUAGE={language}", f"-DCOMPONENTS={components}", f"-DCMAKE_PREFIX_PATH={prefix}")
    python = "-DPython3_EXECUTABLE=/bin/false"
    error = error_of("cmake", "-S", CONSUMER / "alone", "-B", tmp_path, "-G", "Ninja", *options, python)
    assert why in " ".join(error.split())


def test_the_component_for_python_is_found_where_the_package_is(prefix, tmp_path):
    words = [
        "-DLANGUAGE=C",
        "-DCOMPONENTS=C;Python",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DPython3_EXECUTABLE={sys.executable}",
    ]
    run("cmake", "-S", CONSUMER / "alone", "-B", tmp_path, "-G", "Ninja", *words)
