"""A program for another MPI than the library's is refused by header, package and first call, with the remedy."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import other_mpi
from haloscope.bridge import build
from haloscope.errors import UnavailableError
from haloscope.measure import launch
from paths import CONSUMER

FAKE = CONSUMER / "other_mpi"  # whose mpi.h has the macros of another MPI
TOOLS = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)])
ENVIRONMENT = {**os.environ, "PATH": TOOLS}
MACROS = {"MPICH": "AS_MPICH", "Open MPI": "AS_OPENMPI", "the standard ABI": "AS_ABI", "another MPI": "AS_OTHER"}
SYMBOLS = {"MPICH": "mpich", "Open MPI": "openmpi", "the standard ABI": "abi", "another MPI": "other_mpi"}


def ours() -> set[str]:
    """Return the MPIs that this build is for, by their names above."""
    one = "Open MPI" if build.mpi().startswith("Open MPI") else "MPICH"
    return {one, *(["the standard ABI"] if list(build.library().parent.glob("libhaloscope_exchange_abi.so")) else [])}


def compiled(prefix: Path, mpi: str, *words) -> subprocess.CompletedProcess[str]:
    compiler = shutil.which("mpicxx", path=TOOLS)
    flags = [f"-I{FAKE}", f"-D{MACROS[mpi]}", f"-I{prefix / 'include'}"]
    return subprocess.run(
        [compiler, *flags, *map(str, words)], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )


def require_refusal(text: str, mpi: str) -> None:
    """It names both MPIs and the library for all of them."""
    assert re.search(rf"the program (is|was) compiled for {mpi}", text, re.IGNORECASE), text
    assert "HALOSCOPE_MPI_ABI" in text and "haloscope::exchange_abi" in text, text
    assert f"built for {build.mpi()}" in text, text


@pytest.mark.parametrize("mpi", MACROS)
@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_header_refuses_a_program_for_another_mpi(prefix, tmp_path, language, mpi):
    (tmp_path / "one").write_text("#include <haloscope/exchange.h>\n")
    done = compiled(prefix, mpi, "-x", language, "-fsyntax-only", tmp_path / "one")
    if mpi in ours():
        assert done.returncode == 0, done.stderr
    else:
        (line,) = [line for line in done.stderr.splitlines() if "error:" in line]
        require_refusal(line, mpi)


def test_the_cplusplus_headers_refuse_the_standard_abi(prefix, tmp_path):
    """Which has a library for C alone."""
    (tmp_path / "one").write_text("#include <haloscope/haloscope.hpp>\n")
    done = compiled(prefix, "the standard ABI", "-x", "c++", "-std=c++20", "-fsyntax-only", tmp_path / "one")
    assert "haloscope::exchange_abi" in re.search("error: (.*)", done.stderr)[1]


@pytest.mark.parametrize("language", ["C", "CXX"])
def test_the_package_refuses_a_project_for_another_mpi(prefix, tmp_path, language):
    (mpi,) = {"MPICH", "Open MPI"} - ours()
    words = [
        "-S",
        CONSUMER / "alone",
        "-B",
        tmp_path,
        "-G",
        "Ninja",
        f"-DLANGUAGE={language}",
        f"-DCMAKE_PREFIX_PATH={prefix}",
    ]
    flags = f"-DCMAKE_{language}_FLAGS=-I{FAKE} -D{MACROS[mpi]}"
    done = subprocess.run(["cmake", *words, flags], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    require_refusal(" ".join(done.stderr.split()), mpi)


@pytest.mark.parametrize("mpi", MACROS)
@pytest.mark.parametrize("function", ["hs_grid_create", "hs_doctor"])
def test_the_first_call_of_a_program_for_another_mpi_is_refused(function, mpi):
    """Without a check of its handles: it has none here."""
    library = ctypes.CDLL(str(build.library(build.EXCHANGE_LIBRARY)))
    library.hs_last_error.restype = ctypes.c_char_p
    one = "Open MPI" if build.mpi().startswith("Open MPI") else "MPICH"
    call = getattr(library, f"{function}_{SYMBOLS[mpi]}")
    if mpi != one:
        assert call(1, 1, 1) == 2
        require_refusal(library.hs_last_error().decode(), mpi)


def test_python_refuses_an_mpi4py_for_another_mpi():
    from haloscope import ranks

    ranks.require_its_mpi(build.mpi())
    another = "MPICH 4.2.0" if build.mpi().startswith("Open MPI") else "Open MPI 4.1.4"
    with pytest.raises(UnavailableError, match="HALOSCOPE_MPI_ABI") as found:
        ranks.require_its_mpi(another)
    assert f"built for {another}" in str(found.value)
    assert build.mpi().rsplit(" ", 1)[0] in str(found.value)


@pytest.mark.parametrize(("mpi", "kind"), [("MPICH 5.0.2", "hydra"), ("Open MPI 4.1.4", "openmpi")])
def test_an_installed_program_is_started_by_an_mpiexec_of_its_own_mpi(monkeypatch, tmp_path, mpi, kind):
    """Not by the first on PATH."""
    versions = {"hydra": "HYDRA build details", "openmpi": "mpiexec (OpenRTE) 4.1.4"}
    for name, text in versions.items():
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "mpiexec").write_text(f"#!/bin/sh\necho '{text}'\n")
        (tmp_path / name / "bin" / "mpiexec").chmod(0o755)
    (other,) = set(versions) - {kind}
    monkeypatch.delenv("HALOSCOPE_MPIEXEC", raising=False)
    monkeypatch.setattr(build, "mpi", lambda: mpi)
    monkeypatch.setattr(launch, "cmake_cache", lambda name, folder=None: "")
    monkeypatch.setenv("PATH", str(tmp_path / other / "bin"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / kind / "bin" / "python"))
    assert launch.mpiexec() == tmp_path / kind / "bin" / "mpiexec"


# ---- a real Open MPI -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def openmpi() -> other_mpi.OtherMpi:
    if build.mpi().startswith("Open MPI"):
        pytest.skip("the library is for Open MPI")
    return other_mpi.fetched("openmpi4")


def search_path(openmpi) -> str:
    """Return where both MPIs find what they need: the other one is not installed, but found by LD_LIBRARY_PATH."""
    linked = subprocess.run(
        ["ldd", build.library(build.EXCHANGE_LIBRARY)], check=True, capture_output=True, text=True
    ).stdout
    ours = dict.fromkeys(
        str(Path(file).parent) for file in re.findall(r"=> (/\S+)", linked) if not file.startswith(("/lib", "/usr"))
    )
    return os.pathsep.join([*ours, openmpi.environment["LD_LIBRARY_PATH"]])


def run_there(openmpi, program: Path) -> str:
    """Start a program on two ranks; it may fail, but does not crash or hang."""
    words = [
        *launch.launcher_words(openmpi.mpiexec, 2, 1),
        "env",
        f"LD_LIBRARY_PATH={search_path(openmpi)}",
        str(program),
    ]
    done = subprocess.run(words, env=openmpi.environment, capture_output=True, text=True, check=False, timeout=60)
    assert "signal" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done.stdout + done.stderr


def compile_there(openmpi, place: Path, source: Path, *words) -> Path:
    library = build.library().parent
    command = [
        openmpi.mpicxx,
        *words,
        source,
        f"-L{library}",
        f"-Wl,-rpath,{library}",
        "-lhaloscope_exchange",
        "-Wl,--allow-shlib-undefined",
        "-o",
        place / "program",
    ]
    done = subprocess.run(list(map(str, command)), env=openmpi.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place / "program"


@pytest.mark.long
@pytest.mark.timeout(1500)  # the first fetches it
def test_a_program_of_open_mpi_that_passed_header_and_package_is_refused_on_all_ranks(openmpi, prefix, tmp_path):
    header = (
        "-DHALOSCOPE_WHICH_MPI_H",
        "-DHS_OF_THIS_MPI(name)=name##_openmpi",
        "-include",
        "mpi.h",
    )  # as of another installation
    flags = ["-x", "c", *header, f"-I{prefix / 'include'}", "-std=c99"]
    program = compile_there(openmpi, tmp_path, CONSUMER / "other_mpi" / "first_call.c", *flags)
    output = run_there(openmpi, program).splitlines()
    assert len(output) == 2
    for line in output:
        require_refusal(line, "Open MPI")


@pytest.mark.long
@pytest.mark.timeout(1500)  # the first fetches it
def test_a_communicator_of_fortran_in_a_program_of_open_mpi_is_refused_on_all_ranks(openmpi, prefix, tmp_path):
    """An integer, as module haloscope and Python pass it."""
    source = tmp_path / "first_call.c"
    source.write_text(
        (CONSUMER / "other_mpi" / "first_call.c")
        .read_text()
        .replace("hs_grid_create(MPI_COMM_WORLD", "hs_grid_create_f(MPI_Comm_c2f(MPI_COMM_WORLD)")
    )
    header = "-DHALOSCOPE_WHICH_MPI_H", "-DHS_OF_THIS_MPI(name)=name", "-include", "mpi.h"
    program = compile_there(openmpi, tmp_path, source, "-x", "c", *header, f"-I{prefix / 'include'}", "-std=c99")
    output = run_there(openmpi, program)
    assert output.count("the program runs Open MPI v4.1") == 2, output
    assert f"built for {build.mpi()}" in output and "HALOSCOPE_MPI_ABI" in output
