"""What is built and installed looks for its libraries in safe places, and names no folder of the build."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

import elf
from haloscope.bridge import build
from haloscope.measure import launch
from paths import ROOT
from programs import run

BUILD = build.library().parent
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("", "empty"),
        (".", "relative"),
        ("lib", "relative"),
        ("../lib", "relative"),
        ("$ORIGINlib", "relative"),
        ("$ORIGIN/../open/later", "anyone may write"),
        ("$ORIGIN/../closed/later", ""),
        ("$ORIGIN", ""),
    ],
)
def test_entries_of_run_paths_that_others_can_use_are_found(tmp_path, entry, why):
    for name, mode in (("open", 0o777), ("closed", 0o755), ("bin", 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    found = elf.fault(tmp_path / "bin" / "program", entry)
    assert why in found and bool(found) == bool(why)


def test_run_paths_of_the_build_have_no_empty_relative_or_writable_entry():
    assert elf.faults_of(BUILD) == []


def test_run_paths_of_what_is_installed_have_no_empty_relative_or_writable_entry(prefix):
    assert elf.faults_of(prefix) == []


def test_a_library_in_the_current_folder_is_not_loaded(tmp_path):
    """With the name of one that programs need, and nothing in it."""
    run("g++", "-shared", "-x", "c++", "/dev/null", "-o", tmp_path / "libgomp.so.1")
    run(build.rank_program(), "--help", cwd=tmp_path)


def test_what_is_installed_names_no_folder_of_the_build(prefix):
    """But for the MPI, which may lie in the checkout."""
    mpi = str(launch.mpiexec().resolve().parents[1]).encode()
    named = []
    for file in (path for path in prefix.rglob("*") if path.is_file()):
        text = file.read_bytes().replace(mpi, b"")
        named += [file for place in (ROOT, BUILD) if str(place).encode() in text]
    assert named == []


def built_by(*targets: str) -> set[str]:
    """Return the names of all files that Ninja makes or reads for some targets."""
    ninja = Path(sys.executable).parent / "ninja"  # set-up's: ninja 1.11 leaves out what other rules make
    return {Path(line).name for line in run(ninja, "-C", BUILD, "-t", "inputs", *targets).splitlines()}


@pytest.mark.skipif(not (BUILD / "build.ninja").exists(), reason="not a build by Ninja")
def test_all_that_is_installed_is_built_by_make_demo_and_of_a_wheel_by_its_targets(prefix, tmp_path):
    makefile = (ROOT / "Makefile").read_text()
    target = re.search(r"^programs:.*\n.*--target (\S+) --", makefile, re.MULTILINE)[1]
    assert {path.name for path in binaries(prefix)} <= built_by(target)
    for component in WHEEL["install"]["components"]:
        run("cmake", "--install", BUILD, "--prefix", tmp_path, "--component", component)
    found = {path.name for path in binaries(tmp_path)}
    assert {"haloscope-rank", "haloscope-delay-line", "libhaloscope_bridge.so"} <= found
    assert [name for name in found if name.startswith("libhaloscope_exchange.so.")]
    assert found <= built_by(*WHEEL["build"]["targets"])
    assert not list(tmp_path.rglob("*.a"))


def binaries(folder: Path) -> list[Path]:
    return [*elf.files_of(folder), *folder.rglob("*.a")]


@pytest.mark.parametrize(
    "name",
    ["exchange", "fortran", pytest.param("exchange_abi", marks=pytest.mark.long)],  # `make check-long` builds it
)
def test_libraries_of_c_and_fortran_need_no_openmp_and_have_the_number_of_their_interface(prefix, name):
    links = sorted(prefix.rglob(f"libhaloscope_{name}.so*"))
    if not links and name != "exchange":
        pytest.skip(f"this build has no libhaloscope_{name}")
    number = re.search(r"#define HS_ABI (\d+)", (prefix / "include" / "haloscope" / "status.h").read_text())[1]
    output = run("readelf", "-dW", links[0])
    assert f"soname: [libhaloscope_{name}.so.{number}]" in output
    assert not re.search(r"NEEDED.*(gomp|libomp|iomp)", output)
    if name == "exchange":  # a program that was linked with it is refused by a library with another number
        assert f"@@HALOSCOPE_{number}" in run("nm", "-D", links[0])


def test_licences_of_what_is_compiled_in_are_installed(prefix):
    found = {path.name for path in (prefix / "share" / "licenses" / "haloscope").iterdir()}
    assert found == {"LICENSE", *(path.name for path in (ROOT / "licenses").iterdir())}
    packages = set(re.findall(r"find_package\((\w+)", (ROOT / "CMakeLists.txt").read_text())) - {
        "MPI",
        "Threads",
        "OpenMP",
    }
    assert {f"{name.replace('_', '-')}.txt" for name in packages} <= found


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
def test_handles_pass_from_fortran_to_c_by_value(tmp_path):
    """gfortran forgets VALUE in later calls of a procedure that is declared by an abstract interface."""
    module = ROOT / "src" / "bindings" / "fortran" / "haloscope.f90"
    run("gfortran", "-c", "-fdump-tree-original", module, f"-J{tmp_path}", "-o", tmp_path / "haloscope.o")
    (tree,) = tmp_path.glob("*.original")
    handles = re.findall(r"hs_\w+ \((&?)\w+->_data->handle", tree.read_text())
    assert len(handles) > 20 and set(handles) == {""}


@pytest.mark.parametrize("name", ["haloscope-rank", "haloscope-delay-line", "libhaloscope_bridge.so"])
def test_what_is_not_timed_is_hardened(prefix, name):
    (file,) = [path for path in elf.files_of(prefix) if path.name == name]
    output = run("readelf", "-dlW", file)
    assert "GNU_RELRO" in output and re.search(r"BIND_NOW|FLAGS_1.*NOW", output)
    assert not re.search(r"GNU_STACK.*RWE", output)
    if name == "libhaloscope_bridge.so" and BUILD.name == "release":
        assert "__stack_chk_fail" in run("readelf", "--dyn-syms", "-W", file)
