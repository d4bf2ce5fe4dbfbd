"""The Fortran module beside MPI's own modules, mpi_f08 and mpi: on an Open MPI of the distribution, which has both."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import other_mpi
from haloscope.measure import launch
from paths import CONSUMER, ROOT

HEAT = ROOT / "examples" / "heat"
OPENMPI = ROOT / "build" / "mpi" / "openmpi4" / "root" / "usr"
MODULES = {"mpi_f08": ["-DMPI_F08"], "mpi": []}

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1500),  # the first test builds
    pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler"),
]


def run(*words, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        list(map(str, words)), env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def openmpi() -> other_mpi.OtherMpi:
    return other_mpi.get("openmpi4", "haloscope_fortran")


def build_program(openmpi, place: Path, *words) -> Path:
    """Compile sources by the wrapper mpifort of an MPI and link them with this library for that MPI."""
    library, libmpi = openmpi.folder, next(OPENMPI.rglob("libmpi.so")).parent
    search = openmpi.environment | {"LIBRARY_PATH": f"{libmpi}:{openmpi.environment['LD_LIBRARY_PATH']}"}
    run(
        OPENMPI / "bin" / "mpifort.openmpi",
        "-O3",
        "-ffp-contract=off",
        f"-I{library / 'fortran'}",
        f"-I{CONSUMER}",
        f"-J{place}",
        *words,
        f"-L{library}",
        f"-Wl,-rpath,{library}",
        "-lhaloscope_fortran",
        "-lhaloscope_exchange",
        "-o",
        place / "program",
        environment=search,
    )
    return place / "program"


def run_program(openmpi, ranks: int, program: Path, *words) -> list[str]:
    start = launch.launcher_words(launch.mpiexec(openmpi.folder), ranks, 1)
    return sorted(line.strip() for line in run(*start, program, *words, environment=openmpi.environment).splitlines())


def test_heat_by_mpi_f08_prints_the_digits_of_the_other_languages_on_any_number_of_ranks(openmpi, tmp_path):
    program = build_program(openmpi, tmp_path, HEAT / "heat.f90")
    python = run(*launch.launcher_words(launch.mpiexec(), 1, 1), sys.executable, HEAT / "heat.py").splitlines()
    assert [run_program(openmpi, ranks, program) for ranks in (1, 2, 3)] == [python] * 3


def test_two_commands_install_the_module_for_an_mpi_with_mpi_f08(openmpi, tmp_path):
    shutil.rmtree(ROOT / "build" / "library", ignore_errors=True)
    environment = openmpi.environment | {"PATH": f"{openmpi.mpicxx.parent}:{os.environ['PATH']}"}
    for command in ("cmake --workflow --preset library", f"cmake --install build/library --prefix {tmp_path}"):
        done = subprocess.run(command.split(), cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    found = os.environ | {"PKG_CONFIG_PATH": str(next(tmp_path.rglob("pkgconfig")))}
    words = run("pkg-config", "--cflags", "--libs", "haloscope-fortran", environment=found).split()
    libmpi = next(OPENMPI.rglob("libmpi.so")).parent
    environment["LIBRARY_PATH"] = f"{libmpi}:{environment['LD_LIBRARY_PATH']}"
    run(
        OPENMPI / "bin" / "mpifort.openmpi",
        "-ffp-contract=off",
        HEAT / "heat.f90",
        *words,
        "-o",
        tmp_path / "heat",
        environment=environment,
    )
    lines = run_program(openmpi, 2, tmp_path / "heat")
    assert len(lines) == 1 and lines[0].startswith("after 100 steps the hottest cell has 0.58")


@pytest.mark.parametrize("module", MODULES)
def test_communicators_of_a_module_of_mpi_serve_every_kind_of_grid(openmpi, tmp_path, module):
    sources = (CONSUMER / "mpi_for_fortran.F90", CONSUMER / "exchange.f90")
    program = build_program(openmpi, tmp_path, *MODULES[module], *sources)
    for ranks in (1, 2, 3):
        assert run_program(openmpi, ranks, program) == [f"rank {rank}: right" for rank in range(ranks)]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("kinds", [[], ["-fdefault-integer-8", "-fdefault-real-8"]], ids=["default", "8 bytes"])
def test_codes_of_any_default_kinds_exchange_beside_a_module_of_mpi(openmpi, tmp_path, module, kinds):
    """The constants of MPI keep their 4 bytes beside integers of 8."""
    sources = (CONSUMER / "mpi_for_fortran.F90", CONSUMER / "default_kinds.f90")
    program = build_program(openmpi, tmp_path, *MODULES[module], *kinds, *sources)
    for ranks in (1, 2, 3):
        assert run_program(openmpi, ranks, program) == [f"rank {rank}: right" for rank in range(ranks)]


@pytest.mark.parametrize("module", MODULES)
def test_random_sections_get_right_halos_beside_a_module_of_mpi(openmpi, tmp_path, module):
    """Seed 3 sends bytes that run backwards by datatypes, which Open MPI 4.1.4 gets wrong as vectors."""
    sources = (CONSUMER / "mpi_for_fortran.F90", CONSUMER / "random_exchanges.f90")
    program = build_program(openmpi, tmp_path, *MODULES[module], *sources)
    for ranks in (1, 2, 3):
        assert run_program(openmpi, ranks, program, ranks, 40) == ["right"]
