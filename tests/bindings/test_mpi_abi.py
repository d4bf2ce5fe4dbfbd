"""The libraries for the standard ABI of MPI: bound to no MPI's own library, and right in C, Fortran and Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from haloscope.bridge import build
from haloscope.measure import launch
from paths import CONSUMER, RANK_PROGRAMS

BIN = launch.mpiexec().parent
RANKS = [1, 2, 3]

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (BIN / "mpicc_abi").exists(), reason="this MPI has no standard ABI"),
]


def run(*words, **environment) -> str:
    done = subprocess.run(
        list(map(str, words)),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def needed(file: Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", file)))


def libraries(folder: Path, *names: str) -> list[str]:
    return [f"-L{folder}", f"-Wl,-rpath,{folder}", *(f"-l{name}" for name in names)]


@pytest.mark.parametrize("name", ["exchange", "fortran"])
def test_a_library_for_the_abi_depends_on_no_mpi_of_its_own(prefix, name):
    if name == "fortran" and not shutil.which("gfortran"):
        pytest.skip("no Fortran compiler")
    (one,), (other,) = (list(prefix.rglob(f"libhaloscope_{name}{end}.so")) for end in ("", "_abi"))
    kind = "libmpi" if name == "exchange" else "libhaloscope_exchange"
    assert [re.sub(r"\.so.*", "", lib) for lib in needed(one) if kind in lib] == [kind]
    assert [re.sub(r"\.so.*", "", lib) for lib in needed(other) if "mpi" in lib or kind in lib] == [f"{kind}_abi"]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.skipif(not shutil.which("pkg-config"), reason="no pkg-config")
def test_a_program_in_c_exchanges_halos_by_the_abi(prefix, tmp_path, ranks):
    (description,) = prefix.rglob("haloscope-c-abi.pc")
    flags = run("pkg-config", "--cflags", "--libs", "haloscope-c-abi", PKG_CONFIG_PATH=str(description.parent)).split()
    run(BIN / "mpicc_abi", "-std=c99", CONSUMER / "exchange.c", *flags, "-o", tmp_path / "exchange")
    assert not [lib for lib in needed(tmp_path / "exchange") if lib.startswith("libmpi.")]
    lines = run(launch.mpiexec(), "-n", ranks, tmp_path / "exchange").splitlines()
    assert sorted(lines) == [f"rank {rank}: right" for rank in range(ranks)]


PROJECT = """cmake_minimum_required(VERSION 3.25)
project(abi LANGUAGES C CXX)
find_package(haloscope REQUIRED)
add_executable(exchange {source})
target_link_libraries(exchange PRIVATE haloscope::exchange_abi)
"""


def test_another_project_finds_the_library_for_the_abi_by_cmake(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(source=CONSUMER / "exchange.c"))
    tools = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    run(
        "cmake",
        "-S",
        tmp_path,
        "-B",
        tmp_path / "out",
        "-G",
        "Ninja",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={BIN / 'mpicc_abi'}",
        **tools,
    )
    run("cmake", "--build", tmp_path / "out", **tools)
    assert not [lib for lib in needed(tmp_path / "out" / "exchange") if lib.startswith("libmpi.")]
    lines = run(launch.mpiexec(), "-n", 2, tmp_path / "out" / "exchange").splitlines()
    assert sorted(lines) == ["rank 0: right", "rank 1: right"]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
def test_random_sections_of_fortran_get_right_halos_by_the_abi(prefix, tmp_path, ranks):
    folder = next(prefix.rglob("libhaloscope_fortran_abi.so")).parent
    run(BIN / "mpicc_abi", "-c", CONSUMER / "mpi_for_fortran.c", "-o", tmp_path / "mpi.o")
    run(
        "gfortran",
        f"-I{prefix / 'include/haloscope/fortran'}",
        f"-I{CONSUMER}",
        f"-J{tmp_path}",
        "-c",
        CONSUMER / "random_exchanges.f90",
        "-o",
        tmp_path / "random.o",
    )
    run(
        BIN / "mpicc_abi",
        tmp_path / "random.o",
        tmp_path / "mpi.o",
        *libraries(folder, "haloscope_fortran_abi", "haloscope_exchange_abi"),
        "-lgfortran",
        "-lm",
        "-o",
        tmp_path / "random",
    )
    assert run(launch.mpiexec(), "-n", ranks, tmp_path / "random", 20 + ranks, 40) == "right\n"


def install(*words: object, **variables: str) -> None:
    """Install a package by pip, without the packages that it depends on."""
    run(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", *words, **variables)


@pytest.fixture(scope="module")
def mpi4py_abi(tmp_path_factory) -> Path:
    """mpi4py, built from source for the ABI."""
    place = tmp_path_factory.mktemp("mpi4py")
    from_source = ("--no-binary", "mpi4py", "--no-cache-dir", "--target", place, "mpi4py>=4.1")
    install(*from_source, MPICC=str(BIN / "mpicc_abi"), CFLAGS="-O0")
    code = "from mpi4py import MPI; print(MPI.Get_abi_version()[0])"
    assert run(sys.executable, "-c", code, PYTHONPATH=str(place)) == "1\n"
    return place


@pytest.mark.parametrize("ranks", RANKS)
def test_random_arrays_of_python_get_right_halos_by_the_abi(mpi4py_abi, ranks):
    """The library follows from mpi4py: this one runs on the ABI."""
    exchanges = RANK_PROGRAMS / "random_exchanges.py"
    found = run(
        launch.mpiexec(),
        "-n",
        ranks,
        sys.executable,
        "-m",
        "mpi4py",
        exchanges,
        30 + ranks,
        40,
        PYTHONPATH=str(mpi4py_abi),
    )
    assert found.split() == ["right"]


@pytest.fixture(scope="module")
def intel_mpi(tmp_path_factory) -> Path:
    """Intel MPI's runtime from PyPI, which has the ABI too."""
    place = tmp_path_factory.mktemp("impi")
    install("--prefix", place, "impi-rt==2021.19.0")
    return place


@pytest.mark.parametrize("ranks", RANKS)
def test_what_was_built_with_this_mpi_runs_on_intel_mpi(mpi4py_abi, intel_mpi, ranks):
    """Library and mpi4py are as they were built; the other MPI is found when the program starts."""
    code = "from mpi4py import MPI; print(MPI.Get_library_version().split()[0] + '\\n', end='')"
    there = {
        "I_MPI_ROOT": str(intel_mpi),
        "I_MPI_FABRICS": "shm",
        "LD_LIBRARY_PATH": str(intel_mpi / "lib"),
        "PYTHONPATH": str(mpi4py_abi),
    }
    start = (intel_mpi / "bin" / "mpiexec.hydra", "-n", ranks, sys.executable)
    assert run(*start, "-c", code, **there).split() == ["Intel(R)"] * ranks
    exchanges = RANK_PROGRAMS / "random_exchanges.py"
    assert run(*start, "-m", "mpi4py", exchanges, 40 + ranks, 40, **there).split() == ["right"]


@pytest.mark.parametrize(
    ("version", "name"), [((1, 0), build.EXCHANGE_ABI_LIBRARY), ((-1, -1), build.EXCHANGE_LIBRARY)]
)
def test_python_takes_the_library_of_the_mpi_that_mpi4py_runs_on(monkeypatch, version, name):
    from mpi4py import rc

    monkeypatch.setattr(rc, "initialize", False)
    from mpi4py import MPI

    from haloscope import ranks

    monkeypatch.setattr(MPI, "Get_abi_version", lambda: version, raising=False)
    assert ranks.library_name() == name
    assert build.library(name).exists()
