"""A wheel, made from the source distribution, holds everything: command line, rank program, libraries, exchange,
package files.

One wheel is built for all tests, and one on Open MPI. That its targets build all that it holds is tested in
test_binaries.py, on the build at hand.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import elf
import programs as programs_of_tests
from haloscope import cli
from haloscope.measure import launch
from paths import CONSUMER, RANK_PROGRAMS, ROOT

RANDOM = RANK_PROGRAMS / "random_exchanges.py"
VERSIONS = ("3.11", "3.12", "3.13")

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]  # the first test builds


def plain_environment(*folders: Path) -> dict[str, str]:
    """Return the environment without anything of the checkout, with some folders first on PATH."""
    kept = [folder for folder in os.environ["PATH"].split(os.pathsep) if not folder.startswith(str(ROOT))]
    unwanted = ("HALOSCOPE_BUILD", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONPATH")
    environment = {key: value for key, value in os.environ.items() if key not in unwanted}
    return environment | {"PATH": os.pathsep.join([*map(str, folders), *kept])}


def run(*words, cwd: Path, environment: dict[str, str] | None = None) -> str:
    return programs_of_tests.run(*words, cwd=cwd, env=environment or plain_environment())


def interpreter(version: str) -> str:
    """Return a Python of a version, on PATH or of pyenv; skips without one."""
    found = shutil.which(f"python{version}", path=plain_environment()["PATH"]) or ""
    of_pyenv = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    if of_pyenv:
        return str(of_pyenv[0])
    if (
        found
        and not subprocess.run([found, "-c", "import venv, ensurepip"], check=False, capture_output=True).returncode
    ):
        return found
    pytest.skip(f"there is no Python {version}")


def new_venv(place: Path, version: str) -> Path:
    """Make an environment; return its folder of programs."""
    run(interpreter(version), "-m", "venv", place, cwd=place.parent)
    return place / "bin"


def pip(programs: Path, *words) -> None:
    command = (programs / "python", "-m", "pip", *words, "-q", "--disable-pip-version-check")
    run(*command, cwd=programs, environment=plain_environment(programs))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    """The source distribution."""
    place = tmp_path_factory.mktemp("sdist")
    programs = new_venv(place / "venv", "3.11")
    pip(programs, "install", "build")
    run(programs / "python", "-m", "build", "--sdist", "-o", place, ROOT, cwd=place)
    (file,) = place.glob("*.tar.gz")
    return file


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory) -> Path:
    """The wheel that pip makes of the source distribution, on the machine's MPI or, without one, on MPICH's wheel."""
    place = tmp_path_factory.mktemp("wheel")
    programs = new_venv(place / "venv", "3.11")
    pip(programs, "wheel", "--no-deps", "-w", place, sdist)
    (file,) = place.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory) -> Path:
    """The folder of programs of an environment with the wheel."""
    found = new_venv(tmp_path_factory.mktemp("installed") / "venv", "3.11")
    pip(found, "install", f"{wheel}[exchange]")
    return found


def package_of(programs: Path) -> Path:
    return next(programs.parent.glob("lib/python*/site-packages/haloscope"))


def test_the_source_distribution_holds_what_a_build_needs_and_no_results(sdist):
    assert sdist.stat().st_size < 2**21


def test_a_wheel_is_for_all_pythons_and_has_no_static_archive(wheel):
    assert re.search(r"-py3-none-[^-]*\.whl$", wheel.name)
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        about = Parser().parsestr(packed.read(metadata).decode())
        licences = [packed.read(name).decode() for name in names if "/licenses/" in name]
    assert not [name for name in names if name.endswith(".a")]
    assert about["License-Expression"] == "Apache-2.0"
    for name in ("Apache License", "Niels Lohmann", "University of Cincinnati"):
        assert [text for text in licences if name in text]
    on_wheel = not shutil.which("mpicxx", path=plain_environment()["PATH"])
    assert bool([word for word in about.get_all("Requires-Dist") if word.startswith("mpich")]) == on_wheel


def test_run_paths_of_an_installed_wheel_have_no_empty_relative_or_writable_entry(programs):
    assert elf.faults_of(package_of(programs)) == []


def test_an_installed_wheel_names_no_folder_of_its_build(programs):
    for file in (path for path in package_of(programs).rglob("*") if path.is_file() and path.suffix != ".pyc"):
        text = file.read_bytes()
        assert not [
            word for word in (str(ROOT).encode(), b"pip-build-env", b"pip-req-build", b"/tmp/tmp") if word in text
        ], file


@pytest.mark.parametrize("version", VERSIONS)
def test_command_line_and_exchange_work_from_another_folder_in_every_python(wheel, tmp_path, version):
    programs = new_venv(tmp_path / "venv", version)
    pip(programs, "install", f"{wheel}[exchange]")
    info = run(programs / "haloscope", "info", cwd=tmp_path)
    assert str(programs.parent) in info and "unknown" not in info
    line = "run laplace2d --cells 32x32 --ranks 2 --steps 4 --launches 1 --strategy ordered/p2p --output r.jsonl"
    assert "passed" in run(programs / "haloscope", *line.split(), cwd=tmp_path)
    mpiexec = programs / "mpiexec" if (programs / "mpiexec").exists() else "mpiexec"
    start = [mpiexec, "-n", "2", programs / "python", "-m", "mpi4py"]
    environment = plain_environment(programs) | {"LD_LIBRARY_PATH": str(programs.parent / "lib")}  # where mpi4py looks
    assert run(*start, RANDOM, 5, 20, cwd=tmp_path, environment=environment).split() == ["right"]


def test_demo_runs_from_another_folder(programs, tmp_path):
    assert "ordered" in run(programs / "haloscope", "demo", cwd=tmp_path)


def test_bash_completes_the_command_of_an_installed_wheel(programs, tmp_path):
    script = programs.parent / "share" / "bash-completion" / "completions" / "haloscope"
    assert (programs.parent / "share" / "zsh" / "site-functions" / "_haloscope").exists()
    assert (programs.parent / "share" / "fish" / "vendor_completions.d" / "haloscope.fish").exists()
    lines = f"source {script}; COMP_WORDS=(haloscope pred); COMP_CWORD=1; _haloscope_completion haloscope"
    environment = plain_environment(programs)
    output = run("bash", "-c", f"{lines}; echo ${{COMPREPLY[@]}}", cwd=tmp_path, environment=environment)
    assert output.split() == ["predict"]


def test_an_installed_wheel_has_a_manual_page_of_each_command_with_all_its_options(programs, tmp_path):
    pages = programs.parent / "share" / "man" / "man1"
    text = (pages / "haloscope.1").read_text()
    for command in cli.COMMANDS:
        page = (pages / f"haloscope-{command}.1").read_text().replace(r"\-", "-")
        help_text = run(programs / "haloscope", command, "--help", cwd=tmp_path)
        if "--help-all" in help_text:
            help_text = run(programs / "haloscope", command, "--help-all", cwd=tmp_path)
        assert set(re.findall(r"^  (--[a-z-]+)", help_text, re.MULTILINE)) <= set(re.findall(r"--[a-z-]+", page))
        assert f"haloscope-{command}(1)" in text


def test_another_project_finds_an_installed_wheel_by_cmake_and_pkg_config(programs, tmp_path):
    tools = plain_environment(programs, Path(sys.executable).parent)
    words = [f"-DCMAKE_PREFIX_PATH={package_of(programs)}", "-DLANGUAGE=C", "-G", "Ninja"]
    run("cmake", "-S", CONSUMER / "alone", "-B", tmp_path, *words, cwd=tmp_path, environment=tools)
    run("cmake", "--build", tmp_path, cwd=tmp_path, environment=tools)
    lines = run("mpiexec", "-n", "2", tmp_path / "alone", cwd=tmp_path, environment=tools).splitlines()
    assert sorted(lines) == ["rank 0: right", "rank 1: right"]
    (description,) = package_of(programs).rglob("haloscope.pc")
    found = tools | {"PKG_CONFIG_PATH": str(description.parent)}
    flags = run("pkg-config", "--cflags", "--libs", "haloscope", cwd=tmp_path, environment=found).split()
    run("mpicc", "-std=c99", CONSUMER / "exchange.c", *flags, "-o", "exchange", cwd=tmp_path, environment=tools)
    lines = run("mpiexec", "-n", "2", "./exchange", cwd=tmp_path, environment=tools).splitlines()
    assert sorted(lines) == ["rank 0: right", "rank 1: right"]


def test_a_project_in_cplusplus_learns_where_its_library_is(programs, tmp_path):
    options = [f"-DCMAKE_PREFIX_PATH={package_of(programs)}", "-DLANGUAGE=CXX", "-DCOMPONENTS=CXX", "-G", "Ninja"]
    tools = plain_environment(programs, Path(sys.executable).parent)
    done = programs_of_tests.ended("cmake", "-S", CONSUMER / "alone", "-B", tmp_path, *options, env=tools)
    assert "wheels have no C++ library" in " ".join(done.stderr.split())


def test_info_says_all_it_can_where_there_is_no_mpiexec(programs, tmp_path):
    hidden = {name: programs / name for name in ("mpiexec", "mpiexec.hydra") if (programs / name).exists()}
    for name, path in hidden.items():
        path.rename(tmp_path / name)
    try:
        environment = plain_environment() | {"PATH": "/nowhere"}
        info = run(programs / "haloscope", "info", cwd=tmp_path, environment=environment)
    finally:
        for name, path in hidden.items():
            (tmp_path / name).rename(path)
    for word in ("no mpiexec of", "built for", "| CPU", "| p2p", "| laplace2d", "haloscope-rank"):
        assert word in info


@pytest.mark.parametrize("extra", ["", "[exchange]"])
def test_uninstalling_leaves_nothing_behind(wheel, tmp_path, extra):
    programs = new_venv(tmp_path / "venv", "3.11")
    pip(programs, "install", f"{wheel}{extra}")
    run(programs / "haloscope", "plan", "laplace2d", "--cells", "32x32", "--ranks", "2", cwd=tmp_path)
    pip(programs, "uninstall", "-y", "haloscope")
    assert list(programs.parent.rglob("*haloscope*")) == []


# ---- beside the distribution's Open MPI ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def openmpi():
    import other_mpi

    return other_mpi.fetched("openmpi4")


def on_openmpi(openmpi, *folders: Path) -> dict[str, str]:
    """Return a plain environment with what Open MPI needs, and its programs first on PATH after some folders."""
    own = openmpi.environment.keys() - os.environ.keys() | {"LD_LIBRARY_PATH"}
    plain = plain_environment(*folders, openmpi.mpicxx.parent)
    return plain | {name: openmpi.environment[name] for name in own}


def test_a_wheel_built_where_an_mpi_is_installed_is_for_that_mpi(sdist, openmpi, tmp_path):
    """As `pip install .` builds it where the site's mpicxx is on PATH."""
    builder, programs = (new_venv(tmp_path / name, "3.11") for name in ("builder", "venv"))
    words = ("-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "-w", tmp_path, sdist)
    run(builder / "python", *words, cwd=tmp_path, environment=on_openmpi(openmpi))
    (file,) = tmp_path.glob("*.whl")
    pip(programs, "install", f"{file}[exchange]")
    assert "mpich" not in run(programs / "python", "-m", "pip", "list", cwd=tmp_path)
    environment = on_openmpi(openmpi, programs)
    info = run(programs / "haloscope", "info", cwd=tmp_path, environment=environment)
    assert "Open MPI" in info and str(programs.parent) in info
    code = "import haloscope; print(haloscope.__file__)"
    assert run(programs / "python", "-c", code, cwd=tmp_path).startswith(str(programs.parent))
    start = launch.launcher_words(openmpi.mpiexec, 2, 1)
    output = run(*start, programs / "python", "-m", "mpi4py", RANDOM, 5, 20, cwd=tmp_path, environment=environment)
    assert output.split() == ["right"]


def test_a_wheel_for_mpich_beside_an_mpi4py_on_open_mpi_names_both(programs, openmpi, tmp_path):
    code = "from mpi4py import MPI; import haloscope; haloscope.Grid(MPI.COMM_WORLD, (8, 8))"
    environment = openmpi.environment.copy()
    environment.pop("HALOSCOPE_BUILD", None)
    done = programs_of_tests.ended(programs / "python", "-c", code, cwd=tmp_path, env=environment)
    last = done.stderr.strip().splitlines()[-1]
    assert re.search(r"mpi4py .* runs on Open MPI 4\.1\.\d, but this Haloscope was built for MPICH", last), done.stderr
    assert "HALOSCOPE_MPI_ABI" in last
